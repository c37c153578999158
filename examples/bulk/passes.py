"""A pass over rows of a shard: the first, and later ones for rows that the list has got since, or that may pass now."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence, Union

from destinations import Destination
from failures import Failures
from imageworker import Image
from ledgers import LOADED, PassLedger, Record, facts_of, read_ledger, record, write_ledger
from lists import Problem, Row, Shard, digest
from outcomes import Failure, extension_of
from samples import Files, Part, WebDataset


Report = Mapping[str, Any]
"""The contents of NNNNN.json."""


class Earlier(NamedTuple):
    """The line that a row got in an earlier pass, as far as a later one needs it."""

    outcome: str
    passes: int
    attempts: int


class Layout(NamedTuple):
    """The form of the output."""

    samples: Union[type[Files], type[WebDataset]]
    ledger: str
    """The extension of the ledger: `jsonl` or `parquet`."""
    sizes: Sequence[int]
    further: Sequence[str]
    """The names of the further columns."""
    settings: Mapping[str, Any]
    """All settings on which the output depends. A shard is never continued with others."""


class Shards:
    """The shards in the output, each with its report NNNNN.json. The report is written last: it says that all before it is complete."""

    def __init__(self, destination: Destination, layout: Layout) -> None:
        self.destination = destination
        self.layout = layout

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
        if made.get("settings") != self.layout.settings:
            raise Problem(f"{where} was written by a run with other settings, {json.dumps(made.get('settings'))}: choose another folder")
        if made["list"] != digest(shard.rows[: made["rows"]]):
            raise Problem(f"{where} was written for other rows: choose another folder for another list")

    def ledger(self, shard: Shard) -> list[Record]:
        """The lines of the passes that have ended."""
        name = f"{shard.name}.ledger.{self.layout.ledger}"
        content = self.destination.read(name)
        if content is None:
            raise Problem(f"{name} is missing in {self.destination.name}: delete all files of shard {shard.name} to load it again")
        return read_ledger(name, content)

    def is_interrupted(self, shard: Shard, passes: int) -> bool:
        """Whether a pass after the first `passes` ones has begun. Removes what a kill has left of the one before."""
        if passes and (ended := pass_ledger(self.destination.staging, shard, passes - 1)).exists():
            self.destination.tidy(shard.name)
            ended.unlink()
        return pass_ledger(self.destination.staging, shard, passes).exists()


class Pass:
    """A pass under way. All that it has done is on disk, so that it continues after a kill."""

    def __init__(self, shards: Shards, shard: Shard, report: Optional[Report], is_wanted: Callable[[Record], bool]) -> None:
        """Begins or continues the pass after those of `report`. It is for rows without a line, and with one that `is_wanted`."""
        self.shards, self.shard = shards, shard
        self.number: int = report["passes"] if report else 0
        lines = shards.ledger(shard) if report else []
        staging = shards.destination.staging
        made_for = {"rows": len(shard.rows), "list": digest(shard.rows), "settings": shards.layout.settings}
        path = pass_ledger(staging, shard, self.number)
        self.ledger = PassLedger(path, made_for)
        shards.check(self.ledger.header, shard, path.name)
        self.samples = shards.layout.samples(staging, shard.name, self.number)
        self._restore({line["key"] for line in lines if "key" in line})
        self.done: list[Record] = self.ledger.records
        """The lines that the runs before this one have written in this pass."""
        done = {line["row"] for line in self.done}
        again = {line["row"] for line in lines if is_wanted(line)}
        known = {line["row"] for line in lines} - again
        self.rows = [row for row in shard.rows if row.number not in done and row.number not in known]
        """The rows that are left to load."""
        self.earlier = {
            line["row"]: Earlier(line["outcome"], line["passes"], line["attempts"]) for line in lines if line["row"] in again | done
        }

    def _restore(self, earlier: set[str]) -> None:
        """Removes images without a line."""
        lines = [line for line in self.ledger.records if "key" in line]
        end: int = max((line.get("tar_offset", 0) + line.get("tar_bytes", 0) for line in lines), default=0)
        if not self.samples.restore(end, {line["key"] for line in lines}, earlier):
            self.ledger.restart()  # A crash of the machine has lost images that have a line.
            self.samples.restore(0, set(), earlier)

    def note(self, row: Row, outcome: Union[Sequence[Image], Failure], saved: Sequence[str]) -> None:
        """Adds the outcome of a row: images, one for each size, that the worker has saved at `saved`, or a failure."""
        earlier = self.earlier.get(row.number)
        passes, attempts = (earlier.passes + 1, earlier.attempts) if earlier else (1, 0)
        if isinstance(outcome, Failure):
            self.ledger.append(record(row, outcome, attempts=outcome.attempts + attempts, passes=passes))
            return
        layout = self.shards.layout
        facts = facts_of(outcome, layout.sizes)
        about = {**dict(zip(layout.further, row.further)), "row": row.number, "url": row.url, "caption": row.caption, **facts}
        about = {name: value for name, value in about.items() if value is not None or name in layout.further}
        parts = [
            Part(f"{size}.{extension_of(image)}" if size else extension_of(image), path)
            for size, image, path in zip(layout.sizes if len(layout.sizes) > 1 else [0], outcome, saved)
        ]
        parts.append(Part("json", json.dumps(about).encode()))
        if row.caption is not None:
            parts.append(Part("txt", row.caption.encode()))
        key = key_of(row)
        place = {"shard": self.samples.path.name, "key": key, **self.samples.add(key, parts)}
        self.ledger.append(record(row, outcome[0], attempts=outcome[0].attempts + attempts, passes=passes, **place, **facts))

    def finish(self) -> Report:
        """Writes the files that readers get of the shard, the report last. Returns the report."""
        lines: dict[int, Record] = {line["row"]: line for line in (self.shards.ledger(self.shard) if self.number else [])}
        lines.update((line["row"], line) for line in self.ledger.close())
        records = [lines[number] for number in sorted(lines)]
        destination, layout, name = self.shards.destination, self.shards.layout, self.shard.name
        samples = self.samples.finish()
        ledger, report = (destination.staging / f"{name}.{end}" for end in (f"ledger.{layout.ledger}", "json"))
        replace(ledger, lambda path: write_ledger(path, records, layout.sizes))
        made = self._report(records)
        replace(report, lambda path: path.write_text(json.dumps(made)))
        destination.publish([*([samples] if samples else []), ledger, report])
        self.ledger.path.unlink()
        return made

    def _report(self, records: Sequence[Record]) -> Report:
        failures, loaded, size = Failures(), 0, 0
        for line in records:
            if line["outcome"] == LOADED:
                loaded, size = loaded + 1, size + line["bytes"]
            else:
                failures.note(line["url"], Failure(line["outcome"], line["error"]))
        return {
            "rows": len(self.shard.rows),
            "succeeded": loaded,
            "failed": len(records) - loaded,
            "bytes": size,
            "passes": self.number + 1,
            "retryable": sum(line["retryable"] for line in records),
            "triedOnce": sum(line["retryable"] and line["passes"] == 1 for line in records),
            "failures": failures.wire,
            "list": digest(self.shard.rows),
            "settings": self.shards.layout.settings,
        }


def key_of(row: Row) -> str:
    """The name of the row's sample."""
    return f"{row.number:09}"


def pass_ledger(staging: Path, shard: Shard, number: int) -> Path:
    return staging / f"{shard.name}.{number}.ledger.partial"


def replace(path: Path, write: Callable[[Path], object]) -> None:
    """Writes a file that is complete or not there."""
    partial = path.with_name(f"{path.stem}.partial{path.suffix}")  # The extension says how it is written.
    write(partial)
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    partial.rename(path)
