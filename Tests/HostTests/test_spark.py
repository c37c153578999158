"""examples/spark: what an executor does, and all of it on a local cluster with two executor processes, if PySpark and Java are here."""

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
import unittest
from pathlib import Path
from typing import Any, Iterator

from bulk_runs import allow_robots
from origin_process import Origin
from package import ROOT

SPARK = ROOT / "examples" / "spark" / "spark_load.py"
URLS = int(os.environ.get("SPARK_URLS", "10000"))
EXAMPLES = SPARK.parents[1]
sys.path[:0] = [str(SPARK.parent), str(EXAMPLES / "python"), str(EXAMPLES / "bulk")]

import partitions  # noqa: E402
import watch  # noqa: E402
from imageworker import ImageWorkerError, find_worker  # noqa: E402


class Partitions(unittest.TestCase):
    """The work of an executor, without Spark."""

    def setUp(self) -> None:
        exits = contextlib.ExitStack()
        self.addCleanup(exits.close)
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        self.origin = exits.enter_context(Origin())
        allow_robots(self.origin)
        exits.callback(partitions.end_worker)
        self.out = folder / "out"
        self.out.mkdir()
        self.settings: dict[str, Any] = {
            "out": str(self.out),
            "options": [f"--cache-dir={folder}/cache"],
            "binary": find_worker(),
            "load": {"store": "none"},
            "robots": "obey",
        }

    def urls(self, count: int) -> list[str]:
        return [f"{self.origin.url}/image/{n}.png" for n in range(count)]

    def load(self, urls: Any) -> dict[str, Any]:
        (report,) = partitions.load_partition(5, urls, self.settings)
        return report

    def samples(self) -> set[str]:
        return {url for url, _ in samples(self.out)}

    def test_of_two_attempts_at_a_time_the_first_to_end_stays(self) -> None:
        urls = self.urls(20)

        def meanwhile() -> Iterator[str]:
            yield urls[0]
            self.load(reversed(urls))
            first.update({path.name: path.stat().st_ino for path in self.out.iterdir()})
            yield from urls[1:]

        first: dict[str, int] = {}
        self.assertEqual(self.load(meanwhile())["succeeded"], 20)
        self.assertEqual({path.name: path.stat().st_ino for path in self.out.iterdir()}, first)
        self.assertEqual(set(first), {".lock", "00005.tar", "00005.failures.jsonl", "00005.json"})
        self.assertEqual(self.samples(), set(urls))

    def test_what_keeps_urls_from_being_tried_fails_the_task_and_the_next_attempt_does_it(self) -> None:
        options = self.settings["options"]
        for name, value in (("options", [*options, "--bogus"]), ("load", {**self.settings["load"], "transform": {"width": 0}})):
            with self.subTest(wrong=name), self.assertRaises(ImageWorkerError):
                list(partitions.load_partition(5, self.urls(3), {**self.settings, name: value}))
            self.assertLessEqual({path.name for path in self.out.iterdir()}, {".lock"})
        self.assertEqual(self.load(self.urls(3))["succeeded"], 3)

    def test_another_list_or_other_settings_do_not_pass_for_done_before(self) -> None:
        self.assertFalse(self.load(self.urls(3))["skipped"])
        again = self.load(reversed(self.urls(3)))
        self.assertEqual((again["skipped"], again["differs"]), (True, False))
        self.assertTrue(self.load(self.urls(4))["differs"])
        self.settings["robots"] = "ignore"
        self.assertTrue(self.load(self.urls(3))["differs"])
        self.assertEqual(self.samples(), set(self.urls(3)))

    def test_names_have_the_extensions_that_bulk_gives(self) -> None:
        self.settings["load"]["transform"] = {"width": 8, "format": "jpeg"}
        self.load(self.urls(1))
        with tarfile.open(self.out / "00005.tar") as tar:
            self.assertEqual(sorted(Path(name).suffix for name in tar.getnames()), [".jpg", ".json"])

    def test_an_image_that_must_not_be_used_is_left_out(self) -> None:
        report = self.load([f"{self.urls(1)[0]}?header=X-Robots-Tag:%20noai"])
        self.assertEqual((report["succeeded"], report["failed"]), (0, 1))
        self.assertEqual(json.loads((self.out / "00005.failures.jsonl").read_text())["kind"], "robots")
        self.assertEqual({kind: of_kind["count"] for kind, of_kind in report["failures"].items()}, {"robots": 1})

    def test_robots_txt_is_obeyed_unless_it_is_ignored(self) -> None:
        rules = "/text?raw=HTTP/1.1%20200%20OK%0D%0AContent-Length:%2025%0D%0A%0D%0AUser-agent:%20*%0ADisallow:%20/"
        self.origin.command({"do": "script", "target": "/robots.txt", "answers": [rules]})
        self.assertEqual(self.load(self.urls(2))["failures"]["robots"]["count"], 2)
        partitions.end_worker()
        (self.out / "00005.json").unlink()
        self.settings["robots"] = "ignore"
        self.assertEqual(self.load(self.urls(2))["succeeded"], 2)

    def test_the_driver_sees_the_kinds_of_failures_of_partitions_that_finish(self) -> None:
        (self.out / "00004.json").write_text(json.dumps({"succeeded": 7, "failed": 0}))
        seen = watch.Watch(self.out, 2)
        self.assertFalse(seen.look(), "what was there before")
        self.load([*self.urls(2), f"{self.urls(1)[0]}?status=404&x-token=secret"])
        self.assertTrue(seen.look())
        self.assertFalse(seen.look())
        self.assertEqual(
            list(seen.lines()),
            ["1 of 2 partitions: 2 loaded, 1 failed", f"  1 http  {self.urls(1)[0]}: the server answered 404"],
        )

    def test_an_origin_has_one_spelling(self) -> None:
        for spellings in (
            ("http://h/x", "http://h:80/x", "HTTP://H./x", "http://me:secret@h:080/"),
            ("https://bücher.example/", "https://xn--bcher-kva.example:443/"),
        ):
            self.assertEqual(len({partitions.origin(url) for url in spellings}), 1, spellings)
        different = ("http://h/", "https://h/", "http://h:81/", "http://h.h/", "http://[::1]/", "http://[bad/")
        self.assertEqual(len({partitions.origin(url) for url in different}), len(different))


@unittest.skipIf(importlib.util.find_spec("pyspark") is None, "there is no pyspark here")
@unittest.skipIf(shutil.which("java") is None, "there is no java here")
class Spark(unittest.TestCase):
    def setUp(self) -> None:
        exits = contextlib.ExitStack()
        self.addCleanup(exits.close)
        self.folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        self.origin = exits.enter_context(Origin("--origins", "20"))
        allow_robots(self.origin)
        self.out = self.folder / "out"

    def submit(self, *more: str, status: int = 0) -> str:
        cluster = ["--master", "local-cluster[2,1,1024]", "--conf", "spark.ui.enabled=false", "--conf", "spark.executor.memory=512m"]
        options = [f"--worker-option=--cache-dir={self.folder}/cache", "--partitions", "8"]
        run = subprocess.run(
            [*spark_submit(), *cluster, str(SPARK), "list.txt", str(self.out), *options, *more],
            cwd=self.folder,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.assertEqual(run.returncode, status, run.stderr[-5000:])
        return run.stdout  # With all that the program says: Spark's own log is what goes to standard error.

    def image_requests(self) -> int:
        return len(self.origin.command({"do": "log", "path": "/image"})["exchanges"])

    def test_what_keeps_all_from_being_loaded_is_said_in_a_line(self) -> None:
        self.assertRegex(self.submit(status=1), r"(?m)^spark_load.py: cannot read the list list.txt: .*list.txt")
        (self.folder / "list.txt").write_text(f"{self.origin.url}/image/1.png\n")
        said = self.submit("--worker-option=--bogus", status=1)
        self.assertRegex(said, r"(?m)^spark_load.py: .*--bogus is not an option")

    def test_ten_thousand_urls_with_two_executors_and_again(self) -> None:
        ports = self.origin.ports
        urls = [f"http://127.0.0.1:{ports[n % len(ports)]}/image/{n}.png" for n in range(URLS - 1)]
        urls.append(f"{self.origin.url}/image/1.png?status=404")
        (self.folder / "list.txt").write_text("".join(f"{url}\n" for url in urls))
        said = self.submit()
        self.assertIn(f"{URLS - 1} loaded, 1 failed, 0 partitions done before", said)
        self.assertIn(f"  1 http  {self.origin.url}/image/1.png: the server answered 404\n          Look at the status.", said)
        tars: dict[str, set[str]] = collections.defaultdict(set)
        loaded = list(samples(self.out))
        self.assertEqual(len(loaded), URLS - 1)
        for url, tar in loaded:
            tars[url.split("/")[2]].add(tar)
        self.assertEqual({len(names) for names in tars.values()}, {1}, "an origin is in one partition")
        failures = [json.loads(line) for path in self.out.glob("*.failures.jsonl") for line in path.read_text().splitlines()]
        self.assertEqual([failure["kind"] for failure in failures], ["http"])
        finished = sorted(self.out.glob("?????.json"))
        self.assertEqual(len(finished), 8)

        undone = next(path for path in finished if json.loads(path.read_text())["failed"] == 0)
        undone.unlink()  # As if the job had been killed before this partition's end.
        before = self.image_requests()
        self.assertIn("0 failed, 7 partitions done before", self.submit())
        again = json.loads(undone.read_text())["succeeded"]
        self.assertEqual(self.image_requests() - before, again)
        self.assertIn("8 partitions in", self.submit("--size", "16", status=1))


def samples(out: Path) -> Iterator[tuple[str, str]]:
    """The URL of each image, and the shard that it is in."""
    for path in out.glob("*.tar"):
        with tarfile.open(path) as tar:
            for member in tar:
                if member.name.endswith(".json"):
                    file = tar.extractfile(member)
                    assert file is not None
                    yield json.load(file)["url"], path.name


def spark_submit() -> list[str]:
    import pyspark  # type: ignore[import-not-found, unused-ignore]

    return [str(Path(pyspark.__file__).parent / "bin" / "spark-submit")]


if __name__ == "__main__":
    unittest.main()
