"""Sessions to be recorded: the requests of the chaos test, with transforms and pixels, and a host that judges nothing."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, Optional, Union

from chaos_menu import Dish, Menu
from chaos_requests import MOST_CONCURRENT, MOST_PER_HOST, Asked, Message, Requests, Step
from chaos_session import Session, Surroundings, default_worker

OPTIONS = ["--max-concurrent", f"{MOST_CONCURRENT}", "--max-per-host", f"{MOST_PER_HOST}", "--deadline", "10s"]
OPTIONS += ["--memory-limit", "2M", "--disk-limit", "20M"]


class MixedRequests(Requests):
    """Also asks for transforms, placeholders, checks, previews and pixels, and releases pixels."""

    def __init__(self, random: Random, menu: Menu, folder: Path, listener: Listener) -> None:
        super().__init__(random, menu, folder)
        self._listener = listener
        self._makers[self.release] = 2
        self._makers[self.probe] = 2
        self._makers[self.metrics] = 1

    def load(self, in_slot: bool = True, dish: Optional[Dish] = None) -> Asked:
        asked = super().load(in_slot, dish)
        chance = self._random.random()
        if chance < 0.2:
            asked.params["transform"] = {"width": self._random.randint(4, 40), "format": self._random.choice(FORMATS)}
        elif chance < 0.25:
            asked.params["placeholder"] = True
        elif chance < 0.3:
            asked.params["validate"] = "decode"
        elif chance < 0.35:
            asked.params["events"] = ["started", "progress", "preview"]
        elif chance < 0.4:
            asked.params["deliver"] = "pixels"
            asked.params.pop("saveTo", None)
        return asked

    def probe(self) -> Asked:
        return self.plain("probe", url=self._dish().url)

    def metrics(self) -> Asked:
        return self.plain("metrics")

    def release(self) -> Asked:
        paths = self._listener.pixels
        path = self._random.choice(paths) if paths else "/none"
        return self.plain("release", **({"path": path} if self._random.random() < 0.8 else {"all": True}))


FORMATS = ["keep", "jpeg", "png", "webp"]


class Listener:
    """Stands for the referee of the chaos test: counts what is heard, and knows what is unanswered."""

    def __init__(self) -> None:
        self.waiting: dict[Union[int, str], Asked] = {}
        """By id, or by URL for notifications."""
        self.tally: Counter[str] = Counter()
        self.pixels: list[str] = []

    def expect(self, step: Step) -> None:
        for asked in step.asked:
            self.waiting[asked.params["url"] if asked.id is None else asked.id] = asked

    def hear(self, line: bytes) -> None:
        value = json.loads(line)
        for message in value if isinstance(value, list) else [value]:
            self._hear(message)

    def _hear(self, message: Message) -> None:
        if "method" in message:
            name, params = message["method"], message["params"]
            self.tally[name] += 1
            if "id" not in params and name in ("completed", "failed"):
                self._end(params.get("url"))
            return
        result = message.get("result", {})
        names = [name for name in ("finalURL", "source", "placeholder") if name in result]
        names += [str(result["cache"])] if "cache" in result and isinstance(result["cache"], str) else []
        names += [message["error"]["data"]["kind"]] if "error" in message else []
        if "path" in result.get("pixels", {}):
            names.append("pixels")
            self.pixels.append(result["pixels"]["path"])
        self.tally.update(names)
        self._end(message["id"])

    def _end(self, name: Union[int, str, None]) -> None:
        if name is not None and (asked := self.waiting.pop(name, None)):
            asked.is_answered = True

    def open(self) -> str:
        return "\n".join(json.dumps(asked.message) for asked in list(self.waiting.values())[:10])

    def finish(self) -> None:
        assert not self.waiting, self.open()


def record(folder: Path, seed: int, count: int, *options: str) -> Listener:
    """Records a session of so many requests into `folder / "recording"`, and ends it in order."""
    random = Random(seed)
    for name in ("saved", "scratch"):
        (folder / name).mkdir()
    with Surroundings(origins=5) as surroundings:
        listener = Listener()
        menu = Menu(random, surroundings.ports)
        requests = MixedRequests(random, menu, folder / "saved", listener)
        command = ["--record", str(folder / "recording"), *OPTIONS, *options]
        session = Session(default_worker(), command, folder / "scratch", surroundings, random.randrange(1 << 32))
        session.referee = listener  # type: ignore[assignment]
        try:
            session.play(requests, count)
            session.close_input()
            status = session.end()
            assert status == 0, f"the worker ended with {status}: {session.log()}"
        finally:
            session.close()
    return listener


def replay(recording: Path, *options: str, **settings: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([default_worker(), "replay", str(recording), *options], capture_output=True, **settings)
