"""The server of examples/gallery, without a browser: pages, requests and workers that do as they should not."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import unittest
from pathlib import Path
from urllib.parse import urlsplit

from gallery_server import SERVER, GalleryTest, answer_to, connect, status
from origin_process import PATIENCE, Origin
from package import ROOT

GET = "GET {} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


@unittest.skipIf(shutil.which("node") is None, "there is no node here")
class GalleryServer(GalleryTest):
    def test_what_it_makes_itself(self) -> None:
        command = ["node", "--test", str(Path(__file__).parent / "gallery.test.mjs")]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=2 * PATIENCE)
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_what_is_no_request_is_refused_and_the_server_goes_on(self) -> None:
        address = self.serve("--pictures", "1")
        host = urlsplit(address).netloc
        page = self.page(address)
        for request in (GET.format("//"), GET.format("http://["), page.request_line("no JSON") + "no JSON"):
            self.assertEqual(answer_to(host, request), 400, request)
        self.assertEqual(answer_to(host, GET.format("/list")), 200)

    def test_the_panel_outlives_the_worker(self) -> None:
        dies = """
    if request["method"] == "stats" and not (folder / "died").exists():
        (folder / "died").touch()
        sys.exit(1)
"""
        page = self.page(self.serve("--pictures", "1", worker=self.worker(dies)))
        page.event(lambda event: "stats" in event)
        self.assertTrue((self.folder / "died").exists())

    def test_a_look_that_comes_after_its_page_has_gone_loads_nothing(self) -> None:
        address = self.serve("--pictures", "1")
        host = urlsplit(address).netloc
        page = self.page(address)
        body = json.dumps({"shown": [0], "near": []})
        with connect(host) as late:
            late.sendall(page.request_line(body).replace("\r\n", "\r\nExpect: 100-continue\r\n", 1).encode())
            self.assertIn(b"100 Continue", late.recv(1000))
            page.close()
            deadline = time.monotonic() + PATIENCE
            while page.look() != 404:
                self.assertLess(time.monotonic(), deadline, "the server has not seen that the page has gone")
            late.sendall(body.encode())
            self.assertEqual(status(late), 404)

    def test_a_file_whose_reader_has_gone_is_closed(self) -> None:
        large = self.folder / "large.png"
        large.touch()
        os.truncate(large, 1 << 30)
        gives_it = f"""
    if request["method"] == "load":
        answer = {{"result": {{"path": {str(large)!r}}}}}
"""
        address = self.serve("--pictures", "1", worker=self.worker(gives_it))
        host = urlsplit(address).netloc
        page = self.page(address)
        page.look([0])
        name = page.event(lambda event: "image" in event)["image"]
        for _ in range(5):
            self.assertEqual(answer_to(host, GET.format(name)), 200)

        def is_open(descriptor: Path) -> bool:
            try:
                return os.readlink(descriptor) == str(large)
            except FileNotFoundError:
                return False

        deadline = time.monotonic() + PATIENCE
        while any(map(is_open, Path(f"/proc/{self.server}/fd").iterdir())):
            self.assertLess(time.monotonic(), deadline, "the file is still open")
            answer_to(host, GET.format("/list"))

    def test_a_page_that_does_not_read_is_given_up(self) -> None:
        tells_much = """
    if request["method"] == "load":
        answer = {"error": {"code": 2011, "message": "m" * 500_000, "data": {}}}
"""
        page = self.page(self.serve("--pictures", "100", worker=self.worker(tells_much)))
        deadline = time.monotonic() + PATIENCE
        while page.look(range(100)) != 404:
            self.assertLess(time.monotonic(), deadline, "all that it does not read is kept")

    def test_what_has_left_the_screen_but_is_near_goes_last(self) -> None:
        with Origin() as origin:
            held = (f"{origin.url}/image/{n}.png?hold=gate" for n in range(101))
            page = self.page(self.serve("--list", self.list_of(held)))

            def waiting(high: int, low: int) -> None:
                expected = {"high": high, "low": low}
                page.event(lambda event: "stats" in event and expected.items() <= event["stats"]["queue"]["waiting"].items())

            page.look(shown=range(100))
            waiting(high=94, low=0)
            page.look(shown=[100], near=range(100))
            waiting(high=1, low=94)
            page.look(shown=range(101))
            waiting(high=95, low=0)
            page.look()
            waiting(high=0, low=0)

    def test_a_list_is_read_as_the_shell_recipes_read_it(self) -> None:
        urls = self.list_of(["\ufeff# a list\r", " https://example.com/0 \r", "", "https://example.com/1"])
        loads = """
    if request["method"] == "load":
        answer = {"error": {"code": 2011, "message": request["params"]["url"], "data": {}}}
"""
        page = self.page(self.serve("--list", urls, worker=self.worker(loads)))
        page.look([0, 1, 2])
        told = [page.event(lambda event: "error" in event) for _ in range(2)]
        self.assertEqual({(event["n"], event["error"]) for event in told}, {(n, f"https://example.com/{n}") for n in range(2)})

    def test_what_cannot_be_done_is_told_in_one_line(self) -> None:
        busy = self.exits.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        empty = self.list_of(["# nothing"])
        for arguments, status, reason in (
            (["--bogus"], 64, "'--bogus'"),
            (["stray"], 64, "'stray'"),
            (["--port", "abc"], 64, "--port abc is not a number"),
            (["--port", "99999"], 64, "--port 99999 is not a number"),
            (["--side", "0"], 64, "--side 0 is not a number"),
            (["--pictures", "-1"], 64, "'--pictures'"),
            (["--", "--bogus"], 64, "--bogus"),
            (["--list", "/nope"], 66, "/nope"),
            (["--list", empty], 65, "is empty"),
            (["--port", str(busy)], 69, f"port {busy} is in use"),
            (["--"], 69, "/nope"),
        ):
            with self.subTest(arguments=arguments):
                environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder)}
                if arguments == ["--"]:
                    environment["IMAGEWORKER"] = "/nope"
                run = subprocess.run([str(SERVER), *arguments], env=environment, capture_output=True, text=True)
                self.assertEqual((run.returncode, run.stdout), (status, ""), run.stderr)
                self.assertRegex(run.stderr, r"^gallery: .*\n$")
                self.assertIn(reason, run.stderr)

    def test_help_has_all_options(self) -> None:
        for option in ("-h", "--help"):
            run = subprocess.run([str(SERVER), option], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            for name in ("--list", "--pictures", "--port", "--side", "-- WORKER"):
                self.assertIn(name, run.stdout)

    def test_a_path_may_have_spaces(self) -> None:
        copy = self.folder / "ex amples é"
        shutil.copytree(ROOT / "examples" / "gallery", copy / "gallery")
        shutil.copytree(ROOT / "examples" / "node", copy / "node")
        address = self.serve("--pictures", "1", script=copy / "gallery" / "server.mjs", worker=self.worker(""))
        self.assertEqual(answer_to(urlsplit(address).netloc, GET.format("/")), 200)


if __name__ == "__main__":
    unittest.main()
