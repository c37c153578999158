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

from origin_process import Origin
from package import ROOT

EXAMPLES = ROOT / "examples"


class Running(unittest.TestCase):
    """A folder to stand in, and an origin to load from."""

    def setUp(self) -> None:
        self.exits = contextlib.ExitStack()
        self.addCleanup(self.exits.close)
        self.folder = Path(self.exits.enter_context(tempfile.TemporaryDirectory()))
        self.origin = self.exits.enter_context(Origin())

    def run_example(self, name: str, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(EXAMPLES / name), *arguments],
            cwd=self.folder,
            env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")},
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


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

    def test_a_contact_sheet_has_a_place_for_each(self) -> None:
        urls = [f"{self.origin.url}/image/{number}.png?width=400&height=300" for number in (1, 2)]
        run = self.run_example("shell/contact-sheet", text="\n".join([urls[0], f"{self.origin.url}/html", urls[1]]))
        self.assertEqual(run.returncode, 0, run.stdout)
        places = [line for line in run.stdout.splitlines() if line.startswith("<a ")]
        self.assertEqual(["data:image/webp;base64," in place for place in places], [True, False, True])
        self.assertIn("notAnImage", places[1])

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

    def test_the_here_document_of_the_readme_prints_what_it_says(self) -> None:
        readme = (ROOT / "README.md").read_text()
        _, _, rest = readme.partition("imageworker <<'LINES'\n")
        requests, _, rest = rest.partition("LINES\n")
        said, _, _ = rest.partition("```")
        worker = os.environ.get("IMAGEWORKER", str(ROOT / ".build" / "release" / "imageworker"))
        told = subprocess.run(
            [worker, "--cache-dir", str(self.folder)], input=requests, capture_output=True, text=True, check=True
        ).stdout

        def lasting(text: str) -> list[str]:
            """Without what differs from run to run: the order of the lines, the file's name, the times."""
            lines = [json.loads(line) for line in text.splitlines()]
            for line in lines:
                for member in ("path", "timing"):
                    if "result" in line:
                        line["result"][member] = "-"
            return sorted(json.dumps(line) for line in lines)

        self.assertEqual(lasting(said), lasting(told))

    def test_shell_here_document(self) -> None:
        run = self.run_example("shell/here-document", f"{self.origin.url}/image/1.png")
        self.assertEqual(run.returncode, 0, run.stdout)
        answers = {answer["id"]: answer["result"] for answer in map(json.loads, run.stdout.splitlines())}
        self.assertEqual(answers[1]["format"], "png")
        self.assertIs(answers[2]["disk"], False)


@unittest.skipIf(shutil.which("jq") is None, "there is no jq here")
class ShellRecipes(Running):
    def test_save_list(self) -> None:
        urls = [f"{self.origin.url}/image/1.png", f"{self.origin.url}/image/2.gif", f"{self.origin.url}/html"]
        run = self.run_example("shell/save-list", "pictures", text="\n".join(urls))
        self.assertEqual(run.returncode, 3, run.stdout)
        lines = sorted(line.split("\t") for line in run.stdout.splitlines())
        self.assertEqual([line[1] for line in lines], ["png", "gif", "FAILED"])
        self.assertEqual(sorted(path.name for path in (self.folder / "pictures").iterdir()), ["1", "2"])
        self.assertEqual((self.folder / "pictures" / "2").read_bytes()[:3], b"GIF")

    def test_progress(self) -> None:
        run = self.run_example("shell/progress", f"{self.origin.url}/image/1.png?bytes=100000")
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertRegex(run.stdout, r"(?m)^1: \d+ %$")
        self.assertRegex(run.stdout, r"(?m)^1: /.*\.png$")

    def test_prefetch(self) -> None:
        urls = [f"{self.origin.url}/image/1.png", f"{self.origin.url}/image/2.png?status=404"]
        run = self.run_example("shell/prefetch", text="\n".join(urls))
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("1 downloaded, 0 cached, 1 failed", run.stdout)

    def test_is_image(self) -> None:
        self.assertEqual(self.run_example("shell/is-image", f"{self.origin.url}/image/1.png").returncode, 0)
        self.assertEqual(self.run_example("shell/is-image", f"{self.origin.url}/html").returncode, 3)


if __name__ == "__main__":
    unittest.main()
