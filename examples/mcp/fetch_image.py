"""The tool fetch_image: an image, fitted into a budget of bytes and pixels."""

from __future__ import annotations

from typing import Any, Dict

import words
from calls import Content, Report, Tool, ToolError
from fitting import Budget, first_rendition
from imageworker import ImageWorker, ImageWorkerError
from rendering import content_of, fit, load_original, renderer, source_of
from schema import URL, arguments, integer, max_bytes

MOST_PIXELS = 16_000_000
MOST_SIDE = 16_384
DESCRIPTION = """\
Download an image and return it, scaled down and compressed to fit limits of bytes and pixels. All limits apply together. Formats that \
models cannot read (AVIF, HEIC, JPEG XL, TIFF, SVG and others) are converted. Of an animation, the first frame is returned. The text says \
what was done. Another call for the same image with other limits usually downloads nothing."""


def fetch_image(worker: ImageWorker, bytes_limit: int, pixels_limit: int) -> Tool:
    """The limits are those of a call that gives none."""
    schema = arguments(
        "url",
        url=URL,
        maxBytes=max_bytes(bytes_limit),
        maxPixels=integer(64, MOST_PIXELS, "Limit of width x height", default=pixels_limit),
        maxWidth=integer(1, MOST_SIDE, "Limit of the width in pixels", default=MOST_SIDE),
        maxHeight=integer(1, MOST_SIDE, "Limit of the height in pixels", default=MOST_SIDE),
        format={
            "type": "string",
            "enum": ["auto", "jpeg", "png", "webp"],
            "default": "auto",
            "description": "auto is JPEG or WebP for photographs, and PNG for small drawings, whose text stays sharp",
        },
    )

    async def run(given: Dict[str, Any], report: Report) -> Content:
        budget = Budget(given["maxBytes"], given["maxPixels"], given["maxWidth"], given["maxHeight"])
        try:
            original = await load_original(worker, given["url"], report)
            source = source_of(original, budget)
            first = first_rendition(source, budget, given["format"])
            last, image = await fit(renderer(worker, given["url"], original), first, budget, given["format"])
        except ImageWorkerError as error:
            raise ToolError(words.failure(error)) from error
        text = f"{words.original(original)}\n{words.rendition(source, first, last, image, budget)}"
        return [content_of(image), {"type": "text", "text": text}]

    return Tool("fetch_image", "Fetch an image", DESCRIPTION, schema, run)
