"""examples/python/imageworker.py where something goes wrong: on the host's side, in the worker, or between them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import copy
import errno
import importlib.util
import io
import itertools
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Callable, Iterator, cast
from unittest import mock

from origin_process import PATIENCE, Origin
from package import ROOT
from processes import Watched, children

sys.path.insert(0, str(ROOT / "examples" / "python"))

import imageworker  # noqa: E402
from imageworker import (  # noqa: E402
    BlockingImageWorker,
    Cancelled,
    Completed,
    Event,
    FileImage,
    HTTPStatusError,
    Image,
    ImageWorker,
    ImageWorkerError,
    InternalError,
    InvalidParams,
    LoadEvent,
    LoadTimeout,
    ProtocolMismatch,
    RequestError,
    WorkerExited,
)

ANSWER = '{"id":%s,"result":{"key":"k","cache":"miss","bytes":3,"mediaType":"image/png"}}'
DOT = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
"""A PNG of one pixel."""
LARGE = "/image/1.png?width=1000&height=600"
"""More pixels than are copied."""


class Fixture(unittest.TestCase):
    def setUp(self) -> None:
        self.exits = contextlib.ExitStack()
        self.addCleanup(self.exits.close)
        self.folder = Path(self.exits.enter_context(tempfile.TemporaryDirectory()))

    def with_origin(self) -> Origin:
        return self.exits.enter_context(Origin())

    def options(self, **more: Any) -> dict[str, Any]:
        return {"cache_dir": self.folder / "cache", **more}

    def fake(self, script: str, introduction: str = "read initialize") -> Path:
        """A worker that is a shell script. It runs in `self.folder`. The first line that it reads is `initialize`."""
        path = self.folder / "fake"
        path.write_text(f"#!/bin/sh\ncd {self.folder}\n{introduction}\n{script}\n")
        path.chmod(0o755)
        return path


class AsyncFixture(Fixture, unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        asyncio.get_running_loop().slow_callback_duration = PATIENCE

    async def command(self, origin: Origin, **command: Any) -> dict[str, Any]:
        return await asyncio.get_running_loop().run_in_executor(None, origin.command, command)


class ForkedChild:
    """One that does nothing until the block is left."""

    def __enter__(self) -> ForkedChild:
        self._ours, its = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            self._ours.close()
            its.send(b"1")
            its.recv(1)
            os._exit(0)
        its.close()
        self._ours.recv(1)  # By now, what is done after a fork has been done.
        return self

    def __exit__(self, *_: object) -> None:
        self._ours.close()
        os.waitpid(self.pid, 0)

    def shares_pipes_with(self, worker: int) -> bool:
        pipes = {os.readlink(f"/proc/{worker}/fd/{descriptor}") for descriptor in (0, 1, 2)}
        return any(os.readlink(file) in pipes for file in Path(f"/proc/{self.pid}/fd").iterdir())


class Requests(AsyncFixture):
    async def test_what_the_worker_could_not_read_is_refused_and_nothing_else_is_disturbed(self) -> None:
        origin = self.with_origin()
        deep: Any = []
        for _ in range(600):
            deep = [deep]
        url, no_text = f"{origin.url}/image/1.png", cast(Any, b"/tmp/caf\xe9")
        cases: dict[str, tuple[str, Callable[[], Any]]] = {
            "no number": ("invalidParams", lambda: worker.load(url, transform={"blur": float("nan")})),
            "half a character": ("invalidParams", lambda: worker.load(f"{url}?\udce9")),
            "a file name that is no UTF-8": ("invalidParams", lambda: worker.load(url, save_to=no_text)),
            "a name that comes twice": ("invalidParams", lambda: worker.load(url, headers=cast(Any, {1: "a", "1": "b"}))),
            "no JSON": ("invalidParams", lambda: worker.prefetch([object()])),  # type: ignore[list-item]
            "a number of 400 digits": ("parseError", lambda: worker.load(url, max_bytes=10**400)),
            "600 lists in each other": ("parseError", lambda: worker.load(url, headers=deep)),
            "a line over --max-line": ("invalidRequest", lambda: worker.prefetch([url] * 2000)),
        }
        async with ImageWorker(**self.options(max_line=20000)) as worker:
            held = asyncio.ensure_future(worker.load(f"{url}?hold=gate"))
            await self.command(origin, do="await", gate="gate", held=1)
            for name, (kind, send) in cases.items():
                with self.subTest(name), self.assertRaises(RequestError) as refused:
                    await asyncio.wait_for(send(), PATIENCE)
                self.assertEqual(refused.exception.kind, kind, name)
            several = await asyncio.gather(*(worker.load(url, max_bytes=10**400) for _ in range(3)), return_exceptions=True)
            self.assertEqual([getattr(error, "kind", None) for error in several], 3 * ["parseError"])
            self.assertFalse(held.done())
            await self.command(origin, do="release", gate="gate")
            self.assertEqual((await held).width, 32)
            self.assertEqual((await worker.load(url, key="kéy 😀\u2028")).key, "kéy 😀\u2028")

    async def test_a_refused_line_says_nothing_of_later_calls(self) -> None:
        no_method: Any = 5
        async with ImageWorker(**self.options(max_line=20000)) as worker:
            messages = []
            for send in (lambda: worker.call(no_method), lambda: worker.prefetch(["data:,"] * 9000), lambda: worker.call(no_method)):
                with self.assertRaises(RequestError) as refused:
                    await asyncio.wait_for(send(), PATIENCE)
                messages.append(str(refused.exception))
        self.assertEqual(messages[0], messages[2])
        self.assertNotEqual(messages[0], messages[1])

    async def test_save_to_may_be_bytes(self) -> None:
        origin = self.with_origin()
        async with ImageWorker(**self.options()) as worker:
            place: Any = os.fsencode(self.folder / "café.png")
            await worker.load(f"{origin.url}/image/1.png?bytes=4000", save_to=place)
        self.assertEqual((self.folder / "café.png").stat().st_size, 4000)

    async def test_a_file_without_a_descriptor_is_read_from_its_start(self) -> None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("dot.png", DOT)
        with tarfile.open(self.folder / "dot.tar", "w") as tape:
            tape.addfile(tarfile.TarInfo("empty"))
            dot = tarfile.TarInfo("dot.png")
            dot.size = len(DOT)
            tape.addfile(dot, io.BytesIO(DOT))
        memory = io.BytesIO(DOT)
        memory.read()
        no_bytes: Any = io.StringIO("a")
        async with ImageWorker(**self.options()) as worker:
            with zipfile.ZipFile(packed) as archive, tarfile.open(self.folder / "dot.tar") as tape:
                member: Any = tape.extractfile("dot.png")
                for file in (memory, archive.open("dot.png"), member):
                    self.assertEqual((await worker.process(file)).width, 1)
            with self.assertRaisesRegex(TypeError, "^image must be bytes, not str$"):
                await worker.process(no_bytes)
            memory.close()
            with self.assertRaisesRegex(ValueError, "closed file"):
                await worker.process(memory)
            for other in (io.BytesIO(DOT), cast(Any, DOT)):
                with self.assertRaisesRegex(TypeError, "^file must be a path or an open file with a descriptor, not "):
                    await worker.load_file(other, key="a", transform={"width": 8})

    async def test_use_from_another_loop_is_refused_before_anything_is_sent(self) -> None:
        async with ImageWorker(**self.options()) as worker:

            def use(what: Callable[[], Any]) -> None:
                async def there() -> None:
                    await what()

                asyncio.run(there())

            for what in (lambda: worker.load("data:,"), worker.close):
                with self.assertRaisesRegex(RuntimeError, "event loop"):
                    await asyncio.get_running_loop().run_in_executor(None, use, what)
            self.assertEqual((await worker.stats()).requests.received, 0)

    async def test_what_was_not_written_yet_when_it_was_cancelled_is_never_sent(self) -> None:
        origin = self.with_origin()
        async with ImageWorker(**self.options()) as worker:
            url = f"{origin.url}/image/1.png"
            await worker.load(url)
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGSTOP)  # More than the pipe holds:
            loads = [asyncio.ensure_future(worker.load(url, key=f"{n}".ljust(8000, "k"))) for n in range(60)]
            for _ in range(3):
                await asyncio.sleep(0)
            cancelled = asyncio.ensure_future(worker.load(url))
            for _ in range(3):
                await asyncio.sleep(0)
            cancelled.cancel()
            await asyncio.wait([cancelled])
            os.kill(worker.pid, signal.SIGCONT)
            await asyncio.gather(*loads)
            requests = (await worker.stats()).requests
            self.assertEqual((requests.received, requests.cancelled), (61, 0))


@mock.patch("imageworker._LATE", 0.1)
class Deadlines(AsyncFixture):
    async def test_calls_end_after_their_deadline_or_that_of_the_worker_although_it_is_stopped(self) -> None:
        async with ImageWorker(**self.options(deadline=0.5)) as worker:
            await worker.store(data=DOT, url="https://a.test/dot.png")
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGSTOP)
            unlimited = [asyncio.ensure_future(each) for each in (worker.process(DOT, deadline=0), worker.process(DOT, deadline=1e6))]
            late = (
                worker.load("https://a.test/dot.png"),
                worker.probe("https://a.test/dot.png", deadline=0.001),
                worker.process(io.BytesIO(DOT)),
                worker.call("process", {"data": base64.b64encode(DOT).decode(), "deadlineMs": 5}),
                worker.load("https://a.test/dot.png", key="k" * 200_000),  # More than the pipe holds.
                worker.load("https://a.test/dot.png"),  # Never sent.
            )
            for end in await asyncio.gather(*late, return_exceptions=True):
                assert isinstance(end, LoadTimeout), end
                self.assertEqual((end.kind, end.phase, end.retryable), ("timeout", "client", False))
            self.assertEqual([each.done() for each in unlimited], [False, False])
            os.kill(worker.pid, signal.SIGCONT)
            self.assertEqual([facts.width for facts in await asyncio.gather(*unlimited)], [1, 1])
            await worker.configure(deadline=0)
            os.kill(worker.pid, signal.SIGSTOP)
            unlimited = [asyncio.ensure_future(worker.process(DOT))]
            with self.assertRaises(LoadTimeout):
                await worker.process(DOT, deadline=0.5)
            self.assertFalse(unlimited[0].done())
            os.kill(worker.pid, signal.SIGCONT)
            await unlimited[0]

    async def test_a_deadline_that_is_no_time_is_refused_by_the_worker(self) -> None:
        async with ImageWorker(**self.options()) as worker:
            for deadline in (10**400, "5", -1, True, [5]):
                with self.subTest(deadline), self.assertRaises(RequestError):
                    await asyncio.wait_for(worker.call("load", {"url": "data:,", "deadlineMs": deadline}), PATIENCE)

    async def test_a_call_goes_on_if_the_program_was_stopped_like_the_worker(self) -> None:
        async with ImageWorker(**self.options()) as worker:
            await worker.store(data=DOT, url="https://a.test/dot.png")
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGSTOP)
            loading = asyncio.ensure_future(worker.load("https://a.test/dot.png", deadline=3))
            await asyncio.sleep(2.5)
            time.sleep(1.5)
            os.kill(worker.pid, signal.SIGCONT)
            try:
                self.assertEqual((await loading).width, 1)
            except LoadTimeout as late:
                self.assertEqual(late.phase, "deadline")  # Of the worker.

    async def test_calls_go_on_while_the_worker_writes(self) -> None:
        script = self.fake(f"read line; for n in 1 2 3 4 5 6 7 8 9; do sleep 0.5; echo '{ANSWER % 9}'; done; echo '{ANSWER % 1}'; read rest")
        async with ImageWorker(binary=script) as worker:
            self.assertEqual((await asyncio.wait_for(worker.load("data:,", deadline=0.001), PATIENCE)).key, "k")

    def test_threads_do_not_wait_either(self) -> None:
        with BlockingImageWorker(**self.options(deadline=0.01)) as worker, ThreadPoolExecutor(8) as pool:
            worker.stats()
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGSTOP)
            for end in [pool.submit(worker.process, DOT) for _ in range(8)]:
                self.assertIsInstance(end.exception(PATIENCE), LoadTimeout)
            os.kill(worker.pid, signal.SIGCONT)
            self.assertEqual(worker.process(DOT, deadline=0).width, 1)


class Introduction(AsyncFixture):
    async def test_it_is_the_first_line_and_no_call_waits_for_its_answer(self) -> None:
        script = self.fake(f"read line; echo '{ANSWER % 1}'; read rest", "read initialize; echo \"$initialize\" > first")
        async with ImageWorker(binary=script) as worker:
            await asyncio.wait_for(worker.load("data:,"), PATIENCE)
        first = json.loads((self.folder / "first").read_text())
        client = {"name": "imageworker.py", "version": imageworker.__version__}
        self.assertEqual(first, {"id": 0, "method": "initialize", "params": {"protocolVersion": 1, "client": client}})

    async def test_a_worker_of_another_version_is_refused_and_not_started_again(self) -> None:
        result = '{"id":0,"result":{"protocolVersion":2,"server":{"name":"imageworker","version":"3.1.0"}}}'
        data = '{"kind":"invalidParams","retryable":false,"member":"protocolVersion","supported":[2,3]}'
        refusal = f'{{"id":0,"error":{{"code":-32602,"message":"no","data":{data}}}}}'
        for answer, words in (
            (result, r"the worker \(3\.1\.0\) speaks version 2 of the protocol, and this client \(.*\) speaks version 1: take"),
            (refusal, "the worker speaks version 2 and 3 of the protocol, and this client"),
        ):
            (self.folder / "starts").unlink(missing_ok=True)
            script = self.fake("exec cat >/dev/null", f"echo >> starts; read initialize; echo '{answer}'; echo '{ANSWER % 1}'")
            ends: list[WorkerExited] = []
            with self.subTest(answer=answer):
                async with ImageWorker(binary=script, longest_pause=0, on_exit=ends.append) as worker:
                    for number in range(3):
                        with self.assertRaisesRegex(ProtocolMismatch, words) as refused:
                            await asyncio.wait_for(worker.load(f"data:,{number}"), PATIENCE)
                        error = refused.exception
                        self.assertEqual((error.kind, error.retryable, error.url, error.code), ("protocolMismatch", False, f"data:,{number}", None))
                self.assertEqual((self.folder / "starts").read_text(), "\n")
                self.assertEqual([type(end) for end in ends], [ProtocolMismatch])

    async def test_its_answer_is_no_sign_that_requests_are_answered(self) -> None:
        answer = '{"id":0,"result":{"protocolVersion":1}}'
        script = self.fake("read line; exit 1", f"echo >> starts; read initialize; echo '{answer}'")
        async with ImageWorker(binary=script, max_restarts=2, longest_pause=60) as worker:
            for _ in range(5):
                with self.assertRaises(WorkerExited):
                    await worker.load("data:,")
        self.assertEqual((self.folder / "starts").read_text(), 3 * "\n")


class Answers(AsyncFixture):
    async def test_a_line_that_is_not_understood_is_logged_and_the_rest_is_read(self) -> None:
        lines = ["no JSON", "[]", '{"result":{}}', '{"id":[1],"result":{}}', '{"id":null,"error":5}']
        lines += ['{"method":"progress","params":[]}', '{"method":"progress","params":{"id":{}}}', ANSWER % 1]
        script = self.fake(f"read line; cat <<'END'\n{chr(10).join(lines)}\nEND\nexec cat")
        with self.assertLogs("imageworker", "ERROR") as log:
            async with ImageWorker(binary=script) as worker:
                self.assertEqual((await asyncio.wait_for(worker.load("data:,"), PATIENCE)).key, "k")
        self.assertEqual(len(log.records), 7)

    async def test_a_call_whose_answer_is_not_understood_fails_as_internal(self) -> None:
        answers = ['{"id":1,"error":null}', '{"id":2,"error":{"code":-1}}', '{"id":3}', '{"id":4,"result":null}']
        script = self.fake("read a; read b; read c; read d; " + "; ".join(f"echo '{answer}'" for answer in answers))
        async with ImageWorker(binary=script) as worker:
            loads = [asyncio.ensure_future(worker.load(f"data:,{n}")) for n in range(4)]
            for number, error in enumerate(await asyncio.wait_for(asyncio.gather(*loads, return_exceptions=True), PATIENCE)):
                assert isinstance(error, InternalError)
                self.assertEqual((error.kind, error.url), ("internal", f"data:,{number}"))

    async def test_the_last_lines_count_without_an_end(self) -> None:
        script = self.fake(f"read line; printf '%s' '{ANSWER % 1}'; printf 'out of luck' >&2; exit 9")
        ends: asyncio.Queue[WorkerExited] = asyncio.Queue()
        async with ImageWorker(binary=script, on_exit=ends.put_nowait) as worker:
            self.assertEqual((await worker.load("data:,")).key, "k")
            self.assertEqual((await ends.get()).log, ["out of luck"])

    async def test_the_error_of_a_worker_that_ended_has_the_message_of_its_last_line(self) -> None:
        for line, message in {
            '{"event":"worker.failed","message":"out of luck"}': "out of luck", "{broken": "{broken", "3": "3", '{"a":1}': '{"a":1}',
        }.items():  # fmt: skip
            script = self.fake(f"echo '{line}' >&2; exit 64")
            async with ImageWorker(binary=script, log_format="json") as worker:
                with self.assertRaises(WorkerExited) as raised:
                    await worker.load("data:,")
            self.assertEqual(str(raised.exception), f"the worker ended (status 64): {message}")
            self.assertEqual(raised.exception.log, [line])

    async def test_errors_are_pickled_and_copied_whole(self) -> None:
        data = {"kind": "http", "retryable": True, "url": "u", "status": 503}
        for error in (
            HTTPStatusError("the server answered 503", data, 2005),
            Cancelled("cancelled", {"kind": "cancelled"}, -32800),
            WorkerExited(-9, ["its log"], "u", ["u", "v"]),
            ProtocolMismatch("the worker speaks version 2", "u", ["u"]),
        ):
            for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
                self.assertIs(type(again), type(error))
                self.assertEqual((str(again), vars(again)), (str(error), vars(error)))


class PixelsOfFaults(AsyncFixture):
    def setUp(self) -> None:
        super().setUp()
        self.origin = self.with_origin()

    async def regions(self, worker: ImageWorker) -> int:
        await worker.stats()  # The loop lets go of a result when its task waits again; then the release is sent.
        return (await worker.stats()).pixels.regions

    async def test_those_of_a_cancelled_call_are_released(self) -> None:
        pixels = {"path": str(self.folder / "pixels"), "offset": 0, "width": 1, "height": 1, "stride": 3, "channels": 3, "bytes": 3}
        answer = json.dumps({"id": 1, "result": {"key": "k", "pixels": pixels}})
        event = '{"method":"started","params":{"id":1,"url":"data:,","attempt":1}}'
        for when, script in {
            "before the answer comes": f"read load; echo '{event}'; read cancel; echo '{answer}'",
            "before the caller sees it": f"read load; printf '%s\\n%s\\n' '{event}' '{answer}'",
        }.items():
            with self.subTest(when):
                (self.folder / "pixels").write_bytes(b"rgb")
                fake = self.fake(script + '; read release; echo "$release" >&2; exec cat')
                with self.assertLogs("imageworker", "INFO") as log:
                    async with ImageWorker(binary=fake) as worker:
                        tasks: list[asyncio.Future[Image]] = []

                        def cancel(event: LoadEvent) -> None:
                            asyncio.get_running_loop().call_soon(tasks[0].cancel)

                        tasks.append(asyncio.ensure_future(worker.load("data:,", deliver="pixels", on_event=cancel)))
                        await asyncio.wait(tasks)
                        self.assertTrue(tasks[0].cancelled())
                        tasks.clear()
                        while not log.output:
                            await asyncio.sleep(0.001)
                self.assertEqual(json.loads(log.records[0].getMessage())["params"], {"path": pixels["path"]})

    async def test_small_ones_take_no_descriptor(self) -> None:
        async with ImageWorker(**self.options()) as worker:
            before = os.listdir("/proc/self/fd")
            images = [await worker.load(f"{self.origin.url}/image/{n}.png", deliver="pixels") for n in range(5)]
            self.assertEqual(os.listdir("/proc/self/fd"), before)
            self.assertEqual(await self.regions(worker), 5)
            del images

    async def test_large_ones_are_mapped_and_stay_valid(self) -> None:
        async with ImageWorker(**self.options()) as worker:
            before = len(os.listdir("/proc/self/fd"))
            image = await worker.load(self.origin.url + LARGE, deliver="pixels")
            held = 0 if sys.version_info >= (3, 13) else 1
            self.assertEqual(len(os.listdir("/proc/self/fd")), before + held)
            memory, first = image.pixels.memory, bytes(image.pixels.memory)
            del image
            self.assertEqual(await self.regions(worker), 0)
            self.assertEqual((len(memory), bytes(memory)), (1_800_000, first))
            del memory
            self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    async def test_those_that_cannot_be_mapped_are_released(self) -> None:
        async with ImageWorker(**self.options()) as worker:
            full = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            with mock.patch("imageworker.mmap.mmap", side_effect=full), self.assertRaises(ImageWorkerError) as failed:
                await worker.load(self.origin.url + LARGE, deliver="pixels")
            self.assertEqual((failed.exception.kind, failed.exception.__cause__), ("internal", full))
            self.assertEqual(await self.regions(worker), 0)

    async def test_those_of_load_events_are_the_callers(self) -> None:
        async with ImageWorker(**self.options()) as worker:
            last: Any = None
            async for last in worker.load_events(f"{self.origin.url}/image/1.png", deliver="pixels"):
                pass
            self.assertIsInstance(last, Completed)
            self.assertEqual((len(last.image.pixels.memory), await self.regions(worker)), (32 * 24 * 3, 1))
            del last
            self.assertEqual(await self.regions(worker), 0)


def kill(worker: ImageWorker) -> None:
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)


class StartsAndEnds(AsyncFixture):
    async def test_a_dead_worker_has_no_number(self) -> None:
        ends: asyncio.Queue[WorkerExited] = asyncio.Queue()
        async with ImageWorker(**self.options(), on_exit=ends.put_nowait) as worker:
            kill(worker)
            await ends.get()
            self.assertIsNone(worker.pid)

    async def test_the_log_has_no_urls_which_may_carry_secrets(self) -> None:
        secret = "http://me:secret@127.0.0.1:1/a.png?signature=secret"
        garbled = self.fake(f"read line; echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"url\":\"{secret}\"'; exit 1")
        with self.assertLogs("imageworker", "INFO") as log:
            async with ImageWorker(binary=garbled) as worker:
                with self.assertRaises(WorkerExited) as exited:
                    await worker.load(secret)
        self.assertEqual(exited.exception.lost, [secret])
        self.assertIn("URLs lost with it: 1", log.output[-1])
        self.assertNotIn("secret", "\n".join(log.output))

    async def test_lost_names_what_a_prefetch_named(self) -> None:
        origin = self.with_origin()
        async with ImageWorker(**self.options()) as worker:
            urls = [f"{origin.url}/image/{n}.png?hold=never" for n in range(3)]
            prefetch = asyncio.ensure_future(worker.prefetch([urls[0], {"url": urls[1]}, urls[2]]))
            await self.command(origin, do="await", gate="never", held=3)
            kill(worker)
            with self.assertRaises(WorkerExited) as exited:
                await prefetch
            self.assertEqual(exited.exception.lost, urls)

    async def test_what_no_other_start_will_change_is_not_retryable_and_each_caller_has_an_error_of_its_own(self) -> None:
        missing = str(self.folder / "missing")
        cases: list[tuple[dict[str, Any], int]] = [({"arguments": ["--no-such-option"]}, 5), ({"cookies": missing}, 5)]
        for options, restarts in (*cases, ({"cache_dir": "/dev/null"}, 5), ({}, 0)):
            binary = self.fake("exit 1") if restarts == 0 else None
            with self.subTest(options=options, restarts=restarts):
                async with ImageWorker(**options, binary=binary, max_restarts=restarts) as worker:
                    for _ in range(2):
                        loads = [worker.load(f"data:,{n}") for n in range(5)]
                        errors = await asyncio.gather(*loads, return_exceptions=True)
                        self.assertEqual(len(set(map(id, errors))), 5)
                        for number, error in enumerate(errors):
                            assert isinstance(error, WorkerExited)
                            self.assertEqual((error.url, error.retryable), (f"data:,{number}", False))

    async def test_once_in_the_longest_pause_one_call_starts_a_worker_that_died_too_often(self) -> None:
        answer = f"while read line; do id=${{line#*:}}; printf '{ANSWER}\\n' ${{id%%,*}}; done"
        script = self.fake(f"echo >> starts; [ $(wc -l < starts) -gt 4 ] || {{ read line; exit 1; }}\n{answer}")
        async with ImageWorker(binary=script, max_restarts=1, longest_pause=0) as worker:
            for _ in range(4):
                with self.assertRaises(WorkerExited) as exited:
                    await worker.load("data:,")
                self.assertTrue(exited.exception.retryable)
            self.assertEqual((await worker.load("data:,")).key, "k")

    async def test_any_number_of_deaths_in_a_row_is_counted(self) -> None:
        async with ImageWorker(binary=self.fake("exit 1"), max_restarts=10_000, longest_pause=0) as worker:
            worker._deaths = 5000
            for _ in range(2):
                with self.assertRaises(WorkerExited):
                    await worker.load("data:,")

    async def test_a_worker_that_cannot_be_started_again_is_one_more_death(self) -> None:
        script = self.fake("exit 1")
        async with ImageWorker(binary=script, longest_pause=0) as worker:
            with self.assertRaises(WorkerExited):
                await worker.load("data:,")
            script.unlink()
            errors = await asyncio.gather(worker.load("data:,0"), worker.load("data:,1"), return_exceptions=True)
            for number, error in enumerate(errors):
                assert isinstance(error, WorkerExited)
                self.assertEqual((error.url, error.exit_status), (f"data:,{number}", None))
                self.assertIsInstance(error.__cause__, FileNotFoundError)

    async def test_closing_during_the_pause_before_a_restart_cancels_the_calls_that_wait(self) -> None:
        ends: asyncio.Queue[WorkerExited] = asyncio.Queue()
        async with ImageWorker(**self.options(), on_exit=ends.put_nowait) as worker:
            kill(worker)
            await ends.get()
            loads = [asyncio.ensure_future(worker.load(f"data:,{n}")) for n in range(2)]
            await asyncio.sleep(0)
        for number, error in enumerate(await asyncio.gather(*loads, return_exceptions=True)):
            assert isinstance(error, Cancelled), error
            self.assertEqual((error.kind, error.url), ("cancelled", f"data:,{number}"))

    async def test_closing_during_the_start_leaves_no_process(self) -> None:
        before = children(os.getpid())
        for turns in range(1, 7):
            worker = ImageWorker(**self.options())
            starting = asyncio.ensure_future(worker.start())
            for _ in range(turns):
                await asyncio.sleep(0)
            await worker.close()
            await asyncio.wait([starting])
            if starting.exception() is not None:
                self.assertIsInstance(starting.exception(), Cancelled)
            self.assertEqual((worker.pid, children(os.getpid())), (None, before))

    async def test_a_fork_during_the_start_takes_no_pipes(self) -> None:
        for turns in range(12):
            async with contextlib.AsyncExitStack() as exits:
                worker = ImageWorker(**self.options())
                starting = asyncio.ensure_future(exits.enter_async_context(worker))
                for _ in range(turns):
                    await asyncio.sleep(0)
                with ForkedChild() as child:
                    await starting
                    assert worker.pid is not None
                    self.assertFalse(child.shares_pipes_with(worker.pid), turns)

    async def test_the_worker_has_a_session_of_its_own(self) -> None:
        async with ImageWorker(**self.options()) as worker:
            assert worker.pid is not None
            self.assertEqual(os.getsid(worker.pid), worker.pid)

    async def test_close_ends_though_somebody_else_holds_the_workers_output(self) -> None:
        script = self.fake("sleep 1000 & echo $! >&2; exec cat")
        with self.assertLogs("imageworker", "INFO") as log:
            async with ImageWorker(binary=script) as worker:
                while not log.output:
                    await asyncio.sleep(0.001)
                self.addCleanup(os.kill, int(log.records[0].getMessage()), signal.SIGKILL)
                await asyncio.wait_for(worker.close(), PATIENCE)

    async def test_a_worker_whose_pipes_cannot_be_connected_is_killed(self) -> None:
        before, loop = children(os.getpid()), asyncio.get_running_loop()
        complaints: list[Any] = []
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        for connect in ("connect_write_pipe", "connect_read_pipe"):
            full = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            with self.subTest(connect), mock.patch.object(loop, connect, side_effect=full):
                async with ImageWorker(**self.options()) as worker:
                    with self.assertRaisesRegex(WorkerExited, "Too many open files"):
                        await asyncio.wait_for(worker.load("data:,"), PATIENCE)
            self.assertEqual(children(os.getpid()), before)

    async def test_a_worker_that_closes_its_output_and_lives_is_killed(self) -> None:
        async with ImageWorker(binary=self.fake("exec >&-; exec sleep 1000")) as worker:
            with self.assertRaises(WorkerExited) as exited:
                await asyncio.wait_for(worker.load("data:,"), PATIENCE)
            self.assertEqual(exited.exception.exit_status, -signal.SIGKILL)

    async def test_a_worker_that_closes_its_input_and_lives_is_killed(self) -> None:
        async with ImageWorker(binary=self.fake("exec <&-; exec sleep 1000")) as worker:
            with self.assertRaises(WorkerExited) as exited:
                await asyncio.wait_for(worker.load("data:,"), PATIENCE)
            self.assertEqual(exited.exception.exit_status, -signal.SIGKILL)

    async def test_who_has_to_be_killed_at_the_end_leaves_nothing_to_try_again(self) -> None:
        async with ImageWorker(binary=self.fake("trap '' TERM; while true; do sleep 1; done")) as worker:
            loading = asyncio.ensure_future(worker.load("data:,"))
            await asyncio.sleep(0)
            await worker.close(grace=0.1)
            with self.assertRaises(WorkerExited) as exited:
                await loading
            self.assertFalse(exited.exception.retryable)

    async def test_the_worker_is_looked_for_in_the_order_that_the_document_tells(self) -> None:
        def executable(path: Path) -> str:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(0o755)
            return str(path)

        home, path = self.folder / "examples" / "python", self.folder / "path"
        environment = {"PATH": f"{self.folder / 'directory'}:{path}"}
        (self.folder / "directory" / "imageworker").mkdir(parents=True)
        with mock.patch.object(imageworker, "__file__", str(home / "imageworker.py")), mock.patch.dict(os.environ, environment, clear=True):
            with self.assertRaisesRegex(FileNotFoundError, "^imageworker was not found: install its wheel, .* PATH, .* IMAGEWORKER"):
                imageworker.find_worker()
            for each in (path / "imageworker", self.folder / ".build" / "release" / "imageworker", home / "bin" / "imageworker"):
                expected = executable(each)
                self.assertEqual(imageworker.find_worker(), expected)
            os.environ["IMAGEWORKER"] = "/of/the/environment"
            self.assertEqual(imageworker.find_worker(), "/of/the/environment")
            self.assertEqual(imageworker.find_worker("/of/the/argument"), "/of/the/argument")
            del os.environ["IMAGEWORKER"]
            with mock.patch.object(imageworker, "__file__", "/imageworker.py"):
                self.assertEqual(imageworker.find_worker(), str(path / "imageworker"))

    @unittest.skipIf(importlib.util.find_spec("uvloop") is None, "there is no uvloop here")
    def test_uvloop_and_a_fork_there(self) -> None:
        import uvloop  # type: ignore[import-not-found, unused-ignore]

        async def main() -> None:
            async with ImageWorker(**self.options()) as worker:
                await worker.load("data:,", validate="none")
                child = os.fork()
                if child == 0:
                    os._exit(len(imageworker._living))
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
                await worker.load("data:,", validate="none")

        loop = uvloop.new_event_loop()
        self.addCleanup(loop.close)
        loop.run_until_complete(main())


class Blocking(Fixture):
    def blocking(self, **settings: Any) -> BlockingImageWorker:
        return self.exits.enter_context(BlockingImageWorker(**({} if "binary" in settings else self.options()), **settings))

    def threads(self) -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "imageworker"]

    def test_a_fork_while_another_thread_starts_the_worker_takes_no_pipes(self) -> None:
        execute = subprocess.Popen._execute_child  # type: ignore[attr-defined]

        def begin(*arguments: Any) -> None:
            has_begun.release()
            execute(*arguments)

        has_begun = threading.Semaphore(0)
        with mock.patch.object(subprocess.Popen, "_execute_child", begin):
            for _ in range(10):
                worker = self.blocking()
                calling = threading.Thread(target=worker.stats)
                calling.start()
                self.assertTrue(has_begun.acquire(timeout=PATIENCE))
                with ForkedChild() as child:
                    calling.join(PATIENCE)
                    self.assertFalse(calling.is_alive())
                    assert worker.pid is not None
                    self.assertFalse(child.shares_pipes_with(worker.pid))

    def test_a_handler_that_calls_its_worker_is_told_that_it_cannot(self) -> None:
        refusals: list[str] = []

        def handle(event: LoadEvent) -> None:
            for call in (lambda: worker.load("data:,"), worker.close):
                try:
                    call()
                except RuntimeError as error:
                    refusals.append(str(error))

        worker = self.blocking()
        worker.load(f"{self.with_origin().url}/image/1.png", on_event=handle, events=["started"])
        self.assertEqual(len(refusals), 2)
        self.assertIn("handler", refusals[0])
        worker.stats()

    def test_one_that_is_dropped_ends_its_worker(self) -> None:
        worker = BlockingImageWorker(**self.options())
        worker.stats()
        assert worker.pid is not None
        with Watched(worker.pid) as watched:
            del worker
            self.assertTrue(watched.ends())
        for thread in self.threads():
            thread.join(PATIENCE)
        self.assertEqual(self.threads(), [])

    def test_one_may_be_dropped_on_the_thread_of_its_worker(self) -> None:
        origin = self.with_origin()
        held: list[BlockingImageWorker] = [BlockingImageWorker(**self.options(), on_event=lambda _: held.clear())]
        held[0].notify("prefetch", {"urls": [f"{origin.url}/image/1.png?hold=gate"]})
        pid = held[0].pid
        assert pid is not None
        with Watched(pid) as watched:
            origin.command({"do": "release", "gate": "gate"})
            self.assertTrue(watched.ends())

    def test_a_handler_that_exits_ends_nothing(self) -> None:
        ends: SimpleQueue[WorkerExited] = SimpleQueue()

        def note_and_exit(end: WorkerExited) -> None:
            ends.put(end)
            sys.exit(1)

        worker = self.blocking(on_exit=note_and_exit)
        url = f"{self.with_origin().url}/image/1.png"
        with self.assertLogs("asyncio", "ERROR") as log:
            self.assertEqual(worker.load(url, on_event=lambda _: sys.exit(1), events=["started"]).width, 32)
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            ends.get(timeout=PATIENCE)
            self.assertEqual(worker.load(url).width, 32)
        complaints = [record.getMessage().splitlines()[0] for record in log.records]
        self.assertEqual(complaints, ["on_event failed for started", "on_exit failed"])

    def test_a_handler_that_raises_no_exception_of_a_program_costs_no_other_load(self) -> None:
        worker = self.blocking()
        images = f"{self.with_origin().url}/image"

        for kind in (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt):

            def load_and_fail() -> imageworker.FileImage:
                def fail(event: object) -> None:
                    raise kind()

                return worker.load(f"{images}/0.png", on_event=fail, events=["started"], cache="reload")

            with self.assertLogs("asyncio", "ERROR"), ThreadPoolExecutor(10) as threads:
                first = threads.submit(load_and_fail)
                others = [threads.submit(worker.load, f"{images}/{number}.png", cache="reload") for number in range(1, 10)]
                self.assertEqual({each.result(PATIENCE).width for each in [first, *others]}, {32}, kind)

    def test_a_handler_on_the_main_thread_may_exit(self) -> None:
        async def main() -> None:
            async with ImageWorker(binary=self.fake("read line; exit 1"), on_exit=lambda _: sys.exit(3)) as worker:
                with contextlib.suppress(WorkerExited):
                    await worker.load("data:,")
                await asyncio.sleep(PATIENCE)

        with self.assertRaises(SystemExit) as exited:
            asyncio.run(main())
        self.assertEqual(exited.exception.code, 3)

    def test_whatever_ends_the_loop_the_next_call_starts_another(self) -> None:
        before = children(os.getpid())
        worker = self.blocking()
        worker.stats()
        thread = worker._thread
        assert thread is not None
        thread.loop.result().call_soon_threadsafe(sys.exit)
        thread.join(PATIENCE)
        self.assertEqual((self.threads(), children(os.getpid())), ([], before))
        worker.stats()

    def test_a_start_that_fails_leaves_nothing(self) -> None:
        worker = self.blocking(binary=self.folder / "missing")
        for _ in range(3):
            with self.assertRaises(FileNotFoundError):
                worker.load("data:,")
            for thread in self.threads():
                thread.join(PATIENCE)
            self.assertEqual(self.threads(), [])

    def right_after_the_start(self, act: Callable[[], None]) -> Any:
        """Has the thread of a worker started, and then something done where that is awaited."""
        start = threading.Thread.start

        def and_then(thread: threading.Thread) -> None:
            start(thread)
            if thread.name == "imageworker":
                act()

        return mock.patch.object(threading.Thread, "start", and_then)

    def test_a_start_that_is_interrupted_leaves_nothing(self) -> None:
        def interrupt() -> None:
            raise KeyboardInterrupt

        before = children(os.getpid())
        worker = self.blocking()
        with self.right_after_the_start(interrupt), self.assertRaises(KeyboardInterrupt):
            worker.load("data:,")
        for thread in self.threads():
            thread.join(PATIENCE)
        self.assertEqual((self.threads(), children(os.getpid())), ([], before))
        worker.stats()

    def test_a_signal_handler_may_close_it_during_the_first_load(self) -> None:
        worker = self.blocking()
        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, lambda *_: worker.close()))
        with self.right_after_the_start(lambda: signal.raise_signal(signal.SIGUSR1)):
            with self.assertRaisesRegex(RuntimeError, "closed"):
                worker.load("data:,")
        self.assertEqual(self.threads(), [])

    def test_closing_during_the_pause_before_a_restart_ends_an_iteration_in_another_thread(self) -> None:
        died = threading.Semaphore(0)
        worker = self.blocking(binary=self.fake("exit 1"), max_restarts=50, on_exit=lambda _: died.release())
        outcomes: list[Any] = []

        def iterate() -> None:
            with contextlib.suppress(RuntimeError):
                outcomes.extend(outcome for _, outcome in worker.load_all(itertools.repeat("data:,"), at_once=1))

        thread = threading.Thread(target=iterate, daemon=True)
        thread.start()
        for _ in range(3):
            self.assertTrue(died.acquire(timeout=PATIENCE))
        worker.close()
        thread.join(PATIENCE)
        self.assertFalse(thread.is_alive())

    def test_what_begins_while_it_is_closed_ends(self) -> None:
        for _ in range(5):
            worker = self.blocking()
            worker.stats()
            ended = threading.Semaphore(0)

            def load() -> None:
                with contextlib.suppress(ImageWorkerError):
                    try:
                        while True:
                            worker.stats()
                    except RuntimeError as error:
                        self.assertNotIn("Event loop", str(error))
                ended.release()

            for _ in range(8):
                threading.Thread(target=load, daemon=True).start()
            worker.close()
            for _ in range(8):
                self.assertTrue(ended.acquire(timeout=PATIENCE))

    def test_loads_begin_while_more_urls_are_awaited(self) -> None:
        origin = self.with_origin()
        worker = self.blocking()

        def urls() -> Iterator[str]:
            yield f"{origin.url}/image/1.png?hold=gate"
            origin.command({"do": "await", "gate": "gate", "held": 1})
            yield f"{origin.url}/image/2.png?hold=gate"
            origin.command({"do": "await", "gate": "gate", "held": 2})
            origin.command({"do": "release", "gate": "gate"})

        outcomes = [outcome for _, outcome in worker.load_all(urls())]
        self.assertEqual([type(outcome) for outcome in outcomes], [FileImage, FileImage])

    def test_no_loads_at_once_are_refused(self) -> None:
        with self.assertRaises(ValueError):
            next(iter(self.blocking().load_all(["data:,"], at_once=0)))

    def test_notifications_are_carried_out(self) -> None:
        origin = self.with_origin()
        events: list[Event] = []
        came = threading.Event()

        def note(event: Event) -> None:
            events.append(event)
            came.set()

        worker = self.blocking(on_event=note)
        worker.notify("prefetch", {"urls": [f"{origin.url}/image/1.png"]})
        self.assertTrue(came.wait(PATIENCE))
        self.assertEqual(events[0].name, "completed")
        with self.assertRaises(RequestError):
            worker.notify("prefetch", {"urls": [float("nan")]})


if __name__ == "__main__":
    unittest.main()
