"""examples/python/imageworker.py against the built worker."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

from origin_process import Origin
from package import ROOT
from processes import Watched

sys.path.insert(0, str(ROOT / "examples" / "python"))

from imageworker import Event, ImageWorker, ImageWorkerError, WorkerExited  # noqa: E402

ABANDONED = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[1])
from imageworker import ImageWorker

async def main():
    worker = ImageWorker(["--cache-dir", sys.argv[2]])
    await worker.start()
    loading = asyncio.ensure_future(worker.load(sys.argv[3], on_event=lambda event: print(worker.pid, flush=True)))
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    os._exit(0)

asyncio.run(main())
"""


class PythonClient(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.exits = contextlib.ExitStack()
        self.addCleanup(self.exits.close)
        self.folder = Path(self.exits.enter_context(tempfile.TemporaryDirectory()))
        self.origin = self.exits.enter_context(Origin())

    def worker(self, *options: str) -> ImageWorker:
        return ImageWorker(["--cache-dir", str(self.folder / "cache"), *options])

    async def command(self, **command: Any) -> dict[str, Any]:
        return await asyncio.get_running_loop().run_in_executor(None, self.origin.command, command)

    async def test_pixels_are_mapped_and_released(self) -> None:
        async with self.worker() as worker:
            url = f"{self.origin.url}/image/1.png?width=30&height=20"
            pixels = (await worker.load(url, deliver="pixels", transform={"width": 15})).pixels
            assert pixels is not None
            self.assertEqual((pixels.width, pixels.height, pixels.stride), (15, 10, 15 * pixels.channels))
            rows = pixels.map()
            before = bytes(rows)
            await worker.release(pixels)
            self.assertFalse(pixels.path.exists())
            self.assertEqual((len(rows), bytes(rows)), (pixels.size, before))

    async def test_a_loaded_image_is_a_file_with_its_size(self) -> None:
        async with self.worker() as worker:
            image = await worker.load(f"{self.origin.url}/image/1.png?bytes=4000")
            self.assertEqual((image.format, image.width, image.height), ("png", 32, 24))
            self.assertEqual((image.cache, image.size), ("miss", 4000))
            assert image.path is not None
            self.assertEqual(len(image.path.read_bytes()), 4000)

    async def test_events_come_to_the_callback_before_the_result(self) -> None:
        events: list[Event] = []
        async with self.worker() as worker:
            await worker.load(f"{self.origin.url}/image/1.png?bytes=100000", on_event=events.append)
            self.assertEqual(events[0].name, "started")
            received = [event.params["received"] for event in events if event.name == "progress"]
            self.assertEqual(received, sorted(set(received)))

    async def test_the_iterator_of_events_ends_with_the_result(self) -> None:
        async with self.worker() as worker:
            url = f"{self.origin.url}/image/1.png"
            events = [event async for event in worker.load_events(url)]
            self.assertEqual((events[0].name, events[-1].name), ("started", "completed"))
            self.assertEqual(events[-1].params["url"], url)

    async def test_leaving_the_iterator_early_cancels_the_load(self) -> None:
        async with self.worker() as worker:
            events = worker.load_events(f"{self.origin.url}/image/1.png?hold=never")
            async for _ in events:
                await self.command(do="await", gate="never", held=1)
                break
            await events.aclose()
            await self.command(do="await", left=1)

    async def test_a_callback_that_raises_does_not_stop_the_reading(self) -> None:
        def fail(event: Event) -> None:
            raise ValueError(event.name)

        complaints: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["message"]))
        async with self.worker() as worker:
            await worker.load(f"{self.origin.url}/image/1.png", on_event=fail)
        self.assertIn("on_event failed for started", complaints)

    async def test_errors_carry_kind_code_retryable_and_data(self) -> None:
        async with self.worker("--retries", "0") as worker:
            with self.assertRaises(ImageWorkerError) as missing:
                await worker.load(f"{self.origin.url}/image/1.png?status=404")
            error = missing.exception
            self.assertEqual((error.kind, error.code, error.retryable), ("http", 2005, False))
            self.assertEqual(error.data["status"], 404)
            with self.assertRaises(ImageWorkerError) as broken:
                await worker.load(f"{self.origin.url}/image/2.png?bytes=5000&truncate=1000")
            self.assertEqual((broken.exception.kind, broken.exception.retryable), ("truncated", True))
            with self.assertRaises(ImageWorkerError) as refused:
                await worker.call("load", {"url": f"{self.origin.url}/image/3.png", "colour": "red"})
            self.assertEqual((refused.exception.kind, refused.exception.data["member"]), ("invalidParams", "colour"))

    async def test_cancelling_the_task_cancels_the_load(self) -> None:
        async with self.worker() as worker:
            task = asyncio.ensure_future(worker.load(f"{self.origin.url}/image/1.png?hold=never"))
            await self.command(do="await", gate="never", held=1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await self.command(do="await", left=1)
            await worker.load(f"{self.origin.url}/image/2.png")

    async def test_a_killed_worker_fails_each_pending_load_once(self) -> None:
        async with self.worker() as worker:
            loads = [worker.load(f"{self.origin.url}/image/{n}.png?hold=never") for n in range(100)]
            pending = [asyncio.ensure_future(load) for load in loads]
            await self.command(do="await", gate="never", held=6)
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            for outcome in await asyncio.gather(*pending, return_exceptions=True):
                self.assertIsInstance(outcome, WorkerExited)
            with self.assertRaises(WorkerExited):
                await worker.load(f"{self.origin.url}/image/1.png")

    async def test_a_bad_option_is_told_in_the_error(self) -> None:
        async with self.worker("--no-such-option") as worker:
            with self.assertRaises(WorkerExited) as refused:
                await worker.load(f"{self.origin.url}/image/1.png")
            self.assertEqual(refused.exception.data["exitStatus"], 64)
            self.assertIn("--no-such-option", str(refused.exception))

    async def test_a_thousand_loads_at_once_with_a_talkative_log(self) -> None:
        async with self.worker("--log-level", "debug", "--max-per-host", "16") as worker:
            urls = [f"{self.origin.url}/image/{n}.png" for n in range(1000)]
            images = await asyncio.gather(*(worker.load(url) for url in urls))
            self.assertEqual([image.url for image in images], urls)

    async def test_an_inline_image_of_megabytes_is_one_line(self) -> None:
        async with self.worker() as worker:
            image = await worker.load(f"{self.origin.url}/image/1.png?bytes=6000000", deliver="data")
            assert image.data is not None
            self.assertEqual(len(image.data), 6_000_000)
            self.assertTrue(image.data.startswith(b"\x89PNG"))

    async def test_requests_longer_than_the_pipe_do_not_dead_lock(self) -> None:
        async with self.worker() as worker:
            result = await worker.prefetch([f"{self.origin.url}/image/1.png"] * 20_000)
            self.assertEqual((result["total"], result["failed"]), (20_000, 0))

    async def test_leaving_the_block_cancels_what_is_pending_and_ends_the_worker(self) -> None:
        async with self.worker() as worker:
            task = asyncio.ensure_future(worker.load(f"{self.origin.url}/image/1.png?hold=never"))
            await self.command(do="await", gate="never", held=1)
            assert worker.pid is not None
            watched = self.exits.enter_context(Watched(worker.pid))
        with self.assertRaises(ImageWorkerError) as cancelled:
            await task
        self.assertEqual(cancelled.exception.kind, "cancelled")
        self.assertTrue(watched.ends())

    async def test_an_exception_in_the_block_ends_the_worker(self) -> None:
        with self.assertRaises(ZeroDivisionError):
            async with self.worker() as worker:
                assert worker.pid is not None
                watched = self.exits.enter_context(Watched(worker.pid))
                raise ZeroDivisionError
        self.assertTrue(watched.ends())

    async def test_a_host_that_ends_without_closing_leaves_no_process(self) -> None:
        for farewell in ("exit", "kill"):
            with self.subTest(farewell=farewell):
                url = f"{self.origin.url}/image/1.png?hold=never&x-{farewell}"
                client = str(ROOT / "examples" / "python")
                arguments = [sys.executable, "-c", ABANDONED, client, str(self.folder / "cache"), url]
                host = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                assert host.stdin is not None and host.stdout is not None
                with Watched(int(host.stdout.readline())) as worker:
                    if farewell == "kill":
                        host.kill()
                    host.stdin.close()
                    host.wait()
                    host.stdout.close()
                    self.assertTrue(worker.ends())


if __name__ == "__main__":
    unittest.main()
