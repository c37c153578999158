"""The worker as a host runs it: lines into a pipe, lines out of another."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Dict, Iterable, List, Tuple

from measuring import Skipped, plain_environment

PIPE_SIZE = 1 << 20
SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ, which has a name only since Python 3.10


def request(identifier: int, method: str, **params: Any) -> bytes:
    line: Dict[str, Any] = {"jsonrpc": "2.0", "id": identifier, "method": method}
    if params:
        line["params"] = params
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def loads(urls: Iterable[str]) -> bytes:
    """A load for each URL, numbered from 1, as one piece."""
    return b"".join(request(number, "load", url=url) for number, url in enumerate(urls, 1))


def existing(path: Path) -> Path:
    if not os.access(path, os.X_OK):
        raise Skipped(f"there is no worker at {path}; build it with `swift build -c release`, or name it with --worker")
    return path


def memory(process: int) -> Dict[str, float]:
    """`VmRSS` and `VmHWM` (the peak) of a process, in MB."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        raise Skipped("this needs /proc, which is Linux's, and a process that lives") from None
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return {name: int(lines[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")}


class Worker:
    """A running worker. The host is lean, so that it is not what is measured: bytes prepared before, 1 MB a read."""

    def __init__(self, path: Path, cache: Path, *options: str) -> None:
        self._start([str(existing(path)), "--cache-dir", str(cache), *options])

    @classmethod
    def of(cls, command: List[str]) -> Worker:
        """Another program that reads lines and writes lines."""
        other = cls.__new__(cls)
        other._start(command)
        return other

    def _start(self, command: List[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=plain_environment()
        )
        assert self.process.stdin and self.process.stdout
        self._input = self.process.stdin.fileno()
        self._output = self.process.stdout.fileno()
        self._tail = b""
        for pipe in (self._input, self._output):
            try:
                fcntl.fcntl(pipe, SET_PIPE_SIZE, PIPE_SIZE)
            except OSError:
                pass  # not Linux, or above this user's limit

    def converse(self, lines: bytes, answers: int) -> Tuple[float, bytes]:
        """Write everything while reading; returns the seconds to the last answer, and the answers."""
        writer = threading.Thread(target=self._write, args=(memoryview(lines),))
        chunks: List[bytes] = []
        begun = time.perf_counter()
        writer.start()
        while answers > 0:
            chunk = os.read(self._output, PIPE_SIZE)
            if not chunk:
                raise RuntimeError(f"the worker ended with {answers} answers to go")
            answers -= chunk.count(b"\n")
            chunks.append(chunk)
        took = time.perf_counter() - begun
        writer.join()
        return took, b"".join(chunks)

    def send(self, lines: bytes) -> None:
        """Write some lines and read nothing: they must be few enough for the pipe."""
        self._write(memoryview(lines))

    def answer_to(self, identifier: int) -> bytes:
        """The answer to this request, which has been sent; those to others that come before it are dropped."""
        mark = b'"id":%d,' % identifier
        while True:
            *lines, self._tail = (self._tail + self.read()).split(b"\n")
            for line in lines:
                if mark in line[:40]:
                    return line

    def read(self) -> bytes:
        """The bytes received so far, of any number."""
        chunk = os.read(self._output, PIPE_SIZE)
        if not chunk:
            raise RuntimeError("the worker ended")
        return chunk

    def _write(self, left: memoryview) -> None:
        while left:
            left = left[os.write(self._input, left[:PIPE_SIZE]) :]

    def memory(self) -> Dict[str, float]:
        return memory(self.process.pid)

    def processor_time(self) -> float:
        """Seconds that all its threads have been running so far."""
        clock = (~self.process.pid << 3) | 2  # what clock_getcpuclockid(3) gives on Linux
        try:
            return time.clock_gettime(clock)
        except OSError:
            raise Skipped("this needs the processor clock of another process, which is Linux's") from None

    def end(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def check(answers: bytes, count: int, **members: Any) -> None:
    """A benchmark of wrong answers is worth nothing: each must be a result with these members."""
    lines = answers.splitlines()
    if len(lines) != count:
        raise RuntimeError(f"{len(lines)} answers instead of {count}")
    for line in lines:
        answer = json.loads(line)
        result = answer.get("result", {})
        if any(result.get(name) != value for name, value in members.items()):
            raise RuntimeError(f"not what was asked for: {line[:500]!r}")
