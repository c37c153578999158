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

from .destinations import Destination
from .failures import Failures
from .ledgers import LOADED, PassLedger, Record, facts_of, read_lines, record
from .lists import Problem, Row, Shard, digest
from .samples import Files, WebDataset

Report = Mapping[str, Any]
"""The contents of NNNNN.json."""

SETTINGS = "format shard_size url_column caption_column column size fit enlarge quality want robots".split()
"""The arguments on which the output depends. A shard is never continued with others."""


class Shards:
    """The shards in the output, each with its report NNNNN.json. The report is written last: it says that all before it is complete."""

    def __init__(self, destination: Destination, given: argparse.Namespace) -> None:
        self.destination, self.given = destination, given
        self.settings = {name: getattr(given, name) for name in SETTINGS}

    def report(self, shard: Shard) -> Optional[Report]:
        """The report of a shard; None if no pass over it has ended. Raises Problem if it is about other rows or settings."""
        try:
            report = json.loads(self.destination.read(f"{shard.name}.json") or b"null")
        except ValueError:
            return None  # Cut short, as by a crash of the machine.
        if report is not None:
            self.check(report, shard, f"{shard.name}.json")
        return dict(report) if report is not None else None

    def check(self, made: Mapping[str, Any], shard: Shard, name: str) -> None:
        """Raises Problem if a report or the header of a ledger, `made`, is not about these rows or the first of them."""
        where = f"{name} in {self.destination.name}"
        if made.get("settings") != self.settings:
            raise Problem(f"{where} was written by a run with other settings, {json.dumps(made.get('settings'))}: choose another folder")
        if made["list"] != digest(shard.rows[: made["rows"]]):
            raise Problem(f"{where} was written for other rows: choose another folder for another list")

    def ledger(self, shard: str) -> list[Record]:
        """The lines of the passes that have ended."""
        name = f"{shard}.ledger.jsonl"
        content = self.destination.read(name)
        if content is None:
            raise Problem(f"{name} is missing in {self.destination.name}: delete all files of shard {shard} to load it again")
        return read_lines(content)

    def is_interrupted(self, shard: Shard, passes: int) -> bool:
        """Whether a pass after the first `passes` ones has begun. Removes what a kill has left of the one before."""
        if passes:
            self.destination.tidy(shard.name)
            pass_ledger(self.destination.staging, shard, passes - 1).unlink(missing_ok=True)
        return pass_ledger(self.destination.staging, shard, passes).exists()


class Pass:
    """A pass under way. All that it has done is on disk, so that it continues after a kill."""

    def __init__(self, shards: Shards, shard: Shard, report: Optional[Report], is_wanted: Callable[[Record], bool]) -> None:
        """Begins or continues the pass after those of `report`. It is for rows without a line, and with one that `is_wanted`."""
        self.shards, self.shard_number, self.name = shards, shard.number, shard.name
        self.number: int = report["passes"] if report else 0
        lines = shards.ledger(shard.name) if report else []
        staging = shards.destination.staging
        self.made_for = {"rows": len(shard.rows), "list": digest(shard.rows), "settings": shards.settings}
        path = pass_ledger(staging, shard, self.number)
        self.ledger = PassLedger(path, self.made_for)
        shards.check(self.ledger.header, shard, path.name)
        self.samples = (WebDataset if shards.given.format == "webdataset" else Files)(staging, shard.name, self.number)
        self._restore({line["key"] for line in lines if "key" in line})
        done = {line["row"] for line in self.ledger.records}
        again = {line["row"] for line in lines if is_wanted(line)}
        known = {line["row"] for line in lines} - again
        self.rows = deque(row for row in shard.rows if row.number not in done and row.number not in known)
        """The rows to load, until they are taken from here."""
        self.unended = len(self.rows)
        self.earlier = {line["row"]: line for line in lines if line["row"] in again | done}
        """The lines of earlier passes of the rows of this one."""

    def _restore(self, earlier: set[str]) -> None:
        """Removes images without a line."""
        lines = [line for line in self.ledger.records if "key" in line]
        end: int = max((line.get("tar_offset", 0) + line.get("tar_bytes", 0) for line in lines), default=0)
        if not self.samples.restore(end, {line["key"] for line in lines}, earlier):
            self.ledger.restart()  # A crash of the machine has lost images that have a line.
            self.samples.restore(0, set(), earlier)

    def note(self, row: Row, outcome: Union[Image, ImageWorkerError], saved: Sequence[str]) -> Record:
        """Adds the outcome of a row: an image, whose files the worker has saved at `saved`, or a failure. Returns the line."""
        self.unended -= 1
        earlier = self.earlier.get(row.number, {"attempts": 0, "passes": 0})
        counts = {"attempts": outcome.attempts + earlier["attempts"], "passes": earlier["passes"] + 1}
        if isinstance(outcome, ImageWorkerError):
            return self.ledger.append(record(row, outcome, **counts))
        given = self.shards.given
        extension = "jpg" if given.size or outcome.format == "jpeg" else outcome.format or "bin"
        contents = [Path(path).read_bytes() for path in saved]
        facts = facts_of(outcome, given.size, [hashlib.sha256(content).hexdigest() for content in contents])
        about = {"row": row.number, "url": row.url, "caption": row.caption, **facts}
        about = {**dict(zip(given.column, row.further)), **{name: value for name, value in about.items() if value is not None}}
        extensions = [f"{size}.{extension}" for size in given.size] if len(given.size) > 1 else [extension]
        parts = [*zip(extensions, contents), ("json", json.dumps(about).encode())]
        if row.caption is not None:
            parts.append(("txt", row.caption.encode()))
        place = {"shard": self.samples.path.name, "key": key_of(row), **self.samples.add(key_of(row), parts)}
        line = self.ledger.append(record(row, outcome, **counts, **place, **facts))
        for path in saved:
            os.unlink(path)
        return line

    def finish(self) -> Report:
        """Writes the files that readers get of the shard, the report last. Returns the report."""
        lines = {line["row"]: line for line in (self.shards.ledger(self.name) if self.number else [])}
        lines.update((line["row"], line) for line in self.ledger.close())
        records = [lines[number] for number in sorted(lines)]
        destination, name = self.shards.destination, self.name
        samples = self.samples.finish()
        report = self._report(records)
        paths = [destination.staging / f"{name}.{end}" for end in ("ledger.jsonl", "json")]
        replace(paths[0], "".join(json.dumps(line) + "\n" for line in records))
        replace(paths[1], json.dumps(report))
        destination.publish([*([samples] if samples else []), *paths])
        self.ledger.path.unlink()
        return report

    def _report(self, records: Sequence[Record]) -> Report:
        failures, loaded = Failures(), [line for line in records if line["outcome"] == LOADED]
        for line in records:
            if line["outcome"] != LOADED:
                failures.note(line)
        return {
            "succeeded": len(loaded),
            "failed": len(records) - len(loaded),
            "bytes": sum(line["bytes"] for line in loaded),
            "passes": self.number + 1,
            "retryable": sum(line["retryable"] for line in records),
            "triedOnce": sum(line["retryable"] and line["passes"] == 1 for line in records),
            "failures": failures.kinds,
            **self.made_for,
        }


def key_of(row: Row) -> str:
    """The name of the row's sample."""
    return f"{row.number:09}"


def pass_ledger(staging: Path, shard: Shard, number: int) -> Path:
    return staging / f"{shard.name}.{number}.ledger.partial"


def replace(path: Path, content: str) -> None:
    """Writes a file that is complete or not there."""
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
