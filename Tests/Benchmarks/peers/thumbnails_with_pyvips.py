"""Makes JPEG thumbnails of a folder's images of one kind into another, with a pool of processes, and prints how many seconds that took.

Start-up and imports do not count, and each process has made a thumbnail before. One thread a process is its fastest with
as many processes as cores.
"""

import multiprocessing
import os
import sys
import time
from pathlib import Path

os.environ["VIPS_CONCURRENCY"] = "1"
import pyvips  # noqa: E402

pyvips.cache_set_max(0)  # No picture comes twice, so that what it keeps of the last hundred would only cost.

source, target, extension, side, quality, processes = *sys.argv[1:4], *map(int, sys.argv[4:])
files = sorted(path.name for path in Path(source).glob(f"*.{extension}"))


def thumbnail(name):
    image = pyvips.Image.thumbnail(f"{source}/{name}", side, height=side)
    image.jpegsave(f"{target}/{name}.jpg", Q=quality, strip=True, optimize_coding=True)


def warm_up():
    pyvips.Image.thumbnail(f"{source}/{files[0]}", side, height=side).jpegsave_buffer(Q=quality)


with multiprocessing.get_context("spawn" if sys.platform == "darwin" else "fork").Pool(processes, warm_up) as pool:
    pool.map(time.sleep, [0.1] * processes, chunksize=1)
    begun = time.perf_counter()
    for _ in pool.imap_unordered(thumbnail, files):
        pass
    took = time.perf_counter() - begun
if any(pyvips.Image.new_from_file(f"{target}/{name}.jpg").width != side for name in files):
    sys.exit("not the thumbnails that were asked for")
print(took)
