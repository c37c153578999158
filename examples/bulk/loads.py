"""The loads of a run: several shards at a time, pass by pass, until each row has an outcome."""

from __future__ import annotations

import asyncio
from typing import Awaitable, Callable, Iterator, Optional, Union

from imageworker import Image, ImageWorker, ImageWorkerError, LoadParams, Overloaded, RecentlyFailed, Transform

from .ledgers import LOADED, Record
from .lists import Row, Shard
from .outcomes import Failure, failure_of, is_queue_full
from .passes import Pass, Report, Shards, key_of
from .progress import Progress

LONGEST_URL = 4 << 20
"""Maximum length of a URL in characters. Even at six bytes of JSON each it fits into --max-line. Only `data:` URLs exceed 8 kB."""


class Loads:
    def __init__(self, worker: ImageWorker, shards: Shards, spool: str, progress: Progress) -> None:
        """The worker saves images in the folder `spool`, so that their bytes do not pass through its output."""
        self.worker, self.shards, self.spool, self.progress = worker, shards, spool, progress
        self.given = given = shards.given
        self.counted = "retryable" if given.retry_failed else "triedOnce" if given.passes == 2 else ""
        """The member of a report that counts the failed rows to be tried again at the end."""
        self.again: set[int] = set()
        """The numbers of the shards that have such rows."""
        self.params: LoadParams = {
            "store": "all" if given.keep else "none",
            "cache": "force-cache" if given.keep else "default",  # What is kept is wanted as it was, fresh or not.
            "retry_failed": given.retry_failed,
            "want": given.want or None,
        }
        self.box: Transform = {"fit": given.fit, "enlarge": given.enlarge, "format": "jpeg", "quality": given.quality}
        self.places = asyncio.Semaphore(given.at_once)
        self.turn = asyncio.Lock()
        """Yields the rows of the open shards in the order of the list, so that few shards are incomplete after a kill."""

    async def run(self, list_shards: Callable[[], Iterator[Shard]]) -> None:
        """Loads all rows that have no outcome, and then again those that failed and may pass."""

        def first(shard: Shard) -> Optional[Awaitable[None]]:
            report = self.shards.report(shard)
            is_interrupted = self.shards.is_interrupted(shard, report["passes"] if report else 0)
            if report is not None:
                self.progress.add(report)
            if report is None or report["rows"] != len(shard.rows):
                return self.load_pass(shard, report, lambda line: False)
            if is_interrupted or self.has_more(report):
                self.again.add(shard.number)
            return None

        def second(shard: Shard) -> Optional[Awaitable[None]]:
            return self.load_pass(shard, self.shards.report(shard), self.is_wanted) if shard.number in self.again else None

        await self.each(list_shards(), first)
        if self.again:
            await self.each(list_shards(), second)

    def has_more(self, report: Report) -> bool:
        return bool(self.counted and report[self.counted])

    def is_wanted(self, line: Record) -> bool:
        return bool(self.counted and line["retryable"] and (self.counted == "retryable" or line["passes"] == 1))

    async def each(self, shards: Iterator[Shard], begin: Callable[[Shard], Optional[Awaitable[None]]]) -> None:
        """Loads several shards at a time, so that the queue stays full while a shard waits for its last images or for its servers."""
        running: set[asyncio.Future[None]] = set()
        try:
            for shard in shards:
                work = begin(shard)
                if work is not None:
                    running.add(asyncio.ensure_future(work))
                if len(running) >= self.given.shards_at_once:
                    running = await first_of(running)
            while running:
                running = await first_of(running)
        finally:
            await cancel(running)

    async def load_pass(self, shard: Shard, report: Optional[Report], is_wanted: Callable[[Record], bool]) -> None:
        made = Pass(self.shards, shard, report, is_wanted)
        for line in made.ledger.records:
            failure = None if line["outcome"] == LOADED else Failure(line["outcome"], line["error"])
            self.progress.note(line["url"], failure, made.earlier.get(line["row"]), is_new=False)
        made.ledger.records.clear()
        fault: list[BaseException] = []
        tasks: set[asyncio.Future[None]] = set()

        async def load(row: Row) -> None:
            try:
                outcome = await self.load(row)
                made.note(row, outcome, self.places_of(row))
                self.progress.note(row.url, outcome if isinstance(outcome, Failure) else None, made.earlier.get(row.number))
            except Exception as error:
                fault.append(error)
                for task in tasks:
                    task.cancel()
            finally:
                self.places.release()

        try:
            async with self.turn:
                for row in made.rows:
                    await self.places.acquire()
                    if fault:
                        break
                    task = asyncio.ensure_future(load(row))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
            if tasks:
                await asyncio.wait(tasks)
        finally:
            await cancel(tasks)
        if fault:
            raise fault[0]
        if self.has_more(await asyncio.to_thread(made.finish)):
            self.again.add(shard.number)

    def places_of(self, row: Row) -> list[str]:
        """The paths at which the worker must save the images of a row."""
        return [f"{self.spool}/{key_of(row)}.{size}" for size in self.given.size or ["original"]]

    async def load(self, row: Row) -> Union[Image, Failure]:
        """Loads a row again after a fault of the run, such as the end of the worker: another one starts, a few times."""
        if len(row.url) > LONGEST_URL or "\ufffd" in row.url:
            return Failure("invalidParams", "the URL is too long" if len(row.url) > LONGEST_URL else "the URL must be UTF-8")
        for pause in (0.1, 0.2, 0.4, 0.8):  # Of a worker that ends there are still answers.
            try:
                return await self.load_once(row)
            except ImageWorkerError:
                await asyncio.sleep(pause)
        return await self.load_once(row)

    async def load_once(self, row: Row) -> Union[Image, Failure]:
        """All sizes come of one transfer and one decode. While the worker's queue is full, the load waits here."""
        params, places = self.params.copy(), self.places_of(row)
        if self.given.size:
            params["outputs"] = {
                str(size): {"transform": {**self.box, "width": size, "height": size}, "save_to": place}
                for size, place in zip(self.given.size, places)
            }
        else:
            params["save_to"] = places[0]
        while True:
            try:
                return await self.worker.load(row.url, deliver="none", **params)
            except RecentlyFailed as error:  # As of a row with the same URL: that row had the real kind.
                kind = "http" if "status" in error.data else (await self.worker.query(url=row.url)).failure
                failure = failure_of(error)
                return failure._replace(kind=kind, retryable=False) if kind else failure
            except ImageWorkerError as error:
                if not isinstance(error, Overloaded) or not is_queue_full(error):
                    return failure_of(error)
                await asyncio.sleep(error.retry_after or 1)


async def first_of(running: set[asyncio.Future[None]]) -> set[asyncio.Future[None]]:
    done, rest = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    return rest


async def cancel(tasks: set[asyncio.Future[None]]) -> None:
    rest = list(tasks)
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
