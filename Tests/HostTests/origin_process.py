"""Tests/Origin as a context manager."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from typing import Any, Optional, Sequence

from package import ROOT

PATIENCE = 30.0
"""Seconds after which what does not happen is taken for missing. Nothing is ever this slow unless it hangs."""


class Origin:
    """A running origin. `url` is where it is; `command` and `control` do what Tests/Origin/README.md lists.

    Its options are there as well; with several `--origins`, all of their ports are in `ports`. `prefix` are words before its command.
    """

    def __init__(self, *options: str, prefix: Sequence[str] = (), host: str = "127.0.0.1") -> None:
        command = [*prefix, sys.executable, str(ROOT / "Tests" / "Origin" / "origin.py"), "--host", host, *options]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin and self._process.stdout
        self._input, self._output = self._process.stdin, self._process.stdout
        ready = json.loads(self._output.readline())
        self.authority: Optional[str] = ready.get("ca")
        """The file of the certificate to trust, with `--tls`."""
        self.url = f"{'https' if self.authority else 'http'}://{host}:{ready['port']}"
        self.ports: list[int] = ready.get("ports", [ready["port"]])
        self.control = f"http://{host}:{ready['control']}"

    def __enter__(self) -> Origin:
        return self

    def __exit__(self, *_: object) -> None:
        self._input.close()
        self._process.wait()
        self._output.close()

    def command(self, command: dict[str, Any], patience: float = PATIENCE) -> dict[str, Any]:
        self._input.write(json.dumps(command) + "\n")
        self._input.flush()
        readable, _, _ = select.select([self._output], [], [], patience)
        assert readable, f"what the origin was told to wait for did not happen: {json.dumps(command)}"
        answer: dict[str, Any] = json.loads(self._output.readline())
        assert "error" not in answer, answer
        return answer
