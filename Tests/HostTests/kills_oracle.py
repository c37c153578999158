"""The permitted results for pictures that change, from a worker that may be killed at any time."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable, List, Optional, Tuple

from kills_origin import LANGUAGES, ChangingOrigin, Picture, body_of, picture_of, policy_of

Subject = Tuple[str, str]
"""A picture's name and language: what is stored of one language does not take the place of another's."""
ERRORS = {"http", "truncated", "network"}


def subjects(name: str) -> List[Subject]:
    return [(name, language) for language in (LANGUAGES if policy_of(name) == "varied" else ["-"])]


class Violation(Exception):
    """A rule that was broken."""


@dataclass
class Asked:
    """One request."""

    id: int
    method: str
    params: dict[str, Any]
    names: list[str] = field(default_factory=list)
    """The pictures that it may transfer, store or clear."""
    language: str = "-"
    version: int = 0
    """The content of a `store`."""
    oldest_transfer: dict[str, int] = field(default_factory=dict)
    """The version of each below which no transfer can be that it may have begun or joined."""
    oldest_hit: int = 0
    """The version below which nothing may come from the cache."""
    floors: dict[Subject, int] = field(default_factory=dict)
    """The objects below, for requests that clear or settle something."""
    is_answered: bool = False
    is_cut_off: bool = False
    """No later load joins it: a `clear` stands between them."""
    may_be_cancelled: bool = False
    may_share: bool = False
    """Another request for the same picture was under way at the same time."""
    path: Optional[str] = None
    """The file that the answer to a `query` names."""

    @property
    def is_unread_store(self) -> bool:
        """A `store` that the worker may not have begun."""
        return self.method == "store" and not self.is_answered


@dataclass
class Delivery:
    content: bytes
    at: float
    session: int
    is_new: bool
    """It was written with its delivery; where it was there before, the index learns of it seconds later."""


class Book:
    """The facts that survive a worker's death: acknowledged as durable, or delivered. Safe for several threads."""

    def __init__(self, origin: ChangingOrigin) -> None:
        self.origin = origin
        self.lock = threading.RLock()
        self.floors: dict[Subject, int] = {}
        """The oldest version of each picture that the disk may still give."""
        self.delivered: dict[str, list[Delivery]] = {}
        """By path. Each delivery is a promise of its own: a later one may die before the index learns of it."""
        self.digests: dict[bytes, float] = {}
        """When content was last delivered in whatever way, by its picture's tag."""
        self.perhaps: dict[str, float] = {}
        """When a picture may last have been delivered by somebody who died before he could say so."""
        self.deaths: dict[int, float] = {}
        """When each session ended."""
        self.tally: Counter[str] = Counter()


class Oracle:
    """Judges one worker. Not for several threads without the book's lock."""

    def __init__(self, book: Book, session: int, is_alone: bool) -> None:
        self.book = book
        self.session = session
        self.is_alone = is_alone
        self.asked: dict[int, Asked] = {}
        self.waiting: dict[int, Asked] = {}
        self._floors = dict(book.floors)
        self._touched: dict[str, list[Asked]] = {}

    # Sent lines.

    def expect(self, asked: Asked, others: Iterable[Oracle]) -> None:
        """Before the line is sent."""
        self.asked[asked.id] = self.waiting[asked.id] = asked
        version = self.book.origin.version
        if asked.method == "clear":
            self._expect_clear(asked, others)
        elif asked.method == "cancel":
            for each in self.waiting.values():
                each.may_be_cancelled = each.method in ("load", "prefetch")
        elif asked.method in ("load", "prefetch", "store"):
            for name in asked.names:
                under_way = self._under_way(name)
                asked.oldest_transfer[name] = min([version(name), *(each.oldest_transfer[name] for each in under_way)])
                for each in under_way:
                    asked.may_share = each.may_share = True
                self._touched.setdefault(name, []).append(asked)
            if asked.method == "load":
                asked.oldest_hit = self._floors.get((asked.names[0], asked.language), 0)

    def _under_way(self, name: str) -> list[Asked]:
        """The requests that may have a transfer of the picture: none after its answer, but a cancelled one may continue briefly."""
        return [
            each
            for each in self._touched.get(name, [])
            if not each.is_cut_off and (not each.is_answered or each.may_be_cancelled or each.method == "prefetch")
        ]

    def _expect_clear(self, asked: Asked, others: Iterable[Oracle]) -> None:
        """Requests from now on must not get anything older than the current picture."""
        version = self.book.origin.version
        others = list(others)
        for name in asked.names:
            # Another worker may read the line of a `store` only after the clear. Its transfers it does not store then.
            stores = [each.version for other in others for each in other._touched.get(name, []) if each.is_unread_store]
            floor = min([version(name), *stores])
            if "tier" not in asked.params:
                for subject in subjects(name):
                    self._floors[subject] = max(self._floors.get(subject, 0), floor)
            for other in others:
                floor = min([floor, *(each.oldest_transfer[name] for each in other._under_way(name))])
            asked.floors.update((subject, floor) for subject in subjects(name))
            for each in self._touched.get(name, []):
                each.is_cut_off = True
        if not asked.names:
            # It clears nothing, and has everything written that was acknowledged before.
            asked.floors = dict(self._floors)

    def die(self) -> None:
        """Killed, with some requests unanswered."""
        self.book.deaths[self.session] = time.monotonic()
        for each in self.waiting.values():
            for name in each.names:
                self.book.perhaps[name] = time.monotonic()

    # Received lines.

    def hear(self, line: bytes) -> None:
        message = json.loads(line)
        if message.get("method") == "cached":
            asked = self.asked[message["params"]["id"]]
            return self._check_image(asked, message["params"], is_final=False)
        if "method" in message:
            return
        if message["id"] not in self.waiting:
            raise Violation(f"nobody waits for {message}")
        asked = self.waiting.pop(message["id"])
        asked.is_answered = True
        if "error" in message:
            kind = message["error"]["data"]["kind"]
            self.book.tally[f"{asked.method}: {kind}"] += 1
            self._check_error(asked, kind, message)
        else:
            self._check_result(asked, message["result"])

    def _check_error(self, asked: Asked, kind: str, message: Any) -> None:
        """The cache is no reason for a load to fail."""
        may_fail = asked.method == "load" and kind in ERRORS
        if asked.params.get("cache") == "only-if-cached":
            may_fail = kind == "notCached"
        if kind == "cancelled":
            may_fail = asked.may_be_cancelled
        if asked.method == "store":
            may_fail = kind == "diskFull"
        if not may_fail:
            raise Violation(f"{asked}: {message}")

    def _check_result(self, asked: Asked, result: dict[str, Any]) -> None:
        how = result["cache"] if asked.names and "cache" in result else "done"
        self.book.tally[f"{asked.method}: {how}"] += 1
        if asked.method == "load":
            self._check_image(asked, result, is_final=True)
        elif asked.method == "query":
            asked.path = result.get("path")
        elif asked.method == "store":
            self._note_content(asked.names[0], asked.version, asked)
        elif asked.method == "clear":
            self._settle(asked)
        elif asked.method == "prefetch":
            ends = sum(result[name] for name in ("downloaded", "cached", "failed", "cancelled"))
            if ends != result["total"]:
                raise Violation(f"{asked}: the items do not add up: {result}")

    def _settle(self, asked: Asked) -> None:
        """Acknowledged, a `clear` is durable, and so is what it was told after."""
        if "tier" in asked.params:
            return
        for subject, floor in asked.floors.items():
            self.book.floors[subject] = max(self.book.floors.get(subject, 0), floor)

    def _note_content(self, name: str, version: int, asked: Asked) -> None:
        """An image that was stored takes the place of older ones, if nobody else is at it."""
        others = [each for each in self._touched.get(name, []) if each is not asked and each in self._under_way(name)]
        if self.is_alone and not others and asked.params.get("store", "all") in ("all", "disk"):
            subject = (name, asked.language)
            self._floors[subject] = max(self._floors.get(subject, 0), version)

    # Images.

    def _check_image(self, asked: Asked, result: dict[str, Any], is_final: bool) -> None:
        [name] = asked.names
        how = result["cache"]
        picture = self._check_content(asked, result, is_final)
        mode = asked.params.get("cache", "default")
        if how in ("miss", "revalidated"):
            oldest = asked.oldest_transfer[name]
            if mode == "only-if-cached" or not is_final:
                raise Violation(f"{asked}: no transfer was wanted: {result}")
        else:
            oldest = asked.oldest_hit
            if is_final and mode in ("reload", "no-store", "no-cache", "refresh"):
                raise Violation(f"{asked}: the cache was not wanted: {result}")
            if policy_of(name) == "never" or (how != "stale" and policy_of(name) == "asked" and mode == "default"):
                raise Violation(f"{asked}: not without asking the server: {result}")
        if picture is None:
            return
        if not oldest <= picture.version <= self.book.origin.version(name):
            raise Violation(f"{asked}: {picture} is not of version {oldest} or later: {result}")
        if how == "miss" and mode != "no-store" and policy_of(name) != "never":
            self._note_content(name, picture.version, asked)

    def _check_content(self, asked: Asked, result: dict[str, Any], is_final: bool) -> Optional[Picture]:
        """Checks that the delivered content is exactly one picture, and the requested one."""
        content: Optional[bytes] = None
        if "data" in result:
            content = base64.b64decode(result["data"], validate=True)
        elif "path" in result:
            content = self._check_path(asked, result)
        saved = asked.params.get("saveTo") if is_final else None
        if saved is not None:
            written = Path(saved).read_bytes()
            if content is not None and written != content:
                raise Violation(f"{asked}: saved was something else: {result}")
            content = written
        if content is None:
            return None
        picture = picture_of(content)
        if picture is None or content != body_of(picture):
            raise Violation(f"{asked}: no picture but {len(content)} bytes, {content[:80]!r}: {result}")
        if picture.name != asked.names[0] or picture.language != asked.language or len(content) != result["bytes"]:
            raise Violation(f"{asked}: {picture}: {result}")
        self.book.digests[picture.tag.encode()] = time.monotonic()
        return picture

    def _check_path(self, asked: Asked, result: dict[str, Any]) -> bytes:
        path = result["path"]
        try:
            content = Path(path).read_bytes()
        except FileNotFoundError:
            raise Violation(f"{asked}: there is no such path: {result}") from None
        # A load that joins a transfer while it is being stored gets the content of that time.
        is_new = result["cache"] == "miss" and not asked.may_share
        deliveries = self.book.delivered.setdefault(path, [])
        if any(before.content != content for before in deliveries):
            raise Violation(f"{asked}: the path had another content before: {result}")
        deliveries.append(Delivery(content, time.monotonic(), self.session, is_new))
        return content
