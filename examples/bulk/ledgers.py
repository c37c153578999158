"""The ledger of a shard: a line for each row that was tried. It is the state from which a run that was killed continues.

During a pass, lines are appended to a file of JSON lines in the order in which rows end. At its end they are merged with
those of earlier passes, and written in the order of the list, as JSON lines or Parquet.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path
from typing import Any, Mapping, Sequence, Union

from failures import printable
from imageworker import Image
from lists import Row, arrow
from outcomes import Failure

LOADED = "loaded"
"""The outcome of a row with an image. All others are kinds of errors."""

PHASES = {
    f"{name}Ms": f"{column}_ms"
    for name, column in [
        *((name, name) for name in ("lookup", "wait", "dns", "connect", "tls", "request", "body", "store")),
        ("decodeWait", "decode_wait"),
        *((name, name) for name in ("decode", "deliver", "total")),
    ]
}
"""The columns of the members of the worker's `timing`."""

Record = Mapping[str, Any]
"""A line of a ledger, by column. A member without a value is left out."""


def columns(sizes: Sequence[int]) -> dict[str, str]:
    """The columns of a ledger with their Arrow types. With several sizes, the second and later ones have columns with a suffix."""
    of_image = {"width": "int32", "height": "int32", "bytes": "int64", "sha256": "string"}
    return {
        "row": "int64",
        "url": "string",
        "outcome": "string",
        "status": "int16",
        "error": "string",
        "retryable": "bool",
        "attempts": "int32",
        "passes": "int32",
        "shard": "string",
        "key": "string",
        "tar_offset": "int64",
        "tar_bytes": "int64",
        "format": "string",
        "final_url": "string",
        **{f"{name}{suffix(number, size)}": kind for number, size in enumerate(sizes or [0]) for name, kind in of_image.items()},
        "original_format": "string",
        "original_width": "int32",
        "original_height": "int32",
        "original_bytes": "int64",
        **{column: "float" for column in PHASES.values()},
    }


def suffix(number: int, size: int) -> str:
    return f"_{size}" if number else ""


def facts_of(images: Sequence[Image], sizes: Sequence[int]) -> dict[str, Any]:
    """The columns that describe the images of a row, one image for each size."""
    first = images[0]
    facts: dict[str, Any] = {"format": first.format, "final_url": first.final_url}
    for number, image in enumerate(images):
        end = suffix(number, sizes[number] if sizes else 0)
        sha256 = image.digest.partition("-")[2] if image.digest else None
        of_image = {"width": image.width, "height": image.height, "bytes": image.byte_count, "sha256": sha256}
        facts.update({f"{name}{end}": value for name, value in of_image.items()})
    original = first.source
    if original is not None:
        facts.update(original_format=original.format, original_width=original.width)
        facts.update(original_height=original.height, original_bytes=original.byte_count)
    return facts


def record(row: Row, outcome: Union[Image, Failure], **more: Any) -> Record:
    """The line of a row."""
    line: dict[str, Any] = {"row": row.number, "url": encodable(row.url)}
    if isinstance(outcome, Failure):
        timing = outcome.timing
        line.update(outcome=outcome.kind, status=outcome.status, error=outcome.error, retryable=outcome.retryable)
    else:
        timing = outcome.wire.get("timing", {})
        line.update(outcome=LOADED, retryable=False)
    line.update(more)
    line.update((PHASES[name], value) for name, value in timing.items() if name in PHASES)
    return {name: value for name, value in line.items() if value is not None}


def encodable(url: str) -> str:
    """The URL of a row that is not UTF-8, as the ledger can hold it."""
    return url if url.isascii() else "".join(printable(each) if "\ud800" <= each <= "\udfff" else each for each in url)


class PassLedger:
    """The file of lines of a pass under way. Its first line, the header, says for which rows and settings they are.

    A line that is not complete does not count.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        """Opens the file, or begins it with the header."""
        self.path = path
        self.records: list[Record] = []
        """The lines of the runs before this one."""
        self.header = header
        content = path.read_bytes() if path.exists() else b""
        content = content[: content.rfind(b"\n") + 1]
        with contextlib.suppress(ValueError):  # A crash of the machine has damaged it: it is begun anew.
            self.header, *self.records = [json.loads(line) for line in content.splitlines()] or [header]
        self.file = path.open("r+b" if self.records else "wb")
        self.file.truncate(len(content) if self.records else 0)
        self.file.seek(0, os.SEEK_END)
        if not self.records:
            self.append(self.header)

    def append(self, line: Record) -> None:
        """Adds a line. After this it survives the end of the process."""
        self.file.write(json.dumps(line).encode() + b"\n")
        self.file.flush()

    def restart(self) -> None:
        """Forgets all lines."""
        self.records = []
        self.file.seek(0)
        self.file.truncate()
        self.append(self.header)

    def close(self) -> list[dict[str, Any]]:
        """Returns all lines."""
        self.file.close()
        return [json.loads(line) for line in self.path.read_bytes().splitlines()[1:]]


def write_ledger(path: Path, records: Sequence[Record], sizes: Sequence[int]) -> None:
    """Writes JSON lines, or Parquet if the path ends with .parquet."""
    if path.suffix != ".parquet":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return
    pyarrow = arrow("a ledger of Parquet")
    schema = pyarrow.schema([(name, kind if kind != "bool" else pyarrow.bool_()) for name, kind in columns(sizes).items()])
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records, schema=schema), path)


def read_ledger(name: str, content: bytes) -> list[Record]:
    if not name.endswith(".parquet"):
        return [json.loads(line) for line in content.splitlines()]
    table = arrow("a ledger of Parquet").parquet.read_table(io.BytesIO(content))
    return [{name: value for name, value in line.items() if value is not None} for line in table.to_pylist()]
