"""Output of examples/bulk to a URL of fsspec, if that is installed. The file system of `file:` is that of the tests."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import tarfile
import unittest
import unittest.mock
from pathlib import Path

from bulk_runs import BulkRuns

import destinations
from lists import Problem


@unittest.skipIf(importlib.util.find_spec("fsspec") is None, "fsspec is not installed")
class Remote(BulkRuns):
    def setUp(self) -> None:
        super().setUp()
        self.remote = self.folder / "bucket" / "set"
        self.out = Path(f"file:/{self.remote}")

    def command(self, list_name: str, *options: str) -> list[str]:
        command = super().command(list_name, f"--staging={self.folder}/staging", *options)
        command[3] = f"file://{self.remote}"
        return command

    def test_shards_are_uploaded_when_they_are_finished(self) -> None:
        for form, more in ("files", ["00000", "00001"]), ("webdataset", ["00000.tar", "00001.tar"]):
            with self.subTest(format=form):
                self.remote = self.folder / form
                urls = [f"{self.origin.url}/image/{n}.png" for n in range(3)]
                self.write("list.txt", *urls)
                options = ("--shard-size", "2", "--format", form)
                self.assertIn("3 loaded, 0 failed", self.run_bulk("list.txt", *options))
                reports = [f"{number:05}.{end}" for number in range(2) for end in ("json", "ledger.jsonl")]
                self.assertEqual(sorted(path.name for path in self.remote.iterdir()), sorted([*reports, *more]))
                self.assertEqual([path.name for path in (self.folder / "staging").iterdir()], [".lock"])
                before = len(self.requests())
                self.assertIn("3 loaded, 0 failed, 0/s, 3 done before", self.run_bulk("list.txt", *options))
                self.assertEqual(len(self.requests()), before)

    def test_a_run_that_is_killed_and_one_that_cannot_upload_go_on_where_they_were(self) -> None:
        self.write("list.txt", f"{self.origin.url}/image/1.png", f"{self.origin.url}/image/2.png?hold=gate")
        options = ("--format", "webdataset")
        run = self.begin("list.txt", *options)
        self.origin.command({"do": "await", "gate": "gate", "held": 1})
        while (self.folder / "staging" / "00000.0.ledger.partial").read_bytes().count(b"\n") < 2:
            self.assertIsNone(run.poll())
        run.send_signal(signal.SIGKILL)
        run.wait()
        self.origin.command({"do": "release", "gate": "gate"})
        (self.remote / "00000.ledger.jsonl").mkdir(parents=True)
        status, words = self.refused("list.txt", *options)
        self.assertEqual((status, "cannot write 00000.ledger.jsonl at file://" in words), (1, True), words)
        (self.remote / "00000.ledger.jsonl").rmdir()
        self.assertIn("2 loaded, 0 failed, 0/s, 2 done before", self.run_bulk("list.txt", *options))
        self.assertEqual(self.requests().count("/image/1.png"), 1)
        with tarfile.open(self.remote / "00000.tar") as tar:
            self.assertEqual(len(tar.getnames()), 4)

    def test_a_run_that_is_killed_after_the_upload_leaves_nothing_in_the_staging_folder(self) -> None:
        self.write("list.txt", f"{self.origin.url}/image/1.png")
        self.run_bulk("list.txt")
        staging = self.folder / "staging"
        for name in ("00000.json", "00000.ledger.jsonl"):
            shutil.copy(self.remote / name, staging)
        shutil.copytree(self.remote / "00000", staging / "00000")
        (staging / "00000.0.ledger.partial").touch()
        self.assertIn("1 loaded, 0 failed, 0/s, 1 done before", self.run_bulk("list.txt"))
        self.assertEqual([path.name for path in staging.iterdir()], [".lock"])

    def test_a_url_that_fsspec_cannot_write_to_is_named(self) -> None:
        self.write("list.txt", f"{self.origin.url}/image/1.png")
        command = self.command("list.txt")
        command[3] = "nothing://bucket"
        with unittest.mock.patch.object(self, "command", lambda *_: command):
            status, words = self.refused("list.txt")
        self.assertEqual((status, words.startswith("bulk.py: fsspec cannot write to nothing://bucket: ")), (1, True), words)


class WithoutFsspec(unittest.TestCase):
    def test_a_url_needs_fsspec(self) -> None:
        words = "the output s3://a/b needs fsspec: pip install fsspec"
        with unittest.mock.patch.dict("sys.modules", fsspec=None), self.assertRaisesRegex(Problem, words):
            destinations.destination("s3://a/b", None)

    def test_a_folder_needs_no_staging_folder(self) -> None:
        with self.assertRaisesRegex(Problem, "--staging is for an output with a URL"):
            destinations.destination("out", Path("staging"))


if __name__ == "__main__":
    unittest.main()
