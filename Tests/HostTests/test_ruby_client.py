"""examples/ruby/imageworker.rb: client_tests.py, and what only Ruby has: threads, Timeout and forks."""

from __future__ import annotations

import shutil
import unittest

from client_tests import CLIENTS, ClientTests
from package import ROOT


@unittest.skipIf(shutil.which("ruby") is None, "there is no ruby here")
class RubyClient(ClientTests, unittest.TestCase):
    command = ["ruby", "-w", str(CLIENTS / "program.rb")]
    source = ROOT / "examples" / "ruby" / "imageworker.rb"


if __name__ == "__main__":
    unittest.main()
