"""The built worker says of itself what protocol/openrpc.json says of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import unittest
from typing import Any

from package import ROOT

WORKER = os.environ.get("IMAGEWORKER", str(ROOT / ".build" / "release" / "imageworker"))
DOCUMENT: dict[str, Any] = json.loads((ROOT / "protocol" / "openrpc.json").read_text("ascii"))


def output(*options: str, text: str = "") -> str:
    return subprocess.run([WORKER, *options], input=text, capture_output=True, text=True, check=True).stdout


class Description(unittest.TestCase):
    def result(self, method: str) -> Any:
        with tempfile.TemporaryDirectory() as cache:
            answer = output("--cache-dir", cache, text=json.dumps({"id": 1, "method": method}))
        return json.loads(answer)["result"]

    def test_describe_prints_the_document(self) -> None:
        self.assertEqual(json.loads(output("--describe")), DOCUMENT)

    def test_help_has_the_documents_options(self) -> None:
        told = re.findall(r"(?m)^\s*(--[a-z-]+)", output("--help"))
        self.assertEqual(sorted(told), sorted(option["flag"] for option in DOCUMENT["x-options"]))

    def test_configure_has_the_documents_members(self) -> None:
        members = [option["member"] for option in DOCUMENT["x-options"] if "member" in option]
        self.assertEqual(list(self.result("configure")), members)

    def test_initialize_has_the_documents_methods_and_events(self) -> None:
        result = self.result("initialize")
        self.assertEqual(result["methods"], [method["name"] for method in DOCUMENT["methods"]])
        self.assertEqual(result["events"], [event["name"] for event in DOCUMENT["x-events"]])


if __name__ == "__main__":
    unittest.main()
