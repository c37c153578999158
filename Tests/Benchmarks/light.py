#!/usr/bin/env python3
"""Shrinking by the stored values beside shrinking in linear light: how far each is from a reference, and what it costs.

Needs pyvips and numpy. The reference is shrunk in linear light from all pixels, in floating point. What is compared are the
steps that the decoder takes, and could take, in its own library; both as 8 bits, 1600 x 1200 to 256 x 192.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict

os.environ["VIPS_CONCURRENCY"] = "1"
sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

import numpy  # noqa: E402
import pyvips  # noqa: E402
from make_photographs import HEIGHT, WIDTH, photograph  # noqa: E402

Image = pyvips.Image
SCALE = 0.16
TIMES = 40


def load(file: bytes, shrink: int = 1) -> Any:
    return Image.jpegload_buffer(file, shrink=shrink, access="sequential")


def shrunk(image: Any) -> Any:
    return image.resize(WIDTH * SCALE / image.width, vscale=HEIGHT * SCALE / image.height)


def in_linear_light(image: Any) -> Any:
    return shrunk(image.colourspace("scrgb")).colourspace("srgb")


WAYS: Dict[str, Callable[[bytes], Any]] = {
    "stored values, shrunk while loading": lambda file: shrunk(load(file, shrink=2)),
    "stored values, from all pixels": lambda file: shrunk(load(file)),
    "linear light, shrunk while loading": lambda file: in_linear_light(load(file, shrink=2)),
    "linear light, from all pixels": lambda file: in_linear_light(load(file)),
}


def patterns() -> Dict[str, Any]:
    x, y = Image.xyz(WIDTH, HEIGHT)[0], Image.xyz(WIDTH, HEIGHT)[1]
    grid = ((x % 16) < 2) | ((y % 16) < 2)
    made = {
        "photographs": [photograph(seed) for seed in (1, 1001, 2001, 3001)],
        "dark lines on white": [grid.ifthenelse(30, 255)],
        "light lines on black": [grid.ifthenelse(255, 0)],
        "a zone plate": [((Image.zone(WIDTH, HEIGHT) + 1) * 127.5)],
    }
    try:
        text = Image.text("The quick brown fox jumps over the lazy dog. " * 80, width=WIDTH - 40, dpi=150)
        made["black text on white"] = [255 - text.gravity("centre", WIDTH, HEIGHT)]
    except pyvips.Error:
        print("no text: libvips has none, or there is no font")
    return made


def pixels(image: Any) -> Any:
    return numpy.asarray(image.numpy(), dtype=float)


def reference(file: bytes) -> Any:
    linear = shrunk(load(file).copy_memory().colourspace("scrgb"))
    light = numpy.clip(pixels(linear), 0, 1)
    return 255 * numpy.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


def main() -> None:
    row = "{:<22} {:<38} {:>10} {:>10} {:>8}".format
    print(row("picture", "way", "difference", "brightness", "ms"))
    for name, pictures in patterns().items():
        files = [
            picture.cast("uchar").bandjoin([picture.cast("uchar")] * 2 if picture.bands == 1 else [])
            .copy(interpretation="srgb").jpegsave_buffer(Q=90)
            for picture in pictures
        ]
        references = [reference(file) for file in files]
        for way, make in WAYS.items():
            differences = [pixels(make(file)) - expected for file, expected in zip(files, references)]
            begun = time.process_time()
            for number in range(TIMES):
                make(files[number % len(files)]).copy_memory()
            cost = (time.process_time() - begun) / TIMES * 1000
            mean = numpy.mean([abs(difference).mean() for difference in differences])
            bias = numpy.mean([difference.mean() for difference in differences])
            print(row(name, way, f"{mean:.2f}", f"{bias:+.2f}", f"{cost:.1f}"))


if __name__ == "__main__":
    main()
