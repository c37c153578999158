"""A worker for each process, and batches of URLs to JPEGs. A module of its own, so that other processes can import it."""

from __future__ import annotations

import argparse
import functools
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Iterable, Iterator, List, Optional, Sequence, Tuple

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))

from imageworker import BlockingImageWorker, ImageWorkerError  # noqa: E402


@functools.lru_cache(maxsize=None)
def worker(processes: int = 1) -> BlockingImageWorker:
    """The worker of this process, which ends with it. All `processes` together open six connections to a server."""
    if processes > 1:
        threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    return BlockingImageWorker(max_connections_per_host=max(6 // processes, 1), robots="obey", deadline=60)


def end_with(parent: int) -> None:
    """Ends this process soon after its parent: those of a pool would go on if the program is killed."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def load_batch(
    urls: Sequence[str], size: int, processes: int = 1
) -> Tuple[List[Optional[bytes]], List[Optional[str]]]:
    """JPEGs within `size` x `size` pixels and the kinds of errors, in the order of the URLs. Each row has one of the two."""
    images: List[Optional[bytes]] = [None] * len(urls)
    errors: List[Optional[str]] = [None] * len(urls)
    box: Any = {"width": size, "height": size, "format": "jpeg"}
    for row, outcome in worker(processes).load_all(enumerate(urls), deliver="data", store="none", transform=box):
        if isinstance(outcome, ImageWorkerError):
            errors[row] = outcome.kind
        else:
            images[row] = outcome.data
    return images, errors


def arguments(text: Optional[str], *places: str, **numbers: int) -> argparse.Namespace:
    """The arguments of a program that `text` describes: a list, further `places`, and options with their defaults."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    for place in ("list", *places):
        parser.add_argument(place, type=Path)
    for name, default in numbers.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=default)
    return parser.parse_args()


def lines(path: Path) -> List[str]:
    return [line.strip() for line in path.read_text().splitlines() if line.strip()]


def column(paths: Iterable[Path], name: str) -> Iterator[Any]:
    """The values of a column in files of Parquet. Removes a file that a kill has cut short."""
    import pyarrow.parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]

    for path in paths:
        try:
            yield from pyarrow.parquet.read_table(path, columns=[name])[name].to_pylist()
        except pyarrow.ArrowInvalid:
            path.unlink()


def summary(errors: Iterable[Optional[str]]) -> str:
    """As `98 loaded, 2 http`."""
    return ", ".join(f"{count} {kind}" for kind, count in Counter(error or "loaded" for error in errors).most_common())
