"""The hosts' web server: one listening socket for all of them, which tells them apart by the address connected to."""

from __future__ import annotations

import functools
import math
import random
import socket
import struct
import sys
import time
import zlib
from collections import deque
from pathlib import Path
from typing import Any, Deque, Dict, List, Optional, Union

from habits import Habit
from loop import Loop

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Origin"))

from images import Picture, image  # noqa: E402

FACTORS = 4096
PICTURES = 16
REASONS = {200: "OK", 404: "Not Found", 429: "Too Many Requests", 503: "Service Unavailable"}
ABORT = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which closing sends a reset."""


class Host:
    """One host: the requests that it serves and those that wait, and the most of both."""

    def __init__(self, habit: Habit) -> None:
        self.habit = habit
        self.under_way = 0
        self.serving = 0
        self.waiting: Deque[Connection] = deque()
        self.requests = 0
        self.refused = 0
        self.most = 0
        self.longest_overload = 0.0
        self.disallowed = 0
        self.early = 0
        self.unusable_bytes = 0
        self._last = -math.inf
        self._overloaded_since: Optional[float] = None

    def is_unusable(self, path: bytes) -> bool:
        """Whether the host does not allow the use of the image."""
        return bool(self.habit.robots_tag) or self.is_disallowed(path)

    def is_disallowed(self, path: bytes) -> bool:
        return bool(self.habit.disallow) and path.startswith(self.habit.disallow.encode())

    def note(self, path: bytes) -> None:
        """Counts a request that breaks a rule of robots.txt. A quarter of the delay is left to the jitter of the machine."""
        self.disallowed += self.is_disallowed(path)
        now = time.monotonic()
        self.early += now - self._last < 0.75 * self.habit.crawl_delay
        self._last = now

    def enter(self) -> None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self._note_load()

    def leave(self) -> None:
        self.under_way -= 1
        self._note_load()

    def _note_load(self) -> None:
        """Overloaded is a host that has more than twice the requests that it serves at once."""
        if self.habit.at_once is None:
            return
        if self.under_way <= 2 * self.habit.at_once:
            if self._overloaded_since is not None:
                self.longest_overload = max(self.longest_overload, time.monotonic() - self._overloaded_since)
            self._overloaded_since = None
        elif self._overloaded_since is None:
            self._overloaded_since = time.monotonic()


class Connection:
    __slots__ = ("socket", "descriptor", "host", "incoming", "outgoing", "path", "is_unusable")

    def __init__(self, connected: socket.socket, host: Host) -> None:
        self.socket = connected
        self.descriptor = connected.fileno()
        self.host = host
        self.incoming = b""
        self.outgoing = memoryview(b"")
        self.is_unusable = False
        """Whether the last response is one that the host does not allow to use."""
        self.path: Optional[bytes] = None
        """The path of the current request."""


class WebServer:
    """HTTP/1.1 with kept-alive connections. A request has no body, and there is one at a time on a connection."""

    def __init__(self, loop: Loop, habits: List[Habit], seed: int) -> None:
        self._loop = loop
        self._habits = habits
        chance = random.Random(seed)
        self._normal = [chance.gauss(0, 1) for _ in range(FACTORS)]
        self._responses = {habit.kind: responses(habit) for habit in habits}
        self._hosts: Dict[str, Host] = {}
        self._served: Dict[bytes, float] = {}
        self._connections = 0
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.setblocking(False)
        self._listener.bind(("0.0.0.0", 80))
        self._listener.listen(4096)
        loop.watch(self._listener.fileno(), self._accept)

    def report(self) -> Dict[str, Any]:
        """The observations. `served` are the times (of the monotonic clock) at which URLs were first answered with 200."""
        hosts = list(self._hosts.values())
        return {
            "connections": self._connections,
            "requests": sum(host.requests for host in hosts),
            "refused": sum(host.refused for host in hosts),
            "disallowed": sum(host.disallowed for host in hosts),
            "early": sum(host.early for host in hosts),
            "unusableBytes": sum(host.unusable_bytes for host in hosts),
            "served": sorted(self._served.values()),
            "mostAtOnce": max((host.most for host in hosts if host.habit.does == "answer"), default=0),
            "mostIgnored": max((host.most for host in hosts if host.habit.does == "ignore"), default=0),
            "longestOverload": max((host.longest_overload for host in hosts), default=0.0),
        }

    def _accept(self) -> None:
        while True:
            try:
                connected, _ = self._listener.accept()
            except BlockingIOError:
                return
            connected.setblocking(False)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # What lies in the buffer counts as sent, and a real network takes less than the loopback interface.
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
            local: str = connected.getsockname()[0]
            host = self._hosts.get(local)
            if host is None:
                kind = int(local.split(".")[1]) - 1
                if not 0 <= kind < len(self._habits):
                    connected.close()
                    continue
                host = self._hosts[local] = Host(self._habits[kind])
            self._connections += 1
            connection = Connection(connected, host)
            self._loop.watch(connection.descriptor, functools.partial(self._ready, connection))

    def _ready(self, connection: Connection) -> None:
        if connection.outgoing:
            self._send(connection, connection.outgoing)
            return
        try:
            received = connection.socket.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received:
            self._close(connection)
            return
        connection.incoming += received
        if connection.path is None and connection.incoming.endswith(b"\r\n\r\n"):
            connection.path = connection.incoming.split(b" ", 2)[1]
            connection.incoming = b""
            self._begin(connection)

    def _begin(self, connection: Connection) -> None:
        host, habit = connection.host, connection.host.habit
        host.requests += 1
        assert connection.path is not None
        if connection.path == b"/robots.txt":
            connection.path = None
            self._send(connection, robots_txt(habit))
            return
        host.note(connection.path)
        if habit.limit is not None and host.under_way >= habit.limit:
            host.refused += 1
            connection.path = None
            self._send(connection, head(429, 0))
            return
        host.enter()
        if habit.does == "reset":
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
            self._close(connection)
        elif habit.does == "answer":
            if habit.at_once is not None and host.serving >= habit.at_once:
                host.waiting.append(connection)
            else:
                self._serve(connection)

    def _serve(self, connection: Connection) -> None:
        host, path = connection.host, connection.path
        assert path is not None
        host.serving += 1
        # exp(sigma * normal) without math.exp: a power of the base.
        factor = 2.718281828459045 ** (host.habit.sigma * self._normal[zlib.crc32(path) % FACTORS])
        self._loop.after(host.habit.median * factor, self._finish, connection, host, path)

    def _finish(self, connection: Connection, host: Host, path: bytes) -> None:
        host.serving -= 1
        while host.waiting:
            waiting = host.waiting.popleft()
            if waiting.path is not None:  # Else it was closed meanwhile.
                self._serve(waiting)
                break
        if connection.path is None:
            return  # The client has closed it.
        host.leave()
        connection.path = None
        choices = self._responses[host.habit.kind]
        connection.is_unusable = host.is_unusable(path)
        if host.habit.status == 200 and not connection.is_unusable:
            self._served.setdefault(connection.socket.getsockname()[0].encode() + path, time.monotonic())
        self._send(connection, choices[zlib.crc32(path) % len(choices)])

    def _send(self, connection: Connection, response: Union[bytes, memoryview]) -> None:
        had_more = bool(connection.outgoing)
        try:
            sent = connection.socket.send(response)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._close(connection)
            return
        if connection.is_unusable:
            connection.host.unusable_bytes += sent
        connection.outgoing = memoryview(response)[sent:]
        if bool(connection.outgoing) != had_more:
            self._loop.watch_for(connection.descriptor, writable=not had_more)

    def _close(self, connection: Connection) -> None:
        if connection.path is not None:
            connection.path = None
            connection.host.leave()
        self._loop.forget(connection.descriptor)
        connection.socket.close()


def robots_txt(habit: Habit) -> bytes:
    if not habit.disallow and not habit.crawl_delay:
        return head(404, 0)
    lines = ["User-agent: *", f"Disallow: {habit.disallow}", f"Crawl-delay: {habit.crawl_delay}", ""]
    text = "\n".join(lines).encode()
    return head(200, len(text)) + text


def head(status: int, length: int, *further: str, media_type: str = "image/png") -> bytes:
    lines = [f"HTTP/1.1 {status} {REASONS[status]}", f"Content-Type: {media_type}", f"Content-Length: {length}", *further]
    return "\r\n".join([*lines, "Cache-Control: max-age=86400", "", ""]).encode()


def responses(habit: Habit) -> List[bytes]:
    """Some responses of a kind of hosts, headers included; a path always gets the same one."""
    if habit.status != 200:
        return [head(habit.status, 0)]
    if habit.files:
        bodies = [(media_type(path), path.read_bytes()) for path in sorted(Path(habit.files).iterdir())]
    else:
        pictures = (image("png", Picture(number, size=habit.size))[1] for number in range(PICTURES))
        bodies = [("image/png", picture.read(0, habit.size)) for picture in pictures]
    further = [f"X-Robots-Tag: {habit.robots_tag}"] if habit.robots_tag else []
    return [head(200, len(body), *further, media_type=kind) + body for kind, body in bodies]


def media_type(path: Path) -> str:
    return "text/html" if path.suffix == ".html" else f"image/{path.suffix[1:]}"
