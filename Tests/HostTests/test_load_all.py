"""`load_all` of the Python client, waiting and with asyncio: each row has one outcome, whatever happens to the worker and the servers."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import signal
import sys
import tempfile
import threading
import unittest
import unittest.mock
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Callable, Iterable, Optional, Union

from bulk_runs import allow_robots
from origin_process import PATIENCE, Origin
from package import ROOT

sys.path.insert(0, str(ROOT / "examples" / "python"))

from imageworker import (  # noqa: E402
    BlockingImageWorker,
    DiskFull,
    HTTPStatusError,
    Image,
    ImageWorker,
    ImageWorkerError,
    InvalidParams,
    LoadTimeout,
    Overloaded,
    WorkerExited,
)

Outcomes = list[tuple[Any, Union[Image, ImageWorkerError]]]


def kinds(outcomes: Outcomes) -> dict[Any, str]:
    return {key: outcome.kind if isinstance(outcome, ImageWorkerError) else "loaded" for key, outcome in outcomes}


class Lists(unittest.TestCase):
    def setUp(self) -> None:
        exits = contextlib.ExitStack()
        self.addCleanup(exits.close)
        self.folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        self.origin = exits.enter_context(Origin())
        self.find_pid: Callable[[], Optional[int]] = lambda: None
        """The process of the last worker."""

    def url(self, target: str) -> str:
        return f"{self.origin.url}{target}"

    def load(self, is_async: bool, rows: Iterable[Any], settings: dict[str, Any], **params: Any) -> Outcomes:
        """The outcomes of a list in their order."""
        settings = {"cache_dir": self.folder / f"cache{is_async}", **settings}

        async def collect() -> Outcomes:
            outcomes: Outcomes = []
            async with ImageWorker(**settings) as worker:
                self.find_pid = lambda: worker.pid
                async for each in worker.load_all(rows, **params):
                    outcomes.append(each)
            return outcomes

        if is_async:
            return asyncio.run(collect())
        with BlockingImageWorker(**settings) as worker:
            self.find_pid = lambda: worker.pid
            return list(worker.load_all(rows, **params))

    def both(self, rows: Callable[[], Iterable[Any]], settings: dict[str, Any], **params: Any) -> Iterable[Outcomes]:
        """The outcomes by each class, from an origin that has forgotten the requests of the other."""
        for is_async in (False, True):
            with self.subTest(is_async=is_async):
                self.origin.command({"do": "reset"})
                yield self.load(is_async, rows(), settings, **params)

    def kill_worker(self) -> None:
        pid = self.find_pid()
        if pid:
            os.kill(pid, signal.SIGKILL)

    def test_three_kills_of_the_worker_lose_no_row_and_repeat_none(self) -> None:
        menu = ("/image/{}.png", "/image/{}.png", "/image/{}.png?status=404", "/html?x-n={}", "not a url {}")
        loads = ("loaded", "loaded", "http", "notAnImage", "invalidParams")
        rows = [(number, menu[number % 5].format(number)) for number in range(1000)]
        urls = [(number, self.url(target) if target.startswith("/") else target) for number, target in rows]

        def killing() -> Iterable[Any]:
            for number, row in enumerate(urls):
                if number in (200, 500, 800):
                    self.kill_worker()
                yield row

        for outcomes in self.both(killing, {}, deliver="data", store="none", at_once=150):
            self.assertEqual(collections.Counter(key for key, _ in outcomes), collections.Counter(range(1000)))
            self.assertEqual(kinds(outcomes), {number: loads[number % 5] for number in range(1000)})

    def test_a_deadline_begins_with_the_transfer(self) -> None:
        def rows() -> Iterable[Any]:
            return [(number, self.url(f"/image/{number}.png?delay=100")) for number in range(50)]

        settings = {"max_connections_per_host": 2}
        for outcomes in self.both(rows, {**settings, "deadline": 1}):  # The whole list takes 2.5 s.
            self.assertEqual(kinds(outcomes), dict.fromkeys(range(50), "loaded"))
        slow = [("slow", self.url("/image/1.png?hold=never")), ("fast", self.url("/image/2.png"))]
        for outcomes in self.both(lambda: slow, settings, deadline=0.5):
            self.assertEqual(kinds(outcomes), {"slow": "timeout", "fast": "loaded"})
            (error,) = (outcome for _, outcome in outcomes if isinstance(outcome, LoadTimeout))
            self.assertEqual((error.phase, error.may_pass), ("deadline", False))

    def test_a_load_whose_next_attempt_would_be_too_late_ends_and_names_the_time(self) -> None:
        for outcomes in self.both(lambda: [self.url("/image/1.png?status=503&retry-after=100")], {}, deadline=50, passes=1):
            ((_, error),) = outcomes
            assert isinstance(error, LoadTimeout) and error.retry_after is not None
            self.assertTrue(error.may_pass)
            self.assertGreater(error.retry_after, 50)

    def test_a_slow_host_has_few_loads_in_flight_and_keeps_no_other_waiting(self) -> None:
        waiting = [self.url(f"/image/{number}.png?hold=gate") for number in range(500)]
        with Origin() as other, BlockingImageWorker(cache_dir=self.folder / "cache", max_connections_per_host=2) as worker:
            others = [f"{other.url}/image/{number}.png" for number in range(300)]
            outcomes = worker.load_all([*waiting, *others])
            self.assertEqual({next(outcomes)[0] for _ in others}, set(others))
            self.assertLess(worker.stats().requests.received, len(others) + 100)
            self.origin.command({"do": "release", "gate": "gate"})
            self.assertEqual({url for url, _ in outcomes}, set(waiting))

    def test_the_work_for_a_row_does_not_grow_with_the_number_under_way(self) -> None:
        counts: collections.Counter[str] = collections.Counter()
        is_done = Future.done

        def done(future: Future[Any]) -> bool:
            counts["done"] += 1
            return is_done(future)

        urls = [self.url(f"/image/{n}.png?hold=gate") for n in range(300)]
        with unittest.mock.patch.object(Future, "done", done), BlockingImageWorker(cache_dir=self.folder, max_per_host=60) as worker:
            outcomes = worker.load_all(urls, deliver="none", store="none")
            self.origin.command({"do": "release", "gate": "gate", "count": 1})
            for ended, _ in enumerate(outcomes, 1):  # One at a time, so that each begins a piece of one row.
                if ended < len(urls):
                    self.origin.command({"do": "release", "gate": "gate", "count": 1})
        self.assertLess(counts["done"], 10 * len(urls))

    def test_what_may_pass_is_tried_again_at_the_end(self) -> None:
        rows = [self.url("/image/1.png?fail=1"), self.url("/image/2.png"), self.url("/image/3.png?truncate=20")]
        for passes, expected in ((1, ["http", "loaded", "truncated"]), (2, ["loaded", "loaded", "truncated"])):
            for outcomes in self.both(lambda: rows, {"retries": 0}, cache="no-store", passes=passes):
                found = kinds(outcomes)
                self.assertEqual([found[url] for url in rows], expected)

    def test_the_outcomes_are_counted_by_kind(self) -> None:
        rows = [self.url("/image/1.png"), self.url("/image/2.png"), self.url("/html"), "no URL", self.url("/image/3.png?fail=9&x-a")]
        for is_async in (False, True):
            counts: collections.Counter[str] = collections.Counter()
            self.load(is_async, rows, {"retries": 0}, counts=counts)
            self.assertEqual(counts, {"loaded": 2, "notAnImage": 1, "invalidParams": 1, "http": 1})

    def test_a_duplicate_of_a_failed_row_has_the_kind_of_the_first(self) -> None:
        http, page = self.url("/image/1.png?status=404"), self.url("/html")
        other = {"url": self.url("/html?x-other"), "key": "other"}
        rows = [(0, http), (1, http), (2, page), (3, page), (4, other), (5, other)]
        for outcomes in self.both(lambda: rows, {}, at_once=1):
            self.assertEqual(kinds(outcomes), {**dict.fromkeys((0, 1), "http"), **dict.fromkeys((2, 3, 4, 5), "notAnImage")})
            errors = [outcome for _, outcome in outcomes if isinstance(outcome, ImageWorkerError)]
            self.assertEqual([error.data.get("status") for error in errors], [404, 404, None, None, None, None])
            self.assertEqual({(error.may_pass, type(error).__name__) for error in errors}, {(False, "HTTPStatusError"), (False, "NotAnImage")})
            self.assertEqual(self.origin.command({"do": "counts"})["requests"], 3)

    def test_an_error_tells_whether_it_is_about_the_row_and_may_pass(self) -> None:
        def error(kind: type[ImageWorkerError], **data: Any) -> tuple[bool, bool]:
            made = kind("no", data)
            return made.is_about_row, made.may_pass

        for retryable in (True, False):
            self.assertEqual(error(HTTPStatusError, status=503, retryable=retryable), (True, retryable))
        self.assertEqual(error(LoadTimeout, retryable=False, retryAfterMs=1), (True, True))
        self.assertEqual(error(Overloaded, retryable=True, retryAfterMs=1000, timing={"totalMs": 1}), (False, True))
        self.assertEqual(error(Overloaded, retryable=True, retryAfterMs=100_000), (True, True))
        self.assertEqual(error(InvalidParams, member="url"), (True, False))
        self.assertEqual(error(InvalidParams, member="transform.width"), (False, False))
        self.assertEqual(error(DiskFull), (False, False))

    def test_a_dead_server_is_not_taken_for_one_that_refuses_robots(self) -> None:
        with Origin() as gone:
            pass
        allow_robots(self.origin)
        rows = [f"{gone.url}/image/1.png", "http://missing.invalid/1.png"]
        for outcomes in self.both(lambda: rows, {"robots": "obey", "retries": 0}):
            self.assertEqual([kinds(outcomes)[url] for url in rows], ["connect", "resolve"])

    def test_faults_of_the_run_are_raised(self) -> None:
        url = self.url("/image/1.png")
        file = self.folder / "file"
        file.touch()
        (self.folder / "dying").write_text("#!/bin/sh\nexit 1\n")
        (self.folder / "dying").chmod(0o755)
        cases: list[tuple[type[Exception], dict[str, Any], dict[str, Any]]] = [
            (WorkerExited, {"cache_dir": file}, {}),
            (WorkerExited, {"binary": self.folder / "dying"}, {}),
            (FileNotFoundError, {"binary": self.folder / "missing"}, {}),
            (InvalidParams, {}, {"transform": {"width": -1}}),
            (InvalidParams, {}, {"retries": 10_000}),
            (TypeError, {}, {"colour": "red"}),
            (ValueError, {}, {"deadline": -1}),
        ]
        for is_async in (False, True):
            for error, settings, params in cases:
                with self.subTest(is_async=is_async, settings=settings, params=params), self.assertRaises(error):
                    self.load(is_async, [url, url], settings, **params)

    def test_a_full_queue_is_waited_for(self) -> None:
        rows = [self.url(f"/image/{number}.png?delay=5") for number in range(60)]
        for outcomes in self.both(lambda: rows, {"max_queued": 3, "max_connections_per_host": 2}):
            self.assertEqual(kinds(outcomes), dict.fromkeys(rows, "loaded"))

    def test_a_worker_that_is_asked_to_end_is_replaced(self) -> None:
        rows = [self.url(f"/image/{number}.png?hold=gate") for number in range(20)]

        def end() -> None:
            with Origin():  # A moment for the loads to begin.
                pass
            self.origin.command({"do": "await", "gate": "gate", "held": 2})
            os.kill(self.find_pid() or 0, signal.SIGTERM)
            self.origin.command({"do": "release", "gate": "gate"})

        thread = threading.Thread(target=end)
        thread.start()
        outcomes = self.load(False, rows, {"max_connections_per_host": 2})
        thread.join(PATIENCE)
        self.assertEqual(kinds(outcomes), dict.fromkeys(rows, "loaded"))


if __name__ == "__main__":
    unittest.main()
