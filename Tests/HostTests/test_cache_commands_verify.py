"""`imageworker cache verify` and `rm`."""

from __future__ import annotations

import os
import re
import unittest
from pathlib import Path
from typing import Optional

from cache_commands import PNG, CommandsTest, Result, run
from kills_origin import Picture, body_of
from test_cache_disk import Disk, Worker


class Verifying(CommandsTest):
    URLS = [f"http://a.example/{number}.png" for number in range(6)]

    def path(self, url: str) -> Path:
        [entry] = run("ls", self.cache, "--url", url).objects
        path: str = entry["file"]
        return self.cache / "default" / path

    def damage(self) -> list[tuple[str, Optional[str]]]:
        """Makes every finding; returns them with the URLs."""
        missing, size, digest = map(self.path, self.URLS[:3])
        missing.unlink()
        size.write_bytes(size.read_bytes() + b"x")
        content = bytearray(digest.read_bytes())
        content[-20] ^= 1
        digest.write_bytes(content)
        for name in ("0000000700000011-01234567.png", "0000000700000111.tmp"):
            orphan = self.cache / "default" / "11" / name
            orphan.parent.mkdir(exist_ok=True)
            orphan.write_bytes(b"orphan")
            os.utime(orphan, (0, 0))
        (self.cache / "default" / "11" / "not-of-the-cache").write_bytes(b"")
        findings = [("missing", self.URLS[0]), ("size", self.URLS[1]), ("damaged", self.URLS[2])]
        return [*findings, ("orphan", None), ("orphan", None)]

    def images(self) -> dict[str, bytes]:
        return {path: content for path, content in self.files().items() if re.search("/[0-9a-f]{2}/[^/]*$", path)}

    def found(self, result: Result) -> list[tuple[str, Optional[str]]]:
        return [(each["finding"], each.get("url")) for each in result.objects[:-1]]

    def test_everything_is_found_and_repaired(self) -> None:
        self.store(*self.URLS)
        self.assertEqual(run("verify", self.cache).status, 0)
        findings = self.damage()
        before = self.images()
        result = run("verify", self.cache)
        self.assertEqual((result.status, result.errors), (1, ""))
        self.assertEqual(self.found(result), findings)
        summary = {"images": 6, "bytes": 420, "missing": 1, "damaged": 2, "orphans": 2, "repaired": 0}
        self.assertEqual(result.objects[-1], {"summary": summary})
        self.assertEqual([each["repaired"] for each in result.objects[:-1]], [False] * 5)
        self.assertEqual(self.images(), before)
        text = run("verify", self.cache, "--text").output
        for line in ("missing: ", "damaged (has 71 bytes): ", "damaged (another digest): ", "orphaned temporary file: "):
            self.assertIn(line, text)
        self.assertIn("6 images, 420 (24K on disk): 1 missing, 2 damaged, 2 orphaned files", text)
        repaired = run("verify", self.cache, "--repair")
        self.assertEqual((repaired.status, self.found(repaired)), (1, findings))
        self.assertEqual(repaired.objects[-1], {"summary": {**summary, "repaired": 5}})
        clean = run("verify", self.cache)
        self.assertEqual((clean.status, clean.objects[-1]["summary"]["images"]), (0, 3))
        self.assertEqual(self.listed(), self.URLS[3:])
        self.assertTrue((self.cache / "default" / "11" / "not-of-the-cache").exists())
        self.assertEqual(list((self.cache / "default" / "workers").glob("*[0-9a-f].lock")), [])

    def test_a_filter_selects_what_is_read(self) -> None:
        self.store(*self.URLS)
        self.damage()
        self.assertEqual(self.found(run("verify", self.cache, "--url", self.URLS[1])), [("size", self.URLS[1])])
        self.assertEqual(run("verify", self.cache, "--url", self.URLS[5]).status, 0)

    def test_a_worker_loads_again_what_was_repaired(self) -> None:
        origin = self.origin()
        url = origin.url("kept-0S")
        with Worker(self.cache, "--verify", "never") as worker:
            path = Path(worker.call("load", url=url)["result"]["path"])
            worker.call("clear", key="nothing")  # What was stored before is in the index now.
            path.write_bytes(bytes(path.stat().st_size))
            result = run("verify", self.cache, "--repair")
            self.assertEqual(self.found(result), [("damaged", url)])
            worker.call("clear", url=url, tier="memory")
            loaded = worker.call("load", url=url)["result"]
            self.assertEqual(loaded["cache"], "miss")
            self.assertEqual(Path(loaded["path"]).read_bytes(), body_of(Picture("kept-0S", 1, "-")))
        self.assertEqual(run("verify", self.cache).status, 0)

    def test_a_damaged_index_is_reported_and_not_replaced(self) -> None:
        self.store(*self.URLS)
        index = self.cache / "default" / "index.sqlite"
        content = bytearray(index.read_bytes())
        content[4096:] = b"\xa5" * (len(content) - 4096)
        index.write_bytes(content)
        for name in ("ls", "du", "verify"):
            result = run(name, self.cache)
            self.assertEqual((result.status, result.output), (74, ""))
            self.assertIn("the cache's index: ", result.errors)
        self.assertEqual(index.read_bytes(), content)


class Removing(CommandsTest):
    def test_running_workers_forget_what_is_removed(self) -> None:
        origin = self.origin()
        kept, other = origin.url("kept-0S"), origin.url("kept-1S")
        with Worker(self.cache) as worker:
            for url in (kept, other):
                worker.call("load", url=url)
            self.assertEqual(worker.call("load", url=kept)["result"]["cache"], "memory")
            worker.call("clear", key="nothing")
            result = run("rm", self.cache, "--url", kept, "--host", f"127.0.0.1:{origin.port}")
            self.assertEqual((result.status, result.objects[0]["removed"]), (0, 1))
            self.assertEqual(worker.call("load", url=kept)["result"]["cache"], "miss")
            self.assertEqual(worker.call("load", url=other)["result"]["cache"], "memory")
            self.assertEqual(run("rm", self.cache, "--host", "nobody.example").status, 1)
            self.assertEqual(worker.call("load", url=kept)["result"]["cache"], "memory")

    def test_what_is_removed_is_counted(self) -> None:
        urls = [f"http://h{number % 2}.example/{number}" for number in range(1500)]
        with Worker(self.cache) as worker:
            for url in urls:
                worker.call("store", url=url, data=PNG)
            worker.call("clear", key="nothing")
            result = run("rm", self.cache, "--host", "h0.example", "--text")
            self.assertEqual((result.status, result.output), (0, "removed 750 images, 3.0M on disk\n"))
            self.assertEqual(self.listed(), sorted(urls[1::2]))
            self.assertEqual(worker.call("stats")["result"]["disk"]["entries"], 750)
        self.assertEqual(run("rm", self.cache, "--all").objects, [{"removed": 750, "bytes": 750 * 4096}])
        self.assertEqual(run("rm", self.cache, "--all").objects, [{"removed": 0, "bytes": 0}])

    def test_a_directory_that_cannot_be_written(self) -> None:
        disk = self.exits.enter_context(Disk(self.folder / "disk", "9m"))
        self.cache = disk.path
        self.store(*Verifying.URLS[:2])
        [entry] = run("ls", self.cache, "--url", Verifying.URLS[0]).objects
        (self.cache / "default" / str(entry["file"])).unlink()
        disk.make_read_only()
        result = run("rm", self.cache, "--all")
        self.assertEqual((result.status, result.output), (73, ""))
        self.assertIn("Read-only file system", result.errors)
        self.assertEqual(run("verify", self.cache, "--repair").status, 73)
        found = run("verify", self.cache)
        self.assertEqual((found.status, found.objects[0]["url"]), (1, Verifying.URLS[0]))
        self.assertEqual(self.listed(), Verifying.URLS[:2])


if __name__ == "__main__":
    unittest.main()
