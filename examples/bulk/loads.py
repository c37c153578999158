"""The loads of a run: several shards at a time, pass by pass, until each row has an outcome."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any, AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Literal, NamedTuple, Optional, Sequence, Union

from imageworker import Image, ImageWorker, ImageWorkerError, LoadParams
from ledgers import LOADED, Record
from lists import Row, Shard, fault_of
from outcomes import Failure, failure_of
from passes import Pass, Report, Shards, key_of
from progress import Progress

LONGEST_URL = 4 << 20
"""Maximum length of a URL in characters. Even at six bytes of JSON each it fits into --max-line. Only `data:` URLs exceed 8 kB."""

Outcome = Union[Sequence[Image], Failure]
"""The images of a row, one for each size, or the reason why it has none."""


class Plan(NamedTuple):
    """The way in which rows are loaded."""

    loads: Sequence[LoadParams]
    """The parameters of the loads of a row, one for each size."""
    at_once: int
    """Maximum number of rows that are loaded at a time."""
    shards_at_once: int
    again: Literal["none", "once", "all"]
    """The failed rows that are tried again at the end, if they may pass: none, those that were tried in one pass, or all."""


class Loads:
    def __init__(self, worker: ImageWorker, shards: Shards, plan: Plan, spool: str, progress: Progress) -> None:
        """The worker saves images in the folder `spool`, so that their bytes do not pass through its output."""
        self.worker, self.shards, self.plan, self.spool, self.progress = worker, shards, plan, spool, progress
        self.places = asyncio.Semaphore(plan.at_once)
        self.turn = asyncio.Lock()
        """Yields the rows of the open shards in the order of the list, so that few shards are incomplete after a kill."""

    async def run(self, list_shards: Callable[[], Iterator[Shard]]) -> None:
        """Loads all rows that have no outcome, and then again those that failed and may pass."""
        again: set[int] = set()

        async def load_new(shard: Shard, report: Optional[Report]) -> None:
            made = await self.load_pass(shard, report, lambda line: False)
            if self.has_more(made):
                again.add(shard.number)

        def begin(shard: Shard) -> Optional[Awaitable[None]]:
            report = self.shards.report(shard)
            is_interrupted = self.shards.is_interrupted(shard, report["passes"] if report else 0)
            if report is not None:
                self.progress.add(report)
                if report["rows"] == len(shard.rows):
                    if is_interrupted or self.has_more(report):
                        again.add(shard.number)
                    return None
            return load_new(shard, report)

        await self.each(list_shards(), begin)
        if again:
            await self.each(list_shards(), lambda shard: self.load_again(shard) if shard.number in again else None)

    def has_more(self, report: Report) -> bool:
        """Whether there are failed rows to be tried again at the end."""
        numbers: dict[str, int] = {"none": 0, "once": report["triedOnce"], "all": report["retryable"]}
        return numbers[self.plan.again] > 0

    async def load_again(self, shard: Shard) -> None:
        def is_wanted(line: Record) -> bool:
            return bool(line["retryable"]) and (self.plan.again == "all" or (self.plan.again == "once" and line["passes"] == 1))

        await self.load_pass(shard, self.shards.report(shard), is_wanted)

    async def each(self, shards: Iterator[Shard], begin: Callable[[Shard], Optional[Awaitable[None]]]) -> None:
        """Loads several shards at a time, so that the queue stays full while a shard waits for its last images or for its servers."""
        running: set[asyncio.Future[None]] = set()
        try:
            for shard in shards:
                work = begin(shard)
                if work is None:
                    continue
                running.add(asyncio.ensure_future(work))
                if len(running) >= self.plan.shards_at_once:
                    running = await first_of(running)
            while running:
                running = await first_of(running)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def load_pass(self, shard: Shard, report: Optional[Report], is_wanted: Callable[[Record], bool]) -> Report:
        """Returns the new report of the shard."""
        made = Pass(self.shards, shard, report, is_wanted)
        for line in made.done:
            failure = None if line["outcome"] == LOADED else Failure(line["outcome"], line["error"])
            earlier = made.earlier.get(line["row"])
            self.progress.note_before(line["url"], failure, earlier.outcome if earlier else None)
        made.done.clear()
        async for row, outcome in self.load_rows(made.rows):
            made.note(row, outcome, self.places_of(row))
            earlier = made.earlier.get(row.number)
            if earlier is not None:
                self.progress.forget(earlier.outcome)
            self.progress.note(row.url, outcome if isinstance(outcome, Failure) else None)
        return await asyncio.to_thread(made.finish)

    def places_of(self, row: Row) -> list[str]:
        """The paths at which the worker must save the images of a row."""
        return [f"{self.spool}/{key_of(row)}.{number}" for number in range(len(self.plan.loads))]

    async def load_rows(self, rows: Sequence[Row]) -> AsyncIterator[tuple[Row, Outcome]]:
        """Yields each row with its outcome, in the order in which they end. Raises any other exception of a load."""
        ended: asyncio.Queue[tuple[Row, Union[Outcome, Exception]]] = asyncio.Queue()

        async def load(row: Row) -> None:
            try:
                ended.put_nowait((row, await self.load(row)))
            except Exception as error:  # Whatever it is: the loop below waits for each row.
                ended.put_nowait((row, error))
            finally:
                self.places.release()

        async def load_all() -> None:
            async with self.turn:
                for row in rows:
                    await self.places.acquire()
                    task = asyncio.ensure_future(load(row))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)

        tasks: set[asyncio.Future[None]] = {asyncio.ensure_future(load_all())}
        try:
            for _ in rows:
                row, outcome = await ended.get()
                if isinstance(outcome, Exception):
                    raise outcome
                yield row, outcome
        finally:
            rest = list(tasks)
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

    async def load(self, row: Row) -> Outcome:
        """Loads all sizes at once: the worker transfers the original once for all. If one fails, the row fails."""
        fault = "the URL is too long" if len(row.url) > LONGEST_URL else fault_of(row)
        if fault is not None:
            return Failure("invalidParams", fault)
        places = self.places_of(row)
        loads = [self.load_size(row.url, place, params) for place, params in zip(places, self.plan.loads)]
        try:
            if len(loads) == 1:
                return [await loads[0]]
            results = await asyncio.gather(*loads, return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException):
                    raise result
            return [result for result in results if isinstance(result, Image)]
        except ImageWorkerError as error:
            failure = failure_of(error)
            if len(places) > 1:
                for place in places:
                    Path(place).unlink(missing_ok=True)
            return failure

    def load_size(self, url: str, place: str, common: LoadParams) -> Coroutine[Any, Any, Image]:
        params: LoadParams = {**common, "save_to": place}
        return self.worker.load_row(url, deliver="none", **params)


async def first_of(running: set[asyncio.Future[None]]) -> set[asyncio.Future[None]]:
    done, rest = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    return rest


def remove_spools(staging: Path) -> None:
    """Removes the folders in which workers have saved, also those of runs that were killed."""
    for folder in staging.glob("*.partial"):
        if folder.is_dir():
            shutil.rmtree(folder, ignore_errors=True)
