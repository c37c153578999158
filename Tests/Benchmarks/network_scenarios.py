"""The scenarios of `network`: lists of URLs, and how the hosts behave that they name."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Internet"))

from habits import CLOSED_PORT, Habit, host  # noqa: E402

SIZE = 10_000
STOP = 300.0


@dataclass(frozen=True)
class Scenario:
    name: str
    urls: List[str] = field(repr=False)
    habits: Sequence[Habit]
    deliverable: int
    """How many of the URLs are of images that a patient client gets."""
    curl: int
    """The best --parallel-max of those that were tried. curl takes at most 300."""
    aria2: Optional[int]
    """The best --max-concurrent-downloads of those that were tried."""
    fixed: Sequence[Tuple[int, int]]
    """Pairs of --max-concurrent and --max-per-host for a sweep."""
    worker: Sequence[str] = ()
    """Options of the worker besides the defaults."""
    img2dataset: bool = False
    bulk: bool = False
    """The worker takes part through examples/bulk/bulk.py, beside img2dataset alone."""
    timeout: int = 15
    """Seconds without a byte after which a client gives up an attempt: what the worker has by default."""
    names_at_once: Optional[int] = None
    http2: Optional[str] = None
    judged: str = "whole"
    """The time that is compared: `whole`, from spawn to exit, or `last`, until the last image that anybody can get."""
    stop: float = STOP
    """Seconds after which a client is stopped."""
    repeats: int = 1
    """Runs in each turn, for what is short."""


def of_one_host(kind: str, count: int, scheme: str = "http") -> List[str]:
    return [f"{scheme}://{host(kind, 0)}/{number}.png" for number in range(count)]


def of_many_hosts(kind: str, count: int, hosts: int) -> List[str]:
    """The hosts are drawn at random, but each occurs."""
    chance = random.Random(1)
    drawn = [*range(hosts), *(chance.randrange(hosts) for _ in range(count - hosts))]
    chance.shuffle(drawn)
    return [f"http://{host(kind, drawn[number])}/{number}.png" for number in range(count)]


def wide() -> Scenario:
    urls = of_many_hosts("good", 8000, 2000)
    fixed = [(32, 6), (128, 6), (512, 6), (1024, 6)]
    return Scenario("wide", urls, [Habit("good")], 8000, curl=300, aria2=512, fixed=fixed, img2dataset=True)


def strong() -> Scenario:
    habits = [Habit("strong", median=0.1, sigma=0.3, at_once=64)]
    fixed = [(32, 6), (32, 32), (64, 64), (128, 128)]
    return Scenario("strong", of_one_host("strong", 3000), habits, 3000, curl=64, aria2=64, fixed=fixed)


def weak() -> Scenario:
    habits = [Habit("weak", median=0.075, sigma=0.3, at_once=3)]
    return Scenario("weak", of_one_host("weak", 300), habits, 300, curl=3, aria2=3, fixed=[(32, 3), (32, 6), (64, 64)])


def limited() -> Scenario:
    habits = [Habit("limited", median=0.075, sigma=0.3, limit=8)]
    fixed = [(32, 6), (32, 8), (32, 16)]
    return Scenario("limited", of_one_host("limited", 800), habits, 800, curl=8, aria2=8, fixed=fixed)


def silent() -> Scenario:
    """A host of 300 loads accepts connections and never answers."""
    good = of_many_hosts("good", 2000, 500)
    urls = good + of_one_host("silent", 300)
    random.Random(2).shuffle(urls)
    habits = [Habit("good"), Habit("silent", does="ignore")]
    fixed = [(32, 6), (256, 6)]
    return Scenario(
        "silent", urls, habits, 2000, curl=300, aria2=256, fixed=fixed, worker=["--timeout", "3s"], timeout=3, stop=240
    )


def names() -> Scenario:
    urls = of_many_hosts("good", 12_000, 5000)
    fixed = [(128, 6), (512, 6), (1024, 6)]
    return Scenario(
        "names", urls, [Habit("good")], 12_000, curl=300, aria2=256, fixed=fixed,
        worker=["--max-concurrent", "512"], names_at_once=100,
    )  # fmt: skip


BAD_HOSTS = [
    (Habit("good"), 3000),
    (Habit("weak", at_once=2), 100),
    (Habit("limited", limit=4), 50),
    (Habit("missing", status=404), 50),
    (Habit("unavailable", status=503), 20),
    (Habit("closed"), 80),
    (Habit("reset", does="reset"), 80),
    (Habit("silent", does="ignore"), 40),
    (Habit("gone"), 80),
]
"""The kinds, and how many hosts of each there are. The URLs of `closed` have a port that nobody listens on. The names
of `gone` do not exist."""
DELIVERING = ("good", "weak", "limited")


def bad() -> Scenario:
    chance = random.Random(3)
    hosts = [(habit.kind, number) for habit, count in BAD_HOSTS for number in range(count)]
    drawn = [*hosts, *(chance.choice(hosts) for _ in range(20_000 - len(hosts)))]
    chance.shuffle(drawn)
    ports = {"closed": f":{CLOSED_PORT}"}
    urls = [f"http://{host(kind, of)}{ports.get(kind, '')}/{number}.png" for number, (kind, of) in enumerate(drawn)]
    return Scenario(
        "bad", urls, [habit for habit, _ in BAD_HOSTS if habit.kind != "gone"],
        deliverable=sum(kind in DELIVERING for kind, _ in drawn), curl=300, aria2=512, fixed=[(128, 6), (512, 6)],
        img2dataset=True, judged="last",
    )  # fmt: skip


def bulk() -> Scenario:
    return replace(bad(), name="bulk", bulk=True, judged="whole", fixed=[(512, 6)])


def polite() -> Scenario:
    """Hosts whose robots.txt disallows a folder or has a `Crawl-delay`, and hosts that refuse by a header field."""
    urls = of_many_hosts("good", 2000, 400) + of_many_hosts("slow", 200, 20)
    urls += [url.replace(".test/", ".test/private/") for url in of_many_hosts("private", 500, 100)]
    urls += of_many_hosts("tagged", 200, 50)
    random.Random(4).shuffle(urls)
    habits = [
        Habit("good"), Habit("slow", crawl_delay=0.5), Habit("private", disallow="/private/"),
        Habit("tagged", robots_tag="noai", size=1_000_000),
    ]  # fmt: skip
    return Scenario(
        "polite", urls, habits, 2200, curl=300, aria2=None, fixed=[], worker=["--robots=obey"], img2dataset=True, bulk=True
    )


def h2() -> Scenario:
    """One host over HTTP/2, 100 streams a connection. curl with 50 at once is curl as it is."""
    habits = [Habit("h2", median=0.05, sigma=0)]
    urls = of_one_host("h2", 2000, scheme="https")
    fixed = [(32, 6), (32, 32), (128, 128)]
    return Scenario(
        "h2", urls, habits, 2000, curl=100, aria2=None, fixed=fixed, worker=["--insecure"], http2="h2"
    )  # fmt: skip


def short(count: int) -> Callable[[], Scenario]:
    def scenario() -> Scenario:
        urls = of_one_host("good", count)
        fixed = [(32, 6)]
        return Scenario(f"short-{count}", urls, [Habit("good")], count, curl=6, aria2=6, fixed=fixed, repeats=3)

    return scenario


SCENARIOS: Dict[str, Callable[[], Scenario]] = {
    "wide": wide,
    "strong": strong,
    "weak": weak,
    "limited": limited,
    "silent": silent,
    "names": names,
    "bad": bad,
    "bulk": bulk,
    "polite": polite,
    "h2": h2,
    "short-1": short(1),
    "short-10": short(10),
    "short-100": short(100),
}
