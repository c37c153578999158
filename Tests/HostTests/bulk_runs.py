"""Runs of examples/bulk with the built worker and the test origin, for the tests about it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

from origin_process import Origin
from package import ROOT

BULK = ROOT / "examples" / "bulk" / "bulk.py"
sys.path.insert(0, str(BULK.parents[1]))
import bulk  # noqa: E402, F401

sys.path.pop(0)  # Its other folders have names of libraries.


def allow_robots(origin: Origin) -> None:
    """The origin has no robots.txt from now on."""
    origin.command({"do": "script", "target": "/robots.txt", "answers": ["/text?status=404"]})


def forbid(origin: Origin, path: str) -> None:
    """The robots.txt of the origin forbids paths that begin with `path` from now on."""
    rules = f"User-agent: *\nDisallow: {path}"
    answer = f"HTTP/1.1 200 OK\r\nContent-Length: {len(rules)}\r\n\r\n{rules}".encode().hex("%")
    origin.command({"do": "script", "target": "/robots.txt", "answers": [f"/text?raw=%{answer}"]})


class BulkRuns(unittest.TestCase):
    def setUp(self) -> None:
        exits = contextlib.ExitStack()
        self.addCleanup(exits.close)
        self.folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        self.origin = exits.enter_context(Origin())
        self.out = self.folder / "out"
        allow_robots(self.origin)

    def command(self, list_name: str, *options: str) -> list[str]:
        worker = f"--worker-option=--cache-dir={self.folder}/cache"
        return [sys.executable, str(BULK), list_name if "://" in list_name else str(self.folder / list_name), str(self.out), worker, *options]

    def run_bulk(self, list_name: str, *options: str) -> str:
        run = subprocess.run(
            self.command(list_name, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stderr

    def refused(self, list_name: str, *options: str) -> tuple[int, str]:
        run = subprocess.run(self.command(list_name, *options), stderr=subprocess.PIPE, text=True, cwd=self.folder)
        self.assertNotIn("Traceback", run.stderr)
        return run.returncode, run.stderr.splitlines()[-1]

    def begin(self, list_name: str, *options: str) -> subprocess.Popen[bytes]:
        run = subprocess.Popen(self.command(list_name, *options), stderr=subprocess.DEVNULL)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        return run

    def write(self, name: str, *lines: str) -> None:
        (self.folder / name).write_text("".join(f"{line}\n" for line in lines))

    def summaries(self) -> list[dict[str, int]]:
        return [json.loads(path.read_text()) for path in sorted(self.out.glob("?????.json"))]

    def ledger(self) -> list[dict[str, Any]]:
        """The lines of all shards."""
        paths = sorted(self.out.glob("?????.ledger.jsonl"))
        return [json.loads(line) for path in paths for line in path.read_text().splitlines()]

    def failures(self) -> set[tuple[int, str]]:
        """Rows and kinds."""
        return {(line["row"], line["outcome"]) for line in self.ledger() if line["outcome"] != "loaded"}

    def requests(self) -> list[str]:
        """The targets that the origin was asked for, without robots.txt."""
        asked = [entry["target"] for entry in self.origin.command({"do": "log", "path": "/"})["exchanges"]]
        return [target for target in asked if target != "/robots.txt"]
