"""Random requests about a few pictures that change."""

from __future__ import annotations

import base64
import itertools
from pathlib import Path
from random import Random
from typing import Any

from kills_oracle import Asked
from kills_origin import LANGUAGES, POLICIES, ChangingOrigin, Picture, body_of, policy_of

MODES = ["default"] * 6 + "no-store reload no-cache force-cache only-if-cached refresh".split()
LIMITS = [4 << 20, 8 << 20, 12 << 20]
NAMES = [f"{policy}-{number}{'L' if number % 3 == 2 else 'S'}" for policy in POLICIES for number in range(9)]


class Requests:
    """Makes them without end, and changes the pictures meanwhile."""

    def __init__(self, random: Random, origin: ChangingOrigin, folder: Path) -> None:
        self._random = random
        self._origin = origin
        self._folder = folder
        self._numbers = itertools.count(1)
        self.limits: list[int] = []
        """The limits that `--disk-limit` and `configure` have set since the list was emptied."""
        for name in ("saved", "brought"):
            (folder / name).mkdir()

    def stats(self) -> Asked:
        return Asked(next(self._numbers), "stats", {})

    def query(self, name: str) -> Asked:
        return Asked(next(self._numbers), "query", {"url": self._origin.url(name)})

    def request(self) -> Asked:
        kinds = {self._load: 70, self._store: 6, self._clear: 6, self._prefetch: 6, self._other: 12}
        if self._random.random() < 0.2:
            self._origin.change(self._random.choice(NAMES))
        [make] = self._random.choices(list(kinds), list(kinds.values()))
        return make()

    def _name(self) -> str:
        """Some are asked for more often than others."""
        few = NAMES[: len(NAMES) // 3] if self._random.random() < 0.3 else NAMES
        return self._random.choice(few)

    def _load(self) -> Asked:
        name = self._name()
        number = next(self._numbers)
        params: dict[str, Any] = {"url": self._origin.url(name), "cache": self._random.choice(MODES)}
        params["store"] = self._random.choice(["all"] * 6 + ["memory", "disk", "none"])
        params["deliver"] = self._random.choice(["path", "data", "data", "none", "none"])
        language = "-"
        if policy_of(name) == "varied":
            language = self._random.choice(LANGUAGES)
            params["headers"] = {"x-language": language}
        if self._random.random() < 0.1:
            params["saveTo"] = str(self._folder / "saved" / f"{number}.png")
        if self._random.random() < 0.2:
            params["priority"] = self._random.choice(["lowest", "highest"])
        return Asked(number, "load", params, [name], language)

    def _store(self) -> Asked:
        name = self._random.choice([name for name in NAMES if policy_of(name) == "kept"])
        version = self._origin.change(name)
        content = body_of(Picture(name, version, "-"))
        number = next(self._numbers)
        params: dict[str, Any] = {"url": self._origin.url(name)}
        if self._random.random() < 0.5:
            path = self._folder / "brought" / f"{number}"
            path.write_bytes(content)
            params["path"] = str(path)
        else:
            params["data"] = base64.b64encode(content).decode()
        return Asked(number, "store", params, [name], version=version)

    def _clear(self) -> Asked:
        number = next(self._numbers)
        kinds = ["url", "key", "prefix", "old", "expired", "memory", "nothing"] * 5 + ["all", "host"]
        kind = self._random.choice(kinds)
        if kind == "nothing":
            return Asked(number, "clear", {"key": "nothing"})
        if kind == "all":
            return Asked(number, "clear", {}, NAMES)
        if kind == "host":
            return Asked(number, "clear", {"host": f"127.0.0.1:{self._origin.port}"}, NAMES)
        if kind == "old":
            return Asked(number, "clear", {"olderThanSeconds": self._random.choice([3, 10])})
        if kind == "expired":
            return Asked(number, "clear", {"expired": True})
        name = self._random.choice(NAMES)
        if kind == "prefix":
            prefix = self._origin.url(name)[: -len(".png") - 1]
            names = [name for name in NAMES if self._origin.url(name).startswith(prefix)]
            return Asked(number, "clear", {"prefix": prefix}, names)
        if kind == "memory":
            return Asked(number, "clear", {"tier": "memory", "url": self._origin.url(name)}, [name])
        return Asked(number, "clear", {kind: self._origin.url(name)}, [name])

    def _prefetch(self) -> Asked:
        names = sorted({self._name() for _ in range(self._random.randint(1, 8))})
        names = [name for name in names if policy_of(name) != "varied"]
        params = {"urls": [self._origin.url(name) for name in names]}
        return Asked(next(self._numbers), "prefetch", params, names)

    def _other(self) -> Asked:
        number = next(self._numbers)
        kind = self._random.choice(["query"] * 6 + ["prioritize", "prioritize", "cancel", "configure", "stats"])
        url = self._origin.url(self._random.choice(NAMES))
        if kind == "query":
            return Asked(number, "query", {"url": url})
        if kind == "prioritize":
            return Asked(number, "prioritize", {"url": url, "priority": "high"})
        if kind == "cancel":
            return Asked(number, "cancel", {"all": True})
        if kind == "configure":
            limit = self._random.choice(LIMITS)
            self.limits.append(limit)
            return Asked(number, "configure", {"diskLimit": limit})
        return Asked(number, "stats", {})
