"""The tool probe_image: the facts that an image's header tells, without the image."""

from __future__ import annotations

from typing import Any, Dict

import words
from calls import Content, Report, Tool, ToolError
from imageworker import Image, ImageWorker, ImageWorkerError
from schema import URL, arguments

DESCRIPTION = """\
Return format, size in pixels and bytes, number of frames and orientation of an image, without the image itself. Use it if the image may \
not be worth its tokens."""


def probe_image(worker: ImageWorker) -> Tool:
    async def probe(url: str) -> str:
        wire = await worker.call("probe", {"url": url})
        received = wire.get("received")
        note = "" if received is None else f" {received:,} bytes of it were received."
        return words.original(Image(wire)) + note

    async def run(given: Dict[str, Any], report: Report) -> Content:
        try:
            return [{"type": "text", "text": await probe(given["url"])}]
        except ImageWorkerError as error:
            raise ToolError(words.failure(error)) from error

    return Tool("probe_image", "Look at an image's header", DESCRIPTION, arguments("url", url=URL), run)
