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


PRINTED = {"--version", "--help", "--describe"}
"""Options that print something and exit."""


@dataclass
class Option:
    flag: str
    value: str
    default: str
    meaning: str
    member: str = ""


def help_options() -> list[Option]:
    """The option lines of `--help`: `  --flag VALUE   meaning [default]`."""
    rows = re.findall(r"(?m)^  (--[a-z-]+)(?:, -h)? ?(\S+(?: \S+)*)?  +(.*?)(?: \[(.*)\])?$", output("--help"))
    return [Option(flag, value, default, meaning) for flag, value, meaning, default in rows]


def handbook_options() -> list[Option]:
    """The option table of protocol/README.md: option, default, meaning, name at run time."""
    handbook = (ROOT / "protocol" / "README.md").read_text()
    rows = re.findall(r"(?m)^\| `(--[a-z-]+) ?(.*)` \| (.*) \| (.*) \| (.*?) ?\|$", handbook.replace("\\|", "¦"))
    plain = [[cell.replace("`", "").replace("¦", "|") for cell in row] for row in rows]
    return [Option(*row) for row in plain if row[0] not in PRINTED]


class Description(unittest.TestCase):
    def result(self, method: str) -> Any:
        with tempfile.TemporaryDirectory() as cache:
            answer = output("--cache-dir", cache, text=json.dumps({"id": 1, "method": method}))
        return json.loads(answer)["result"]

    def test_describe_prints_the_document(self) -> None:
        self.assertEqual(json.loads(output("--describe")), DOCUMENT)

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

    def test_the_handbook_has_the_documents_options(self) -> None:
        handbook = handbook_options()
        self.assertEqual(len(handbook), len(DOCUMENT["x-options"]) - len(PRINTED))
        for row, entry in zip(handbook, DOCUMENT["x-options"], strict=False):
            with self.subTest(entry["flag"]):
                self.assertEqual((row.flag, row.value), (entry["flag"], entry.get("value", "")))
                self.assertEqual(row.default, entry.get("default", "none"))
                self.assertEqual(row.member, entry.get("member", ""))
                self.assertEqual(f"{row.meaning}. "[: len(entry["summary"]) + 2], f"{entry['summary']}. ")

    def test_configure_has_the_documents_members(self) -> None:
        members = [option["member"] for option in DOCUMENT["x-options"] if "member" in option]
        self.assertEqual(list(self.result("configure")), members)

    def test_initialize_has_the_documents_methods_and_events(self) -> None:
        result = self.result("initialize")
        self.assertEqual(result["methods"], [method["name"] for method in DOCUMENT["methods"]])
        self.assertEqual(result["events"], [event["name"] for event in DOCUMENT["x-events"]])


if __name__ == "__main__":
    unittest.main()
