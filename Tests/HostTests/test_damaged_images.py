"""The built worker with images that arrive incomplete: they are loaded again.

IMAGEWORKER=PATH python -m unittest test_damaged_images
"""

from __future__ import annotations

import contextlib
import tempfile
import unittest
import zlib
from pathlib import Path
from typing import Any, Iterator

from bomb_files import png
from hostile_server import Connection, RawServer, answer
from test_decoders import Worker

ROWS = b"".join(b"\0" + bytes((row * column) % 251 for column in range(40)) for row in range(320))
WHOLE = png(320, zlib.compress(ROWS))
CUT = WHOLE[: len(WHOLE) // 2]
WANTS: dict[str, dict[str, Any]] = {
    "transform": {"transform": {"width": 8}},
    "pixels": {"deliver": "pixels"},
    "validate": {"validate": "decode"},
    "facts": {"facts": ["perceptualHash"]},
}


class Server(RawServer):
    """Answers one request of each connection, with the bodies in order, the last of them for ever."""

    def __init__(self, *bodies: bytes, has_length: bool = True) -> None:
        self.heads: list[bytes] = []
        self._bodies, self._has_length = bodies, has_length
        super().__init__(self._answer)

    def __enter__(self) -> Server:
        super().__enter__()
        return self

    def _answer(self, connection: Connection) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            arrived = connection.recv(1 << 16)
            if not arrived:
                return
            head += arrived
        body = self._bodies[min(len(self.heads), len(self._bodies) - 1)]
        self.heads.append(head.lower())
        whole = answer(body, "200 OK", "Connection: close", "Cache-Control: max-age=600", 'ETag: "a"')
        length = f"Content-Length: {len(body)}\r\n".encode()
        connection.sendall(whole if self._has_length else whole.replace(length, b""))


@contextlib.contextmanager
def worker(*options: str) -> Iterator[Worker]:
    with tempfile.TemporaryDirectory() as folder, Worker(Path(folder), *options) as it:
        yield it


def outcome(response: dict[str, Any]) -> str:
    return str(response["error"]["data"]["kind"] if "error" in response else response["result"]["cache"])


class CutByTheEndOfItsConnection(unittest.TestCase):
    def test_it_is_retried(self) -> None:
        with Server(CUT, WHOLE, has_length=False) as server, worker() as client:
            response = client.call("load", url=server.url)
            self.assertEqual(Path(response["result"]["path"]).read_bytes(), WHOLE)
            self.assertEqual(len(server.heads), 2)
            self.assertIn(b"range: bytes=%d-" % len(CUT), server.heads[1])

    def test_it_is_truncated_without_a_retry_and_never_served(self) -> None:
        with Server(CUT, has_length=False) as server, worker("--retries", "0") as client:
            for _ in range(2):
                self.assertEqual(outcome(client.call("load", url=server.url)), "truncated")
            self.assertEqual(outcome(client.call("load", url=server.url, validate="none")), "miss")


class DamagedOriginal(unittest.TestCase):
    def test_it_is_loaded_again_whole(self) -> None:
        for name, wanted in WANTS.items():
            with self.subTest(name), Server(CUT, WHOLE) as server, worker() as client:
                self.assertEqual(outcome(client.call("load", url=server.url)), "miss")
                cached = client.call("load", url=server.url, cache="only-if-cached", **wanted)
                self.assertEqual(outcome(cached), "corrupt")
                self.assertEqual(outcome(client.call("load", url=server.url, **wanted)), "miss")
                self.assertEqual(len(server.heads), 2)
                self.assertNotIn(b"if-none-match", server.heads[1])
                self.assertIn(outcome(client.call("load", url=server.url, **wanted)), ("memory", "disk"))

    def test_loads_at_the_same_time_share_the_transfer(self) -> None:
        with Server(CUT, WHOLE) as server, worker() as client:
            client.call("load", url=server.url)
            for _ in range(4):
                client.send("load", url=server.url, transform={"width": 7})
            self.assertEqual({outcome(client.receive()) for _ in range(4)} - {"memory", "disk"}, {"miss"})
            self.assertEqual(len(server.heads), 2)

    def test_an_image_that_is_damaged_at_its_server_is_transferred_once_more_only(self) -> None:
        for options in ((), ("--disk-limit", "0")):
            with self.subTest(options), Server(CUT) as server, worker(*options) as client:
                client.call("load", url=server.url)
                for number in range(6):
                    load = client.call("load", url=server.url, transform={"width": 5 + number % 3})
                    self.assertEqual(outcome(load), "corrupt")
                self.assertEqual(len(server.heads), 2)
                client.call("load", url=server.url, transform={"width": 5}, retryFailed=True)
                self.assertEqual(len(server.heads), 3)

    def test_an_image_of_the_host_keeps_its_error(self) -> None:
        with Server(WHOLE) as server, worker() as client, tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "cut.png")
            file.write_bytes(CUT)
            self.assertIn("result", client.call("store", key=server.url, path=str(file)))
            self.assertEqual(outcome(client.call("load", url=server.url, key=server.url, validate="decode")), "corrupt")
            self.assertEqual(server.heads, [])
