"""The loads of a run, pass by pass, until each row has an outcome."""

from __future__ import annotations

import itertools
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Iterator, Optional, Tuple, Union

from imageworker import BlockingImageWorker, Image, ImageWorkerError, InvalidParams, LoadItem, LoadParams, Transform

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
        self.again: set[str] = set()
        """The names of the shards that have such rows."""
        own: LoadParams = {"store": "all" if given.keep else "none", "retry_failed": given.retry_failed, "want": given.want or None}
        if given.keep:  # What is kept is wanted as it was, fresh or not.
            own["cache"] = "force-cache"
        self.params: Any = {**own, "deliver": "none", "at_once": given.at_once, "passes": 1}
        box: Transform = {"fit": given.fit, "enlarge": given.enlarge, "format": "jpeg", "quality": given.quality}
        self.boxes: list[Transform] = [{**box, "width": size, "height": size} for size in given.size]
        self.unfinished = 0
        self.writer = ThreadPoolExecutor(1)
        self.writing: Future[Any] = self.writer.submit(int)
        """The end of the last write."""

    def run(self, list_shards: Callable[[], Iterator[Shard]]) -> None:
        """Loads all rows that have no outcome, and then again those that failed and may pass."""
        with self.writer:
            self.load(self.first_passes(list_shards()))
            if self.again:
                self.load((shard, self.shards.report(shard), self.is_wanted) for shard in list_shards() if shard.name in self.again)

    def first_passes(self, list_shards: Iterator[Shard]) -> Iterator[Tuple[Any, ...]]:
        """The arguments of passes, for shards with rows that have no line."""
        for shard in list_shards:
            report = self.shards.report(shard)
            is_interrupted = self.shards.is_interrupted(shard, report["passes"] if report else 0)
            if report is not None:
                self.progress.add(report)
            if report is None or report["rows"] != len(shard.rows):
                yield shard, report, lambda line: False
            elif is_interrupted or report.get(self.counted):
                self.again.add(shard.name)

    def is_wanted(self, line: Record) -> bool:
        return bool(self.counted and line["retryable"] and (self.counted == "retryable" or line["passes"] == 1))

    def load(self, passes: Iterator[Tuple[Any, ...]]) -> None:
        """Loads the rows of several shards at a time, so that no shard waits for the last images of another one."""
        for first in passes:
            items = self.items(itertools.chain([first], passes))
            for key, outcome in self.worker.load_all(items, **self.params):
                self.end(key, outcome)
        self.writing.result()

    def items(self, passes: Iterator[Tuple[Any, ...]]) -> Iterator[Tuple[Any, LoadItem]]:
        """The rows to load, until too many shards are unfinished. All sizes come of one transfer and one decode."""
        for begin in passes:
            made = Pass(self.shards, *begin)
            self.unfinished += 1
            while made.done:
                line = made.done.pop()
                self.progress.note(line, made.earlier.get(line["row"]), is_new=False)
            if not made.unended:
                self.finish(made)
            while made.rows:
                row = made.rows.popleft()
                places = [f"{self.spool}/{row.number}.{size}" for size in self.given.size or ["original"]]
                outputs: Any = {str(box["width"]): {"transform": box, "save_to": place} for box, place in zip(self.boxes, places)}
                if len(row.url) > LONGEST_URL or "\ufffd" in row.url:
                    reason = "the URL is too long" if len(row.url) > LONGEST_URL else "the URL must be UTF-8"
                    self.end((made, row, places), InvalidParams(reason, {"kind": "invalidParams"}))
                else:
                    yield (made, row, places), {"url": row.url, "outputs": outputs} if outputs else {"url": row.url, "save_to": places[0]}
            if self.unfinished >= MOST_SHARDS:
                return

    def end(self, key: Tuple[Pass, Row, list[str]], outcome: Union[Image, ImageWorkerError]) -> None:
        made, row, places = key
        self.progress.note(made.note(row, outcome, places), made.earlier.get(row.number))
        if not made.unended:
            self.finish(made)

    def finish(self, made: Pass) -> None:
        """Writes a shard while others are loaded. Waits for the one before, so that a slow output slows the loads."""

        def write() -> None:
            if made.finish().get(self.counted):
                self.again.add(made.name)

        self.writing.result()
        self.writing = self.writer.submit(write)
        self.unfinished -= 1
