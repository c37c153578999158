"""Checks that examples/operating is complete."""

from __future__ import annotations

import re
import shutil
import subprocess
import unittest
from typing import Any, Iterator

from document import DOCUMENT, SCHEMAS
from package import ROOT

OPERATING = ROOT / "examples" / "operating"
OF_CLIENTS = {"workerExited", "closed", "incompatible", "protocolMismatch"}
"""Kinds of errors that the Python and Node clients add."""


def figures(schema: dict[str, Any]) -> Iterator[str]:
    """`a.b` for a member of a member, `a[].b` for one of the members of a list; what lies deeper goes with that."""
    for name, member in schema["properties"].items():
        inner, between = (member["items"], "[].") if "properties" in member.get("items", {}) else (member, ".")
        if "properties" in inner:
            yield from (f"{name}{between}{figure}" for figure in inner["properties"])
        else:
            yield name


class Operating(unittest.TestCase):
    def test_each_kind_of_error_has_one_line_with_cause_and_cure(self) -> None:
        rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", (OPERATING / "troubleshooting.md").read_text(), re.MULTILINE)
        kinds = [kind for kind, _, _ in rows]
        self.assertEqual(sorted(kinds), sorted(set(kinds)))
        self.assertEqual(set(kinds), {*SCHEMAS["ErrorKind"]["enum"], *OF_CLIENTS})

    def test_the_hints_are_those_that_the_worker_gives(self) -> None:
        section = (OPERATING / "troubleshooting.md").read_text().partition("## Most loads fail")[2].partition("\n## ")[0]
        rows = re.findall(r"^\| (\w+) \| (.+) \|$", section, re.MULTILINE)[1:]
        self.assertEqual(rows, [(error["kind"], error["hint"]) for error in DOCUMENT["x-errors"] if "hint" in error])
        of_loads = {error["kind"] for error in DOCUMENT["x-errors"]} - {"parseError", "invalidRequest", "methodNotFound", "cancelled"}
        self.assertEqual({kind for kind, _ in rows}, of_loads)

    def test_each_figure_of_stats_is_explained(self) -> None:
        table = (OPERATING / "README.md").read_text().partition("## What `stats` shows")[2].partition("\n## ")[0]
        rows = re.findall(r"^\| (`.+?`) \| .+ \|$", table, re.MULTILINE)
        explained = [figure for row in rows for figure in re.findall(r"`(.+?)`", row)]
        self.assertEqual(sorted(explained), sorted(figures(SCHEMAS["StatsResult"])))

    @unittest.skipIf(shutil.which("systemd-analyze") is None, "there is no systemd here")
    def test_the_units_are_units(self) -> None:
        for unit in OPERATING.glob("*.timer"):
            run = subprocess.run(["systemd-analyze", "verify", str(unit)], stderr=subprocess.PIPE, text=True)
            problems = [line for line in run.stderr.splitlines() if unit.stem in line and "not executable" not in line]
            self.assertEqual(problems, [])


if __name__ == "__main__":
    unittest.main()
