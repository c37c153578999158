"""The worker beside curl, aria2 and img2dataset in a small internet (Tests/Internet), scenario by scenario."""

from __future__ import annotations

import functools
import math
import shutil
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence

import network_clients as clients
from measuring import Report, Skipped, Workspace, interleaved, median
from network_clients import Client
from network_scenarios import SCENARIOS, Scenario

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Internet"))

from internet_process import Internet, Unavailable, namespace_options  # noqa: E402

WORKER = "worker"
BEFORE = "worker before"
CURLS = (50, 150, 300)
"""Values of --parallel-max for a sweep: that of curl as it is, and the most that it takes."""
ARIA2S = (64, 256, 1024)


NOISE = 1.05
"""By how much equal clients differ."""


@dataclass(frozen=True)
class Seen:
    """One run of a client: what it has at the end, and what the internet saw. Times are in seconds."""

    ninety: float
    """From spawn until 90 % of the images that anybody can get were served."""
    last: float
    """The same for all of them, or infinite if some never were."""
    whole: float
    """From spawn to exit."""
    delivered: float
    refused: float
    """Answers with status 429."""
    most: float
    """Requests that a host which answers had under way at the same time."""
    overload: float
    """The longest time that a host had more than twice the requests that it serves at once."""
    broken: float
    """Requests that break a rule or the rate of a robots.txt."""
    unusable: float
    """Bytes sent for images whose use the hosts do not allow."""
    queries: float
    """DNS queries for each name that was asked for, of type A and AAAA together."""
    processor: float
    """Microseconds of processor time for each URL."""


def run(
    report: Report,
    workspace: Workspace,
    worker: Path,
    python: str,
    turns: int,
    names: Sequence[str],
    sweep: bool,
    before: Optional[Path],
) -> None:
    try:
        namespace_options()
    except Unavailable as reason:
        raise Skipped(reason) from None
    for name in names:
        scenario = SCENARIOS[name]()
        print(f"network: {name} ...", file=sys.stderr, flush=True)
        inputs = workspace.fresh(f"{name}-inputs")
        (inputs / "urls.txt").write_text("".join(f"{url}\n" for url in scenario.urls))
        contestants = contestants_of(report, scenario, inputs, worker, python, sweep, before)
        runs: Dict[str, Callable[[Path], Seen]] = {
            name: functools.partial(seen, scenario, client) for name, client in contestants.items()
        }
        try:
            samples = interleaved(turns * scenario.repeats, runs, workspace)
        except Unavailable as reason:
            report.skip(f"network, {name}", reason)
            continue
        medians = {name: median_of(each) for name, each in samples.items()}
        print(table(scenario, medians), flush=True)
        tell(report, scenario, samples, medians)


def contestants_of(
    report: Report,
    scenario: Scenario,
    inputs: Path,
    worker: Path,
    python: str,
    sweep: bool,
    before: Optional[Path],
) -> Dict[str, Client]:
    def the_worker(path: Path, *options: str) -> Client:
        if scenario.bulk:
            return clients.bulk(path, inputs, *scenario.worker, *options)
        return clients.the_worker(path, scenario, inputs, *options)

    makers: Dict[str, Callable[[], Client]] = {WORKER: lambda: the_worker(worker)}
    if before is not None:
        earlier = before
        makers[BEFORE] = lambda: the_worker(earlier)
    if sweep:
        for total, each in scenario.fixed:
            options = [f"--max-concurrent={total}", f"--max-per-host={each}"]
            makers[f"worker, {total} and {each}"] = functools.partial(the_worker, worker, *options)
    if not scenario.bulk:
        for at_once in sorted({scenario.curl, *(CURLS if sweep else ())}):
            makers[f"curl -Z, {at_once}"] = functools.partial(clients.curl, scenario, inputs, at_once)
        if scenario.aria2 is not None:
            for at_once in sorted({scenario.aria2, *(ARIA2S if sweep else ())}):
                makers[f"aria2, {at_once}"] = functools.partial(clients.aria2, scenario, inputs, at_once)
    if scenario.img2dataset:
        makers["img2dataset"] = lambda: clients.img2dataset(scenario, inputs, python)
    made: Dict[str, Client] = {}
    for name, make in makers.items():
        try:
            made[name] = make()
        except Skipped as reason:
            report.skip(f"network {scenario.name}, {name}", reason)
    return made


def seen(scenario: Scenario, client: Client, folder: Path) -> Seen:
    """One run, in an internet of its own. Only what it left is removed, for there is not the room for all runs."""
    around = folder / "internet"
    around.mkdir()
    with Internet(around, scenario.habits, names_at_once=scenario.names_at_once, http2=scenario.http2) as internet:
        ended = clients.run(internet.prefix, client, folder, scenario.stop)
        saw = internet.end()
    delivered = client.delivered(folder)
    shutil.rmtree(folder)
    names, web = saw["names"], saw["web"]
    served: List[float] = [moment - ended.begun for moment in web["served"]]

    def until(count: int) -> float:
        return served[count - 1] if len(served) >= count else math.inf

    return Seen(
        ninety=until(math.ceil(0.9 * scenario.deliverable)),
        last=until(scenario.deliverable),
        whole=math.inf if ended.was_stopped else ended.whole,
        delivered=delivered,
        refused=web["refused"],
        most=web["mostAtOnce"],
        overload=web["longestOverload"],
        broken=web["disallowed"] + web["early"],
        unusable=web["unusableBytes"],
        queries=names["queries"] / max(1, names["names"]),
        processor=ended.processor_time / len(scenario.urls) * 1e6,
    )


def median_of(each: Sequence[Seen]) -> Seen:
    return Seen(**{field.name: median([getattr(one, field.name) for one in each]) for field in fields(Seen)})


COLUMNS = ("90 %", "last", "whole", "delivered", "429", "at once", "overload", "broken", "unusable", "queries", "us/load")


def table(scenario: Scenario, medians: Dict[str, Seen]) -> str:
    def cells(name: str, one: Seen) -> List[str]:
        times = [seconds(value) for value in (one.ninety, one.last, one.whole)]
        counts = [f"{value:,.0f}" for value in (one.delivered, one.refused, one.most)]
        robots = [f"{one.broken:,.0f}", f"{one.unusable / 1e6:,.1f} MB"]
        return [name, *times, *counts, f"{one.overload:.1f} s", *robots, f"{one.queries:.2f}", f"{one.processor:,.0f}"]

    rows = [[f"network: {scenario.name}", *COLUMNS], *(cells(name, one) for name, one in medians.items())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    note = f"{len(scenario.urls):,} loads, {scenario.deliverable:,} of them of images that can be had"
    return "\n".join(["", lines[0], "-" * len(lines[0]), *lines[1:], note])


def seconds(value: float) -> str:
    return f"{value:.2f} s" if math.isfinite(value) else "never"


def tell(report: Report, scenario: Scenario, samples: Dict[str, List[Seen]], medians: Dict[str, Seen]) -> None:
    """The worker's figures with their targets, and the times of all clients that are compared."""

    def time(one: Seen) -> float:
        return float(getattr(one, scenario.judged))

    title = f"network {scenario.name}"
    for name, each in samples.items():
        values = [time(one) for one in each]
        report.add(f"{title}: {name}, {scenario.judged}", median(values), "s", samples=values)
    if WORKER not in medians:
        return
    mine = medians[WORKER]
    delivered = 100 * mine.delivered / scenario.deliverable
    report.add(f"{title}: delivered of what can be had", delivered, "%", at_least=99.9)
    # A client that lacks images is not compared: it may have ended early.
    complete = {name: one for name, one in medians.items() if one.delivered >= 0.999 * scenario.deliverable}
    fixed = [time(one) for name, one in complete.items() if name.startswith(f"{WORKER}, ")]
    peers = [time(one) for name, one in complete.items() if not name.startswith(WORKER)]
    if fixed:
        best = min(fixed)
        report.add(f"{title}: worker / best fixed limits", time(mine) / best, "x", at_most=1.15 if best >= 10 else 1.25)
    if peers and math.isfinite(min(peers)):
        report.add(f"{title}: worker / fastest peer", time(mine) / min(peers), "x", at_most=NOISE)
    if BEFORE in medians and scenario.name.startswith("short"):
        report.add(f"{title}: worker / before", time(mine) / time(medians[BEFORE]), "x", at_most=NOISE)
    if scenario.name == "limited":
        report.add(f"{title}: refused", 100 * mine.refused / len(scenario.urls), "% of the loads", at_most=2)
    if scenario.name == "weak":
        report.add(f"{title}: longest time above twice what the host serves", mine.overload, "s", at_most=1)
    if scenario.name == "names":
        report.add(f"{title}: queries a name", mine.queries, "", at_most=2.1)
    if scenario.name == "wide":
        report.add(f"{title}: processor time a load", mine.processor, "us", at_most=450)
    if scenario.name == "silent":
        report.add(f"{title}: whole, in time-outs", mine.whole / scenario.timeout, "", at_most=4)
    if scenario.name == "polite":
        report.add(f"{title}: requests that break robots.txt", mine.broken, "", at_most=0)
        for name, one in medians.items():
            report.add(f"{title}: {name}, bytes sent for images that may not be used", one.unusable / 1e6, "MB")
    if scenario.name == "bulk":
        report.add(f"{title}: whole", mine.whole, "s", at_most=75)
