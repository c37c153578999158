"""The tool probe_image: the facts that an image's header tells, without the image."""

from __future__ import annotations

from typing import Any, Dict, Optional, cast

import words
from calls import Content, Report, Tool, ToolError
from imageworker import Image, ImageWorker, ImageWorkerError, Method
from rendering import load_original
from schema import URL, arguments

DESCRIPTION = """\
Return format, size in pixels and bytes, number of frames and orientation of an image, without the image itself. Use it if the image may \
not be worth its tokens."""
WHOLE = "This version of the worker cannot read a header alone: the whole image was downloaded, and fetch_image now takes it from the cache."


def probe_image(worker: ImageWorker) -> Tool:
    has_probe: Optional[bool] = None

    async def probe(url: str, report: Report) -> str:
        nonlocal has_probe
        if has_probe is None:
            has_probe = "probe" in (await worker.initialize()).methods
        if has_probe:
            wire = await worker.call(cast(Method, "probe"), {"url": url})
            received = wire.get("received")
            note = "" if received is None else f" {received:,} bytes of it were received."
            return words.original(Image(wire)) + note
        image = await load_original(worker, url, report)
        return words.original(image) + (f"\n{WHOLE}" if image.cache == "miss" else "")

    async def run(given: Dict[str, Any], report: Report) -> Content:
        try:
            return [{"type": "text", "text": await probe(given["url"], report)}]
        except ImageWorkerError as error:
            raise ToolError(words.failure(error)) from error

    return Tool("probe_image", "Look at an image's header", DESCRIPTION, arguments("url", url=URL), run)
