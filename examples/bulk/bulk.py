#!/usr/bin/env python3
"""A list of URLs to a folder or to WebDataset shards of (resized) images. See README.md.

    bulk.py LIST OUT [--size 256] [--format files|webdataset] [--worker-option=...]

The list is cut into shards of so many rows. A shard is finished when its report OUT/NNNNN.json is there, which is written last; a run that
is killed and started again goes on with the shards that are not.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import io
import json
import shutil
import sys
import tarfile
import time
from pathlib import Path
from typing import Any, AsyncIterator, Iterator, Mapping, NamedTuple, Optional, TextIO

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from imageworker import Image, ImageWorker, ImageWorkerError, LoadParams, WorkerExited  # noqa: E402

REFUSALS = {"noai", "noimageai", "noindex", "noimageindex"}
"""What X-Robots-Tag may say against this use. The first two are for training, the others for indexes."""


class Row(NamedTuple):
    number: int
    url: str
    caption: Optional[str]


class Shard(NamedTuple):
    number: int
    rows: list[Row]

    @property
    def name(self) -> str:
        return f"{self.number:05}"


class Refused(Exception):
    """The server asks that the image be not used."""

    kind = "robots"
    retryable = False


# Reading the list


def rows(path: Path, url_column: str, caption_column: Optional[str]) -> Iterator[Row]:
    """The rows of a list, by its extension: .csv and .tsv with a header line, .parquet, else one URL a line. Empty URLs are left out."""
    if path.suffix in (".csv", ".tsv"):
        with path.open(newline="", encoding="utf-8") as file:
            table = csv.DictReader(file, delimiter="," if path.suffix == ".csv" else "\t")
            check_columns(path, table.fieldnames or [], url_column, caption_column)
            yield from numbered((line[url_column], line[caption_column] if caption_column else None) for line in table)
    elif path.suffix == ".parquet":
        yield from numbered(parquet_rows(path, url_column, caption_column))
    else:
        with path.open(encoding="utf-8") as file:
            yield from numbered((line.strip(), None) for line in file)


def numbered(pairs: Iterator[tuple[str, Optional[str]]]) -> Iterator[Row]:
    for number, (url, caption) in enumerate(pairs):
        if url:
            yield Row(number, url, caption)


def parquet_rows(path: Path, url_column: str, caption_column: Optional[str]) -> Iterator[tuple[str, Optional[str]]]:
    try:
        import pyarrow.parquet  # type: ignore[import-not-found, unused-ignore]
    except ModuleNotFoundError:
        raise SystemExit("bulk.py: a .parquet list needs pyarrow: pip install pyarrow") from None
    file = pyarrow.parquet.ParquetFile(path)
    check_columns(path, file.schema_arrow.names, url_column, caption_column)
    columns = [url_column, *([caption_column] if caption_column else [])]
    for batch in file.iter_batches(columns=columns):
        for line in batch.to_pylist():
            yield line[url_column], line[caption_column] if caption_column else None


def check_columns(path: Path, names: Any, *wanted: Optional[str]) -> None:
    for column in wanted:
        if column is not None and column not in names:
            raise SystemExit(f"bulk.py: {path} has no column {column!r}; it has {', '.join(names)}")


def shards(list_rows: Iterator[Row], size: int) -> Iterator[Shard]:
    rows_of_shard: list[Row] = []
    for row in list_rows:
        number = row.number // size
        if rows_of_shard and rows_of_shard[0].number // size != number:
            yield Shard(rows_of_shard[0].number // size, rows_of_shard)
            rows_of_shard = []
        rows_of_shard.append(row)
    if rows_of_shard:
        yield Shard(rows_of_shard[0].number // size, rows_of_shard)


# Writing a shard


class Output:
    """Where the images of one shard go. The worker saves them in a folder NNNNN.partial; nothing has its final name before `finish`."""

    def __init__(self, folder: Path, shard: Shard) -> None:
        self.final = folder / shard.name
        self.partial = folder / f"{shard.name}.partial"
        shutil.rmtree(self.partial, ignore_errors=True)  # Of a run that was killed.
        self.partial.mkdir()

    def place(self, row: Row) -> Path:
        """Where the worker is to save the image: the bytes need not pass through this process."""
        return self.partial / name_of(row)

    def add(self, row: Row, extension: str, about: Mapping[str, Any]) -> None:
        """Takes the image that lies in its place now."""
        raise NotImplementedError

    def leave_out(self, row: Row) -> None:
        self.place(row).unlink(missing_ok=True)

    def finish(self) -> None:
        raise NotImplementedError


class Files(Output):
    """A folder NNNNN of images, each with its facts in a .json and its caption in a .txt beside it."""

    def add(self, row: Row, extension: str, about: Mapping[str, Any]) -> None:
        place = self.place(row)
        place.rename(f"{place}.{extension}")
        place.with_suffix(".json").write_text(json.dumps(about))
        if row.caption is not None:
            place.with_suffix(".txt").write_text(row.caption)

    def finish(self) -> None:
        shutil.rmtree(self.final, ignore_errors=True)
        self.partial.rename(self.final)


class WebDataset(Output):
    """A file NNNNN.tar whose members that share a name before the dot are one sample."""

    def __init__(self, folder: Path, shard: Shard) -> None:
        super().__init__(folder, shard)
        self.tar = tarfile.open(self.partial / "tar", "w")

    def add(self, row: Row, extension: str, about: Mapping[str, Any]) -> None:
        self._member(row, extension, self.place(row).read_bytes())
        self.leave_out(row)
        self._member(row, "json", json.dumps(about).encode())
        if row.caption is not None:
            self._member(row, "txt", row.caption.encode())

    def _member(self, row: Row, extension: str, content: bytes) -> None:
        info = tarfile.TarInfo(f"{name_of(row)}.{extension}")
        info.size = len(content)
        self.tar.addfile(info, io.BytesIO(content))

    def finish(self) -> None:
        self.tar.close()
        (self.partial / "tar").rename(self.final.with_suffix(".tar"))
        shutil.rmtree(self.partial)


def name_of(row: Row) -> str:
    return f"{row.number:09}"


EXTENSIONS = {"jpeg": "jpg"}


# Loading


class Bulk:
    def __init__(self, worker: ImageWorker, arguments: argparse.Namespace, progress: Progress) -> None:
        self.worker = worker
        self.folder: Path = arguments.out
        self.output = WebDataset if arguments.format == "webdataset" else Files
        self.places = asyncio.Semaphore(arguments.at_once)
        self.progress = progress
        self.ignores_robots: bool = arguments.ignore_robots
        self.params: LoadParams = {
            "deliver": "none",
            "store": "all" if arguments.keep else "none",
            "response": not arguments.ignore_robots,
        }
        if arguments.size is not None:
            self.params["transform"] = {
                "width": arguments.size,
                "height": arguments.size,
                "fit": arguments.fit,
                "format": "jpeg",
                "quality": arguments.quality,
            }

    async def run(self, all_shards: Iterator[Shard], shards_at_once: int) -> None:
        """Several shards at a time, so that the queue stays full while the last images of one come in."""
        running: set[asyncio.Task[None]] = set()
        try:
            for shard in all_shards:
                if (self.folder / f"{shard.name}.json").exists():
                    self.progress.skip(len(shard.rows))
                    continue
                running.add(asyncio.ensure_future(self.load_shard(shard)))
                if len(running) >= shards_at_once:
                    running = await first_of(running)
            while running:
                running = await first_of(running)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def load_shard(self, shard: Shard) -> None:
        output = self.output(self.folder, shard)
        succeeded, total_bytes, failures = 0, 0, io.StringIO()
        async for row, outcome in self.load_rows(shard.rows, output):
            if isinstance(outcome, Image):
                output.add(row, EXTENSIONS.get(outcome.format or "", outcome.format or "bin"), self.facts(row, outcome))
                succeeded, total_bytes = succeeded + 1, total_bytes + outcome.size
            else:
                output.leave_out(row)
                report = {"number": row.number, "url": row.url, "kind": outcome.kind, "error": str(outcome)}
                failures.write(json.dumps(report) + "\n")
            self.progress.note(isinstance(outcome, Image))
        output.finish()
        replace(self.folder / f"{shard.name}.failures.jsonl", failures.getvalue())
        summary = {"rows": len(shard.rows), "succeeded": succeeded, "failed": len(shard.rows) - succeeded, "bytes": total_bytes}
        replace(self.folder / f"{shard.name}.json", json.dumps(summary))

    async def load_rows(self, of_shard: list[Row], output: Output) -> AsyncIterator[tuple[Row, Any]]:
        """Each row with its outcome, an Image or an error, in the order in which they end."""
        ended: asyncio.Queue[tuple[Row, Any]] = asyncio.Queue()

        async def load(row: Row) -> None:
            try:
                ended.put_nowait((row, await self.load(row.url, output.place(row))))
            except (ImageWorkerError, Refused) as error:
                ended.put_nowait((row, error))
            finally:
                self.places.release()

        async def load_all() -> None:
            for row in of_shard:
                await self.places.acquire()
                tasks.append(asyncio.ensure_future(load(row)))

        tasks: list[asyncio.Future[None]] = []
        tasks.append(asyncio.ensure_future(load_all()))
        try:
            for _ in of_shard:
                yield await ended.get()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def load(self, url: str, place: Path) -> Image:
        """A load that went down with the worker is tried once more: the worker has been started again by then."""
        params: LoadParams = {**self.params, "save_to": place}
        try:
            image = await self.worker.load(url, **params)
        except WorkerExited:
            image = await self.worker.load(url, **params)
        if not self.ignores_robots and refuses(image.wire.get("response", {}).get("headers", {})):
            raise Refused("X-Robots-Tag asks that it be not used")
        return image

    @staticmethod
    def facts(row: Row, image: Image) -> dict[str, Any]:
        facts = {"number": row.number, "url": row.url, "width": image.width, "height": image.height}
        for name in ("finalURL", "source"):
            if name in image.wire:
                facts[name] = image.wire[name]
        if row.caption is not None:
            facts["caption"] = row.caption
        return facts


def refuses(headers: Mapping[str, Any]) -> bool:
    """Whether X-Robots-Tag has a directive against this use that is for everybody: `otherbot: noindex` is for another."""
    for directive in headers.get("x-robots-tag", "").split(","):
        agent, colon, rest = directive.rpartition(":")
        if not colon and rest.strip().lower() in REFUSALS:
            return True
    return False


async def first_of(running: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
    done, rest = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    return rest


def replace(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    partial.rename(path)


class Progress:
    """A line on a terminal, redrawn at most five times a second; without a terminal, one line at the end."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.began = time.monotonic()
        self.drawn = 0.0
        self.loaded = self.failed = self.skipped = 0

    def skip(self, count: int) -> None:
        self.skipped += count

    def note(self, is_loaded: bool) -> None:
        if is_loaded:
            self.loaded += 1
        else:
            self.failed += 1
        now = time.monotonic()
        if self.stream.isatty() and now - self.drawn > 0.2:
            self.drawn = now
            self.stream.write(f"\r\x1b[K{self.line()}")
            self.stream.flush()

    def line(self) -> str:
        seconds = max(time.monotonic() - self.began, 0.001)
        text = f"{self.loaded} loaded, {self.failed} failed, {(self.loaded + self.failed) / seconds:.0f}/s"
        return text + (f", {self.skipped} done before" if self.skipped else "")

    def finish(self) -> None:
        self.stream.write(("\r\x1b[K" if self.stream.isatty() else "") + self.line() + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A list of URLs to a folder or to WebDataset shards of images.")
    parser.add_argument("list", type=Path, help=".csv, .tsv, .parquet, or one URL a line")
    parser.add_argument("out", type=Path, help="folder to write to; a run that was killed goes on there")
    parser.add_argument("--format", choices=["files", "webdataset"], default="files")
    parser.add_argument("--size", type=int, help="scale into a square of so many pixels, as JPEG; else images stay as they come")
    parser.add_argument("--fit", choices=["inside", "contain", "cover", "fill"], default="inside")
    parser.add_argument("--quality", type=int, default=90)
    parser.add_argument("--url-column", default="url")
    parser.add_argument("--caption-column")
    parser.add_argument("--shard-size", type=int, default=10_000, help="rows of the list for each shard")
    parser.add_argument("--shards-at-once", type=int, default=2)
    parser.add_argument("--at-once", type=int, default=1000, help="loads that the worker has at a time")
    parser.add_argument("--keep", action="store_true", help="keep originals in the worker's cache")
    parser.add_argument("--ignore-robots", action="store_true", help="do not look at X-Robots-Tag")
    parser.add_argument(
        "--worker-option", action="append", default=[], metavar="OPTION", help="such as --worker-option=--max-per-host=16"
    )
    return parser.parse_args()


async def main() -> int:
    given = arguments()
    given.out.mkdir(parents=True, exist_ok=True)
    progress = Progress(sys.stderr)
    list_rows = rows(given.list, given.url_column, given.caption_column)
    async with ImageWorker(["--max-concurrent", "64", *given.worker_option]) as worker:
        await Bulk(worker, given, progress).run(shards(list_rows, given.shard_size), given.shards_at_once)
    progress.finish()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as problem:
        sys.exit(f"bulk.py: {problem}")
