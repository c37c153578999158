"""The chaos test's referee, on conversations that are against the rules: it must not be blind."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

from chaos_menu import Dish
from chaos_referee import Referee, Violation
from chaos_requests import Asked, Step

TARGET = "/image/1.png"
DISH = Dish(f"http://127.0.0.1:1{TARGET}", frozenset(["http"]), (TARGET,), "png")
URL = {"url": DISH.url}
SIZE = {"format": "png", "width": 32, "height": 24}


class TheReferee(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "1.png"
        [self.content] = DISH.bodies({})
        self.path.write_bytes(self.content)
        self.referee = Referee()

    def ask(self, number: int, method: str = "load", **params: Any) -> Asked:
        asked = Asked({"id": number, "method": method, "params": params})
        if method == "load":
            asked.params.update(URL)
            asked.dish, asked.kinds = DISH, DISH.kinds
        self.referee.expect(Step.of(asked))
        return asked

    def hear(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            self.referee.hear(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def image(self, number: int, **others: Any) -> dict[str, Any]:
        return {"id": number, "result": {**URL, **SIZE, "bytes": len(self.content), "cache": "miss", **others}}

    def delivered(self, number: int) -> dict[str, Any]:
        return self.image(number, path=str(self.path))

    def event(self, number: int, name: str, **members: Any) -> dict[str, Any]:
        return {"method": name, "params": {"id": number, **URL, **members}}

    def failed(self, number: int, kind: str) -> dict[str, Any]:
        return {"id": number, "error": {"code": 0, "message": "", "data": {"kind": kind}}}

    def refuses(self, complaint: str, *messages: dict[str, Any]) -> None:
        with self.assertRaisesRegex(Violation, complaint):
            self.hear(*messages)

    def test_what_is_right_passes(self) -> None:
        self.ask(1, events=["started", "progress"])
        self.hear(self.event(1, "started", attempt=1), self.event(1, "progress", received=5), self.delivered(1))
        self.referee.finish()

    def test_one_answer_and_nothing_after_it(self) -> None:
        self.ask(1, events=["started"])
        self.hear(self.delivered(1))
        self.refuses("second answer", self.delivered(1))
        self.refuses("after the end", self.event(1, "started", attempt=1))
        self.ask(2)
        with self.assertRaisesRegex(Violation, "have no answer"):
            self.referee.finish()

    def test_order_of_events(self) -> None:
        self.ask(1, events=["started", "progress", "retrying"])
        self.refuses("before the start", self.event(1, "progress", received=5))
        self.hear(self.event(1, "started", attempt=1), self.event(1, "progress", received=5))
        self.refuses("does not rise", self.event(1, "progress", received=5))
        self.hear(self.event(1, "retrying", attempt=2, kind="http"), self.event(1, "progress", received=5))
        self.refuses("no attempt to come", self.event(1, "retrying", attempt=4, kind="http"))

    def test_content_is_the_urls_own(self) -> None:
        self.ask(1)
        self.path.write_bytes(self.content[:-1])
        self.refuses("not this URL's content", self.delivered(1))
        self.ask(2)
        self.path.unlink()
        self.refuses("no such path", self.delivered(2))
        self.ask(3, deliver="none")
        self.refuses("wrong number of bytes", self.image(3, bytes=7))

    def test_what_was_not_cancelled_is_not_cancelled_and_may_fail_only_as_it_should(self) -> None:
        self.ask(1)
        self.refuses("nobody cancelled it", self.failed(1, "cancelled"))
        self.ask(2)
        self.refuses("must not fail by truncated", self.failed(2, "truncated"))

    def test_a_cancel_is_answered_after_what_it_cancels(self) -> None:
        self.ask(1, group="g")
        self.ask(2, "cancel", group="g")
        self.refuses("has not cancelled", {"id": 2, "result": {"cancelled": 0}})

    def test_another_url_in_a_slot_cancels_the_one_before(self) -> None:
        self.ask(1, slot="s")
        other = Asked({"id": 2, "method": "load", "params": {"url": "http://127.0.0.1:1/image/2.png", "slot": "s"}})
        other.dish, other.kinds = DISH, DISH.kinds
        self.referee.expect(Step.of(other))
        self.refuses("has not cancelled", self.failed(2, "http"))

    def test_items_of_a_prefetch_add_up(self) -> None:
        self.ask(1, "prefetch", urls=["a", "b"])
        ends = {"total": 2, "downloaded": 1, "cached": 0, "failed": 0, "cancelled": 0, "bytes": 0, "errors": []}
        self.refuses("do not add up", {"id": 1, "result": ends})


if __name__ == "__main__":
    unittest.main()
