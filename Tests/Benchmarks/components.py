#!/usr/bin/env python3
"""How far a worker's smaller JPEG is from the picture before it became a JPEG, made as small by the same filter; beside what the filter makes of
all pixels of the JPEG.

    components.py [WORKER]

Needs pyvips, numpy and Pillow. Photographs of 1600 x 1200, with half the colour resolution and with all of it. In decibels (PSNR): more is nearer.
"""

from __future__ import annotations

import base64
import io
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "python"))

from imageworker import BlockingImageWorker  # noqa: E402
from light import patterns  # noqa: E402
from PIL import Image  # noqa: E402
from reduced import decibels, smaller  # noqa: E402

WIDTHS = (1300, 1000, 700, 500, 256)


def main() -> None:
    if len(sys.argv) > 1:
        os.environ["IMAGEWORKER"] = str(Path(sys.argv[1]).resolve())
    row = "{:<8} {:>6} {:>12} {:>12}".format
    print(row("colours", "width", "worker", "all pixels"))
    picture = patterns()["photographs"][0].cast("uchar").copy(interpretation="srgb")
    original = Image.frombytes("RGB", (picture.width, picture.height), picture.write_to_memory())
    with BlockingImageWorker() as worker:
        for colours, mode in (("half", "on"), ("all", "off")):
            file = picture.jpegsave_buffer(Q=90, subsample_mode=mode)
            url = "data:image/jpeg;base64," + base64.b64encode(file).decode()
            for width in WIDTHS:
                answer = worker.load(url, transform={"width": width, "format": "png"}, deliver="data", store="none")
                small = Image.open(io.BytesIO(answer.data)).convert("RGB")
                reference = smaller(original, small.size)
                of_all = smaller(Image.open(io.BytesIO(file)), small.size)
                print(row(colours, width, f"{decibels(small, reference):.1f}", f"{decibels(of_all, reference):.1f}"))


if __name__ == "__main__":
    main()
