"""The built worker with `--robots obey`, and servers whose robots.txt is slow, huge or missing.

IMAGEWORKER=PATH python -m unittest test_robots
"""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
import time
import unittest
import zlib
from pathlib import Path
from typing import Iterator, Sequence

from bomb_files import png
from hostile_server import answer
from test_decoders import Worker

IMAGE = png(1, zlib.compress(b"\0\0"))
NONE = answer(b"", "404 Not Found")


class Server:
    """Answers the requests for robots.txt, and the others, in turn, the last answer again and again."""

    def __init__(self, *robots: bytes, images: Sequence[bytes] = (answer(IMAGE),)) -> None:
        self.paths: list[str] = []
        self._robots, self._images = list(robots), list(images)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.base = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=[self._listener.accept()[0]], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError), connection.makefile("rb") as lines:
            while request := lines.readline():
                while lines.readline().strip():
                    pass
                path = request.split()[1].decode()
                self.paths.append(path)
                answers = self._robots if path == "/robots.txt" else self._images
                connection.sendall(answers.pop(0) if len(answers) > 1 else answers[0])

    def close(self) -> None:
        self._listener.close()


class Silent:
    """Accepts connections, and answers nothing."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.base = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        self._listener.close()


@contextlib.contextmanager
def worker(*options: str) -> Iterator[Worker]:
    with tempfile.TemporaryDirectory() as folder, Worker(Path(folder), "--robots", "obey", *options) as it:
        yield it


class Robots(unittest.TestCase):
    def server(self, *robots: bytes, image: bytes = answer(IMAGE)) -> Server:
        server = Server(*robots, images=[image])
        self.addCleanup(server.close)
        return server

    def silent(self) -> Silent:
        server = Silent()
        self.addCleanup(server.close)
        return server

    def test_silent_servers_delay_no_other(self) -> None:
        """The healthy load ends while the others wait: their time-out is an hour."""
        healthy, silent = self.server(NONE), [self.silent() for _ in range(64)]
        with worker("--timeout", "1h") as it:
            for server in silent:
                it.send("load", url=server.base + "/1.png")
            self.assertIn("result", it.call("load", url=healthy.base + "/1.png"))
            states = it.call("stats")["result"]["origins"]
            waiting = {state["origin"]: state.get("reason") for state in states}
            for server in silent:
                self.assertIn(waiting[server.base], ("robots", "unresponsive"))
            it.process.kill()

    def test_the_time_out_is_that_of_the_load(self) -> None:
        server = self.silent()
        with worker("--timeout", "100ms", "--retries", "0") as it:
            error = it.call("load", url=server.base + "/1.png")["error"]["data"]
            self.assertEqual((error["kind"], error["retryable"]), ("timeout", True))

    def test_a_dead_server_is_told_as_that(self) -> None:
        server = self.silent()
        server.close()
        with worker("--retries", "0") as it:
            refused = it.call("load", url=server.base + "/1.png")["error"]["data"]
            self.assertEqual((refused["kind"], refused["retryable"]), ("connect", True))
            unknown = it.call("load", url="http://unknown.invalid/1.png")["error"]["data"]
            self.assertEqual((unknown["kind"], unknown["retryable"]), ("resolve", False))

    def test_a_busy_server_is_asked_again_after_its_time(self) -> None:
        server = self.server(answer(b"", "503 Service Unavailable", "Retry-After: 1"), NONE)
        with worker() as it:
            start = time.monotonic()
            self.assertIn("result", it.call("load", url=server.base + "/1.png"))
            self.assertGreaterEqual(time.monotonic() - start, 0.9)
        self.assertEqual(server.paths, ["/robots.txt", "/robots.txt", "/1.png"])

    def test_a_server_that_stays_busy_fails_the_loads_until_it_is_well(self) -> None:
        busy = answer(b"", "503 Service Unavailable")
        server = self.server(busy, NONE)
        with worker("--retries", "0") as it:
            error = it.call("load", url=server.base + "/1.png")["error"]["data"]
            self.assertEqual((error["kind"], error["status"], error["retryable"]), ("http", 503, True))
            self.assertIn("result", it.call("load", url=server.base + "/1.png"))

    def test_a_huge_file_is_applied_up_to_its_limit(self) -> None:
        rules = b"User-agent: *\nDisallow: /first\n" + b"Disallow: /other/*.png$\n" * 40_000 + b"Disallow: /last\n"
        server = self.server(answer(rules))
        with worker() as it:
            error = it.call("load", url=server.base + "/first.png")["error"]["data"]
            self.assertEqual((error["kind"], error["rule"], error["retryable"]), ("robots", "Disallow: /first", False))
            self.assertIn("result", it.call("load", url=server.base + "/last.png"))
        self.assertEqual(server.paths.count("/robots.txt"), 1)

    def test_dates_hide_no_directive(self) -> None:
        for date in ("Saturday, 25-Jun-2050 15:00:00 GMT", "Sat, 25 Jun 2050 15:00:00 GMT", "2050-06-25"):
            image = answer(IMAGE, "200 OK", f"X-Robots-Tag: unavailable_after: {date}, noai")
            with self.subTest(date), worker() as it:
                server = self.server(NONE, image=image)
                error = it.call("load", url=server.base + "/1.png")["error"]["data"]
                self.assertEqual((error["kind"], error["rule"]), ("robots", "X-Robots-Tag: noai"))


if __name__ == "__main__":
    unittest.main()
