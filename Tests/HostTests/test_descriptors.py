"""The built worker where there are few file descriptors.

IMAGEWORKER=PATH python -m unittest test_descriptors
"""

from __future__ import annotations

import contextlib
import resource
import tempfile
import threading
import unittest
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, Iterator

from bomb_files import png
from hostile_server import Connection, RawServer, answer, body, head, http1, http2, server_context
from origin_process import PATIENCE
from test_decoders import Worker, outcome

IMAGE = png(1, zlib.compress(b"\0\0"))
ALL = "0.0.0.0"


@contextlib.contextmanager
def worker(descriptors: int, *options: str) -> Iterator[Worker]:
    with tempfile.TemporaryDirectory() as folder:
        with Worker(Path(folder), "--insecure", "--retries", "0", *options, descriptors=descriptors) as it:
            yield it


def outcomes(client: Worker, numbers: list[int]) -> Counter[str]:
    return Counter(outcome(client.receive()) for _ in numbers)


class Descriptors(unittest.TestCase):
    """Loads wait for descriptors. None fails for want of them."""

    def setUp(self) -> None:
        # The servers have a descriptor for each connection.
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

    def test_one_origin_after_the_other(self) -> None:
        with RawServer(http1(lambda connection, _: connection.sendall(answer(IMAGE))), address=ALL) as server:
            with worker(128) as client:
                for number in range(600):
                    url = f"http://127.0.{number // 200 + 1}.{number % 200 + 1}:{server.port}/{number}"
                    self.assertEqual(outcome(client.call("load", url=url)), "result")

    def burst(self, count: int, descriptors: int, origins: int, tls: bool = False) -> None:
        """No request is answered before as many are there as the worker sends at once."""
        asked = threading.Semaphore(0)
        gate = threading.Event()

        def handle(connection: Connection, _: Any) -> None:
            asked.release()
            gate.wait()
            connection.sendall(answer(IMAGE))

        def handle2(connection: Connection, stream: int) -> None:
            connection.sendall(head(stream) + b"".join(body(stream, IMAGE)))

        serve = http2(handle2) if tls else http1(handle)
        with RawServer(serve, server_context("h2") if tls else None, ALL) as server:
            options = ["--max-concurrent", str(count), "--max-per-host", str(count)]
            with worker(descriptors, *options) as client:
                most = client.call("initialize")["result"]["limits"]["maxConcurrent"]
                scheme = "https" if tls else "http"
                numbers = [
                    client.send("load", url=f"{scheme}://127.0.1.{number % origins + 1}:{server.port}/{number}")
                    for number in range(count)
                ]
                if not tls:
                    for _ in range(most):
                        self.assertTrue(asked.acquire(timeout=PATIENCE))
                gate.set()
                self.assertEqual(outcomes(client, numbers), {"result": count})
                self.assertEqual(outcome(client.call("load", url=f"{scheme}://127.0.0.1:{server.port}/after")), "result")

    def test_a_burst_for_one_origin(self) -> None:
        for count, descriptors in ((300, 256), (1100, 1024)):
            with self.subTest(count, descriptors=descriptors):
                self.burst(count, descriptors, 1)

    def test_a_burst_for_many_origins(self) -> None:
        self.burst(300, 256, 200)

    def test_a_burst_over_http2(self) -> None:
        for origins in (1, 100):
            with self.subTest(origins=origins):
                self.burst(300, 256, origins, tls=True)

    def test_when_something_else_takes_the_descriptors(self) -> None:
        """Idle connections are closed for others, and afterwards fewer are kept."""
        handle2 = http2(lambda connection, stream: connection.sendall(head(stream) + b"".join(body(stream, IMAGE))))
        handle1 = http1(lambda connection, _: connection.sendall(answer(IMAGE)))
        for scheme, serve in {"http": handle1, "https": handle2}.items():
            context = server_context("h2") if scheme == "https" else None
            with self.subTest(scheme), RawServer(serve, context, ALL) as server, worker(1024) as client:

                def urls(network: int, count: int) -> Iterator[str]:
                    for number in range(count):
                        yield f"{scheme}://127.0.{network}.{number + 1}:{server.port}/"

                def each(network: int) -> Counter[str]:
                    return Counter(outcome(client.call("load", url=url)) for url in urls(network, 60))

                self.assertEqual(each(1), {"result": 60})
                count = client.descriptors()
                resource.prlimit(client.process.pid, resource.RLIMIT_NOFILE, (count, count))
                self.assertEqual(each(2), {"result": 60})
                numbers = [client.send("load", url=url) for url in urls(3, 100)]
                responses = [client.receive() for _ in numbers]
                # Connections and files compete for what there is.
                for error in (response["error"]["data"] for response in responses if "error" in response):
                    self.assertEqual((error["kind"], error["retryable"]), ("network", True))
                self.assertEqual(each(4), {"result": 60})


if __name__ == "__main__":
    unittest.main()
