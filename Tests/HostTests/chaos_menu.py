"""The URLs of the chaos test: every kind of misbehaviour, each with its permitted outcomes."""

from __future__ import annotations

import base64
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Mapping

from package import ROOT

sys.path.insert(0, str(ROOT / "Tests" / "Origin"))

from plan import plan  # noqa: E402

GATE = "held"
FORMATS = {"png": "png", "jpg": "jpeg", "gif": "gif", "webp": "webp", "bmp": "bmp", "tiff": "tiff"}
CREDENTIALS = ("authorization", "cookie")


@dataclass(frozen=True)
class Ports:
    """The ports of all servers."""

    origins: list[int]
    """Origins that answer, each in its way."""
    elsewhere: int
    """Only ever reached by a redirect from another origin."""
    dead: int
    """Refuses connections."""
    silent: int
    """Takes connections, and never answers."""


@dataclass(frozen=True)
class Dish:
    """A URL, the contents that it may stand for, and the kinds of errors that it may end in."""

    url: str
    kinds: frozenset[str]
    contents: tuple[str, ...] = ()
    """Targets of the origin that give the content, without what is done to it on its way."""
    format: str = ""
    """Empty for what is no image."""
    user_info: str = ""
    crosses: bool = False
    """Redirected to another origin, which must not see credentials."""
    is_prompt: bool = True
    """Its origin is not held back for a while, as are those that refuse or cannot be reached."""
    is_silent: bool = False
    """Nobody ever answers."""
    is_scripted: bool = False
    """Its content changes."""

    @property
    def is_personal(self) -> bool:
        """Its content depends on the request's header fields."""
        return any("&by=" in target for target in self.contents)

    def bodies(self, headers: Mapping[str, str]) -> set[bytes]:
        """The permitted outcomes of a load with these header fields."""
        fields = {name.lower(): value for name, value in headers.items()}
        if self.user_info:
            fields.setdefault("authorization", "Basic " + base64.b64encode(self.user_info.encode()).decode())
        if self.crosses:
            fields = {name: value for name, value in fields.items() if name not in CREDENTIALS}
        return {body(target, tuple(sorted(fields.items()))) for target in self.contents}


@lru_cache(maxsize=8192)
def body(target: str, fields: tuple[tuple[str, str], ...]) -> bytes:
    """The content that the origin would send if it behaved."""
    planned = plan(target, 1, dict(fields)).body
    assert planned is not None, target
    return planned.read(0, planned.length)


class Menu:
    """Makes dishes without end, none twice. The origin must get `scripts` before the first request."""

    def __init__(self, random: Random, ports: Ports) -> None:
        self._random = random
        self._ports = ports
        self._count = 0
        self.scripts: list[tuple[str, list[str]]] = []
        self._makers = {
            self._good: 24,
            self._held: 10,
            self._slow: 6,
            self._failing: 8,
            self._gone: 4,
            self._breaking: 14,
            self._revalidating: 10,
            self._personal: 8,
            self._negotiated: 3,
            self._redirected: 6,
            self._changing: 4,
            self._no_image: 3,
            self._unreachable: 3,
        }

    def dish(self) -> Dish:
        [make] = self._random.choices(list(self._makers), list(self._makers.values()))
        return make()

    # Content and manner.

    def _picture(self, most: int = 40_000) -> tuple[str, str]:
        """The path and query of a picture that is nobody else's, and its format."""
        self._count += 1
        extension = self._random.choice(list(FORMATS))
        size = 2 * self._random.randint(3_000, most // 2)
        return f"/image/{self._count}.{extension}?bytes={size}", FORMATS[extension]

    def _large(self, share: float = 0.15) -> tuple[str, str]:
        """Sometimes what is too large to stay in memory while it arrives."""
        return self._picture(1_200_000 if self._random.random() < share else 40_000)

    def _served(self, picture: tuple[str, str], manners: str, *kinds: str) -> Dish:
        target, kind = picture
        if "cache-control" not in manners and self._random.random() < 0.7:
            manners += "&cache-control=max-age=600"
        # Not where what is served differs by more than who asks: one name for two contents would be the origin's fault.
        if not any(name in manners for name in ("etag", "last-modified", "vary")) and self._random.random() < 0.6:
            manners += "&etag=a"
        refuses = any(name in manners for name in ("status=429", "status=503", "retry-after"))
        return self._somewhere(Dish(target + manners, frozenset(kinds), (target,), kind), refuses)

    def _somewhere(self, dish: Dish, refuses: bool = False) -> Dish:
        """Gives the dish an origin, where its URL is a target only.

        Refusals hold up a whole origin, so one gets them all, and less of everything else. That may end as they do:
        after many of them, one more counts as an attempt of all that wait there.
        """
        first, *others = self._ports.origins
        is_held_up = refuses or self._random.random() < 0.08
        port = first if is_held_up else self._random.choice(others)
        kinds = dish.kinds | {"http"} if is_held_up else dish.kinds
        return replace(dish, url=f"http://127.0.0.1:{port}{dish.url}", kinds=kinds, is_prompt=not is_held_up)

    def _good(self) -> Dish:
        manners = ["", "", "", "&chunked=999", "&encoding=gzip", "&close=after"]
        return self._served(self._large(), self._random.choice(manners))

    def _held(self) -> Dish:
        where = self._random.choice(["start", "mid-headers", "headers", "1", "5000", "end"])
        return self._served(self._large(), f"&hold={GATE}@{where}")

    def _slow(self) -> Dish:
        manner = self._random.choice([f"&delay={self._random.randint(1, 60)}", "&drip=3000", "&drip=3000&chunked"])
        return self._served(self._picture(), manner)

    def _failing(self) -> Dish:
        status = self._random.choice([429, 500, 502, 503, 503])
        manner = f"&status={status}" + self._random.choice(["", "&fail=1", "&fail=1", "&fail=2"])
        if self._random.random() < 0.15:
            manner += self._random.choice(["&retry-after=1", "&retry-after-date=%2B1"])
        return self._served(self._picture(), manner, "http")

    def _gone(self) -> Dish:
        status = self._random.choice([401, 403, 404, 410])
        return self._served(self._picture(), f"&status={status}", "http", "recentlyFailed")

    def _breaking(self) -> Dish:
        """Connections that end too early, of bodies that can be resumed or only seem so."""
        picture = self._large(0.4)
        half = int(picture[0].partition("bytes=")[2]) // 2
        where = self._random.choice(["start", "mid-headers", "headers", "1", f"{half}"])
        ways = [f"truncate={half}", f"truncate={half}&chunked", f"reset={where}", f"close={where}", "garbage"]
        validator = self._random.choice(["", "&etag=a", "&etag=a", "&etag=W/a", "&last-modified=-86400"])
        ranges = self._random.choice(["", "", "&ranges=off", "&ranges=shifted"])
        fail = self._random.choice(["", "&fail=1", "&fail=1", "&fail=2"])
        return self._served(picture, f"&{self._random.choice(ways)}{validator}{ranges}{fail}", "truncated", "network")

    def _revalidating(self) -> Dish:
        validator = self._random.choice(["&etag=a", "&etag=W/a", "&last-modified=-3600", ""])
        fresh = ["max-age=0", "no-cache", "max-age=1", "max-age=600", "max-age=0, stale-while-revalidate=60", "no-store"]
        control = self._random.choice(fresh).replace(",", "%2C").replace(" ", "%20")
        return self._served(self._large(), f"{validator}&cache-control={control}")

    def _personal(self) -> Dish:
        """Another picture for each user, who is told by a header field or in the URL."""
        target, kind = self._picture()
        target += "&by=authorization,cookie"
        manner = self._random.choice(["", f"&hold={GATE}", "&cache-control=max-age=0&etag=a"])
        dish = self._served((target, kind), manner)
        if self._random.random() < 0.3:
            url = dish.url.replace("//", "//ann:secret@")
            return replace(dish, url=url, user_info="ann:secret")
        return dish

    def _negotiated(self) -> Dish:
        target, kind = self._picture()
        return self._served((f"{target}&by=accept-language", kind), "&vary=accept-language")

    def _redirected(self) -> Dish:
        target, kind = self._picture()
        if self._random.random() < 0.2:
            return self._served((target, kind), "&circle", "redirects", "recentlyFailed")
        if self._random.random() < 0.5:
            return self._served((target, kind), f"&hops={self._random.randint(1, 4)}")
        target += "&by=authorization,cookie"
        there = f"http://127.0.0.1:{self._ports.elsewhere}{target}".replace("&", "%26")
        here = self._served((target, kind), f"&redirect={there}")
        return replace(here, crosses=True)

    def _changing(self) -> Dish:
        """Another picture with each request, cut short at times: what is served must be wholly one of them."""
        self._count += 1
        versions: list[str] = []
        answers: list[str] = []
        size = self._random.choice([50_000, 600_000])
        for number in range(self._random.randint(2, 4)):
            versions.append(f"/image/{self._count}0{number}.png?bytes={size}")
            validator = self._random.choice([f"&etag=v{number}", f"&etag=W/v{number}", ""])
            cut = self._random.choice(["", f"&truncate={size // 2}"])
            answers.append(f"{versions[-1]}{validator}{cut}&cache-control=max-age=0")
        answers.append(versions[-1])
        target = f"/changing/{self._count}"
        self.scripts.append((target, answers))
        kinds = frozenset(["truncated", "network"])
        return self._somewhere(Dish(target, kinds, tuple(versions), "png", is_scripted=True))

    def _no_image(self) -> Dish:
        self._count += 1
        target = self._random.choice(["/html", "/json", "/garbage"]) + f"?x-number={self._count}"
        return self._served((target, ""), "", "notAnImage", "recentlyFailed")

    def _unreachable(self) -> Dish:
        self._count += 1
        is_silent = self._random.random() < 0.5
        port, kind = (self._ports.silent, "timeout") if is_silent else (self._ports.dead, "connect")
        url = f"http://127.0.0.1:{port}/image/{self._count}.png"
        return Dish(url, frozenset([kind]), is_prompt=False, is_silent=is_silent)
