#!/usr/bin/env python3
"""Checks that a trace obeys the rules of the Trace Event Format, as Chromium's document gives them.

    Tests/HostTests/trace_check.py FILE

Prints the first broken rules with their events. The rules: an array whose closing bracket may be missing; the members
that each type of event must have; complete events (X) and pairs (B, E) that nest on their row; nestable async events
(b, e) in pairs that nest in their tree; flow events (s, t, f) in order, each bound to a span; counters (C) that are
numbers, always with the same series; metadata (M) of known names, one for each group and row in use.
"""

from __future__ import annotations

import bisect
import json
import math
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, Iterable, Iterator, NamedTuple, Optional

Event = dict[str, Any]
Row = tuple[int, int]
"""pid and tid"""

MEMBERS = {
    "B": {"cname"}, "E": set(), "X": {"dur", "cname"}, "i": {"s"}, "C": set(), "b": {"id", "id2", "cname"},
    "e": {"id", "id2", "cname"}, "n": {"id", "id2"}, "s": {"id"}, "t": {"id"}, "f": {"id", "bp"}, "M": set(),
}  # fmt: skip
"""The members of each type of event beside those that all have. Other types are not used here."""
METADATA = {
    "process_name": ("name", str), "process_labels": ("labels", str), "process_sort_index": ("sort_index", int),
    "thread_name": ("name", str), "thread_sort_index": ("sort_index", int),
}  # fmt: skip
COLORS = set(
    """thread_state_uninterruptible thread_state_iowait thread_state_running thread_state_runnable
    thread_state_sleeping thread_state_unknown generic_work good bad terrible black grey white yellow olive rail_response
    rail_animation rail_idle rail_load startup background_memory_dump light_memory_dump detailed_memory_dump""".split()
)
"""Of the reserved names in the colour scheme of the trace viewer."""
MOST = 20
"""The number of problems that are printed."""
FULL = "trace full"
"""The global instant at which the trace ended at its limit."""


class Trace(NamedTuple):
    events: list[Event]
    is_closed: bool
    """Whether the array has its closing bracket."""

    @property
    def is_full(self) -> bool:
        return any(event.get("ph") == "i" and event.get("name") == FULL for event in self.events)

    def spans(self, category: Optional[str] = None) -> Iterator[Event]:
        """All spans as complete events, those of async pairs too."""
        open_spans: dict[Any, list[Event]] = defaultdict(list)
        for event in self.events:
            if category is not None and event.get("cat") != category:
                continue
            if event["ph"] == "X":
                yield event
            elif event["ph"] == "b":
                open_spans[tree_of(event)].append(event)
            elif event["ph"] == "e":
                begin = open_spans[tree_of(event)].pop()
                yield {**begin, "ph": "X", "dur": event["ts"] - begin["ts"]}


def read(text: str) -> Trace:
    """Reads an array that may lack its closing bracket, as viewers do."""

    def constant(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError(f"a member occurs twice in {found}")
        return found

    text = text.strip()
    is_closed = text.endswith("]")
    if not is_closed:
        text = re.sub(r"\s*,\s*$", "", text) + "]"
    events = json.loads(text, parse_constant=constant, object_pairs_hook=members)
    if not isinstance(events, list):
        raise ValueError("the trace is not an array")
    return Trace(events, is_closed)


def problems(trace: Trace) -> Iterator[str]:
    """Each broken rule as a sentence. The rules for several events are only checked if each event is right by itself."""
    has_problem = False
    for event in trace.events:
        problem = problem_of(event)
        if problem is not None:
            has_problem = True
            yield f"{problem}: {json.dumps(event)}"
    if has_problem:
        return
    rows: dict[Row, list[Event]] = defaultdict(list)
    for event in trace.events:
        rows[event["pid"], event["tid"]].append(event)
    slices: dict[Row, Slices] = {}
    for row, events in rows.items():
        slices[row] = Slices()
        yield from slices[row].add(events)
    yield from problems_of_async(trace.events)
    yield from problems_of_flows(trace, slices)
    yield from problems_of_counters(trace.events)
    yield from problems_of_names(trace.events)


def problem_of(event: Any) -> Optional[str]:
    """The first rule that an event breaks by itself."""
    if not isinstance(event, dict):
        return "an event is not an object"
    phase = event.get("ph")
    if phase not in MEMBERS:
        return f"ph {phase!r} is not a type of event that is used"
    required = {"name", "ph", "pid", "tid"} | ({"args"} if phase in "CM" else set()) | (set() if phase == "M" else {"cat", "ts"})
    required |= MEMBERS[phase] & {"dur", "s", "id2" if "id2" in event else "id"}
    missing, unknown = required - event.keys(), event.keys() - required - (MEMBERS[phase] - {"id", "id2"}) - {"args"}
    if missing or unknown:
        return f"ph {phase} misses {sorted(missing)} and must not have {sorted(unknown)}"
    for name in ("name", "cat", "id", "s", "bp", "cname"):
        if name in event and not isinstance(event[name], str):
            return f"{name} is not a text"
    if "id2" in event and (event["id2"].keys() != {"local"} or not isinstance(event["id2"]["local"], str)):
        return "id2 is not an object with a local id"
    for name in ("pid", "tid"):
        if type(event[name]) is not int:
            return f"{name} is not an integer"
    for name in ("ts", "dur"):
        if name in event and not is_number(event[name], minimum=0):
            return f"{name} is not a time in microseconds"
    if not isinstance(event.get("args", {}), dict):
        return "args is not an object"
    if event.get("s", "t") not in ("g", "p", "t"):
        return "s is not a scope (g, p or t)"
    if event.get("bp", "e") != "e":
        return "bp is not e"
    if event.get("cname", "good") not in COLORS:
        return "cname is not a reserved name of a colour"
    if phase == "C" and (not event["args"] or not all(is_number(value) for value in event["args"].values())):
        return "args of a counter are not numbers"
    if phase == "M":
        name, kind = METADATA.get(event["name"], ("", object))
        if event["args"].keys() != {name} or type(event["args"][name]) is not kind:
            return "this metadata is unknown, or its args are wrong"
    return None


def tree_of(event: Event) -> tuple[str, str, Optional[int]]:
    """The tree of an async event: its category and id, which is its group's own if it is local."""
    return (event["cat"], event["id2"]["local"], event["pid"]) if "id2" in event else (event["cat"], event["id"], None)


def is_number(value: Any, minimum: float = -math.inf) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= minimum


class Slices:
    """The spans of one row, each of which is within another or apart from it."""

    def __init__(self) -> None:
        self._starts: list[float] = []
        self._tops: list[tuple[float, float]] = []

    def add(self, events: list[Event]) -> Iterator[str]:
        """Problems of the nesting."""
        spans = [(event["ts"], event["ts"] + event["dur"], event) for event in events if event["ph"] == "X"]
        open_events: list[Event] = []
        last = -math.inf
        for event in events:
            if event["ph"] not in "BE":
                continue
            # Those of one row must be in the order of their times.
            if event["ts"] < last:
                yield f"the time of a B or E goes back on its row: {json.dumps(event)}"
            last = event["ts"]
            if event["ph"] == "B":
                open_events.append(event)
            elif not open_events:
                yield f"an E has no B: {json.dumps(event)}"
            else:
                begin = open_events.pop()
                if begin["name"] != event["name"]:
                    yield f"an E has another name than its B, {begin['name']}: {json.dumps(event)}"
                spans.append((begin["ts"], event["ts"], begin))
        for event in open_events:
            yield f"a B has no E: {json.dumps(event)}"
        spans.sort(key=lambda span: (span[0], -span[1]))
        stack: list[float] = []
        for start, end, event in spans:
            while stack and stack[-1] <= start:
                stack.pop()
            if stack and end > stack[-1]:
                yield f"a span overlaps another of its row: {json.dumps(event)}"
            if not stack:
                self._starts.append(start)
                self._tops.append((start, end))
            stack.append(end)

    def has(self, time: float) -> bool:
        """Whether a span encloses the time."""
        index = bisect.bisect_right(self._starts, time)
        return any(start <= time <= end for start, end in self._tops[max(0, index - 2) : index])

    def has_after(self, time: float) -> bool:
        return bisect.bisect_left(self._starts, time) < len(self._starts)


def problems_of_async(events: Iterable[Event]) -> Iterator[str]:
    trees: dict[tuple[str, str, Optional[int]], list[Event]] = defaultdict(list)
    for event in events:
        if event["ph"] in "ben":
            trees[tree_of(event)].append(event)
    for tree in trees.values():
        stack: list[Event] = []
        # A stable sort, as in the viewer: events of the same time stay in the order of the file.
        for event in sorted(tree, key=lambda event: event["ts"]):
            if event["ph"] == "b":
                if stack and stack[0]["pid"] != event["pid"]:
                    yield f"two groups use the same id: {json.dumps(event)}"
                stack.append(event)
            elif event["ph"] == "e":
                if not stack or stack[-1]["name"] != event["name"]:
                    yield f"an e has no b of its name that it ends: {json.dumps(event)}"
                else:
                    stack.pop()
        for event in stack:
            yield f"a b has no e: {json.dumps(event)}"


def problems_of_flows(trace: Trace, slices: dict[Row, Slices]) -> Iterator[str]:
    flows: dict[tuple[str, str, str], list[Event]] = defaultdict(list)
    starts_of_ids: dict[str, Event] = {}
    for event in trace.events:
        if event["ph"] in "stf":
            flows[event["cat"], event["name"], event["id"]].append(event)
            if event["ph"] == "s" and starts_of_ids.setdefault(event["id"], event) is not event:
                yield f"two flows have the same id: {json.dumps(event)}"
    for flow in flows.values():
        flow.sort(key=lambda event: event["ts"])
        if "".join(event["ph"] for event in flow).replace("t", "") != "sf":
            yield f"a flow is not one s, any number of t, and one f: {json.dumps(flow)}"
        for event in flow:
            row = slices[event["pid"], event["tid"]]
            is_bound = row.has_after(event["ts"]) if event["ph"] == "f" and "bp" not in event else row.has(event["ts"])
            if not is_bound:
                yield f"a flow event is bound to no span: {json.dumps(event)}"


def problems_of_counters(events: Iterable[Event]) -> Iterator[str]:
    counters: dict[tuple[int, str], list[Event]] = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            counters[event["pid"], event["name"]].append(event)
    for samples in counters.values():
        for sample in samples:
            if sample["args"].keys() != samples[0]["args"].keys():
                yield f"the series of a counter change: {json.dumps(sample)}"
        if any(after["ts"] < before["ts"] for before, after in zip(samples, samples[1:])):
            yield f"the time of a counter goes back: {samples[0]['name']}"


def problems_of_names(events: list[Event]) -> Iterator[str]:
    named = {(event["pid"], None) for event in events if event["ph"] == "M" and event["name"] == "process_name"} | {
        (event["pid"], event["tid"]) for event in events if event["ph"] == "M" and event["name"] == "thread_name"
    }
    for event in events:
        if event["ph"] == "M":
            continue
        keys: list[tuple[int, Optional[int]]] = [(event["pid"], None)]
        if event["ph"] in "XBEbens" or event["ph"] == "i" and event["s"] == "t":
            keys.append((event["pid"], event["tid"]))
        for key in keys:
            if key not in named:
                named.add(key)
                yield f"a group or row has no name: {json.dumps(event)}"


def main() -> None:
    trace = read(Path(sys.argv[1]).read_text())
    count = 0
    for problem in problems(trace):
        count += 1
        if count <= MOST:
            print(problem[:500])
    print(f"{len(trace.events)} events, {count} problems" + ("" if trace.is_closed else ", no closing bracket"))
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
