"""Loads images by the worker, and renders them within a budget."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Awaitable, Callable, Optional, Tuple

from calls import Report, ToolError
from fitting import Budget, Rendition, Source, first_rendition, next_rendition
from imageworker import FileImage, Image, ImageWorker, NotCached, Progress

Render = Callable[[Rendition], Awaitable[Image]]
"""Makes a rendition as an image in base64, `wire["data"]`."""


async def load_original(worker: ImageWorker, url: str, report: Report) -> FileImage:
    """The image as the server sent it, in a file. Reports the received bytes."""

    def on_event(event: Any) -> None:
        if isinstance(event, Progress):
            report(event.received, event.total, "bytes received")

    return await worker.load(url, events=["progress"], on_event=on_event)


def source_of(image: Image, budget: Budget) -> Source:
    """The original as it is to be seen, upright. A size that the header does not tell is taken for one that just fits."""
    side = max(1, int(budget.max_pixels**0.5))
    width, height = image.width or side, image.height or side
    if image.orientation >= 5:  # EXIF: rows and columns are exchanged.
        width, height = height, width
    return Source(width, height, image.byte_count, image.format or "")


def renderer(worker: ImageWorker, url: str, original: FileImage) -> Render:
    """Renders a loaded image without another transfer: from the cache, or from its file if it must not be cached."""

    async def render(rendition: Rendition) -> Image:
        transform: Any = rendition.transform()
        try:
            return await worker.load(url, cache="only-if-cached", deliver="data", transform=transform)
        except NotCached:
            return await render_data(worker, original.path.read_bytes(), original.media_type, rendition)

    return render


async def render_data(worker: ImageWorker, content: bytes, media_type: str, rendition: Rendition) -> Image:
    url = f"data:{media_type};base64,{base64.b64encode(content).decode()}"
    transform: Any = rendition.transform()
    return await worker.load(url, store="none", deliver="data", transform=transform)


async def fit(render: Render, first: Rendition, budget: Budget, wanted: str) -> Tuple[Rendition, Image]:
    """The best rendition from `first` on that the budget permits. Raises ToolError if there is none."""
    rendition: Optional[Rendition] = first
    while rendition is not None:
        image = await render(rendition)
        if image.byte_count <= budget.max_bytes:
            return rendition, image
        rendition = next_rendition(rendition, image.byte_count, budget, wanted)
    raise ToolError(f"the image cannot be made as small as {budget.max_bytes:,} bytes: raise maxBytes, or leave format out")


def content_of(image: Image) -> "dict[str, Any]":
    """An image as a result of a tool."""
    return {"type": "image", "data": image.wire["data"], "mimeType": image.media_type}
