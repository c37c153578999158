"""`imageworker cache` as the tests call it."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos_session import default_worker
from kills_origin import ChangingOrigin
from origin_process import PATIENCE
from test_cache_disk import Worker

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""One pixel, 70 bytes."""


@dataclass
class Result:
    """The end of a command."""

    status: int
    output: str
    errors: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.splitlines()]


def command(name: str, cache: Path, *arguments: str) -> list[str]:
    return [default_worker(), "cache", name, "--cache-dir", str(cache), *arguments]


def run(name: str, cache: Path, *arguments: str) -> Result:
    """A command with pipes, which writes lines of JSON by itself."""
    return run_line(*command(name, cache, *arguments)[1:])


def run_line(*arguments: str) -> Result:
    line = [default_worker(), *arguments]
    process = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
    return Result(process.returncode, process.stdout.decode(), process.stderr.decode())


MEASURED = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[2:], stdout=open(sys.argv[1], "wb"))
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
sys.exit(status)
"""


def run_measured(output: Path, name: str, cache: Path, *arguments: str) -> int:
    """Writes the output of a successful command to a file; returns its largest resident memory in bytes.

    A process of its own starts the command: the memory of the process that forks counts, too (getrusage(2)).
    """
    line = [sys.executable, "-c", MEASURED, str(output), *command(name, cache, *arguments)]
    return int(subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout)


def run_on_terminal(name: str, cache: Path, *arguments: str) -> tuple[int, str]:
    """A command whose output and errors go to a terminal: its status and everything that the terminal gets."""
    main, terminal = pty.openpty()
    process = subprocess.Popen(
        command(name, cache, *arguments), stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    shown = b""
    while True:
        readable, _, _ = select.select([main], [], [], PATIENCE)
        assert readable, f"the command hangs after {shown!r}"
        try:
            piece = os.read(main, 1 << 16)
        except OSError:  # Linux reports the end of the other side in this way.
            break
        if not piece:
            break
        shown += piece
    os.close(main)
    return process.wait(PATIENCE), shown.decode()


class SendingWorker(Worker):
    """A worker that can be left without its answer, and killed."""

    def send(self, method: str, **params: Any) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"id": "sent", "method": method, "params": params}).encode() + b"\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class CommandsTest(unittest.TestCase):
    """A cache directory of its own."""

    def setUp(self) -> None:
        exits = contextlib.ExitStack()
        self.addCleanup(exits.close)
        self.folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        self.cache = self.folder / "cache"
        self.exits = exits

    def origin(self) -> ChangingOrigin:
        origin = ChangingOrigin(seed=1, manners={"good": 1})
        self.exits.callback(origin.close)
        return origin

    def store(self, *urls: str, **params: Any) -> None:
        with Worker(self.cache) as worker:
            for url in urls:
                self.assertIn("result", worker.call("store", url=url, data=PNG, **params))

    def listed(self, *arguments: str) -> list[str]:
        """The keys that `ls` lists, which must say by its status whether there are any."""
        result = run("ls", self.cache, *arguments)
        self.assertEqual((result.errors, result.status), ("", 0 if result.output else 1))
        return [entry["key"] for entry in result.objects]

    def files(self) -> dict[str, bytes]:
        """Everything in the directory but SQLite's shared memory, which every reader uses."""
        paths = [path for path in self.cache.rglob("*") if path.is_file() and not path.name.endswith("-shm")]
        return {str(path): path.read_bytes() for path in paths}
