"""The failures of a run by kind: how many, an example, and what to do about them."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any, Iterator, Mapping, Optional
from urllib.parse import urlsplit


class Failures:
    """The number and the latest example of each kind. Its size does not grow with the list."""

    def __init__(self) -> None:
        self.kinds: dict[str, dict[str, Any]] = {}
        """By kind: `count`, and `url` and `error` of an example."""

    def note(self, line: Mapping[str, Any], count: int = 1) -> None:
        """Adds a failure by its line in a ledger. A count of -1 takes it back."""
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
    text = url.partition("?")[0].partition("#")[0]
    try:
        network = urlsplit(text).netloc
    except ValueError:
        network = text
    text = text.replace(network, network.rpartition("@")[2], 1) if "@" in network else text
    if text.startswith("data:"):
        text = text.partition(",")[0]
    return text if len(text) <= 200 else text[:200] + "..."


def hints(worker: str) -> dict[str, str]:
    """What to do if many loads fail with a kind, as the worker's own description says it; nothing if the worker does not run."""
    try:
        document = json.loads(subprocess.run([worker, "--describe"], stdout=subprocess.PIPE, check=True).stdout)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return {}
    return {error["kind"]: error["hint"] for error in document["x-errors"] if "hint" in error}
