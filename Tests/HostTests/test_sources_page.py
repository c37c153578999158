"""Sources/README.md names files that exist."""

from __future__ import annotations

import re
import unittest
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "Sources"
NAMED = re.compile(r"`((?:\w[\w+-]*/)+(?:[\w+]+\.swift)?)`")


class SourcesPage(unittest.TestCase):
    def test_every_named_file_and_folder_exists(self) -> None:
        names = set(NAMED.findall((SOURCES / "README.md").read_text()))
        self.assertGreater(len(names), 30)
        missing = [name for name in names if not (SOURCES / name).exists() and not (SOURCES.parent / name).exists()]
        self.assertEqual(missing, [])

    def test_every_module_is_in_the_table(self) -> None:
        page = (SOURCES / "README.md").read_text()
        modules = [path.name for path in SOURCES.iterdir() if path.is_dir() and not re.match("C[A-Z]", path.name)]
        self.assertEqual([name for name in modules if f"`Sources/{name}`" not in page], [])

    def test_every_reason_to_wait_is_in_the_table(self) -> None:
        page = (SOURCES / "README.md").read_text()
        source = (SOURCES / "Loading/Scheduling/OriginState.swift").read_text()
        cases = re.search(r"enum WaitReason.*?\n}", source, re.DOTALL)
        assert cases
        reasons = re.findall(r"\w+", " ".join(re.findall(r"^  case (.*)$", cases[0], re.MULTILINE)))
        self.assertGreater(len(reasons), 10)
        self.assertEqual([reason for reason in reasons if f"`{reason}`" not in page], [])

    def test_every_phase_of_a_job_is_in_the_table(self) -> None:
        page = (SOURCES / "README.md").read_text()
        cases = re.search(r"enum Phase \{\s+case (.*)", (SOURCES / "Loading/Scheduling/Scheduler.swift").read_text())
        assert cases
        self.assertEqual([phase for phase in cases[1].split(", ") if f"| `{phase}` |" not in page], [])


if __name__ == "__main__":
    unittest.main()
