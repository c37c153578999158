"""The progress of a run: a bar on a terminal, otherwise one line at the end."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Callable, Iterable, Optional, TextIO

WIDTH = 30
"""Length of the bar in characters."""


class Progress:
    """The bar, redrawn at most five times a second. The rows are counted during the run, since a list may be slow to read."""

    def __init__(self, stream: TextIO, list_rows: Callable[[], Iterable[object]]) -> None:
        self.stream = stream
        self.began = time.monotonic()
        self.drawn = 0.0
        self.loaded = self.failed = self.skipped = 0
        self.total: Optional[int] = None
        if stream.isatty():
            threading.Thread(target=self._count, args=(list_rows,), daemon=True).start()

    def _count(self, list_rows: Callable[[], Iterable[object]]) -> None:
        try:
            self.total = sum(1 for _ in list_rows())
        except Exception:
            return  # The run comes to the same place, and says what is wrong there.

    def skip(self, count: int) -> None:
        self.skipped += count

    def note(self, is_loaded: bool) -> None:
        if is_loaded:
            self.loaded += 1
        else:
            self.failed += 1
        now = time.monotonic()
        if self.stream.isatty() and now - self.drawn > 0.2:
            self.drawn = now
            self.draw()

    @property
    def has_begun(self) -> bool:
        return self.loaded + self.failed + self.skipped > 0

    def draw(self) -> None:
        self.stream.write(f"\r\x1b[K\x1b[?7l{self.bar()}\x1b[?7h")  # Between the two, a line too long is cut off, not wrapped.
        self.stream.flush()

    def bar(self) -> str:
        if not self.total:
            return self.line()
        done = self.loaded + self.failed + self.skipped
        left = max(self.total - done, 0)
        text = f"[{'#' * (WIDTH * done // self.total):{WIDTH}.{WIDTH}}] {done} of {self.total}: {self.line()}"
        pace = self.pace()
        return text + (f", {timedelta(seconds=round(left / pace))} left" if left and pace else "")

    def line(self) -> str:
        text = f"{self.loaded} loaded, {self.failed} failed, {self.pace():.0f}/s"
        return text + (f", {self.skipped} done before" if self.skipped else "")

    def pace(self) -> float:
        """Rows a second, without the rows of earlier runs."""
        return (self.loaded + self.failed) / max(time.monotonic() - self.began, 0.001)

    def finish(self, is_complete: bool) -> None:
        if is_complete:
            self.total = self.loaded + self.failed + self.skipped
        if self.stream.isatty():
            self.draw()
            self.stream.write("\n")
        else:
            self.stream.write(self.line() + "\n")
