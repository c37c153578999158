"""`imageworker cache` on a cache with very many entries, in little memory and beside a worker."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import unittest
from pathlib import Path
from typing import Any, Iterator

from cache_commands import PNG, CommandsTest, command, run_measured
from test_cache_disk import Worker

ENTRIES = int(os.environ.get("CACHE_ENTRIES", "50000"))
"""CACHE_ENTRIES=1000000 takes some minutes."""


class LargeCache(CommandsTest):
    """A cache with very many entries, whose rows are inserted directly."""

    def setUp(self) -> None:
        super().setUp()
        self.store(*(f"http://h.example/{number}" for number in range(10)))
        database = sqlite3.connect(self.cache / "default" / "index.sqlite", isolation_level=None)
        database.execute("PRAGMA synchronous = OFF")
        names = [row[1] for row in database.execute("PRAGMA table_info(responses)")]
        columns = {name: name for name in names}
        columns |= {
            "id": "id + n * 16",
            "key": "key || '?' || n",
            "url": "NULL",
            "host": "'h' || (n % 1000) || '.example'",
            "url_hash": "n",
            "bytes": "n * 7919 % 100003",
            "uses": "n % 1009",
        }
        database.execute(
            f"""
            WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {ENTRIES // 10 - 1})
            INSERT INTO responses SELECT {", ".join(columns.values())} FROM responses, numbers
            """
        )
        database.close()

    def measured(self, *arguments: str) -> tuple[int, Iterator[dict[str, Any]]]:
        """The largest resident memory of a command, and its objects."""
        name, *rest = arguments
        output = self.folder / "output"
        resident = run_measured(output, name, self.cache, *rest)
        return resident, self.objects(output)

    def objects(self, output: Path) -> Iterator[dict[str, Any]]:
        with output.open() as lines:
            yield from map(json.loads, lines)

    def test_memory_is_small_in_every_order(self) -> None:
        few, _ = self.measured("ls", "--key", "http://h.example/1")
        for arguments, member in {
            ("--sort", "key"): "key",
            ("--sort", "uses", "--reverse"): "uses",
        }.items():
            resident, entries = self.measured("ls", *arguments)
            listed = [(entry[member], entry["file"]) for entry in entries]
            values = [value for value, _ in listed]
            self.assertEqual((len(values), len({file for _, file in listed})), (ENTRIES, ENTRIES))
            self.assertEqual(values, sorted(values))
            print(f"{ENTRIES} entries by {member}: {resident >> 20} MB resident, {few >> 20} MB for one entry")
            self.assertLess(resident - few, (24 << 20) + 24 * ENTRIES, arguments)
        resident, sums = self.measured("du")
        self.assertLess(resident - few, 24 << 20)
        *groups, total = sums
        self.assertEqual(total["images"], ENTRIES)
        hosts = [each for each in groups if each["group"] == "host"]
        self.assertEqual((len(hosts), sum(each["images"] for each in hosts)), (1001, ENTRIES))

    def test_a_slow_reader_holds_no_transaction(self) -> None:
        for arguments in ([], ["--sort", "size"]):
            process = subprocess.Popen(command("ls", self.cache, *arguments), stdout=subprocess.PIPE)
            assert process.stdout
            first = process.stdout.readline()
            with Worker(self.cache) as worker:
                worker.call("store", url="http://new.example/", data=PNG)
                with contextlib.closing(sqlite3.connect(self.cache / "default" / "index.sqlite")) as database:
                    database.execute("PRAGMA busy_timeout = 60000")
                    # Fails to restart the log while a reader uses it.
                    busy, _, _ = database.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
                self.assertEqual(busy, 0)
            rest = process.stdout.read()
            process.stdout.close()
            self.assertEqual(process.wait(), 0)
            self.assertGreaterEqual((first + rest).count(b"\n"), ENTRIES)


if __name__ == "__main__":
    unittest.main()
