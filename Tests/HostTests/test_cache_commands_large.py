"""`imageworker cache` on a cache with very many entries, in bounded memory and beside a worker."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import unittest

from cache_commands import PNG, CommandsTest, command, run
from test_cache_disk import Worker

ENTRIES = int(os.environ.get("CACHE_ENTRIES", "100000"))
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
            "host": "'h' || n % 1000 || '.example'",
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

    def test_memory_is_bounded_in_every_order(self) -> None:
        small = max(run("ls", self.cache, "--key", "nothing").resident, run("ls", self.cache, "--limit", "9").resident)
        for arguments, member in {
            ("--sort", "key"): "key",
            ("--sort", "size"): "bytes",
            ("--sort", "uses", "--reverse"): "uses",
        }.items():
            result = run("ls", self.cache, *arguments)
            values = [entry[member] for entry in result.objects]
            files = {entry["file"] for entry in result.objects}
            self.assertEqual((len(values), len(files)), (ENTRIES, ENTRIES))
            self.assertEqual(values, sorted(values, reverse=member == "bytes"))
            self.assertLess(result.resident - small, 32 << 20, arguments)
        result = run("du", self.cache)
        self.assertLess(result.resident - small, 32 << 20)
        self.assertEqual(result.objects[-1]["images"], ENTRIES)
        hosts = [each for each in result.objects if each["group"] == "host"]
        self.assertEqual(sum(each["images"] for each in hosts), ENTRIES)
        print(f"{ENTRIES} entries: {result.resident >> 20} MB resident, {small >> 20} MB for a few")

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
