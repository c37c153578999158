"""`imageworker cache` beside eight busy workers, which are killed at random moments, as are the commands.

    IMAGEWORKER=PATH CACHE_SEED=17 CACHE_ROUNDS=40 python -m unittest test_cache_commands_beside

The rules of test_kills.py apply to every answer of the workers and to the directory at the end. The seed is printed. It
fixes what is sent and which commands run; when something dies is the machine's choice as well.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from random import Random, SystemRandom

from cache_commands import command, run
from kills_inspection import Inspector
from kills_oracle import Asked, Book, Oracle
from kills_origin import ChangingOrigin
from kills_requests import NAMES, Requests
from kills_session import PATIENCE, Worker

SEED = int(os.environ.get("CACHE_SEED") or SystemRandom().randrange(1 << 32))
ROUNDS = int(os.environ.get("CACHE_ROUNDS", "12"))
WORKERS = 8


class BesideWorkers(unittest.TestCase):
    def setUp(self) -> None:
        print(f"CACHE_SEED={SEED} CACHE_ROUNDS={ROUNDS}", flush=True)
        self.random = Random(SEED)
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        (self.folder / "scratch").mkdir()
        self.cache = self.folder / "cache"
        self.origin = ChangingOrigin(self.random.randrange(1 << 32))
        self.addCleanup(self.origin.close)
        self.book = Book(self.origin)
        self.requests = Requests(self.random, self.origin, self.folder)
        self.sessions = itertools.count(1)
        self.numbers = itertools.count(1 << 40)
        self.workers: list[Worker] = []
        self.addCleanup(self.kill_all)
        self.killed = 0

    def kill_all(self) -> None:
        for worker in self.workers:
            worker.process.kill()

    def start(self) -> Worker:
        options = ["--cache-dir", str(self.cache), "--disk-limit", "8M", "--retries", "0", "--failed-ttl", "0"]
        options += ["--min-free", "0%", "--memory-limit", "0", "--verify", self.random.choice(["always", "random"])]
        oracle = Oracle(self.book, next(self.sessions), is_alone=False)
        return Worker(self.book, oracle, options, self.folder / "scratch")

    def play(self, steps: int) -> None:
        """Some requests to random workers, most of them under way at the end."""
        for _ in range(steps):
            worker = self.random.choice(self.workers)
            others = [other for other in self.workers if other is not worker]
            asked = self.requests.request()
            if "diskLimit" not in asked.params:
                worker.send(asked, others)
            worker.wait(10)

    def test_nothing_is_lost_and_nothing_is_wrong(self) -> None:
        self.workers = [self.start() for _ in range(WORKERS)]
        self.play(60)
        # A command refuses an index that is just being created.
        for worker in self.workers:
            worker.wait()
        # Until the first death, a finding would be a mistake of the command.
        for _ in range(3):
            verification = self.command("verify")
            self.play(30)
            self.assertEqual(self.findings(verification), {})
        for _ in range(ROUNDS):
            removal = self.remove()
            line = self.random.choice([("ls",), ("ls", "--sort", "used"), ("du",), ("verify",)])
            other = self.command(*line)
            repair = self.command("verify", "--repair")
            self.play(15)
            for process in (repair, other):
                if self.random.random() < 0.25:
                    process.kill()
                    self.end(process)
                elif process is repair or line == ("verify",):
                    # The dead leave rows without a file and files without a row, but no wrong bytes.
                    self.assertLessEqual(set(self.findings(process)), {"missing", "orphan"})
                else:
                    listed = [(entry.get("file"), entry.get("group"), entry.get("name")) for entry in self.objects(process)]
                    self.assertEqual(len(listed), len(set(listed)))
            self.end_removal(*removal)
            worker = self.workers.pop(self.random.randrange(len(self.workers)))
            worker.kill()
            self.killed += 1
            self.workers.append(self.start())
        for worker in self.workers:
            worker.wait()
        while self.workers:
            self.workers.pop().kill()
        Inspector(self.cache / "default", self.book).inspect(1 << 40, time.monotonic())
        self.assertIn(run("verify", self.cache, "--repair").status, (0, 1))
        self.assertEqual(run("verify", self.cache).objects[-1]["summary"]["missing"], 0)
        print(f"{self.killed} kills; the origin: {self.origin.served}", flush=True)

    def command(self, name: str, *arguments: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        process = subprocess.Popen(command(name, self.cache, *arguments), stdout=pipe, stderr=pipe, text=True)
        self.addCleanup(process.kill)
        return process

    def end(self, process: subprocess.Popen[str]) -> str:
        """The output of a command, which must not fail."""
        output, errors = process.communicate(timeout=PATIENCE)
        self.assertIn(process.returncode, (0, 1, -9), errors)
        self.assertEqual(errors, "")
        return output

    def objects(self, process: subprocess.Popen[str]) -> list[dict[str, object]]:
        return [json_of(line) for line in self.end(process).splitlines()]

    def findings(self, process: subprocess.Popen[str]) -> dict[str, int]:
        """The number of each kind in the report of `verify`."""
        found: dict[str, int] = {}
        for entry in self.objects(process):
            finding = entry.get("finding")
            if isinstance(finding, str):
                found[finding] = found.get(finding, 0) + 1
        return found

    def remove(self) -> tuple[subprocess.Popen[str], Oracle, Asked]:
        """Starts `rm`, which is to the others what the `clear` of another worker is."""
        name = self.random.choice(NAMES)
        url = self.origin.url(name)
        host = f"127.0.0.1:{self.origin.port}"
        arguments, params, names = self.random.choice(
            [
                (["--url", url], {"url": url}, [name]),
                (["--key", url], {"key": url}, [name]),
                (["--host", host], {"host": host}, NAMES),
                (["--all"], {}, NAMES),
                (["--expired", "--older-than", "3s"], {"key": "nothing"}, []),
            ]
        )
        oracle = Oracle(self.book, next(self.sessions), is_alone=False)
        asked = Asked(next(self.numbers), "clear", params, names)
        with self.book.lock:
            oracle.expect(asked, [worker.oracle for worker in self.workers])
        return self.command("rm", *arguments), oracle, asked

    def end_removal(self, process: subprocess.Popen[str], oracle: Oracle, asked: Asked) -> None:
        """What `rm` has acknowledged is durable."""
        if self.random.random() < 0.25:
            process.kill()
        output = self.end(process)
        if process.returncode != -9:
            with self.book.lock:
                oracle.hear(json.dumps({"id": asked.id, "result": json_of(output)}).encode())


def json_of(line: str) -> dict[str, object]:
    value: dict[str, object] = json.loads(line)
    return value


if __name__ == "__main__":
    unittest.main()
