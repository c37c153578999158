"""Origins that take their time: one that never answers, and a server whose answers come after so many milliseconds."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import subprocess
import sys
import zlib
from pathlib import Path
from typing import List

from measuring import plain_environment

DOT = (
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\nCache-Control: max-age=86400\r\nContent-Length: %d\r\n\r\n%b"
PATIENCE = 60.0


class SilentOrigin:
    """Takes connections and requests and never answers. That costs no thread: the kernel takes what nobody accepts."""

    def __enter__(self) -> SilentOrigin:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port: int = self._socket.getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def wait_for_client(self) -> None:
        """Return when somebody has connected."""
        if not select.select([self._socket], [], [], PATIENCE)[0]:
            raise RuntimeError("nobody connected")


class SlowServer:
    """As many origins as are wanted, in a process of their own, for as long as the `with` block lasts.

    Their answers take between half and one and a half times what the URL says. That differs by URL, so that transfers do not
    end all at once, but it is the same for a URL in each run.
    """

    def __init__(self, origins: int) -> None:
        self._origins = origins

    def __enter__(self) -> SlowServer:
        command = [sys.executable, str(Path(__file__).resolve()), str(self._origins)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=plain_environment()
        )
        assert self._process.stdout
        self.ports: List[int] = json.loads(self._process.stdout.readline())
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def slow_url(port: int, milliseconds: int, number: int) -> str:
    return f"http://127.0.0.1:{port}/{milliseconds}/{number}.gif"


class Connection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._pending = b""

    def data_received(self, data: bytes) -> None:
        self._pending += data
        while b"\r\n\r\n" in self._pending:
            head, self._pending = self._pending.split(b"\r\n\r\n", 1)
            target = head.split(b" ", 2)[1]
            mean = int(target.split(b"/")[1]) / 1000
            delay = mean * (0.5 + zlib.crc32(target) % 1000 / 1000)
            asyncio.get_running_loop().call_later(delay, self._answer)

    def _answer(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(ANSWER % (len(DOT), DOT))


async def serve(origins: int) -> None:
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(Connection, "127.0.0.1", 0, backlog=4096) for _ in range(origins)]
    print(json.dumps([server.sockets[0].getsockname()[1] for server in servers]), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)  # until whoever started it ends


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
