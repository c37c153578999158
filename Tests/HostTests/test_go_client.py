"""examples/go/imageworker.go: client_tests.py and clients/go/program_test.go."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import unittest

from client_tests import CLIENTS, ClientTests
from package import ROOT


@unittest.skipIf(shutil.which("go") is None, "there is no go here")
class GoClient(ClientTests, unittest.TestCase):
    source = ROOT / "examples" / "go" / "imageworker.go"
    without = {"process": "a struct has no outputs of another type, and leaves out those without a name"}

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.command, cls.demo = [f"{folder.name}/program"], [f"{folder.name}/demo"]
        subprocess.run(["go", "build", "-o", *cls.command, "."], cwd=CLIENTS / "go", check=True)
        subprocess.run(["go", "build", "-o", *cls.demo, "./demo"], cwd=cls.source.parent, check=True)

    def test_goroutines_contexts_handlers_and_files(self) -> None:
        race = ["-race"] if shutil.which("gcc") else []
        self.check("go", "test", "-count=1", *race, ".", cwd=CLIENTS / "go")

    def test_vet_and_format(self) -> None:
        for folder in (self.source.parent, CLIENTS / "go"):
            subprocess.run(["go", "vet", "./..."], cwd=folder, check=True)
            self.assertEqual(subprocess.run(["gofmt", "-l", "."], cwd=folder, stdout=subprocess.PIPE).stdout, b"")


if __name__ == "__main__":
    unittest.main()
