"""Images made here, byte by byte: the same for the same number, another for another, of an exact size on demand.

PNG, JPEG, GIF, WebP, BMP, ICO, TIFF and SVG decode. AVIF, HEIC and JPEG XL have a correct header and nothing behind it.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Callable, Dict, List, Optional, Tuple

from body import ZEROS, Body, Part, crc_of_zeros, zeros
from jpeg import jpeg_parts

Colour = Tuple[int, int, int]


@dataclass(frozen=True)
class Picture:
    """The requested image. `size` is in bytes; None for the minimum."""

    number: int
    width: int = 32
    height: int = 24
    size: Optional[int] = None
    frames: int = 1
    orientation: int = 1
    progressive: bool = False

    @property
    def label(self) -> bytes:
        return b"number %d" % self.number

    def colour(self, frame: int = 0) -> Colour:
        mixed = zlib.crc32(struct.pack(">QI", self.number, frame))
        return mixed & 255, mixed >> 8 & 255, mixed >> 16 & 255


def png(picture: Picture) -> List[Part]:
    """8-bit RGB; the upper half in the number's colour, the lower in its complement; padding in a private chunk."""
    red, green, blue = picture.colour()
    upper = b"\0" + bytes((red, green, blue)) * picture.width
    lower = b"\0" + bytes((255 - red, 255 - green, 255 - blue)) * picture.width
    half = picture.height // 2
    head = b"\x89PNG\r\n\x1a\n" + png_chunk(
        b"IHDR", struct.pack(">IIBBBBB", picture.width, picture.height, 8, 2, 0, 0, 0)
    )
    head += png_chunk(b"tEXt", b"Comment\0" + picture.label)
    tail = png_chunk(b"IDAT", deflated((upper, half), (lower, picture.height - half))) + png_chunk(b"IEND", b"")
    room = padding(picture, len(head) + len(tail), least=12)
    if room == 0:
        return [head, tail]
    checksum = crc_of_zeros(zlib.crc32(b"paDd"), room - 12)
    return [head, struct.pack(">I4s", room - 12, b"paDd"), *zeros(room - 12), struct.pack(">I", checksum), tail]


def deflated(*runs: Tuple[bytes, int]) -> bytes:
    """Repeated rows, compressed row by row: a picture of a gigapixel is no more in memory than a row of it."""
    compressor = zlib.compressobj(6)
    parts = [compressor.compress(row) for row, count in runs for _ in range(count)]
    return b"".join(parts) + compressor.flush()


def png_chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", len(content), name) + content + struct.pack(">I", zlib.crc32(name + content))


def jpeg(picture: Picture) -> List[Part]:
    """Baseline or progressive (five scans), padded with comments behind the frame header."""
    least = sum(len(part) for part in jpeg_parts(picture, 0) if isinstance(part, bytes))
    return jpeg_parts(picture, padding(picture, least, least=4))


def gif(picture: Picture) -> List[Part]:
    """One or more frames of one colour each, looping for ever when there are several."""
    head = b"GIF89a" + struct.pack("<HHBBB", picture.width, picture.height, 0xF6, 0, 0)
    head += b"".join(bytes(picture.colour(index)) for index in range(128))
    if picture.frames > 1:
        head += b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"
    head += b"\x21\xfe" + bytes((len(picture.label),)) + picture.label + b"\0"
    frames = b"".join(gif_frame(picture, index) for index in range(picture.frames))
    # A comment extension is a chain of blocks of up to 255 bytes, each after its length.
    room = padding(picture, len(head) + len(frames) + 1, least=4)
    blocks: List[Part] = []
    if room:
        whole, rest = divmod(room - 3, 256)
        blocks = [b"\x21\xfe", (b"\xff" + ZEROS[:255], whole)]
        if rest == 1:
            # A block cannot be one byte long, so the last whole one gives some of its bytes away.
            if whole == 0:
                raise ValueError("no comment makes the GIF exactly that long")
            blocks = [b"\x21\xfe", (b"\xff" + ZEROS[:255], whole - 1), b"\x80" + ZEROS[:128], b"\x7f" + ZEROS[:127]]
        elif rest > 1:
            blocks.append(bytes((rest - 1,)) + ZEROS[: rest - 1])
        blocks.append(b"\0")
    return [head, *blocks, frames + b"\x3b"]


def gif_frame(picture: Picture, index: int) -> bytes:
    control = b"\x21\xf9\x04\x04\x0a\0\0\0" if picture.frames > 1 else b""
    descriptor = b"\x2c" + struct.pack("<HHHHB", 0, 0, picture.width, picture.height, 0)
    # LZW without compression: with 7-bit pixels and a clear code every 120 of them, each code is exactly one byte.
    pixels = bytes((index % 128,)) * (picture.width * picture.height)
    codes = b"".join(b"\x80" + pixels[at : at + 120] for at in range(0, len(pixels), 120)) + b"\x81"
    blocks = b"".join(bytes((len(codes[at : at + 255]),)) + codes[at : at + 255] for at in range(0, len(codes), 255))
    return control + descriptor + b"\x07" + blocks + b"\0"


def webp(picture: Picture) -> List[Part]:
    """Lossless, of one colour a frame; extended (VP8X) when animated or padded."""
    first = riff_chunk(b"VP8L", webp_pixels(picture, 0))
    if picture.frames == 1 and picture.size is None:
        label = riff_chunk(b"numb", picture.label)
        return [b"RIFF" + struct.pack("<I", 4 + len(first) + len(label)) + b"WEBP", first, label]
    sides = uint24(picture.width - 1) + uint24(picture.height - 1)
    chunks = riff_chunk(b"VP8X", struct.pack("<I", 0x02 if picture.frames > 1 else 0) + sides)
    if picture.frames == 1:
        chunks += first
    else:
        chunks += riff_chunk(b"ANIM", struct.pack("<IH", 0, 0))
        for index in range(picture.frames):
            place = uint24(0) * 2 + sides + uint24(100) + b"\0"
            chunks += riff_chunk(b"ANMF", place + riff_chunk(b"VP8L", webp_pixels(picture, index)))
    chunks += riff_chunk(b"numb", picture.label)
    room = padding(picture, 12 + len(chunks), least=8)
    if room % 2:
        raise ValueError("a WebP has an even number of bytes")
    head = b"RIFF" + struct.pack("<I", 4 + len(chunks) + room) + b"WEBP"
    if room == 0:
        return [head, chunks]
    return [head, chunks, struct.pack("<4sI", b"padd", room - 8), *zeros(room - 8)]


def webp_pixels(picture: Picture, frame: int) -> bytes:
    """A VP8L bitstream whose five prefix codes have one symbol each, so that a pixel takes no bit at all."""
    red, green, blue = picture.colour(frame)
    value, bits = 0x2F, 8

    def put(number: int, count: int) -> None:
        nonlocal value, bits
        value |= number << bits
        bits += count

    put(picture.width - 1, 14)
    put(picture.height - 1, 14)
    put(0, 1 + 3)  # alpha is not used; version 0
    put(0, 1 + 1 + 1)  # no transform, no colour cache, no meta prefix codes
    for symbol in (green, red, blue, 255, 0):
        put(0b101, 3)  # a simple code; one symbol; of eight bits
        put(symbol, 8)
    return value.to_bytes((bits + 7) // 8, "little")


def riff_chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack("<4sI", name, len(content)) + content + b"\0" * (len(content) % 2)


def uint24(number: int) -> bytes:
    return struct.pack("<I", number)[:3]


def bmp(picture: Picture) -> List[Part]:
    """24 bits a pixel; padding between the headers and the pixels."""
    rows = bitmap_rows(picture)
    head = struct.pack("<IiiHHIIiiII", 40, picture.width, picture.height, 1, 24, 0, len(rows), 2835, 2835, 0, 0)
    label = picture.label
    room = padding(picture, 14 + len(head) + len(label) + len(rows))
    offset = 14 + len(head) + len(label) + room
    return [struct.pack("<2sIII", b"BM", offset + len(rows), 0, offset), head, label, *zeros(room), rows]


def bitmap_rows(picture: Picture) -> bytes:
    row = bytes(reversed(picture.colour())) * picture.width
    return (row + b"\0" * (-len(row) % 4)) * picture.height


def ico(picture: Picture) -> List[Part]:
    """One bitmap with 32 bits a pixel and its mask; sides of at most 256."""
    if picture.width > 256 or picture.height > 256:
        raise ValueError("the sides of an icon are at most 256")
    pixels = bytes((*reversed(picture.colour()), 255)) * (picture.width * picture.height)
    mask = b"\0" * ((picture.width + 31) // 32 * 4 * picture.height)
    head = struct.pack("<IiiHHIIiiII", 40, picture.width, picture.height * 2, 1, 32, 0, len(pixels), 0, 0, 0, 0)
    image = head + pixels + mask
    entry = struct.pack(
        "<BBBBHHII", picture.width % 256, picture.height % 256, 0, 0, 1, 32, len(image), 22
    )
    room = padding(picture, 22 + len(image) + len(picture.label))
    return [struct.pack("<HHH", 0, 1, 1) + entry + image + picture.label, *zeros(room)]


def tiff(picture: Picture) -> List[Part]:
    """Little-endian, uncompressed RGB in one strip, directory first."""
    pixels = bytes(picture.colour()) * (picture.width * picture.height)
    short, long = 3, 4
    start = 8 + 2 + 10 * 12 + 4
    entries = [
        (256, long, 1, picture.width),
        (257, long, 1, picture.height),
        (258, short, 3, start),  # three shorts do not fit in the entry
        (259, short, 1, 1),
        (262, short, 1, 2),
        (273, long, 1, start + 6),
        (274, short, 1, picture.orientation),
        (277, short, 1, 3),
        (278, long, 1, picture.height),
        (279, long, 1, len(pixels)),
    ]
    directory = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *entry) for entry in entries)
    whole = b"II*\0" + struct.pack("<I", 8) + directory + bytes(4) + struct.pack("<HHH", 8, 8, 8) + pixels
    return [whole + picture.label, *zeros(padding(picture, len(whole) + len(picture.label)))]


def svg(picture: Picture) -> List[Part]:
    """A rectangle; padded with blanks in a comment."""
    text = f'<?xml version="1.0"?>\n<!-- {picture.label.decode()} '
    tail = '-->\n<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}">'
    tail += '<rect width="100%" height="100%" fill="#{2:02x}{3:02x}{4:02x}"/></svg>\n'
    end = tail.format(picture.width, picture.height, *picture.colour()).encode()
    room = padding(picture, len(text) + len(end))
    return [text.encode(), (b" " * 4096, room // 4096), b" " * (room % 4096), end]


def box(name: bytes, content: bytes, version: Optional[int] = None) -> bytes:
    """An ISO base media box, full when it has a version."""
    if version is not None:
        content = struct.pack(">I", version << 24) + content
    return struct.pack(">I4s", 8 + len(content), name) + content


def heif(brand: bytes, codec: bytes, configuration: bytes) -> Callable[[Picture], List[Part]]:
    """A still picture whose boxes are right and whose coded bytes are not."""

    def parts(picture: Picture) -> List[Part]:
        kind = box(b"ftyp", brand + struct.pack(">I", 0) + brand + b"mif1" + b"miaf")
        properties = box(b"ispe", struct.pack(">II", picture.width, picture.height), 0)
        properties += box(b"pixi", b"\x03\x08\x08\x08", 0) + configuration
        association = struct.pack(">IHB", 1, 1, 3) + b"\x01\x02\x83"

        def meta(offset: int) -> bytes:
            content = box(b"hdlr", struct.pack(">I4s", 0, b"pict") + bytes(13), 0)
            content += box(b"pitm", struct.pack(">H", 1), 0)
            location = struct.pack(">BBHHHHII", 0x44, 0, 1, 1, 0, 1, offset, len(picture.label))
            content += box(b"iloc", location, 0)
            item = box(b"infe", struct.pack(">HH4s", 1, 0, codec) + b"\0", 2)
            content += box(b"iinf", struct.pack(">H", 1) + item, 0)
            content += box(b"iprp", box(b"ipco", properties) + box(b"ipma", association, 0))
            return box(b"meta", content, 0)

        data = box(b"mdat", picture.label)
        head = kind + meta(len(kind) + len(meta(0)) + 8)
        room = padding(picture, len(head) + len(data), least=8)
        if room == 0:
            return [head, data]
        return [head, data, struct.pack(">I4s", room, b"free"), *zeros(room - 8)]

    return parts


def jxl(picture: Picture) -> List[Part]:
    """A bare codestream that ends after its size header."""
    value, bits = 0, 1  # the first bit says that the sides are not both multiples of eight up to 256

    def put(number: int, count: int) -> None:
        nonlocal value, bits
        value |= number << bits
        bits += count

    for side, ratio in ((picture.height, True), (picture.width, False)):
        for selector, width in enumerate((9, 13, 18, 30)):
            if side - 1 < 1 << width:
                put(selector, 2)
                put(side - 1, width)
                break
        if ratio:
            put(0, 3)
    whole = b"\xff\x0a" + value.to_bytes((bits + 7) // 8, "little") + b"\0" + picture.label
    return [whole, *zeros(padding(picture, len(whole)))]


def padding(picture: Picture, length: int, least: int = 1) -> int:
    """How many bytes are missing to the size asked for; they are 0, or at least `least`, which padding costs itself."""
    missing = 0 if picture.size is None else picture.size - length
    if missing != 0 and missing < least:
        raise ValueError(f"of this picture there are {length} bytes, or {length + least} and more")
    return missing


AV1_CONFIGURATION = box(b"av1C", b"\x81\x00\x0c\x00")
HEVC_CONFIGURATION = box(b"hvcC", b"\x01\x01\x60" + bytes(19) + b"\0")

MAKERS: Dict[str, Tuple[str, Callable[[Picture], List[Part]]]] = {
    "png": ("image/png", png),
    "jpg": ("image/jpeg", jpeg),
    "jpeg": ("image/jpeg", jpeg),
    "gif": ("image/gif", gif),
    "webp": ("image/webp", webp),
    "bmp": ("image/bmp", bmp),
    "ico": ("image/x-icon", ico),
    "tiff": ("image/tiff", tiff),
    "svg": ("image/svg+xml", svg),
    "avif": ("image/avif", heif(b"avif", b"av01", AV1_CONFIGURATION)),
    "heic": ("image/heic", heif(b"heic", b"hvc1", HEVC_CONFIGURATION)),
    "jxl": ("image/jxl", jxl),
}


@lru_cache(maxsize=4096)
def image(extension: str, picture: Picture) -> Tuple[str, Body]:
    """The media type and the bytes of a picture; a ValueError says what cannot be made."""
    media_type, make = MAKERS[extension]
    body = Body(make(picture))
    if picture.size is not None and body.length != picture.size:
        raise ValueError(f"made {body.length} bytes instead of {picture.size}")
    return media_type, body
