"""A JPEG encoder for pictures of flat 8 x 8 blocks: all it ever codes is the mean of a block."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, List

from body import ZEROS, Part

if TYPE_CHECKING:
    from images import Picture

Planes = List[List[int]]


class Bits:
    """Bits as JPEG writes them: highest first, a zero byte after every 0xFF, filled up with ones."""

    def __init__(self) -> None:
        self._value = 0
        self._count = 0

    def put(self, value: int, count: int) -> None:
        self._value = self._value << count | value
        self._count += count

    def done(self) -> bytes:
        missing = -self._count % 8
        whole = self._value << missing | (1 << missing) - 1
        return whole.to_bytes((self._count + missing) // 8, "big").replace(b"\xff", b"\xff\0")


def jpeg_parts(picture: Picture, room: int) -> List[Part]:
    """The file, with `room` bytes of comments: before the one scan, or shared out before each of a progressive file."""
    head = b"\xff\xd8" + segment(0xE0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0")
    if picture.orientation != 1:
        entry = struct.pack(">HHIHH", 0x0112, 3, 1, picture.orientation, 0)
        head += segment(0xE1, b"Exif\0\0MM\0*" + struct.pack(">IH", 8, 1) + entry + bytes(4))
    head += segment(0xFE, picture.label)
    # With a first quantiser of 8 a coefficient is the mean itself, less 128.
    head += segment(0xDB, b"\0" + b"\x08" + b"\x01" * 63)
    frame = struct.pack(">BHHB", 8, picture.height, picture.width, 3)
    frame += b"".join(bytes((index, 0x11, 0)) for index in (1, 2, 3))
    head += segment(0xC2 if picture.progressive else 0xC0, frame)
    # DC: the twelve sizes in four bits each. AC: an end of block, in one bit.
    head += segment(0xC4, b"\0" + bytes((0, 0, 0, 12)) + bytes(12) + bytes(range(12)))
    head += segment(0xC4, b"\x10" + bytes((1,)) + bytes(15) + b"\0")
    scans = progressive_scans(picture) if picture.progressive else [baseline_scan(picture)]
    shares = share(room, len(scans))
    parts: List[Part] = [head]
    for scan, part in zip(scans, shares):
        parts += [*comments(part), scan]
    return [*parts, b"\xff\xd9"]


def baseline_scan(picture: Picture) -> bytes:
    bits = Bits()
    for differences in zip(*[deltas(plane) for plane in planes(picture)]):
        for difference in differences:
            put_difference(bits, difference)
            bits.put(0, 1)
    return scan_header((1, 2, 3), 0, 63, 0) + bits.done()


def progressive_scans(picture: Picture) -> List[bytes]:
    """The means but for their lowest bit, the (empty) rest of each component, then that lowest bit."""
    means = planes(picture)
    first, last = Bits(), Bits()
    for differences in zip(*[deltas([value >> 1 for value in plane]) for plane in means]):
        for difference in differences:
            put_difference(first, difference)
    for values in zip(*means):
        for value in values:
            last.put(value & 1, 1)
    empty = Bits()
    for _ in means[0]:
        empty.put(0, 1)
    scans = [scan_header((1, 2, 3), 0, 0, 0x01) + first.done()]
    scans += [scan_header((index,), 1, 63, 0) + empty.done() for index in (1, 2, 3)]
    return scans + [scan_header((1, 2, 3), 0, 0, 0x10) + last.done()]


def planes(picture: Picture) -> Planes:
    """The mean of each block for luminance and the two chrominances: a brightening ramp of one colour."""
    columns, rows = (picture.width + 7) // 8, (picture.height + 7) // 8
    red, green, blue = picture.colour()
    luminance = [(x + y) * 200 // max(1, columns + rows) - 100 for y in range(rows) for x in range(columns)]
    return [luminance, [(blue - green) // 4] * len(luminance), [(red - green) // 4] * len(luminance)]


def deltas(values: List[int]) -> List[int]:
    return [value - before for before, value in zip([0, *values], values)]


def put_difference(bits: Bits, value: int) -> None:
    size = abs(value).bit_length()
    bits.put(size, 4)
    bits.put(value if value >= 0 else value + (1 << size) - 1, size)


def scan_header(components: tuple[int, ...], first: int, last: int, approximation: int) -> bytes:
    chosen = b"".join(bytes((index, 0x00)) for index in components)
    return segment(0xDA, bytes((len(components),)) + chosen + bytes((first, last, approximation)))


def segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, 2 + len(content)) + content


def comments(room: int) -> List[Part]:
    """Comment segments that add up to `room` bytes: none, or four bytes and more."""
    if room == 0:
        return []
    largest = segment(0xFE, ZEROS[:65533])
    whole, rest = divmod(room, len(largest))
    if 0 < rest < 4:
        whole, rest = whole - 1, rest + len(largest)
        return [(largest, whole), segment(0xFE, ZEROS[: rest - 8]), segment(0xFE, b"")]
    return [(largest, whole), segment(0xFE, ZEROS[: rest - 4]) if rest else b""]


def share(room: int, count: int) -> List[int]:
    """`room` in `count` parts, none of them of one to three bytes; all in the first when it is little."""
    if room < 4 * count:
        return [room] + [0] * (count - 1)
    part = room // count
    return [room - part * (count - 1)] + [part] * (count - 1)
