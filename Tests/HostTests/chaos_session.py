"""A worker between the chaos test's requests and its referee, and a misbehaving origin beside it."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from typing import Any, Callable, Optional
from urllib.parse import urlsplit

from chaos_menu import GATE, Menu, Ports
from chaos_referee import Referee, Violation
from chaos_requests import Asked, Requests, Step
from origin_process import Origin
from package import ROOT

PATIENCE = 90.0
"""Seconds without a line after which a worker that owes answers is taken for stuck."""
WINDOWS = (25, 60, 150)
"""How many requests are unanswered at most, pauses aside. With few, most of them run; with many, most of them wait."""
POLL = 0.005


class Surroundings:
    """The origins, and one that refuses connections and one that never answers."""

    def __init__(self, origins: int) -> None:
        self._exits = contextlib.ExitStack()
        self.origin = self._exits.enter_context(Origin("--origins", str(origins + 1)))
        dead = self._exits.enter_context(socket.socket())
        dead.bind(("127.0.0.1", 0))  # bound, so that nobody else gets it, and not listening
        silent = self._exits.enter_context(socket.create_server(("127.0.0.1", 0), backlog=4096))
        self.ports = Ports(
            self.origin.ports[:-1], self.origin.ports[-1], dead.getsockname()[1], silent.getsockname()[1]
        )

    def __enter__(self) -> Surroundings:
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def prepare(self, menu: Menu) -> None:
        """Tell the origin what it has to know of the dishes made last."""
        while menu.scripts:
            target, answers = menu.scripts.pop()
            self.origin.command({"do": "script", "target": target, "answers": answers})

    def let_through(self, count: int) -> None:
        """So many of those who wait at the gate; nobody who comes later."""
        self.origin.command({"do": "release", "gate": GATE, "count": count})
        self.origin.command({"do": "close", "gate": GATE})


    def print_log(self, asked: Asked) -> None:
        """The exchanges of a load at the origin."""
        parts = urlsplit(str(asked.params.get("url", "")))
        for exchange in self.origin.command({"do": "log", "path": parts.path})["exchanges"]:
            if exchange["target"].startswith(parts.path + "?"):
                print(f"the origin: {json.dumps(exchange)}", flush=True)


class Session:
    """One worker, from its start to its end."""

    def __init__(self, worker: str, options: list[str], folder: Path, surroundings: Surroundings, seed: int) -> None:
        self.referee = Referee()
        self._random = Random(seed)
        self._surroundings = surroundings
        self._changed = threading.Condition()
        self._broken: Optional[BaseException] = None
        self._heard = 0
        self._log = tempfile.TemporaryFile()
        pipe = subprocess.PIPE
        environment = {**os.environ, "TMPDIR": str(folder)}
        self.process = subprocess.Popen([worker, *options], stdin=pipe, stdout=pipe, stderr=self._log, env=environment)
        self._lines: queue.Queue[Optional[bytes]] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._reader.start()
        self._writer.start()

    # Two threads of their own: a host that stops reading in order to write may wait for ever.

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self._heard += 1
                if self._broken is None:
                    try:
                        self.referee.hear(line)
                    except BaseException as error:
                        self._broken = error
                self._changed.notify_all()

    def _write(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            while (line := self._lines.get()) is not None:
                self.process.stdin.write(line)
                self.process.stdin.flush()
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def send(self, step: Step) -> None:
        with self._changed:
            self.referee.expect(step)
        self._lines.put(step.line)

    def close_input(self) -> None:
        self._lines.put(None)

    def wait(self, condition: Callable[[], bool]) -> None:
        """Until it holds, while whoever the origin holds is let go."""
        heard, since = -1, time.monotonic()
        while True:
            with self._changed:
                if self._broken is not None:
                    if isinstance(self._broken, Violation) and self._broken.asked is not None:
                        self._surroundings.print_log(self._broken.asked)
                    raise self._broken
                if condition():
                    return
                if heard != self._heard:
                    heard, since = self._heard, time.monotonic()
                elif time.monotonic() - since > PATIENCE:
                    raise Violation(f"stuck, with these unanswered:\n{self.referee.open()}")
                if not self._reader.is_alive() and not condition():
                    raise Violation(f"the worker ended with {self.process.wait()}")
                self._changed.wait(POLL)
            self._surroundings.let_through(self._random.randint(0, 3))

    def answer(self, asked: Asked) -> dict[str, Any]:
        """Send one request and wait for its result."""
        self.send(Step.of(asked))
        self.wait(lambda: asked.is_answered)
        assert asked.result is not None, asked.heard
        return asked.result

    # How it goes.

    def play(self, requests: Requests, steps: int) -> None:
        """So many steps, and those that it takes to go on after a pause."""
        window = WINDOWS[0]
        for step in requests:
            if self._random.random() < 0.02:
                window = self._random.choice(WINDOWS)
            self._surroundings.prepare(requests.menu)
            self.send(step)
            if requests.is_paused:
                continue
            self.wait(lambda: len(self.referee.waiting) < window)
            steps -= 1
            if steps <= 0:
                return

    def end(self) -> int:
        """Wait for the end that was asked for; returns the exit status."""
        self.wait(lambda: not self._reader.is_alive())
        status = self.process.wait(PATIENCE)
        self.close_input()
        self._writer.join()
        return status

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self.close_input()
        self._writer.join()

    def close(self) -> None:
        """Kill it if it still runs, show its log if it has one, and let go of it."""
        self.kill()
        print(self.log(), end="", flush=True)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")


def default_worker() -> str:
    return os.environ.get("IMAGEWORKER", str(ROOT / ".build" / "release" / "imageworker"))
