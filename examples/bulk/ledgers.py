"""The ledger of a shard: a line for each row that was tried. It is the state from which a run that was killed continues.

During a pass, lines are appended to a file in the order in which rows end. At its end they are merged with those of earlier passes, and
written in the order of the list.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Mapping, Sequence, Union

from imageworker import Image, ImageWorkerError

from .lists import Row

LOADED = "loaded"
"""The outcome of a row with an image. All others are kinds of errors."""

OF_IMAGE = ("width", "height", "bytes", "sha256")

Record = Mapping[str, Any]
"""A line of a ledger, by column. A member without a value is left out."""


def facts_of(image: Image, sizes: Sequence[int], digests: Sequence[str]) -> dict[str, Any]:
    """The columns that describe the images of a row: the original, or one image for each size. The digests are theirs."""
    files = [image.wire["outputs"][str(size)] for size in sizes] or [image.wire]
    facts: dict[str, Any] = {"format": files[0].get("format"), "final_url": image.final_url}
    for number, (file, digest) in enumerate(zip(files, digests)):
        values, end = {**file, "sha256": digest}, f"_{sizes[number]}" if number else ""
        facts.update({f"{name}{end}": values.get(name) for name in OF_IMAGE})
    if sizes:
        facts.update({f"original_{name}": image.wire.get(name) for name in ("format", *OF_IMAGE[:3])})
    return facts


def record(row: Row, outcome: Union[Image, ImageWorkerError], **more: Any) -> Record:
    """The line of a row. The phases of the worker's `timing`, such as `bodyMs`, have columns such as `body_ms`."""
    line: dict[str, Any] = {"row": row.number, "url": row.url}
    if isinstance(outcome, Image):
        answer = outcome.wire
        line.update(outcome=LOADED, retryable=False)
    else:
        answer = outcome.data
        line.update(outcome=outcome.kind, status=answer.get("status"), error=str(outcome), retryable=outcome.may_pass)
    line.update(more)
    line.update({snake(name): value for name, value in answer.get("timing", {}).items()})
    return {name: value for name, value in line.items() if value is not None}


@functools.lru_cache(maxsize=None)
def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)
