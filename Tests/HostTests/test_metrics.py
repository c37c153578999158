"""The metrics of the built worker: their figures, and the forms in which they come."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path
from typing import Any, cast

from chaos_session import default_worker
from metrics_text import Metrics, run_worker
from origin_process import Origin
from package import ROOT

sys.path.insert(0, str(ROOT / "examples" / "python"))

from imageworker import BlockingImageWorker, ImageWorker, ImageWorkerError, LoadParams  # noqa: E402


class Figures(unittest.TestCase):
    """The figures after a known set of requests."""

    def test_the_figures_are_exactly_those_of_the_requests(self) -> None:
        async def run() -> tuple[Metrics, dict[str, Any]]:
            async with ImageWorker(binary=default_worker(), cache_dir=folder, retries=1) as worker:
                await self.use(worker, origin)
                return Metrics((await worker.metrics()).text), await worker.call("stats")

        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, Origin() as origin:
            self.check(*asyncio.run(run()), origin)

    async def use(self, worker: ImageWorker, origin: Origin) -> None:
        self.results: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.saved = 0
        self.requests: Counter[str] = Counter()

        def url(number: int, more: str = "cache-control=max-age%3D600") -> str:
            return f"{origin.url}/image/{number}.png?bytes=1000&{more}"

        async def load(url: str, **params: Any) -> None:
            try:
                image = await worker.load(url, **cast(LoadParams, params))
            except ImageWorkerError as error:
                self.kinds[error.kind] += 1
                self.requests["cancelled" if error.kind == "cancelled" else "failed"] += 1
            else:
                self.results[image.cache] += 1
                self.requests["succeeded"] += 1
                self.saved += 0 if image.cache == "miss" else image.byte_count

        for _ in range(3):
            await load(url(1))
        for _ in range(2):
            await load(url(2), store="disk")
        for _ in range(2):
            await load(url(3, "cache-control=no-cache&etag=v1"))
        for _ in range(2):
            await load(f"{origin.url}/empty?status=404")
        await load(url(4, "fail=1&truncate=500"))
        for width in (8, 9):
            await load(url(1), transform={"width": width})
        await load(url(5), cache="only-if-cached")
        # A paused worker starts no transfer: the load is surely cancelled before.
        await worker.pause()
        waiting = asyncio.create_task(load(url(6)))
        while (await worker.stats()).requests.received <= sum(self.requests.values()):
            await asyncio.sleep(0)
        self.assertEqual(await worker.cancel(all=True), 1)
        await waiting
        await worker.resume()
        urls = [url(1), url(7), url(8), f"{origin.url}/empty?status=404&_other", "no URL"]
        result = await worker.prefetch(urls)
        self.assertEqual((result.downloaded, result.cached, result.failed), (2, 1, 2))
        self.requests["succeeded"] += 1
        self.results.update(miss=2, memory=1)
        self.kinds.update(http=1, invalidParams=1)
        self.saved += 1000

    def check(self, metrics: Metrics, stats: dict[str, Any], origin: Origin) -> None:
        self.assertEqual(set(self.results), {"miss", "memory", "disk", "revalidated"})
        self.assertEqual(set(self.kinds), {"http", "recentlyFailed", "notCached", "cancelled", "invalidParams"})
        cancelled = self.kinds.pop("cancelled")
        failed = sum(self.kinds.values())
        ends = {**self.results, "failed": failed, "cancelled": cancelled}
        self.assertEqual(metrics.by("result", "imageworker_load_duration_seconds_count"), ends)
        self.assertEqual(metrics.by("kind", "imageworker_load_failures_total"), self.kinds)
        self.assertEqual(metrics.by("outcome", "imageworker_requests_answered_total"), self.requests)
        self.assertEqual(metrics["imageworker_requests_received_total"], sum(self.requests.values()))
        self.assertEqual(metrics["imageworker_saved_bytes_total"], self.saved)

        log = origin.command({"do": "log", "path": "/"})["exchanges"]
        whole = sum(exchange["status"] == 200 and exchange["ended"] == "complete" for exchange in log)
        self.assertEqual(whole, 6)
        ended = {"succeeded": whole + 1, "failed": len(log) - whole - 1}
        self.assertEqual(metrics["imageworker_transfers_started_total"], len(log))
        self.assertEqual(metrics.by("outcome", "imageworker_transfers_ended_total"), ended)
        self.assertEqual(metrics.by("outcome", "imageworker_origin_transfers_ended_total"), ended)
        self.assertEqual(metrics.by("origin", "imageworker_origin_transfers_ended_total"), {origin.url: len(log)})
        received = 1000 * whole + 500
        self.assertEqual(metrics.by("origin", "imageworker_origin_received_bytes_total"), {origin.url: received})
        self.assertEqual(metrics["imageworker_received_bytes_total"], received)
        self.assertEqual(metrics["imageworker_transfer_retries_total"], 1)
        self.assertEqual(metrics.by("outcome", "imageworker_decodes_ended_total"), {"succeeded": 2})
        self.assertEqual(metrics["imageworker_decoder_processes"], stats["decoders"]["running"])

        phases = metrics.by("phase", "imageworker_load_phase_duration_seconds_count")
        self.assertEqual(phases["decode"], 2)
        # The loads that ended with a response of a server, or without one because of it.
        self.assertEqual(phases["request"], self.results["miss"] + self.results["revalidated"] + self.kinds["http"])
        self.assertAlmostEqual(
            metrics["imageworker_load_phase_duration_seconds_sum"], metrics["imageworker_load_duration_seconds_sum"], 9
        )

        for tier in ("memory", "disk"):
            for figure, name in (("entries", "entries"), ("bytes", "bytes"), ("limit", "limit_bytes")):
                self.assertEqual(metrics[f"imageworker_{tier}_tier_{name}"], stats[tier][figure], (tier, figure))
            self.assertEqual(metrics[f"imageworker_{tier}_tier_evictions_total"], stats[tier]["evicted"])
        self.assertEqual(metrics["imageworker_transfer_window"], stats["queue"]["window"])
        for name in ("queue_waiting_loads", "active_transfers", "paused", "decodes_waiting", "pixel_regions"):
            self.assertEqual(metrics[f"imageworker_{name}"], 0, name)
        self.assertEqual(metrics["imageworker_running"], 1)
        self.assertEqual(metrics["imageworker_build_info"], 1)


class Origins(unittest.TestCase):
    def test_twenty_servers_have_figures_of_their_own_and_the_answer_fits_into_a_line(self) -> None:
        short = [f"http://{number:02}.{'a' * 63}.{'b' * 25}.test" for number in range(25)]
        long = f"http://{'c' * 50}.{'d' * 50}.test"
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, Origin() as proxy:
            # Each is a server to the worker, which asks the proxy for all of them.
            with BlockingImageWorker(binary=default_worker(), cache_dir=folder, proxy=proxy.url) as worker:
                for url in (long, *short, *short[:3]):
                    worker.load(f"{url}/image/1.png?bytes=1000", cache="reload")
                answer = worker.call("metrics")
        metrics = Metrics(answer["text"])
        counts = {origin: 2.0 if origin in short[:3] else 1.0 for origin in short[:20]}
        self.assertEqual(metrics.by("origin", "imageworker_origin_transfers_ended_total"), {**counts, "other": 6.0})
        # Each of the figures may grow by twelve digits.
        self.assertLess(len(json.dumps(answer)) + 12 * len(metrics.samples), 60 * 1024)


class Forms(unittest.TestCase):
    """The two forms are valid, and the file is one."""

    file: Path
    first: str
    text: str
    content_type: str

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        cls.addClassCleanup(folder.cleanup)
        # A name that must be escaped.
        cls.file = Path(folder.name) / 'image"worker\\1.prom'
        with Origin() as origin:
            with BlockingImageWorker(binary=default_worker(), cache_dir=folder.name, metrics_file=cls.file) as worker:
                worker.load(f"{origin.url}/image/1.png")
                answer = worker.metrics()
                cls.first = cls.file.read_text()
        cls.text, cls.content_type = answer.text, answer.content_type

    def test_promtool_finds_nothing_in_the_file(self) -> None:
        if shutil.which("promtool") is None:
            self.skipTest("there is no promtool here")
        checked = subprocess.run(
            ["promtool", "check", "metrics"], input=self.file.read_text(), capture_output=True, text=True
        )
        self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, "", ""))

    def test_the_answer_is_open_metrics(self) -> None:
        try:
            parser = importlib.import_module("prometheus_client.openmetrics.parser")
        except ModuleNotFoundError:
            self.skipTest("there is no prometheus_client here")
        self.assertEqual(self.content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8")
        families = {family.name: family for family in parser.text_string_to_metric_families(self.text)}
        self.assertEqual({name: family.type for name, family in families.items()}, Metrics(self.text).types)
        samples = {(sample.name, frozenset(sample.labels.items())): sample.value
                   for family in families.values() for sample in family.samples}  # fmt: skip
        self.assertEqual(samples, Metrics(self.text).samples)

    def test_the_file_has_the_metrics_of_the_answer_and_a_label_for_the_worker(self) -> None:
        file = Metrics(self.file.read_text())
        self.assertEqual(file.names, Metrics(self.text).names)
        self.assertEqual(file["imageworker_load_duration_seconds_count"], 1)
        workers = {dict(labels).get("worker") for _, labels in file.samples}
        self.assertEqual(workers, {r"image\"worker\\1"})

    def test_the_file_is_readable_by_all_and_the_last_one_says_that_the_worker_has_ended(self) -> None:
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o644)
        self.assertEqual(Metrics(self.file.read_text())["imageworker_running"], 0)
        # The first file may have no figures yet.
        self.assertEqual(Metrics(self.first)["imageworker_build_info"], 1)
        self.assertEqual([path.name for path in self.file.parent.glob("*") if path.suffix == ".tmp"], [])


class File(unittest.TestCase):
    """Faults of the file."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_a_path_that_cannot_be_written_is_refused_at_the_start(self) -> None:
        self.folder.joinpath("file").touch()
        for name in ("missing/a.prom", "file/a.prom", ".", "a/"):
            run = run_worker("--cache-dir", str(self.folder / "cache"), "--metrics-file", f"{self.folder}/{name}")
            self.assertEqual((run.returncode, run.stdout, run.stderr.count("\n")), (73, "", 1), run.stderr)
            self.assertIn("the metrics file cannot be written", run.stderr)
            self.assertIn(str(self.folder), run.stderr)
        run = run_worker("--metrics-file", "")
        self.assertEqual((run.returncode, run.stderr), (64, 'imageworker: --metrics-file must not be empty (given: "")\n'))

    def test_a_file_that_can_no_longer_be_written_costs_one_warning_and_no_load(self) -> None:
        metrics = self.folder / "metrics"
        metrics.mkdir()
        command = [default_worker(), "--cache-dir", str(self.folder / "cache"), "--metrics-file", str(metrics / "a.prom")]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as worker:
            assert worker.stdin and worker.stdout and worker.stderr
            worker.stdin.write('{"id": 1, "method": "metrics"}\n')
            worker.stdin.flush()
            self.assertIn("result", json.loads(worker.stdout.readline()))
            shutil.rmtree(metrics)
            _, errors = worker.communicate('{"id": 2, "method": "load", "params": {"url": "data:,"}}\n')
        self.assertEqual((worker.returncode, errors.count("\n")), (0, 1), errors)
        self.assertRegex(errors, "warning: the metrics file cannot be written, and is tried again every 10 s: .*a.prom")

    def test_a_relative_path_and_no_cache_on_disk(self) -> None:
        run = subprocess.run(
            [default_worker(), "--disk-limit", "0", "--resolver", "system", "--metrics-file", "a.prom"],
            cwd=self.folder, env={**os.environ, "XDG_CACHE_HOME": str(self.folder)},
            input="", capture_output=True, text=True,
        )  # fmt: skip
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        metrics = Metrics((self.folder / "a.prom").read_text())
        self.assertEqual(metrics["imageworker_disk_tier_limit_bytes"], 0)
        self.assertEqual([name for name in metrics.names if "resolver" in name], [])


if __name__ == "__main__":
    unittest.main()
