"""ImageWorker for asyncio: one file, standard library only, Python 3.9 or newer.

    async with ImageWorker() as worker:
        image = await worker.load("https://example.com/cat.jpg")
        print(image.path, image.width, image.height)

The rules this client keeps, so that a program built on it need not know them:

- Reading never waits for writing: one task reads, callers only append to the pipe's buffer.
- A line may be of any length; the worker's log on standard error is always read.
- Each call ends once: in a result, in an ImageWorkerError, or in the task's own cancellation, which cancels the load.
- When the worker dies, every pending call fails with WorkerExited.
- Leaving `async with` ends the worker: input is closed, then a wait, then SIGTERM, then SIGKILL.

The protocol is in protocol/README.md.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import mmap
import os
import shutil
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, AsyncGenerator, Callable, Mapping, NamedTuple, Optional, Sequence, Union

__all__ = ["Event", "Image", "ImageWorker", "ImageWorkerError", "Pixels", "WorkerExited", "find_worker"]

logger = logging.getLogger("imageworker")


class ImageWorkerError(Exception):
    """An error that the worker answered. Switch on `kind`; protocol/README.md lists them."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.code = code
        self.kind: str = data.get("kind", "internal")
        self.retryable: bool = data.get("retryable", False)
        self.data = data


class WorkerExited(ImageWorkerError):
    """The worker ended before it answered. `code` is 0; `data` has its exit status and the end of its log."""

    def __init__(self, status: Optional[int], log: Sequence[str]) -> None:
        message = f"the worker ended (status {status})"
        if log:
            message += f": {log[-1]}"
        data = {"kind": "workerExited", "retryable": True, "exitStatus": status, "log": list(log)}
        super().__init__(0, message, data)


class Event(NamedTuple):
    """Something that happened on the way to a result: `started`, `progress`, `retrying`, `cached` …"""

    name: str
    params: Mapping[str, Any]


@dataclass(frozen=True)
class Pixels:
    """A decoded image in shared memory: rows of 8-bit sRGB, `channels` bytes a pixel (grey, R G B or R G B A).

    It takes memory until the worker is told to `release` it; what is mapped before that stays mapped.
    """

    path: Path
    offset: int
    width: int
    height: int
    stride: int
    channels: int
    size: int

    @classmethod
    def of(cls, wire: Mapping[str, Any]) -> Pixels:
        return cls(
            path=Path(wire["path"]),
            offset=wire["offset"],
            width=wire["width"],
            height=wire["height"],
            stride=wire["stride"],
            channels=wire["channels"],
            size=wire["bytes"],
        )

    def map(self) -> memoryview:
        """The rows, without a copy: for `numpy.frombuffer`, or `PIL.Image.frombuffer`."""
        with open(self.path, "rb") as file:
            mapped = mmap.mmap(file.fileno(), self.offset + self.size, access=mmap.ACCESS_READ)
        return memoryview(mapped)[self.offset :]


@dataclass(frozen=True)
class Image:
    """A loaded image. `path` is a file whose bytes never change and that stays for at least 60 seconds."""

    key: str
    cache: str
    size: int
    media_type: str
    url: Optional[str] = None
    format: Optional[str] = None
    width: Optional[int] = None
    height: Optional[int] = None
    path: Optional[Path] = None
    data: Optional[bytes] = field(default=None, repr=False)
    pixels: Optional[Pixels] = None
    wire: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The whole result as the worker sent it."""

    @classmethod
    def of(cls, wire: Mapping[str, Any]) -> Image:
        return cls(
            key=wire["key"],
            cache=wire["cache"],
            size=wire["bytes"],
            media_type=wire["mediaType"],
            url=wire.get("url"),
            format=wire.get("format"),
            width=wire.get("width"),
            height=wire.get("height"),
            path=Path(wire["path"]) if "path" in wire else None,
            data=base64.b64decode(wire["data"]) if "data" in wire else None,
            pixels=Pixels.of(wire["pixels"]) if "pixels" in wire else None,
            wire=wire,
        )


EventHandler = Callable[[Event], None]


class _Call(NamedTuple):
    result: asyncio.Future[Any]
    on_event: Optional[EventHandler]


def find_worker(binary: Optional[Union[str, os.PathLike[str]]] = None) -> str:
    """The worker to start: the argument, else $IMAGEWORKER, else this package's release build, else $PATH."""
    chosen = binary or os.environ.get("IMAGEWORKER")
    if chosen:
        return os.fspath(chosen)
    built = Path(__file__).resolve().parents[2] / ".build" / "release" / "imageworker"
    found = str(built) if os.access(built, os.X_OK) else shutil.which("imageworker")
    if found is None:
        raise FileNotFoundError("no imageworker: build it (swift build -c release), or set IMAGEWORKER to its path")
    return found


class ImageWorker:
    """One worker process. Use it in `async with`, from one event loop."""

    def __init__(
        self,
        options: Sequence[str] = (),
        *,
        binary: Optional[Union[str, os.PathLike[str]]] = None,
        on_event: Optional[EventHandler] = None,
    ) -> None:
        """`options` are the worker's own, such as ["--max-per-host", "8"]. `on_event` gets events of no pending call."""
        self._arguments = [find_worker(binary), *options]
        self._on_event = on_event
        self._process: Optional[asyncio.subprocess.Process] = None
        self._running: Optional[asyncio.Task[None]] = None
        self._calls: dict[int, _Call] = {}
        self._last_id = 0
        self._log: deque[str] = deque(maxlen=20)

    async def __aenter__(self) -> ImageWorker:
        await self.start()
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()

    @property
    def pid(self) -> Optional[int]:
        return self._process.pid if self._process else None

    async def start(self) -> None:
        if self._process is not None:
            raise RuntimeError("this ImageWorker has been started before")
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *self._arguments, stdin=pipe, stdout=pipe, stderr=pipe, limit=1 << 20
        )
        self._running = asyncio.ensure_future(self._run(self._process))

    async def close(self, grace: float = 5.0) -> None:
        """Ends the worker. Calls still pending are cancelled; notifications sent before are carried out.

        Each step (close input, SIGTERM, SIGKILL) gets `grace` seconds.
        """
        process, running = self._process, self._running
        if process is None or running is None:
            return
        try:
            for identity in list(self._calls):
                self._send({"method": "cancel", "params": {"id": identity}})
            assert process.stdin is not None
            process.stdin.close()
            for signal in (process.terminate, process.kill):
                ended, _ = await asyncio.wait([running], timeout=grace)
                if ended:
                    break
                with contextlib.suppress(ProcessLookupError):
                    signal()
            await running
        finally:
            if process.returncode is None:  # Cancelled while waiting: do not leave it behind.
                with contextlib.suppress(ProcessLookupError):
                    process.kill()

    async def load(
        self,
        url: str,
        *,
        key: Optional[str] = None,
        priority: Optional[str] = None,
        group: Optional[str] = None,
        slot: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
        cache: Optional[str] = None,
        store: Optional[str] = None,
        deliver: Optional[str] = None,
        save_to: Optional[Union[str, os.PathLike[str]]] = None,
        validate: Optional[str] = None,
        events: Optional[Sequence[str]] = None,
        timeout_ms: Optional[int] = None,
        deadline_ms: Optional[int] = None,
        retries: Optional[int] = None,
        max_bytes: Optional[int] = None,
        retry_failed: Optional[bool] = None,
        response: Optional[bool] = None,
        digest: Optional[str] = None,
        transform: Optional[Mapping[str, Any]] = None,
        placeholder: Optional[bool] = None,
        on_event: Optional[EventHandler] = None,
    ) -> Image:
        """Loads one image. Cancelling the task cancels the load. With `on_event`, `events` defaults to all but `preview`."""
        if events is None and on_event is not None:
            events = ("started", "progress", "retrying", "cached")
        params = {
            "url": url,
            "key": key,
            "priority": priority,
            "group": group,
            "slot": slot,
            "headers": headers,
            "cache": cache,
            "store": store,
            "deliver": deliver,
            "saveTo": os.path.abspath(save_to) if save_to is not None else None,
            "validate": validate,
            "events": events,
            "timeoutMs": timeout_ms,
            "deadlineMs": deadline_ms,
            "retries": retries,
            "maxBytes": max_bytes,
            "retryFailed": retry_failed,
            "response": response,
            "digest": digest,
            "transform": transform,
            "placeholder": placeholder,
        }
        given = {name: value for name, value in params.items() if value is not None}
        return Image.of(await self.call("load", given, on_event=on_event))

    async def load_events(self, url: str, **params: Any) -> AsyncGenerator[Event, None]:
        """Loads one image and yields its events; the last is `completed` with the result.

        Takes the parameters of `load`. Closing the iterator cancels a load that is still under way.
        """
        events: asyncio.Queue[Optional[Event]] = asyncio.Queue()
        loading = asyncio.ensure_future(self.load(url, on_event=events.put_nowait, **params))
        loading.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            yield Event("completed", (await loading).wire)
        finally:
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)

    async def release(self, pixels: Pixels) -> None:
        """Gives pixels back to the worker."""
        await self.call("release", {"path": str(pixels.path)})

    async def prefetch(
        self,
        urls: Sequence[Union[str, Mapping[str, Any]]],
        *,
        on_event: Optional[EventHandler] = None,
        **params: Any,
    ) -> Mapping[str, Any]:
        """Brings images into the cache; `params` are those of the protocol. Returns the counts."""
        if on_event is not None:
            params.setdefault("events", ["progress"])
        result: Mapping[str, Any] = await self.call("prefetch", {"urls": urls, **params}, on_event=on_event)
        return result

    async def call(
        self, method: str, params: Optional[Mapping[str, Any]] = None, *, on_event: Optional[EventHandler] = None
    ) -> Any:
        """Any method of the protocol, by its name; returns its result as it came."""
        if self._running is None or self._process is None:
            raise RuntimeError("start this ImageWorker first: async with ImageWorker() as worker")
        if self._running.done():
            raise WorkerExited(self._process.returncode, self._log)
        self._last_id += 1
        identity = self._last_id
        call = _Call(asyncio.get_running_loop().create_future(), on_event)
        self._calls[identity] = call
        try:
            self._send({"id": identity, "method": method, "params": params or {}})
            return await call.result
        except asyncio.CancelledError:
            if identity in self._calls:
                self._send({"method": "cancel", "params": {"id": identity}})
            raise
        finally:
            self._calls.pop(identity, None)

    def notify(self, method: str, params: Optional[Mapping[str, Any]] = None) -> None:
        """Sends a request that is carried out but not answered."""
        self._send({"method": method, "params": params or {}})

    def _send(self, request: Mapping[str, Any]) -> None:
        """Appends to the pipe's buffer and never waits. The buffer is bounded by the calls that wait for an answer."""
        line = json.dumps({"jsonrpc": "2.0", **request}, separators=(",", ":"), default=os.fspath)
        assert self._process is not None and self._process.stdin is not None
        if not self._process.stdin.is_closing():
            self._process.stdin.write(line.encode("ascii") + b"\n")

    async def _run(self, process: asyncio.subprocess.Process) -> None:
        """Reads until the worker is gone, then fails what is pending."""
        assert process.stdout is not None and process.stderr is not None
        try:
            await asyncio.gather(
                _each_line(process.stdout, self._receive), _each_line(process.stderr, self._keep_log)
            )
            await process.wait()
        finally:
            for call in self._calls.values():
                if not call.result.done():
                    call.result.set_exception(WorkerExited(process.returncode, self._log))

    def _receive(self, line: bytes) -> None:
        message = json.loads(line)
        if "method" in message:
            self._receive_event(Event(message["method"], message.get("params", {})))
            return
        call = self._calls.get(message["id"]) if message["id"] is not None else None
        if call is None or call.result.done():
            if message.get("error") and message["id"] is None:
                logger.error("the worker refused a line: %s", message["error"]["message"])
            return
        if "error" in message:
            error = message["error"]
            call.result.set_exception(ImageWorkerError(error["code"], error["message"], error.get("data", {})))
        else:
            call.result.set_result(message["result"])

    def _receive_event(self, event: Event) -> None:
        call = self._calls.get(event.params.get("id", 0))
        handler = call.on_event if call else self._on_event
        if handler is None:
            return
        try:
            handler(event)
        except Exception as error:  # A handler's mistake must not stop the reading.
            context = {"message": f"on_event failed for {event.name}", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    def _keep_log(self, line: bytes) -> None:
        text = line.decode(errors="replace")
        self._log.append(text)
        logger.info("%s", text)


async def _each_line(reader: asyncio.StreamReader, receive: Callable[[bytes], None]) -> None:
    """Lines of any length: `readline` would give up at its limit, an inline image may be longer."""
    start = bytearray()
    while chunk := await reader.read(1 << 18):
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = bytes(start) + lines[0]
            start.clear()
        start += rest
        for line in lines:
            if line:
                receive(line)
