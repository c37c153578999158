"""Loads the URLs of a list until there have been so many loads, so many at once, and prints how many seconds that took.

Every URL is loaded once before, so that the worker has it in memory. Each answer is checked as it comes.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "python"))

from imageworker import BlockingImageWorker, Deliver, Image, ImageWorker  # noqa: E402

binary, source, count, face, at_once, deliver, size, cache = sys.argv[1:]
urls = Path(source).read_text().split()
wanted = [urls[number % len(urls)] for number in range(int(count))]
wanted_as: Deliver = "path" if deliver == "path" else "none"
wrong: list[Image] = []


def check(image: Image) -> None:
    if image.cache != "memory" or image.byte_count != int(size) or ("path" in image.wire) != (deliver == "path"):
        wrong.append(image)


async def with_tasks() -> float:
    async with ImageWorker(cache_dir=cache, binary=binary) as worker:
        await asyncio.gather(*(worker.load(url, deliver=wanted_as) for url in urls))
        left = iter(wanted)

        async def load_some() -> None:
            for url in left:
                check(await worker.load(url, deliver=wanted_as))

        begun = time.perf_counter()
        await asyncio.gather(*(load_some() for _ in range(int(at_once))))
        return time.perf_counter() - begun


def with_threads() -> float:
    with BlockingImageWorker(cache_dir=cache, binary=binary) as worker:
        for _ in worker.load_all(urls, deliver=wanted_as):
            pass

        def load_some(part: int) -> None:
            for url in itertools.islice(wanted, part, None, int(at_once)):
                check(worker.load(url, deliver=wanted_as))

        threads = [threading.Thread(target=load_some, args=(part,)) for part in range(int(at_once))]
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - begun


def with_load_all() -> float:
    with BlockingImageWorker(cache_dir=cache, binary=binary) as worker:
        for _ in worker.load_all(urls, deliver=wanted_as):
            pass
        begun = time.perf_counter()
        for _, image in worker.load_all(wanted, deliver=wanted_as, at_once=int(at_once)):
            if not isinstance(image, Image):
                raise image
            check(image)
        return time.perf_counter() - begun


took = {"async": lambda: asyncio.run(with_tasks()), "threads": with_threads, "load_all": with_load_all}[face]()
if wrong:
    sys.exit(f"not what was asked for: {wrong[0].wire}")
print(took)
