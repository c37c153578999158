"""Each example runs by the command in its README, from another directory."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Optional, Union

from origin_process import Origin
from package import ROOT

EXAMPLES = ROOT / "examples"
WORKER = os.environ.get("IMAGEWORKER", str(ROOT / ".build" / "release" / "imageworker"))


class Running(unittest.TestCase):
    """A folder to stand in, and an origin to load from."""

    def setUp(self) -> None:
        self.exits = contextlib.ExitStack()
        self.addCleanup(self.exits.close)
        self.folder = Path(self.exits.enter_context(tempfile.TemporaryDirectory()))
        self.origin = self.exits.enter_context(Origin())

    def run_example(
        self, name: str, *arguments: str, text: Union[str, bytes] = "", cwd: Optional[Path] = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        run = subprocess.run(
            [str(EXAMPLES / name), *arguments],
            cwd=cwd or self.folder,
            env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache"), **environment},
            input=text.encode() if isinstance(text, str) else text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return subprocess.CompletedProcess(run.args, run.returncode, run.stdout.decode(errors="replace"))


class Examples(Running):
    def test_quickstart_shows_lines_and_files(self) -> None:
        for cache in ("miss", "disk"):
            run = self.run_example("quickstart")
            self.assertEqual(run.returncode, 0, run.stdout)
            self.assertIn('"progress"' if cache == "miss" else '"cache":', run.stdout)
            files = [line.split() for line in run.stdout.partition("== Where the files are")[2].splitlines() if line]
            self.assertEqual([(line[0], line[6]) for line in files], [("png", cache)] * 3)
            for line in files:
                self.assertEqual(Path(line[7]).stat().st_size, int(line[4]))

    def test_quickstart_with_a_url_that_fails_says_so(self) -> None:
        run = self.run_example("quickstart", f"{self.origin.url}/image/1.png", f"{self.origin.url}/html")
        self.assertEqual(run.returncode, 3, run.stdout)
        self.assertIn("notAnImage", run.stdout)

    def test_python_demo(self) -> None:
        run = self.run_example("python/demo.py", f"{self.origin.url}/image/1.png?bytes=100000")
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("png 32 x 24", run.stdout)
        self.assertEqual(self.run_example("python/demo.py", f"{self.origin.url}/html").returncode, 1)

    @unittest.skipIf(shutil.which("node") is None, "there is no node here")
    def test_node_demo(self) -> None:
        run = self.run_example("node/demo.mjs", f"{self.origin.url}/image/1.png?bytes=100000")
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("png 32 x 24", run.stdout)
        self.assertEqual(self.run_example("node/demo.mjs", f"{self.origin.url}/html").returncode, 1)

    def test_the_here_document_of_the_guide_prints_what_it_says(self) -> None:
        guide = (ROOT / "protocol" / "README.md").read_text()
        _, start, rest = guide.partition("imageworker <<'LINES'\n")
        self.assertTrue(start)
        requests, _, rest = rest.partition("LINES\n")
        said, _, _ = rest.partition("```")
        told = subprocess.run(
            [WORKER, "--cache-dir", str(self.folder)], input=requests, capture_output=True, text=True, check=True
        ).stdout

        def lasting(text: str) -> list[str]:
            """Without what differs from run to run: the order of the lines, the file's name, the times."""
            lines = [json.loads(line) for line in text.splitlines()]
            for line in lines:
                for member in ("path", "expiresAt", "timing"):
                    if "result" in line:
                        line["result"][member] = "-"
            return sorted(json.dumps(line, sort_keys=True) for line in lines)

        self.assertEqual(lasting(said), lasting(told))


if __name__ == "__main__":
    unittest.main()
