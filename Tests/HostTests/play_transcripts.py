#!/usr/bin/env python3
"""Plays protocol/transcripts/*.jsonl against the built worker and a local origin.

    play_transcripts.py [--worker PATH] [TRANSCRIPT...]

The form of a transcript is told in protocol/transcripts/README.md. Besides what a transcript expects, every line of the
worker must hold by its schema in protocol/openrpc.json.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Optional

from origin_process import PATIENCE, Origin
from package import ROOT
from wire import Wire

PLACEHOLDER = re.compile(r"<(int|number|string|path|time|object|list|any)(?: (\w+))?>")
MORE = "..."
STEPS = {"start", "note", "host", "raw", "worker", "unordered", "repeat", "origin", "close", "exit"}


class Mismatch(Exception):
    pass


class Matcher:
    """Compares what came with what is expected, and remembers what named placeholders stood for."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names
        self._bound: dict[str, object] = {}

    def fill(self, value: Any) -> Any:
        """`<origin>` and `<folder>` in strings become what they are in this run."""
        if isinstance(value, str):
            for name, text in self._names.items():
                value = value.replace(f"<{name}>", text)
            return value
        if isinstance(value, list):
            return [self.fill(each) for each in value]
        if isinstance(value, dict):
            return {key: self.fill(each) for key, each in value.items()}
        return value

    def matches(self, expected: Any, actual: Any) -> bool:
        bound = dict(self._bound)
        if self._matches(expected, actual):
            return True
        self._bound = bound
        return False

    def _matches(self, expected: Any, actual: Any) -> bool:
        if isinstance(expected, str) and (placeholder := PLACEHOLDER.fullmatch(expected)):
            return self._stands_for(placeholder[1], placeholder[2], actual)
        if isinstance(expected, dict) and isinstance(actual, dict):
            if not expected.get(MORE) and expected.keys() != actual.keys():
                return False
            return all(key in actual and self._matches(each, actual[key]) for key, each in expected.items() if key != MORE)
        if isinstance(expected, list) and isinstance(actual, list):
            pairs = zip(expected, actual)
            return len(expected) == len(actual) and all(self._matches(left, right) for left, right in pairs)
        return type(expected) is type(actual) and bool(expected == actual)

    def _stands_for(self, kind: str, name: Optional[str], actual: object) -> bool:
        if name is not None:
            if name in self._bound:
                return self._bound[name] == actual
            self._bound[name] = actual
        if kind == "int":
            return type(actual) is int
        if kind == "number":
            return type(actual) in (int, float)
        if kind == "object":
            return isinstance(actual, dict)
        if kind == "list":
            return isinstance(actual, list)
        if kind == "any":
            return True
        if not isinstance(actual, str):
            return False
        if kind == "path":
            return os.path.isabs(actual) and os.path.isfile(actual)
        if kind == "time":
            return re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", actual) is not None
        return True


class Conversation:
    """One worker, what is said to it, and what it says; each of its lines is checked by its schema as it is read."""

    def __init__(self, worker: str, options: list[str], wire: Wire) -> None:
        self._wire = wire
        self._methods: dict[object, str] = {}
        self._answered: set[object] = set()
        self._received: dict[object, int] = {}
        self._lines: queue.Queue[Optional[bytes]] = queue.Queue()
        self._ahead: list[Any] = []
        self._log = tempfile.TemporaryFile()
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([worker, *options], stdin=pipe, stdout=pipe, stderr=self._log)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def send(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode() + b"\n")
        self._process.stdin.flush()

    def send_request(self, request: Any) -> None:
        for each in request if isinstance(request, list) else [request]:
            if isinstance(each, dict) and isinstance(each.get("id"), (str, int)):
                self._methods.setdefault(each["id"], str(each.get("method")))
                self._answered.discard(each["id"])
                self._received.pop(each["id"], None)
        self.send(json.dumps(request))

    def close_input(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def next(self) -> Any:
        """The next line, as JSON; None at the end of output."""
        if self._ahead:
            return self._ahead.pop()
        try:
            line = self._lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise Mismatch("no line came") from None
        if line is None:
            return None
        if not line.endswith(b"\n") or not line.isascii():
            raise Mismatch(f"not a whole line of ASCII: {line!r}")
        value = json.loads(line)
        self._check(value)
        return value

    def put_back(self, line: Any) -> None:
        self._ahead.append(line)

    def _check(self, value: Any) -> None:
        for message in value if isinstance(value, list) else [value]:
            assert message.get("jsonrpc") == "2.0", f"no jsonrpc: {message}"
            if "method" in message:
                self._wire.check_event(message["method"], message["params"])
                self._check_order(message)
                continue
            if message["id"] is not None:
                self._check_answer(message)
            if "error" in message:
                self._wire.check_error(message["error"])
            else:
                self._wire.check_result(self._methods[message["id"]], message["result"])

    def _check_answer(self, message: Any) -> None:
        assert message["id"] in self._methods, f"an answer nobody asked for: {json.dumps(message)}"
        assert message["id"] not in self._answered, f"a second answer: {json.dumps(message)}"
        self._answered.add(message["id"])

    def _check_order(self, event: Any) -> None:
        """Nothing comes after the response, and progress rises unless an attempt failed."""
        identity = event["params"].get("id")
        assert identity not in self._answered, f"an event after the response: {json.dumps(event)}"
        if event["method"] == "retrying":
            self._received.pop(identity, None)
        elif event["method"] == "progress" and identity is not None:
            received = event["params"].get("received", event["params"].get("done"))
            assert received > self._received.get(identity, -1), f"progress does not rise: {json.dumps(event)}"
            self._received[identity] = received

    def exit_status(self) -> int:
        return self._process.wait(PATIENCE)

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                pass
        self._log.close()


def without_version(line: Any) -> Any:
    """Transcripts leave `jsonrpc` out; the schema check has seen to it."""
    if isinstance(line, list):
        return [without_version(each) for each in line]
    return {key: value for key, value in line.items() if key != "jsonrpc"}


class Player:
    def __init__(self, worker: str, transcript: Path, wire: Wire) -> None:
        self._worker, self._transcript, self._wire = worker, transcript, wire

    def play(self) -> None:
        """Raises Mismatch, naming the transcript's line, at the first thing that is not as expected."""
        steps = [json.loads(line) for line in self._transcript.read_text("ascii").splitlines()]
        with tempfile.TemporaryDirectory() as folder, Origin() as origin:
            self._origin = origin
            self._matcher = Matcher({"origin": origin.url, "folder": folder})
            options = ["--cache-dir", f"{folder}/cache"]
            if "start" in steps[0]:
                options += self._matcher.fill(steps[0]["start"])
            self._conversation = Conversation(self._worker, options, self._wire)
            try:
                for number, step in enumerate(steps, 1):
                    try:
                        self._take(step)
                    except (Mismatch, AssertionError, OSError, subprocess.TimeoutExpired) as error:
                        log = self._conversation.log()
                        raise Mismatch(f"{self._transcript.name}:{number}: {error}\n{log}".rstrip()) from error
            finally:
                self._conversation.end()

    def _take(self, step: dict[str, Any]) -> None:
        conversation, fill = self._conversation, self._matcher.fill
        [kind] = step.keys() & STEPS
        if kind == "host":
            conversation.send_request(fill(step["host"]))
        elif kind == "raw":
            conversation.send(fill(step["raw"]))
        elif kind == "worker":
            self._expect([fill(step["worker"])])
        elif kind == "unordered":
            self._expect(fill(step["unordered"]))
        elif kind == "repeat":
            self._expect([fill(step["repeat"])])
            while (line := conversation.next()) is not None and self._matches(fill(step["repeat"]), line):
                pass
            conversation.put_back(line)
        elif kind == "origin":
            answer = self._origin.command(fill(step["origin"]))
            if not self._matcher.matches(fill(step.get("answers", {MORE: True})), answer):
                raise Mismatch(f"the origin answered {json.dumps(answer)}")
        elif kind == "close":
            conversation.close_input()
        elif kind == "exit":
            if (line := conversation.next()) is not None:
                raise Mismatch(f"expected the end of output, got {json.dumps(line)}")
            if (status := conversation.exit_status()) != step["exit"]:
                raise Mismatch(f"exit status {status} instead of {step['exit']}")

    def _expect(self, expected: list[Any]) -> None:
        """As many lines as are expected, in any order."""
        expected = list(expected)
        while expected:
            line = self._conversation.next()
            match = next((each for each in expected if line is not None and self._matches(each, line)), None)
            if match is None:
                wanted = "\n      or ".join(json.dumps(each) for each in expected)
                raise Mismatch(f"\nexpected {wanted}\n     got {json.dumps(line)}")
            expected.remove(match)

    def _matches(self, expected: Any, line: Any) -> bool:
        line = without_version(line)
        if not isinstance(expected, list):
            return self._matcher.matches(expected, line)
        if not isinstance(line, list) or len(line) != len(expected):
            return False
        # The responses of a batch come in any order.
        rest = list(line)
        for each in expected:
            found = next((answer for answer in rest if self._matcher.matches(each, answer)), None)
            if found is None:
                return False
            rest.remove(found)
        return True


def main() -> int:
    parser = argparse.ArgumentParser(description="Plays the golden conversations against the built worker.")
    parser.add_argument("--worker", default=os.environ.get("IMAGEWORKER", ROOT / ".build/release/imageworker"))
    parser.add_argument("transcripts", nargs="*", type=Path)
    arguments = parser.parse_args()
    transcripts = arguments.transcripts or sorted((ROOT / "protocol" / "transcripts").glob("*.jsonl"))
    wire = Wire()
    failures = 0
    for transcript in transcripts:
        try:
            Player(str(arguments.worker), transcript, wire).play()
            print(f"played  {transcript.stem}", flush=True)
        except Mismatch as mismatch:
            failures += 1
            print(f"FAILED  {mismatch}", flush=True)
    print(f"{len(transcripts) - failures} of {len(transcripts)} transcripts hold")
    return 1 if failures or not transcripts else 0


if __name__ == "__main__":
    sys.exit(main())
