"""The transcripts as documents: well-formed, covering the protocol, and right in what the host sends."""

from __future__ import annotations

import json
import unittest
from typing import Any, Iterator

from package import ROOT

try:
    from play_transcripts import STEPS, Matcher
    from wire import Wire
except ModuleNotFoundError as missing:
    raise unittest.SkipTest(f"there is no {missing.name} here") from None

TRANSCRIPTS = sorted((ROOT / "protocol" / "transcripts").glob("*.jsonl"))


def steps_of_all() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    matcher = Matcher({"origin": "http://127.0.0.1:8080", "folder": "/folder"})
    for transcript in TRANSCRIPTS:
        lines = transcript.read_text("ascii").splitlines()
        yield transcript.name, [matcher.fill(json.loads(line)) for line in lines]


def messages(steps: list[dict[str, Any]], *kinds: str) -> Iterator[Any]:
    """Single messages of these kinds of steps, batches and unordered groups taken apart."""
    for step in steps:
        for kind in kinds:
            value = step.get(kind, [])
            yield from value if isinstance(value, list) else [value]


class Transcripts(unittest.TestCase):
    wire = Wire()

    def test_each_line_is_one_step(self) -> None:
        for name, steps in steps_of_all():
            for number, step in enumerate(steps, 1):
                with self.subTest(transcript=name, line=number):
                    self.assertEqual(len(step.keys() & STEPS), 1)
                    self.assertLessEqual(step.keys() - STEPS, {"answers"})
                    if "start" in step:
                        self.assertEqual(number, 1)
            self.assertIn("exit", steps[-1], name)

    def test_each_method_and_event_occurs(self) -> None:
        sent, told = set(), set()
        for _, steps in steps_of_all():
            sent |= {each.get("method") for each in messages(steps, "host") if isinstance(each, dict)}
            told |= {each.get("method") for each in messages(steps, "worker", "unordered", "repeat")}
        self.assertLessEqual(set(self.wire.methods), sent)
        self.assertLessEqual(set(self.wire.events), told)

    def test_params_hold_by_the_schema_unless_the_worker_refuses_them(self) -> None:
        for name, steps in steps_of_all():
            errors = {
                json.dumps(each["id"]): each["error"]["data"].get("kind")
                for each in messages(steps, "worker", "unordered")
                if "error" in each and isinstance(each["error"]["data"], dict)
            }
            for request in messages(steps, "host"):
                if not isinstance(request, dict) or request.get("method") not in self.wire.methods:
                    continue
                if errors.get(json.dumps(request.get("id"))) == "invalidParams":
                    continue
                with self.subTest(transcript=name, request=request):
                    self.wire.check_params(request["method"], request.get("params", {}))


if __name__ == "__main__":
    unittest.main()
