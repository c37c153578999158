"""Paints pictures of 60 kB to 5 MB in four formats.

Every second JPEG has 12 kB of EXIF data at its start, as cameras write. libvips writes EXIF data at the end of a WebP. Each
WebP is there once with it and once without.

The argument is a folder. It prints the width and height of each file as JSON.
"""

import json
import math
import sys
from pathlib import Path

import pyvips

SIZES = (60_000, 150_000, 400_000, 1_000_000, 2_000_000, 5_000_000)
OPTIONS = {
    ".jpg": {"Q": 85},
    ".png": {"compression": 1},
    ".webp": {"Q": 85, "effort": 0},
    ".avif": {"Q": 90, "effort": 0},
}
SAMPLE = 512


def picture(width, height):
    light = pyvips.Image.perlin(width, height, cell_size=96, seed=1) * 60
    noise = pyvips.Image.gaussnoise(width, height, sigma=20, mean=120, seed=2)
    return (light + noise).bandjoin([light + noise * 0.8, noise]).cast("uchar").copy(interpretation="srgb")


def with_exif(jpeg):
    """The file with an APP1 segment of 12 kB, whose TIFF directory is empty (Exif 2.3 section 4.5.4)."""
    exif = b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0" + bytes(12_000)
    return jpeg[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + jpeg[2:]


def without_exif(webp):
    """The file with its image chunk alone (RFC 9649 section 2.5)."""
    assert webp[12:16] == b"VP8X" and webp[30:34] == b"VP8 "
    chunk = webp[30 : 38 + int.from_bytes(webp[34:38], "little")]
    chunk += bytes(len(chunk) % 2)
    return b"RIFF" + (len(chunk) + 4).to_bytes(4, "little") + b"WEBP" + chunk


def main(folder):
    sides = {}
    for extension, options in OPTIONS.items():
        bytes_a_pixel = len(picture(SAMPLE, SAMPLE).write_to_buffer(extension, **options)) / SAMPLE**2
        for number, size in enumerate(SIZES):
            width = round(math.sqrt(size / bytes_a_pixel * 4 / 3))
            height = width * 3 // 4
            data = picture(width, height).write_to_buffer(extension, **options)
            if extension == ".jpg" and number % 2:
                data = with_exif(data)
            files = {f"{size}{extension}": data}
            if extension == ".webp":
                files = {f"{size}.webp": without_exif(data), f"{size}-exif.webp": data}
            for name, content in files.items():
                (folder / name).write_bytes(content)
                sides[name] = (width, height)
    print(json.dumps(sides))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
