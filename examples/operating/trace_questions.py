#!/usr/bin/env python3
"""Answers two questions about a trace of the worker: which origin was slow, and what waited for what. See tracing.md.

    trace_questions.py TRACE [--rows 20]

Reads a trace of any size line by line. The output is two tables of at most so many rows each.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median
from typing import Any, Iterable, Iterator, NamedTuple, Sequence

Event = dict[str, Any]
Interval = tuple[int, int]
"""Start and end in microseconds."""

WORKER = 1
"""The group of the worker's own threads. Each origin has another."""
WAITING = ", waiting"
"""The end of the name of a group with the waits of an origin's loads."""
OF_ORIGIN = ("dns", "connect", "tls", "request", "body")
"""The phases that depend on the origin and the network."""
ENDED_WELL = ("miss", "file", "memory", "disk", "revalidated", "stale", "unfinished")
"""The values of `cache` in answers, and loads that were under way at the end of the trace."""
HELD = {"suspended": "Retry-After or refusals", "probing": "a probe after a failure", "down": "an origin that is down"}


def events(path: Path) -> Iterator[Event]:
    """The worker writes one or two events a line. The closing bracket is missing if it was killed at the wrong moment."""
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            text = line.strip().rstrip(",]")
            if number == 0:
                text = text.removeprefix("[")
            if text:
                yield from json.loads(f"[{text}]")


class Load(NamedTuple):
    origin: int
    total: int
    result: str
    attempts: int


class Recorded:
    """What the questions need of a trace."""

    def __init__(self, trace: Iterable[Event]) -> None:
        self.names: dict[int, str] = {}
        self.loads: dict[int, Load] = {}
        self.phases: dict[int, dict[str, list[Interval]]] = defaultdict(lambda: defaultdict(list))
        """By origin and name."""
        self.waits: list[tuple[int, int, Interval]] = []
        """The waits in the queue, with their origins and loads."""
        self.retried: dict[int, list[Interval]] = defaultdict(list)
        """The waits of loads with several attempts, by origin."""
        self.holds: dict[int, list[tuple[int, str]]] = defaultdict(list)
        self.decoders: dict[int, list[Interval]] = defaultdict(list)
        self.disk: Counter[str] = Counter()
        self.start, self.end = 1 << 62, 0
        self._begun: dict[tuple[int, str], list[Event]] = defaultdict(list)
        for event in trace:
            self._add(event)
        for group, number, interval in self.waits:
            is_retried = number in self.loads and self.loads[number].attempts > 1
            (self.retried[group] if is_retried else self.phases[group]["wait"]).append(interval)
        self._join_groups()

    def _join_groups(self) -> None:
        """Moves the waits of an origin's loads, which are in another group, to the group of the origin."""
        numbers = {name: group for group, name in self.names.items()}
        for group, name in list(self.names.items()):
            if name.endswith(WAITING):
                origin = numbers.setdefault(name.removesuffix(WAITING), group)
                self.names[origin] = name.removesuffix(WAITING)
                if origin != group:
                    for phase, intervals in self.phases.pop(group, {}).items():
                        self.phases[origin][phase] += intervals
                    self.retried[origin] += self.retried.pop(group, [])
                    for number, load in self.loads.items():
                        if load.origin == group:
                            self.loads[number] = load._replace(origin=origin)

    def _add(self, event: Event) -> None:
        phase, group = event["ph"], event["pid"]
        if phase == "M":
            if event["name"] == "process_name":
                self.names[group] = event["args"]["name"]
            return
        self.start = min(self.start, event["ts"])
        self.end = max(self.end, event["ts"] + event.get("dur", 0))
        if phase == "X":
            self._add_span(event, (event["ts"], event["ts"] + event["dur"]))
        elif phase == "b":
            self._begun[group, event["id2"]["local"]].append(event)
        elif phase == "e":
            begin = self._begun[group, event["id2"]["local"]].pop()
            self._add_span(begin, (begin["ts"], event["ts"]))
        elif phase == "i" and event["cat"] == "origin" and event["name"] != "retry":
            self.holds[group].append((event["ts"], event["name"]))

    def _add_span(self, event: Event, interval: Interval) -> None:
        name, category, group = event["name"], event["cat"], event["pid"]
        arguments = event.get("args", {})
        if "totalUs" in arguments:
            load = Load(group, arguments["totalUs"], arguments["result"], arguments.get("attempts", 1))
            self.loads[arguments["load"]] = load
        if category == "phase" and name != "further loads":
            if name == "wait":
                self.waits.append((group, arguments.get("load", -1), interval))
            else:
                self.phases[group][name].append(interval)
        elif category == "decoder":
            self.decoders[event["tid"]].append(interval)
        elif category == "disk" and name != "batch":
            self.disk[name] += interval[1] - interval[0]

    @property
    def duration(self) -> int:
        return max(1, self.end - self.start)


# Which origin was slow


def origins(trace: Recorded) -> Iterator[Sequence[str]]:
    """The origins, the one with the longest typical time from the request to the end of the body first."""
    yield "origin", "loads", "failed", "cancelled", "request ms", "body ms", "95 % request ms", "wait s", "total s"
    by_origin: dict[int, list[Load]] = defaultdict(list)
    for load in trace.loads.values():
        by_origin[load.origin].append(load)
    rows = []
    for group, loads in by_origin.items():
        phases = trace.phases[group]
        request, body = lengths(phases["request"]), lengths(phases["body"])
        waited = sum(lengths(phases["wait"])) + sum(lengths(trace.retried[group]))
        cancelled = sum(load.result == "cancelled" for load in loads)
        failed = sum(load.result not in ENDED_WELL for load in loads) - cancelled
        typical = typical_of(request) + typical_of(body)
        rows.append((typical, (
            trace.names.get(group, "?"), str(len(loads)), str(failed), str(cancelled), ms(typical_of(request)), ms(typical_of(body)),
            ms(request[len(request) * 95 // 100] if request else 0), seconds(waited),
            seconds(sum(load.total for load in loads)),
        )))  # fmt: skip
    for _, row in sorted(rows, key=lambda row: row[0], reverse=True):
        yield row


def lengths(intervals: Iterable[Interval]) -> list[int]:
    return sorted(end - start for start, end in intervals)


def typical_of(values: Sequence[int]) -> float:
    return median(values) if values else 0


def ms(microseconds: float) -> str:
    return f"{microseconds / 1000:.1f}"


def seconds(microseconds: float) -> str:
    return f"{microseconds / 1e6:.2f}"


# What waited for what


def waits(trace: Recorded) -> Iterator[Sequence[str]]:
    """The waits of all loads by their cause, the longest first."""
    yield "seconds", "waited", "for"
    spent: Counter[tuple[str, str]] = Counter()
    running = {group: [each for name in OF_ORIGIN for each in phases[name]] for group, phases in trace.phases.items()}
    everybody = [each for intervals in running.values() for each in intervals]
    for group, phases in trace.phases.items():
        name = trace.names.get(group, "?")
        for cause, time in causes_of_wait(phases["wait"], held(trace, group), running[group], everybody).items():
            spent[f"loads of {name}, in the queue", cause] += time
    for group, intervals in trace.retried.items():
        waited = f"loads of {trace.names.get(group, '?')}, in the queue"
        spent[waited, "failed attempts and the delays after them"] += sum(lengths(intervals))
    for phase in ("lookup", "store", "deliver"):
        spent[f"loads, {phase}", disk_thread(trace)] += sum(sum(lengths(each[phase])) for each in trace.phases.values())
    spent["loads, decodeWait", decoders(trace)] += sum(sum(lengths(each["decodeWait"])) for each in trace.phases.values())
    for (waited, cause), time in spent.most_common():
        if time >= 1000:
            yield seconds(time), waited, cause


def held(trace: Recorded, group: int) -> list[tuple[int, int, str]]:
    """When no transfer of the origin could start, and why."""
    found = []
    changes = sorted(trace.holds[group])
    for (start, state), (end, _) in zip(changes, [*changes[1:], (trace.end, "")]):
        if state in HELD:
            found.append((start, end, HELD[state]))
    return found


def causes_of_wait(
    waiting: list[Interval], holds: list[tuple[int, int, str]], own: list[Interval], everybody: list[Interval]
) -> dict[str, int]:
    """Divides the time of the waiting loads of an origin by what went on at each moment."""
    changes: list[tuple[int, int, int, str]] = []
    for kind, intervals in enumerate((waiting, own, everybody)):
        for start, end in intervals:
            changes += [(start, kind, 1, ""), (end, kind, -1, "")]
    for start, end, why in holds:
        changes += [(start, 3, 1, why), (end, 3, -1, "")]
    changes.sort()
    counts, spent, last, why = [0, 0, 0, 0], Counter[str](), 0, ""
    for time, kind, step, cause in changes:
        if counts[0]:
            if counts[3]:
                reason = f"the hold of their origin: {why}"
            elif counts[1]:
                reason = "transfers of the same origin"
            elif counts[2]:
                reason = "transfers of other origins"
            else:
                reason = "nothing in the trace: a pause, --rate, a name, or another worker"
            spent[reason] += counts[0] * (time - last)
        counts[kind] += step
        why, last = cause or why, time
    return spent


def disk_thread(trace: Recorded) -> str:
    busy = sum(trace.disk.values())
    most = ", ".join(f"{name} {time * 100 // max(1, busy)} %" for name, time in trace.disk.most_common(3))
    return f"the disk thread, busy for {busy * 100 // trace.duration} % of the time ({most or 'nothing'})"


def decoders(trace: Recorded) -> str:
    busy = sum(sum(lengths(intervals)) for intervals in trace.decoders.values())
    share = busy * 100 // (trace.duration * max(1, len(trace.decoders)))
    return f"the decoders: {len(trace.decoders)} processes, busy for {share} % of the time"


def table(title: str, rows: Iterator[Sequence[str]], most: int) -> Iterator[str]:
    head, all_rows = next(rows), list(rows)
    shown = [head, *all_rows[:most]]
    widths = [max(len(row[column]) for row in shown) for column in range(len(head))]
    yield title
    for row in shown:
        # Numbers on the right.
        cells = (cell.rjust(width) if cell[:1].isdigit() else cell.ljust(width) for cell, width in zip(row, widths))
        yield "  ".join(cells).rstrip()
    if len(all_rows) > most:
        yield f"and {len(all_rows) - most} more"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("--rows", type=int, default=20, help="most rows of a table")
    given = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        trace = Recorded(events(given.trace))
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"{given.trace} is not a trace of the worker: {error!r}")
    for line in table("Which origin was slow", origins(trace), given.rows):
        print(line)
    print()
    for line in table("What waited for what", waits(trace), given.rows):
        print(line)


if __name__ == "__main__":
    main()
