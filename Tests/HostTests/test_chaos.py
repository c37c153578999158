"""Thousands of random requests against a worker whose origins misbehave at random; after each the rules must hold.

    IMAGEWORKER=PATH CHAOS_SEED=17 CHAOS_REQUESTS=3000 python -m unittest test_chaos

The seed is printed. It fixes what is sent and what the origins do; the order in which things happen is the machine's.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import tempfile
import time
import unittest
from collections import Counter
from pathlib import Path
from random import Random, SystemRandom

from chaos_menu import CREDENTIALS, Menu
from chaos_referee import DEFAULT_DEADLINE_MS, read, story
from chaos_requests import MOST_CONCURRENT, MOST_PER_HOST, Requests, Step
from chaos_session import WINDOWS, Session, Surroundings, default_worker

SEED = int(os.environ.get("CHAOS_SEED") or SystemRandom().randrange(1 << 32))
REQUESTS = int(os.environ.get("CHAOS_REQUESTS", "3000"))
OPTIONS = ["--max-concurrent", f"{MOST_CONCURRENT}", "--max-per-host", f"{MOST_PER_HOST}", "--deadline", f"{DEFAULT_DEADLINE_MS}ms"]
OPTIONS += ["--memory-limit", "2M", "--disk-limit", "20M", "--log-level", "warning"]


STAYS = 50.0
"""Seconds for which a path is looked for; it is promised for a little longer."""


def unexpected(log: str) -> str:
    """The log without the warnings about origins that fail, as the menu makes them."""
    expected = re.compile(r"imageworker: warning: .*(its loads fail at once|loads of the last minute failed)")
    return "".join(line for line in log.splitlines(keepends=True) if not expected.match(line))


class Chaos(unittest.TestCase):
    def setUp(self) -> None:
        print(f"CHAOS_SEED={SEED} CHAOS_REQUESTS={REQUESTS}", flush=True)
        self.random = Random(SEED)
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        for name in ("saved", "scratch"):
            (self.folder / name).mkdir()
        self.surroundings = Surroundings(origins=5)
        self.addCleanup(self.surroundings.__exit__)
        menu = Menu(self.random, self.surroundings.ports)
        self.requests = Requests(self.random, menu, self.folder / "saved")

    def start(self) -> Session:
        options = ["--cache-dir", str(self.folder / "cache"), *OPTIONS]
        seed = self.random.randrange(1 << 32)
        session = Session(default_worker(), options, self.folder / "scratch", self.surroundings, seed)
        self.addCleanup(session.close)
        return session

    def test_the_rules_hold_whatever_happens(self) -> None:
        """A worker is killed; another one goes on with its cache and ends in order."""
        first = self.start()
        first.play(self.requests, self.random.randint(REQUESTS // 3, REQUESTS // 2))
        first.kill()
        self.assertEqual(unexpected(first.log()), "")
        self.what_was_delivered_stays(first)
        self.surroundings.origin.command({"do": "await", "active": 0})
        torn = set(self.unfinished(self.folder))

        second = self.start()
        for step in self.requests.cached():
            second.send(step)
        second.wait(lambda: not second.referee.waiting)
        second.play(self.requests, REQUESTS // 2)
        self.the_counters_agree(second)
        for step in itertools.islice(self.requests, WINDOWS[-1]):
            self.surroundings.prepare(self.requests.menu)
            second.send(step)
        self.an_end_in_order(second)
        self.assertEqual(unexpected(second.log()), "")
        self.what_was_delivered_stays(second)

        self.nothing_unfinished_is_left(torn)
        self.what_was_saved_is_complete()
        self.the_origins_saw_no_more_than_they_should()
        self.enough_has_happened(first.referee.tally + second.referee.tally)

    def unfinished(self, folder: Path) -> list[Path]:
        return list(folder.rglob("*.tmp"))

    def nothing_unfinished_is_left(self, torn: set[Path]) -> None:
        """The cache lists and clears all partial files of broken transfers; other folders have only the remains of a kill."""
        third = self.start()
        third.answer(self.requests.plain("clear"))
        third.close_input()
        self.assertEqual((third.end(), third.log()), (0, ""))
        self.assertEqual(self.unfinished(self.folder / "cache"), [])
        self.assertLessEqual(set(self.unfinished(self.folder)), torn)

    def what_was_delivered_stays(self, session: Session) -> None:
        for path, (content, at) in session.referee.delivered.items():
            if (found := read(Path(path))) != content and time.monotonic() - at < STAYS:
                self.fail(f"{path} {'is gone' if found is None else 'has changed'} after {time.monotonic() - at:.1f} s")

    def what_was_saved_is_complete(self) -> None:
        for asked in self.requests.saved:
            assert asked.save_to is not None and asked.dish is not None
            if (content := read(asked.save_to)) is not None and content not in asked.dish.bodies(asked.headers):
                self.fail(f"{asked.save_to} has {len(content)} bytes\n{story(asked)}")

    def the_counters_agree(self, session: Session) -> None:
        """When everything is answered, nothing waits or runs, and each request has been counted once."""
        session.wait(lambda: not session.referee.waiting)
        while True:
            stats = session.answer(self.requests.stats())
            if stats["queue"]["active"] == 0 and not any(stats["queue"]["waiting"].values()):
                break  # what nobody waits for any more may take a moment to end
        self.assertEqual([origin for origin in stats["origins"] if origin["active"] or origin["waiting"]], [])
        ends = {name: stats["requests"][name] for name in ("succeeded", "failed", "cancelled")}
        self.assertEqual(ends, {name: session.referee.ends[name] for name in ends})
        self.assertEqual(stats["requests"]["received"], sum(ends.values()))

    def an_end_in_order(self, session: Session) -> None:
        """With much still under way."""
        if self.requests.is_paused:
            session.send(Step.of(self.requests.plain("resume")))
        end = self.random.choice(["input", "drain", "cancel", "signal"])
        print(f"the end: {end}, with {len(session.referee.waiting)} requests unanswered", flush=True)
        if end == "input":
            session.close_input()
        elif end == "signal":
            session.answer(self.requests.stats())  # so that all lines have been read
            session.referee.expect_cancelling()
            session.process.send_signal(signal.SIGTERM)
        else:
            if end == "cancel":
                session.referee.expect_cancelling()
            session.send(Step.of(self.requests.plain("shutdown", mode=end)))
        self.assertEqual(session.end(), 0, session.log())
        session.referee.finish()

    def the_origins_saw_no_more_than_they_should(self) -> None:
        counts = self.surroundings.origin.command({"do": "counts"})
        # As many again may run, of those that have waited for an answer for over a second.
        self.assertLessEqual(counts["mostActive"], 2 * MOST_CONCURRENT)
        ports = self.surroundings.ports
        for port in ports.origins:
            self.assertLessEqual(counts["mostActiveAt"].get(f"{port}", 0), MOST_PER_HOST)
        exchanges = self.surroundings.origin.command({"do": "log"})["exchanges"]
        answers = Counter(f"{exchange['status']}" for exchange in exchanges)
        print("the origins' answers:", ", ".join(f"{status} {count}" for status, count in sorted(answers.items())))
        for exchange in exchanges:
            names = {name.lower() for name, _ in exchange["headers"]}
            if exchange["port"] == ports.elsewhere and names.intersection(CREDENTIALS):
                self.fail(f"credentials went to another origin: {exchange}")

    def enough_has_happened(self, tally: Counter[str]) -> None:
        """A run in which nothing happens proves nothing."""
        print(", ".join(f"{name} {count}" for name, count in sorted(tally.items())), flush=True)
        names = ["load: miss", "load: disk", "load: http", "load: cancelled", "retrying"]
        if REQUESTS >= 3000:
            kinds = "memory revalidated stale network truncated timeout connect redirects notAnImage".split()
            names += [*(f"load: {kind}" for kind in kinds), "prefetch: done", "prefetch: cancelled"]
        self.assertEqual([name for name in names if not tally[name]], [])


if __name__ == "__main__":
    unittest.main()
