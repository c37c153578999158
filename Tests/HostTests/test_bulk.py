"""examples/bulk against the built worker: lists of every kind, shards, a run that is killed and goes on."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

from origin_process import Origin
from package import ROOT

BULK = ROOT / "examples" / "bulk" / "bulk.py"


class Bulk(unittest.TestCase):
    def setUp(self) -> None:
        exits = contextlib.ExitStack()
        self.addCleanup(exits.close)
        self.folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        self.origin = exits.enter_context(Origin())
        self.out = self.folder / "out"

    def command(self, list_name: str, *options: str) -> list[str]:
        worker = f"--worker-option=--cache-dir={self.folder}/cache"
        return [sys.executable, str(BULK), str(self.folder / list_name), str(self.out), worker, *options]

    def run_bulk(self, list_name: str, *options: str) -> str:
        run = subprocess.run(
            self.command(list_name, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stderr

    def write(self, name: str, *lines: str) -> None:
        (self.folder / name).write_text("".join(f"{line}\n" for line in lines))

    def summaries(self) -> list[dict[str, int]]:
        return [json.loads(path.read_text()) for path in sorted(self.out.glob("?????.json"))]

    def test_a_text_list_becomes_a_folder_of_images_with_a_report_of_failures(self) -> None:
        good = [f"{self.origin.url}/image/{n}.png" for n in range(20)]
        bad = [f"{self.origin.url}/image/99.png?status=404", "not a url"]
        self.write("list.txt", *good, "", *bad)
        self.assertIn("20 loaded, 2 failed", self.run_bulk("list.txt", "--shard-size", "10"))
        images = sorted(self.out.glob("*/*.png"))
        self.assertEqual([path.stem for path in images], [f"{n:09}" for n in range(20)])
        self.assertTrue(all(path.read_bytes().startswith(b"\x89PNG") for path in images))
        facts = json.loads(images[3].with_suffix(".json").read_text())
        self.assertEqual((facts["url"], facts["width"]), (good[3], 32))
        failures = [json.loads(line) for line in (self.out / "00002.failures.jsonl").read_text().splitlines()]
        self.assertEqual({(f["number"], f["url"], f["kind"]) for f in failures}, {(21, bad[0], "http"), (22, bad[1], "invalidParams")})
        self.assertEqual([summary["succeeded"] for summary in self.summaries()], [10, 10, 0])

    def test_a_table_with_captions_becomes_shards_of_webdataset(self) -> None:
        lines = [f'{self.origin.url}/image/{n}.png,"picture {n}, quoted"' for n in range(5)]
        self.write("list.csv", "address,text", *lines)
        self.run_bulk("list.csv", "--format", "webdataset", "--url-column", "address", "--caption-column", "text")
        with tarfile.open(self.out / "00000.tar") as tar:
            names = sorted(tar.getnames())
            self.assertEqual(names, sorted(f"{n:09}.{e}" for n in range(5) for e in ("png", "json", "txt")))
            caption = tar.extractfile("000000002.txt")
            assert caption is not None
            self.assertEqual(caption.read(), b"picture 2, quoted")

    def test_a_column_that_is_not_there_is_named(self) -> None:
        self.write("list.csv", "address", "http://example.com/")
        run = subprocess.run(self.command("list.csv"), stderr=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("no column 'url'; it has address", run.stderr)

    def test_images_that_must_not_be_used_are_left_out(self) -> None:
        url = f"{self.origin.url}/image/1.png"
        headers = ["noai", "nofollow, noimageindex", "otherbot: noindex", "all"]
        self.write("list.txt", *(f"{url}?header=X-Robots-Tag:%20{header.replace(' ', '%20')}" for header in headers))
        self.assertIn("2 loaded, 2 failed", self.run_bulk("list.txt"))
        failures = [json.loads(line) for line in (self.out / "00000.failures.jsonl").read_text().splitlines()]
        self.assertEqual({(f["number"], f["kind"]) for f in failures}, {(0, "robots"), (1, "robots")})
        kept = sorted(path.name for path in (self.out / "00000").iterdir())
        self.assertEqual(kept, [f"{n:09}.{extension}" for n in (2, 3) for extension in ("json", "png")])

    def test_a_run_that_is_killed_goes_on_where_it_was(self) -> None:
        first = [f"{self.origin.url}/image/{n}.png" for n in range(10)]
        held = [f"{self.origin.url}/image/{n}.png?hold=gate" for n in range(10, 20)]
        self.write("list.txt", *first, *held)
        options = ("--shard-size", "10", "--format", "webdataset")
        run = subprocess.Popen(self.command("list.txt", *options), stderr=subprocess.DEVNULL)
        self.origin.command({"do": "await", "gate": "gate", "held": 6})
        while not (self.out / "00000.json").exists() and run.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(0.01)
        run.send_signal(signal.SIGKILL)
        run.wait()
        self.assertFalse((self.out / "00001.tar").exists())
        self.origin.command({"do": "release", "gate": "gate"})
        self.assertIn("10 loaded, 0 failed", self.run_bulk("list.txt", *options))
        self.assertEqual([summary["succeeded"] for summary in self.summaries()], [10, 10])
        self.assertEqual(list(self.out.glob("*.partial")), [])
        with tarfile.open(self.out / "00001.tar") as tar:
            self.assertEqual(len(tar.getnames()), 20)


if __name__ == "__main__":
    unittest.main()
