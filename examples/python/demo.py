#!/usr/bin/env python3
"""Loads the URLs given as arguments, all at once, and prints what became of each."""

from __future__ import annotations

import asyncio
import sys

from imageworker import Event, ImageWorker, ImageWorkerError


async def show(worker: ImageWorker, url: str) -> bool:
    def progress(event: Event) -> None:
        if event.name == "progress":
            print(f"{event.params['received']:>10} of {event.params.get('total', '?')} bytes  {url}")

    try:
        image = await worker.load(url, on_event=progress)
    except ImageWorkerError as error:
        print(f"{error.kind:>10}: {error}  {url}", file=sys.stderr)
        return False
    print(f"{image.cache:>10}  {image.format} {image.width} x {image.height}  {image.path}")
    return True


async def main(urls: list[str]) -> int:
    if not urls:
        print("usage: demo.py URL...", file=sys.stderr)
        return 64
    async with ImageWorker() as worker:
        loaded = await asyncio.gather(*(show(worker, url) for url in urls))
    return 0 if all(loaded) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
