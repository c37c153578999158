"""examples/ruby/imageworker.rb: client_tests.py and clients/own.rb."""

from __future__ import annotations

import shutil
import unittest

from client_tests import CLIENTS, ClientTests
from package import ROOT


@unittest.skipIf(shutil.which("ruby") is None, "there is no ruby here")
class RubyClient(ClientTests, unittest.TestCase):
    command = ["ruby", "-w", str(CLIENTS / "program.rb")]
    demo = [str(ROOT / "examples" / "ruby" / "demo.rb")]
    source = ROOT / "examples" / "ruby" / "imageworker.rb"

    def test_threads_timeouts_forks_and_files(self) -> None:
        self.check("ruby", "-w", str(CLIENTS / "own.rb"), str(self.folder / "cache"))


if __name__ == "__main__":
    unittest.main()
