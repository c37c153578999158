"""The progress of a run: on a terminal a line that changes, otherwise a line a minute; at the end the kinds of failures."""

from __future__ import annotations

import time
from typing import Any, Mapping, Optional, TextIO

from .failures import Failures
from .ledgers import LOADED, Record

PAUSE = 60.0
"""Seconds between the lines, if there is no terminal."""


class Progress:
    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.is_terminal = stream.isatty()
        self.began = self.shown = time.monotonic()
        self.loaded = self.failed = 0
        self.before = 0
        """Rows that earlier runs have loaded or tried. They are in `loaded` and `failed`."""
        self.failures = Failures()
        self.tried = 0
        """Loads of this run."""

    def add(self, report: Mapping[str, Any]) -> None:
        """Adds the rows of a shard by its report."""
        self.before += report["succeeded"] + report["failed"]
        self.loaded += report["succeeded"]
        self.failed += report["failed"]
        self.failures.merge(report["failures"])

    def note(self, line: Record, earlier: Optional[Record] = None, is_new: bool = True) -> None:
        """Adds a line, of this run if it `is_new`. `earlier` is the line of the same row in the pass before."""
        self.tried += is_new
        self.before += not is_new and earlier is None
        if earlier is not None:
            self.failed -= 1
            self.failures.note(earlier, -1)
        if line["outcome"] == LOADED:
            self.loaded += 1
        else:
            self.failed += 1
            self.failures.note(line)
        if is_new and time.monotonic() - self.shown > (0.2 if self.is_terminal else PAUSE):
            self.show()

    def show(self, hints: Optional[Mapping[str, str]] = None) -> None:
        """Shows the figures, and with the hints, or without a terminal, the kinds of failures."""
        self.shown = time.monotonic()
        kinds = "".join(f"{line}\n" for line in self.failures.lines(hints)) if hints is not None or not self.is_terminal else ""
        begin, end = ("\r\x1b[K", "" if hints is None else "\n") if self.is_terminal else ("", "\n")
        self.stream.write(f"{begin}{self.line()}{end}{kinds}")
        self.stream.flush()

    def line(self) -> str:
        pace = self.tried / max(time.monotonic() - self.began, 0.001)
        return f"{self.loaded} loaded, {self.failed} failed, {pace:.0f}/s" + (f", {self.before} done before" if self.before else "")
