"""Checks that trace_check.py finds each kind of broken rule."""

from __future__ import annotations

import json
import unittest
from typing import Any

from trace_check import Event, problems, read

NAMES: list[Event] = [
    {"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "p"}},
    {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "t"}},
    {"name": "process_name", "ph": "M", "pid": 2, "tid": 0, "args": {"name": "q"}},
    {"name": "thread_name", "ph": "M", "pid": 2, "tid": 1, "args": {"name": "u"}},
]


def event(phase: str, time: float, **members: Any) -> Event:
    return {"name": "n", "cat": "c", "ph": phase, "pid": 1, "tid": 1, "ts": time, **members}


def span(start: float, duration: float, **members: Any) -> Event:
    return event("X", start, dur=duration, **members)


RIGHT: dict[str, list[Event]] = {
    "nested spans": [span(0, 10), span(0, 4), span(4, 6), span(5, 5), span(10, 1)],
    "a span within another that comes later": [span(4, 2), span(0, 10)],
    "pairs": [event("B", 0), event("B", 1), event("E", 2), event("E", 2)],
    "an async tree": [
        event("b", 0, id="1"), event("b", 0, id="1", name="a"), event("e", 4, id="1", name="a"), event("b", 4, id="1", name="b"),
        event("e", 5, id="1", name="b"), event("e", 5, id="1"),
    ],
    "async trees that overlap": [event("b", 0, id="1"), event("b", 1, id="2"), event("e", 2, id="1"), event("e", 3, id="2")],
    "equal local ids of two groups": [
        event("b", 0, id2={"local": "1"}), event("b", 1, id2={"local": "1"}, pid=2), event("e", 2, id2={"local": "1"}),
        event("e", 3, id2={"local": "1"}, pid=2),
    ],
    "a flow": [span(0, 2), span(3, 4), event("s", 1, id="1"), event("f", 5, id="1", bp="e")],
    "a flow to the next span": [span(0, 2), span(3, 4), event("s", 1, id="1"), event("f", 2.5, id="1")],
    "a counter": [event("C", time, args={"a": time}) for time in (1, 2, 2, 4)],
    "an instant": [event("i", 3, s="t"), event("i", 2, s="g"), event("i", 2, s="p")],
}  # fmt: skip

BROKEN: dict[str, list[Any]] = {
    "is not an object": [7],
    "is not a type of event": [event("Z", 0)],
    "misses ['dur']": [event("X", 0)],
    "misses ['ts']": [{key: value for key, value in span(0, 1).items() if key != "ts"}],
    "misses ['cat']": [{key: value for key, value in span(0, 1).items() if key != "cat"}],
    "misses ['pid']": [{key: value for key, value in span(0, 1).items() if key != "pid"}],
    "misses ['s']": [event("i", 0)],
    "misses ['id']": [event("b", 0)],
    "misses ['args']": [event("C", 0)],
    "must not have ['dur']": [event("i", 0, s="t", dur=1)],
    "name is not a text": [span(0, 1, name=3)],
    "id is not a text": [event("b", 0, id=3)],
    "id2 is not": [event("b", 0, id2={"global": "1"})],
    "must not have ['id']": [event("b", 0, id="1", id2={"local": "1"})],
    "tid is not an integer": [span(0, 1, tid="1")],
    "dur is not a time": [span(0, -1)],
    "ts is not a time": [span("0", 1)],  # type: ignore[arg-type]
    "args is not an object": [span(0, 1, args=[])],
    "s is not a scope": [event("i", 0, s="x")],
    "bp is not e": [event("f", 0, id="1", bp="s")],
    "cname is not": [span(0, 1, cname="pink")],
    "args of a counter": [event("C", 0, args={"a": "1"})],
    "this metadata is unknown": [{"name": "thread_nam", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "a"}}],
    "a span overlaps another": [span(0, 10), span(5, 10)],
    "the time of a B or E goes back": [event("B", 5), event("E", 4)],
    "an E has no B": [event("E", 4)],
    "a B has no E": [event("B", 4)],
    "an E has another name": [event("B", 4), event("E", 5, name="other")],
    "an e has no b of its name": [event("b", 0, id="1", name="a"), event("e", 1, id="1", name="b"), event("e", 1, id="1", name="a")],
    "a b has no e": [event("b", 0, id="1")],
    "two groups use the same id": [event("b", 0, id="1"), event("b", 1, id="1", pid=2), event("e", 2, id="1"), event("e", 2, id="1")],
    "a flow is not one s": [span(0, 9), event("s", 5, id="1"), event("f", 4, id="1", bp="e")],
    "two flows have the same id": [
        span(0, 9), event("s", 1, id="1"), event("f", 2, id="1", bp="e"), event("s", 1, id="1", name="m"),
        event("f", 2, id="1", name="m", bp="e"),
    ],
    "is bound to no span": [span(0, 2), span(3, 4), event("s", 2.5, id="1"), event("f", 5, id="1", bp="e")],
    "the series of a counter change": [event("C", 0, args={"a": 1}), event("C", 1, args={"b": 1})],
    "the time of a counter goes back": [event("C", time, args={"a": 1}) for time in (1, 3, 2)],
    "a group or row has no name": [span(0, 1, tid=2)],
}  # fmt: skip


class Rules(unittest.TestCase):
    def test_traces_that_obey(self) -> None:
        for name, events in RIGHT.items():
            with self.subTest(name):
                self.assertEqual(list(problems(read(json.dumps(NAMES + events)))), [])

    def test_traces_that_do_not(self) -> None:
        for name, events in BROKEN.items():
            with self.subTest(name):
                found = list(problems(read(json.dumps(NAMES + events))))
                self.assertTrue(any(name in problem for problem in found), found)

    def test_the_closing_bracket_may_be_missing(self) -> None:
        for text, is_closed in (('[{"a":1}]\n', True), ('[{"a":1},\n  ', False), ('[{"a":1}', False)):
            trace = read(text)
            self.assertEqual((trace.events, trace.is_closed), ([{"a": 1}], is_closed))

    def test_text_that_is_no_trace(self) -> None:
        for text in ('[{"a":1},{"b":', '{"a":1}', "[NaN]", '[{"a":1,"a":2}]', ""):
            with self.subTest(text), self.assertRaises(ValueError):
                read(text)


if __name__ == "__main__":
    unittest.main()
