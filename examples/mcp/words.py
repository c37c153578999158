"""The sentences of results. They contain nothing that a server could have written, except the URL of a redirect."""

from __future__ import annotations

import math
from typing import Union

from fitting import BEST, Budget, Rendition, Source
from imageworker import HTTPStatusError, Image, ImageWorkerError
from imageworker import Source as ImageSource

LONGEST_URL = 300
ORIGINS = {
    "miss": "from the network",
    "file": "from a file",
    "memory": "from the cache",
    "disk": "from the cache",
    "revalidated": "from the cache, confirmed by the server",
    "stale": "from the cache, out of date",
}
REASONS = {
    "blockedAddress": "it leads to an address that is not on the public internet, and only that can be reached",
    "resolve": "the name of its server has no address",
    "connect": "its server does not accept connections",
    "tls": "its server has no valid certificate, or TLS failed otherwise",
    "network": "the connection to its server failed",
    "truncated": "its server closed the connection before the end of the image",
    "timeout": "it took too long",
    "redirects": "there are too many redirects, or one to another scheme",
    "tooLarge": "it is larger than 20 MB, which is never downloaded",
    "notAnImage": "it is not an image: give the URL of the image itself, and not of a page that shows it",
    "unsupportedFormat": "its format cannot be decoded here",
    "corrupt": "the image is damaged",
    "tooManyPixels": "it has more than 40 megapixels, which are never decoded",
    "decoderCrashed": "the image cannot be decoded",
    "decodeTimeout": "decoding it took too long",
}


def failure(error: ImageWorkerError) -> str:
    """Why an image could not be loaded. The worker's own message may quote what the server sent, so it is not used for these kinds."""
    reason = REASONS.get(error.kind, str(error))
    if isinstance(error, HTTPStatusError):
        reason = f"its server answered {error.status}"
    return f"{error.kind}: {reason}.{' It may succeed later.' if error.retryable else ''}"


def image_file(image: Union[Image, ImageSource]) -> str:
    """Format and size. A probe does not know the number of bytes if the server does not tell it."""
    size = f"{image.width} x {image.height} pixels, " if image.width and image.height else ""
    is_unknown = isinstance(image, Image) and "bytes" not in image.wire
    return f"{(image.format or 'unknown format').upper()}, {size}" + ("unknown bytes" if is_unknown else f"{image.byte_count:,} bytes")


def original(image: Image) -> str:
    """An image that was loaded without a transform."""
    parts = [f"{image_file(image)}, {ORIGINS[image.cache]}."]
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
        limits.append(_tightest(source, budget))
    if (first.width, first.height) != (last.width, last.height) or last.quality not in (None, BEST):
        limits.append(f"maxBytes {budget.max_bytes:,}")
    verb = "scaled down" if (image.width, image.height) != (source.width, source.height) else "compressed"
    reason = f": {verb} to fit {' and '.join(limits)}" if limits else ""
    return f"Sent as {image_file(image)}{quality}{reason}.{' Parts of it are damaged.' if image.damaged else ''}"


def _tightest(source: Source, budget: Budget) -> str:
    """The limit that an image exceeds by most, as a scale of its sides."""
    excesses = {
        f"maxPixels {budget.max_pixels:,}": math.sqrt(source.width * source.height / budget.max_pixels),
        f"maxWidth {budget.max_width:,}": source.width / budget.max_width,
        f"maxHeight {budget.max_height:,}": source.height / budget.max_height,
    }
    return max(excesses, key=lambda limit: excesses[limit])


def shortened(url: str) -> str:
    return url if len(url) <= LONGEST_URL else f"{url[:LONGEST_URL]}..."
