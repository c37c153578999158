"""Loads a list of URLs into a folder or into WebDataset shards of (resized) images. See README.md.

    python -m imageworker.bulk LIST OUT [--size 256] [--format files|webdataset] [--worker-option=...]

The list is cut into shards of so many rows. The ledger of a shard has a line for each row that was tried. A run that is
killed and started again goes on with the rows that have none.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import functools
import os
import sys
import tempfile
from pathlib import Path
from typing import Callable, Iterator, Optional, Sequence

from imageworker import BlockingImageWorker, ImageWorkerError, find_worker

from .choices import arguments
from .destinations import Destination, remove
from .ledgers import OF_IMAGE
from .lists import Problem, Shard, rows, shards
from .loads import Loads
from .passes import Shards
from .progress import Progress, hints, printable


def check(given: argparse.Namespace) -> None:
    """Refuses columns and sizes that have no place of their own in the output."""
    taken = {"row", "url", "caption", "format", "final_url", *OF_IMAGE}
    for name in given.column:
        if name in taken or name.startswith(("original_", *(f"{each}_" for each in OF_IMAGE))):
            raise Problem(f"--column {name}: the metadata has a member of this name already; rename the column")
    for option, values in ("--size", given.size), ("--column", given.column):
        if len(set(values)) < len(values):
            raise Problem(f"{option} has the same value twice: {', '.join(map(str, values))}")


@contextlib.contextmanager
def alone(out: Destination, waits: bool) -> Iterator[str]:
    """Locks the output against other runs of this machine, until the process ends. Yields a folder for images that the worker saves."""
    with (out.staging / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        except BlockingIOError:
            raise Problem(f"another run uses the folder {out.name}") from None
        # The worker of a run that was killed a moment ago may still save into the folder of that run.
        remove(path for path in out.staging.glob("*.partial") if path.is_dir())
        with tempfile.TemporaryDirectory(prefix="images.", suffix=".partial", dir=out.staging.absolute()) as spool:
            yield spool
        remove(path for path in out.staging.glob("*.partial") if path.is_dir())


def run(given: argparse.Namespace, out: Destination, spool: str, progress: Progress, list_shards: Callable[[], Iterator[Shard]]) -> None:
    rate = [f"--rate={given.rate}"] if given.rate else []
    # They are strangers' servers: as many connections to each as a browser has.
    with BlockingImageWorker(max_connections_per_host=6, robots=given.robots, arguments=[*rate, *given.worker_option]) as worker:
        try:
            worker.stats()
        except (FileNotFoundError, PermissionError) as error:
            raise Problem(f"cannot run {error.filename} ({error.strerror}): set IMAGEWORKER to the path of the worker") from error
        Loads(worker, Shards(out, given), spool, progress).run(list_shards)


def main(words: Optional[Sequence[str]] = None, waits: bool = False) -> Progress:
    """Does what the command does. If another run uses the output, `waits` for its end. Returns the figures."""
    given = arguments(words)
    try:
        os.path.abspath(given.out).encode()
    except UnicodeEncodeError:
        raise Problem(f"the name of the output folder must be UTF-8 (given: {os.fsencode(given.out)!r})") from None
    check(given)
    list_rows = functools.partial(rows, given.list, given.url_column, given.caption_column, given.column)
    is_empty = next(list_rows(), None) is None  # A list that cannot be read is to leave no folder.
    progress = Progress(sys.stderr or open(os.devnull, "w"))
    out = Destination(given.out, given.staging and Path(given.staging))
    with alone(out, waits) as spool:
        try:
            run(given, out, spool, progress, lambda: shards(list_rows(), given.shard_size))
        finally:
            if progress.tried or progress.before or is_empty:
                progress.show(hints(find_worker()) if progress.failed else {})
    return progress


def command() -> None:
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except (OSError, Problem) as problem:
        sys.exit(f"bulk: {printable(str(problem))}")
    except ImageWorkerError as fault:
        advice = "The same command goes on from here" if fault.retryable else "Mend that, and run it again"
        sys.exit(f"bulk: stopped, since rows could not be tried: {fault.kind}, {printable(str(fault))}. {advice}")


if __name__ == "__main__":
    command()
