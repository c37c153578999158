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
    size, quality, count = within(1, 65535), within(1, 100), within(1, 1_000_000)
    parser = argparse.ArgumentParser(
        prog="bulk",
        description="A list of URLs to a folder or to WebDataset shards of images.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.set_defaults(caption_column=None, rate=None, staging=None, size=[], column=[], want=[], worker_option=[])
    unsaid: Any = argparse.SUPPRESS  # Of these --help names no default.
    add = parser.add_argument
    add("list", help="file, folder, pattern or URL: .csv, .tsv, .jsonl, .parquet, or one URL a line")
    add("out", help="folder to write to, or a URL of fsspec such as s3://bucket/folder; a run that was killed goes on there")
    add("--format", choices=["files", "webdataset"], default="files", help="images and texts in folders, or tar files")
    scaled = "scale to fit into SIZE x SIZE pixels, as JPEG; else images stay as they come; repeatable"
    add("--size", type=size, action="append", default=unsaid, help=scaled)
    add("--fit", choices=["inside", "contain", "cover", "fill"], default="inside", help="how, with --size")
    add("--enlarge", action="store_true", help="enlarge smaller images, with --size; all but inside then have one shape")
    add("--quality", type=quality, default=90, help="of the JPEGs, with --size")
    add("--url-column", default="url", help="of a table")
    add("--caption-column", default=unsaid, help="of a table; without it, images have no captions")
    add("--column", action="append", default=unsaid, metavar="NAME", help="further column of a table for the metadata; repeatable")
    wanted = f"property that images must have: {', '.join(WANTS)}; repeatable"
    add("--want", type=want, action="append", default=unsaid, metavar="NAME=VALUE", help=wanted)
    add("--rate", default=unsaid, metavar="N/s", help="maximum requests a second and server, such as 0.5/s")
    add("--robots", choices=["obey", "ignore"], default="obey", help="obey loads what robots.txt and the headers of the site allow")
    add("--passes", type=int, choices=[1, 2], default=2, help="2 tries failed rows again at the end that may succeed then")
    add("--retry-failed", action="store_true", help="try all failed rows of this and of earlier runs again that may succeed now")
    add("--shard-size", type=count, default=10_000, help="rows of the list for each shard")
    add("--at-once", type=count, default=20_000, help="maximum number of rows that are read and not done")
    add("--staging", default=unsaid, metavar="DIR", help="folder for unfinished shards, if OUT is a URL")
    add("--keep", action="store_true", help="keep originals in the worker's cache, and take from there what is kept")
    add("--worker-option", action="append", default=unsaid, metavar="OPTION", help="such as --worker-option=--max-per-host=16")
    parsed = parser.parse_args(given)
    parsed.want = dict(parsed.want)
    return parsed
