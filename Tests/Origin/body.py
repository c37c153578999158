"""A body as runs of repeated patterns: half a gigabyte of it costs a few bytes of memory."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from functools import lru_cache
from typing import Iterable, List, Tuple, Union

ZEROS = bytes(1 << 16)

Run = Tuple[bytes, int]
Part = Union[bytes, Run]


class Body:
    """Bytes that are written down once and may be repeated many times, with random access."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self._runs: List[Run] = []
        self._ends: List[int] = []
        self.length = 0
        for part in parts:
            pattern, count = part if isinstance(part, tuple) else (part, 1)
            if pattern and count > 0:
                self._runs.append((pattern, count))
                self.length += len(pattern) * count
                self._ends.append(self.length)

    def read(self, start: int, stop: int) -> bytes:
        """The bytes from `start` up to but without `stop`; `stop` may lie past the end."""
        stop = min(stop, self.length)
        pieces: List[bytes] = []
        index = bisect_right(self._ends, start)
        while start < stop:
            pattern, _ = self._runs[index]
            end = min(stop, self._ends[index])
            offset = (start - (self._ends[index - 1] if index else 0)) % len(pattern)
            repeats = (offset + end - start + len(pattern) - 1) // len(pattern)
            whole = pattern if repeats == 1 else pattern * repeats
            pieces.append(whole[offset : offset + end - start])
            start = end
            index += 1
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def cut(self, start: int, stop: int) -> Body:
        """A part of the body as a body of its own, for ranges."""
        parts: List[Part] = []
        begin = 0
        for (pattern, _), end in zip(self._runs, self._ends):
            low, high = max(start, begin) - begin, min(stop, end) - begin
            if low < high:
                first, last = -(-low // len(pattern)), high // len(pattern)
                if first <= last:
                    parts.append(pattern[low - first * len(pattern) :] if low % len(pattern) else b"")
                    parts.append((pattern, last - first))
                    parts.append(pattern[: high % len(pattern)])
                else:
                    parts.append(pattern[low % len(pattern) : high % len(pattern)])
            begin = end
        return Body(parts)


def zeros(count: int) -> List[Part]:
    """Parts that add up to `count` zero bytes."""
    return [(ZEROS, count // len(ZEROS)), ZEROS[: count % len(ZEROS)]]


@lru_cache(maxsize=64)
def crc_of_zeros(start: int, count: int) -> int:
    """The CRC-32 that goes on from `start` over `count` zero bytes."""
    while count > 0:
        step = min(count, len(ZEROS))
        start = zlib.crc32(ZEROS[:step], start)
        count -= step
    return start


def compressed(body: Body, coding: str) -> Body:
    """The body under a content coding: `gzip`, `deflate` (zlib's wrapping) or `raw-deflate` (none, as some send it)."""
    window = {"gzip": 31, "deflate": 15, "raw-deflate": -15}[coding]
    compressor = zlib.compressobj(6, zlib.DEFLATED, window)
    parts = [compressor.compress(body.read(at, at + (1 << 20))) for at in range(0, body.length, 1 << 20)]
    return Body([b"".join(parts) + compressor.flush()])
