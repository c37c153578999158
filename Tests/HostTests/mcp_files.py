"""A web server in a test's network, and pictures for it that are hard to fit into a budget."""

from __future__ import annotations

import functools
import io
import subprocess
import sys
from pathlib import Path
from typing import Any, Sequence

from public_network import ADDRESS


class Files:
    """Serves a folder at `url`."""

    def __init__(self, prefix: Sequence[str], folder: Path) -> None:
        command = [*prefix, sys.executable, "-u", "-m", "http.server", "0", "--bind", ADDRESS, "--directory", str(folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout
        self._output = self._process.stdout
        self.url = self._output.readline().split("(")[1].split(")")[0].rstrip("/")

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._output.close()


def photograph(width: int, height: int, seed: int = 1) -> Any:
    """A Pillow image that compresses like a photograph: smooth shapes under noise."""
    import numpy
    from PIL import Image

    noise = numpy.random.default_rng(seed)
    shapes = Image.fromarray(noise.integers(0, 256, (9, 12, 3), numpy.uint8), "RGB").resize((width, height), Image.Resampling.BICUBIC)
    grain = noise.normal(0, 10, (height, width, 1))
    return Image.fromarray((numpy.asarray(shapes) + grain).clip(0, 255).astype(numpy.uint8), "RGB")


def noise(width: int, height: int) -> Any:
    """A Pillow image that hardly compresses."""
    import numpy
    from PIL import Image

    return Image.fromarray(numpy.random.default_rng(2).integers(0, 256, (height, width, 3), numpy.uint8), "RGB")


def drawing(width: int, height: int) -> Any:
    """A Pillow image of black lines and letters on transparent ground."""
    from PIL import Image, ImageDraw

    picture = Image.new("RGBA", (width, height), (255, 255, 255, 0))
    draw = ImageDraw.Draw(picture)
    for y in range(0, height, 24):
        draw.text((8, y), f"line {y}: the quick brown fox jumps over the lazy dog", fill=(0, 0, 0, 255))
    return picture


def encoded(picture: Any, format: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, format, **options)
    return stream.getvalue()


@functools.lru_cache(maxsize=None)
def pictures() -> "dict[str, bytes]":
    """Files by their names."""
    from PIL import Image

    large = photograph(2400, 1800)
    upright = Image.Exif()
    upright[0x0112] = 6  # EXIF orientation: rows are columns.
    frames = [photograph(200, 150, seed) for seed in range(4)]
    return {
        "photo.jpg": encoded(large, "JPEG", quality=92),
        "turned.jpg": encoded(photograph(1600, 900), "JPEG", exif=upright),
        "photo.png": encoded(photograph(1200, 900), "PNG"),
        "photo.webp": encoded(photograph(1000, 1500), "WEBP"),
        "photo.tiff": encoded(photograph(640, 480), "TIFF"),
        "noise.png": encoded(noise(900, 900), "PNG"),
        "drawing.png": encoded(drawing(1600, 1200), "PNG"),
        "grey.jpg": encoded(photograph(1500, 300).convert("L"), "JPEG"),
        "animated.gif": encoded(frames[0], "GIF", save_all=True, append_images=frames[1:]),
        "strip.png": encoded(noise(12_000, 8), "PNG"),
        "tower.jpg": encoded(noise(3, 9_000), "JPEG"),
        "dot.png": encoded(noise(1, 1), "PNG"),
        "drawing.svg": b'<svg xmlns="http://www.w3.org/2000/svg" width="3000" height="2000"><circle cx="900" cy="900" r="800"/></svg>',
    }
