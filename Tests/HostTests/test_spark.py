"""examples/spark on a local cluster with two executor processes, if PySpark and Java are here."""

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

from origin_process import Origin
from package import ROOT

SPARK = ROOT / "examples" / "spark" / "spark_load.py"
URLS = int(os.environ.get("SPARK_URLS", "10000"))


@unittest.skipIf(importlib.util.find_spec("pyspark") is None, "there is no pyspark here")
@unittest.skipIf(shutil.which("java") is None, "there is no java here")
class Spark(unittest.TestCase):
    def setUp(self) -> None:
        exits = contextlib.ExitStack()
        self.addCleanup(exits.close)
        self.folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        self.origin = exits.enter_context(Origin("--origins", "20"))
        self.out = self.folder / "out"

    def submit(self) -> str:
        cluster = ["--master", "local-cluster[2,1,1024]", "--conf", "spark.ui.enabled=false", "--conf", "spark.executor.memory=512m"]
        options = [f"--worker-option=--cache-dir={self.folder}/cache", "--partitions", "8"]
        run = subprocess.run(
            [*spark_submit(), *cluster, str(SPARK), "list.txt", str(self.out), *options],
            cwd=self.folder,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.assertEqual(run.returncode, 0, run.stderr[-5000:])
        return run.stdout

    def test_ten_thousand_urls_with_two_executors_and_again(self) -> None:
        ports = self.origin.ports
        urls = [f"http://127.0.0.1:{ports[n % len(ports)]}/image/{n}.png" for n in range(URLS - 1)]
        urls.append(f"{self.origin.url}/image/1.png?status=404")
        (self.folder / "list.txt").write_text("".join(f"{url}\n" for url in urls))
        self.assertIn(f"{URLS - 1} loaded, 1 failed, 0 partitions done before", self.submit())
        partitions: dict[str, set[str]] = collections.defaultdict(set)
        samples = 0
        for path in self.out.glob("*.tar"):
            with tarfile.open(path) as tar:
                for member in tar:
                    if member.name.endswith(".json"):
                        file = tar.extractfile(member)
                        assert file is not None
                        partitions[json.load(file)["url"].split("/")[2]].add(path.name)
                        samples += 1
        self.assertEqual(samples, URLS - 1)
        self.assertEqual({len(names) for names in partitions.values()}, {1}, "an origin is in one partition")
        failures = [json.loads(line) for path in self.out.glob("*.failures.jsonl") for line in path.read_text().splitlines()]
        self.assertEqual([failure["kind"] for failure in failures], ["http"])
        finished = sorted(self.out.glob("?????.json"))
        self.assertEqual(len(finished), 8)

        undone = next(path for path in finished if json.loads(path.read_text())["failed"] == 0)
        undone.unlink()  # As if the job had been killed before this partition's end.
        before = self.origin.command({"do": "counts"})["requests"]
        self.assertIn("0 failed, 7 partitions done before", self.submit())
        again = json.loads(undone.read_text())["succeeded"]
        self.assertEqual(self.origin.command({"do": "counts"})["requests"] - before, again)


def spark_submit() -> list[str]:
    import pyspark  # type: ignore[import-not-found, unused-ignore]

    return [str(Path(pyspark.__file__).parent / "bin" / "spark-submit")]


if __name__ == "__main__":
    unittest.main()
