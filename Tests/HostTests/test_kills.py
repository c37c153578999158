"""Workers that are killed at random moments, again and again, on one cache directory.

    IMAGEWORKER=PATH CACHE_SEED=17 CACHE_KILLS=200 python -m unittest test_kills

No answer may have a wrong byte or be older than what was acknowledged before, the limit holds at every death, and
files and index agree. The seed is printed. It fixes what is sent; when the worker dies is the machine's choice as well.
"""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path
from random import Random, SystemRandom
from typing import Any, Optional

from chaos_session import default_worker
from kills_inspection import Inspector
from kills_oracle import Asked, Book, Oracle, Violation
from kills_origin import LANGUAGES, POLICIES, ChangingOrigin, Picture, body_of, policy_of

SEED = int(os.environ.get("CACHE_SEED") or SystemRandom().randrange(1 << 32))
KILLS = int(os.environ.get("CACHE_KILLS", "200"))
PATIENCE = 60.0
"""Seconds after which what does not happen is taken for missing."""
MODES = ["default"] * 6 + "no-store reload no-cache force-cache only-if-cached refresh".split()
LIMITS = [4 << 20, 8 << 20, 12 << 20]
NAMES = [f"{policy}-{number}{'L' if number % 3 == 2 else 'S'}" for policy in POLICIES for number in range(9)]


class Worker:
    """One process, what it is asked and what it says."""

    def __init__(self, book: Book, oracle: Oracle, options: list[str], scratch: Path) -> None:
        self.book, self.oracle = book, oracle
        self.broken: Optional[BaseException] = None
        self._changed = threading.Condition(book.lock)
        self._log = tempfile.TemporaryFile()
        environment = {**os.environ, "TMPDIR": str(scratch)}
        pipe = subprocess.PIPE
        command = [default_worker(), *options]
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._log, env=environment)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                try:
                    if line.endswith(b"\n"):  # else it died within the line
                        self.oracle.hear(line)
                except BaseException as error:
                    self.broken = self.broken or error
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def send(self, asked: Asked, others: list[Worker]) -> None:
        assert self.process.stdin is not None
        with self.book.lock:
            self.oracle.expect(asked, [other.oracle for other in others])
        line = json.dumps({"id": asked.id, "method": asked.method, "params": asked.params}) + "\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()

    def wait(self, most: int = 0) -> None:
        """Until no more than so many requests are unanswered."""
        with self._changed:
            begun = time.monotonic()
            while self.broken is None and len(self.oracle.waiting) > most:
                if not self._changed.wait(1) and time.monotonic() - begun > PATIENCE:
                    raise Violation(f"stuck, with these unanswered: {list(self.oracle.waiting.values())[:9]}")
                if not self._reader.is_alive() and self.broken is None:
                    raise Violation(f"the worker ended by itself: {self.log()}")

    def kill(self) -> None:
        self.process.kill()
        self._end()
        self.oracle.die()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._end()
        if self.process.returncode != 0 or self.oracle.waiting:
            raise Violation(f"exit {self.process.returncode}, unanswered: {self.oracle.waiting}")

    def _end(self) -> None:
        self.process.wait(PATIENCE)
        self._reader.join()
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.stdout.close()
        log = self.log()
        self._log.close()
        if self.broken is not None:
            raise self.broken
        if log:
            raise Violation(f"it has complained: {log}")

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")


class Kills(unittest.TestCase):
    def setUp(self) -> None:
        print(f"CACHE_SEED={SEED} CACHE_KILLS={KILLS}", flush=True)
        self.random = Random(SEED)
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        for name in ("saved", "scratch", "brought"):
            (self.folder / name).mkdir()
        self.origin = ChangingOrigin(self.random.randrange(1 << 32))
        self.addCleanup(self.origin.close)
        self.book = Book(self.origin)
        self.cache = self.folder / "cache" / "default"
        self.inspector = Inspector(self.cache, self.book)
        self.limit = LIMITS[1]
        self.numbers = itertools.count(1)
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
            while self.workers:
                self.play()
                worker = self.workers.pop(self.random.randrange(len(self.workers)))
                worker.kill()
                kills += 1
            found = self.inspector.inspect(self.limit, time.monotonic())
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
        # Of the last worker's limit, too: nothing need have been done since.
        self.limit = limit
        options = ["--cache-dir", str(self.folder / "cache"), "--disk-limit", f"{limit}", "--retries", "0"]
        options += ["--failed-ttl", "0", "--min-free", "0%", "--verify", self.random.choice(["always", "random"])]
        # What one worker clears, the memory of the other is not told.
        options += ["--memory-limit", "0" if count > 1 else self.random.choice(["0", "200K", "2M"])]
        workers = []
        for _ in range(count):
            oracle = Oracle(self.book, next(self.numbers), is_alone=count == 1)
            oracle.limits = [limit]
            workers.append(Worker(self.book, oracle, options, self.folder / "scratch"))
        return workers

    def play(self) -> None:
        """Some requests, to be interrupted anywhere."""
        steps = self.random.choice([0, 1, 3, 10, 20, 30, 60])
        window = self.random.choice([1, 5, 20, 40])
        for _ in range(steps):
            worker = self.random.choice(self.workers)
            others = [other for other in self.workers if other is not worker]
            worker.send(self.request(), others)
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
        worker.send(Asked(next(self.numbers), "stats", {}), [])
        worker.wait()
        before = {path.stem for path in self.cache.glob("workers/*.lock")}
        begun = time.monotonic()
        living = self.living(before)
        while torn := self.inspector.torn(living):
            self.assertLess(time.monotonic() - begun, PATIENCE, f"torn files stay: {torn}")
            time.sleep(0.002)

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
            self.workers[0].send(self.request(), [])
        worker = self.workers.pop()
        worker.close()
        found = self.inspector.inspect(self.limit, time.monotonic())
        self.assertEqual([file for file in found.orphans if file.endswith(".tmp")], [])

    # What is asked.

    def request(self) -> Asked:
        kinds = {self.load: 70, self.store: 6, self.clear: 6, self.prefetch: 6, self.other: 12}
        if self.random.random() < 0.2:
            self.origin.change(self.random.choice(NAMES))
        [make] = self.random.choices(list(kinds), list(kinds.values()))
        return make()

    def name(self) -> str:
        """Some are asked for more often than others."""
        few = NAMES[: len(NAMES) // 3] if self.random.random() < 0.3 else NAMES
        return self.random.choice(few)

    def load(self) -> Asked:
        name = self.name()
        number = next(self.numbers)
        params: dict[str, Any] = {"url": self.origin.url(name), "cache": self.random.choice(MODES)}
        params["store"] = self.random.choice(["all"] * 6 + ["memory", "disk", "none"])
        params["deliver"] = self.random.choice(["path", "data", "data", "none", "none"])
        language = "-"
        if policy_of(name) == "varied":
            language = self.random.choice(LANGUAGES)
            params["headers"] = {"x-language": language}
        if self.random.random() < 0.1:
            params["saveTo"] = str(self.folder / "saved" / f"{number}.png")
        if self.random.random() < 0.2:
            params["priority"] = self.random.choice(["lowest", "highest"])
        return Asked(number, "load", params, [name], language)

    def store(self) -> Asked:
        name = self.random.choice([name for name in NAMES if policy_of(name) == "kept"])
        version = self.origin.change(name)
        content = body_of(Picture(name, version, "-"))
        number = next(self.numbers)
        params: dict[str, Any] = {"url": self.origin.url(name)}
        if self.random.random() < 0.5:
            path = self.folder / "brought" / f"{number}"
            path.write_bytes(content)
            params["path"] = str(path)
        else:
            params["data"] = base64.b64encode(content).decode()
        return Asked(number, "store", params, [name], version=version)

    def clear(self) -> Asked:
        number = next(self.numbers)
        kinds = ["url", "key", "prefix", "old", "expired", "memory", "nothing"] * 5 + ["all", "host"]
        kind = self.random.choice(kinds)
        if kind == "nothing":
            return Asked(number, "clear", {"key": "nothing"})
        if kind == "all":
            return Asked(number, "clear", {}, NAMES)
        if kind == "host":
            return Asked(number, "clear", {"host": f"127.0.0.1:{self.origin.port}"}, NAMES)
        if kind == "old":
            return Asked(number, "clear", {"olderThanSeconds": self.random.choice([3, 10])})
        if kind == "expired":
            return Asked(number, "clear", {"expired": True})
        name = self.random.choice(NAMES)
        if kind == "prefix":
            prefix = self.origin.url(name)[: -len(".png") - 1]
            return Asked(number, "clear", {"prefix": prefix}, [n for n in NAMES if self.origin.url(n).startswith(prefix)])
        if kind == "memory":
            return Asked(number, "clear", {"tier": "memory", "url": self.origin.url(name)}, [name])
        return Asked(number, "clear", {kind: self.origin.url(name)}, [name])

    def prefetch(self) -> Asked:
        names = sorted({self.name() for _ in range(self.random.randint(1, 8))})
        names = [name for name in names if policy_of(name) != "varied"]
        params = {"urls": [self.origin.url(name) for name in names]}
        return Asked(next(self.numbers), "prefetch", params, names)

    def other(self) -> Asked:
        number = next(self.numbers)
        kind = self.random.choice(["query"] * 6 + ["prioritize", "prioritize", "cancel", "configure", "stats"])
        url = self.origin.url(self.random.choice(NAMES))
        if kind == "query":
            return Asked(number, "query", {"url": url})
        if kind == "prioritize":
            return Asked(number, "prioritize", {"url": url, "priority": "high"})
        if kind == "cancel":
            return Asked(number, "cancel", {"all": True})
        if kind == "configure":
            limit = self.random.choice(LIMITS)
            self.limit = max(self.limit, limit)
            return Asked(number, "configure", {"diskLimit": limit})
        return Asked(number, "stats", {})


if __name__ == "__main__":
    unittest.main()
