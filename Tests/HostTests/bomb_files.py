"""Small files that want to be large images."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any, Dict, List, Tuple

SMALL: Dict[str, Any] = {"transform": {"width": 256}}
ALL_FRAMES: Dict[str, Any] = {"transform": {"width": 256, "frames": "all", "format": "webp"}}
# A lossless pixel.
PIXEL = base64.b64decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")[12:]


@dataclass(frozen=True)
class Bomb:
    name: str
    file: bytes
    #: What becomes of it: an error's kind, or `result` where it is only as large as its header says.
    outcome: str
    params: Dict[str, Any] = field(default_factory=lambda: SMALL)


def bombs() -> List[Bomb]:
    rows = zlib.compress(bytes((30_000 // 8 + 1) * 30_000), 9)
    text = b"Comment\0\0" + zlib.compress(bytes(500 << 20), 9)
    return [
        Bomb("PNG of 30,000 x 30,000", png(30_000, rows), "tooManyPixels"),
        Bomb("PNG that says 100 x 100 and goes on", png(100, rows), "corrupt"),
        Bomb("PNG with 1 GB behind its rows", png(3_000, zeros(1 << 10)), "result"),
        Bomb("interlaced PNG with 1 GB behind its rows", png(3_000, zeros(1 << 10), interlaced=True), "result"),
        Bomb("PNG with 500 MB of text", png(8, zlib.compress(bytes(16)), (b"zTXt", text)), "result"),
        Bomb("JPEG of 65,500 x 65,500", jpeg(65_500), "tooManyPixels"),
        Bomb("JPEG of 9,000 x 9,000 in 4,000 scans", progressive_jpeg(9_000, 4_000), "corrupt"),
        Bomb("GIF of 50,000 frames", gif(1000, 1, 50_000), "tooManyPixels", ALL_FRAMES),
        Bomb("GIF that says 10 x 10 with a frame of 65,535", gif(10, 65_535, 1), "tooManyPixels"),
        Bomb("WebP of 20,000 frames", webp(4000, 20_000), "tooManyPixels", ALL_FRAMES),
        Bomb("WebP of 20,000 frames, validated", webp(4000, 20_000), "tooManyPixels", {"validate": "decode"}),
    ]


def giants() -> List[Bomb]:
    """Not to be multiplied: sides of up to 2^32 - 1 pixels."""
    longest = (1 << 32) - 1
    pixels = {"deliver": "pixels"}
    enlarged = {**pixels, "transform": {"width": 65_535, "enlarge": True}}
    return [
        Bomb("TIFF of 2^32 - 1 x 2^32 - 1", tiff(longest, longest), "tooManyPixels", pixels),
        Bomb("TIFF of 1 x 2^32 - 1, enlarged", tiff(1, longest), "tooManyPixels", enlarged),
    ]


def harmless() -> bytes:
    return png(8, zlib.compress(bytes(16)))


def zeros(megabytes: int) -> bytes:
    """As zlib.compress has them, but for the checksum, and sooner."""
    packer = zlib.compressobj(9)
    first, further = (packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + further * (megabytes - 1) + packer.flush()


def png(side: int, rows: bytes, *chunks: Tuple[bytes, bytes], interlaced: bool = False) -> bytes:
    """An image of one bit a pixel."""
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, interlaced)
    file = b"\x89PNG\r\n\x1a\n"
    for kind, data in [(b"IHDR", header), *chunks, (b"IDAT", rows), (b"IEND", b"")]:
        file += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return file


def tiff(width: int, height: int) -> bytes:
    """A directory, and no pixels."""
    tags = [(256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, 100), (279, 10_000)]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4)


def segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, 2 + len(content)) + content


def frame(side: int) -> bytes:
    """Progressive, and grey."""
    return segment(0xC2, struct.pack(">BHHB", 8, side, side, 1) + b"\x01\x11\x00")


def jpeg(side: int) -> bytes:
    return b"\xff\xd8" + frame(side) + bytes(10_000)


def progressive_jpeg(side: int, scans: int) -> bytes:
    """All is zero: a bit for each block at first, then 15 bits in each scan for 16,384 blocks."""
    blocks = (side // 8) ** 2
    file = b"\xff\xd8" + segment(0xDB, b"\0" + b"\x01" * 64) + frame(side)
    for table, symbol in ((0x00, 0), (0x10, 0xE0)):
        file += segment(0xC4, bytes([table, 1]) + bytes(15) + bytes([symbol]))
    first = segment(0xDA, b"\x01\x01\0\0\0\0") + bytes(blocks // 8 + 1)
    further = segment(0xDA, b"\x01\x01\0\x01\x3f\0") + bytes((blocks // 16384 + 1) * 15 // 8 + 1)
    return file + first + further * scans + b"\xff\xd9"


def gif(screen: int, side: int, frames: int) -> bytes:
    """Frames whose pixels, but for the first, are missing."""
    header = b"GIF89a" + struct.pack("<HHBBB", screen, screen, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, side, side, 0) + b"\x02\x02\x44\x01\0"
    return header + frame * frames + b"\x3b"


def webp(side: int, frames: int) -> bytes:
    edge = struct.pack("<I", side - 1)[:3]
    frame = bytes(6) + bytes(6) + b"\x64\0\0\0" + PIXEL
    chunks = b"VP8X" + struct.pack("<I", 10) + b"\x02\0\0\0" + edge + edge
    chunks += b"ANIM" + struct.pack("<I", 6) + bytes(6)
    chunks += (b"ANMF" + struct.pack("<I", len(frame)) + frame) * frames
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WEBP" + chunks
