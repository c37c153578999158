"""The outcome of a load in a data set: an image, a failure of its row, or a fault of the run."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Optional

from imageworker import Image, ImageWorkerError, InvalidParams, LoadError, Overloaded, RequestError

LONGEST_WAIT = 30.0
"""Seconds. A load that is to come again later than that waits for its server, and not for the worker's queue."""


class Failure(NamedTuple):
    """The reason why a row has no image."""

    kind: str
    error: str
    status: Optional[int] = None
    """The HTTP status, if the server answered with an error."""
    retryable: bool = False
    """Whether the row may succeed later."""
    attempts: int = 1
    """The number of attempts of the worker."""
    timing: Mapping[str, float] = {}
    """Milliseconds by phase, as the worker names them."""


def failure_of(error: ImageWorkerError) -> Failure:
    """Raises an error that does not concern the row, such as a full disk or the end of the worker."""
    if not is_about_row(error):
        raise error
    data: Mapping[str, Any] = error.data
    may_pass = error.retryable or error.retry_after is not None
    return Failure(error.kind, str(error), data.get("status"), may_pass, error.attempts, data.get("timing", {}))


def is_about_row(error: ImageWorkerError) -> bool:
    """Whether the server, the image or the URL is at fault. A refused parameter other than the URL is wrong for every row."""
    if isinstance(error, InvalidParams):
        return error.member in ("url", None)
    if isinstance(error, Overloaded):
        return not is_queue_full(error)
    return isinstance(error, (LoadError, RequestError))


def is_queue_full(error: Overloaded) -> bool:
    """Whether the load was refused before it began. Another one is a fault of its server, as a redirect to one with a long Crawl-delay."""
    return "requestMs" not in error.data.get("timing", {}) and (error.retry_after or 0) <= LONGEST_WAIT


def extension_of(image: Image) -> str:
    """The extension of the file name."""
    return "jpg" if image.format == "jpeg" else image.format or "bin"
