"""Tests/Internet as a context manager."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from habits import Habit, address, host
from http2 import HTTP2Front, Missing

PROGRAM = Path(__file__).resolve().parent / "internet.py"
NAMESPACES = (["-m", "-n"], ["-r", "-m", "-n"])
"""Options of unshare(1): as root, and as another user where the system lets every user make namespaces."""


class Unavailable(Exception):
    """The small internet cannot run here; the text says why."""


def namespace_options() -> List[str]:
    """Those options of unshare(1) that work here."""
    for tool in ("unshare", "nsenter", "ip", "mount"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is not installed (Debian: util-linux, iproute2)")
    for options in NAMESPACES:
        if subprocess.run(["unshare", *options, "ip", "link", "set", "lo", "up"], capture_output=True).returncode == 0:
            return options
    raise Unavailable("`unshare -m -n` is not permitted; be root, or allow user namespaces")


class Internet:
    """A running internet. Programs are started in it with the words of `prefix` before their own.

    `names_at_once` is how many queries the name server works on before it drops what comes; None is no limit.
    `http2` is the kind of hosts of which number 0 has HTTP/2 at https, too.
    """

    def __init__(
        self,
        folder: Path,
        habits: Sequence[Habit],
        *,
        names_at_once: Optional[int] = None,
        names_delay: float = 0.03,
        http2: Optional[str] = None,
    ) -> None:
        options = namespace_options()
        names = {"delay": names_delay, "mostAtOnce": names_at_once}
        plan = json.dumps({"habits": [habit.as_json() for habit in habits], "names": names, "seed": 1})
        command = ["unshare", *options, sys.executable, str(PROGRAM), str(folder), plan]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin and self._process.stdout
        if self._process.stdout.readline() != "ready\n":
            self._process.wait()
            raise Unavailable("the small internet does not start; its message is above")
        user = ["-U", "--preserve-credentials"] if "-r" in options else []
        self.prefix = ["nsenter", *user, "-m", "-n", "-t", str(self._process.pid), "--"]
        self._report: Optional[Dict[str, Any]] = None
        self._front: Optional[HTTP2Front] = None
        if http2 is not None:
            where = address([habit.kind for habit in habits], host(http2, 0))
            assert where is not None
            try:
                self._front = HTTP2Front(self.prefix, folder / "http2", ".".join(map(str, where)))
            except Missing as reason:
                self.end()
                raise Unavailable(str(reason)) from None

    def __enter__(self) -> Internet:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> Dict[str, Any]:
        """End it, and return what it saw: `names`, `web` and its own `processorTime` in seconds."""
        if self._front is not None:
            self._front.end()
            self._front = None
        if self._report is None:
            output, _ = self._process.communicate()
            report: Dict[str, Any] = json.loads(output)
            self._report = report
        return self._report
