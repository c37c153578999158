"""examples/spark: what an executor does, and all of it on a local cluster with two executor processes, if PySpark and Java are here.

    python3 -m venv .build-tests/spark && .build-tests/spark/bin/python -m pip install 'pyspark[sql]<4'

PySpark 3.5 needs an older NumPy than the other tests.
"""

from __future__ import annotations

import collections
import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any, Iterator

from bulk_runs import allow_robots, forbid
from origin_process import Origin
from package import ROOT

SPARK = ROOT / "examples" / "spark" / "spark_load.py"
URLS = int(os.environ.get("SPARK_URLS", "10000"))
sys.path.insert(0, str(SPARK.parent))

import dataframe  # noqa: E402
import partitions  # noqa: E402
from bulk.lists import Problem  # noqa: E402
from imageworker import ImageWorkerError  # noqa: E402


class OnOrigin(unittest.TestCase):
    def setUp(self) -> None:
        exits = contextlib.ExitStack()
        self.addCleanup(exits.close)
        self.folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        self.origin = exits.enter_context(Origin("--origins", "20"))
        allow_robots(self.origin)
        self.out = self.folder / "out"
        self.cache = f"--cache-dir={self.folder}/cache"

    def urls(self, count: int) -> list[str]:
        return [f"{self.origin.url}/image/{n}.png" for n in range(count)]


class Partitions(OnOrigin):
    """The work of an executor, without Spark."""

    def load(self, urls: list[str], *options: str) -> dict[str, Any]:
        lines = (json.dumps({"url": url, "text": f"of {url}"}) for url in urls)
        with contextlib.redirect_stderr(None):
            (figures,) = partitions.load_partition(5, lines, str(self.out), [f"--worker-option={self.cache}", *options])
        return figures

    def test_a_partition_becomes_shards_of_a_size_with_captions_and_a_ledger(self) -> None:
        figures = self.load([*self.urls(5), f"{self.origin.url}/image/9.png?status=404"], "--shard-size=3", "--caption-column=text")
        self.assertEqual((figures["loaded"], figures["failed"], figures["failures"]["http"]["count"]), (5, 1, 1))
        self.assertEqual(sorted(path.name for path in (self.out / "00005").glob("*.tar")), ["00000.tar", "00001.tar"])
        with tarfile.open(self.out / "00005" / "00000.tar") as tar:
            self.assertEqual(len([name for name in tar.getnames() if name.endswith(".txt")]), 3)
        self.assertEqual([line["outcome"] for line in ledger(self.out)], ["loaded"] * 5 + ["http"])

    def test_a_partition_without_images_has_no_tar_file_and_one_without_rows_has_nothing(self) -> None:
        self.assertEqual(self.load([f"{self.urls(1)[0]}?status=404"])["failed"], 1)
        self.assertEqual(list(self.out.glob("*/*.tar")), [])
        self.assertEqual(list(partitions.load_partition(6, [], str(self.out), [])), [])
        self.assertFalse((self.out / "00006").exists())

    def test_of_two_attempts_at_a_time_the_second_waits_and_finds_all_done(self) -> None:
        held = [f"{url}?hold=gate" for url in self.urls(4)]
        figures: list[dict[str, Any]] = []
        attempts = [threading.Thread(target=lambda: figures.append(self.load(held))) for _ in range(2)]
        for attempt in attempts:
            attempt.start()
        self.origin.command({"do": "await", "gate": "gate", "held": 4})
        self.origin.command({"do": "release", "gate": "gate"})
        for attempt in attempts:
            attempt.join()
        self.assertEqual(sorted((each["loaded"], each["before"]) for each in figures), [(4, 0), (4, 4)])

    def test_what_prevents_urls_from_being_tried_fails_the_task_and_the_next_attempt_does_it(self) -> None:
        with self.assertRaises(ImageWorkerError):
            self.load(self.urls(3), "--worker-option=--bogus")
        self.assertEqual(self.load(self.urls(3))["loaded"], 3)

    def test_another_list_or_other_settings_do_not_pass_for_done_before(self) -> None:
        self.assertEqual(self.load(self.urls(3))["before"], 0)
        self.assertEqual(self.load(self.urls(3))["before"], 3)
        for urls, options in ((self.urls(3)[1:], []), (self.urls(3), ["--robots=ignore"])):
            with self.assertRaises(Problem):
                self.load(urls, *options)

    def test_robots_txt_is_obeyed_unless_it_is_ignored(self) -> None:
        forbid(self.origin, "/")
        self.assertEqual(self.load(self.urls(2))["failures"]["robots"]["count"], 2)
        self.out = self.folder / "ignoring"
        self.assertEqual(self.load(self.urls(2), "--robots=ignore")["loaded"], 2)

    def test_an_origin_has_one_spelling(self) -> None:
        for spellings in (
            ("http://h/x", "http://h:80/x", "HTTP://H./x", "http://me:secret@h:080/"),
            ("https://bücher.example/", "https://xn--bcher-kva.example:443/"),
        ):
            self.assertEqual(len({partitions.origin(url) for url in spellings}), 1, spellings)
        different = ("http://h/", "https://h/", "http://h:81/", "http://h.h/", "http://[::1]/", "http://[bad/", None)
        self.assertEqual(len({partitions.origin(url) for url in different}), len(different))


@unittest.skipIf(importlib.util.find_spec("pyarrow") is None, "pyarrow is not installed")
class Batches(OnOrigin):
    """The work of `load_column` on an executor, without Spark."""

    def load(self, urls: list[Any], **settings: Any) -> list[dict[str, Any]]:
        import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]

        def end() -> None:
            while dataframe._workers:
                dataframe._workers.pop().close()

        self.addCleanup(end)
        table = pyarrow.table({"n": range(len(urls)), "url": pyarrow.array(urls, pyarrow.string())})
        params = {"transform": {"width": 16, "format": "jpeg"}}
        loaded = dataframe.load_batches(table.to_batches(50), "url", {"arguments": [self.cache], **settings}, params)
        return sorted((row for batch in loaded for row in batch.to_pylist()), key=lambda row: int(row["n"]))

    def test_each_row_keeps_its_columns_and_gets_an_image_or_an_error(self) -> None:
        urls = [*self.urls(120), f"{self.urls(1)[0]}?status=404", "no url", None]
        rows = self.load(urls)
        self.assertEqual([row["url"] for row in rows], urls)
        self.assertEqual({(row["width"], row["height"], row["format"], row["error"]) for row in rows[:120]}, {(16, 12, "jpeg", None)})
        self.assertTrue(all(row["image"].startswith(b"\xff\xd8") for row in rows[:120]))
        self.assertEqual([(row["image"], row["error"]) for row in rows[120:]], [(None, "http"), (None, "invalidParams"), (None, "invalidParams")])

    def test_what_prevents_urls_from_being_tried_fails_the_task_and_the_next_attempt_has_another_worker(self) -> None:
        with self.assertRaises(ImageWorkerError):
            self.load(self.urls(3), arguments=["--bogus"])
        self.assertEqual([row["error"] for row in self.load(self.urls(3))], [None] * 3)


@unittest.skipIf(importlib.util.find_spec("pyspark") is None, "there is no pyspark here")
@unittest.skipIf(shutil.which("java") is None, "there is no java here")
class Spark(OnOrigin):
    def submit(self, program: str, *more: str, status: int = 0) -> str:
        cluster = ["--master", "local-cluster[2,1,1024]", "--conf", "spark.ui.enabled=false", "--conf", "spark.executor.memory=512m"]
        run = subprocess.run(
            [*spark_submit(), *cluster, program, *more],
            cwd=self.folder,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(SPARK.parent)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.assertEqual(run.returncode, status, run.stderr[-5000:])
        return run.stdout + run.stderr

    def load(self, list_name: str, *more: str, status: int = 0) -> str:
        options = [f"--worker-option={self.cache}", "--partitions", "8", *more]
        return self.submit(str(SPARK), list_name, str(self.out), *options, status=status)

    def image_requests(self) -> int:
        return len(self.origin.command({"do": "log", "path": "/image"})["exchanges"])

    def test_what_keeps_all_from_being_loaded_is_said_in_a_line(self) -> None:
        self.assertRegex(self.load("list.txt", status=1), r"(?m)^spark_load.py: cannot read the list list.txt: .*list.txt")
        (self.folder / "list.txt").write_text(f"{self.origin.url}/image/1.png\n")
        said = self.load("list.txt", "--worker-option=--bogus", status=1)
        self.assertRegex(said, r"(?m)^spark_load.py: .*--bogus is not an option")

    def test_ten_thousand_urls_with_two_executors_and_again(self) -> None:
        ports = self.origin.ports
        urls = [f"http://127.0.0.1:{ports[n % len(ports)]}/image/{n}.png" for n in range(URLS - 1)]
        urls.append(f"{self.origin.url}/image/1.png?status=404")
        (self.folder / "list.jsonl").write_text("".join(json.dumps({"url": url, "text": f"of {url}"}) + "\n" for url in urls))
        said = self.load("list.jsonl", "--caption-column", "text", "--shard-size", "300")
        self.assertIn(f"{URLS - 1} loaded, 1 failed, 0 done before", said)
        self.assertIn(f"  1 http  {self.origin.url}/image/1.png: the server answered 404\n          Look at the status.", said)
        lines = ledger(self.out)
        self.assertEqual(sorted(line["url"] for line in lines), sorted(urls))
        self.assertEqual(collections.Counter(line["outcome"] for line in lines), {"loaded": URLS - 1, "http": 1})
        folders: dict[str, set[str]] = collections.defaultdict(set)
        for path in self.out.glob("*/*.ledger.jsonl"):
            for line in path.read_text().splitlines():
                folders[json.loads(line)["url"].split("/")[2]].add(path.parent.name)
        self.assertEqual({len(names) for names in folders.values()}, {1}, "an origin is in one partition")
        members = [name for path in self.out.glob("*/*.tar") for name in names_in(path)]
        self.assertEqual(collections.Counter(name.partition(".")[2] for name in members), dict.fromkeys(("png", "json", "txt"), URLS - 1))

        undone = min(self.out.glob("*/00000.json"))
        undone.unlink()  # As if the job had been killed before this shard's end.
        before = self.image_requests()
        said = self.load("list.jsonl", "--caption-column", "text", "--shard-size", "300")
        self.assertIn(f"{URLS - 1} loaded, 1 failed, {URLS - 300} done before", said)
        self.assertLessEqual(self.image_requests() - before, 301)
        self.assertIn("other settings", self.load("list.jsonl", "--size", "16", status=1))

    @unittest.skipUnless(all(map(importlib.util.find_spec, ("pandas", "pyarrow"))), "not all of pandas and pyarrow are installed: pyspark[sql]")
    def test_a_column_of_urls_becomes_columns_of_images(self) -> None:
        program = self.folder / "program.py"
        program.write_text(
            "from pyspark.sql import SparkSession\n"
            "from dataframe import by_origin, load_column\n"
            "spark = SparkSession.builder.getOrCreate()\n"
            f"urls = {[*self.urls(40), 'no url']!r}\n"
            "table = spark.createDataFrame([(n, url) for n, url in enumerate(urls)], 'n int, url string')\n"
            f"images = load_column(by_origin(table, 'url', 4), 'url', {{'arguments': [{self.cache!r}]}})\n"
            "images.write.parquet('images')\n"
            "rows = spark.read.parquet('images').orderBy('n').collect()\n"
            "print([(row.n, row.width, row.height, row.format, row.error, len(row.image or b'') > 0) for row in rows])\n"
        )
        said = self.submit(str(program))
        expected = [*((n, 32, 24, "png", None, True) for n in range(40)), (40, None, None, None, "invalidParams", False)]
        self.assertIn(str(expected), said)


def ledger(out: Path) -> list[dict[str, Any]]:
    """The lines of all shards of all partitions."""
    return [json.loads(line) for path in sorted(out.glob("*/*.ledger.jsonl")) for line in path.read_text().splitlines()]


def names_in(path: Path) -> Iterator[str]:
    with tarfile.open(path) as tar:
        yield from tar.getnames()


def spark_submit() -> list[str]:
    import pyspark  # type: ignore[import-not-found, unused-ignore]

    return [str(Path(pyspark.__file__).parent / "bin" / "spark-submit")]


if __name__ == "__main__":
    unittest.main()
