"""The progress of a run: on a terminal a bar with the kinds of failures below it, otherwise a line a minute and at the end."""

from __future__ import annotations

import itertools
import threading
import time
from datetime import timedelta
from typing import Any, Callable, Iterable, Mapping, Optional, TextIO

from failures import Failures
from outcomes import Failure

WIDTH = 30
"""Length of the bar in characters."""

KINDS = 5
"""Kinds of failures that a terminal shows during the run."""

PAUSE = 60.0
"""Seconds between the lines, if there is no terminal."""


class Progress:
    """The bar, redrawn at most five times a second. The rows are counted during the run, since a list may be slow to read."""

    def __init__(self, stream: TextIO, list_rows: Callable[[], Iterable[object]]) -> None:
        self.stream = stream
        self.is_terminal = stream.isatty()
        self.began = time.monotonic()
        self.drawn = 0.0 if self.is_terminal else self.began
        self.loaded = self.failed = 0
        self.before = 0
        """Rows that earlier runs have loaded or tried. They are in `loaded` and `failed`."""
        self.tried = 0
        """Loads of this run."""
        self.failures = Failures()
        self.total: Optional[int] = None
        if self.is_terminal:
            threading.Thread(target=self._count, args=(list_rows,), daemon=True).start()

    def _count(self, list_rows: Callable[[], Iterable[object]]) -> None:
        try:
            self.total = sum(1 for _ in list_rows())
        except Exception:
            return  # The run comes to the same place, and says what is wrong there.

    def add(self, report: Mapping[str, Any]) -> None:
        """Adds the rows of a shard by its report."""
        self.before += report["succeeded"] + report["failed"]
        self.loaded += report["succeeded"]
        self.failed += report["failed"]
        self.failures.merge(report["failures"])

    def note_before(self, url: str, failure: Optional[Failure], earlier: Optional[str]) -> None:
        """Adds a row that an earlier run has tried in a pass under way. `earlier` is the kind of its failure in the pass before."""
        if earlier is None:
            self.before += 1
        else:
            self.forget(earlier)
        self._count_row(url, failure)

    def forget(self, kind: str) -> None:
        """Takes back a failed row, because its next outcome follows."""
        self.failed -= 1
        self.failures.forget(kind)

    def note(self, url: str, failure: Optional[Failure]) -> None:
        """Adds the outcome of a load."""
        self.tried += 1
        self._count_row(url, failure)
        now = time.monotonic()
        if now - self.drawn > (0.2 if self.is_terminal else PAUSE):
            self.drawn = now
            if self.is_terminal:
                self.draw()
            else:
                self.write([self.line(), *self.failures.lines()])

    def _count_row(self, url: str, failure: Optional[Failure]) -> None:
        if failure is None:
            self.loaded += 1
        else:
            self.failed += 1
            self.failures.note(url, failure)

    @property
    def has_begun(self) -> bool:
        return self.loaded + self.failed > 0

    def draw(self) -> None:
        """Draws the bar, and below it a line for each of the commonest kinds. The cursor stays on the bar."""
        kinds = list(itertools.islice(self.failures.lines(), KINDS))
        below = "".join(f"\n\x1b[K{kind}" for kind in kinds) + (f"\x1b[{len(kinds)}A" if kinds else "")
        self.stream.write(f"\r\x1b[K\x1b[?7l{self.bar()}{below}\x1b[?7h")  # Between the two, a line too long is cut off, not wrapped.
        self.stream.flush()

    def write(self, lines: Iterable[str]) -> None:
        self.stream.write("".join(f"{line}\n" for line in lines))
        self.stream.flush()

    def bar(self) -> str:
        if not self.total:
            return self.line()
        done = self.loaded + self.failed
        left = max(self.total - done, 0)
        text = f"[{'#' * (WIDTH * done // self.total):{WIDTH}.{WIDTH}}] {done} of {self.total}: {self.line()}"
        pace = self.pace()
        return text + (f", {timedelta(seconds=round(left / pace))} left" if left and pace else "")

    def line(self) -> str:
        text = f"{self.loaded} loaded, {self.failed} failed, {self.pace():.0f}/s"
        return text + (f", {self.before} done before" if self.before else "")

    def pace(self) -> float:
        """Loads of this run a second."""
        return self.tried / max(time.monotonic() - self.began, 0.001)

    def finish(self, is_complete: bool, hints: Callable[[], Mapping[str, str]]) -> None:
        """Shows the end of the run, with the hints for the kinds of failures that there were."""
        if is_complete:
            self.total = self.loaded + self.failed
        if self.is_terminal:
            self.draw()
            self.stream.write("\n\x1b[J" if self.failed else "\n")
        else:
            self.write([self.line()])
        self.write(self.failures.lines(hints()) if self.failed else [])
