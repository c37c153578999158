"""The outcome of a load in a data set: an image, a failure of its row, or a fault of the run."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Optional

from imageworker import Image, ImageWorkerError


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
    if not error.is_about_row:
        raise error
    data: Mapping[str, Any] = error.data
    return Failure(error.kind, str(error), data.get("status"), error.may_pass, error.attempts, data.get("timing", {}))


def extension_of(image: Image) -> str:
    """The extension of the file name."""
    return "jpg" if image.format == "jpeg" else image.format or "bin"
