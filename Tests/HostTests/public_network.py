"""A network in which a server of a test has a public address, for workers that connect to no other."""

from __future__ import annotations

import subprocess
import sys

from package import ROOT

sys.path.insert(0, str(ROOT / "Tests" / "Internet"))

from internet_process import Unavailable, namespace_options  # noqa: E402

__all__ = ["ADDRESS", "PublicNetwork", "Unavailable"]

ADDRESS = "203.0.114.1"
"""In none of IANA's registries of special addresses. It exists in the namespace alone, which has no way out."""


class PublicNetwork:
    """A network namespace whose loopback interface has ADDRESS, too. Programs run in it with `prefix` before their own words.

    Raises Unavailable where namespaces are not permitted.
    """

    def __init__(self) -> None:
        options = namespace_options()
        set_up = f"ip link set lo up && ip address add {ADDRESS}/32 dev lo && echo ready && exec cat"
        self._process = subprocess.Popen(
            ["unshare", *options, "sh", "-c", set_up], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdin and self._process.stdout
        self._input, self._output = self._process.stdin, self._process.stdout
        if self._output.readline() != "ready\n":
            self.end()
            raise Unavailable("the namespace cannot be set up; the message is above")
        user = ["-U", "--preserve-credentials"] if "-r" in options else []
        self.prefix = ["nsenter", *user, "-m", "-n", "-t", str(self._process.pid), "--"]

    def end(self) -> None:
        self._input.close()
        self._process.wait()
        self._output.close()

    def __enter__(self) -> PublicNetwork:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
