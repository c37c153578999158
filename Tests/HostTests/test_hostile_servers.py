"""The built worker with servers that send what nobody asked for, or without end.

IMAGEWORKER=PATH python -m unittest test_hostile_servers
"""

from __future__ import annotations

import contextlib
import queue
import socket
import tempfile
import threading
import unittest
import zlib
from pathlib import Path
from random import Random
from typing import Any, Iterator

from bomb_files import png
from hostile_server import (
    ACK, CONTINUATION, DATA, END_HEADERS, HEADERS, PING, PRIORITY, SETTINGS, WINDOW_UPDATE, Connection, RawServer, answer,
    body, frame, head, http1, http2, literal, repeated, server_context, tls_records, tunnel,
)  # fmt: skip
from origin_process import PATIENCE
from test_decoders import Worker, outcome

IMAGE = png(1, zlib.compress(b"\0\0"))
OTHER = answer(png(1, zlib.compress(b"\0\x80")), "200 OK", "Cache-Control: max-age=86400")
"""The answer that nobody asked for."""

STRAY = {
    "204 with a body": (b"HTTP/1.1 204 No Content\r\n\r\n", OTHER),
    "304 with a body": (b"HTTP/1.1 304 Not Modified\r\n\r\n", OTHER),
    "404 of length 0 with a body": (answer(b"", "404 Not Found"), OTHER),
    "302 of length 0 with a body": (answer(b"", "302 Found"), OTHER),
    "bytes behind the last chunk": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(IMAGE), IMAGE), OTHER,
    ),
    "an answer sent twice": (answer(IMAGE), OTHER),
}  # fmt: skip

FLOODS = {
    "empty DATA": frame(DATA, 0, 1),
    "PING acknowledged": frame(PING, ACK, 0, bytes(8)),
    "SETTINGS": frame(SETTINGS, 0, 0),
    "PRIORITY": frame(PRIORITY, 0, 1, bytes([0, 0, 0, 3, 1])),
    "WINDOW_UPDATE": frame(WINDOW_UPDATE, 0, 0, bytes([0, 0, 0, 1])),
    "unknown type": frame(0xBE, 0, 1),
}


@contextlib.contextmanager
def worker(*options: str) -> Iterator[Worker]:
    with tempfile.TemporaryDirectory() as folder, Worker(Path(folder), "--insecure", "--retries", "0", *options) as it:
        yield it


def picture(response: dict[str, Any]) -> bytes:
    assert "result" in response, response
    return Path(response["result"]["path"]).read_bytes()


class StrayBytes(unittest.TestCase):
    """Bytes behind the end of an answer never become the answer to another request."""

    def check(self, stray: str, together: bool, tls: bool, proxy: bool = False) -> None:
        first, rest = STRAY[stray]
        answered, sent = threading.Event(), threading.Event()
        paths: list[str] = []

        def handle(connection: Connection, path: str) -> None:
            paths.append(path)
            if path != "/stray":
                return connection.sendall(answer(IMAGE))
            if together:
                connection.sendall(first + rest)
            else:
                connection.sendall(first)
                assert answered.wait(PATIENCE)
                connection.sendall(rest)
            sent.set()

        with contextlib.ExitStack() as stack:
            server = stack.enter_context(RawServer(http1(handle), server_context("http/1.1") if tls else None))
            options = []
            if proxy:
                options = ["--proxy", f"http://127.0.0.1:{stack.enter_context(RawServer(tunnel)).port}"]
            client = stack.enter_context(worker(*options))
            client.call("load", url=f"{server.url}/stray")
            answered.set()
            self.assertTrue(sent.wait(PATIENCE))
            for number in range(3):
                self.assertEqual(picture(client.call("load", url=f"{server.url}/{number}")), IMAGE)
            self.assertEqual(paths, ["/stray", "/0", "/1", "/2"])
            self.assertLessEqual(server.connections, 2)

    def test_in_the_same_segment_and_later_plain_and_with_tls(self) -> None:
        for stray in STRAY:
            for together in (True, False):
                for tls in (False, True):
                    with self.subTest(stray, together=together, tls=tls):
                        self.check(stray, together, tls)

    def test_through_a_tunnel(self) -> None:
        for together in (True, False):
            with self.subTest(together=together):
                self.check("an answer sent twice", together, tls=True, proxy=True)

    def test_behind_a_redirect(self) -> None:
        def handle(connection: Connection, path: str) -> None:
            redirect = answer(b"", "302 Found", "Location: /target")
            connection.sendall(answer(IMAGE) if path == "/target" else redirect + OTHER * 200)

        with RawServer(http1(handle)) as server, worker() as client:
            self.assertEqual(picture(client.call("load", url=f"{server.url}/")), IMAGE)

    def test_a_connection_without_any_is_kept(self) -> None:
        for tls in (False, True):
            handler = http1(lambda connection, _: connection.sendall(answer(IMAGE)))
            with RawServer(handler, server_context("http/1.1") if tls else None) as server, worker() as client:
                for number in range(5):
                    self.assertEqual(picture(client.call("load", url=f"{server.url}/{number}")), IMAGE)
                self.assertEqual(server.connections, 1)


class Floods(unittest.TestCase):
    """Endless input outside of any response ends the load, and others do not wait for it.

    A connection that holds the thread is ended. Since libcurl 8.1 some floods no longer hold it: their loads end by
    the timeout.
    """

    def check(self, flood: str, before: bytes) -> None:
        floods: queue.Queue[int] = queue.Queue()

        def pour(connection: Connection, stream: int) -> None:
            pieces = FLOODS[flood] * 50_000
            connection.sendall(before)
            floods.put(stream)
            while True:
                connection.sendall(pieces)

        other = http1(lambda connection, _: connection.sendall(answer(IMAGE)))
        with RawServer(http2(pour), server_context("h2")) as server, RawServer(other) as neighbour:
            with worker("--timeout", "5s", "--retries", "0") as client:
                flooded = client.send("load", url=server.url + "/")
                floods.get(timeout=PATIENCE)
                neighbours = {client.send("load", url=f"{neighbour.url}/{number}") for number in range(20)}
                responses = {response["id"]: response for response in (client.receive() for _ in range(21))}
        for number in neighbours:
            self.assertIn("result", responses[number])
        self.assertIn(responses[flooded]["error"]["data"]["kind"], ("network", "truncated", "timeout"))

    def test_each_frame_before_and_within_an_answer(self) -> None:
        for flood in FLOODS:
            for name, before in {"before": b"", "within": head(1)}.items():
                with self.subTest(flood, where=name):
                    self.check(flood, before)

    def test_the_error_says_so(self) -> None:
        def pour(connection: Connection, stream: int) -> None:
            connection.sendall(head(stream))
            while True:
                connection.sendall(frame(DATA, 0, stream) * 50_000)

        with RawServer(http2(pour), server_context("h2")) as server:
            with worker("--timeout", "5s", "--retries", "0") as client:
                error = client.call("load", url=server.url + "/")["error"]
        if error["data"]["kind"] != "timeout":
            self.assertIn("floods the connection", error["message"])
            self.assertEqual(error["data"]["kind"], "network")


class Endless(unittest.TestCase):
    """Headers and bodies without end, in the smallest pieces."""

    def request(self, client: Worker, url: str, neighbours: list[str]) -> tuple[int, dict[int, Any]]:
        """Loads `url` and then the neighbours, which all succeed."""
        number = client.send("load", url=url)
        numbers = [client.send("load", url=neighbour) for neighbour in neighbours]
        responses: dict[int, Any] = {}
        while not all(neighbour in responses for neighbour in numbers):
            response = client.receive()
            responses[response["id"]] = response
        for neighbour in numbers:
            self.assertEqual(picture(responses[neighbour]), IMAGE)
        return number, responses

    def test_headers(self) -> None:
        begun = frame(HEADERS, 0, 1, b"\x88")
        hints = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 1000
        cases = {
            "CONTINUATION, empty": ("h2", begun, frame(CONTINUATION, 0, 1) * 50_000, "network"),
            "CONTINUATION, fields": ("h2", begun, frame(CONTINUATION, 0, 1, literal("x", "a" * 1000)) * 50, "network"),
            "1xx over HTTP/2": ("h2", b"", frame(HEADERS, END_HEADERS, 1, literal(":status", "103")) * 5000, "tooLarge"),
            "1xx over TLS": ("http/1.1", b"", hints, "tooLarge"),
            "1xx": (None, b"", hints, "tooLarge"),
        }  # fmt: skip
        for name, (protocol, before, piece, kind) in cases.items():

            def pour(connection: Connection, _: Any, before: bytes = before, piece: bytes = piece) -> None:
                connection.sendall(before)
                while True:
                    connection.sendall(piece)

            serve = http2(pour) if protocol == "h2" else http1(pour)
            other = http1(lambda connection, _: connection.sendall(answer(IMAGE)))
            with self.subTest(name), RawServer(serve, server_context(protocol) if protocol else None) as server:
                with RawServer(other) as neighbour, worker("--timeout", "3600s") as client:
                    urls = [f"{neighbour.url}/{number}" for number in range(20)]
                    number, responses = self.request(client, server.url + "/", urls)
                    response = responses.get(number) or client.receive()
                    self.assertEqual(outcome(response), kind, response)

    def test_bodies(self) -> None:
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(IMAGE), IMAGE)

        def chunks(connection: Connection, _: Any) -> None:
            connection.sendall(chunked)
            while True:
                connection.sendall(b"1\r\na\r\n" * 50_000)

        def frames(connection: Connection, stream: int) -> None:
            connection.sendall(head(stream) + frame(DATA, 0, stream, IMAGE))
            while True:
                connection.sendall(frame(DATA, 0, stream, b"a") * 50_000)

        records = tls_records(b"HTTP/1.1 200 OK\r\n\r\n" + IMAGE, b"a")
        cases = {
            "chunks": RawServer(http1(chunks)),
            "chunks over TLS": RawServer(http1(chunks), server_context("http/1.1")),
            "DATA frames": RawServer(http2(frames), server_context("h2")),
            "TLS records": RawServer(records),
        }
        other = http1(lambda connection, _: connection.sendall(answer(IMAGE)))
        for name, server in cases.items():
            scheme = "http" if name == "chunks" else "https"
            with self.subTest(name), server, RawServer(other) as neighbour:
                with worker("--timeout", "3600s", "--max-bytes", "100G") as client:
                    urls = [f"{neighbour.url}/{number}" for number in range(20)]
                    number, responses = self.request(client, f"{scheme}://127.0.0.1:{server.port}/", urls)
                    # Its body goes on while the neighbours are loaded. DATA frames of a byte may hold the thread.
                    if name == "DATA frames" and number in responses:
                        self.assertIn("floods the connection", responses[number]["error"]["message"])
                    else:
                        self.assertNotIn(number, responses)
                with worker("--timeout", "3600s", "--max-bytes", "64k") as client:
                    response = client.call("load", url=f"{scheme}://127.0.0.1:{server.port}/")
                    self.assertEqual(outcome(response), "tooLarge", response)

    def test_answers_to_connect(self) -> None:
        cases = {
            "fields": (b"HTTP/1.1 200 OK\r\n", b"X-Field: a\r\n"),
            "1xx": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
            "a line": (b"HTTP/1.1 200 OK\r\nX-Field: ", b"a"),
            "a body of 407": (b"HTTP/1.1 407 No\r\nContent-Length: 1000000000000\r\n\r\n", b"a"),
            "chunks of 407": (b"HTTP/1.1 407 No\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
            "a body of 403": (b"HTTP/1.1 403 No\r\nContent-Length: 1000000000000\r\n\r\n", b"a"),
        }
        for name, (before, piece) in cases.items():

            def serve(connection: Connection, before: bytes = before, piece: bytes = piece) -> None:
                if connection.recv(7, socket.MSG_PEEK) != b"CONNECT":
                    return http1(lambda connection, _: connection.sendall(answer(IMAGE)))(connection)
                connection.sendall(before)
                while True:
                    connection.sendall(piece * 50_000)

            with self.subTest(name), RawServer(serve) as proxy, worker("--timeout", "3600s", "--proxy", proxy.url) as client:
                urls = [f"http://images.invalid/{number}" for number in range(20)]
                number, responses = self.request(client, "https://images.invalid/", urls)
                response = responses.get(number) or client.receive()
                self.assertIn(outcome(response), ("connect", "network"), response)


class OneFlight(unittest.TestCase):
    """Answers over HTTP/2 that arrive at once, without a length, end. libcurl 7.88 has a buffer that must hold them."""

    def check(self, client: Worker, server: RawServer, count: int = 1) -> None:
        numbers = [client.send("load", url=f"{server.url}/{number}") for number in range(count)]
        responses = {response["id"]: response for response in (client.receive() for _ in numbers)}
        for number in numbers:
            self.assertTrue(picture(responses[number]).startswith(IMAGE))

    def test_long_headers_and_lines(self) -> None:
        cases = {
            "33 kB": [1000] * 33, "60 kB": [1000] * 60, "120 kB": [1000] * 120, "a line of 60 kB": [60_000],
        }  # fmt: skip
        for name, lengths in cases.items():
            fields = b"".join(literal(f"x-{index}", "a" * length) for index, length in enumerate(lengths))
            for size in (len(IMAGE), 16_000, 300_000):

                def handle(connection: Connection, stream: int, fields: bytes = fields, size: int = size) -> None:
                    connection.sendall(head(stream, fields) + b"".join(body(stream, IMAGE.ljust(size, b"\0"))))

                with self.subTest(name, body=size), RawServer(http2(handle), server_context("h2")) as server:
                    with worker() as client:
                        self.check(client, server)

    def test_a_compressed_header_and_a_body_in_one_record(self) -> None:
        fields = repeated("x-field", "a" * 200, 12)
        for size in (14_000, 15_000, 16_000):

            def handle(connection: Connection, stream: int, size: int = size) -> None:
                connection.sendall(head(stream, fields) + b"".join(body(stream, IMAGE.ljust(size, b"\0"))))

            with self.subTest(body=size), RawServer(http2(handle), server_context("h2")) as server:
                with worker() as client:
                    self.check(client, server)

    def test_streams_that_end_together(self) -> None:
        random = Random(1)
        streams: list[int] = []

        def handle(connection: Connection, stream: int) -> None:
            streams.append(stream)
            if len(streams) < 10:
                return
            waiting = [[head(stream), *body(stream, IMAGE.ljust(random.randrange(200_000), b"\0"))] for stream in streams]
            flight = b""
            while waiting:
                frames = random.choice(waiting)
                flight += frames.pop(0)
                if not frames:
                    waiting.remove(frames)
            streams.clear()
            connection.sendall(flight)

        with RawServer(http2(handle), server_context("h2")) as server:
            with worker("--max-per-host", "10", "--max-concurrent", "10") as client:
                for _ in range(10):
                    self.check(client, server, 10)
                    client.call("clear")


if __name__ == "__main__":
    unittest.main()
