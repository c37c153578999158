"""The list of a data set: its rows and its division into shards."""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import itertools
import json
import lzma
import math
import numbers
import zlib
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple


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
    """The rows of a list, by its extension: a table with a header line, Parquet, JSON lines, else one URL a line. Empty URLs are left out.

    A byte that is not UTF-8 is half a surrogate pair, as of `surrogateescape`: `fault_of` finds it. Another value that is not text is
    taken as Python writes it: the worker refuses such a URL.
    """
    captions = [caption_column] if caption_column else []
    if path.is_fifo() or path.is_char_device():
        raise Problem(f"the list {path} must be a file, because it is read more than once")
    try:
        for number, (url, *others) in enumerate(lines(path, [url_column, *captions, *further_columns])):
            address = (text_of(url) or "").strip()
            if address:
                caption = text_of(others[0]) if captions else None
                yield Row(number, address, caption, tuple(map(plain, others[len(captions) :])))
    except (ValueError, EOFError, zlib.error, lzma.LZMAError) as error:  # Not Parquet, or not compressed as its name says.
        raise Problem(f"{path}: {error}") from error
    except OSError as error:
        raise Problem(f"cannot read the list {path}: {error.strerror or error}") from error


def text_of(value: Any) -> Optional[str]:
    """The text of a URL or caption. Not a number is how tables write that there is none."""
    if value is None or (isinstance(value, numbers.Real) and math.isnan(value)):
        return None
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(value)


def fault_of(row: Row) -> Optional[str]:
    """The reason why a row cannot be loaded, if it is not text in UTF-8."""
    for name, value in (("URL", row.url), ("caption", row.caption or ""), ("further columns", json.dumps(row.further, ensure_ascii=False))):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            byte = ord(value[error.start]) - 0xDC00
            what = f"the byte 0x{byte:02x}" if 0x80 <= byte <= 0xFF else "half a surrogate pair"
            return f"the {name} of the row must be UTF-8, without {what} at character {error.start}"
    return None


OPENERS: Mapping[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""Compressed lists, by their extensions."""

JSON_LINES = (".jsonl", ".ndjson")

OTHERS = (".zst", ".zip", ".json", ".arrow", ".feather", ".orc", ".avro", ".xlsx", ".npy", ".npz", ".pkl")
"""Extensions of what is not read, though it may be a list."""

LOOKED_AT = 1000
"""The number of JSON lines in which columns are looked for: a member without a value may be left out of a line."""


def lines(path: Path, columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    kind, open_list = path.suffix.lower(), OPENERS.get(path.suffix.lower(), open)
    if open_list is not open:
        kind = Path(path.stem).suffix.lower()
    if kind == ".parquet" and open_list is open:
        yield from parquet_lines(path, columns)
        return
    if kind in (*OTHERS, ".parquet"):
        readable = ".parquet, .csv, .tsv, .jsonl, or text with one URL a line; all but .parquet also as .gz, .bz2 or .xz"
        raise Problem(f"{path} has an extension of a format that is not read: use {readable}")
    with open_list(path, "rb") as file:
        if b"\0" in file.read(1 << 12):  # As of UTF-16, or compressed without saying so.
            raise Problem(f"{path} is not text in UTF-8: write it in UTF-8, and give a compressed list the extension .gz, .bz2 or .xz")
    newline = "" if kind in (".csv", ".tsv") else None
    with open_list(path, "rt", newline=newline, encoding="utf-8-sig", errors="surrogateescape") as file:
        if kind == ".csv":
            yield from table_lines(path, csv.DictReader(file, strict=True), columns)
        elif kind == ".tsv":
            yield from table_lines(path, csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE), columns)
        elif kind in JSON_LINES:
            yield from json_lines(path, file, columns)
        else:
            if len(columns) > 1:
                kinds = ".csv, .tsv, .jsonl or .parquet"
                raise Problem(f"{path} has one URL a line and no columns such as {columns[1]!r}: use a {kinds} list")
            for line in file:
                yield [line]


def json_lines(path: Path, file: Iterable[str], columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    """A line that is not an object of JSON is taken for a URL: the worker refuses what is none."""
    objects = map(json_line, file)
    first = list(itertools.islice(objects, LOOKED_AT))
    names = dict.fromkeys(name for line in first if isinstance(line, dict) for name in line)
    if names:
        check_columns(path, names, columns)
    for line in itertools.chain(first, objects):
        yield [line.get(column) for column in columns] if isinstance(line, dict) else [line, *(None for _ in columns[1:])]


def json_line(line: str) -> Any:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return line
    return value if isinstance(value, (dict, str)) else line


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
    names = list(dict.fromkeys(columns))
    for batch in file.iter_batches(columns=names):
        values = {name: parquet_values(batch.column(name)) for name in names}
        yield from zip(*(values[column] for column in columns))


def parquet_values(column: Any) -> Sequence[Any]:
    """The values of a column. Text that is not UTF-8 is an error of its row only."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [parquet_value(scalar) for scalar in column]


def parquet_value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        content = scalar.as_buffer() if hasattr(scalar, "as_buffer") else error.object  # The text within a list or a struct.
        return bytes(content).decode(errors="surrogateescape")


def arrow(purpose: str) -> Any:
    """The module pyarrow with its submodule parquet."""
    try:
        import pyarrow.parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ModuleNotFoundError:
        raise Problem(f"{purpose} needs pyarrow: pip install pyarrow") from None
    return pyarrow


def plain(value: Any) -> Any:
    """The value as JSON can hold it. Not a number is null at any depth, and a date or bytes are text as Python writes them."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, numbers.Real):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(member) for name, member in value.items()}
    return list(map(plain, value)) if isinstance(value, (list, tuple)) else str(value)


def check_columns(path: Path, names: Iterable[str], columns: Sequence[str]) -> None:
    for column in columns:
        if column not in names:
            raise Problem(f"{path} must have a column {column!r}; it has {', '.join(names)}")


def shards(list_rows: Iterator[Row], size: int) -> Iterator[Shard]:
    for number, of_shard in itertools.groupby(list_rows, lambda row: row.number // size):
        yield Shard(number, list(of_shard))


def digest(of_rows: Sequence[Row]) -> str:
    return hashlib.sha256(json.dumps(of_rows).encode()).hexdigest()
