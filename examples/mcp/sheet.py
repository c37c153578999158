"""A contact sheet as a PNG of numbered cells, in the standard library alone. The worker makes a JPEG or WebP of it."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import List, Optional, Sequence

GAP = 4
"""Pixels around each cell."""
DIGITS = {
    "0": "01110 10001 10011 10101 11001 10001 01110",
    "1": "00100 01100 00100 00100 00100 00100 01110",
    "2": "01110 10001 00001 00110 01000 10000 11111",
    "3": "11111 00010 00100 00010 00001 10001 01110",
    "4": "00010 00110 01010 10010 11111 00010 00010",
    "5": "11111 10000 11110 00001 00001 10001 01110",
    "6": "00110 01000 10000 11110 10001 10001 01110",
    "7": "11111 00001 00010 00100 01000 01000 01000",
    "8": "01110 10001 10001 01110 10001 10001 01110",
    "9": "01110 10001 10001 01111 00001 00010 01100",
}
"""Seven rows of five pixels."""
WHITE, GREY, BLACK = b"\xff\xff\xff\xff", b"\xb0\xb0\xb0\xff", b"\0\0\0\xff"
MISSING, CROSS = b"\xd0\xd0\xd0\xff", b"\xc0\x20\x20\xff"


@dataclass(frozen=True)
class Picture:
    """Pixels of an image, which is at most as large as a cell: rows of `stride` bytes, `channels` as in `imageworker.Pixels`."""

    width: int
    height: int
    stride: int
    channels: int
    memory: memoryview


@dataclass(frozen=True)
class Layout:
    """The places of `count` square cells of `side` pixels, row by row."""

    count: int
    columns: int
    side: int

    @property
    def rows(self) -> int:
        return -(-self.count // self.columns)

    @property
    def width(self) -> int:
        return self.columns * (self.side + GAP) + GAP

    @property
    def height(self) -> int:
        return self.rows * (self.side + GAP) + GAP

    def corner(self, index: int) -> "tuple[int, int]":
        row, column = divmod(index, self.columns)
        return GAP + column * (self.side + GAP), GAP + row * (self.side + GAP)


def png_of_sheet(layout: Layout, pictures: Sequence[Optional[Picture]]) -> bytes:
    """The sheet, with transparent pixels where the images have them. A place of None is grey with a cross."""
    canvas = Canvas(layout.width, layout.height)
    for index, picture in enumerate(pictures):
        x, y = layout.corner(index)
        if picture is None:
            canvas.draw_missing(x, y, layout.side)
        else:
            canvas.fill(x, y, layout.side, layout.side, WHITE)
            canvas.draw_picture(x + (layout.side - picture.width) // 2, y + (layout.side - picture.height) // 2, picture)
        canvas.draw_number(x, y, index + 1, 2 if layout.side >= 64 else 1)
    return canvas.png()


class Canvas:
    """RGBA pixels of 8 bits, grey at first."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        self._pixels = bytearray(GREY * (width * height))

    def fill(self, x: int, y: int, width: int, height: int, colour: bytes) -> None:
        for row in range(y, y + height):
            start = (row * self.width + x) * 4
            self._pixels[start : start + width * 4] = colour * width

    def draw_picture(self, x: int, y: int, picture: Picture) -> None:
        for row in range(picture.height):
            begin = row * picture.stride
            pixels = rgba(picture.memory[begin : begin + picture.width * picture.channels], picture.channels)
            start = ((y + row) * self.width + x) * 4
            self._pixels[start : start + len(pixels)] = pixels

    def draw_missing(self, x: int, y: int, side: int) -> None:
        self.fill(x, y, side, side, MISSING)
        thickness = max(1, side // 32)
        for step in range(side - thickness + 1):
            self.fill(x + step, y + step, thickness, thickness, CROSS)
            self.fill(x + side - thickness - step, y + step, thickness, thickness, CROSS)

    def draw_number(self, x: int, y: int, number: int, scale: int) -> None:
        """White digits of 5 x 7 dots on black, with a dot around each."""
        text = str(number)
        self.fill(x, y, (6 * len(text) + 1) * scale, 9 * scale, BLACK)
        for place, digit in enumerate(text):
            for row, dots in enumerate(DIGITS[digit].split()):
                for column, dot in enumerate(dots):
                    if dot == "1":
                        self.fill(x + (6 * place + column + 1) * scale, y + (row + 1) * scale, scale, scale, WHITE)

    def png(self) -> bytes:
        """The picture as a PNG without filters (PNG specification, section 5), for a reader on the same machine."""
        stride = self.width * 4
        rows = b"".join(b"\0" + self._pixels[start : start + stride] for start in range(0, len(self._pixels), stride))
        head = struct.pack(">IIBBBBB", self.width, self.height, 8, 6, 0, 0, 0)
        chunks: List[bytes] = [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows, 1)), chunk(b"IEND", b"")]
        return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def rgba(pixels: memoryview, channels: int) -> bytes:
    """Pixels of 1 (grey), 3 (R G B) or 4 channels as pixels of four."""
    if channels == 4:
        return bytes(pixels)
    result = bytearray(b"\xff") * (len(pixels) // channels * 4)
    for channel in range(3):
        result[channel::4] = pixels if channels == 1 else pixels[channel::3]
    return bytes(result)


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", len(content), name) + content + struct.pack(">I", zlib.crc32(name + content))
