"""Each example runs by the command in its README, from another directory."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading
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

    def test_load_list_draws_a_bar_on_a_terminal_and_prints_paths(self) -> None:
        urls = [f"{self.origin.url}/image/1.png", f"{self.origin.url}/image/2.gif", f"{self.origin.url}/html"]
        run = self.run_example("shell/load-list", text="\n".join(urls) + "\n\n")
        self.assertEqual(run.returncode, 3, run.stdout)
        self.assertNotIn("[", run.stdout)
        self.assertIn(f"notAnImage: {urls[2]}", run.stdout)
        self.assertRegex(run.stdout, rf"(?m)^/.*\.gif\t{urls[1]}$")
        (self.folder / "list").write_text("\n".join(urls))
        command = f"'{EXAMPLES}/shell/load-list' < '{self.folder}/list'"
        terminal = subprocess.run(
            ["script", "--quiet", "--return", "--command", command, "/dev/null"],
            env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")},
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        self.assertEqual(terminal.returncode, 3)
        self.assertIn("[########################################] 3 of 3, 1 failed", terminal.stdout)

    def test_mirror_copies_what_is_new_removes_what_is_gone_and_keeps_what_fails(self) -> None:
        urls = [f"{self.origin.url}/image/{n}.png" for n in range(3)]
        self.assertEqual(self.run_example("shell/mirror", "copy", text="\n".join(urls)).returncode, 0)
        files = {path.name: path.stat() for path in (self.folder / "copy").glob("*.png")}
        self.assertEqual(len(files), 3)
        self.origin.command({"do": "script", "target": "/image/3.png", "answers": ["/image/3.png?status=404"]})
        text = "\n".join([*urls[:2], f"{self.origin.url}/image/3.png"])
        run = self.run_example("shell/mirror", "copy", text=text)
        self.assertEqual(run.returncode, 3, run.stdout)
        left = {path.name: path.stat() for path in (self.folder / "copy").glob("*.png")}
        self.assertEqual(len(left), 2)
        for name, status in left.items():
            self.assertEqual(status.st_ino, files[name].st_ino, "not copied again")

    def test_watch_shows_what_passes_and_passes_it_on(self) -> None:
        request = json.dumps({"id": 1, "method": "load", "params": {"url": f"{self.origin.url}/image/1.png"}})
        run = subprocess.run(
            [str(EXAMPLES / "shell" / "watch")],
            env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")},
            input=request,
            capture_output=True,
            text=True,
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(json.loads(run.stdout)["result"]["format"], "png")
        self.assertIn('1 started {"attempt":1}', run.stderr)

    def test_prefetch_sitemap_takes_the_images_that_it_names(self) -> None:
        pages = f"<url><loc>{self.origin.url}/page.html</loc><image:image><image:loc>{self.origin.url}/image/1.png?x-a=1&amp;x-b=2"
        sitemap = f"<urlset>{pages}</image:loc></image:image></url><url>\n<loc>{self.origin.url}/image/2.gif</loc></url></urlset>"

        class Sitemap(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(sitemap)))
                self.end_headers()
                self.wfile.write(sitemap.encode())

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Sitemap) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            run = self.run_example("shell/prefetch-sitemap", f"http://127.0.0.1:{server.server_address[1]}/sitemap.xml")
            server.shutdown()
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("2 downloaded, 0 cached, 0 failed", run.stdout)
        targets = {entry["target"] for entry in self.origin.command({"do": "log", "path": "/image"})["exchanges"]}
        self.assertEqual(targets, {"/image/1.png?x-a=1&x-b=2", "/image/2.gif"})


if __name__ == "__main__":
    unittest.main()
