"""examples/php/ImageWorker.php: client_tests.py and clients/own.php."""

from __future__ import annotations

import shutil
import unittest

from client_tests import CLIENTS, ClientTests
from package import ROOT


@unittest.skipIf(shutil.which("php") is None, "there is no php here")
class PHPClient(ClientTests, unittest.TestCase):
    command = ["php", str(CLIENTS / "program.php")]
    demo = [str(ROOT / "examples" / "php" / "demo.php")]
    source = ROOT / "examples" / "php" / "ImageWorker.php"

    def test_many_loads_handlers_forks_and_files(self) -> None:
        (self.folder / "cache").mkdir()
        self.check("php", str(CLIENTS / "own.php"), str(self.folder / "cache"))


if __name__ == "__main__":
    unittest.main()
