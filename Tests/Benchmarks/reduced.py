#!/usr/bin/env python3
"""How much of a reduction libjpeg may do: how far its halves, brought to their final size by Lanczos' filter, are from what the filter makes of
all pixels, beside an average of areas.

Needs pyvips, numpy, Pillow and OpenCV, whose averages of areas are exact. 1600 x 1200 to what is a little smaller than half. In decibels (PSNR): more is nearer.
"""

from __future__ import annotations

import io
import sys
from typing import Any, Tuple

sys.dont_write_bytecode = True

import cv2  # noqa: E402
import numpy  # noqa: E402
from light import patterns  # noqa: E402
from make_photographs import HEIGHT, WIDTH  # noqa: E402
from PIL import Image  # noqa: E402

LEFT = (1.0, 1.17, 1.25, 1.5, 1.75, 2.0)
"""By how much the filter makes the half of libjpeg smaller."""


def decibels(image: Any, reference: Any) -> float:
    difference = numpy.asarray(image, float) - numpy.asarray(reference, float)
    return float(10 * numpy.log10(255**2 / (difference**2).mean()))


def smaller(image: Any, size: Tuple[int, int]) -> Any:
    """By Lanczos' filter, rounded once: of bytes, Pillow would round and cut off what lies between its two passes as well."""
    bands = [band.convert("F").resize(size, Image.Resampling.LANCZOS) for band in image.convert("RGB").split()]
    return numpy.clip(numpy.rint(numpy.dstack(bands)), 0, 255)


def differences(file: bytes, left: float) -> Tuple[float, float]:
    size = (round(WIDTH / 2 / left), round(HEIGHT / 2 / left))
    full, half = Image.open(io.BytesIO(file)), Image.open(io.BytesIO(file))
    half.draft("RGB", (WIDTH // 2, HEIGHT // 2))
    if half.size != (WIDTH // 2, HEIGHT // 2):
        raise RuntimeError(f"libjpeg made {half.size}")
    reference = smaller(full, size)
    of_half = smaller(half, size)
    of_areas = cv2.resize(numpy.asarray(full), size, interpolation=cv2.INTER_AREA)
    return decibels(of_half, reference), decibels(of_areas, reference)


def main() -> None:
    row = "{:<22} {:>6} {:>10} {:>10}".format
    print(row("picture", "left", "half", "area"))
    for name, pictures in patterns().items():
        files = [
            picture.cast("uchar").bandjoin([picture.cast("uchar")] * 2 if picture.bands == 1 else [])
            .copy(interpretation="srgb").jpegsave_buffer(Q=90)
            for picture in pictures
        ]
        for left in LEFT:
            half, area = numpy.mean([differences(file, left) for file in files], axis=0)
            print(row(name, f"{left:.2f}", f"{half:.1f}", f"{area:.1f}"))


if __name__ == "__main__":
    main()
