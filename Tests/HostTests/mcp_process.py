"""examples/mcp/server.py in a network with a public address, and a client that speaks to it line by line."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Optional

from origin_process import PATIENCE, Origin
from package import ROOT
from public_network import ADDRESS, PublicNetwork, Unavailable

MCP = ROOT / "examples" / "mcp"
SERVER = MCP / "server.py"
sys.path[:0] = [str(MCP), str(ROOT / "examples" / "python")]


class InPublic(unittest.TestCase):
    """A network for all tests of a class, and a cache directory and an origin for each."""

    network: PublicNetwork

    @classmethod
    def setUpClass(cls) -> None:
        try:
            cls.network = PublicNetwork()
        except Unavailable as reason:
            raise unittest.SkipTest(str(reason)) from None
        cls.addClassCleanup(cls.network.end)

    def setUp(self) -> None:
        self.exits = contextlib.ExitStack()
        self.addCleanup(self.exits.close)
        self.folder = Path(self.exits.enter_context(tempfile.TemporaryDirectory()))
        self.origin = self.exits.enter_context(Origin(prefix=self.network.prefix, host=ADDRESS))

    def command(self, *options: str) -> list[str]:
        """The server's command, which runs from any directory."""
        return [*self.network.prefix, sys.executable, str(SERVER), "--cache-dir", str(self.folder / "cache"), *options]

    def raw(self, *options: str) -> RawClient:
        """A server that has not been initialized."""
        return self.exits.enter_context(RawClient(self.command(*options), self.folder))

    def session(self, version: str = "2025-06-18") -> RawClient:
        client = self.raw()
        client.initialize(version)
        return client

    def requests(self) -> int:
        """The number of requests that the origin has got."""
        return int(self.origin.command({"do": "counts"})["requests"])


class RawClient:
    """Sends any bytes, and reads lines of JSON."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=folder, env=os.environ, bufsize=0
            )
        assert self.process.stdin and self.process.stdout
        self.input, self.output = self.process.stdin, self.process.stdout
        self._received = b""
        self._last_id = 100

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.input.close()
        self.process.kill()
        self.process.wait()
        self.output.close()

    def write(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            rest = rest[self.input.write(rest) :]

    def send(self, message: Any) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def call(self, tool: str, identity: Any = None, token: Any = None, **arguments: Any) -> Any:
        """Sends a call of a tool, and returns its id."""
        if identity is None:
            self._last_id += 1
            identity = self._last_id
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        self.request("tools/call", identity, name=tool, arguments=arguments, **meta)
        return identity

    def request(self, method: str, identity: Any, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})

    def notify(self, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def initialize(self, version: str) -> dict[str, Any]:
        client = {"name": "test", "version": "1"}
        self.request("initialize", 0, protocolVersion=version, capabilities={}, clientInfo=client)
        answer: dict[str, Any] = self.receive()["result"]
        self.notify("notifications/initialized")
        return answer

    def receive(self) -> Any:
        """The next message. None at the end of the output."""
        while b"\n" not in self._received:
            readable, _, _ = select.select([self.output], [], [], PATIENCE)
            assert readable, "the server does not answer"
            block = os.read(self.output.fileno(), 1 << 16)
            if not block:
                assert not self._received, self._received
                return None
            self._received += block
        line, _, self._received = self._received.partition(b"\n")
        return json.loads(line)

    def result(self, identity: Any) -> Any:
        """The result with this id, which must be the next message."""
        answer = self.receive()
        assert answer.get("id") == identity, answer
        return answer["result"]

    def end(self) -> Optional[int]:
        """Ends the input, and returns the exit status."""
        self.input.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(PATIENCE)
        return None


def text_of(result: Any) -> str:
    """The text of a tool's result."""
    return "\n".join(each["text"] for each in result["content"] if each["type"] == "text")
