"""Lines on standard input and output, each on a thread of its own: neither a slow client nor a large result blocks the event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from typing import Callable, Deque, Optional, Tuple

LONGEST_LINE = 4 << 20
"""Bytes of a line that is read."""
MOST_WAITING = 10_000
"""Lines that may wait for a client that does not read them. Above that, nothing more is read from it."""


class LineWriter:
    """Writes lines to a descriptor in their order. Its methods are called on the thread of the event loop."""

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        """`on_broken` is called once, on the event loop, if nobody can read the output any more."""
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._waiting: Deque[Tuple[bytes, asyncio.Future[None]]] = deque()
        self._change = threading.Condition()
        self.has_room = threading.Event()
        self.has_room.set()
        threading.Thread(target=self._run, name="line writer", daemon=True).start()

    def send(self, line: bytes) -> asyncio.Future[None]:
        """Queues a line. The future ends when the line is written. If it is cancelled before that begins, the line is not written."""
        written: asyncio.Future[None] = self._loop.create_future()
        with self._change:
            self._waiting.append((line, written))
            if len(self._waiting) >= MOST_WAITING:
                self.has_room.clear()
            self._change.notify()
        return written

    def _run(self) -> None:
        while True:
            with self._change:
                while not self._waiting:
                    self._change.wait()
                line, written = self._waiting.popleft()
                if len(self._waiting) < MOST_WAITING:
                    self.has_room.set()
            if written.cancelled():
                continue
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError:
                self._call(self._on_broken)
                return
            self._call(_end, written)

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # The loop is closed: the server has ended.
            pass


def _end(written: asyncio.Future[None]) -> None:
    if not written.done():
        written.set_result(None)


def read_lines(descriptor: int, receive: Callable[[Optional[bytes]], None], end: Callable[[], None], room: threading.Event) -> None:
    """Starts a thread that passes each line to `receive` on the event loop, None for a line that is too long, and then calls `end`.

    The thread reads while `room` is set. Blank lines are left out, and the last line needs no line feed.
    """
    loop = asyncio.get_running_loop()

    def run() -> None:
        splitter = LineSplitter()
        try:
            while True:
                room.wait()
                try:
                    block = os.read(descriptor, 1 << 16)
                except OSError:  # It is closed, or a terminal that has gone.
                    block = b""
                for line in splitter.split(block) if block else splitter.rest():
                    loop.call_soon_threadsafe(receive, line)
                if not block:
                    break
            loop.call_soon_threadsafe(end)
        except RuntimeError:  # The loop is closed.
            pass

    threading.Thread(target=run, name="line reader", daemon=True).start()


class LineSplitter:
    """Blocks of bytes in, lines out. A line of more than `longest` bytes is skipped to its end, and is None."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._start = bytearray()
        self._is_skipping = False

    def split(self, block: bytes) -> "list[Optional[bytes]]":
        *ended, rest = block.split(b"\n")
        lines = [line for part in ended for line in self._ended(part)]
        self._add(rest)
        return lines

    def rest(self) -> "list[Optional[bytes]]":
        """The last line, if it has no line feed."""
        return self._ended(b"")

    def _add(self, part: bytes) -> None:
        if self._is_skipping or len(self._start) + len(part) > self._longest:
            self._is_skipping = True
            self._start.clear()
        else:
            self._start += part

    def _ended(self, part: bytes) -> "list[Optional[bytes]]":
        self._add(part)
        line = None if self._is_skipping else bytes(self._start).strip()
        self._start.clear()
        self._is_skipping = False
        return [] if line == b"" else [line]
