"""Output of examples/bulk to a URL of fsspec, if that is installed. The file system of `file:` is that of the tests."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import shutil
import signal
import tarfile
import unittest
import unittest.mock
from pathlib import Path
from typing import Any, Iterator

from bulk_runs import BulkRuns

from bulk import destinations
from bulk.lists import Problem


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
        self.assertEqual((status, words.startswith("bulk: fsspec cannot use nothing://bucket: ")), (1, True), words)


HAS_S3 = all(map(importlib.util.find_spec, ("s3fs", "moto", "boto3")))


@contextlib.contextmanager
def bucket_server() -> Iterator[Any]:
    """A server with the bucket `bucket` on this machine, which the environment names. Yields a client."""
    import boto3  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from moto.server import ThreadedMotoServer  # type: ignore[import-not-found, import-untyped, unused-ignore]

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1"}
        with unittest.mock.patch.dict(os.environ, {**keys, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}):
            client = boto3.client("s3")
            client.create_bucket(Bucket="bucket")
            yield client
    finally:
        server.stop()


@unittest.skipUnless(HAS_S3, "not all of s3fs, moto[server] and boto3 are installed")
class S3(BulkRuns):
    """A bucket of a server on this machine."""

    def setUp(self) -> None:
        super().setUp()
        exits = contextlib.ExitStack()
        self.addCleanup(exits.close)
        self.bucket = exits.enter_context(bucket_server())

    def keys(self) -> list[str]:
        return sorted(each["Key"] for each in self.bucket.list_objects_v2(Bucket="bucket")["Contents"])

    def test_a_list_and_an_output_may_be_in_a_bucket(self) -> None:
        lines = "url\n" + "".join(f"{self.origin.url}/image/{n}.png\n" for n in range(3))
        self.bucket.put_object(Bucket="bucket", Key="lists/part-0.csv", Body=lines.encode())
        self.out = "s3://bucket/set"  # type: ignore[assignment]
        options = ("--format", "webdataset", f"--staging={self.folder}/staging")
        for before in ("", ", 3 done before"):
            self.assertRegex(self.run_bulk("s3://bucket/lists/*.csv", *options), rf"(?m)^3 loaded, 0 failed, \d+/s{before}$")
        self.assertEqual(self.keys(), ["lists/part-0.csv", *(f"set/00000.{end}" for end in ("json", "ledger.jsonl", "tar"))])
        self.assertEqual(len(self.requests()), 3)


class WithoutFsspec(unittest.TestCase):
    def test_a_url_needs_fsspec(self) -> None:
        words = "s3://a/b needs fsspec: pip install fsspec"
        with unittest.mock.patch.dict("sys.modules", fsspec=None), self.assertRaisesRegex(Problem, words):
            destinations.Destination("s3://a/b", None)

    def test_a_folder_needs_no_staging_folder(self) -> None:
        with self.assertRaisesRegex(Problem, "--staging is for an output with a URL"):
            destinations.Destination("out", Path("staging"))


if __name__ == "__main__":
    unittest.main()
