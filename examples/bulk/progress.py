"""What a run says: its progress, on a terminal as a line that changes, otherwise as a line a minute, and the failures by kind."""

from __future__ import annotations

import json
import re
import subprocess
import time
from typing import Any, Iterator, Mapping, Optional, TextIO

from .ledgers import LOADED, Record


class Failures:
    """The number and the latest example of each kind. Its size does not grow with the list."""

    def __init__(self) -> None:
        self.kinds: dict[str, dict[str, Any]] = {}
        """By kind: `count`, and `url` and `error` of an example."""

    def note(self, line: Mapping[str, Any], count: int = 1) -> None:
        """Adds a row by its line in a ledger, if it has failed. A count of -1 takes it back."""
        if line["outcome"] != LOADED:
            self.add(line["outcome"], count, shown(line["url"]), line["error"])

    def add(self, kind: str, count: int, url: str, error: str) -> None:
        count += self.kinds[kind]["count"] if kind in self.kinds else 0
        self.kinds[kind] = {"count": count, "url": url, "error": error}
        if count == 0:
            del self.kinds[kind]

    def merge(self, kinds: Mapping[str, Mapping[str, Any]]) -> None:
        """Adds the `kinds` of other failures."""
        for kind, of_kind in kinds.items():
            self.add(kind, **of_kind)

    def lines(self, hints: Optional[Mapping[str, str]] = None) -> Iterator[str]:
        """A table, the most frequent kind first; with the hints, each below its kind."""
        rows = sorted(self.kinds.items(), key=lambda row: (-row[1]["count"], row[0]))
        counts = [f"{example['count']:,}" for _, example in rows]
        count_width = max(map(len, counts), default=0)
        kind_width = max((len(kind) for kind, _ in rows), default=0)
        for count, (kind, example) in zip(counts, rows):
            error = printable(" ".join(example["error"].split()))
            yield f"  {count:>{count_width}} {kind:{kind_width}}  {printable(example['url'])}: {error}"
            if hints and kind in hints:
                yield f"  {'':{count_width + 1 + kind_width}}  {hints[kind]}"


def printable(text: str) -> str:
    """The text for a terminal: a control character, or one that changes the direction of text, is written as Python escapes it.

    A byte that was not UTF-8 is written as `\\xe9`.
    """
    text = re.sub("[\udc80-\udcff]", lambda half: f"\\x{ord(half[0]) - 0xDC00:02x}", text)
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def shown(url: str) -> str:
    """The URL without user information, query and fragment, which may be secret, and not longer than a line or two."""
    text = re.split("[?#,]" if url.startswith("data:") else "[?#]", url, maxsplit=1)[0]
    text = re.sub("^([^/]*//)[^/]*@", r"\1", text)
    return text if len(text) <= 200 else text[:200] + "..."


def hints(worker: str) -> dict[str, str]:
    """What to do if many loads fail with a kind, as the worker's own description says it; nothing if the worker does not run."""
    try:
        document = json.loads(subprocess.run([worker, "--describe"], stdout=subprocess.PIPE, check=True).stdout)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return {}
    return {error["kind"]: error["hint"] for error in document["x-errors"] if "hint" in error}


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
        self.loaded += line["outcome"] == LOADED
        self.failed += line["outcome"] != LOADED
        self.failures.note(line)
        if is_new and time.monotonic() - self.shown > (0.2 if self.is_terminal else 60):  # Seconds.
            self.show()

    def show(self, hints: Optional[Mapping[str, str]] = None) -> None:
        """Shows the figures, and with the hints, or without a terminal, the kinds of failures."""
        self.shown = time.monotonic()
        kinds = "".join(f"{line}\n" for line in self.failures.lines(hints)) if hints is not None or not self.is_terminal else ""
        begin, end = ("\r\x1b[K", "" if hints is None else "\n") if self.is_terminal else ("", "\n")
        pace = self.tried / max(self.shown - self.began, 0.001)
        before = f", {self.before} done before" if self.before else ""
        self.stream.write(f"{begin}{self.loaded} loaded, {self.failed} failed, {pace:.0f}/s{before}{end}{kinds}")
        self.stream.flush()
