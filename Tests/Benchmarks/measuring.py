"""Common to all benchmarks: fresh directories, interleaved rounds, medians, targets and the report."""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar

Measured = TypeVar("Measured")
Round = Callable[[Path], float]


class Skipped(Exception):
    """A benchmark or a peer that cannot run here, and what would change that."""


@dataclass(frozen=True)
class Figure:
    """One number, and the bound it has to keep if there is one."""

    name: str
    value: float
    unit: str
    at_least: Optional[float] = None
    at_most: Optional[float] = None
    samples: Sequence[float] = ()

    @property
    def missed(self) -> bool:
        below = self.at_least is not None and self.value < self.at_least
        above = self.at_most is not None and self.value > self.at_most
        return below or above

    @property
    def target(self) -> str:
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return f"<= {self.at_most:g}" if self.at_most is not None else ""


@dataclass
class Report:
    """The figures of a run and what was left out of it."""

    figures: List[Figure] = field(default_factory=list)
    skipped: List[str] = field(default_factory=list)

    def add(self, name: str, value: float, unit: str, **bounds: Any) -> None:
        self.figures.append(Figure(name, value, unit, **bounds))

    def skip(self, what: str, why: object) -> None:
        self.skipped.append(f"{what}: {why}")
        print(f"skipped: {what}: {why}", flush=True)

    @property
    def missed(self) -> bool:
        return any(figure.missed for figure in self.figures)

    def table(self) -> str:
        rows = [("figure", "value", "unit", "target", "")]
        for figure in self.figures:
            verdict = ("MISSED" if figure.missed else "ok") if figure.target else ""
            rows.append((figure.name, readable(figure.value), figure.unit, figure.target, verdict))
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        lines = [
            f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:<{widths[2]}}  {d:<{widths[3]}}  {e}".rstrip()
            for a, b, c, d, e in rows
        ]
        lines.insert(1, "-" * max(map(len, lines)))
        return "\n".join(lines + [f"skipped: {line}" for line in self.skipped])

    def write(self, path: Path) -> None:
        machine = {"system": platform.platform(), "cores": os.cpu_count(), "python": platform.python_version()}
        figures = [{**asdict(figure), "missed": figure.missed} for figure in self.figures]
        path.write_text(json.dumps({"machine": machine, "figures": figures, "skipped": self.skipped}, indent=2) + "\n")


class Workspace:
    """A folder in memory where the system has one; every run gets a fresh directory, and all go at the very end.

    A file system may be slow to create files right after thousands were deleted: nothing is deleted between runs.
    """

    def __init__(self, keep: bool = False) -> None:
        memory = Path("/dev/shm")
        parent = memory if memory.is_dir() and shutil.disk_usage(memory).free > 3 << 30 else None
        self.root = Path(tempfile.mkdtemp(prefix="imageworker-benchmark-", dir=parent))
        self.root.chmod(0o755)  # the server's worker process may be another user
        self._keep = keep
        self._count = 0

    def fresh(self, name: str) -> Path:
        self._count += 1
        directory = self.root / f"{self._count:03}-{name}"
        directory.mkdir()
        return directory

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        if self._keep:
            print(f"kept: {self.root}")
        else:
            shutil.rmtree(self.root)


def interleaved(
    rounds: int, contestants: Dict[str, Callable[[Path], Measured]], workspace: Workspace
) -> Dict[str, List[Measured]]:
    """Every contestant once a round, each round beginning with another one."""
    samples: Dict[str, List[Measured]] = {name: [] for name in contestants}
    order: List[Tuple[str, Callable[[Path], Measured]]] = list(contestants.items())
    for _ in range(rounds):
        for name, run in order:
            samples[name].append(run(workspace.fresh(name.replace(" ", "-"))))
        order = order[1:] + order[:1]
    return samples


def median(samples: Sequence[float]) -> float:
    return statistics.median(samples)


def program(name: str) -> str:
    """The path of a program; servers may be in a folder that is not searched for ordinary users."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/opt/homebrew/bin")
    if found is None:
        raise Skipped(f"{name} is not installed")
    return found


def module(python: str, name: str, package: str = "") -> None:
    """Check that a Python module is there, which a package of that name has, or of another."""
    if subprocess.run([python, "-c", f"import {name}"], capture_output=True).returncode != 0:
        install = f"try `pip install {package or name}`, or --python with one that has it"
        raise Skipped(f"{name} is not installed; {install}")


def plain_environment() -> Dict[str, str]:
    """The environment without proxies: everything here is on this machine."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


def readable(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
