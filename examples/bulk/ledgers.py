"""The ledger of a shard: a line for each row that was tried. It is the state from which a run that was killed continues.

During a pass, lines are appended to a file in the order in which rows end. At its end they are merged with those of earlier passes, and
written in the order of the list.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
from pathlib import Path
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
        values = (file.get("width"), file.get("height"), file["bytes"], digest)
        facts.update((f"{name}_{sizes[number]}" if number else name, value) for name, value in zip(OF_IMAGE, values))
    if sizes:
        facts.update((f"original_{name}", image.wire.get(name)) for name in ("format", *OF_IMAGE[:3]))
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
    line.update((snake(name), value) for name, value in answer.get("timing", {}).items())
    return {name: value for name, value in line.items() if value is not None}


@functools.lru_cache(maxsize=None)
def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


class PassLedger:
    """The file of lines of a pass under way. Its first line, the header, says for which rows and settings they are.

    A line that is not complete does not count.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        """Opens the file, or begins it with the header."""
        self.path, self.header = path, header
        self.records: list[Record] = []
        """The lines of the runs before this one."""
        content = path.read_bytes() if path.exists() else b""
        content = content[: content.rfind(b"\n") + 1]
        with contextlib.suppress(ValueError):  # A crash of the machine has damaged it: it is begun anew.
            self.header, *self.records = read_lines(content) or [header]
        self.file = path.open("r+b" if self.records else "wb")
        self.file.truncate(len(content))
        self.file.seek(0, os.SEEK_END)
        if not self.records:
            self.restart()

    def append(self, line: Record) -> Record:
        """Adds a line, and returns it. After this it survives the end of the process."""
        self.file.write(json.dumps(line).encode() + b"\n")
        self.file.flush()
        return line

    def restart(self) -> None:
        """Forgets all lines."""
        self.records = []
        self.file.seek(0)
        self.file.truncate()
        self.append(self.header)

    def close(self) -> list[Record]:
        """Returns all lines."""
        self.file.close()
        return read_lines(self.path.read_bytes())[1:]


def read_lines(content: bytes) -> list[Record]:
    return [json.loads(line) for line in content.splitlines()]
