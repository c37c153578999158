"""The built worker says of itself what protocol/openrpc.json says of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import unittest
from dataclasses import dataclass
from typing import Any

from package import ROOT

WORKER = os.environ.get("IMAGEWORKER", str(ROOT / ".build" / "release" / "imageworker"))
DOCUMENT: dict[str, Any] = json.loads((ROOT / "protocol" / "openrpc.json").read_text("ascii"))


def output(*options: str, text: str = "") -> str:
    return subprocess.run([WORKER, *options], input=text, capture_output=True, text=True, check=True).stdout


PRINTED = {"--version", "--help", "--describe", "--self-test"}
"""Options that print something and exit."""


@dataclass
class Option:
    flag: str
    value: str
    default: str
    meaning: str


def help_options() -> list[Option]:
    """The option lines of `--help`: `  --flag VALUE   meaning [default]`."""
    rows = re.findall(r"(?m)^  (--[a-z-]+)(?:, -h)? ?(\S+(?: \S+)*)?  +(.*?)(?: \[(.*)\])?$", output("--help"))
    return [Option(flag, value, default, meaning) for flag, value, meaning, default in rows]


class Description(unittest.TestCase):
    def result(self, method: str) -> Any:
        with tempfile.TemporaryDirectory() as cache:
            answer = output("--cache-dir", cache, text=json.dumps({"id": 1, "method": method}))
        return json.loads(answer)["result"]

    def test_describe_prints_the_document(self) -> None:
        self.assertEqual(json.loads(output("--describe")), DOCUMENT)

    def test_the_document_has_the_versions(self) -> None:
        self.assertEqual(f"imageworker {DOCUMENT['info']['version']}\n", output("--version"))
        self.assertEqual(self.result("initialize")["server"]["version"], DOCUMENT["info"]["version"])
        self.assertEqual(self.result("initialize")["protocolVersion"], DOCUMENT["x-protocol-version"])

    def test_help_has_the_documents_options(self) -> None:
        version = output("--version").split()[1]
        listed = [option for option in help_options() if option.flag not in PRINTED]
        for option in listed:
            option.default = option.default.replace(version, "VERSION")
        documented = [
            Option(
                entry["flag"],
                entry.get("value", ""),
                "" if entry.get("default") == "off" else entry.get("default", ""),
                entry["summary"],
            )
            for entry in DOCUMENT["x-options"]
            if entry["flag"] not in PRINTED
        ]
        self.assertEqual(listed, documented)
        self.assertEqual(PRINTED & {entry["flag"] for entry in DOCUMENT["x-options"]}, PRINTED)

    def test_configure_has_the_documents_members(self) -> None:
        members = [option["member"] for option in DOCUMENT["x-options"] if "member" in option]
        self.assertEqual(list(self.result("configure")), members)

    def test_initialize_has_the_documents_methods_and_events(self) -> None:
        result = self.result("initialize")
        self.assertEqual(result["methods"], [method["name"] for method in DOCUMENT["methods"]])
        self.assertEqual(result["events"], [event["name"] for event in DOCUMENT["x-events"]])


if __name__ == "__main__":
    unittest.main()
