"""The worker in a small internet (Tests/Internet): hosts are spared, and urgent loads overtake the others.

Skipped where there can be no network namespaces.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any, Callable, Optional, Sequence

from chaos_session import default_worker
from package import ROOT

sys.path.insert(0, str(ROOT / "Tests" / "Internet"))

from habits import Habit, host  # noqa: E402
from internet_process import Internet, Unavailable  # noqa: E402

HANG = 60.0
"""Seconds after which a worker that owes answers is taken for stuck."""

Message = dict[str, Any]


class Worker:
    """A worker in a small internet. Its messages are kept in the order in which they came, each with its time."""

    def __init__(self, internet: Internet, folder: str, *options: str) -> None:
        command = [*internet.prefix, default_worker(), "--cache-dir", f"{folder}/cache", "--eof", "cancel", *options]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._begun = time.monotonic()
        self._messages: list[tuple[float, Message]] = []
        self._changed = threading.Condition()
        self._has_ended = False
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def send(self, *requests: Message) -> None:
        assert self._process.stdin
        self._process.stdin.write("".join(json.dumps(request) + "\n" for request in requests))
        self._process.stdin.flush()

    def load(self, urls: Sequence[str], first: int = 0, **params: Any) -> None:
        """Each load has the id `first` plus its place in `urls`."""
        numbered = enumerate(urls, first)
        self.send(*({"id": number, "method": "load", "params": {"url": url, **params}} for number, url in numbered))

    def messages(self, enough: Callable[[list[Message]], bool]) -> list[Message]:
        """All messages so far, as soon as there are enough, or when the worker seems to be stuck."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended or enough([message for _, message in self._messages]), HANG)
            return [message for _, message in self._messages]

    def answers(self, count: int) -> list[Message]:
        return [m for m in self.messages(lambda all: sum("id" in m for m in all) >= count) if "id" in m]

    def end(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            with self._changed:
                self._messages.append((time.monotonic() - self._begun, json.loads(line)))
                self._changed.notify_all()
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()


class Flow(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def internet(self, *habits: Habit, names_at_once: Optional[int] = None, http2: Optional[str] = None) -> Internet:
        try:
            internet = Internet(Path(self.folder), habits, names_at_once=names_at_once, http2=http2)
        except Unavailable as reason:
            self.skipTest(str(reason))
        self.addCleanup(internet.end)
        return internet

    def worker(self, internet: Internet, *options: str) -> Worker:
        worker = Worker(internet, self.folder, *options)
        self.addCleanup(worker.end)
        return worker

    def all_delivered(self, worker: Worker, count: int) -> None:
        answers = worker.answers(count)
        self.assertEqual(len(answers), count)
        self.assertEqual([answer for answer in answers if "error" in answer], [])

    def test_few_answers_are_refused_behind_a_limiter(self) -> None:
        internet = self.internet(Habit("limited", median=0.05, sigma=0.3, limit=8))
        worker = self.worker(internet)
        worker.load([f"http://{host('limited', 0)}/{number}.png" for number in range(600)])
        self.all_delivered(worker, 600)
        self.assertLessEqual(internet.end()["web"]["refused"], 0.02 * 600)

    def test_the_window_of_a_weak_host_stays_small(self) -> None:
        internet = self.internet(Habit("weak", median=0.05, sigma=0.3, at_once=3))
        worker = self.worker(internet)
        worker.load([f"http://{host('weak', 0)}/{number}.png" for number in range(300)])
        self.all_delivered(worker, 300)
        # It finds the limit by going beyond it. Without a window, all 300 would be under way at once.
        self.assertLessEqual(internet.end()["web"]["mostAtOnce"], 24)

    def test_names_are_found_behind_a_name_server_that_drops(self) -> None:
        internet = self.internet(Habit("good", median=0.01, size=1000), names_at_once=100)
        worker = self.worker(internet, "--max-concurrent", "1000", "--retries", "0")
        worker.load([f"http://{host('good', number)}/1.png" for number in range(4000)])
        answers = worker.answers(4000)
        self.assertGreaterEqual(sum("result" in answer for answer in answers), 0.999 * 4000)
        worker.send({"id": "stats", "method": "stats"})
        resolver = worker.answers(4001)[-1]["result"]["resolver"]
        self.assertEqual((resolver["kind"], resolver["lookups"], resolver["names"]), ("c-ares", 4000, 4000))
        self.assertEqual((resolver["waiting"], resolver["inFlight"]), (0, 0))
        names = internet.end()["names"]
        self.assertEqual(names["queries"], resolver["queries"])
        # One for each name, since there is no route for IPv6, and those that are repeated.
        self.assertLessEqual(names["queries"], 1.2 * 4000)

    def test_other_name_servers_are_asked_when_resolv_conf_has_changed(self) -> None:
        internet = self.internet(Habit("good", median=0.01, size=1000))
        configuration = Path(self.folder, "resolv.conf")
        right = configuration.read_text()
        # Nothing listens there.
        configuration.write_text("nameserver 127.0.0.99\n")
        worker = self.worker(internet, "--retries", "0")
        url = f"http://{host('good', 0)}/1.png"
        worker.load([url])
        error = worker.answers(1)[0]["error"]
        self.assertEqual((error["data"]["kind"], error["data"]["retryable"]), ("resolve", True))
        self.assertIn("no name server answered", error["message"])
        configuration.write_text(right)
        until = time.monotonic() + HANG
        count = 1
        # The worker looks at the file once a second.
        while "error" in worker.answers(count)[-1] and time.monotonic() < until:
            time.sleep(0.1)
            worker.load([url], first=count)
            count += 1
        self.assertIn("result", worker.answers(count)[-1])

    def test_the_system_finds_names_if_it_is_to(self) -> None:
        internet = self.internet(Habit("good", median=0.01, size=1000))
        worker = self.worker(internet, "--resolver", "system")
        worker.load([f"http://{host('good', number)}/1.png" for number in range(20)])
        self.all_delivered(worker, 20)
        worker.send({"id": "stats", "method": "stats"})
        self.assertEqual(worker.answers(21)[-1]["result"]["resolver"], {"kind": "system"})

    def test_a_result_tells_how_long_name_and_connection_took(self) -> None:
        internet = self.internet(Habit("good", median=0.01, size=1000))
        worker = self.worker(internet, "--max-concurrent", "1")
        worker.load([f"http://{host('good', 0)}/{number}.png" for number in range(2)])
        self.all_delivered(worker, 2)
        first, second = (answer["result"]["timing"] for answer in worker.answers(2))
        # The name server takes 30 ms.
        self.assertGreaterEqual(first["dnsMs"], 29)
        self.assertLessEqual(first["dnsMs"] + first["connectMs"], first["firstByteMs"] + 2)
        self.assertNotIn("tlsMs", first)
        self.assertFalse({"dnsMs", "connectMs", "tlsMs"} & set(second))

    def test_a_result_tells_how_long_the_handshake_took(self) -> None:
        internet = self.internet(Habit("h2", median=0.01, size=1000), http2="h2")
        worker = self.worker(internet, "--insecure")
        worker.load([f"https://{host('h2', 0)}/{number}.png" for number in range(50)])
        self.all_delivered(worker, 50)
        timings = [answer["result"]["timing"] for answer in worker.answers(50)]
        first = [timing for timing in timings if "tlsMs" in timing]
        # The others are streams of the same connection.
        self.assertTrue(1 <= len(first) < 50, timings)
        self.assertTrue(all(timing["tlsMs"] + timing["connectMs"] <= timing["firstByteMs"] + 2 for timing in first))

    def test_urgent_loads_overtake_all_that_wait(self) -> None:
        internet = self.internet(Habit("strong", median=0.1, sigma=0.3, at_once=64))
        worker = self.worker(internet)
        urls = [f"http://{host('strong', 0)}/{number}.png" for number in range(1000)]
        worker.load(urls[:900], events=["started"])
        worker.answers(50)
        worker.load(urls[900:], first=900, events=["started"], priority="highest")
        worker.send({"id": "stats", "method": "stats"})
        worker.answers(1001)
        messages = worker.messages(lambda _: True)
        begin = next(at for at, message in enumerate(messages) if message.get("id") == "stats")
        starts = [message["params"]["id"] for message in messages[begin:] if message.get("method") == "started"]
        urgent = sum(identifier >= 900 for identifier in starts)
        self.assertGreater(urgent, 20)
        self.assertTrue(all(identifier >= 900 for identifier in starts[:urgent]), starts[: urgent + 5])


if __name__ == "__main__":
    unittest.main()
