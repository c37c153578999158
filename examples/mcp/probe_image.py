"""The tool probe_image: the facts that an image's header tells, without the image."""

from __future__ import annotations

from typing import Any, Dict

import words
from calls import Content, Report, Tool, ToolError
from imageworker import ImageWorker, ImageWorkerError
from rendering import load_original
from schema import URL, arguments

DESCRIPTION = """\
Return format, size in pixels and bytes, number of frames and orientation of an image, without the image itself. Use it if the image may \
not be worth its tokens."""
WHOLE = "This version of the worker cannot read a header alone: the whole image was downloaded, and fetch_image now takes it from the cache."


def probe_image(worker: ImageWorker) -> Tool:
    async def run(given: Dict[str, Any], report: Report) -> Content:
        try:
            image = await load_original(worker, given["url"], report)
        except ImageWorkerError as error:
            raise ToolError(words.failure(error)) from error
        note = f"\n{WHOLE}" if image.cache == "miss" else ""
        return [{"type": "text", "text": words.original(image) + note}]

    return Tool("probe_image", "Look at an image's header", DESCRIPTION, arguments("url", url=URL), run)
