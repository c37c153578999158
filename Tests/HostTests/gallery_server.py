"""examples/gallery for tests: the server, a page of it without a browser, and a worker that does as it is told."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, Callable, Iterable, Optional
from urllib.parse import urlsplit

from origin_process import PATIENCE
from package import ROOT

SERVER = ROOT / "examples" / "gallery" / "server.mjs"

WORKER = """#!{python}
import json, pathlib, sys

folder = pathlib.Path({folder!r})
results = {{
    "initialize": {{"protocolVersion": 1, "formats": {{"encode": []}}}},
    "stats": {{
        "queue": {{"active": 0, "waiting": {{"high": 0, "low": 0}}}},
        "cache": {{}}, "requests": {{}}, "transfers": {{"bytes": 0}}, "memory": {{"bytes": 0}},
    }},
}}
for line in sys.stdin:
    request = json.loads(line)
    answer = {{"result": results.get(request["method"], {{}})}}
{behaviour}
    if "id" in request:
        print(json.dumps({{"id": request["id"], **answer}}), flush=True)
"""


class GalleryTest(unittest.TestCase):
    def setUp(self) -> None:
        self.exits = contextlib.ExitStack()
        self.addCleanup(self.exits.close)
        self.folder = Path(self.exits.enter_context(tempfile.TemporaryDirectory()))

    def serve(self, *options: str, script: Path = SERVER, worker: Optional[Path] = None) -> str:
        command = [str(script), "--port", "0", *options, "--", f"--cache-dir={self.folder}/cache"]
        environment = {**os.environ, "IMAGEWORKER": str(worker)} if worker else None
        server = subprocess.Popen(command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None

        def stop() -> None:
            server.terminate()
            server.wait()
            assert server.stdout is not None
            server.stdout.close()

        self.exits.callback(stop)
        self.server = server.pid
        return server.stdout.readline().strip()

    def worker(self, behaviour: str) -> Path:
        """A worker that may change its `answer` to each `request`, in the lines of `behaviour`; it has a `folder`."""
        path = self.folder / "worker"
        path.write_text(WORKER.format(python=sys.executable, folder=str(self.folder), behaviour=behaviour))
        path.chmod(0o755)
        return path

    def list_of(self, urls: Iterable[str]) -> str:
        path = self.folder / "list"
        path.write_text("\n".join(urls))
        return str(path)

    def page(self, address: str) -> Page:
        page = Page(address)
        self.exits.callback(page.close)
        return page


class Page:
    """Acts like a page, without a browser: reads events, and reports the cells in view."""

    def __init__(self, address: str) -> None:
        self._host = urlsplit(address).netloc
        self._events = http.client.HTTPConnection(self._host, timeout=PATIENCE)
        self._events.request("GET", "/events")
        self._stream = self._events.getresponse()
        self.id: str = self.event(lambda event: "page" in event)["page"]

    def event(self, holds: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The next event for which it holds."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            line = self._stream.readline()
            assert line, "the server has ended the stream"
            if line.startswith(b"data: "):
                event: dict[str, Any] = json.loads(line[len(b"data: ") :])
                if holds(event):
                    return event
        raise AssertionError("what was waited for did not happen")

    def look(self, shown: Iterable[int] = (), near: Iterable[int] = ()) -> int:
        """The status of the answer."""
        body = json.dumps({"shown": list(shown), "near": list(near)})
        return answer_to(self._host, self.request_line(body) + body)

    def request_line(self, body: str) -> str:
        return f"POST /look?page={self.id} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"

    def close(self) -> None:
        self._stream.close()
        self._events.close()


def connect(host: str) -> socket.socket:
    name, port = host.split(":")
    return socket.create_connection((name, int(port)), timeout=PATIENCE)


def answer_to(host: str, text: str) -> int:
    """The status with which these bytes are answered."""
    with connect(host) as connection:
        connection.sendall(text.encode())
        return status(connection)


def status(connection: socket.socket) -> int:
    with connection.makefile("rb") as answer:
        line = answer.readline()
    assert line, "the server has ended"
    return int(line.split()[1])
