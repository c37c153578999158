"""The list of a data set: its files, its rows, and its division into shards."""

from __future__ import annotations

import bz2
import contextlib
import csv
import functools
import glob
import gzip
import hashlib
import io
import itertools
import json
import lzma
import math
import numbers
import os
import re
import zlib
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple


class Row(NamedTuple):
    number: int
    url: str
    caption: Optional[str]
    further: Tuple[Any, ...] = ()
    """The values of further columns, as JSON can hold them."""


class Shard(NamedTuple):
    name: str
    rows: Sequence[Row]


class Problem(Exception):
    """The reason why the run ends, in a line for people."""


def rows(given: str, url_column: str, caption_column: Optional[str], further_columns: Sequence[str] = ()) -> Iterator[Row]:
    """The rows of a list, counted through all of its files. Rows without a URL are left out.

    A byte that is not UTF-8 becomes U+FFFD. Another value that is not text is taken as Python writes it: the worker refuses such a URL.
    """
    captions = [caption_column] if caption_column else []
    name, number = given, -1
    try:
        for name, open_file in files_of(given):
            for url, *others in lines(name, open_file, [url_column, *captions, *further_columns]):
                number += 1
                address = (text_of(url) or "").strip()
                if address:
                    caption = text_of(others[0]) if captions else None
                    yield Row(number, address, caption, tuple(map(plain, others[len(captions) :])))
    except OSError as error:
        raise Problem(f"cannot read the list {name}: {error.strerror or error}") from error
    except (ValueError, EOFError, zlib.error, lzma.LZMAError) as error:  # Not Parquet, or not compressed as its name says.
        raise Problem(f"{name}: {error}") from error


def files_of(given: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The names of the files of a list, in their order, each with a function that opens it: a file, a folder, a pattern, or a URL."""
    if "://" in given:
        files, path = file_system(given)
        find, open_file, is_folder = files.glob, files.open, given.endswith("/")
    else:
        find, open_file, path, is_folder = glob.glob, functools.partial(open, mode="rb"), given, os.path.isdir(given)
        if os.path.exists(path) and not (is_folder or os.path.isfile(path)):
            raise Problem(f"the list {path} must be a file, because it is read more than once")
    names = [path]
    if is_folder or ("*" in path and not os.path.exists(path)):  # Spark and others leave files such as _SUCCESS beside the parts.
        found = find(f"{glob.escape(path.rstrip('/'))}/*" if is_folder else path)
        names = sorted(name for name in found if os.path.basename(name)[:1] not in ("_", "."))
    if not names:
        raise Problem(f"cannot read the list {given}: it has no files")
    for name in names:
        yield name, functools.partial(open_file, name)


def file_system(url: str) -> tuple[Any, str]:
    """The file system of fsspec for a URL, and the path in it."""
    try:
        import fsspec  # type: ignore[import-not-found, import-untyped, unused-ignore]

        files, path = fsspec.core.url_to_fs(url)
    except ModuleNotFoundError as error:
        raise Problem(f"{url} needs {error.name}: pip install {error.name}") from None
    except (ImportError, ValueError) as error:
        raise Problem(f"fsspec cannot use {url}: {error}") from error
    return files, path


def text_of(value: Any) -> Optional[str]:
    """The text of a URL or caption. Not a number is how tables write that there is none."""
    value = plain(value.decode(errors="replace") if isinstance(value, bytes) else value)
    return None if value is None else str(value)


def plain(value: Any) -> Any:
    """The value as JSON can hold it. Not a number is null at any depth, and a date or bytes are text as Python writes them.

    Halves of surrogate pairs, which JSON may have and UTF-8 has not, become U+FFFD.
    """
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return value if value.isascii() else re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, numbers.Real):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(member) for name, member in value.items()}
    return list(map(plain, value)) if isinstance(value, (list, tuple)) else str(value)


OPENERS: Mapping[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""Compressed lists, by their extensions."""

OTHERS = (".zst", ".zip", ".json", ".arrow", ".feather", ".orc", ".avro", ".xlsx", ".npy", ".npz", ".pkl")
"""Extensions of what is not read, though it may be a list."""

TABLES: Mapping[str, Mapping[str, Any]] = {".csv": {"strict": True}, ".tsv": {"delimiter": "\t", "quoting": csv.QUOTE_NONE}}
"""The dialects of tables, by their extensions."""


def lines(name: str, open_file: Callable[[], Any], columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    """The values of the columns in the rows of a file, by its extension: a table, Parquet, JSON lines, else one URL a line."""
    stem, kind = os.path.splitext(name.lower())
    unpack = OPENERS.get(kind)
    if unpack:
        kind = os.path.splitext(stem)[1]
    if kind in OTHERS or (kind == ".parquet" and unpack):
        readable = ".parquet, .csv, .tsv, .jsonl, or text with one URL a line; all but .parquet also as .gz, .bz2 or .xz"
        raise Problem(f"{name} has an extension of a format that is not read: use {readable}")
    with open_file() as packed:
        if kind == ".parquet":
            yield from parquet_lines(name, packed, columns)
            return
        content = unpack(packed) if unpack else packed
        if b"\0" in content.read(1 << 12):  # As of UTF-16, or compressed without saying so.
            raise Problem(f"{name} is not text in UTF-8: write it in UTF-8, and give a compressed list the extension .gz, .bz2 or .xz")
        content.seek(0)
        file = io.TextIOWrapper(content, encoding="utf-8-sig", errors="replace", newline="" if kind in TABLES else None)
        if kind in TABLES:
            yield from table_lines(name, csv.DictReader(file, **TABLES[kind]), columns)
        elif kind in (".jsonl", ".ndjson"):
            yield from json_lines(name, file, columns)
        elif len(columns) > 1:
            raise Problem(f"{name} has one URL a line and no columns such as {columns[1]!r}: use a .csv, .tsv, .jsonl or .parquet list")
        else:
            yield from ([line] for line in file)


def json_lines(name: str, file: Iterable[str], columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    """A line that is not an object of JSON is taken for a URL: the worker refuses what is none."""

    def value_of(line: str) -> Any:
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(line)
            return value if isinstance(value, (dict, str)) else line
        return line

    values = map(value_of, file)
    first = list(itertools.islice(values, 1000))  # A member without a value may be left out of a line.
    names = dict.fromkeys(member for value in first if isinstance(value, dict) for member in value)
    check_columns(name, names or columns, columns)
    for value in itertools.chain(first, values):
        row = value if isinstance(value, dict) else {columns[0]: value}
        yield [row.get(column) for column in columns]


def table_lines(name: str, table: csv.DictReader[str], columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    csv.field_size_limit(1 << 24)  # Python's own is 131,072; a quote that is never closed should still end somewhere.
    try:
        check_columns(name, table.fieldnames or [], columns)
        for line in table:
            yield [line[column] for column in columns]
    except csv.Error as error:
        raise Problem(f"{name}, after line {table.line_num}: {error}") from error


def parquet_lines(name: str, content: Any, columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    try:
        import pyarrow.parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ModuleNotFoundError:
        raise Problem("a .parquet list needs pyarrow: pip install pyarrow") from None

    def values_of(column: Any) -> Sequence[Any]:  # Text that is not UTF-8 is an error of its row only.
        if column.type not in (pyarrow.string(), pyarrow.large_string()):
            return list(column.to_pylist())
        return [None if value is None else value.decode(errors="replace") for value in column.cast(pyarrow.large_binary()).to_pylist()]

    file = pyarrow.parquet.ParquetFile(content)
    check_columns(name, file.schema_arrow.names, columns)
    for batch in file.iter_batches(columns=list(dict.fromkeys(columns))):
        yield from zip(*(values_of(batch.column(column)) for column in columns))


def check_columns(name: str, names: Iterable[str], columns: Sequence[str]) -> None:
    for column in columns:
        if column not in names:
            raise Problem(f"{name} must have a column {column!r}; it has {', '.join(names)}")


def shards(list_rows: Iterator[Row], size: int) -> Iterator[Shard]:
    for number, of_shard in itertools.groupby(list_rows, lambda row: row.number // size):
        yield Shard(f"{number:05}", list(of_shard))


def digest(of_rows: Sequence[Row]) -> str:
    return hashlib.sha256(json.dumps(of_rows).encode()).hexdigest()
