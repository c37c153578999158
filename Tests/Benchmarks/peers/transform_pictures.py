"""Decodes a picture a number of times with a library, and prints the milliseconds of processor time and of the clock for
each, and the bytes of the result.

The arguments: the library, the file, a width or 0 for all pixels, the suffix and options of the result, the number.
"""

import os
import sys
import time

os.environ["VIPS_CONCURRENCY"] = "1"


def libvips(file, width, suffix):
    import pyvips

    pyvips.cache_set_max(0)
    thumbnail = pyvips.Image.thumbnail(file, width, size="down")
    return thumbnail.write_to_buffer(suffix)


def pillow(file, width, suffix):
    from PIL import Image

    with Image.open(file) as image:
        return image.convert("RGB").tobytes()


def simplejpeg(file, width, suffix):
    import simplejpeg

    with open(file, "rb") as content:
        return simplejpeg.decode_jpeg(content.read())


def opencv(file, width, suffix):
    import cv2
    import numpy

    cv2.setNumThreads(1)
    with open(file, "rb") as content:
        return cv2.imdecode(numpy.frombuffer(content.read(), numpy.uint8), cv2.IMREAD_COLOR)


if __name__ == "__main__":
    library, file, width, suffix, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
    work = {"libvips": libvips, "Pillow": pillow, "simplejpeg": simplejpeg, "OpenCV": opencv}[library]
    for _ in range(3):
        result = work(file, width, suffix)
    begun, used = time.perf_counter(), time.process_time()
    for _ in range(count):
        result = work(file, width, suffix)
    used, took = time.process_time() - used, time.perf_counter() - begun
    print(1000 * used / count, 1000 * took / count, len(result))
