"""Paints pictures of 1600 x 1200 that are as hard on a codec as photographs are: shapes, texture, some noise; JPEGs have 250 kB.

The arguments are a folder, the extension of the files and how many there are to be.
"""

import sys

import pyvips

WIDTH, HEIGHT = 1600, 1200
OPTIONS = {
    "jpg": {"Q": 85},
    "png": {},
    "gif": {},
    "webp": {"Q": 80},
    "avif": {"Q": 60, "effort": 1},
    "tif": {"compression": "lzw", "predictor": "horizontal"},
}


def clouds(seed, size):
    return pyvips.Image.perlin(WIDTH, HEIGHT, cell_size=size, seed=seed)


def photograph(seed):
    texture = sum(clouds(seed + size, size) * strength for size, strength in ((400, 60), (96, 40), (24, 22), (8, 14)))
    edges = (clouds(seed + 1, 150) > 0).ifthenelse(18, -18)
    light = texture + edges + pyvips.Image.gaussnoise(WIDTH, HEIGHT, sigma=3, mean=120, seed=seed + 2)
    warm, cold = clouds(seed + 3, 300) * 30, clouds(seed + 4, 200) * 30
    return (light + warm).bandjoin([light, light + cold - warm / 2]).cast("uchar").copy(interpretation="srgb")


if __name__ == "__main__":
    folder, extension, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    for number in range(count):
        photograph(number * 1000).write_to_file(f"{folder}/{number}.{extension}", **OPTIONS[extension])
