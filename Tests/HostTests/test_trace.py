"""Traces of the built worker obey the rules of their format, agree with its answers, and survive a kill.

    IMAGEWORKER=PATH TRACE_LOADS=5000 python -m unittest test_trace
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from collections import Counter
from pathlib import Path
from typing import Any, Iterable

import trace_check
from chaos_session import default_worker
from origin_process import PATIENCE, Origin
from package import ROOT

LOADS = int(os.environ.get("TRACE_LOADS", "5000"))
MEGABYTE = 1 << 20
QUESTIONS = ROOT / "examples" / "operating" / "trace_questions.py"
PHASES = ["lookup", "wait", "dns", "connect", "tls", "request", "body", "store", "decodeWait", "decode", "deliver"]

Message = dict[str, Any]


class Worker(contextlib.AbstractContextManager["Worker"]):
    def __init__(self, folder: Path, *options: str) -> None:
        command = [default_worker(), "--cache-dir", f"{folder}/cache", "--eof", "cancel", *options]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._numbers = itertools.count()

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin and self.process.stdout
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.read()
        self.process.stdout.close()
        self.process.wait()

    def send(self, *requests: tuple[str, Message]) -> list[int]:
        assert self.process.stdin
        numbers = list(itertools.islice(self._numbers, len(requests)))
        for number, (method, params) in zip(numbers, requests):
            self.process.stdin.write(json.dumps({"id": number, "method": method, "params": params}) + "\n")
        self.process.stdin.flush()
        return numbers

    def load(self, *urls: str, **params: Any) -> list[int]:
        return self.send(*(("load", {"url": url, "deliver": "path", **params}) for url in urls))

    def answers(self, count: int) -> list[Message]:
        assert self.process.stdout
        lines = list(itertools.islice(self.process.stdout, count))
        assert len(lines) == count, "the worker has ended"
        return [json.loads(line) for line in lines]

    def call(self, method: str, **params: Any) -> Message:
        self.send((method, params))
        return self.answers(1)[0]


class Traces(unittest.TestCase):
    def setUp(self) -> None:
        self.exits = contextlib.ExitStack()
        self.addCleanup(self.exits.close)
        self.folder = Path(self.exits.enter_context(tempfile.TemporaryDirectory()))
        self.path = self.folder / "trace.json"
        self.origin = self.exits.enter_context(Origin())

    def url(self, picture: object, query: str = "", origin: str = "") -> str:
        return f"{origin or self.origin.url}/image/{picture}?{query}"

    def trace(self, is_closed: bool = True) -> trace_check.Trace:
        trace = trace_check.read(self.path.read_text())
        self.assertEqual(list(itertools.islice(trace_check.problems(trace), 5)), [])
        if is_closed:
            self.assertTrue(trace.is_closed)
        return trace

    def check_sums(self, trace: trace_check.Trace, timings: list[Message]) -> None:
        """The spans of each phase add up to the times in the answers."""
        for phase in PHASES:
            with self.subTest(phase):
                told = sum(timing.get(f"{phase}Ms", 0) for timing in timings) * 1000
                shown = sum(span["dur"] for span in trace.spans("phase") if span["name"] == phase)
                # Each answer is rounded to whole microseconds.
                self.assertLessEqual(abs(shown - told), max(0.01 * told, 2 * len(timings)))

    def test_thousands_of_cold_loads(self) -> None:
        with Worker(self.folder, "--trace", str(self.path), "--header=x-key: classified") as worker:
            secret = self.origin.url.replace("http://", "http://ann:classified@")
            worker.load(*(self.url(f"{n}.png", f"x-key=classified&_={n}", secret) for n in range(LOADS)))
            answers = worker.answers(LOADS)
        trace = self.trace()
        self.assertNotIn("classified", self.path.read_text())
        self.check_sums(trace, [answer["result"]["timing"] for answer in answers])
        loads = [span for span in trace.spans() if span["cat"] == "load" or span["name"] == "further loads"]
        self.assertEqual(len({span["args"]["load"] for span in loads}), LOADS)
        told = Counter(answer["result"]["cache"] for answer in answers)
        self.assertEqual(Counter(span["args"]["result"] for span in loads), told)
        self.assertEqual(sum(span["args"]["bytes"] for span in loads), sum(answer["result"]["bytes"] for answer in answers))
        self.assertEqual(set(names_of(trace.events, "process_name")[1:]), {self.origin.url, f"{self.origin.url}, waiting"})

    def test_everything_that_a_trace_shows(self) -> None:
        options = ["--trace", str(self.path), "--memory-limit=1M", "--max-per-host=4", "--decoders=2"]
        with Worker(self.folder, *options) as worker:
            shared = self.url("1.png", "hold=gate")
            worker.load(*[shared] * 3)
            self.origin.command({"do": "await", "gate": "gate", "held": 1})
            self.origin.command({"do": "release", "gate": "gate"})
            answers = worker.answers(3)
            worker.load(*(self.url(f"{n}.jpg", "bytes=9000") for n in range(9)), transform={"width": 8, "format": "jpeg"})
            answers += worker.answers(9)
            worker.load(*(self.url(f"{n}.png", "bytes=90000") for n in range(20)))
            answers += worker.answers(20)
            worker.load(self.url("2.png", "fail=1"))
            answers += worker.answers(1)
            worker.load(self.url("3.png", "status=404"), "http://127.0.0.1:1/none.png")
            failures = worker.answers(2)
            worker.load(*[self.url("4.png")] * 2)
            worker.load(self.url("5.png", "fail=1&status=503&retry-after=1"))
            answers += worker.answers(3)
        trace = self.trace()
        timings = [answer["result"]["timing"] for answer in answers] + [failure["error"]["data"]["timing"] for failure in failures]
        self.check_sums(trace, [timing for timing in timings if timing["totalMs"]])
        rows = names_of(trace.events, "thread_name")
        for row in ("loading thread", "disk thread", "load 1", "events", "waiting"):
            self.assertIn(row, rows)
        # One of the two may have done all the work before the other had started.
        self.assertTrue({"decoder 1", "decoder 2"} & set(rows))
        arrows = [event for event in trace.events if event["ph"] == "s"]
        self.assertGreaterEqual(len(arrows), 2)
        instants = Counter(event["name"] for event in trace.events if event["ph"] == "i")
        self.assertGreaterEqual(instants["retry"], 2)
        self.assertGreaterEqual(instants["suspended"], 1)
        self.assertGreaterEqual(instants["evicted from memory"], 1)
        self.assertEqual(Counter(event["name"] for event in trace.events if event["ph"] == "X")["encode"], 9)
        counters = {event["name"] for event in trace.events if event["ph"] == "C"}
        self.assertEqual(counters, {"queue", "transfers", "window", "received", "hits", "memory"})
        results = Counter(span["args"]["result"] for span in trace.spans("load"))
        self.assertEqual((results["http"], results["connect"]), (1, 1))

    def test_a_kill_leaves_a_whole_trace(self) -> None:
        for limit in ("1M", "256M"):
            for count in (1, 40, 150, 400):
                with self.subTest(limit=limit, count=count):
                    self.path.unlink(missing_ok=True)
                    with Worker(self.folder, "--trace", str(self.path), "--trace-limit", limit) as worker:
                        worker.load(*(self.url(f"{n}.png", f"_={limit}.{count}") for n in range(2 * count)))
                        worker.answers(count)
                        self.wait_for_spans()
                        worker.process.kill()
                        worker.process.wait()
                        trace = self.trace(is_closed=False)
                        self.assertTrue(list(trace.spans("load")))

    def wait_for_spans(self) -> None:
        """Until the first loads are in the file."""
        deadline = time.monotonic() + PATIENCE
        while '"load"' not in self.path.read_text():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def test_the_limit_ends_the_trace(self) -> None:
        count = 1200
        with Worker(self.folder, "--trace", str(self.path), "--trace-limit=1M") as worker:
            for first in range(0, count, 100):
                worker.load(*(self.url(f"{n}.png") for n in range(first, first + 100)))
                worker.answers(100)
                self.assertLessEqual(self.path.stat().st_size, MEGABYTE)
            stopped = worker.call("trace", action="stop")["result"]
        self.assertTrue(stopped["full"])
        trace = self.trace()
        names = [span["name"] for span in trace.spans("load")]
        self.assertIn("0.png", names)
        self.assertNotIn(f"{count - 1}.png", names)
        self.assertGreater(len(names), 200)
        self.assertTrue(trace.is_full)
        self.assertEqual(set(names_of(trace.events, "process_name")[1:]), {self.origin.url, f"{self.origin.url}, waiting"})

    def test_the_method(self) -> None:
        with Worker(self.folder) as worker:
            self.assertEqual(problem_of(worker.call("trace")), ("action", "action must be given: start or stop"))
            self.assertEqual(problem_of(worker.call("trace", action="stop")), ("action", "no trace is being recorded"))
            for path in ("trace.json", None):
                member, message = problem_of(worker.call("trace", action="start", **({"path": path} if path else {})))
                self.assertEqual(member, "path")
                self.assertIn("absolute path", message)
            self.assertEqual(problem_of(worker.call("trace", action="start", path="/t", limit=1))[0], "limit")
            self.assertEqual(problem_of(worker.call("trace", action="strat"))[0], "action")
            other = self.folder / "other.json"
            other.write_text("[1]")
            for path, reason in (("/none/t.json", "No such file"), (str(self.folder), "directory"), (str(other), "not a trace")):
                error = worker.call("trace", action="start", path=path)["error"]
                self.assertEqual(error["data"]["kind"], "io")
                self.assertIn(reason, error["message"])
            self.assertEqual(other.read_text(), "[1]")

            worker.load(self.url("0.png"))
            worker.answers(1)
            path = str(self.folder / "trace-%p.json")
            started = worker.call("trace", action="start", path=path, limit=2 * MEGABYTE)["result"]
            self.path = self.folder / f"trace-{worker.process.pid}.json"
            self.assertEqual(started, {"path": str(self.path), "limit": 2 * MEGABYTE})
            self.assertIn(str(self.path), problem_of(worker.call("trace", action="start", path=path))[1])
            with Worker(self.folder) as another:
                error = another.call("trace", action="start", path=str(self.path))["error"]
                self.assertIn("another process", error["message"])
            worker.load(self.url("1.png"))
            worker.answers(1)
            worker.load(self.url("2.png", "hold=gate"))
            self.origin.command({"do": "await", "gate": "gate", "held": 1})
            self.assertEqual(problem_of(worker.call("trace", action="stop", path=path))[0], "path")
            stopped = worker.call("trace", action="stop")["result"]
            trace = self.trace()
            self.assertEqual(stopped["bytes"], self.path.stat().st_size)
            self.assertEqual((stopped["path"], stopped["dropped"], stopped["full"]), (str(self.path), 0, False))
            self.assertGreaterEqual(len(trace.events), stopped["events"])
            loads = {span["name"]: span["args"]["result"] for span in trace.spans("load")}
            self.assertEqual(loads, {"1.png": "miss", "2.png": "unfinished"})
            # Nothing more is written; the same file can be used again.
            self.assertEqual(worker.call("trace", action="start", path=path)["result"]["path"], str(self.path))

    def test_a_file_that_cannot_be_written_at_the_start(self) -> None:
        command = [default_worker(), "--cache-dir", f"{self.folder}/cache", "--trace", "/none/t.json"]
        run = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode, 73)
        self.assertIn("the trace file /none/t.json cannot be used: No such file", run.stderr)

    def test_questions(self) -> None:
        slow = self.exits.enter_context(Origin())
        with Worker(self.folder, "--trace", str(self.path), "--max-per-host=10") as worker:
            fast = [self.url(f"{n}.png") for n in range(20)]
            late = [self.url(f"{n}.png", "hold=gate", slow.url) for n in range(10)]
            worker.load(*late)
            slow.command({"do": "await", "gate": "gate", "held": 10})
            worker.load(*fast)
            worker.answers(20)
            slow.command({"do": "release", "gate": "gate"})
            worker.answers(10)
        run = subprocess.run([sys.executable, str(QUESTIONS), str(self.path)], stdout=subprocess.PIPE, text=True, check=True)
        first, second = run.stdout.split("\n\n")
        origins = [line.split() for line in first.splitlines()[2:]]
        self.assertEqual([(row[0], row[1], row[2]) for row in origins], [(slow.url, "10", "0"), (self.origin.url, "20", "0")])
        self.assertIn(f"loads of {self.origin.url}, in the queue", second)
        self.assertIn("transfers of the same origin", second)
        bounded = subprocess.run(
            [sys.executable, str(QUESTIONS), str(self.path), "--rows=1"], stdout=subprocess.PIPE, text=True, check=True
        )
        self.assertEqual(len(bounded.stdout.splitlines()), 9)
        self.assertIn("and 1 more", bounded.stdout)


def problem_of(answer: Message) -> tuple[str, str]:
    error = answer["error"]
    assert error["data"]["kind"] == "invalidParams", error
    return error["data"]["member"], error["message"]


def names_of(events: Iterable[Message], kind: str) -> list[str]:
    """In the order of the groups and rows."""
    found = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == kind}
    return [name for _, name in sorted(found.items())]


if __name__ == "__main__":
    unittest.main()
