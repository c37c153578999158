"""Hears every line of the worker and says what is against the rules of protocol/README.md."""

from __future__ import annotations

import base64
import json
import time
from collections import Counter
from pathlib import Path
from typing import Iterable, Optional, Union

from chaos_requests import Asked, Message, Step

EXTENSIONS = {"jpeg": "jpg"}
DEFAULT_RETRIES = 2
DEFAULT_DEADLINE_MS = 10_000
"""The `--deadline` of the chaos."""
ORIGIN_KINDS = {"resolve", "connect", "network", "timeout", "http"}
"""A load may fail by these because of other loads, when they have shown that its origin is down."""


class Violation(Exception):
    """A rule that was broken, with everything known about the request."""

    def __init__(self, what: str, asked: Optional[Asked] = None) -> None:
        super().__init__(what if asked is None else f"{what}\n{story(asked)}")
        self.asked = asked


class Referee:
    """Knows what was asked, and judges what is heard. Not for several threads at once."""

    def __init__(self) -> None:
        self.waiting: dict[int, Asked] = {}
        """The requests without an answer, by their number in the order of sending."""
        self.tally: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        """How many loads and prefetches succeeded, failed and were cancelled."""
        self.delivered: dict[str, tuple[bytes, float]] = {}
        """The content of every path that was given away, and when that was last heard of."""
        self._by_id: dict[Union[int, str], Asked] = {}
        self._by_url: dict[str, Asked] = {}
        self._places: dict[int, int] = {}
        self._refused = 0

    # Sent lines.

    def expect(self, step: Step) -> None:
        """Before the line is sent."""
        self._refused += step.is_refused
        for asked in step.asked:
            asked.targets = list(self._ended_by(asked))
            for target in asked.targets:
                target.may_be_cancelled = True
            if asked.id is not None:
                self._by_id[asked.id] = asked
            else:
                self._by_url[asked.params["url"]] = asked
            place = len(self._places)
            self._places[id(asked)] = place
            self.waiting[place] = asked

    def _ended_by(self, asked: Asked) -> Iterable[Asked]:
        if asked.method == "cancel":
            [(name, value)] = asked.params.items()
            return (each for each in self.waiting.values() if matches(each, name, value))
        if asked.method == "load" and "slot" in asked.params:
            slot, url = asked.params["slot"], asked.params["url"]
            others = (each for each in self.waiting.values() if matches(each, "slot", slot))
            return (each for each in others if each.params["url"] != url)
        return ()

    def expect_cancelling(self) -> None:
        """From here on anything may be answered `cancelled`, and nothing new is accepted."""
        for asked in self.waiting.values():
            asked.may_be_cancelled = True

    # Received lines.

    def hear(self, line: bytes) -> None:
        if not line.endswith(b"\n") or not line.isascii():
            raise Violation(f"no whole line of ASCII: {line!r}")
        value = json.loads(line)
        messages = value if isinstance(value, list) else [value]
        for message in messages:
            if message.get("jsonrpc") != "2.0":
                raise Violation(f"no jsonrpc: {line!r}")
        if isinstance(value, list):
            self._hear_batch(value)
        elif "method" in value:
            self._hear_event(value)
        elif value["id"] is None:
            self._refused -= 1
            if self._refused < 0 or "error" not in value:
                raise Violation(f"nothing was refused: {line!r}")
        else:
            self._hear_answer(value, is_batched=False)

    def finish(self) -> None:
        """Everything that was asked must be answered."""
        if self.waiting or self._refused:
            raise Violation(f"{len(self.waiting)} requests and {self._refused} refusals have no answer: {self.open()}")

    def open(self) -> str:
        return "\n".join(story(asked) for asked in list(self.waiting.values())[:10])

    def _hear_batch(self, messages: list[Message]) -> None:
        ids = {message["id"] for message in messages}
        if len(ids) != len(messages):
            raise Violation(f"two answers in one batch: {messages}")
        for message in messages:
            self._hear_answer(message, is_batched=True)

    def _hear_answer(self, message: Message, is_batched: bool) -> None:
        asked = self._by_id.get(message["id"])
        if asked is None:
            raise Violation(f"nobody asked for this: {message}")
        asked.heard.append(message)
        if asked.is_answered:
            self._complain(asked, "a second answer")
        if asked.is_batched != is_batched:
            self._complain(asked, "not answered in its batch")
        self._close(asked)
        if "error" in message:
            self._check_error(asked, message["error"])
        else:
            self._check_result(asked, message["result"])

    def _close(self, asked: Asked) -> None:
        asked.is_answered = True
        del self.waiting[self._places[id(asked)]]
        self._check_targets(asked)

    def _check_targets(self, asked: Asked) -> None:
        """Checks that cancelled requests are answered before the request that cancelled them."""
        for target in asked.targets:
            if not target.is_answered and not target.is_batched and not asked.is_batched:
                self._complain(asked, f"has not cancelled {story(target)}")

    def _hear_event(self, message: Message) -> None:
        name, params = message["method"], message["params"]
        asked = self._by_id.get(params["id"]) if "id" in params else self._by_url.get(params["url"])
        if asked is None:
            raise Violation(f"an event of nothing: {message}")
        asked.heard.append(message)
        if asked.is_answered:
            self._complain(asked, "an event after the end")
        if asked.method == "prefetch":
            return self._check_prefetch_event(asked, name, params)
        if asked.id is None and name in ("completed", "failed"):
            self._close(asked)
            if name == "failed":
                return self._check_error(asked, params["error"])
            return self._check_result(asked, params)
        self._check_event(asked, name, params)

    # Events.

    def _check_event(self, asked: Asked, name: str, params: Message) -> None:
        self._check_targets(asked)
        listed = asked.params.get("events", [])
        if name == "cached":
            if asked.params.get("cache") != "refresh" or asked.has_shown:
                self._complain(asked, "a `cached` that does not belong here")
            asked.has_shown = True
            self._check_image(asked, params, is_final=False)
        elif name not in listed:
            self._complain(asked, "an event that was not asked for")
        elif name == "started":
            # It begins anew where another load that shares the transfer has demanded other content by `digest`.
            if params["attempt"] < asked.attempt and params["attempt"] != 1:
                self._complain(asked, "the attempt was another")
            if params["attempt"] > asked.attempt and "retrying" not in listed:
                asked.received = -1
            asked.attempt = params["attempt"]
        elif name == "progress":
            if "started" in listed and asked.attempt == 0:
                self._complain(asked, "progress before the start")
            received, tells_attempts = params["received"], "started" in listed or "retrying" in listed
            if (received <= asked.received and tells_attempts) or received > params.get("total", received):
                self._complain(asked, "progress does not rise, or rises above its total")
            asked.received = received
        elif name == "retrying":
            last = asked.attempt if "started" in listed else 1
            if not max(1, last) < params["attempt"] <= 1 + retries(asked):
                self._complain(asked, "no attempt to come")
            if params["kind"] not in asked.kinds:
                self._complain(asked, f"must not fail by {params['kind']}")
            asked.attempt, asked.received = params["attempt"], -1
            self.tally["retrying"] += 1

    def _check_prefetch_event(self, asked: Asked, name: str, params: Message) -> None:
        if name not in asked.params.get("events", []):
            self._complain(asked, "an event that was not asked for")
        if name == "progress":
            if params["total"] != len(asked.params["urls"]) or not asked.received < params["done"] <= params["total"]:
                self._complain(asked, "progress does not rise, or rises above its total")
            asked.received = params["done"]
        else:
            asked.items[name] += 1

    # Answers.

    def _count(self, asked: Asked, how: object, end: str) -> None:
        self.tally[f"{asked.method}: {how}"] += 1
        if asked.method in ("load", "prefetch"):
            self.ends[end] += 1

    def _check_error(self, asked: Asked, error: Message) -> None:
        data: Message = error.get("data", {})
        kind = data.get("kind")
        self._count(asked, kind, "cancelled" if kind == "cancelled" else "failed")
        if kind == "cancelled":
            if not asked.may_be_cancelled:
                self._complain(asked, "nobody cancelled it")
        elif asked.method not in ("load", "store"):
            if kind not in asked.kinds or asked.method == "prefetch":
                self._complain(asked, "must not fail")
        elif asked.method == "load" and data.get("originDown") and kind in ORIGIN_KINDS:
            self.tally["origin down"] += 1
        elif asked.method == "load" and kind in ORIGIN_KINDS and cannot_wait(asked, data):
            self.tally["cannot wait"] += 1
        elif not (kind in asked.kinds or (kind == "timeout" and data.get("phase") == "deadline")):
            self._complain(asked, f"must not fail by {kind}")
        if asked.method == "load" and data.get("url", asked.params["url"]) != asked.params["url"]:
            self._complain(asked, "another URL")

    def _check_result(self, asked: Asked, result: Message) -> None:
        asked.result = result
        self._count(asked, result["cache"] if asked.dish else "done", "succeeded")
        if asked.method in ("load", "store"):
            self._check_image(asked, result, is_final=True)
        elif asked.method == "prefetch":
            self._check_summary(asked, result)
        elif asked.method == "cancel":
            if not 0 <= result["cancelled"] <= len(asked.targets) and not asked.is_batched:
                self._complain(asked, f"cancelled more than the {len(asked.targets)} that there were")
        elif asked.method == "stats":
            for tier in ("memory", "disk"):
                if result[tier]["bytes"] < 0 or (tier == "memory" and result[tier]["bytes"] > result[tier]["limit"]):
                    self._complain(asked, f"the {tier} tier is over its limit")

    def _check_image(self, asked: Asked, result: Message, is_final: bool) -> None:
        """The image is what this URL gives to whoever has these credentials: wholly, wherever it is delivered."""
        dish = asked.dish
        assert dish is not None
        if asked.must_fail:
            self._complain(asked, "must fail")
        if result["url"] != asked.params["url"]:
            self._complain(asked, "another URL")
        bodies = dish.bodies(asked.headers)
        content = self._content(asked, result)
        if content is not None and content not in bodies:
            self._complain(asked, f"not this URL's content but {content[:120]!r}")
        if result["bytes"] not in {len(body) for body in ([content] if content is not None else bodies)}:
            self._complain(asked, "a wrong number of bytes")
        if dish.format:
            if (result.get("format"), result.get("width"), result.get("height")) != (dish.format, 32, 24):
                self._complain(asked, "another image")
        elif asked.params.get("validate") != "none":
            self._complain(asked, "no image")
        if result.get("attempts", 1) > 1 + retries(asked):
            self._complain(asked, "too many attempts")
        if is_final and asked.save_to is not None:
            saved = read(asked.save_to)
            if saved not in bodies or (content is not None and saved != content):
                self._complain(asked, f"saveTo has {None if saved is None else len(saved)} bytes")

    def _content(self, asked: Asked, result: Message) -> Optional[bytes]:
        """The delivered content; None if none was requested."""
        deliver = asked.params.get("deliver", "path" if asked.method == "load" else "none")
        if ("path" in result, "data" in result) != (deliver == "path", deliver == "data"):
            if asked.method == "load":
                self._complain(asked, "delivered in another way")
        if "data" in result:
            return base64.b64decode(result["data"], validate=True)
        if "path" not in result:
            return None
        content = read(Path(result["path"]))
        if content is None:
            self._complain(asked, "there is no such path")
        kind: str = result.get("format", "bin")
        extension = EXTENSIONS.get(kind, kind)
        if not result["path"].endswith("." + extension):
            self._complain(asked, "another extension")
        if content != self.delivered.get(result["path"], (content, 0.0))[0]:
            self._complain(asked, "the path had another content before")
        self.delivered[result["path"]] = (content or b"", time.monotonic())
        return content

    def _check_summary(self, asked: Asked, result: Message) -> None:
        urls = asked.params["urls"]
        ends = {name: result[name] for name in ("downloaded", "cached", "failed", "cancelled")}
        if result["total"] != len(urls) or sum(ends.values()) != len(urls):
            self._complain(asked, "the items do not add up")
        if len(result["errors"]) != min(100, ends["failed"]):
            self._complain(asked, "not as many errors as failed")
        for error in result["errors"]:
            # The summary does not say `originDown`: an item may fail because its origin is down.
            if error["kind"] not in asked.kinds | {"timeout"} | set(ORIGIN_KINDS):
                self._complain(asked, f"an item must not fail by {error['kind']}")
        told = {"completed": ends["downloaded"] + ends["cached"], "failed": ends["failed"] + ends["cancelled"]}
        if any(asked.items[name] != told[name] for name in told if name in asked.params.get("events", [])):
            self._complain(asked, f"not one event for each item: {dict(asked.items)}")

    def _complain(self, asked: Asked, what: str) -> None:
        raise Violation(what, asked)


def matches(asked: Asked, name: str, value: object) -> bool:
    """Whether a `cancel` with this member means the request."""
    if asked.method not in ("load", "prefetch"):
        return False
    if name == "all":
        return True
    return asked.id == value if name == "id" else asked.params.get(name) == value


def retries(asked: Asked) -> int:
    number: int = asked.params.get("retries", DEFAULT_RETRIES)
    return number


def read(path: Path) -> Optional[bytes]:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def cannot_wait(asked: Asked, data: Message) -> bool:
    """Whether the origin may be asked again only after the deadline."""
    deadline: float = asked.params.get("deadlineMs", DEFAULT_DEADLINE_MS)
    wait: float = data.get("retryAfterMs", 0)
    total: float = data["timing"]["totalMs"]
    return wait > 0 and total + wait > deadline - 1


def story(asked: Asked) -> str:
    """The request and all that was heard of it, inline data shortened."""
    lines = ["--> " + json.dumps(asked.message)] + ["<-- " + json.dumps(message) for message in asked.heard]
    return "\n".join(f"    {line[:1500]}" for line in lines)

