"""The list of a data set: its rows and its division into shards."""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
from pathlib import Path
from typing import Any, Iterable, Iterator, NamedTuple, Optional, Sequence


class Row(NamedTuple):
    number: int
    url: str
    caption: Optional[str]


class Shard(NamedTuple):
    number: int
    rows: Sequence[Row]

    @property
    def name(self) -> str:
        return f"{self.number:05}"


class Problem(Exception):
    """The reason why the run ends, in a line for people."""


def rows(path: Path, url_column: str, caption_column: Optional[str]) -> Iterator[Row]:
    """The rows of a list, by its extension: .csv and .tsv with a header line, .parquet, else one URL a line. Empty URLs are left out.

    A value that is not text is taken as Python writes it: the worker refuses such a URL.
    """
    columns = [url_column, *([caption_column] if caption_column else [])]
    try:
        for number, (url, *caption) in enumerate(lines(path, columns)):
            text = "" if url is None else str(url).strip()
            if text:
                yield Row(number, text, str(caption[0]) if caption and caption[0] is not None else None)
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
    try:
        import pyarrow.parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ModuleNotFoundError:
        raise Problem("a .parquet list needs pyarrow: pip install pyarrow") from None
    file = pyarrow.parquet.ParquetFile(path)
    check_columns(path, file.schema_arrow.names, columns)
    for batch in file.iter_batches(columns=columns):
        for line in batch.to_pylist():
            yield [line[column] for column in columns]


def check_columns(path: Path, names: Iterable[str], columns: Sequence[str]) -> None:
    for column in columns:
        if column not in names:
            raise Problem(f"{path} must have a column {column!r}; it has {', '.join(names)}")


def shards(list_rows: Iterator[Row], size: int) -> Iterator[Shard]:
    for number, of_shard in itertools.groupby(list_rows, lambda row: row.number // size):
        yield Shard(number, list(of_shard))


def digest(of_rows: Sequence[Row]) -> str:
    return hashlib.sha256(json.dumps(of_rows).encode()).hexdigest()
