"""The list of a data set: its rows and its division into shards."""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import math
from pathlib import Path
from typing import Any, Iterable, Iterator, NamedTuple, Optional, Sequence, Tuple


class Row(NamedTuple):
    number: int
    url: str
    caption: Optional[str]
    further: Tuple[Any, ...] = ()
    """The values of further columns, as JSON can hold them."""


class Shard(NamedTuple):
    number: int
    rows: Sequence[Row]

    @property
    def name(self) -> str:
        return f"{self.number:05}"


class Problem(Exception):
    """The reason why the run ends, in a line for people."""


def rows(path: Path, url_column: str, caption_column: Optional[str], further_columns: Sequence[str] = ()) -> Iterator[Row]:
    """The rows of a list, by its extension: .csv and .tsv with a header line, .parquet, else one URL a line. Empty URLs are left out.

    A value that is not text is taken as Python writes it: the worker refuses such a URL.
    """
    captions = [caption_column] if caption_column else []
    if path.is_fifo() or path.is_char_device():
        raise Problem(f"the list {path} must be a file, because it is read more than once")
    try:
        for number, (url, *others) in enumerate(lines(path, [url_column, *captions, *further_columns])):
            text = "" if url is None else str(url).strip()
            if text:
                caption = str(others[0]) if captions and others[0] is not None else None
                yield Row(number, text, caption, tuple(map(plain, others[len(captions) :])))
    except ValueError as error:  # Not UTF-8, or not Parquet.
        raise Problem(f"{path}: {error}") from error
    except OSError as error:
        raise Problem(f"cannot read the list {path}: {error.strerror or error}") from error


def lines(path: Path, columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    kind = path.suffix.lower()
    if kind == ".parquet":
        yield from parquet_lines(path, columns)
        return
    with path.open(newline="" if kind in (".csv", ".tsv") else None, encoding="utf-8-sig") as file:
        if kind == ".csv":
            yield from table_lines(path, csv.DictReader(file, strict=True), columns)
        elif kind == ".tsv":
            yield from table_lines(path, csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE), columns)
        else:
            if len(columns) > 1:
                raise Problem(f"{path} has one URL a line and no columns such as {columns[1]!r}: use a .csv, .tsv or .parquet list")
            for line in file:
                yield [line]


def table_lines(path: Path, table: csv.DictReader[str], columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    csv.field_size_limit(1 << 24)  # Python's own is 131,072; a quote that is never closed should still end somewhere.
    try:
        check_columns(path, table.fieldnames or [], columns)
        for line in table:
            yield [line[column] for column in columns]
    except csv.Error as error:
        raise Problem(f"{path}, after line {table.line_num}: {error}") from error


def parquet_lines(path: Path, columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    file = arrow("a .parquet list").parquet.ParquetFile(path)
    check_columns(path, file.schema_arrow.names, columns)
    for batch in file.iter_batches(columns=list(dict.fromkeys(columns))):
        for line in batch.to_pylist():
            yield [line[column] for column in columns]


def arrow(purpose: str) -> Any:
    """The module pyarrow with its submodule parquet."""
    try:
        import pyarrow.parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ModuleNotFoundError:
        raise Problem(f"{purpose} needs pyarrow: pip install pyarrow") from None
    return pyarrow


def plain(value: Any) -> Any:
    """The value as JSON can hold it. Not a number is null, and a date or bytes are text as Python writes it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return json.loads(json.dumps(value, default=str))


def check_columns(path: Path, names: Iterable[str], columns: Sequence[str]) -> None:
    for column in columns:
        if column not in names:
            raise Problem(f"{path} must have a column {column!r}; it has {', '.join(names)}")


def shards(list_rows: Iterator[Row], size: int) -> Iterator[Shard]:
    for number, of_shard in itertools.groupby(list_rows, lambda row: row.number // size):
        yield Shard(number, list(of_shard))


def digest(of_rows: Sequence[Row]) -> str:
    return hashlib.sha256(json.dumps(of_rows).encode()).hexdigest()
