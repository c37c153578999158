"""A pass over rows of a shard: the first, and later ones for rows that the list has got since, or that may pass now."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections import deque
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from imageworker import Image, ImageWorkerError

from .destinations import Destination, remove
from .ledgers import LOADED, Record, facts_of, record
from .lists import Problem, Row, Shard, digest
from .progress import Failures
from .samples import Files, WebDataset

Report = Mapping[str, Any]
"""The contents of NNNNN.json."""


class Shards:
    """The shards in the output, each with its report NNNNN.json. The report is written last: it says that all before it is complete."""

    def __init__(self, destination: Destination, given: argparse.Namespace) -> None:
        self.destination, self.given = destination, given
        names = "format shard_size url_column caption_column column size fit enlarge quality want robots"
        self.settings = {name: getattr(given, name) for name in names.split()}
        """The arguments on which the output depends. A shard is never continued with others."""

    def report(self, shard: Shard) -> Optional[Report]:
        """The report of a shard; None if no pass over it has ended. Raises Problem if it is about other rows or settings."""
        report: Optional[Report] = json.loads(self.destination.read(f"{shard.name}.json") or b"null")
        if report is not None:
            self.check(report, shard, f"{shard.name}.json")
        return report

    def check(self, made: Mapping[str, Any], shard: Shard, name: str) -> None:
        """Raises Problem if a report or the header of a ledger, `made`, is not about these rows or the first of them."""
        where = f"{name} in {self.destination.name}"
        if made.get("settings") != self.settings:
            raise Problem(f"{where} was written by a run with other settings, {json.dumps(made.get('settings'))}: choose another folder")
        if made["list"] != digest(shard.rows[: made["rows"]]):
            raise Problem(f"{where} was written for other rows: choose another folder for another list")

    def ledger(self, shard: str) -> list[bytes]:
        """The lines of the passes that have ended."""
        name = f"{shard}.ledger.jsonl"
        content = self.destination.read(name)
        if content is None:
            raise Problem(f"{name} is missing in {self.destination.name}: delete all files of shard {shard} to load it again")
        return content.splitlines()

    def is_interrupted(self, shard: Shard, passes: int) -> bool:
        """Whether a pass after the first `passes` ones has begun. Removes what a kill has left of the one before."""
        if passes:
            self.pass_ledger(shard, passes - 1).unlink(missing_ok=True)
            left = self.destination.staging.glob(f"{shard.name}*") if self.destination.files else ()
            remove(path for path in left if path.suffix != ".partial")
        return self.pass_ledger(shard, passes).exists()

    def pass_ledger(self, shard: Shard, number: int) -> Path:
        return self.destination.staging / f"{shard.name}.{number}.ledger.partial"


class Pass:
    """A pass under way. All that it has done is on disk, so that it continues after a kill.

    Its ledger has a line for each row that has ended, and a first line that says for which rows and settings they are.
    """

    def __init__(self, shards: Shards, shard: Shard, report: Optional[Report], is_wanted: Callable[[Record], bool]) -> None:
        """Begins or continues the pass after those of `report`. It is for rows without a line, and with one that `is_wanted`."""
        self.shards, self.name = shards, shard.name
        self.number: int = report["passes"] if report else 0
        self.made_for = {"rows": len(shard.rows), "list": digest(shard.rows), "settings": shards.settings}
        self.path = shards.pass_ledger(shard, self.number)
        content = self.path.read_bytes() if self.path.exists() else b""
        content = content[: content.rfind(b"\n") + 1]  # A line that is not complete does not count.
        try:
            header, *done = [json.loads(line) for line in content.splitlines()] or [self.made_for]
        except ValueError:  # A crash of the machine has damaged it: it is begun anew.
            header, done = self.made_for, []
        shards.check(header, shard, self.path.name)
        before = list(map(json.loads, shards.ledger(shard.name))) if report else []
        self.samples = (WebDataset if shards.given.format == "webdataset" else Files)(shards.destination.staging, shard.name, self.number)
        if not self.samples.restore(done, before):  # A crash of the machine has lost images that have a line.
            done = []
            self.samples.restore(done, before)
        self.ledger = self.path.open("ab")
        self.ledger.truncate(len(content) if done else 0)
        if not done:
            self._append(header)
        self.done: list[Record] = done
        """The lines of the runs before this one."""
        ended = {line["row"] for line in done}
        known = {line["row"] for line in before if not is_wanted(line)} | ended
        self.rows = deque(row for row in shard.rows if row.number not in known)
        """The rows to load, until they are taken from here."""
        self.unended = len(self.rows)
        self.earlier = {line["row"]: line for line in before if line["row"] in ended or is_wanted(line)}
        """The lines of earlier passes of the rows of this one."""

    def _append(self, line: Record) -> Record:
        """Adds a line to the ledger, and returns it. After this it survives the end of the process."""
        self.ledger.write(json.dumps(line).encode() + b"\n")
        self.ledger.flush()
        return line

    def note(self, row: Row, outcome: Union[Image, ImageWorkerError], saved: Sequence[str]) -> Record:
        """Adds the outcome of a row: an image, whose files the worker has saved at `saved`, or a failure. Returns the line."""
        self.unended -= 1
        earlier = self.earlier.get(row.number, {"attempts": 0, "passes": 0})
        counts = {"attempts": outcome.attempts + earlier["attempts"], "passes": earlier["passes"] + 1}
        if isinstance(outcome, ImageWorkerError):
            return self._append(record(row, outcome, **counts))
        given, key, contents = self.shards.given, f"{row.number:09}", []
        for path in saved:
            with open(path, "rb", buffering=0) as file:
                contents.append(file.read())
            os.unlink(path)
        facts = facts_of(outcome, given.size, [hashlib.sha256(content).hexdigest() for content in contents])
        about = {"row": row.number, "url": row.url, "caption": row.caption, **facts}
        about = {**dict(zip(given.column, row.further)), **{name: value for name, value in about.items() if value is not None}}
        extension = "jpg" if given.size or outcome.format == "jpeg" else outcome.format or "bin"
        extensions = [f"{size}.{extension}" for size in given.size] if len(given.size) > 1 else [extension]
        texts = {"json": json.dumps(about), "txt": row.caption}
        parts = [*zip(extensions, contents), *((end, text.encode()) for end, text in texts.items() if text is not None)]
        place = {"shard": self.samples.path.name, "key": key, **self.samples.add(key, parts)}
        return self._append(record(row, outcome, **counts, **place, **facts))

    def finish(self) -> Report:
        """Writes the files that readers get of the shard, the report last. Returns the report."""
        self.ledger.close()
        lines = [*(self.shards.ledger(self.name) if self.number else []), *self.path.read_bytes().splitlines()[1:]]
        by_row = {line["row"]: (line, text) for line, text in zip(map(json.loads, lines), lines)}
        records, texts = zip(*(by_row[number] for number in sorted(by_row))) if by_row else ((), ())
        destination = self.shards.destination
        samples = [self.samples.path] if self.samples.finish() else []
        failures = Failures()
        for line in records:
            failures.note(line)
        loaded = [line["bytes"] for line in records if line["outcome"] == LOADED]
        report = {
            "succeeded": len(loaded),
            "failed": len(records) - len(loaded),
            "bytes": sum(loaded),
            "passes": self.number + 1,
            "retryable": sum(line["retryable"] for line in records),
            "triedOnce": sum(line["retryable"] and line["passes"] == 1 for line in records),
            "failures": failures.kinds,
            **self.made_for,
        }
        paths = [destination.staging / f"{self.name}.{end}" for end in ("ledger.jsonl", "json")]
        for path, content in zip(paths, (b"".join(text + b"\n" for text in texts), json.dumps(report).encode())):
            partial = path.with_name(f"{path.name}.partial")  # So that the file is complete or not there.
            with partial.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.rename(path)
        destination.publish([*samples, *paths])
        self.path.unlink()
        return report
