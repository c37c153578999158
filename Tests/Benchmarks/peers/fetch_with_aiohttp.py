"""Fetches the URLs of a list into numbered files, so many at once, and prints how many seconds that took.

Start-up and imports do not count: it is the library's pace that the worker is held against.
"""

import asyncio
import sys
import time
from typing import Iterator, Tuple

import aiohttp


async def fetch(session: aiohttp.ClientSession, items: Iterator[Tuple[int, str]], folder: str) -> None:
    for number, url in items:
        async with session.get(url) as response:
            response.raise_for_status()
            content = await response.read()
        with open(f"{folder}/{number}", "wb") as file:
            file.write(content)


async def main(source: str, folder: str, at_once: int) -> None:
    with open(source) as file:
        items = iter(list(enumerate(file.read().split())))
    begun = time.perf_counter()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=at_once)) as session:
        await asyncio.gather(*(fetch(session, items, folder) for _ in range(at_once)))
    print(time.perf_counter() - begun)


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
