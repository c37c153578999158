"""The loads of a run, pass by pass, until each row has an outcome."""

from __future__ import annotations

import itertools
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Callable, Iterator, Optional, Tuple, Union

from imageworker import BlockingImageWorker, Image, ImageWorkerError, InvalidParams, LoadItem, LoadParams, OutputParams, Transform

from .ledgers import Record
from .lists import Row, Shard
from .passes import Pass, Report, Shards
from .progress import Progress

LONGEST_URL = 4 << 20
"""Maximum length of a URL in characters. Even at six bytes of JSON each it fits into --max-line. Only `data:` URLs exceed 8 kB."""

MOST_SHARDS = 100
"""Maximum number of unfinished shards. Each has two open files."""


class Loads:
    def __init__(self, worker: BlockingImageWorker, shards: Shards, spool: str, progress: Progress) -> None:
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
        self.unfinished = 0
        self.writer = ThreadPoolExecutor(1)
        self.writing: Optional[Future[None]] = None

    def run(self, list_shards: Callable[[], Iterator[Shard]]) -> None:
        """Loads all rows that have no outcome, and then again those that failed and may pass."""
        with self.writer:
            self.load(self.first_passes(list_shards()))
            if self.again:
                self.load(self.begin(shard, self.shards.report(shard), self.is_wanted) for shard in list_shards() if shard.number in self.again)

    def first_passes(self, list_shards: Iterator[Shard]) -> Iterator[Pass]:
        for shard in list_shards:
            report = self.shards.report(shard)
            is_interrupted = self.shards.is_interrupted(shard, report["passes"] if report else 0)
            if report is not None:
                self.progress.add(report)
            if report is None or report["rows"] != len(shard.rows):
                yield self.begin(shard, report, lambda line: False)
            elif is_interrupted or self.has_more(report):
                self.again.add(shard.number)

    def has_more(self, report: Report) -> bool:
        return bool(self.counted and report[self.counted])

    def is_wanted(self, line: Record) -> bool:
        return bool(self.counted and line["retryable"] and (self.counted == "retryable" or line["passes"] == 1))

    def begin(self, shard: Shard, report: Optional[Report], is_wanted: Callable[[Record], bool]) -> Pass:
        made = Pass(self.shards, shard, report, is_wanted)
        while made.done:
            line = made.done.pop()
            self.progress.note(line, made.earlier.get(line["row"]), is_new=False)
        return made

    def load(self, passes: Iterator[Pass]) -> None:
        """Loads the rows of several shards at a time, so that no shard waits for the last images of another one."""
        for first in passes:
            items = self.items(itertools.chain([first], passes))
            for (made, row), outcome in self.worker.load_all(items, deliver="none", at_once=self.given.at_once, passes=1, **self.params):
                self.end(made, row, outcome)
        if self.writing:
            self.writing.result()

    def items(self, passes: Iterator[Pass]) -> Iterator[Tuple[Tuple[Pass, Row], LoadItem]]:
        """The rows to load, until too many shards are unfinished."""
        for made in passes:
            self.unfinished += 1
            if not made.unended:
                self.finish(made)
            while made.rows:
                row = made.rows.popleft()
                if len(row.url) > LONGEST_URL or "\ufffd" in row.url:
                    reason = "the URL is too long" if len(row.url) > LONGEST_URL else "the URL must be UTF-8"
                    self.end(made, row, InvalidParams(reason, {"kind": "invalidParams"}))
                else:
                    yield (made, row), self.item(row)
            if self.unfinished >= MOST_SHARDS:
                return

    def item(self, row: Row) -> LoadItem:
        """All sizes come of one transfer and one decode."""
        places = self.places_of(row)
        if not self.given.size:
            return {"url": row.url, "save_to": places[0]}
        outputs: dict[str, OutputParams] = {
            str(size): {"transform": {**self.box, "width": size, "height": size}, "save_to": place}
            for size, place in zip(self.given.size, places)
        }
        return {"url": row.url, "outputs": outputs}

    def places_of(self, row: Row) -> list[str]:
        """The paths at which the worker must save the images of a row."""
        return [f"{self.spool}/{row.number}.{size}" for size in self.given.size or ["original"]]

    def end(self, made: Pass, row: Row, outcome: Union[Image, ImageWorkerError]) -> None:
        self.progress.note(made.note(row, outcome, self.places_of(row)), made.earlier.get(row.number))
        if not made.unended:
            self.finish(made)

    def finish(self, made: Pass) -> None:
        """Writes a shard while others are loaded. Waits for the one before, so that a slow output slows the loads."""

        def write() -> None:
            if self.has_more(made.finish()):
                self.again.add(made.shard_number)

        if self.writing:
            self.writing.result()
        self.writing = self.writer.submit(write)
        self.unfinished -= 1
