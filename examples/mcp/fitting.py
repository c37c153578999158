"""Fits an image into a budget of bytes and pixels: a pure plan of renditions, each smaller than the one before."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Optional

QUALITIES = {85: 1.0, 70: 0.65, 50: 0.45}
"""The qualities of JPEG and WebP that are tried, from the best, with the typical size of a file relative to that of the best."""
BEST, LOWEST = max(QUALITIES), min(QUALITIES)
LOSSLESS = {"png", "gif", "bmp", "ico", "svg", "tiff"}
"""Formats of drawings and screenshots, whose text JPEG blurs."""
LEAST_PIXELS = 64
"""An image that does not fit with so few pixels never fits: its headers alone are too large."""


@dataclass(frozen=True)
class Budget:
    """The limits of a result. `max_bytes` is the size of the image's file, of which base64 makes a third more."""

    max_bytes: int
    max_pixels: int
    max_width: int
    max_height: int


@dataclass(frozen=True)
class Source:
    """An original: its size in pixels as it is to be seen, upright."""

    width: int
    height: int
    byte_count: int
    format: str


@dataclass(frozen=True)
class Rendition:
    """What the worker is asked for. `quality` is None for PNG."""

    width: int
    height: int
    format: str
    quality: Optional[int]

    def transform(self) -> dict[str, object]:
        """The parameter of `load`. It removes metadata, turns the image upright and takes the first frame."""
        return {"width": self.width, "height": self.height, "format": self.format, "quality": self.quality}


def first_rendition(source: Source, budget: Budget, wanted: str) -> Rendition:
    """The best rendition that has few enough pixels. `wanted` is a format or `auto`."""
    pixels = source.width * source.height
    scale = min(
        1.0, math.sqrt(budget.max_pixels / pixels), budget.max_width / source.width, budget.max_height / source.height
    )
    width, height = _scaled(source.width, source.height, scale)
    if width * height > budget.max_pixels:  # A side of a very long image is not below one pixel.
        width, height = min(width, budget.max_pixels), min(height, budget.max_pixels)
    if wanted == "auto":
        # PNG keeps text sharp. It is tried only where the size of the original promises that it fits.
        is_small = source.format == "svg" or source.byte_count * scale**2 <= budget.max_bytes
        is_lossless = source.format in LOSSLESS and is_small
        wanted = "png" if is_lossless else "jpeg" if source.format == "jpeg" else "webp"
    return Rendition(width, height, wanted, None if wanted == "png" else BEST)


def next_rendition(last: Rendition, size: int, budget: Budget, wanted: str) -> Optional[Rendition]:
    """The rendition after one of `size` bytes that does not fit. None if no rendition fits.

    A lower quality comes first, if it can suffice. Otherwise the image gets smaller, by a tenth of each side or more.
    """
    if last.quality is None and wanted == "auto":
        return replace(last, format="webp", quality=BEST)
    expected = float(size)
    if last.quality is not None:
        for quality, share in QUALITIES.items():
            expected = size * share / QUALITIES[last.quality]
            if quality < last.quality and expected <= budget.max_bytes:
                return replace(last, quality=quality)
    width, height = _scaled(last.width, last.height, min(0.9, 0.95 * math.sqrt(budget.max_bytes / expected)))
    if last.width * last.height <= LEAST_PIXELS or (width, height) == (last.width, last.height):
        return None
    return replace(last, width=width, height=height, quality=None if last.quality is None else LOWEST)


def _scaled(width: int, height: int, scale: float) -> tuple[int, int]:
    """Rounded down, so that no limit is exceeded, but never to nothing."""
    tiny = 1e-9  # A product such as 4032 * (1568 / 4032) may lie just below the integer that it is.
    return max(1, math.floor(width * scale + tiny)), max(1, math.floor(height * scale + tiny))
