#!/usr/bin/env python3
"""Loads the given URLs at the same time and prints the outcome of each. The exit status is 1 if a load failed."""

from __future__ import annotations

import asyncio
import os
import sys

from imageworker import ImageWorker, ImageWorkerError, LoadEvent, Progress


def say(line: str) -> None:
    """Prints a line. If nobody reads standard output any more, as under `| head`, the program ends, and the worker with it."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        os._exit(74)


async def show(worker: ImageWorker, url: str) -> bool:
    def progress(event: LoadEvent) -> None:
        if isinstance(event, Progress):
            say(f"{event.received:>10} of {event.total or '?'} bytes  {url}")

    try:
        image = await worker.load(url, on_event=progress)
    except ImageWorkerError as error:
        print(f"{error.kind:>10}: {error}  {url}", file=sys.stderr)
        return False
    size = f"{image.width} x {image.height}" if image.width else "size unknown"
    say(f"{image.cache:>10}  {image.format} {size}  {image.path}")
    return True


async def main(urls: list[str]) -> int:
    if not urls or urls[0].startswith("-"):
        print("usage: demo.py URL...", file=sys.stderr)
        return 64
    async with ImageWorker() as worker:
        loaded = await asyncio.gather(*(show(worker, url) for url in urls))
    return 0 if all(loaded) else 1


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main(sys.argv[1:])))
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        print(f"demo.py: cannot start the worker: {error}", file=sys.stderr)
        sys.exit(69)
