"""The progress of a job as the driver sees it: the reports that executors have written since the start."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, Callable, Iterator

from failures import Failures

PAUSE = 60.0
"""Seconds between two looks at the folder."""


class Watch:
    """Looks for the reports of partitions that finish during the job, and says what they add up to."""

    def __init__(self, out: Path, partitions: int, write: Callable[[str], object] = print) -> None:
        self.out = out
        self.partitions = partitions
        self.write = write
        self.seen = set(self._reports())
        self.done = self.succeeded = self.failed = 0
        self.failures = Failures()
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _reports(self) -> Iterator[Path]:
        return self.out.glob("[0-9][0-9][0-9][0-9][0-9].json")

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._has_ended.wait(PAUSE):
            if self.look():
                for line in self.lines():
                    self.write(line)

    def look(self) -> bool:
        """Adds the reports that are new. Returns whether there were any."""
        new = [path for path in self._reports() if path not in self.seen]
        for path in sorted(new):
            self.seen.add(path)
            self.add(json.loads(path.read_text()))
        return bool(new)

    def add(self, report: dict[str, Any]) -> None:
        self.done += 1
        self.succeeded += report["succeeded"]
        self.failed += report["failed"]
        self.failures.merge(report.get("failures", {}))

    def lines(self) -> Iterator[str]:
        yield f"{self.done} of {self.partitions} partitions: {self.succeeded} loaded, {self.failed} failed"
        yield from self.failures.lines()
