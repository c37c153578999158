"""The tool contact_sheet: many images as one, with a number in each cell."""

from __future__ import annotations

import asyncio
import math
from typing import Any, Dict, List, Tuple, Union

import words
from calls import Content, Report, Tool, ToolError
from fitting import BEST, Budget, Rendition
from imageworker import ImageWorker, ImageWorkerError, PixelsImage
from rendering import content_of, fit, render_data
from schema import URL, arguments, integer, max_bytes
from sheet import Layout, Picture, png_of_sheet

MOST_IMAGES = 64
MOST_PIXELS = 4_000_000
LARGEST_CELL, DEFAULT_CELL, SMALLEST_CELL = 512, 256, 32
DESCRIPTION = f"""\
Download up to {MOST_IMAGES} images and return one image with a numbered cell for each, row by row. The text lists each number with size and \
URL. The cell of an image that failed is grey with a red cross, and the text says why. Use it to choose among many images for the tokens \
of one, then fetch_image for those that you chose."""

Cell = Union[Tuple[Picture, str], ImageWorkerError]
"""The pixels of a cell and a description of the original, or the reason why there are none."""


def contact_sheet(worker: ImageWorker, bytes_limit: int, pixels_limit: int) -> Tool:
    """The limits are those of a call that gives none."""
    cell = f"Width and height of a cell in pixels, smaller if maxPixels is too low. Default: up to {DEFAULT_CELL}"
    schema = arguments(
        "urls",
        urls={"type": "array", "items": URL, "minItems": 1, "maxItems": MOST_IMAGES},
        columns=integer(1, 16, "Cells in a row. Default: as many as rows, or one more"),
        cell=integer(SMALLEST_CELL, LARGEST_CELL, cell),
        maxBytes=max_bytes(bytes_limit),
        maxPixels=integer(100_000, MOST_PIXELS, "Limit of the sheet's width x height", default=min(pixels_limit, MOST_PIXELS)),
    )

    async def run(given: Dict[str, Any], report: Report) -> Content:
        urls: List[str] = given["urls"]
        layout = layout_of(len(urls), given.get("columns"), given.get("cell", DEFAULT_CELL), given["maxPixels"])
        done = 0

        async def load(url: str) -> Cell:
            nonlocal done
            cell = await load_cell(worker, url, layout.side)
            done += 1
            report(done, len(urls), "images loaded")
            return cell

        cells = await asyncio.gather(*map(load, urls))
        lines = [f"{number}. {legend(cell)} {words.shortened(url)}" for number, (cell, url) in enumerate(zip(cells, urls), 1)]
        if all(isinstance(cell, ImageWorkerError) for cell in cells):
            raise ToolError("\n".join(["No image could be loaded.", *lines]))
        pictures = [None if isinstance(cell, ImageWorkerError) else cell[0] for cell in cells]
        # On another thread: it takes up to a second, in which a cancellation must be read.
        png = await asyncio.get_running_loop().run_in_executor(None, png_of_sheet, layout, pictures)
        budget = Budget(given["maxBytes"], given["maxPixels"], layout.width, layout.height)

        async def render(rendition: Rendition) -> Any:
            return await render_data(worker, png, "image/png", rendition)

        try:
            last, image = await fit(render, Rendition(layout.width, layout.height, "jpeg", BEST), budget, "jpeg")
        except ImageWorkerError as error:
            raise ToolError(words.failure(error)) from error
        head = f"{len(urls)} images in {layout.columns} columns and {layout.rows} rows, cells of {layout.side} x {layout.side} pixels."
        sent = f"Sent as {words.image_file(image)}, quality {last.quality}."
        return [content_of(image), {"type": "text", "text": "\n".join([f"{head} {sent}", *lines])}]

    return Tool("contact_sheet", "Show many images as one", DESCRIPTION, schema, run)


def layout_of(count: int, columns: Any, side: int, most_pixels: int) -> Layout:
    """The layout with the largest cells of at most `side` that has few enough pixels. `columns` may be None."""
    columns = min(count, columns or math.ceil(math.sqrt(count)))
    while side > 1:
        layout = Layout(count, columns, side)
        if layout.width * layout.height <= most_pixels:
            break
        side -= 1
    return layout


async def load_cell(worker: ImageWorker, url: str, side: int) -> Cell:
    try:
        image = await worker.load(url, deliver="pixels", transform={"width": side, "height": side})
    except ImageWorkerError as error:
        return error
    assert isinstance(image, PixelsImage) and image.source is not None
    with image.pixels as pixels:
        picture = Picture(pixels.width, pixels.height, pixels.stride, pixels.channels, pixels.memory)
    return picture, words.image_file(image.source)


def legend(cell: Cell) -> str:
    return f"FAILED, {words.failure(cell)}" if isinstance(cell, ImageWorkerError) else cell[1]
