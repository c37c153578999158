#!/usr/bin/env python3
"""Loads a list of URLs into a folder or into WebDataset shards of (resized) images. See README.md.

    bulk.py LIST OUT [--size 256] [--format files|webdataset] [--worker-option=...]

The list is cut into shards of so many rows. The ledger of a shard has a line for each row that was tried. A run that is
killed and started again goes on with the rows that have none.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import os
import secrets
import sys
from pathlib import Path
from typing import Iterator, Literal, Mapping

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from choices import arguments  # noqa: E402
from destinations import Destination, destination  # noqa: E402
from failures import hints, printable  # noqa: E402
from imageworker import ImageWorker, ImageWorkerError, LoadParams, Settings, Transform, find_worker  # noqa: E402
from ledgers import columns  # noqa: E402
from lists import Problem, Row, arrow, rows, shards  # noqa: E402
from loads import Loads, Plan, remove_spools  # noqa: E402
from passes import Layout, Shards  # noqa: E402
from progress import Progress  # noqa: E402
from samples import Files, WebDataset  # noqa: E402


def layout_of(given: argparse.Namespace) -> Layout:
    """Checks that the output can be written in this form."""
    taken = [name for name in given.column if name in {*columns(given.size), "caption"}]
    if taken:
        raise Problem(f"--column {taken[0]}: the metadata has a member of this name already; rename the column")
    for option, values in ("--size", given.size), ("--column", given.column):
        if len(set(values)) < len(values):
            raise Problem(f"{option} has the same value twice: {', '.join(map(str, values))}")
    if given.ledger == "parquet":
        arrow("--ledger parquet")
    names = ("format", "ledger", "shard_size", "url_column", "caption_column", "column", "size", "fit", "quality", "want", "robots")
    settings = {name: getattr(given, name) for name in names}
    samples = WebDataset if given.format == "webdataset" else Files
    return Layout(samples, given.ledger, given.size, given.column, settings)


def plan_of(given: argparse.Namespace) -> Plan:
    common: LoadParams = {
        "store": "all" if given.keep else "none",
        "cache": "force-cache" if given.keep else "default",  # What is kept is wanted as it was, fresh or not.
        "facts": ["digest"],
    }
    if given.retry_failed:
        common["retry_failed"] = True
    if given.want:
        common["want"] = given.want
    loads: list[LoadParams] = [common]
    if given.size:
        box: Transform = {"fit": given.fit, "format": "jpeg", "quality": given.quality}
        loads = [{**common, "transform": {**box, "width": size, "height": size}} for size in given.size]
    again: Literal["none", "once", "all"] = "all" if given.retry_failed else "once" if given.passes == 2 else "none"
    return Plan(loads, given.at_once, given.shards_at_once, again)


def worker_of(given: argparse.Namespace) -> ImageWorker:
    # They are strangers' servers: as many connections to each as a browser has.
    settings: Settings = {"max_connections_per_host": 6, "robots": given.robots, "arguments": given.worker_option}
    if given.rate is not None:
        settings["rate"] = given.rate
    return ImageWorker(**settings)


@contextlib.contextmanager
def alone(out: Destination) -> Iterator[str]:
    """Locks the output against other runs of this machine, until the process ends. Yields a folder for images that the worker saves."""
    with (out.staging / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Problem(f"another run uses the folder {out.name}") from None
        remove_spools(out.staging)
        # A name that no run had: the worker of one that was killed a moment ago may still save into its own.
        spool = (out.staging / f"images.{secrets.token_hex(4)}.partial").absolute()
        spool.mkdir()
        try:
            yield str(spool)
        finally:
            remove_spools(out.staging)


async def run(given: argparse.Namespace, out: Destination, spool: str, layout: Layout, progress: Progress) -> None:
    worker = worker_of(given)
    try:
        await worker.start()
    except (FileNotFoundError, PermissionError) as error:
        raise Problem(f"cannot run {error.filename} ({error.strerror}): set IMAGEWORKER to the path of the worker") from error
    try:
        loads = Loads(worker, Shards(out, layout), plan_of(given), spool, progress)
        await loads.run(lambda: shards(list_rows(given), given.shard_size))
    except BaseException:
        if progress.has_begun:
            progress.finish(is_complete=False, hints=hints_of_worker)
        raise
    finally:
        await worker.close()
    progress.finish(is_complete=True, hints=hints_of_worker)


def list_rows(given: argparse.Namespace) -> Iterator[Row]:
    return rows(given.list, given.url_column, given.caption_column, given.column)


def hints_of_worker() -> Mapping[str, str]:
    return hints(find_worker())


def main() -> int:
    given = arguments()
    try:
        os.path.abspath(given.out).encode()
    except UnicodeEncodeError:
        raise Problem(f"the name of the output folder must be UTF-8 (given: {os.fsencode(given.out)!r})") from None
    layout = layout_of(given)
    next(list_rows(given), None)  # A list that cannot be read is to leave no folder.
    out = destination(given.out, given.staging)
    progress = Progress(sys.stderr or open(os.devnull, "w"), lambda: rows(given.list, given.url_column, None))
    out.prepare()
    with alone(out) as spool:
        asyncio.run(run(given, out, spool, layout, progress))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except (OSError, Problem) as problem:
        sys.exit(f"bulk.py: {printable(str(problem))}")
    except ImageWorkerError as fault:
        advice = "The same command goes on from here" if fault.retryable else "Mend that, and run it again"
        sys.exit(f"bulk.py: stopped, since rows could not be tried: {fault.kind}, {printable(str(fault))}. {advice}")
