"""Metrics in one of their text forms, and the worker that writes them."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict

from chaos_session import default_worker

SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
SUFFIXES = {"counter": ["_total"], "gauge": [""], "info": ["_info"], "histogram": ["_bucket", "_sum", "_count"]}


class Metrics:
    """The samples of a text in either form, found by name and labels."""

    def __init__(self, text: str) -> None:
        self.samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        self.types: dict[str, str] = {}
        self.help: dict[str, str] = {}
        for line in text.splitlines():
            if line.startswith("# "):
                kind, _, rest = line[2:].partition(" ")
                name, _, value = rest.partition(" ")
                if kind in ("TYPE", "HELP"):
                    (self.types if kind == "TYPE" else self.help)[name] = value
                continue
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            key = (sample[1], frozenset(LABEL.findall(sample[2] or "")))
            assert key not in self.samples, line
            self.samples[key] = float(sample[3])

    def __getitem__(self, name: str) -> float:
        """The sum of all samples of the name."""
        values = [value for (own, _), value in self.samples.items() if own == name]
        assert values, name
        return sum(values)

    def by(self, label: str, name: str) -> dict[str, float]:
        """The samples of the name that are not zero, by a label; summed if there are further ones."""
        found: defaultdict[str, float] = defaultdict(float)
        for (own, labels), value in self.samples.items():
            if own == name:
                found[dict(labels)[label]] += value
        return {value: count for value, count in found.items() if count}

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.samples}

    def labels(self, family: str) -> set[str]:
        names = {family + suffix for suffix in SUFFIXES[self.types[family]]}
        return {label for name, labels in self.samples if name in names for label, _ in labels}


def run_worker(*options: str, requests: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([default_worker(), *options], input=requests, capture_output=True, text=True)
