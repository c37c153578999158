"""The benchmark `record` with a few rows, if the small internet can run here, and this Python has Pillow."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from package import ROOT

sys.path.insert(0, str(ROOT / "examples" / "python"))
from imageworker import find_worker  # noqa: E402


@unittest.skipUnless(all(map(importlib.util.find_spec, ("PIL", "numpy"))), "not all of Pillow and numpy are installed")
class Record(unittest.TestCase):
    def test_all_images_of_a_short_list_are_delivered_and_each_part_has_a_cost(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            figures = Path(folder) / "figures.json"
            command = [sys.executable, str(ROOT / "Tests" / "Benchmarks" / "run"), "record", "--rows", "60", "--turns", "1"]
            run = subprocess.run([*command, "--worker", find_worker(), "--json", str(figures)], stdout=subprocess.PIPE, text=True)
            self.assertEqual(run.returncode, 0, run.stdout)
            told = json.loads(figures.read_text())
        if not told["figures"]:
            self.skipTest(told["skipped"][0])
        values = {figure["name"]: figure["value"] for figure in told["figures"]}
        self.assertEqual(values["record: bulk.py, delivered of what can be had"], 100)
        parts = {name for name in values if name.endswith("by itself")}
        self.assertGreaterEqual(len(parts), 8, parts)
        self.assertTrue(all(values[name] > 0 for name in parts), values)
        self.assertIn("| bulk | ", run.stdout)


if __name__ == "__main__":
    unittest.main()
