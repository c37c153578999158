"""What examples/operating says is complete."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import unittest

from package import ROOT

OPERATING = ROOT / "examples" / "operating"
DOCUMENT = json.loads((ROOT / "protocol" / "openrpc.json").read_text())


class Operating(unittest.TestCase):
    def test_each_kind_of_error_has_one_line_with_cause_and_cure(self) -> None:
        rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", (OPERATING / "troubleshooting.md").read_text(), re.MULTILINE)
        kinds = [kind for kind, _, _ in rows]
        self.assertEqual(sorted(kinds), sorted(set(kinds)))
        self.assertEqual(set(kinds), {*DOCUMENT["components"]["schemas"]["ErrorKind"]["enum"], "workerExited"})

    def test_the_figures_of_stats_that_are_explained_are_there(self) -> None:
        stats = DOCUMENT["components"]["schemas"]["StatsResult"]["properties"]
        table = (OPERATING / "README.md").read_text().partition("## What `stats` tells")[2].partition("\n## ")[0]
        rows = re.findall(r"^\| (`.+`) \|", table, re.MULTILINE)
        explained = set(re.findall(r"`(\w+)", " ".join(row.split(" | ")[0] for row in rows)))
        self.assertTrue(explained >= set(stats) - {"uptimeMs", "memory"}, set(stats) - explained)

    @unittest.skipIf(shutil.which("systemd-analyze") is None, "there is no systemd here")
    def test_the_units_are_units(self) -> None:
        for unit in OPERATING.glob("*.timer"):
            run = subprocess.run(["systemd-analyze", "verify", str(unit)], stderr=subprocess.PIPE, text=True)
            problems = [line for line in run.stderr.splitlines() if unit.stem in line and "not executable" not in line]
            self.assertEqual(problems, [])


if __name__ == "__main__":
    unittest.main()
