"""Pictures that are as hard on a codec as photographs are, by numpy and Pillow."""

from __future__ import annotations

import io
from typing import Any

import numpy
from PIL import Image


def photograph(width: int, height: int, seed: int) -> Any:
    """A Pillow image by the recipe of peers/bulk_photographs.py."""
    random = numpy.random.default_rng(seed)
    picture = numpy.full((height, width, 3), 128, numpy.float32)
    for cells, strength in ((3, 60), (8, 40), (24, 20), (75, 12), (225, 7)):
        noise = random.normal(128, strength, (cells * 3 // 4, cells, 3)).clip(0, 255).astype(numpy.uint8)
        picture += numpy.asarray(Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)).astype(numpy.float32) - 128
    return Image.fromarray(picture.clip(0, 255).astype(numpy.uint8))


def encoded(picture: Any, format: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, format, **options)
    return stream.getvalue()
