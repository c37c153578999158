"""examples/php/ImageWorker.php: client_tests.py."""

from __future__ import annotations

import shutil
import unittest

from client_tests import CLIENTS, ClientTests
from package import ROOT


@unittest.skipIf(shutil.which("php") is None, "there is no php here")
class PHPClient(ClientTests, unittest.TestCase):
    command = ["php", str(CLIENTS / "program.php")]
    source = ROOT / "examples" / "php" / "ImageWorker.php"


if __name__ == "__main__":
    unittest.main()
