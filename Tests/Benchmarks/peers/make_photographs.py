"""Paints pictures of 1600 x 1200 that are as hard on a codec as photographs are: shapes, texture, some noise; JPEGs of 250 kB, and PNGs."""

import sys

import pyvips

WIDTH, HEIGHT = 1600, 1200


def clouds(seed, size):
    return pyvips.Image.perlin(WIDTH, HEIGHT, cell_size=size, seed=seed)


def photograph(seed):
    texture = sum(clouds(seed + size, size) * strength for size, strength in ((400, 60), (96, 40), (24, 22), (8, 14)))
    edges = (clouds(seed + 1, 150) > 0).ifthenelse(18, -18)
    light = texture + edges + pyvips.Image.gaussnoise(WIDTH, HEIGHT, sigma=3, mean=120, seed=seed + 2)
    warm, cold = clouds(seed + 3, 300) * 30, clouds(seed + 4, 200) * 30
    return (light + warm).bandjoin([light, light + cold - warm / 2]).cast("uchar").copy(interpretation="srgb")


if __name__ == "__main__":
    folder, jpegs, pngs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for number in range(jpegs):
        photograph(number * 1000).jpegsave(f"{folder}/{number}.jpg", Q=85)
    for number in range(pngs):
        photograph(number * 1000).pngsave(f"{folder}/{number}.png")
