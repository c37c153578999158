"""Workers that are killed at random moments, again and again, on one cache directory.

    IMAGEWORKER=PATH CACHE_SEED=17 CACHE_KILLS=200 python -m unittest test_kills

No answer may have a wrong byte or be older than what was acknowledged before, the limit holds at every death, and
files and index agree. The seed is printed. It fixes what is sent; when the worker dies is the machine's choice as well.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import tempfile
import time
import unittest
from pathlib import Path
from random import Random, SystemRandom
from typing import Optional

from kills_inspection import Inspector
from kills_oracle import Book, Oracle
from kills_origin import ChangingOrigin
from kills_requests import LIMITS, NAMES, Requests
from kills_session import PATIENCE, Worker

SEED = int(os.environ.get("CACHE_SEED") or SystemRandom().randrange(1 << 32))
KILLS = int(os.environ.get("CACHE_KILLS", "200"))


class Kills(unittest.TestCase):
    def setUp(self) -> None:
        print(f"CACHE_SEED={SEED} CACHE_KILLS={KILLS}", flush=True)
        self.random = Random(SEED)
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        (self.folder / "scratch").mkdir()
        self.origin = ChangingOrigin(self.random.randrange(1 << 32))
        self.addCleanup(self.origin.close)
        self.book = Book(self.origin)
        self.cache = self.folder / "cache" / "default"
        self.inspector = Inspector(self.cache, self.book)
        self.requests = Requests(self.random, self.origin, self.folder)
        self.sessions = itertools.count(1)
        self.workers: list[Worker] = []
        self.addCleanup(self.kill_all)

    def kill_all(self) -> None:
        for worker in self.workers:
            worker.process.kill()

    def test_nothing_wrong_is_ever_delivered_or_kept(self) -> None:
        kills, missing = 0, 0
        while kills < KILLS:
            if self.random.random() < 0.02:
                shutil.rmtree(self.folder / "cache", ignore_errors=True)
                self.inspector.forget()
                self.book.delivered = {}
            self.workers = self.start(2 if self.random.random() < 0.15 else 1)
            self.nothing_torn_stays()
            self.what_query_names_is_there()
            while self.workers:
                self.play()
                worker = self.workers.pop(self.random.randrange(len(self.workers)))
                worker.kill()
                kills += 1
            found = self.inspector.inspect(max(self.requests.limits), time.monotonic())
            missing = max(missing, len(found.missing))
        self.an_end_in_order()
        print(f"{kills} kills, at most {missing} rows without a file; the origin: {self.origin.served}")
        print(", ".join(f"{name} {count}" for name, count in sorted(self.book.tally.items())), flush=True)
        if KILLS >= 200:
            hows = ["miss", "disk", "memory", "revalidated", "stale", "http", "truncated", "notCached", "cancelled"]
            names = [f"load: {how}" for how in hows] + ["store: disk", "clear: done", "prefetch: done"]
            self.assertEqual([name for name in names if not self.book.tally[name]], [])

    def start(self, count: int) -> list[Worker]:
        limit = self.random.choice(LIMITS)
        self.requests.limits = [limit]
        options = ["--cache-dir", str(self.folder / "cache"), "--disk-limit", f"{limit}", "--retries", "0"]
        options += ["--failed-ttl", "0", "--min-free", "0%", "--verify", self.random.choice(["always", "random"])]
        # A clear in one worker does not reach the memory of the other.
        options += ["--memory-limit", "0" if count > 1 else self.random.choice(["0", "200K", "2M"])]
        workers = []
        for _ in range(count):
            oracle = Oracle(self.book, next(self.sessions), is_alone=count == 1)
            workers.append(Worker(self.book, oracle, options, self.folder / "scratch"))
        return workers

    def play(self) -> None:
        """Some requests, to be interrupted anywhere."""
        steps = self.random.choice([0, 1, 3, 10, 20, 30, 60])
        window = self.random.choice([1, 5, 20, 40])
        for _ in range(steps):
            worker = self.random.choice(self.workers)
            others = [other for other in self.workers if other is not worker]
            worker.send(self.requests.request(), others)
            worker.wait(window)
        if self.random.random() < 0.3:
            for worker in self.workers:
                worker.wait()
        # Rows are written half a second after the first of them was gathered.
        time.sleep(self.random.choice([0, 0, 0, 0.01, 0.02, 0.05, 0.1, 0.6]) * self.random.uniform(0.5, 1))

    def nothing_torn_stays(self) -> None:
        """No temporary file is older than the start: those of the dead go, but for what may be gone on with."""
        if self.random.random() < 0.3:
            return
        [worker, *_] = self.workers
        worker.send(self.requests.stats(), [])
        worker.wait()
        before = {path.stem for path in self.cache.glob("workers/*.lock")}
        begun = time.monotonic()
        living = self.living(before)
        while torn := self.inspector.torn(living):
            self.assertLess(time.monotonic() - begun, PATIENCE, f"torn files stay: {torn}")
            time.sleep(0.002)

    def what_query_names_is_there(self) -> None:
        """Or it has just been evicted, and is not named again."""
        for name in NAMES:
            path = self.named(name)
            if path is not None and not os.path.exists(path):
                self.assertNotEqual(self.named(name), path, name)

    def named(self, name: str) -> Optional[str]:
        asked = self.requests.query(name)
        self.workers[0].send(asked, [])
        self.workers[0].wait()
        return asked.path

    def living(self, instances: set[str]) -> set[str]:
        """Those whose lock somebody holds."""
        found = set()
        for instance in instances:
            try:
                with (self.cache / "workers" / f"{instance}.lock").open() as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except FileNotFoundError:
                pass
            except BlockingIOError:
                found.add(instance)
        return found

    def an_end_in_order(self) -> None:
        """Nothing is unlisted, unswept or uncounted when a last worker has ended by itself."""
        self.workers = self.start(1)
        for _ in range(50):
            self.workers[0].send(self.requests.request(), [])
        worker = self.workers.pop()
        worker.close()
        found = self.inspector.inspect(max(self.requests.limits), time.monotonic())
        self.assertEqual([file for file in found.orphans if file.endswith(".tmp")], [])


if __name__ == "__main__":
    unittest.main()
