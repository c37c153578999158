"""Paints JPEGs that are as hard on a codec as photographs are, and gives each of them several names.

    bulk_photographs.py FOLDER PAINTED NAMES WIDTH HEIGHT
"""

import os
import sys

import cv2
import numpy

folder = sys.argv[1]
painted, names, width, height = map(int, sys.argv[2:])
random = numpy.random.default_rng(1)
for number in range(painted):
    picture = numpy.full((height, width, 3), 128, numpy.float32)
    for cells, strength in ((3, 60), (8, 40), (24, 20), (75, 12), (225, 7)):
        noise = random.normal(0, strength, (cells * 3 // 4, cells, 3)).astype(numpy.float32)
        picture += cv2.resize(noise, (width, height), interpolation=cv2.INTER_CUBIC)
    _, content = cv2.imencode(".jpg", picture.clip(0, 255).astype(numpy.uint8), [cv2.IMWRITE_JPEG_QUALITY, 90])
    with open(f"{folder}/{number}.jpg", "wb") as file:
        file.write(content.tobytes())
for number in range(painted, names):
    os.link(f"{folder}/{number % painted}.jpg", f"{folder}/{number}.jpg")
