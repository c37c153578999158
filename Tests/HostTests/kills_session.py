"""A worker between the requests that it gets and the oracle that judges it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Optional

from chaos_session import default_worker
from kills_oracle import Asked, Book, Oracle, Violation

PATIENCE = 60.0
"""Seconds after which what does not happen is taken for missing."""


class Worker:
    """One process, what it is asked and what it says."""

    def __init__(self, book: Book, oracle: Oracle, options: list[str], scratch: Path) -> None:
        self.book, self.oracle = book, oracle
        self.broken: Optional[BaseException] = None
        self._changed = threading.Condition(book.lock)
        self._log = tempfile.TemporaryFile()
        environment = {**os.environ, "TMPDIR": str(scratch)}
        pipe = subprocess.PIPE
        command = [default_worker(), *options]
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._log, env=environment)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                try:
                    if line.endswith(b"\n"):  # else it died within the line
                        self.oracle.hear(line)
                except BaseException as error:
                    self.broken = self.broken or error
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def send(self, asked: Asked, others: list[Worker]) -> None:
        assert self.process.stdin is not None
        with self.book.lock:
            self.oracle.expect(asked, [other.oracle for other in others])
        line = json.dumps({"id": asked.id, "method": asked.method, "params": asked.params}) + "\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()

    def wait(self, most: int = 0) -> None:
        """Until no more than so many requests are unanswered."""
        with self._changed:
            begun = time.monotonic()
            while self.broken is None and len(self.oracle.waiting) > most:
                if not self._changed.wait(1) and time.monotonic() - begun > PATIENCE:
                    raise Violation(f"stuck, with these unanswered: {list(self.oracle.waiting.values())[:9]}")
                if not self._reader.is_alive() and self.broken is None:
                    raise Violation(f"the worker ended by itself: {self.log()}")

    def kill(self) -> None:
        self.process.kill()
        self._end()
        self.oracle.die()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._end()
        if self.process.returncode != 0 or self.oracle.waiting:
            raise Violation(f"exit {self.process.returncode}, unanswered: {self.oracle.waiting}")

    def _end(self) -> None:
        self.process.wait(PATIENCE)
        self._reader.join()
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.stdout.close()
        log = self.log()
        self._log.close()
        if self.broken is not None:
            raise self.broken
        # A share of the requests is bound to fail.
        complaints = [line for line in log.splitlines() if "loads of the last minute failed" not in line]
        if any(complaints):
            raise Violation(f"it has complained: {log}")

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")
