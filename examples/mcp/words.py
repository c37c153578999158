"""The sentences of results. They contain nothing that a server could have written, except the URL of a redirect."""

from __future__ import annotations

from typing import Optional

from fitting import BEST, Budget, Rendition, Source
from imageworker import Image, ImageWorkerError

LONGEST_URL = 300
ORIGINS = {
    "miss": "from the network",
    "memory": "from the cache",
    "disk": "from the cache",
    "revalidated": "from the cache, confirmed by the server",
    "stale": "from the cache, out of date",
}
HINTS = {
    "notAnImage": "Give the URL of an image itself, not of a page that shows it.",
    "resolve": "Check the name of the server.",
    "tooLarge": "Images of more than 20 MB are not downloaded.",
    "tooManyPixels": "Images of more than 40 megapixels are not decoded.",
    "recentlyFailed": "It failed less than a minute ago, and was not tried again.",
}


def failure(error: ImageWorkerError) -> str:
    if error.kind == "blockedAddress":  # Its message names the address, which may be that of an internal name.
        return "blockedAddress: the URL leads to an address that is not on the public internet, and only that can be reached."
    hint = HINTS.get(error.kind, "It may succeed later." if error.retryable else "")
    return f"{error.kind}: {error}. {hint}".rstrip()


def image_file(format: Optional[str], width: Optional[int], height: Optional[int], byte_count: int) -> str:
    size = f"{width} x {height} pixels, " if width and height else ""
    return f"{(format or 'unknown format').upper()}, {size}{byte_count:,} bytes"


def original(image: Image) -> str:
    """An image that was loaded without a transform."""
    parts = [f"{image_file(image.format, image.width, image.height, image.byte_count)}, {ORIGINS[image.cache]}."]
    if image.frames > 1:
        parts.append(f"It has {image.frames} frames.")
    if image.orientation != 1:
        parts.append(f"Its EXIF orientation is {image.orientation}.")
    if image.final_url is not None:
        parts.append(f"Redirected to {shortened(image.final_url)}")
    return " ".join(parts)


def rendition(source: Source, first: Rendition, last: Rendition, image: Image, budget: Budget) -> str:
    """The image that is sent, and why it is not as large or as good as the original."""
    quality = "" if last.quality is None else f", quality {last.quality}"
    limits = []
    if (first.width, first.height) != (source.width, source.height):
        limits += [name for name, value in _exceeded(source, budget) if value]
    if (first.width, first.height) != (last.width, last.height) or last.quality not in (None, BEST):
        limits.append(f"maxBytes {budget.max_bytes:,}")
    verb = "scaled down" if (image.width, image.height) != (source.width, source.height) else "compressed"
    reason = f": {verb} to fit {' and '.join(limits)}" if limits else ""
    return f"Sent as {image_file(image.format, image.width, image.height, image.byte_count)}{quality}{reason}."


def _exceeded(source: Source, budget: Budget) -> "list[tuple[str, bool]]":
    return [
        (f"maxPixels {budget.max_pixels:,}", source.width * source.height > budget.max_pixels),
        (f"maxWidth {budget.max_width:,}", source.width > budget.max_width),
        (f"maxHeight {budget.max_height:,}", source.height > budget.max_height),
    ]


def shortened(url: str) -> str:
    return url if len(url) <= LONGEST_URL else f"{url[:LONGEST_URL]}..."
