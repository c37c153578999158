"""Paints the pictures of the benchmark `codecs` into a folder: a photograph in two sizes and several formats, and a screenshot."""

import sys

import pyvips

from make_photographs import photograph


def screenshot(width, height):
    """Text and boxes, as in an application."""
    picture = pyvips.Image.black(width, height).new_from_image([250, 250, 252]).cast("uchar")
    text = pyvips.Image.text("\n".join("The quick brown fox jumps over the lazy dog %d" % n for n in range(60)), dpi=96)
    ink = text.new_from_image([30, 34, 40]).cast("uchar").bandjoin(text)
    boxes = picture
    for place in range(24):
        left, top = place * 331 % (width - 300), place * 197 % (height - 120)
        boxes = boxes.draw_rect([40 + 8 * place, 200 - 6 * place, 120], left, top, 260, 90, fill=True)
    page = boxes.copy(interpretation="srgb")
    for column in range(0, width - text.width, text.width + 40):
        page = page.composite2(ink.copy(interpretation="srgb"), "over", x=column, y=30).flatten()
    return page.cast("uchar")


if __name__ == "__main__":
    folder = sys.argv[1]
    whole = photograph(7).copy_memory()
    large = whole.resize(2725 / 1600, vscale=2225 / 1200).cast("uchar").copy_memory()
    middle = whole.resize(1.28).cast("uchar").copy_memory()
    large.write_to_file(f"{folder}/large.jpg", Q=90)
    whole.resize(0.375).cast("uchar").write_to_file(f"{folder}/small.jpg", Q=90)
    large.write_to_file(f"{folder}/progressive.jpg", Q=90, interlace=True)
    middle.write_to_file(f"{folder}/photo.png")
    screenshot(2048, 1536).write_to_file(f"{folder}/screen.png")
    whole.write_to_file(f"{folder}/middle.webp", Q=80)
    whole.write_to_file(f"{folder}/middle.avif", Q=60, effort=1)
