"""examples/spark: what an executor does, and all of it on a local cluster with two executor processes, if PySpark and Java are here.

    python3 -m venv .build-tests/spark
    .build-tests/spark/bin/python -m pip install 'pyspark[sql]<4' 'pandas<3' 'pyarrow<22' s3fs 'moto[s3,server]'

PySpark 3.5 needs older packages than the other tests. SPARK_URLS and SPARK_KILLS are the numbers of rows and of kills.
"""

from __future__ import annotations

import collections
import contextlib
import importlib.util
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping

from bulk_runs import allow_robots, forbid
from origin_process import PATIENCE, Origin
from package import ROOT
from processes import descendants
from test_bulk_kills import MENU, command_line, is_worker, urls_by_data_loader
from test_bulk_remote import HAS_S3, bucket_server

SPARK = ROOT / "examples" / "spark" / "spark_load.py"
URLS = int(os.environ.get("SPARK_URLS", "10000"))
KILLS = int(os.environ.get("SPARK_KILLS", "3"))
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
    attempts = 4
    """Of a task. A kill of an executor costs one of each of its tasks."""

    def begin(self, program: str, *more: str) -> subprocess.Popen[str]:
        """Starts a program on a cluster of two executors. Its output and that of Spark go to files."""
        settings = {"spark.ui.enabled": "false", "spark.executor.memory": "512m", "spark.task.maxFailures": str(self.attempts)}
        conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        own = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(SPARK.parent)}
        with open(self.folder / "said", "w") as said, open(self.folder / "log", "w") as log:
            command = [*spark_submit(), "--master", "local-cluster[2,1,1024]", *conf, program, *more]
            run = subprocess.Popen(command, cwd=self.folder, env={**os.environ, **own}, stdout=said, stderr=log, text=True)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        return run

    def submit(self, program: str, *more: str, status: int = 0) -> str:
        run = self.begin(program, *more)
        said = ((self.folder / "said").read_text() if run.wait() is not None else "") + (self.folder / "log").read_text()
        plain = "\n".join(line for line in said.splitlines() if " INFO " not in line)
        self.assertEqual(run.returncode, status, plain[:5000])
        return said

    def of_load(self, list_name: str, *more: str) -> list[str]:
        return [str(SPARK), list_name, str(self.out), f"--worker-option={self.cache}", "--partitions", "8", *more]

    def load(self, list_name: str, *more: str, status: int = 0) -> str:
        return self.submit(*self.of_load(list_name, *more), status=status)

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
        undone_rows = json.loads(undone.read_text())["rows"]
        undone.unlink()  # As if the job had been killed before this shard's end.
        before = self.image_requests()
        said = self.load("list.jsonl", "--caption-column", "text", "--shard-size", "300")
        self.assertIn(f"{URLS - 1} loaded, 1 failed, {URLS - undone_rows} done before", said)
        self.assertLessEqual(self.image_requests() - before, 301)
        self.assertIn("other settings", self.load("list.jsonl", "--size", "16", status=1))

    def bad_and_good(self, count: int) -> dict[str, str]:
        """URLs of the origins in turn with their outcomes, written to list.txt."""
        rows = {}
        for n in range(count):
            url, outcome = MENU[n % len(MENU)]
            port = self.origin.ports[n // len(MENU) % len(self.origin.ports)]
            rows[(f"http://127.0.0.1:{port}" if url.startswith("/") else "") + url.format(n)] = outcome
        (self.folder / "list.txt").write_text("".join(f"{url}\n" for url in rows))
        return rows

    def test_a_job_whose_processes_are_killed_has_each_row_once(self) -> None:
        rows = self.bad_and_good(URLS)
        options = ["--worker-option=--retries=0", "--shard-size", "300"]
        self.attempts += KILLS
        victims = itertools.cycle([is_worker, is_executor, None])
        run = self.begin(*self.of_load("list.txt", *options))
        for victim in itertools.islice(victims, KILLS):
            self.await_requests(URLS // (KILLS + 2))
            if victim is None:  # The driver, with all.
                kill_tree(run.pid)
                run.wait()
                run = self.begin(*self.of_load("list.txt", *options))
            else:
                os.kill(next(filter(victim, descendants(run.pid))), signal.SIGKILL)
        self.assertEqual(run.wait(), 0, (self.folder / "log").read_text()[-5000:])
        lines = ledger(self.out)
        self.assertEqual(len(lines), len(rows))
        self.assertEqual({line["url"]: line["outcome"] for line in lines}, rows)
        self.check_samples({path.name: read_ledgers(path) for path in self.out.iterdir()}, lambda name: (self.out / name).read_bytes())
        self.assertEqual(list(self.out.glob("*/*.partial")), [])
        with self.subTest("PyTorch's DataLoader"):
            loaded = [url for url, outcome in rows.items() if outcome == "loaded"]
            self.assertEqual(sorted(urls_by_data_loader(self, self.out.glob("*/*.tar"))), sorted(loaded))

    @unittest.skipUnless(HAS_S3, "not all of s3fs, moto[server] and boto3 are installed")
    def test_a_job_to_a_bucket_that_is_killed_goes_on(self) -> None:
        with bucket_server() as bucket:
            rows = self.bad_and_good(1200)
            self.out = "s3://bucket/set"  # type: ignore[assignment]
            options = ["--worker-option=--retries=0", "--shard-size", "50", f"--staging={self.folder}/staging"]
            run = self.begin(*self.of_load("list.txt", *options))
            while not any(name.endswith(".json") for name in keys_in(bucket)):
                self.assertIsNone(run.poll(), (self.folder / "log").read_text()[-5000:])
            kill_tree(run.pid)
            run.wait()
            finished = sum(name.endswith(".tar") for name in keys_in(bucket))
            said = self.load("list.txt", *options)
            self.assertRegex(said, r"(?m)^\d+ loaded, \d+ failed, [1-9]\d* done before$")
            names = keys_in(bucket)
            self.assertGreater(sum(name.endswith(".tar") for name in names), finished)

            def read(name: str) -> bytes:
                content: bytes = bucket.get_object(Bucket="bucket", Key=f"set/{name}")["Body"].read()
                return content

            ledgers: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
            for name in names:
                if name.endswith(".ledger.jsonl"):
                    ledgers[name.split("/")[1]] += map(json.loads, read(name.partition("/")[2]).splitlines())
            lines = [line for some in ledgers.values() for line in some]
            self.assertEqual((len(lines), {line["url"]: line["outcome"] for line in lines}), (len(rows), rows))
            self.check_samples(ledgers, read)
            left = [path.name for path in (self.folder / "staging").rglob("*") if path.is_file()]
            self.assertEqual(set(left), {".lock"})

    def check_samples(self, ledgers: Mapping[str, list[dict[str, Any]]], read: Callable[[str], bytes]) -> None:
        """Each row that is loaded has one sample, in the tar file and at the place that its line says."""
        for partition, lines in ledgers.items():
            by_tar: dict[str, dict[str, str]] = collections.defaultdict(dict)
            for line in lines:
                if "key" in line:
                    by_tar[line["shard"]][line["key"]] = line["url"]
            for name, expected in by_tar.items():
                found = []
                with tarfile.open(fileobj=io.BytesIO(read(f"{partition}/{name}"))) as tar:
                    for member in tar:
                        file = tar.extractfile(member)
                        if member.name.endswith(".json") and file:
                            found.append((member.name[:-5], json.load(file)["url"]))
                self.assertEqual(sorted(found), sorted(expected.items()), f"{partition}/{name}")

    def await_requests(self, more: int) -> None:
        begun = self.origin.command({"do": "counts"})["requests"]
        for requests in range(min(500, more), more + 1, 500):  # Each wait has a time limit.
            self.origin.command({"do": "await", "requests": begun + requests}, patience=10 * PATIENCE)  # Spark has to start.

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


def read_ledgers(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(folder.glob("*.ledger.jsonl")) for line in path.read_text().splitlines()]


def is_executor(pid: int) -> bool:
    return b"CoarseGrainedExecutorBackend" in command_line(pid)


def kill_tree(pid: int) -> None:
    """Kills the program and all that it has started."""
    for each in [pid, *descendants(pid)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def keys_in(bucket: Any) -> list[str]:
    pages = bucket.get_paginator("list_objects_v2").paginate(Bucket="bucket")
    return [each["Key"] for page in pages for each in page.get("Contents", [])]


def names_in(path: Path) -> Iterator[str]:
    with tarfile.open(path) as tar:
        yield from tar.getnames()


def spark_submit() -> list[str]:
    import pyspark  # type: ignore[import-not-found, unused-ignore]

    return [str(Path(pyspark.__file__).parent / "bin" / "spark-submit")]


if __name__ == "__main__":
    unittest.main()
