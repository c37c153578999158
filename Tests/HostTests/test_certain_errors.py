"""The built worker: an error that is certain comes at once.

Loads that would wait fail only after their deadline, with another error, so no test measures a time.

IMAGEWORKER=PATH python -m unittest test_certain_errors
"""

from __future__ import annotations

import contextlib
import socket
import tempfile
import unittest
from pathlib import Path
from typing import Any, Iterator

from hostile_server import answer
from test_decoders import Worker
from test_robots import IMAGE, NONE, Server

BUSY = answer(b"", "503 Service Unavailable", "Retry-After: 60")
DEADLINE = 20_000


@contextlib.contextmanager
def worker(*options: str) -> Iterator[Worker]:
    with tempfile.TemporaryDirectory() as folder, Worker(Path(folder), "--eof", "cancel", *options) as it:
        yield it


class Suspended(unittest.TestCase):
    """An origin that has sent Retry-After."""

    def server(self, *answers: bytes) -> Server:
        server = Server(NONE, images=answers)
        self.addCleanup(server.close)
        return server

    def check(self, reply: dict[str, Any]) -> None:
        data = reply["error"]["data"]
        self.assertEqual((data["kind"], data.get("status"), data["retryable"]), ("http", 503, True), reply)
        self.assertEqual(reply["error"]["message"], "the server answered 503")
        self.assertTrue(0 < data["retryAfterMs"] <= 60_000, reply)
        self.assertNotIn("originDown", data)

    def test_a_load_that_cannot_wait_fails_with_the_reason(self) -> None:
        server = self.server(BUSY)
        with worker() as it:
            self.check(it.call("load", url=server.base + "/1.png", deadlineMs=DEADLINE))
            self.check(it.call("load", url=server.base + "/2.png", deadlineMs=DEADLINE))
            self.check(it.call("load", url=server.base + "/2.png", deadlineMs=DEADLINE))
        self.assertEqual(server.paths, ["/1.png"])

    def test_so_does_a_load_that_joins_one_that_can(self) -> None:
        server = self.server(BUSY)
        with worker() as it:
            self.check(it.call("load", url=server.base + "/1.png", retries=0))
            it.send("load", url=server.base + "/2.png")
            self.check(it.call("load", url=server.base + "/2.png", deadlineMs=DEADLINE))

    def test_so_do_the_items_of_a_prefetch(self) -> None:
        server = self.server(BUSY)
        with worker("--deadline", "20s") as it:
            self.check(it.call("load", url=server.base + "/1.png"))
            result = it.call("prefetch", urls=[f"{server.base}/{number}.png" for number in range(10)])["result"]
            self.assertEqual((result["failed"], len(result["errors"])), (10, 10))
            for error in result["errors"]:
                self.assertEqual(error["kind"], "http")

    def test_a_stored_response_that_may_be_served_is(self) -> None:
        stored = answer(IMAGE, "200 OK", "Cache-Control: max-age=0, stale-if-error=3600")
        server = self.server(stored, BUSY)
        with worker() as it:
            self.assertEqual(it.call("load", url=server.base + "/1.png")["result"]["cache"], "miss")
            self.check(it.call("load", url=server.base + "/2.png", deadlineMs=DEADLINE))
            self.assertEqual(it.call("load", url=server.base + "/1.png", deadlineMs=DEADLINE)["result"]["cache"], "stale")
        self.assertEqual(server.paths, ["/1.png", "/2.png"])

    def test_a_crawl_delay_that_nobody_can_wait_for_is_an_error(self) -> None:
        server = Server(answer(b"User-agent: *\nCrawl-delay: 1000000000\n"))
        self.addCleanup(server.close)
        with worker("--robots", "obey") as it:
            self.assertIn("result", it.call("load", url=server.base + "/1.png"))
            error = it.call("load", url=server.base + "/2.png")["error"]
            self.assertEqual(error["data"]["kind"], "overloaded")
            self.assertIn("Crawl-delay: 86400", error["message"])
            self.assertGreater(error["data"]["retryAfterMs"], 120_000)


class NoSuchName(unittest.TestCase):
    def check(self, it: Worker, url: str, attempts: int, retryable: bool) -> None:
        error = it.call("load", url=url)["error"]["data"]
        found = (error["kind"], error["retryable"], error.get("attempts", 1), error.get("originDown"))
        self.assertEqual(found, ("resolve", retryable, attempts, None))

    def test_it_is_not_tried_again_and_no_server_is_down(self) -> None:
        with worker() as it:
            for number in range(8):
                self.check(it, f"http://unknown.invalid/{number}.png", 1, False)
            self.assertEqual(it.call("stats")["result"]["origins"], [])

    def test_neither_is_the_target_of_a_redirect(self) -> None:
        server = Server(NONE, images=[answer(b"", "302 Found", "Location: http://unknown.invalid/")])
        self.addCleanup(server.close)
        with worker() as it:
            self.check(it, server.base + "/1.png", 1, False)
        self.assertEqual(server.paths, ["/1.png"])

    def test_the_system_tells_so_too(self) -> None:
        try:
            socket.getaddrinfo("unknown.invalid", 80)
        except socket.gaierror as error:
            is_certain = error.errno == socket.EAI_NONAME
        with worker("--resolver", "system", "--retries", "0") as it:
            self.check(it, "http://unknown.invalid/1.png", 1, not is_certain)


if __name__ == "__main__":
    unittest.main()
