"""The arguments of a run."""

from __future__ import annotations

import argparse
from typing import Any, Callable, Optional, Sequence

from .ledgers import snake

WANTS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("minWidth", "minHeight", "maxWidth", "maxHeight", "maxPixels", "maxFrames"), int),
    "maxAspectRatio": float,
    "formats": lambda text: text.split(","),
}
"""The members of the worker's `want`."""


def want(text: str) -> tuple[str, Any]:
    """A property NAME=VALUE, with the name of the client."""
    name, _, value = text.partition("=")
    try:
        return snake(name), WANTS[name](value)
    except (KeyError, ValueError):
        raise argparse.ArgumentTypeError(f"must be one of {', '.join(WANTS)}, = and its value (given: {text})") from None


def within(low: int, high: int) -> Callable[[str], int]:
    def integer(text: str) -> int:
        if not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"must be an integer from {low} to {high} (given: {text})")
        return int(text)

    return integer


def arguments(given: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bulk", description="A list of URLs to a folder or to WebDataset shards of images.")
    add = parser.add_argument
    add("list", help="file, folder, pattern or URL: .csv, .tsv, .jsonl, .parquet, or one URL a line")
    add("out", help="folder to write to, or a URL of fsspec such as s3://bucket/folder; a run that was killed goes on there")
    add("--format", choices=["files", "webdataset"], default="files", help="images and texts in folders, or tar files (default: %(default)s)")
    scaled = "scale to fit into SIZE x SIZE pixels, as JPEG; else images stay as they come; repeatable"
    add("--size", type=within(1, 65535), action="append", default=[], help=scaled)
    add("--fit", choices=["inside", "contain", "cover", "fill"], default="inside", help="how, with --size (default: %(default)s)")
    add("--enlarge", action="store_true", help="enlarge smaller images, with --size; all but inside then have one shape")
    add("--quality", type=within(1, 100), default=90, help="of the JPEGs, with --size (default: %(default)s)")
    add("--url-column", default="url", help="of a table (default: %(default)s)")
    add("--caption-column", help="of a table; without it, images have no captions")
    add("--column", action="append", default=[], metavar="NAME", help="further column of a table for the metadata; repeatable")
    wanted = f"property that images must have: {', '.join(WANTS)}; repeatable"
    add("--want", type=want, action="append", default=[], metavar="NAME=VALUE", help=wanted)
    add("--rate", metavar="N/s", help="maximum requests a second and server, such as 0.5/s")
    add("--robots", choices=["obey", "ignore"], default="obey", help="obey loads what robots.txt and headers allow (default: %(default)s)")
    add("--passes", type=int, choices=[1, 2], default=2, help="2 tries failed rows again at the end that may succeed then (default: %(default)s)")
    add("--retry-failed", action="store_true", help="try all failed rows of this and of earlier runs again that may succeed now")
    add("--shard-size", type=within(1, 1_000_000), default=10_000, help="rows of the list for each shard (default: %(default)s)")
    add("--at-once", type=within(1, 1_000_000), default=20_000, help="maximum number of rows that are read and not done (default: %(default)s)")
    add("--staging", metavar="DIR", help="folder for unfinished shards, if OUT is a URL")
    add("--keep", action="store_true", help="keep originals in the worker's cache, and take from there what is kept")
    add("--worker-option", action="append", default=[], metavar="OPTION", help="such as --worker-option=--max-per-host=16")
    parsed = parser.parse_args(given)
    parsed.want = dict(parsed.want)
    return parsed
