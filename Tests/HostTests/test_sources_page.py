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


if __name__ == "__main__":
    unittest.main()
