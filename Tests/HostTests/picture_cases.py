"""Images of every format, depth, orientation, profile and kind of alpha, made here, with what is known of each difference."""

from __future__ import annotations

import io
import shutil
import struct
import subprocess
import tempfile
import zlib
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Iterator, Optional

import numpy
from PIL import Image, ImageCms, features

Pixels = numpy.ndarray[Any, Any]

SIZE = (64, 48)
PROFILE_CURVE = 2.2
"""The gamma of the profiles made here."""

# CIE xy of red, green, blue and white.
SRGB = ((0.64, 0.33), (0.30, 0.60), (0.15, 0.06), (0.3127, 0.3290))
P3 = ((0.680, 0.320), (0.265, 0.690), (0.150, 0.060), (0.3127, 0.3290))
SWAPPED = ((0.30, 0.60), (0.64, 0.33), (0.15, 0.06), (0.3127, 0.3290))


@dataclass(frozen=True)
class Case:
    name: str
    content: bytes
    oracle: str = "chromium"
    """`chromium`, or `pillow` for what a browser does not show."""
    worst: int = 2
    """The largest difference of a pixel that is explained, of 255."""
    reason: str = ""
    """Why `worst` is more than 2."""
    frames: int = 1
    """More than one: all frames are compared, each as the browser shows it."""


def colours() -> Pixels:
    """Smooth in both directions, with every hue and near grey: differences come from colours and not from edges."""
    width, height = SIZE
    x, y = numpy.meshgrid(numpy.linspace(0, 1, width), numpy.linspace(0, 1, height))
    channels = [x, y, 1 - (x + y) / 2]
    return numpy.stack([numpy.round(255 * channel) for channel in channels], axis=2).astype(numpy.uint8)


def alpha() -> Pixels:
    width, height = SIZE
    ramp = numpy.linspace(0, 255, width).round().astype(numpy.uint8)
    return numpy.tile(ramp, (height, 1))


def with_alpha() -> Pixels:
    return numpy.dstack([colours(), alpha()])


def saved(picture: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


# MARK: PNG, of which Pillow writes too few kinds


def png(samples: Pixels, depth: int, colour_type: int, *chunks: tuple[bytes, bytes], interlaced: bool = False) -> bytes:
    """`samples` is height x width x channels, of values below 2^depth; `chunks` come before the pixels."""
    height, width = samples.shape[:2]
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
        pieces = [samples[y::down, x::across] for x, y, across, down in passes]
    else:
        pieces = [samples]
    rows = b"".join(b"\0" + packed(row, depth) for piece in pieces if piece.size for row in piece)
    header = struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, int(interlaced))
    parts = [(b"IHDR", header), *chunks, (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(name, content) for name, content in parts)


def packed(row: Pixels, depth: int) -> bytes:
    if depth == 16:
        return row.astype(">u2").tobytes()
    if depth == 8:
        return row.astype(numpy.uint8).tobytes()
    bits = (row.reshape(-1, 1) >> numpy.arange(depth - 1, -1, -1)) & 1
    return numpy.packbits(bits.reshape(-1).astype(numpy.uint8)).tobytes()


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def gamma_chunk(gamma: float) -> tuple[bytes, bytes]:
    return b"gAMA", struct.pack(">I", round(100_000 * gamma))


def chromaticities(primaries: tuple[tuple[float, float], ...]) -> tuple[bytes, bytes]:
    red, green, blue, white = primaries
    return b"cHRM", struct.pack(">8I", *(round(100_000 * value) for pair in (white, red, green, blue) for value in pair))


STEEP = "the curves of PQ and HLG are steep, so that a rounding of samples is seen"


def png_cases() -> Iterator[Case]:
    rgb = colours().astype(numpy.uint16)
    grey = rgb[:, :, 0]
    for depth in (1, 2, 4, 8, 16):
        levels = (grey * ((1 << depth) - 1) / 255).round().astype(numpy.uint16)[:, :, None]
        yield Case(f"PNG grey, {depth} bits", png(levels, depth, 0))
        yield Case(f"PNG grey, {depth} bits, interlaced", png(levels, depth, 0, interlaced=True))
        transparent = b"tRNS", struct.pack(">H", (1 << depth) - 1)
        yield Case(f"PNG grey, {depth} bits, white transparent", png(levels, depth, 0, transparent))
    deep = rgb * 257
    yield Case("PNG RGB, 8 bits", png(rgb, 8, 2))
    yield Case("PNG RGB, 16 bits", png(deep, 16, 2))
    yield Case("PNG RGB, a colour transparent", png(rgb, 8, 2, (b"tRNS", struct.pack(">3H", *rgb[3, 3]))))
    yield Case("PNG RGB, interlaced", png(rgb, 8, 2, interlaced=True))
    four = with_alpha().astype(numpy.uint16)
    yield Case("PNG RGBA, 8 bits", png(four, 8, 6))
    yield Case("PNG RGBA, 16 bits", png(four * 257, 16, 6))
    yield Case("PNG grey and alpha, 8 bits", png(four[:, :, [0, 3]], 8, 4))
    yield Case("PNG grey and alpha, 16 bits", png(four[:, :, [0, 3]] * 257, 16, 4))
    for depth in (1, 2, 4, 8):
        count = 1 << depth
        palette = numpy.random.default_rng(1).integers(0, 256, 3 * count, numpy.uint8).tobytes()
        indices = (numpy.arange(SIZE[0] * SIZE[1]) % count).reshape(SIZE[1], SIZE[0], 1).astype(numpy.uint16)
        yield Case(f"PNG palette, {depth} bits", png(indices, depth, 3, (b"PLTE", palette)))
        opacities = bytes(255 * n // max(count - 1, 1) for n in range(count))
        yield Case(f"PNG palette, {depth} bits, alpha", png(indices, depth, 3, (b"PLTE", palette), (b"tRNS", opacities)))
    for gamma in (1.0, 0.45455, 0.55, 0.3):
        yield Case(f"PNG gAMA {gamma}", png(rgb, 8, 2, gamma_chunk(gamma)))
        yield Case(f"PNG gAMA {gamma}, grey", png(grey[:, :, None], 8, 0, gamma_chunk(gamma)))
        yield Case(f"PNG gAMA {gamma}, alpha", png(four, 8, 6, gamma_chunk(gamma)))
    yield Case("PNG gAMA 0.45455, cHRM sRGB", png(rgb, 8, 2, gamma_chunk(0.45455), chromaticities(SRGB)))
    yield Case("PNG gAMA 0.45455, cHRM P3", png(rgb, 8, 2, gamma_chunk(0.45455), chromaticities(P3)))
    yield Case("PNG gAMA 0.45455, cHRM red and green swapped", png(rgb, 8, 2, gamma_chunk(0.45455), chromaticities(SWAPPED)))
    yield Case("PNG gAMA 1.0, 16 bits", png(deep, 16, 2, gamma_chunk(1.0)))
    yield Case("PNG sRGB over gAMA 1.0", png(rgb, 8, 2, (b"sRGB", b"\0"), gamma_chunk(1.0)))
    yield Case("PNG cICP P3", png(rgb, 8, 2, (b"cICP", bytes([12, 13, 0, 1]))))
    yield Case("PNG cICP sRGB over gAMA 1.0", png(rgb, 8, 2, (b"cICP", bytes([1, 13, 0, 1])), gamma_chunk(1.0)))
    yield Case("PNG cICP BT.2020", png(rgb, 8, 2, (b"cICP", bytes([9, 14, 0, 1]))))
    for name, transfer in (("PQ", 16), ("HLG", 18)):
        for primaries in (1, 9, 12):
            cicp = b"cICP", bytes([primaries, transfer, 0, 1])
            yield Case(f"PNG cICP {name}, primaries {primaries}", png(deep, 16, 2, cicp), worst=5, reason=STEEP)
        cicp = b"cICP", bytes([9, transfer, 0, 1])
        yield Case(f"PNG cICP {name}, alpha", png(four * 257, 16, 6, cicp), worst=5, reason=STEEP)
    for name, profile in profiles():
        embedded = (b"iCCP", b"icc\0\0" + zlib.compress(profile))
        yield Case(f"PNG, profile {name}", png(rgb, 8, 2, embedded), **by_little_cms(name))
        yield Case(f"PNG, profile {name}, 16 bits", png(deep, 16, 2, embedded), **by_little_cms(name, is_deep=True))
        yield Case(f"PNG, profile {name}, alpha", png(four, 8, 6, embedded), **by_little_cms(name))
    for orientation in range(1, 9):
        yield Case(f"PNG eXIf orientation {orientation}", png(rgb, 8, 2, (b"eXIf", exif(orientation)[6:])))


def exif(orientation: int) -> bytes:
    return b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01" + struct.pack(">HHI", orientation, 0, 0)


# MARK: Profiles


def profiles() -> Iterator[tuple[str, bytes]]:
    yield "sRGB", ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for name, primaries in (("P3", P3), ("with red and green swapped", SWAPPED)):
        yield name, matrix_profile(primaries, PROFILE_CURVE)
    yield "linear", matrix_profile(SRGB, 1.0)
    yield TABLE, table_profile()


TABLE = "by table (A2B0 alone)"


def by_little_cms(name: str, is_deep: bool = False) -> dict[str, Any]:
    """How far Little CMS, by which libvips and Pillow convert, is off Chromium's skcms with a profile."""
    if name == TABLE:
        return {"worst": 21, "reason": "Little CMS interpolates between colours that it clipped before"}
    if is_deep and name == "P3":
        return {"worst": 13, "reason": "of 16 bits, Little CMS interpolates between colours that it clipped before"}
    return {}


def matrix_profile(primaries: tuple[tuple[float, float], ...], gamma: float) -> bytes:
    """A display profile of version 2 (ICC.1:2001-04)."""
    xyz = [numpy.array([x / y, 1, (1 - x - y) / y]) for x, y in primaries]
    columns = numpy.stack(xyz[:3], axis=1)
    columns = columns * numpy.linalg.solve(columns, xyz[3])
    # Bradford, from the white of the primaries to D50.
    cone = numpy.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])
    d50 = numpy.array([0.96422, 1.0, 0.82521])
    adapted = numpy.linalg.inv(cone) @ numpy.diag((cone @ d50) / (cone @ xyz[3])) @ cone @ columns
    curve = b"curv\0\0\0\0" + struct.pack(">IHH", 1, round(256 * gamma), 0)
    tags = [(name, fixed_xyz(adapted[:, n])) for n, name in enumerate((b"rXYZ", b"gXYZ", b"bXYZ"))]
    tags += [(name, curve) for name in (b"rTRC", b"gTRC", b"bTRC")]
    return icc_file(b"mntr", b"RGB ", b"XYZ ", [*tags, (b"wtpt", fixed_xyz(d50))])


def fixed_xyz(values: Any) -> bytes:
    return b"XYZ \0\0\0\0" + struct.pack(">3i", *(round(65_536 * float(value)) for value in values))


def table_profile() -> bytes:
    """A profile of which only A2B0 leads to the connection space, as of a scanner: it makes red and blue change places."""
    grid = 9
    steps = numpy.linspace(0, 1, grid)
    red, green, blue = numpy.meshgrid(steps, steps, steps, indexing="ij")
    linear = numpy.stack([blue, green, red], axis=-1).reshape(-1, 3) ** PROFILE_CURVE
    to_xyz = numpy.array([[0.4360, 0.3851, 0.1431], [0.2225, 0.7169, 0.0606], [0.0139, 0.0971, 0.7141]])
    ratios = (linear @ to_xyz.T) / numpy.array([0.9642, 1.0, 0.8249])
    lobes = numpy.where(ratios > 216 / 24389, numpy.cbrt(ratios), (24389 / 27 * ratios + 16) / 116)
    lab = numpy.stack(
        [116 * lobes[:, 1] - 16, 500 * (lobes[:, 0] - lobes[:, 1]), 200 * (lobes[:, 1] - lobes[:, 2])], axis=1
    )
    # Lab as in version 2, where 65280 is 100.
    coded = numpy.stack([lab[:, 0] * 652.8, (lab[:, 1] + 128) * 256, (lab[:, 2] + 128) * 256], axis=1)
    table = numpy.clip(numpy.round(coded), 0, 65_535).astype(">u2").tobytes()
    identity = struct.pack(">9i", 65_536, 0, 0, 0, 65_536, 0, 0, 0, 65_536)
    ramp = struct.pack(">HH", 0, 65_535) * 3
    lut = b"mft2\0\0\0\0" + bytes([3, 3, grid, 0]) + identity + struct.pack(">HH", 2, 2) + ramp + table + ramp
    return icc_file(b"scnr", b"RGB ", b"Lab ", [(b"A2B0", lut), (b"wtpt", fixed_xyz((0.9642, 1.0, 0.8249)))])


def icc_file(kind: bytes, space: bytes, connection: bytes, tags: list[tuple[bytes, bytes]]) -> bytes:
    tags = [*tags, (b"desc", b"desc\0\0\0\0" + struct.pack(">I", 2) + b"t\0" + bytes(78)), (b"cprt", b"text\0\0\0\0-\0")]
    place = 128 + 4 + 12 * len(tags)
    table, contents = struct.pack(">I", len(tags)), b""
    for name, content in tags:
        table += name + struct.pack(">II", place + len(contents), len(content))
        contents += content + bytes(-len(content) % 4)
    header = bytes(8) + b"\2\x40\0\0" + kind + space + connection + bytes(12) + b"acsp" + bytes(28)
    header += struct.pack(">3i", 63_190, 65_536, 54_061)
    header = struct.pack(">I", place + len(contents)) + header[4:].ljust(124, b"\0")
    return header + table + contents


# MARK: The other formats

UPSAMPLED = "colours of half the resolution are enlarged by another filter"


def jpeg_cases() -> Iterator[Case]:
    picture = Image.fromarray(colours())
    for name, subsampling in (("4:4:4", 0), ("4:2:2", 1), ("4:2:0", 2)):
        yield Case(f"JPEG {name}", saved(picture, "JPEG", quality=95, subsampling=subsampling))
        yield Case(
            f"JPEG {name}, progressive", saved(picture, "JPEG", quality=95, subsampling=subsampling, progressive=True)
        )
    yield Case("JPEG grey", saved(picture.convert("L"), "JPEG", quality=95))
    swapped = matrix_profile(SWAPPED, 1.8)
    yield Case("JPEG grey, profile of RGB", saved(picture.convert("L"), "JPEG", quality=95, icc_profile=swapped))
    yield Case("JPEG RGB", saved(picture, "JPEG", quality=95, keep_rgb=True))
    yield Case("JPEG CMYK", saved(picture.convert("CMYK"), "JPEG", quality=95))
    yield Case("JPEG CMYK, rich black", saved(Image.new("CMYK", SIZE, (180, 160, 150, 255)), "JPEG", quality=95))
    for name, profile in profiles():
        content = saved(picture, "JPEG", quality=95, subsampling=0, icc_profile=profile)
        yield Case(f"JPEG, profile {name}", content, **by_little_cms(name))
    for orientation in range(1, 9):
        content = saved(picture, "JPEG", quality=95, subsampling=0, exif=exif(orientation))
        yield Case(f"JPEG orientation {orientation}", content)
    whole = saved(picture, "JPEG", quality=95, subsampling=0)
    # The worker says that it is damaged.
    reason = "Chromium does not show the last row of blocks, all pixels of which are there"
    yield Case("JPEG without its end marker", whole[:-2], worst=255, reason=reason)
    restarts = saved(picture, "JPEG", quality=95, subsampling=0, restart_marker_rows=1)
    yield Case("JPEG with restart markers", restarts)
    place = restarts.index(b"\xff\xd2")
    yield Case("JPEG with a restart marker of another number", restarts[: place + 1] + b"\xd5" + restarts[place + 2 :])


def gif_cases() -> Iterator[Case]:
    picture = Image.fromarray(colours())
    yield Case("GIF", saved(picture.quantize(64), "GIF"))
    yield Case("GIF, interlaced", saved(picture.quantize(64), "GIF", interlace=1))
    palette = picture.quantize(64)
    yield Case("GIF, a colour transparent", saved(palette, "GIF", transparency=palette.getpixel((3, 3))))
    for disposal in (0, 1, 2, 3):
        for background in (None, 5):
            name = f"GIF frames, disposal {disposal}" + (", a colour transparent" if background is not None else "")
            yield Case(name, gif_frames(disposal, background), frames=4)
    yield Case("GIF whose frames leave a rim", gif_frames(1, None, inset=6), frames=4)
    yield Case("GIF with a later frame beyond the screen", gif_frames(1, None, beyond=10), frames=4)


def gif_frames(disposal: int, transparent: Optional[int], inset: int = 0, beyond: int = 0) -> bytes:
    """Four frames: the first over the whole screen but for `inset`, the others parts, of random colours."""
    width, height = SIZE
    random = numpy.random.default_rng(7)
    palette = random.integers(0, 256, 3 * 16, numpy.uint8).tobytes()
    file = b"GIF89a" + struct.pack("<HHBBB", width, height, 0xF3, 2, 0) + palette
    file += b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"
    boxes = [(inset, inset, width - 2 * inset, height - 2 * inset), (8, 8, 24, 20), (20, 4, 30, 30), (2, 20, 40, 20)]
    for n, (left, top, across, down) in enumerate(boxes):
        if n == 2 and beyond:
            across, down = width - left + beyond, height - top + beyond
        flags = disposal << 2 | (transparent is not None)
        file += b"\x21\xf9\x04" + struct.pack("<BHBB", flags, 10, transparent or 0, 0)
        file += b"\x2c" + struct.pack("<HHHHB", left, top, across, down, 0)
        blocks = random.integers(0, 16, (-(-down // 4), -(-across // 4)), numpy.uint8)
        indices = blocks.repeat(4, axis=0).repeat(4, axis=1)[:down, :across]
        file += lzw(indices.tobytes(), 4)
    return file + b";"


def lzw(indices: bytes, depth: int) -> bytes:
    """Without compression: a clear code before the codes would grow."""
    clear = 1 << depth
    codes: list[int] = []
    for n, index in enumerate(indices):
        if n % (clear - 2) == 0:
            codes.append(clear)
        codes.append(index)
    codes.append(clear + 1)
    bits = "".join(format(code, f"0{depth + 1}b")[::-1] for code in codes)
    bits += "0" * (-len(bits) % 8)
    content = bytes(int(bits[n : n + 8][::-1], 2) for n in range(0, len(bits), 8))
    pieces = [content[n : n + 255] for n in range(0, len(content), 255)]
    return bytes([depth]) + b"".join(bytes([len(piece)]) + piece for piece in pieces) + b"\0"


def apng_cases() -> Iterator[Case]:
    lossy = "compared as a lossy WebP, at the edges of saturated squares; alpha is alike"
    frames = []
    for n in range(3):
        pixels = with_alpha()
        pixels[8 * n : 8 * n + 16, 8 * n : 8 * n + 16] = [255, 40 * n, 0, 255]
        frames.append(Image.fromarray(pixels))
    for blend in (0, 1):
        for disposal in (0, 1, 2):
            content = saved(
                frames[0], "PNG", save_all=True, append_images=frames[1:], duration=100, disposal=disposal, blend=blend
            )
            yield Case(f"APNG, blend {blend}, disposal {disposal}", content, frames=3, worst=140, reason=lossy)
    hidden = saved(
        Image.new("RGBA", SIZE, (9, 99, 200, 255)), "PNG", save_all=True, append_images=frames, default_image=True,
        duration=100,
    )
    yield Case("APNG whose default image is no frame", hidden, frames=3, worst=140, reason=lossy)
    yield Case("APNG whose default image is no frame, a still", hidden)


def webp_cases() -> Iterator[Case]:
    picture, transparent = Image.fromarray(colours()), Image.fromarray(with_alpha())
    yield Case("WebP", saved(picture, "WEBP", quality=95))
    yield Case("WebP, lossless", saved(picture, "WEBP", lossless=True))
    yield Case("WebP, alpha", saved(transparent, "WEBP", quality=95))
    yield Case("WebP, lossless, alpha", saved(transparent, "WEBP", lossless=True, exact=True))
    for name, profile in profiles():
        content = saved(picture, "WEBP", lossless=True, icc_profile=profile)
        yield Case(f"WebP, profile {name}", content, **by_little_cms(name))
    for orientation in range(1, 9):
        content = saved(picture, "WEBP", lossless=True, exif=exif(orientation))
        # Chromium does not read EXIF in WebP; Pillow, libvips and Safari do.
        yield Case(f"WebP orientation {orientation}", content, oracle="pillow")
    frames = [Image.fromarray(numpy.roll(colours(), 8 * n, axis=1)) for n in range(3)]
    moving = saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    yield Case("WebP frames", moving, frames=3, worst=80, reason="the frames are compared as a lossy WebP")


def avif_cases() -> Iterator[Case]:
    if shutil.which("avifenc") is None:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = {"colour": folder / "colour.png", "alpha": folder / "alpha.png", "grey": folder / "grey.png"}
        Image.fromarray(colours()).save(sources["colour"])
        Image.fromarray(with_alpha()).save(sources["alpha"])
        Image.fromarray(colours()).convert("L").save(sources["grey"])
        for title, source, options in avif_options():
            target = folder / "result.avif"
            lossless = ["--min", "0", "--max", "4", "--minalpha", "0", "--maxalpha", "0"]
            command = ["avifenc", "--jobs", "1", "--speed", "8", *lossless, *options, str(sources[source]), str(target)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            worst, reason = avif_reason(title)
            yield Case(f"AVIF {title}", target.read_bytes(), worst=worst, reason=reason)


def avif_reason(title: str) -> tuple[int, str]:
    if "10 bits" in title or "12 bits" in title:
        return 9, "Chromium rounds deep samples before it converts them; the worker is nearer to what was encoded"
    if title.startswith("alpha"):
        return 20, "Chromium 156 takes the alpha of every AVIF for limited range; libavif, Pillow and the worker do not"
    if title in ("nclx PQ", "nclx HLG"):
        return 40, f"{STEEP}; this file has 8 bits"
    if title == "clap":
        return 255, "Chromium crops by no clap whose origin is not 0, 0"
    return 2, ""


def avif_options() -> Iterator[tuple[str, str, list[str]]]:
    for layout in ("444", "422", "420"):
        for depth in ("8", "10", "12"):
            for extent in ("full", "limited"):
                yield f"{layout}, {depth} bits, {extent} range", "colour", ["-y", layout, "-d", depth, "-r", extent]
    for extent in ("full", "limited"):
        yield f"grey, {extent} range", "grey", ["-y", "400", "-r", extent]
        yield f"alpha, {extent} range", "alpha", ["-y", "444", "-r", extent]
    yield "alpha, premultiplied", "alpha", ["-y", "444", "-p"]
    for name, cicp in (("P3", "12/13/6"), ("BT.2020", "9/14/9"), ("BT.709, linear", "1/8/6"), ("BT.601 matrix", "1/13/5"), ("PQ", "9/16/9"), ("HLG", "9/18/9")):
        yield f"nclx {name}", "colour", ["-y", "444", "--cicp", cicp]
    yield "identity matrix", "colour", ["-y", "444", "--cicp", "1/13/0"]
    for turns in range(4):
        yield f"irot {turns}", "colour", ["-y", "444", "--irot", str(turns)]
    for axis in range(2):
        yield f"imir {axis}", "colour", ["-y", "444", "--imir", str(axis)]
        yield f"irot 1, imir {axis}", "colour", ["-y", "444", "--irot", "1", "--imir", str(axis)]
    yield "clap", "colour", ["-y", "444", "--clap", "40,1,30,1,-4,1,3,1"]


def other_cases() -> Iterator[Case]:
    picture, transparent = Image.fromarray(colours()), Image.fromarray(with_alpha())
    yield Case("BMP, 24 bits", saved(picture, "BMP"))
    yield Case("BMP, 32 bits", saved(transparent, "BMP"))
    yield Case("BMP, 8 bits", saved(picture.quantize(200), "BMP"))
    yield Case("BMP, 1 bit", saved(picture.convert("1"), "BMP"))
    yield Case("ICO", saved(transparent.resize((48, 48)), "ICO", sizes=[(16, 16), (48, 48)], bitmap_format="bmp"))
    yield Case("ICO of PNGs", saved(transparent.resize((48, 48)), "ICO", sizes=[(16, 16), (48, 48)]))
    shapes = '<rect width="64" height="48" fill="#3366cc"/><rect x="8" y="8" width="24" height="20" fill="#fc0" fill-opacity="0.5"/>'
    for name, root in (
        ("SVG", '<svg xmlns="http://www.w3.org/2000/svg" width="64" height="48">%s</svg>'),
        ("SVG, viewBox alone", '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 48">%s</svg>'),
    ):
        yield Case(name, (root % shapes).encode())
    prefixed = shapes.replace("<rect", "<s:rect")
    yield Case("SVG with a prefix", f'<s:svg xmlns:s="http://www.w3.org/2000/svg" width="64" height="48">{prefixed}</s:svg>'.encode())
    for compression in (None, "tiff_lzw", "tiff_deflate", "packbits"):
        for mode, image in (("RGB", picture), ("RGBA", transparent), ("L", picture.convert("L"))):
            name = f"TIFF {mode}, {compression or 'raw'}"
            yield Case(name, saved(image, "TIFF", compression=compression), oracle="pillow")
    yield Case("TIFF of 16-bit grey", saved(Image.fromarray(colours()[:, :, 0].astype(numpy.uint16) * 257), "TIFF"), oracle="pillow")
    for name, profile in profiles():
        yield Case(f"TIFF, profile {name}", saved(picture, "TIFF", icc_profile=profile), oracle="pillow")


def plugin_cases() -> Iterator[Case]:
    """Formats that no browser here shows, and that Pillow reads where its plugins are."""
    picture, transparent = Image.fromarray(colours()), Image.fromarray(with_alpha())
    if find_spec("pillow_heif"):
        import_module("pillow_heif").register_heif_opener()
        for name, image in (("HEIC", picture), ("HEIC, alpha", transparent)):
            yield Case(name, saved(image, "HEIF", quality=-1, chroma=444), oracle="pillow")
    if find_spec("pillow_jxl"):
        import_module("pillow_jxl")
        for name, image in (("JPEG XL", picture), ("JPEG XL, alpha", transparent)):
            yield Case(name, saved(image, "JXL", lossless=True), oracle="pillow")


def missing() -> list[str]:
    """The formats without cases on this machine, and the packages that make them."""
    found = [] if shutil.which("avifenc") else ["AVIF: libavif-bin"]
    found += [] if find_spec("pillow_heif") else ["HEIC: pillow-heif"]
    return found + ([] if find_spec("pillow_jxl") else ["JPEG XL: pillow-jxl-plugin"])


def cases() -> Iterator[Case]:
    for group in (png_cases, apng_cases, jpeg_cases, gif_cases, webp_cases, avif_cases, other_cases, plugin_cases):
        yield from group()


assert features.check("littlecms2"), "Pillow makes the profiles"
