#!/usr/bin/env python3
"""Loads a list of URLs into a folder or into WebDataset shards of (resized) images. See README.md.

    bulk.py LIST OUT [--size 256] [--format files|webdataset] [--worker-option=...]

The list is cut into shards of so many rows. A shard is finished when its report OUT/NNNNN.json is there, which is written last; a run that
is killed and started again goes on with the shards that are not.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import io
import itertools
import json
import os
import secrets
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Any, AsyncIterator, Callable, Iterator, Mapping, Sequence, Union

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from failures import hints  # noqa: E402
from imageworker import Image, ImageWorker, ImageWorkerError, LoadParams, find_worker  # noqa: E402
from lists import Problem, Row, Shard, digest, rows, shards  # noqa: E402
from outcomes import Failure, extension_of, outcome_of  # noqa: E402
from progress import Progress  # noqa: E402

LONGEST_URL = 4 << 20
"""Maximum length of a URL in characters. Even at six bytes of JSON each it fits into --max-line. Only `data:` URLs exceed 8 kB."""


# Writing a shard


class Output:
    """The output of one shard. The worker saves images in a folder NNNNN.*.partial; `finish` gives the final names."""

    def __init__(self, folder: Path, shard: Shard) -> None:
        self.final = folder / shard.name
        self.remove_partials()
        # A name that no run had: the worker of one that was killed a moment ago may still save into its own.
        self.partial = folder / f"{shard.name}.{secrets.token_hex(4)}.partial"
        self.partial.mkdir()

    def remove_partials(self) -> None:
        """Removes the folders of runs that were killed."""
        for partial in self.final.parent.glob(f"{self.final.name}.*partial"):
            shutil.rmtree(partial, ignore_errors=True)

    def place(self, row: Row) -> str:
        """The path at which the worker must save the image, so that its bytes do not pass through this process."""
        return os.path.join(self.partial, name_of(row))

    def add(self, row: Row, extension: str, about: Mapping[str, Any]) -> None:
        """Adds the image that the worker has saved."""
        raise NotImplementedError

    def leave_out(self, row: Row) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.place(row))

    def finish(self) -> None:
        raise NotImplementedError


class Files(Output):
    """A folder NNNNN of images, each with its facts in a .json and its caption in a .txt beside it."""

    def add(self, row: Row, extension: str, about: Mapping[str, Any]) -> None:
        place = self.place(row)
        os.rename(place, f"{place}.{extension}")
        Path(f"{place}.json").write_text(json.dumps(about))
        if row.caption is not None:
            Path(f"{place}.txt").write_text(row.caption, encoding="utf-8")

    def finish(self) -> None:
        shutil.rmtree(self.final, ignore_errors=True)
        self.partial.rename(self.final)
        self.remove_partials()


class WebDataset(Output):
    """A file NNNNN.tar whose members that share a name before the dot are one sample."""

    def __init__(self, folder: Path, shard: Shard) -> None:
        super().__init__(folder, shard)
        self.tar = (self.partial / "tar").open("wb")

    def add(self, row: Row, extension: str, about: Mapping[str, Any]) -> None:
        with open(self.place(row), "rb", buffering=0) as image:
            self._write(row, extension, image.read())
        self.leave_out(row)
        self._write(row, "json", json.dumps(about).encode())
        if row.caption is not None:
            self._write(row, "txt", row.caption.encode())

    def _write(self, row: Row, extension: str, content: bytes) -> None:
        """Writes a member. TarFile would search for extended headers that these members never need, and store every member."""
        info = tarfile.TarInfo(f"{name_of(row)}.{extension}")
        info.size = len(content)
        padding = bytes(-len(content) % tarfile.BLOCKSIZE)
        self.tar.write(info.tobuf(tarfile.USTAR_FORMAT) + content + padding)

    def finish(self) -> None:
        self.tar.write(bytes(2 * tarfile.BLOCKSIZE))
        self.tar.close()
        (self.partial / "tar").rename(self.final.with_suffix(".tar"))
        self.remove_partials()


def name_of(row: Row) -> str:
    return f"{row.number:09}"


# Loading


class Bulk:
    def __init__(self, worker: ImageWorker, arguments: argparse.Namespace, progress: Progress) -> None:
        self.worker = worker
        self.folder: Path = arguments.out
        self.output = WebDataset if arguments.format == "webdataset" else Files
        self.places = asyncio.Semaphore(arguments.at_once)
        self.turn = asyncio.Lock()
        """Yields the rows of the open shards in the order of the list, so that few shards are incomplete after a kill."""
        self.progress = progress
        self.ignores_robots: bool = arguments.ignore_robots
        self.params: LoadParams = {
            "store": "all" if arguments.keep else "none",
            "cache": "force-cache" if arguments.keep else "default",  # What is kept is wanted as it was, fresh or not.
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
        self.settings = {
            "format": arguments.format,
            "shardSize": arguments.shard_size,
            "columns": [arguments.url_column, arguments.caption_column],
            "ignoreRobots": arguments.ignore_robots,
            "transform": self.params.get("transform"),
        }
        """The settings on which the shards depend."""

    async def run(self, all_shards: Iterator[Shard], shards_at_once: int) -> None:
        """Loads several shards at a time, so that the queue stays full while a shard waits for its last images or for its servers."""
        running: set[asyncio.Task[None]] = set()
        try:
            for shard in all_shards:
                if self.is_finished(shard):
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

    def report_of(self, shard: Shard) -> Path:
        return self.folder / f"{shard.name}.json"

    def is_finished(self, shard: Shard) -> bool:
        """Whether its report exists. If the list has grown since, the shard that was the last is loaded again."""
        path = self.report_of(shard)
        if not path.exists():
            return False
        try:
            report = json.loads(path.read_text())
        except ValueError:
            return False  # Cut short, as by a crash of the machine: the shard is loaded again.
        settings = report.get("settings") if isinstance(report, dict) else None
        if settings != self.settings:
            raise Problem(f"{path} was written by a run with other settings, {json.dumps(settings)}: choose another folder")
        if report["list"] == digest(shard.rows):
            return True
        if report["list"] == digest(shard.rows[: report["rows"]]):
            return False
        raise Problem(f"{path} was written for other rows: choose another folder for another list")

    async def load_shard(self, shard: Shard) -> None:
        self.report_of(shard).unlink(missing_ok=True)
        output = self.output(self.folder, shard)
        succeeded, total_bytes, failures = 0, 0, io.StringIO()
        async for row, outcome in self.load_rows(shard.rows, output):
            if isinstance(outcome, Image):
                output.add(row, extension_of(outcome), self.facts(row, outcome))
                succeeded, total_bytes = succeeded + 1, total_bytes + outcome.byte_count
            else:
                output.leave_out(row)
                failures.write(json.dumps({"number": row.number, "url": row.url, **outcome._asdict()}) + "\n")
            self.progress.note(row.url, None if isinstance(outcome, Image) else outcome)
        output.finish()
        replace(self.folder / f"{shard.name}.failures.jsonl", failures.getvalue())
        summary = {
            "rows": len(shard.rows),
            "succeeded": succeeded,
            "failed": len(shard.rows) - succeeded,
            "bytes": total_bytes,
            "list": digest(shard.rows),
            "settings": self.settings,
        }
        replace(self.report_of(shard), json.dumps(summary))

    async def load_rows(self, of_shard: Sequence[Row], output: Output) -> AsyncIterator[tuple[Row, Union[Image, Failure]]]:
        """Yields each row with its outcome, in the order in which they end. Raises any other exception of a load."""
        ended: asyncio.Queue[tuple[Row, Union[Image, Failure, Exception]]] = asyncio.Queue()

        async def load(row: Row) -> None:
            try:
                ended.put_nowait((row, await self.load(row.url, output.place(row))))
            except Exception as error:  # Whatever it is: the loop below waits for each row.
                ended.put_nowait((row, error))
            finally:
                self.places.release()

        async def load_all() -> None:
            async with self.turn:
                for row in of_shard:
                    await self.places.acquire()
                    tasks.append(asyncio.ensure_future(load(row)))

        tasks: list[asyncio.Future[None]] = []
        tasks.append(asyncio.ensure_future(load_all()))
        try:
            for _ in of_shard:
                row, outcome = await ended.get()
                if isinstance(outcome, Exception):
                    raise outcome
                yield row, outcome
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def load(self, url: str, place: str) -> Union[Image, Failure]:
        """Loads a row again after a fault of the run, such as the end of the worker: another one starts, a few times."""
        if len(url) > LONGEST_URL:
            return Failure("invalidParams", "the URL is too long")
        for pause in (0.1, 0.2, 0.4, 0.8):  # Of a worker that ends there are still answers.
            try:
                return await self.load_once(url, place)
            except ImageWorkerError:
                await asyncio.sleep(pause)
        return await self.load_once(url, place)

    async def load_once(self, url: str, place: str) -> Union[Image, Failure]:
        params: LoadParams = {**self.params, "save_to": place}
        result: Union[Image, ImageWorkerError]
        try:
            result = await self.worker.load(url, deliver="none", **params)
        except ImageWorkerError as error:
            result = error
        return outcome_of(result, self.ignores_robots)

    @staticmethod
    def facts(row: Row, image: Image) -> dict[str, Any]:
        facts = {"number": row.number, "url": row.url, "width": image.width, "height": image.height}
        for name in ("finalURL", "source"):
            if name in image.wire:
                facts[name] = image.wire[name]
        if row.caption is not None:
            facts["caption"] = row.caption
        return facts


async def first_of(running: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
    done, rest = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    return rest


def replace(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    partial.rename(path)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Locks the folder against other runs. The lock ends with the process, however that ends."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Problem(f"another run uses the folder {folder}") from None
        yield


def within(low: int, high: int) -> Callable[[str], int]:
    def integer(text: str) -> int:
        if not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"must be an integer from {low} to {high} (given: {text})")
        return int(text)

    return integer


def arguments() -> argparse.Namespace:
    size, quality, count = within(1, 65535), within(1, 100), within(1, 1_000_000)
    parser = argparse.ArgumentParser(
        description="A list of URLs to a folder or to WebDataset shards of images.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.set_defaults(size=None, caption_column=None, worker_option=[], keep=False, ignore_robots=False)
    unsaid: Any = argparse.SUPPRESS  # Of these --help names no default.
    parser.add_argument("list", type=Path, help=".csv, .tsv, .parquet, or one URL a line")
    parser.add_argument("out", type=Path, help="folder to write to; a run that was killed goes on there")
    parser.add_argument("--format", choices=["files", "webdataset"], default="files", help="images and texts in folders, or tar files")
    parser.add_argument("--size", type=size, default=unsaid, help="scale to fit into SIZE x SIZE pixels, as JPEG; else images stay as they come")
    parser.add_argument("--fit", choices=["inside", "contain", "cover", "fill"], default="inside", help="how, with --size")
    parser.add_argument("--quality", type=quality, default=90, help="of the JPEGs, with --size")
    parser.add_argument("--url-column", default="url", help="of a table")
    parser.add_argument("--caption-column", default=unsaid, help="of a table; else there are no captions")
    parser.add_argument("--shard-size", type=count, default=10_000, help="rows of the list for each shard")
    parser.add_argument("--shards-at-once", type=count, default=8, help="shards that are worked on at a time; a kill costs what of them is done")
    parser.add_argument("--at-once", type=count, default=20_000, help="loads that the worker has at a time, waiting ones included")
    parser.add_argument("--keep", action="store_true", default=unsaid, help="keep originals in the worker's cache, and take from there what is kept")
    parser.add_argument("--ignore-robots", action="store_true", default=unsaid, help="do not look at X-Robots-Tag")
    parser.add_argument(
        "--worker-option", action="append", default=unsaid, metavar="OPTION", help="such as --worker-option=--max-per-host=16"
    )
    return parser.parse_args()


async def run(worker: ImageWorker, given: argparse.Namespace, list_rows: Iterator[Row], progress: Progress) -> None:
    try:
        await worker.start()
    except (FileNotFoundError, PermissionError) as error:
        raise Problem(f"cannot run {error.filename} ({error.strerror}): set IMAGEWORKER to the path of the worker") from error
    try:
        await Bulk(worker, given, progress).run(shards(list_rows, given.shard_size), given.shards_at_once)
    except BaseException:
        if progress.has_begun:
            progress.finish(is_complete=False, hints=hints_of_worker)
        raise
    finally:
        await worker.close()
    progress.finish(is_complete=True, hints=hints_of_worker)


def hints_of_worker() -> Mapping[str, str]:
    return hints(find_worker())


def main() -> int:
    given = arguments()
    try:
        os.path.abspath(given.out).encode()
    except UnicodeEncodeError:
        raise Problem(f"the name of the output folder must be UTF-8 (given: {os.fsencode(given.out)!r})") from None
    # They are strangers' servers: as many connections to each as a browser has.
    worker = ImageWorker(max_connections_per_host=6, arguments=given.worker_option)
    # A list that cannot be read is to leave no folder.
    list_rows = rows(given.list, given.url_column, given.caption_column)
    begin = list(itertools.islice(list_rows, 1))
    progress = Progress(sys.stderr or open(os.devnull, "w"), lambda: rows(given.list, given.url_column, None))
    given.out.mkdir(parents=True, exist_ok=True)
    with alone(given.out):
        asyncio.run(run(worker, given, itertools.chain(begin, list_rows), progress))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except (OSError, Problem) as problem:
        sys.exit(f"bulk.py: {problem}")
    except ImageWorkerError as fault:
        advice = "The same command goes on from here" if fault.retryable else "Mend that, and run it again"
        sys.exit(f"bulk.py: stopped, since rows could not be tried: {fault.kind}, {fault}. {advice}")
