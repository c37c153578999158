"""The outcome of a load in a data set: an image that may be used, a failure of its row, or a fault of the run."""

from __future__ import annotations

import re
from typing import Any, Mapping, NamedTuple, Union

from imageworker import Image, ImageWorkerError, InvalidParams, LoadError, RequestError

REFUSALS = {"noai", "noimageai", "noindex", "noimageindex", "none"}
"""Directives of X-Robots-Tag against this use. The first two concern training, the others indexes; `none` is `noindex, nofollow`."""

ADDRESSEES = {"", "*", "imageworker"}


class Failure(NamedTuple):
    """The reason why a row has no image."""

    kind: str
    error: str


def outcome_of(result: Union[Image, ImageWorkerError], ignores_robots: bool) -> Union[Image, Failure]:
    """Raises an exception that does not concern the row, such as a full disk or the end of the worker."""
    if isinstance(result, ImageWorkerError):
        if not is_about_row(result):
            raise result
        return Failure(result.kind, str(result))
    if not ignores_robots and result.response is not None and refuses(result.response.headers):
        return Failure("robots", "X-Robots-Tag asks that it be not used")
    return result


def is_about_row(error: ImageWorkerError) -> bool:
    """Whether the server, the image or the URL is at fault. A refused parameter other than the URL is wrong for every row."""
    if isinstance(error, InvalidParams):
        return error.member in ("url", None)
    return isinstance(error, (LoadError, RequestError))


def extension_of(image: Image) -> str:
    """The extension of the file name."""
    return "jpg" if image.format == "jpeg" else image.format or "bin"


def refuses(headers: Mapping[str, Any]) -> bool:
    """Whether X-Robots-Tag has a directive against this use, for everybody or for this worker: `otherbot: noindex` is for another.

    The cautious reading: fields that were repeated come joined, so what follows `otherbot: nofollow,` may be for everybody.
    """
    for directive in re.split("[,;]", headers.get("x-robots-tag", "").lower()):
        agent, _, words = directive.rpartition(":")
        if agent.strip() in ADDRESSEES and not REFUSALS.isdisjoint(words.split()):
            return True
    return False
