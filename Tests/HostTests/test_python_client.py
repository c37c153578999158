"""examples/python/imageworker.py against the built worker."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import tracemalloc
import unittest
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable, Optional, cast

from origin_process import PATIENCE, Origin
from package import ROOT
from processes import Watched, children

sys.path.insert(0, str(ROOT / "examples" / "python"))

import imageworker  # noqa: E402
from imageworker import (  # noqa: E402
    Answered,
    BlockingImageWorker,
    Cancelled,
    Completed,
    ConnectError,
    Crop,
    DigestMismatch,
    Event,
    Failed,
    FileImage,
    HTTPStatusError,
    Image,
    ImageWorker,
    ImageWorkerError,
    InvalidParams,
    LoadItem,
    LoadParams,
    LoadTimeout,
    NotAnImage,
    NotCached,
    Options,
    PrefetchEvent,
    Progress,
    Started,
    Transform,
    TruncatedError,
    WorkerExited,
    find_worker,
)

ABANDONED = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[1])
from imageworker import ImageWorker

async def main():
    worker = ImageWorker(cache_dir=sys.argv[2])
    await worker.start()
    await worker.load(sys.argv[3], transform={"width": 8})  # So that there are decoders.
    loading = asyncio.ensure_future(worker.load(sys.argv[4], on_event=lambda event: print(worker.pid, flush=True)))
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    if sys.argv[5] == "throw":
        raise RuntimeError("as a host may")
    os._exit(0)

asyncio.run(main())
"""


class PythonClient(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.exits = contextlib.ExitStack()
        self.addCleanup(self.exits.close)
        self.folder = Path(self.exits.enter_context(tempfile.TemporaryDirectory()))
        self.origin = self.exits.enter_context(Origin())

    async def asyncSetUp(self) -> None:
        asyncio.get_running_loop().slow_callback_duration = PATIENCE  # That a machine is busy is no news.

    def worker(self, **settings: Any) -> ImageWorker:
        return ImageWorker(cache_dir=self.folder / "cache", **settings)

    async def command(self, **command: Any) -> dict[str, Any]:
        return await asyncio.get_running_loop().run_in_executor(None, self.origin.command, command)

    async def test_pixels_are_there_until_they_are_released(self) -> None:
        async with self.worker() as worker:
            url = f"{self.origin.url}/image/1.png?width=30&height=20"
            pixels = (await worker.load(url, deliver="pixels", transform={"width": 15})).pixels
            self.assertEqual((pixels.width, pixels.height, pixels.stride), (15, 10, 15 * pixels.channels))
            rows, path, before = pixels.memory, pixels.path, bytes(pixels.memory)
            self.assertEqual(len(rows), 10 * pixels.stride)
            self.assertEqual((await worker.stats()).pixels.regions, 1)
            del pixels  # Collected, it is released, in the next turn of the loop.
            await asyncio.sleep(0)
            self.assertEqual((await worker.stats()).pixels.regions, 0)
            self.assertFalse(path.exists())
            self.assertEqual(bytes(rows), before)

    async def test_an_image_has_all_that_the_result_has(self) -> None:
        url = f"{self.origin.url}/image/1.png?width=30&height=20"
        async with self.worker() as worker:
            image = await worker.load(url, transform={"width": 15, "format": "jpeg"}, placeholder=True, response=True)
            self.assertEqual((image.url, image.key, image.final_url, image.cache), (url, url, None, "miss"))
            self.assertEqual((image.format, image.width, image.height, image.media_type), ("jpeg", 15, 10, "image/jpeg"))
            assert image.source and image.placeholder and image.response and image.timing
            self.assertEqual(image.path.stat().st_size, image.byte_count)
            self.assertEqual((image.source.format, image.source.width), ("png", 30))
            self.assertRegex(image.placeholder.color, "^#[0-9a-f]{6}$")
            self.assertEqual((image.response.status, image.response.headers["content-type"]), (200, "image/png"))
            self.assertEqual(image.timing.total, image.wire["timing"]["totalMs"] / 1000)
            self.assertEqual((image.frames, image.orientation, image.attempts, image.kept), (1, 1, 1, True))

    @unittest.skipIf(importlib.util.find_spec("PIL") is None, "there is no Pillow here")
    async def test_memory_of_released_pixels_is_used_again_unless_somebody_reads_it(self) -> None:
        async with self.worker() as worker:
            urls = [f"{self.origin.url}/image/{number}.png?width=800&height=600" for number in (1, 2)]

            async def load(url: str) -> imageworker.Pixels:
                return (await worker.load(url, deliver="pixels")).pixels

            first, other = await load(urls[0]), await load(urls[1])
            expected = [bytes(first.memory), bytes(other.memory)]
            self.assertNotEqual(*expected)
            first.release()
            other.release()
            with self.assertRaises(ValueError):
                first.memory[0]
            for number in (1, 0, 1, 1):
                pixels = await load(urls[number])
                self.assertIn(pixels.path, (first.path, other.path))
                self.assertEqual(bytes(pixels.memory), expected[number])
                pixels.release()
            held = await load(urls[0])
            memory, part = held.memory, held.memory[100:]
            held.release()
            for _ in range(3):
                pixels = await load(urls[1])
                self.assertNotEqual(pixels.path, held.path)
                pixels.release()
            self.assertEqual((bytes(memory), bytes(part)), (expected[0], expected[0][100:]))
            self.assertEqual(len(os.listdir(held.path.parent)), 2)  # the lock, and the other memory

    async def test_pixels_are_a_picture(self) -> None:
        async with self.worker() as worker:
            image = await worker.load(f"{self.origin.url}/image/1.png?width=30&height=20", deliver="pixels")
            picture = image.pixels.pil()
            self.assertEqual(picture.size, (30, 20))
            self.assertEqual(picture.tobytes(), bytes(image.pixels.memory))

    @unittest.skipIf(importlib.util.find_spec("numpy") is None, "there is no numpy here")
    async def test_pixels_are_an_array_without_a_copy(self) -> None:
        async with self.worker() as worker:
            image = await worker.load(f"{self.origin.url}/image/1.png?width=30&height=20", deliver="pixels")
            array = image.pixels.numpy()
            self.assertEqual(array.shape, (20, 30, image.pixels.channels))
            self.assertEqual(array.tobytes(), bytes(image.pixels.memory))

    async def test_a_loaded_image_is_a_file_with_its_size(self) -> None:
        async with self.worker() as worker:
            image = await worker.load(f"{self.origin.url}/image/1.png?bytes=4000")
            self.assertEqual((image.format, image.width, image.height), ("png", 32, 24))
            self.assertEqual((image.cache, image.byte_count), ("miss", 4000))
            self.assertEqual(len(image.path.read_bytes()), 4000)

    async def test_events_come_to_the_callback_before_the_result(self) -> None:
        events: list[Event] = []
        async with self.worker() as worker:
            await worker.load(f"{self.origin.url}/image/1.png?bytes=100000", on_event=events.append)
            self.assertIsInstance(events[0], Started)
            received = [event.received for event in events if isinstance(event, Progress)]
            self.assertEqual(received, sorted(set(received)))

    async def test_the_iterator_of_events_ends_with_the_result(self) -> None:
        async with self.worker() as worker:
            url = f"{self.origin.url}/image/1.png"
            events = [event async for event in worker.load_events(url)]
            self.assertEqual((events[0].name, events[-1].name), ("started", "completed"))
            assert isinstance(events[-1], Completed)
            self.assertEqual(events[-1].image.url, url)

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
            image = await worker.load(f"{self.origin.url}/image/1.png", on_event=fail)
        self.assertEqual(image.width, 32)
        self.assertIn("on_event failed for started", complaints)

    async def test_errors_carry_kind_code_retryable_and_data(self) -> None:
        async with self.worker(retries=0) as worker:
            with self.assertRaises(ImageWorkerError) as missing:
                await worker.load(f"{self.origin.url}/image/1.png?status=404")
            error = missing.exception
            self.assertEqual((error.kind, error.code, error.retryable), ("http", 2005, False))
            self.assertEqual(error.data["status"], 404)
            assert error.timing and error.timing.total and error.timing.request
            self.assertLessEqual(error.timing.request, error.timing.total)
            with self.assertRaises(ImageWorkerError) as broken:
                await worker.load(f"{self.origin.url}/image/2.png?bytes=5000&truncate=1000")
            self.assertEqual((broken.exception.kind, broken.exception.retryable), ("truncated", True))
            with self.assertRaises(ImageWorkerError) as refused:
                await worker.call("load", {"url": f"{self.origin.url}/image/3.png", "colour": "red"})
            assert isinstance(refused.exception, InvalidParams)
            self.assertEqual((refused.exception.kind, refused.exception.member), ("invalidParams", "colour"))

    async def test_cancelling_the_task_cancels_the_load(self) -> None:
        async with self.worker() as worker:
            task = asyncio.ensure_future(worker.load(f"{self.origin.url}/image/1.png?hold=never"))
            await self.command(do="await", gate="never", held=1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await self.command(do="await", left=1)
            await worker.load(f"{self.origin.url}/image/2.png")

    async def test_none_for_a_keyword_means_that_it_is_not_given(self) -> None:
        async with self.worker(max_per_host=None, headers=None, arguments=None, binary=None, max_restarts=None) as worker:
            crop: Crop = {"x": 0, "y": 0, "width": 8, "height": 8}
            for params in (dict.fromkeys(LoadParams.__annotations__), {"transform": {**dict.fromkeys(Transform.__annotations__), "crop": crop}}):
                await worker.load(f"{self.origin.url}/image/1.png", deliver=None, on_event=None, **cast(Any, params))
            await worker.prefetch([{"url": f"{self.origin.url}/image/1.png", "key": None}], on_event=None, group=None)
            before = await worker.configure()
            self.assertEqual(await worker.configure(timeout=None, rate=None, proxy=None), before)

    async def test_a_wrong_keyword_is_refused_and_the_near_one_is_named(self) -> None:
        url = f"{self.origin.url}/image/1.png"
        async with self.worker() as worker:
            unchecked: Any = worker
            cases: dict[str, Callable[[], Any]] = {
                "unknown keyword saveTo of load (did you mean save_to?)": lambda: unchecked.load(url, saveTo="/x"),
                "unknown keyword timeoutMs of load (did you mean timeout?)": lambda: unchecked.load(url, timeoutMs=5000),
                "unknown keyword deadline_ms of load (did you mean deadline?)": lambda: unchecked.load(url, deadline_ms=None),
                "unknown keyword zzz of load": lambda: unchecked.load(url, zzz=1),
                "unknown member cornerRadius of transform (did you mean corner_radius?)": lambda: unchecked.load(url, transform={"cornerRadius": 3}),
                "unknown member widht of crop (did you mean width?)": lambda: unchecked.load(url, transform={"crop": {"widht": 3}}),
                "transform must be a dict, not 'small'": lambda: unchecked.load(url, transform="small"),
                "timeout must be a number of seconds, not '5s'": lambda: unchecked.load(url, timeout="5s"),
                "timeout must be a finite number of seconds and not negative (given: -1); 0 is no limit": lambda: unchecked.load(url, timeout=-1),
                "unknown keyword goup of prefetch (did you mean group?)": lambda: unchecked.prefetch([url], goup="a"),
                "unknown member headres of urls (did you mean headers?)": lambda: unchecked.prefetch([{"url": url, "headres": {}}]),
                "urls must be an iterable of URLs, not str": lambda: unchecked.prefetch(url),
                "unknown keyword olderThanSeconds of clear (did you mean older_than?)": lambda: unchecked.clear(olderThanSeconds=5),
                "unknown keyword gruop of cancel (did you mean group?)": lambda: unchecked.cancel(gruop="a"),
                "unknown keyword maxPerHost of configure (did you mean max_per_host?)": lambda: unchecked.configure(maxPerHost=5),
            }
            for message, call in cases.items():
                with self.subTest(message), self.assertRaises((TypeError, ValueError)) as refused:
                    await call()
                self.assertEqual(str(refused.exception), message)
            self.assertEqual((await worker.stats()).requests.received, 0)

    def test_arguments_in_place_of_keywords_are_refused_where_they_are_given(self) -> None:
        for kind in (cast(Any, ImageWorker), cast(Any, BlockingImageWorker)):
            for arguments, keywords, message in (
                ((["--max-per-host", "8"],), {}, "takes keywords, such as max_per_host=8"),
                (("--max-per-host 8",), {}, "takes keywords, such as max_per_host=8"),
                ((), {"arguments": "--max-per-host 8"}, "arguments must be a list of flags"),
                ((), {"maxPerHost": 8}, r"unknown keyword maxPerHost of ImageWorker \(did you mean max_per_host\?\)"),
                ((), {"max_restart": 8}, r"unknown keyword max_restart of ImageWorker \(did you mean max_restarts\?\)"),
                ((), {"timeout": "10s"}, "timeout must be a number of seconds"),
                ((), {"headers": ["A: b"]}, "headers must be a dict of header fields"),
            ):
                with self.subTest(kind=kind, arguments=arguments, keywords=keywords), self.assertRaisesRegex(TypeError, message):
                    kind(*arguments, **keywords)

    def test_bytes_among_the_settings_are_refused_where_they_are_given(self) -> None:
        for name, value, message in (
            ("user_agent", b"a test", "user_agent must be a string, not b'a test': decode it"),
            ("cache_dir", b"/tmp/x", "cache_dir must be a string, not b'/tmp/x': decode it"),
            ("read_only_cache", ["/tmp/x", bytearray(b"/y")], r"read_only_cache must be a string, not bytearray\(b'/y'\): decode it"),
            ("headers", {"A": b"b"}, "headers: the value of A must be a string or None, not b'b': decode it"),
            ("headers", {b"A": "b"}, "a name in headers must be a string, not b'A': decode it"),
            ("timeout", b"5", "timeout must be a number of seconds, not b'5'"),
            ("rate", b"5", "rate must be a number of requests per second, not b'5'"),
            ("arguments", b"--retries=1", "arguments must be a list of flags"),
        ):
            with self.subTest(name, value=value), self.assertRaisesRegex(TypeError, message):
                ImageWorker(**cast(Any, {name: value}))

    async def test_values_that_json_does_not_have_are_named_by_their_path(self) -> None:
        url = f"{self.origin.url}/image/1.png"
        circular: dict[str, Any] = {}
        circular["background"] = circular
        deep: Any = math.nan
        for _ in range(150):
            deep = [deep]
        cases: list[tuple[str, str, dict[str, Any]]] = [
            ("url", "url must be a string, not bytes: decode it", {"url": url.encode()}),
            ("url", "url must be a string, not bytearray: decode it", {"url": bytearray(url.encode())}),
            ("url", "url must be a string, not memoryview: decode it", {"url": memoryview(url.encode())}),
            ("key", "key must be a string, not bytes: decode it", {"url": url, "key": b"cat"}),
            ("deliver", "deliver must be a string, not bytes: decode it", {"url": url, "deliver": b"data"}),
            ("headers.Accept", "headers.Accept must be a string, not bytes: decode it", {"url": url, "headers": {"Accept": b"*"}}),
            ("headers", "headers must have names that are strings, not b'A': decode it", {"url": url, "headers": {b"A": "b"}}),
            ("transform.background", "must be a string, not bytes: decode it", {"url": url, "transform": {"background": b"#fff"}}),
            ("facts[1]", "must be a string, not bytes: decode it", {"url": url, "facts": ["exif", b"gps"]}),
            ("transform.crop.y", "must be a finite number, not nan", {"url": url, "transform": {"crop": {"x": 0, "y": math.nan}}}),
            ("want.maxAspectRatio", "must be a finite number, not -inf", {"url": url, "want": {"max_aspect_ratio": -math.inf}}),
            ("facts" + 150 * "[0]", "must be a finite number, not nan", {"url": url, "facts": deep}),
            ("want.formats", "must be a string, a number, a list or a dict, not set: convert it with list..", {"url": url, "want": {"formats": {"png"}}}),
            ("retries", "retries must be a string, a number, a list or a dict, not decimal.Decimal: convert it with int", {"url": url, "retries": Decimal(1)}),
            ("group", "must not contain half a surrogate pair", {"url": url, "group": "caf\udce9"}),
            ("headers.background", "contains itself .a circular reference.", {"url": url, "headers": circular}),
        ]
        async with self.worker() as worker:
            for member, message, params in cases:
                with self.subTest(member, message=message), self.assertRaisesRegex(InvalidParams, message) as refused:
                    await worker.load(**params)
                self.assertEqual(refused.exception.member, member)
                self.assertEqual(refused.exception.url, url if isinstance(params["url"], str) else None)
            wrong: Any = [url, {"url": url, "headers": {"Accept": b"*"}}]
            with self.assertRaises(InvalidParams) as of_item:
                await worker.prefetch(wrong)
            self.assertEqual(of_item.exception.member, "urls[1].headers.Accept")
            with self.assertRaisesRegex(InvalidParams, "key must be a string, not bytes"):
                await worker.query(key=cast(Any, b"cat"))
            with self.assertRaisesRegex(InvalidParams, "url must be a string, not bytes"):
                worker.notify("load", {"url": url.encode()})
            [(_, outcome)] = [each async for each in worker.load_all(cast(Any, [url.encode()]))]
            self.assertIsInstance(outcome, InvalidParams)
            with self.assertRaisesRegex(TypeError, "urls must be an iterable of URLs, not bytearray"):
                await worker.prefetch(cast(Any, bytearray(b"x")))
            with self.assertRaisesRegex(TypeError, "params must be a dict, not b'x'"):
                await worker.call("load", cast(Any, b"x"))
            with self.assertRaisesRegex(InvalidParams, "method must be a string, not bytes"):
                await worker.call(cast(Any, b"stats"))
            with self.assertRaisesRegex(TypeError, "data must be bytes, not str"):
                await worker.store(url=url, data=cast(Any, "abc"))
            with self.assertRaisesRegex(TypeError, "path must be a path, not 5"):
                await worker.store(url=url, path=cast(Any, 5))
            for seconds, error in ((math.nan, ValueError), (math.inf, ValueError), (b"5", TypeError)):
                with self.assertRaisesRegex(error, "older_than must be a"):
                    await worker.clear(older_than=cast(Any, seconds))
            with self.assertRaisesRegex(ValueError, "rate must be a number"):
                await worker.configure(rate=math.nan)
            self.assertEqual((await worker.load(url, headers=MappingProxyType({"Accept": "image/*"}))).width, 32)

    async def test_a_handler_that_cannot_be_called_is_refused_at_once(self) -> None:
        async def unawaited(event: Event) -> None:
            pass

        for name in ("on_event", "on_exit"):
            for kind in (cast(Any, ImageWorker), cast(Any, BlockingImageWorker)):
                for wrong, message in ((5, "a function, not 5"), (0, "a function, not 0"), (unawaited, "a plain function, not a coroutine")):
                    with self.subTest(name, kind=kind), self.assertRaisesRegex(TypeError, f"{name} must be {message}"):
                        kind(**{name: wrong})
        url = f"{self.origin.url}/image/1.png"
        async with self.worker() as worker:
            await worker.load(url)
            for handler in (5, "print", unawaited):  # The image is in the cache: there would be no event.
                wrong_handler = cast(Any, handler)
                with self.assertRaisesRegex(TypeError, "on_event must be a"):
                    await worker.load(url, on_event=wrong_handler)
                with self.assertRaisesRegex(TypeError, "on_event must be a"):
                    await worker.prefetch([url], on_event=wrong_handler)
                with self.assertRaisesRegex(TypeError, "on_event must be a"):
                    await worker.call("load", {"url": url}, on_event=wrong_handler)
            self.assertEqual((await worker.stats()).requests.received, 1)

    async def test_options_are_keywords_in_seconds_and_bytes(self) -> None:
        given: Options = {
            "memory_limit": 1 << 20, "max_age": 3600.5, "max_concurrent": "auto", "max_per_host": 8, "rate": 0.5, "order": "lifo",
            "timeout": 2.5, "connect_timeout": 1, "min_rate": 0, "deadline": 60.0, "retries": 1, "failed_ttl": 0, "max_bytes": 1000,
            "min_free": 0, "verify": "always", "network": "any", "proxy": "", "user_agent": "a test",
            "headers": {"X-Test": "b: c", "X-Empty": "", "Accept": None}, "insecure": True, "key_ignore_query": ["a", "b*"],
            "events": ["started", "preview"], "exit_status": True, "log_level": "error", "log_format": "text",
        }  # fmt: skip
        async with self.worker(**given) as worker:
            self.assertEqual({name: value for name, value in (await worker.configure()).items() if name in given}, given)
        async with self.worker(arguments=["--retries=1", "--retries", "0"]) as worker:
            self.assertEqual((await worker.configure(rate=5))["rate"], 5)
            options = await worker.configure(**given)
            self.assertEqual({name: value for name, value in options.items() if name in given}, given)
            self.assertEqual((await worker.configure(rate=math.inf))["rate"], math.inf)

    async def test_a_new_worker_gets_the_options_that_configure_has_set(self) -> None:
        ends: asyncio.Queue[WorkerExited] = asyncio.Queue()
        async with self.worker(on_exit=ends.put_nowait) as worker:
            await worker.configure(max_per_host=3, timeout=7.5)
            with self.assertRaises(InvalidParams):
                await worker.configure(retries=1000)
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            await ends.get()
            options = await worker.configure()
            self.assertEqual((options["max_per_host"], options["timeout"], options["retries"]), (3, 7.5, 2))

    async def test_the_other_methods_have_typed_results(self) -> None:
        url = f"{self.origin.url}/image/1.png?bytes=4000"
        async with self.worker() as worker:
            await worker.pause()
            self.assertTrue((await worker.stats()).queue.paused)
            held = asyncio.ensure_future(worker.load(url, slot="s", priority="low"))
            await asyncio.sleep(0)  # Now the load has been sent.
            self.assertEqual(await worker.prioritize("high", slot="s"), 1)
            await worker.resume()
            image = await held
            entry = await worker.query(url=url)
            self.assertEqual((entry.disk, entry.byte_count, entry.path), (True, 4000, image.path))
            assert entry.stored_at is not None and entry.stored_at.tzinfo is not None
            self.assertFalse((await worker.query(key="k")).disk)
            self.assertEqual((await worker.store(key="k", data=image.path.read_bytes())).byte_count, 4000)
            self.assertEqual((await worker.store(key="l", path=os.path.relpath(image.path))).byte_count, 4000)
            self.assertEqual((await worker.clear(older_than=3600)).removed, 0)
            self.assertEqual((await worker.clear(key="k")).removed, 1)
            pixels = (await worker.load(url, deliver="pixels")).pixels
            self.assertEqual((await worker.release(path=pixels.path), await worker.release(all=True)), (1, 0))
            self.assertEqual(await worker.cancel(all=True), 0)
            info = await worker.initialize()
            self.assertEqual((info.protocol_version, info.cache.directory), (1, self.folder / "cache"))
            self.assertIsNone(info.formats)
            formats = (await worker.initialize(formats=True)).formats
            assert formats is not None
            self.assertIn("png", formats.decode)

    async def test_each_of_many_loads_comes_with_its_key(self) -> None:
        url = f"{self.origin.url}/image/1.png?width=30&height=20"
        item: LoadItem = {"url": url, "transform": {"width": 15}}
        async with self.worker() as worker:
            outcomes = {key: outcome async for key, outcome in worker.load_all([(1, url), (2, item), (3, url), (4, "ftp:")], at_once=2)}
            self.assertEqual(outcomes.keys(), {1, 2, 3, 4})
            self.assertIsInstance(outcomes.pop(4), InvalidParams)
            self.assertEqual({key: image.width for key, image in outcomes.items() if isinstance(image, FileImage)}, {1: 30, 2: 15, 3: 30})
            urls = [f"{self.origin.url}/image/{n}.png" for n in range(3000)]
            self.assertEqual({url async for url, _ in worker.load_all(iter(urls), deliver="none")}, set(urls))
            with self.assertRaisesRegex(TypeError, "unknown keyword prioriti of load"):
                await worker.load_all(urls, **cast(Any, {"prioriti": "low"})).__anext__()

    async def test_leaving_an_iteration_over_many_loads_cancels_the_rest(self) -> None:
        urls = [f"{self.origin.url}/image/1.png"] + [f"{self.origin.url}/image/{n}.png?hold=never" for n in range(5)]
        async with self.worker() as worker:
            outcomes = worker.load_all(urls)
            self.assertEqual((await outcomes.__anext__())[0], urls[0])
            await self.command(do="await", gate="never", held=5)
            await outcomes.aclose()
            await self.command(do="await", left=5)

    async def test_prefetch_takes_any_iterable_and_tells_of_each_item(self) -> None:
        events: list[PrefetchEvent] = []
        async with self.worker() as worker:
            urls = (f"{self.origin.url}/image/{n}.png" + "?status=404" * (n == 3) for n in range(4))
            result = await worker.prefetch(urls, events=["completed", "failed"], on_event=events.append)
        self.assertEqual((result.total, result.downloaded, result.failed), (4, 3, 1))
        self.assertEqual([(failure.kind, failure.url[-3:]) for failure in result.errors], [("http", "404")])
        self.assertEqual(sorted(event.name for event in events), 3 * ["completed"] + ["failed"])
        (failed,) = (event for event in events if isinstance(event, Failed))
        assert isinstance(failed.error, HTTPStatusError)
        self.assertEqual((failed.error.status, failed.error.url), (404, result.errors[0].url))

    async def test_shutdown_finishes_what_was_accepted(self) -> None:
        async with self.worker() as worker:
            loading = asyncio.ensure_future(worker.load(f"{self.origin.url}/image/1.png?hold=gate"))
            await self.command(do="await", gate="gate", held=1)
            assert worker.pid is not None
            with Watched(worker.pid) as watched:
                ending = asyncio.ensure_future(worker.shutdown())
                await asyncio.sleep(0)
                with self.assertRaisesRegex(RuntimeError, "async with"):
                    await worker.stats()
                await self.command(do="release", gate="gate")
                self.assertEqual((await loading).width, 32)
                await ending
                self.assertTrue(watched.ends())

    def test_the_version_is_the_workers(self) -> None:
        binary = find_worker(os.environ.get("IMAGEWORKER"))
        printed = subprocess.run([binary, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertIn(imageworker.__version__, printed.split())

    async def test_a_killed_worker_fails_each_pending_load_once(self) -> None:
        async with self.worker() as worker:
            loads = [worker.load(f"{self.origin.url}/image/{n}.png?hold=never") for n in range(100)]
            pending = [asyncio.ensure_future(load) for load in loads]
            await self.command(do="await", gate="never", held=6)
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            for number, outcome in enumerate(await asyncio.gather(*pending, return_exceptions=True)):
                assert isinstance(outcome, WorkerExited)
                self.assertEqual(outcome.url, f"{self.origin.url}/image/{number}.png?hold=never")
                self.assertEqual(len(outcome.lost), 100)

    async def test_many_pending_loads_share_the_list_of_lost_urls(self) -> None:
        async with self.worker() as worker:
            urls = [f"{self.origin.url}/image/{number}.png?hold=never" for number in range(5000)]
            pending = [asyncio.ensure_future(worker.load(url)) for url in urls]
            await self.command(do="await", gate="never", held=6)
            assert worker.pid is not None
            tracemalloc.start()
            try:
                os.kill(worker.pid, signal.SIGKILL)
                outcomes = await asyncio.gather(*pending, return_exceptions=True)
                _, most = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            ends = [outcome for outcome in outcomes if isinstance(outcome, WorkerExited)]
            self.assertEqual([end.url for end in ends], urls)
            self.assertEqual(ends[-1].lost, urls)
            self.assertLess(most, 50 << 20)  # A list for each load would take 200 MB.

    async def test_the_next_load_starts_a_dead_worker_again(self) -> None:
        ends: asyncio.Queue[WorkerExited] = asyncio.Queue()
        async with self.worker(on_exit=ends.put_nowait) as worker:
            for number in range(3):
                await worker.load(f"{self.origin.url}/image/{number}.png")
                assert worker.pid is not None
                os.kill(worker.pid, signal.SIGKILL)
                end = await ends.get()
                self.assertEqual((end.exit_status, end.lost), (-signal.SIGKILL, []))
            images = await asyncio.gather(*(worker.load(f"{self.origin.url}/image/{n}.png") for n in range(20)))
            self.assertEqual(len(images), 20)

    async def test_a_worker_that_dies_again_and_again_is_left_dead(self) -> None:
        script = self.folder / "dies"
        script.write_text(f"#!/bin/sh\necho started >> {self.folder}/starts\nexit 1\n")
        script.chmod(0o755)
        async with ImageWorker(binary=script, max_restarts=2, longest_pause=60) as worker:
            for _ in range(5):
                with self.assertRaises(WorkerExited):
                    await worker.load("data:,")
        self.assertEqual((self.folder / "starts").read_text().count("started"), 3)

    async def test_whatever_moment_it_is_killed_at_each_call_ends_once_and_new_ones_work(self) -> None:
        seed = int(os.environ.get("CLIENT_SEED", random.randrange(1 << 32)))
        print(f"CLIENT_SEED={seed}", file=sys.stderr)
        choose = random.Random(seed)
        async with self.worker(retries=0, max_restarts=100, longest_pause=0.1) as worker:
            urls = [f"{self.origin.url}/image/{n}.png?bytes={choose.randrange(1000, 50_000)}" for n in range(1000)]
            loads = [asyncio.ensure_future(worker.load(url)) for url in urls]
            for ended_before_the_next in sorted(choose.sample(range(900), 6)):
                while sum(load.done() for load in loads) < ended_before_the_next:
                    await asyncio.wait([load for load in loads if not load.done()], return_when=asyncio.FIRST_COMPLETED)
                if worker.pid is not None:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(worker.pid, signal.SIGKILL)
                again = [n for n, load in enumerate(loads) if load.done() and load.exception() is not None]
                loads += [asyncio.ensure_future(worker.load(urls[n])) for n in again]
            for outcome in await asyncio.gather(*loads, return_exceptions=True):
                self.assertIsInstance(outcome, (Image, WorkerExited))
            for outcome in await asyncio.gather(*(worker.load(url) for url in urls)):
                self.assertIsInstance(outcome, Image)

    async def test_ten_thousand_loads_at_once(self) -> None:
        async with self.worker() as worker:
            loads = (worker.load(f"{self.origin.url}/image/{n % 50}.png", deliver="none") for n in range(10_000))
            images = await asyncio.gather(*loads)
            self.assertEqual({image.width for image in images}, {32})

    async def test_the_class_of_an_error_is_its_family(self) -> None:
        async with self.worker(retries=0) as worker:
            url = f"{self.origin.url}/image/1.png"
            with self.assertRaises(HTTPStatusError) as refused:
                await worker.load(f"{url}?status=503&header=Retry-After:%207", response=True)
            self.assertEqual((refused.exception.status, refused.exception.retry_after), (503, 7))
            assert refused.exception.response is not None
            self.assertEqual((refused.exception.response.status, refused.exception.response.headers["retry-after"]), (503, "7"))
            with self.assertRaises(NotCached):
                await worker.load(f"{url}?x-n=1", cache="only-if-cached")
            with self.assertRaises(DigestMismatch):
                await worker.load(f"{url}?x-n=2", digest="sha256-" + 64 * "0")
            with self.assertRaises(NotAnImage):
                await worker.load(f"{self.origin.url}/html")
            with self.assertRaises(InvalidParams):
                await worker.load("ftp://example.com/")
            with self.assertRaises(ConnectError):
                await worker.load("http://127.0.0.1:1/")
            with self.assertRaises(TruncatedError):
                await worker.load(f"{url}?bytes=5000&truncate=1000&x-n=3")
            with self.assertRaises(LoadTimeout) as late:
                await worker.load(f"{url}?hold=late", deadline=0.2)
            self.assertEqual((late.exception.phase, late.exception.retryable), ("deadline", False))
            held = asyncio.ensure_future(worker.load(f"{url}?hold=never", group="a"))
            await self.command(do="await", gate="never", held=1)
            self.assertEqual(await worker.cancel(group="a"), 1)
            with self.assertRaises(Cancelled):
                await held

    async def test_a_bad_option_is_told_in_the_error(self) -> None:
        async with self.worker(arguments=["--no-such-option"]) as worker:
            with self.assertRaises(WorkerExited) as refused:
                await worker.load(f"{self.origin.url}/image/1.png")
            self.assertEqual(refused.exception.exit_status, 64)
            self.assertIn("--no-such-option", str(refused.exception))

    async def test_a_warning_in_the_log_has_its_level(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(find_worker(), folder)  # Without its decoders.
            for log_format in ("text", "json"):
                own: Any = {"log_format": log_format, "log_level": "info"}
                with self.assertLogs("imageworker", "INFO") as logs:
                    async with ImageWorker(binary=alone, memory_limit=0, disk_limit=0, **own) as worker:
                        await worker.stats()
                levels = {record.levelname for record in logs.records if "must be an executable file" in record.getMessage()}
                self.assertEqual((levels, {record.levelname for record in logs.records}), ({"WARNING"}, {"WARNING", "INFO"}))

    async def test_a_thousand_loads_at_once_with_a_talkative_log(self) -> None:
        async with self.worker(log_level="debug", max_per_host=16) as worker:
            urls = [f"{self.origin.url}/image/{n}.png" for n in range(1000)]
            images = await asyncio.gather(*(worker.load(url) for url in urls))
            self.assertEqual([image.url for image in images], urls)

    async def test_an_inline_image_of_megabytes_is_one_line(self) -> None:
        async with self.worker() as worker:
            image = await worker.load(f"{self.origin.url}/image/1.png?bytes=6000000", deliver="data")
            self.assertEqual(len(image.data), 6_000_000)
            self.assertTrue(image.data.startswith(b"\x89PNG"))

    async def test_requests_longer_than_the_pipe_do_not_dead_lock(self) -> None:
        async with self.worker() as worker:
            result = await worker.prefetch([f"{self.origin.url}/image/1.png"] * 20_000)
            self.assertEqual((result.total, result.failed), (20_000, 0))

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

    async def test_a_task_that_is_cancelled_again_as_it_leaves_the_block_ends_the_worker(self) -> None:
        for turns in range(5):
            async def serve() -> None:
                async with self.worker() as worker:
                    assert worker.pid is not None
                    started.set_result(worker.pid)
                    await asyncio.sleep(3600)

            started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            task = asyncio.ensure_future(serve())
            watched = self.exits.enter_context(Watched(await started))
            task.cancel()
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            self.assertTrue(watched.ends(), turns)

    async def test_the_host_gets_no_events_of_what_it_did_not_send(self) -> None:
        events: list[Event] = []
        async with self.worker(on_event=events.append) as worker:
            task = asyncio.ensure_future(worker.load(f"{self.origin.url}/image/1.png?hold=never"))
            await self.command(do="await", gate="never", held=1)
            task.cancel()
            image = await worker.load(f"{self.origin.url}/image/2.png", deliver="pixels")
            image.pixels.release()
            worker.notify("stats")
            while not events:
                await asyncio.sleep(0.01)
        (answered,) = events
        assert isinstance(answered, Answered)
        self.assertIn("uptimeMs", answered.result)

    async def test_an_exception_in_the_block_ends_the_worker(self) -> None:
        with self.assertRaises(ZeroDivisionError):
            async with self.worker() as worker:
                assert worker.pid is not None
                watched = self.exits.enter_context(Watched(worker.pid))
                raise ZeroDivisionError
        self.assertTrue(watched.ends())

    async def test_a_host_that_ends_without_closing_leaves_no_process(self) -> None:
        for farewell in ("exit", "throw", "kill"):
            with self.subTest(farewell=farewell), contextlib.ExitStack() as watching:
                url = f"{self.origin.url}/image/1.png?x-how={farewell}"
                client = str(ROOT / "examples" / "python")
                arguments = [sys.executable, "-c", ABANDONED, client, str(self.folder / "cache"), url, f"{url}&hold=never", farewell]
                pipe = subprocess.PIPE
                host = subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
                assert host.stdin is not None and host.stdout is not None
                worker = int(host.stdout.readline())
                family = [watching.enter_context(Watched(pid)) for pid in (worker, *children(worker))]
                self.assertGreater(len(family), 1, "a worker and its decoders")
                if farewell == "kill":
                    host.kill()
                host.stdin.close()
                host.wait()
                host.stdout.close()
                for process in family:
                    self.assertTrue(process.ends())


class BlockingPythonClient(unittest.TestCase):
    def setUp(self) -> None:
        exits = contextlib.ExitStack()
        self.addCleanup(exits.close)
        self.folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        self.origin = exits.enter_context(Origin())
        self.worker = exits.enter_context(BlockingImageWorker(cache_dir=self.folder / "cache"))

    def test_many_threads_share_one_worker(self) -> None:
        images: list[Image] = []

        def load() -> None:
            for number in range(50):
                images.append(self.worker.load(f"{self.origin.url}/image/{number}.png"))

        threads = [threading.Thread(target=load) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(images), 400)
        self.assertEqual({image.width for image in images}, {32})

    def test_each_of_many_loads_comes_with_its_url_as_image_or_error(self) -> None:
        urls = [f"{self.origin.url}/image/{n}.png" + ("?status=404" if n % 10 == 0 else "") for n in range(100)]
        outcomes = dict(self.worker.load_all(iter(urls), at_once=7))
        self.assertEqual(set(outcomes), set(urls))
        for url, outcome in outcomes.items():
            self.assertIsInstance(outcome, HTTPStatusError if "status=404" in url else Image)

    def test_loads_of_one_url_are_told_apart_by_their_keys(self) -> None:
        url = f"{self.origin.url}/image/1.png?width=30&height=20"
        item: LoadItem = {"url": url, "transform": {"width": 15}}
        widths: dict[str, Any] = {}
        for key, outcome in self.worker.load_all([("original", url), ("small", item), ("again", url)]):
            assert isinstance(outcome, FileImage)
            widths[key] = outcome.width
        self.assertEqual(widths, {"original": 30, "small": 15, "again": 30})
        with self.assertRaisesRegex(TypeError, "urls must be an iterable of URLs, not str"):
            next(self.worker.load_all(url))

    def test_shutdown_closes(self) -> None:
        self.worker.prefetch([f"{self.origin.url}/image/1.png"])
        assert self.worker.pid is not None
        with Watched(self.worker.pid) as watched:
            self.worker.shutdown()
            self.assertTrue(watched.ends())
        with self.assertRaisesRegex(RuntimeError, "closed"):
            self.worker.stats()

    def test_loads_that_wait_for_their_server_do_not_keep_the_others_from_being_begun(self) -> None:
        waiting = [f"{self.origin.url}/image/{n}.png?hold=gate" for n in range(1500)]
        with Origin() as other:
            good = f"{other.url}/image/1.png"
            outcomes = self.worker.load_all([*waiting, good], deliver="none")
            self.assertEqual(next(outcomes)[0], good)
            self.origin.command({"do": "release", "gate": "gate"})
            self.assertEqual({type(outcome) for _, outcome in outcomes}, {Image})

    def test_an_iteration_that_is_left_cancels_what_it_began(self) -> None:
        urls = [f"{self.origin.url}/image/1.png"] + [f"{self.origin.url}/image/{n}.png?hold=never" for n in range(5)]
        outcomes = self.worker.load_all(urls)
        next(outcomes)
        self.origin.command({"do": "await", "gate": "never", "held": 5})
        outcomes.close()
        self.origin.command({"do": "await", "left": 5})

    def test_a_forked_child_has_a_worker_of_its_own_and_leaves_the_parents_alone(self) -> None:
        before = self.worker.load(f"{self.origin.url}/image/1.png")
        parents = self.worker.pid
        child = os.fork()
        if child == 0:
            status = 1
            try:
                after = self.worker.load(f"{self.origin.url}/image/1.png")
                status = 0 if after.byte_count == before.byte_count and self.worker.pid != parents else 2
                self.worker.close()
            finally:
                os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(self.worker.load(f"{self.origin.url}/image/2.png").width, 32)
        self.assertEqual(self.worker.pid, parents)

    def test_a_forked_child_that_begins_with_many_threads_has_one_worker(self) -> None:
        self.worker.stats()
        barrier = threading.Barrier(16)
        pids: set[Optional[int]] = set()

        def use() -> None:
            barrier.wait()
            self.worker.stats()
            pids.add(self.worker.pid)

        for _ in range(10):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    sys.setswitchinterval(1e-6)
                    threads = [threading.Thread(target=use) for _ in range(16)]
                    for thread in threads:
                        thread.start()
                    for thread in threads:
                        thread.join()
                    self.worker.close()
                    status = 0 if len(pids) == 1 and not children(os.getpid()) else 2
                finally:
                    os._exit(status)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_what_was_closed_before_a_fork_is_closed_in_the_child(self) -> None:
        self.worker.stats()
        self.worker.close()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                self.worker.stats()
            except RuntimeError as error:
                status = 0 if "closed" in str(error) else 2
            finally:
                os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_a_forked_child_that_lives_on_does_not_keep_the_worker(self) -> None:
        self.worker.load(f"{self.origin.url}/image/1.png")
        assert self.worker.pid is not None
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(reading, 1)  # Until the parent has seen the worker end.
            os._exit(0)
        os.close(reading)
        with Watched(self.worker.pid) as watched:
            self.worker.close()
            self.assertTrue(watched.ends())
        os.close(writing)
        os.waitpid(child, 0)

    def test_a_closed_worker_says_so(self) -> None:
        self.worker.close()
        with self.assertRaisesRegex(RuntimeError, "closed"):
            self.worker.load("data:,")

    def test_a_script_that_just_ends_leaves_no_process(self) -> None:
        script = (
            "import sys; sys.path.insert(0, sys.argv[1]); from imageworker import BlockingImageWorker\n"
            "worker = BlockingImageWorker(cache_dir=sys.argv[2]); worker.stats(); print(worker.pid, flush=True)\n"
            "sys.stdin.readline()"
        )
        arguments = [sys.executable, "-c", script, str(ROOT / "examples" / "python"), str(self.folder / "cache")]
        host = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert host.stdin is not None and host.stdout is not None
        with Watched(int(host.stdout.readline())) as worker:
            _, log = host.communicate("\n")
            self.assertTrue(worker.ends())
        self.assertEqual((host.returncode, log), (0, ""))


if __name__ == "__main__":
    unittest.main()
