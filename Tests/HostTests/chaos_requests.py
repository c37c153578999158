"""The requests of the chaos test: random by a seed alone, each with its permitted outcomes."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Iterator, Optional, Union

from chaos_menu import Dish, Menu

Message = dict[str, Any]
PRIORITIES = ["lowest", "low", "normal", "high", "highest"]
MODES = ["no-store", "reload", "no-cache", "force-cache", "only-if-cached", "refresh"]
EVENTS = ["started", "progress", "retrying", "cached"]
GROUPS = [f"group {number}" for number in range(6)]
SLOTS = [f"slot {number}" for number in range(5)]
USERS = [{"authorization": "Bearer ann"}, {"Authorization": "Bearer bob"}, {"cookie": "session=ann"}]
LANGUAGES = [{"accept-language": "en"}, {"accept-language": "fr"}]
MOST_CONCURRENT, MOST_PER_HOST = 12, 4


@dataclass
class Asked:
    """A request, and what the host has heard of it."""

    message: Message
    dish: Optional[Dish] = None
    kinds: frozenset[str] = frozenset()
    """The errors that it may end in, besides those that any load may."""
    must_fail: bool = False
    save_to: Optional[Path] = None
    is_batched: bool = False
    may_be_cancelled: bool = False
    targets: list[Asked] = field(default_factory=list)
    """The requests that a `cancel`, or a load for a slot, ends unless they have ended before."""
    is_answered: bool = False
    result: Optional[Message] = None
    """Without an error."""
    heard: list[Message] = field(default_factory=list)
    attempt: int = 0
    """The last one that an event told of."""
    received: int = -1
    """The last progress told, in bytes or items."""
    has_shown: bool = False
    """Whether `cached` came."""
    items: Counter[str] = field(default_factory=Counter)
    """The numbers of a prefetch's events by name."""

    @property
    def id(self) -> Union[int, str, None]:
        identifier: Union[int, str, None] = self.message.get("id")
        return identifier

    @property
    def method(self) -> str:
        return str(self.message["method"])

    @property
    def params(self) -> dict[str, Any]:
        params: dict[str, Any] = self.message.get("params", {})
        return params

    @property
    def headers(self) -> dict[str, str]:
        headers: dict[str, str] = self.params.get("headers", {})
        return headers


@dataclass
class Step:
    """One line: a request, a batch of them, or what is none."""

    line: bytes
    asked: list[Asked]
    is_refused: bool = False
    """Answered by an error without an id."""

    @classmethod
    def of(cls, asked: Asked) -> Step:
        return cls(json.dumps(asked.message).encode() + b"\n", [asked])


class Requests:
    """Steps without end. They depend on the seed only, not on what is heard."""

    def __init__(self, random: Random, menu: Menu, folder: Path) -> None:
        self.menu = menu
        self.saved: list[Asked] = []
        """Those with `saveTo`, which is a file in the folder for each."""
        self._random = random
        self._folder = folder
        self._count = 0
        self._dishes: list[Dish] = []
        self._recent: list[Union[int, str]] = []
        self._resume_in = 0
        self._makers = {
            self.load: 70,
            self.notification: 3,
            self.prefetch: 2,
            self.cancel: 5,
            self.prioritize: 4,
            self.query: 2,
            self.store: 1,
            self.clear: 1,
            self.stats: 2,
            self.configure: 1,
        }

    @property
    def is_paused(self) -> bool:
        return self._resume_in > 0

    def __iter__(self) -> Iterator[Step]:
        while True:
            if self._resume_in > 0:
                self._resume_in -= 1
                if self._resume_in == 0:
                    yield Step.of(self.plain("resume"))
            elif self._random.random() < 0.005:
                self._resume_in = self._random.randint(3, 30)
                yield Step.of(self.plain("pause"))
            chance = self._random.random()
            if chance < 0.02:
                yield self.batch()
            elif chance < 0.03:
                yield self.nonsense()
            else:
                yield Step.of(self._any())

    def _any(self) -> Asked:
        [make] = self._random.choices(list(self._makers), list(self._makers.values()))
        return make()


    def cached(self) -> Iterator[Step]:
        """Everything asked for so far, for everybody, as far as it is in the cache."""
        for dish in self._dishes:
            for headers in [{}, *USERS, *LANGUAGES] if dish.is_personal else [{}]:
                deliver = self._random.choice(["path", "data"])
                asked = self.plain("load", url=dish.url, cache="only-if-cached", deliver=deliver, headers=headers)
                asked.dish, asked.kinds = dish, frozenset(["notCached", "recentlyFailed"])
                yield Step.of(asked)

    def batch(self) -> Step:
        """Not of loads for slots: whoever is cancelled in a batch is answered with the others only."""
        makers = [self.notification, self.prefetch, self.prioritize, self.query, self.stats]
        some = [self._random.choice(makers)() for _ in range(self._random.randint(1, 3))]
        some += [self.load(in_slot=False) for _ in range(self._random.randint(1, 3))]
        for asked in some:
            asked.is_batched = True
        return Step(json.dumps([asked.message for asked in some]).encode() + b"\n", some)

    def nonsense(self) -> Step:
        lines = ['{"id":', "17", "[]", '{"id":1.5,"method":"stats"}', '{"id":null,"method":"stats"}', '{"method":7}']
        return Step(self._random.choice(lines).encode() + b"\n", [], is_refused=True)

    # One request each.

    def plain(self, method: str, **params: Any) -> Asked:
        return Asked({"jsonrpc": "2.0", "id": self._new_id(), "method": method, "params": params})

    def _new_id(self) -> Union[int, str]:
        self._count += 1
        return self._count if self._count % 3 else f"request {self._count}"

    def _dish(self) -> Dish:
        """Some are new, the others have been asked for before, mostly of late."""
        if not self._dishes or self._random.random() < 0.3:
            self._dishes.append(self.menu.dish())
            return self._dishes[-1]
        if self._random.random() < 0.6:
            return self._random.choice(self._dishes[-20:])
        return self._random.choice(self._dishes)

    def load(self, in_slot: bool = True, dish: Optional[Dish] = None) -> Asked:
        random, dish = self._random, dish or self._dish()
        params: dict[str, Any] = {"url": dish.url}
        kinds = set(dish.kinds)
        must_fail = False
        chance = 0.7 if dish.is_personal else 0.1
        headers = {
            **(random.choice(USERS) if random.random() < chance and not dish.user_info else {}),
            **(random.choice(LANGUAGES) if random.random() < chance / 2 else {}),
        }
        if headers:
            params["headers"] = headers
        if random.random() < 0.6:
            params["priority"] = random.choice(PRIORITIES)
        if random.random() < 0.4:
            params["group"] = random.choice(GROUPS)
        if in_slot and random.random() < 0.15:
            params["slot"] = random.choice(SLOTS)
        if random.random() < 0.3:
            params["cache"] = random.choice(MODES)
            if params["cache"] == "only-if-cached":
                kinds.add("notCached")
        if random.random() < 0.15:
            params["store"] = random.choice(["memory", "disk", "none"])
        if random.random() < 0.5:
            params["deliver"] = random.choice(["data", "none"])
        if random.random() < 0.6:
            params["events"] = random.sample(EVENTS, random.randint(0, len(EVENTS)))
        if random.random() < 0.05:
            params["deadlineMs"] = random.randint(1, 500)
        if random.random() < 0.3:
            params["retries"] = random.randint(0, 3)
        if random.random() < 0.1:
            params["retryFailed"] = True
        if random.random() < 0.1:
            params["response"] = True
        if random.random() < 0.02:
            params["maxBytes"] = 3000
            kinds |= {"tooLarge", "recentlyFailed"}
        if random.random() < 0.1:
            params["validate"] = "none"
        if dish.contents and not dish.is_scripted and random.random() < 0.05:
            [content] = dish.bodies(headers)
            params["digest"] = "sha256-" + hashlib.sha256(content).hexdigest()
            if random.random() < 0.4:
                params["digest"], must_fail = "sha256-" + "0" * 64, True
            kinds.add("digestMismatch")
        if not dish.is_prompt:
            # Not for as long as such an origin is left alone: then, after a while, nothing else would be waited for.
            params["deadlineMs"] = random.randint(300, 2500)
        if dish.is_silent:
            params["timeoutMs"] = random.randint(100, 800)
        asked = self.plain("load", **params)
        asked.dish, asked.kinds, asked.must_fail = dish, frozenset(kinds), must_fail
        if random.random() < 0.1:
            asked.save_to = self._folder / f"{self._count}"
            asked.params["saveTo"] = str(asked.save_to)
            self.saved.append(asked)
        assert asked.id is not None
        self._recent = [*self._recent[-100:], asked.id]
        return asked

    def notification(self) -> Asked:
        """Found again by its URL, which is nobody else's: what begins with `x-` means nothing to the origin."""
        while (dish := self._dish()).is_scripted:
            pass
        asked = self.load(dish=dish)
        del asked.message["id"]
        asked.params["url"] += ("&" if "?" in asked.params["url"] else "?") + f"x-notification={self._count}"
        return asked

    def prefetch(self) -> Asked:
        dishes = [dish for dish in (self._dish() for _ in range(self._random.randint(1, 60))) if dish.is_prompt]
        urls = [dish.url if self._random.random() < 0.8 else {"url": dish.url} for dish in dishes]
        params: dict[str, Any] = {"urls": urls}
        if self._random.random() < 0.6:
            params["priority"] = self._random.choice(PRIORITIES)
        if self._random.random() < 0.2:
            params["group"] = self._random.choice(GROUPS)
        if self._random.random() < 0.6:
            names = ["progress", "completed", "failed"]
            params["events"] = self._random.sample(names, self._random.randint(1, 3))
        asked = self.plain("prefetch", **params)
        asked.kinds = frozenset(kind for dish in dishes for kind in dish.kinds)
        assert asked.id is not None
        self._recent = [*self._recent[-100:], asked.id]
        return asked

    def _selection(self) -> dict[str, Any]:
        chance = self._random.random()
        if chance < 0.6 and self._recent:
            return {"id": self._random.choice(self._recent)}
        if chance < 0.75 and self._dishes:
            return {"url": self._random.choice(self._dishes[-20:]).url}
        if chance < 0.87:
            return {"slot": self._random.choice(SLOTS)}
        return {"group": self._random.choice(GROUPS)}

    def cancel(self) -> Asked:
        return self.plain("cancel", **({"all": True} if self._random.random() < 0.02 else self._selection()))

    def prioritize(self) -> Asked:
        return self.plain("prioritize", priority=self._random.choice(PRIORITIES), **self._selection())

    def query(self) -> Asked:
        return self.plain("query", url=self._dish().url)

    def store(self) -> Asked:
        """The very content that the origin has: whoever gets it gets the right one."""
        while not (dish := self._dish()).format or dish.is_scripted or dish.is_personal:
            pass
        [content] = dish.bodies({})
        asked = self.plain("store", url=dish.url, data=base64.b64encode(content).decode())
        asked.dish, asked.kinds = dish, frozenset(["diskFull"])
        return asked

    def clear(self) -> Asked:
        params: dict[str, Any] = {}
        if self._random.random() < 0.5:
            params["tier"] = self._random.choice(["memory", "disk", "all"])
        if self._random.random() < 0.8 and self._dishes:
            url = self._random.choice(self._dishes).url
            filters: list[dict[str, Any]] = [{"url": url}, {"host": "127.0.0.1"}, {"prefix": url[:30]}]
            filters += [{"olderThanSeconds": 1}, {"expired": True}, {"failures": True}]
            params.update(self._random.choice(filters))
        return self.plain("clear", **params)

    def stats(self) -> Asked:
        return self.plain("stats")

    def configure(self) -> Asked:
        options = {
            "maxConcurrent": self._random.randint(2, MOST_CONCURRENT),
            "maxPerHost": self._random.randint(1, MOST_PER_HOST),
            "order": self._random.choice(["fifo", "lifo"]),
            "memoryLimit": self._random.choice([0, 100_000, 2_000_000]),
            "diskLimit": self._random.choice([1_000_000, 5_000_000, 50_000_000]),
            "failedTtlMs": self._random.choice([0, 50, 60_000]),
            "verify": self._random.choice(["random", "always", "never"]),
        }
        return self.plain("configure", **dict(self._random.sample(sorted(options.items()), 2)))
