"""Paints a mix of images as LAION's lists have them, and prints how many bytes they have on average.

    record_pictures.py FOLDER COUNT

Areas are log-normal, about 130 kB for a JPEG on average. Photographs are JPEGs (a fifth of them progressive), WebPs and AVIFs; PNGs and GIFs
are drawings, with few colours. A fifth of the GIFs is animated.
"""

import math
import sys
from pathlib import Path
from typing import Any, Dict

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy  # noqa: E402
from painting import encoded, photograph  # noqa: E402

SHARES = {"jpeg": 85, "png": 8, "webp": 4, "gif": 2, "avif": 1}
"""Percent of each format."""
MEDIAN_AREA, SIGMA = 640_000, 0.85
RATIOS = 0.3
LIMITS = (10_000, 6_000_000)

folder, count = Path(sys.argv[1]), int(sys.argv[2])
chance = numpy.random.default_rng(1)
kinds = [kind for kind, share in SHARES.items() for _ in range(max(1, round(share * count / 100)))]
for number, kind in enumerate(kinds):
    area = min(max(MEDIAN_AREA * math.exp(SIGMA * chance.normal()), LIMITS[0]), LIMITS[1])
    ratio = math.exp(0.25 + RATIOS * chance.normal())
    picture = photograph(max(16, round(math.sqrt(area * ratio))), max(16, round(math.sqrt(area / ratio))), number)
    if kind in ("png", "gif"):
        picture = picture.quantize(24, dither=Image.Dither.NONE)
    options: Dict[str, Any] = {
        "jpeg": {"quality": 90, "progressive": number % 5 == 0},
        "webp": {"quality": 80, "method": 2},
        "avif": {"quality": 60, "speed": 9},
        "png": {"compress_level": 6},
    }.get(kind, {})
    if kind == "gif" and number % 5 == 0:
        options = {"save_all": True, "append_images": [picture.rotate(180), picture], "duration": 100}
    (folder / f"{number:04}.{kind}").write_bytes(encoded(picture, kind.upper(), **options))
files = list(folder.iterdir())
print(sum(file.stat().st_size for file in files) // len(files))
