"""ImageWorker for Python: one file, standard library only, Python 3.9 or newer.

    async with ImageWorker() as worker:
        image = await worker.load("https://example.com/cat.jpg", priority="high")
        print(image.path, image.width, image.height)

    with BlockingImageWorker() as worker:  # the same for scripts and threads
        image = worker.load("https://example.com/cat.jpg")

The rules this client keeps, so that a program built on it need not know them:

- Reading never waits for writing: all requests of one turn of the loop go to the pipe in one write, or wait while that is full.
- A line may be of any length; the worker's log on standard error is always read.
- Each call ends once: in a result, in an ImageWorkerError, or in the task's own cancellation, which cancels the load.
- When the worker dies, every pending call fails with WorkerExited, which names the loads lost with it. The next call starts
  another worker, after a pause that doubles with each death in a row. After `max_restarts` of them calls fail at once; once
  `longest_pause` has passed since the last death, one call tries again.
- A handler that raises is reported to the loop's exception handler, and all goes on. SystemExit ends the program as it always
  does, on the main thread.
- Leaving the `with` block ends the worker: input is closed, then a wait, then SIGTERM, then SIGKILL. A BlockingImageWorker that is
  dropped ends its worker like that, too, and nobody waits. A host that exits or is killed takes the worker along, because its
  pipes close. Ctrl-C reaches the host alone: the worker has a session of its own.
- After a fork the child has nothing of the parent's worker; a fork waits while another thread starts the process. A
  BlockingImageWorker starts one of its own there when it is used; one that was closed stays so.

The protocol is in protocol/README.md.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import contextlib
import functools
import itertools
import json
import logging
import mmap
import os
import shutil
import sys
import threading
import time
import weakref
from collections import deque
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from queue import Empty, SimpleQueue
from subprocess import PIPE, Popen
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    AsyncGenerator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Literal,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    TypedDict,
    TypeVar,
    Union,
)

if TYPE_CHECKING:
    import numpy  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import PIL.Image  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from typing_extensions import Unpack

__all__ = [
    "BlockingImageWorker",
    "CacheError",
    "CancelledByRequest",
    "Crop",
    "DecodingError",
    "ErrorKind",
    "Event",
    "Image",
    "ImageWorker",
    "ImageWorkerError",
    "LifecycleError",
    "LoadParams",
    "NetworkError",
    "Pixels",
    "PrefetchItem",
    "PrefetchParams",
    "PrefetchResult",
    "RequestError",
    "Transform",
    "WorkerExited",
    "find_worker",
]

logger = logging.getLogger("imageworker")

Priority = Literal["lowest", "low", "normal", "high", "highest"]
CacheMode = Literal["default", "no-store", "reload", "no-cache", "force-cache", "only-if-cached", "refresh"]
LoadEventName = Literal["started", "progress", "retrying", "preview", "cached"]
PrefetchEventName = Literal["progress", "completed", "failed"]
EventName = Literal["started", "progress", "retrying", "cached", "preview", "completed", "failed"]
Format = Literal["jpeg", "png", "gif", "webp", "avif", "heic", "jxl", "jp2", "tiff", "bmp", "ico", "svg"]
Method = Literal[
    "initialize", "load", "prefetch", "cancel", "prioritize", "pause", "resume", "query", "store", "clear", "release",
    "stats", "configure", "shutdown",
]  # fmt: skip
ErrorKind = Literal[
    "parseError", "invalidRequest", "methodNotFound", "invalidParams", "internal",
    "cancelled",
    "resolve", "connect", "tls", "timeout", "http", "redirects", "truncated", "tooLarge", "blockedAddress",
    "recentlyFailed", "network",
    "notCached", "diskFull", "io",
    "notAnImage", "unsupportedFormat", "corrupt", "tooManyPixels", "decoderCrashed", "decodeTimeout", "digestMismatch",
    "shuttingDown", "overloaded",
    "workerExited",
]  # fmt: skip
StrPath = Union[str, "os.PathLike[str]"]


# Errors


class ImageWorkerError(Exception):
    """An error that the worker answered. Its class is the family; switch on `kind` for more. protocol/README.md lists all."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.code = code
        self.kind: ErrorKind = data.get("kind", "internal")
        self.retryable: bool = data.get("retryable", False)
        self.url: Optional[str] = data.get("url")
        self.data = data

    def __reduce__(self) -> tuple[Any, ...]:
        """Support for pickle and copy, which would call `__init__` with the message alone."""
        return _without_init, (type(self), *self.args), self.__dict__

    @staticmethod
    def of(error: Mapping[str, Any]) -> ImageWorkerError:
        """The error that an answer carries, in the class of its family."""
        code = error["code"]
        family = CancelledByRequest if code == -32800 else _FAMILIES.get(code // 1000, RequestError)
        return family(code, error["message"], error.get("data", {}))


class RequestError(ImageWorkerError):
    """The request is invalid: -32700 to -32600."""


class CancelledByRequest(ImageWorkerError):
    """The load was cancelled by another request: `cancel`, a new URL in its slot, or the end of the worker."""


class NetworkError(ImageWorkerError):
    """The transfer failed: 2001 and on."""


class CacheError(ImageWorkerError):
    """The cache has nothing, or the disk failed: 3001 and on."""


class DecodingError(ImageWorkerError):
    """The content is not an image, or cannot be decoded: 4001 and on."""


class LifecycleError(ImageWorkerError):
    """The worker takes no more requests, or none now: 5001 and on."""


class WorkerExited(LifecycleError):
    """The worker ended before it answered, or could not be started again. `lost` has the URLs of all loads that ended with it.

    `code` is 0; `data` has its exit status (negative for a signal, None if it did not start) and the end of its log. It is
    `retryable` unless no worker will be started any more.
    """

    def __init__(
        self, status: Optional[int], log: Sequence[str], url: Optional[str] = None, lost: Sequence[str] = (), **data: Any
    ) -> None:
        message = f"the worker ended (status {status})" if status is not None else "the worker did not start"
        if log:
            message += f": {log[-1]}"
        about = {"kind": "workerExited", "retryable": True, "exitStatus": status, "log": list(log), "url": url}
        super().__init__(0, message, {**about, **data})
        self.lost = lost


def _without_init(family: type[ImageWorkerError], *arguments: Any) -> ImageWorkerError:
    return family.__new__(family, *arguments)


_FAMILIES = {2: NetworkError, 3: CacheError, 4: DecodingError, 5: LifecycleError}


# Parameters and results


class Crop(TypedDict):
    """In pixels of the oriented source."""

    x: int
    y: int
    width: int
    height: int


class Transform(TypedDict, total=False):
    """The members of `transform`, by the protocol's names. See "Transforms" in protocol/README.md."""

    width: int
    height: int
    fit: Literal["inside", "contain", "cover", "fill"]
    enlarge: bool
    rotate: Literal["auto", "none"]
    crop: Crop
    format: Literal["keep", "jpeg", "png", "webp", "avif"]
    quality: int
    frames: Literal["first", "all"]
    background: str
    blur: float
    grayscale: bool
    cornerRadius: int


class LoadParams(TypedDict, total=False):
    """The parameters of `load` except the URL, as in protocol/README.md, in Python's spelling."""

    key: str
    priority: Priority
    group: str
    slot: str
    headers: Mapping[str, str]
    cache: CacheMode
    store: Literal["all", "memory", "disk", "none"]
    deliver: Literal["path", "data", "pixels", "none"]
    save_to: StrPath
    transform: Transform
    placeholder: bool
    validate: Literal["none", "header", "decode"]
    events: Sequence[LoadEventName]
    timeout_ms: int
    deadline_ms: int
    retries: int
    max_bytes: int
    retry_failed: bool
    response: bool
    digest: str


class PrefetchParams(TypedDict, total=False):
    """The parameters of `prefetch` except the URLs."""

    priority: Priority
    group: str
    headers: Mapping[str, str]
    transform: Transform
    events: Sequence[PrefetchEventName]


class _NamedItem(TypedDict):
    url: str


class PrefetchItem(_NamedItem, total=False):
    """A URL of a `prefetch` with parameters of its own."""

    key: str
    headers: Mapping[str, str]


class PrefetchError(TypedDict):
    url: str
    kind: ErrorKind


class PrefetchResult(TypedDict):
    """The numbers of items by outcome. `errors` has the first 100."""

    total: int
    downloaded: int
    cached: int
    failed: int
    cancelled: int
    bytes: int
    errors: Sequence[PrefetchError]


_WIRE_NAMES = {
    "save_to": "saveTo",
    "timeout_ms": "timeoutMs",
    "deadline_ms": "deadlineMs",
    "max_bytes": "maxBytes",
    "retry_failed": "retryFailed",
}
_ALL_EVENTS = ("started", "progress", "retrying", "cached")


class Event(NamedTuple):
    """An event before the result: `started`, `progress`, `retrying`, `preview`, `cached` …"""

    name: EventName
    params: Mapping[str, Any]
    image: Optional[Image] = None
    """The image of the `completed` event of `load_events`. Its pixels stay valid as long as this object exists."""


class Pixels:
    """Decoded pixels in memory shared with the worker: 8-bit sRGB, rows of `stride` bytes, straight alpha.

    They are the host's until `release`, which collecting the object does, too. An array or a picture made of them stays valid after
    that. Up to 1 MB is copied; more is mapped, which before Python 3.13 takes a descriptor until all that is made of it is collected.
    """

    def __init__(self, wire: Mapping[str, Any], release: Callable[[str], None]) -> None:
        self.width: int = wire["width"]
        self.height: int = wire["height"]
        self.stride: int = wire["stride"]
        self.channels: int = wire["channels"]
        """1 grey, 3 R G B, 4 R G B A."""
        self.path = Path(wire["path"])
        self._finalizer = weakref.finalize(self, release, wire["path"])
        try:
            self.memory = _content(self.path, wire["offset"], wire["bytes"])
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Returns the memory to the worker's budget. Later calls do nothing."""
        self._finalizer()

    def __enter__(self) -> Pixels:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def numpy(self) -> numpy.ndarray[Any, Any]:
        """An array of height x width x channels, uint8, without a copy. Needs numpy."""
        import numpy

        shape, strides = (self.height, self.width, self.channels), (self.stride, self.channels, 1)
        array: numpy.ndarray[Any, Any] = numpy.ndarray(shape, numpy.uint8, self.memory, strides=strides)
        return array

    def pil(self) -> PIL.Image.Image:
        """A Pillow image. Needs Pillow."""
        import PIL.Image

        mode = {1: "L", 3: "RGB", 4: "RGBA"}[self.channels]
        memory: Any = self.memory
        size = (self.width, self.height)
        picture: PIL.Image.Image = PIL.Image.frombuffer(mode, size, memory, "raw", mode, self.stride, 1)
        return picture


_COPIED = 1 << 20
_UNTRACKED: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) else {}


def _content(path: Path, start: int, size: int) -> memoryview:
    """The mapped part of a file. The file does not change, and may be removed from now on."""
    with open(path, "rb") as file:
        if size <= _COPIED:
            file.seek(start)
            return memoryview(file.read(size))
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ, **_UNTRACKED))[start : start + size]


class Placeholder(TypedDict):
    """A substitute to show until the image is loaded."""

    thumbhash: str
    """Base64; evanw.github.io/thumbhash."""
    color: str
    """The mean colour, as #rrggbb."""


class HTTPResponse(TypedDict):
    status: int
    headers: Mapping[str, Union[str, Sequence[str]]]
    """Lower-case names. `set-cookie` is a list."""


class _Original(TypedDict):
    bytes: int
    format: Format


class Source(_Original, total=False):
    """The original of a transformed image."""

    width: int
    height: int


class _Total(TypedDict):
    totalMs: float


class Timing(_Total, total=False):
    """Milliseconds since the request; `dnsMs`, `connectMs` and `tlsMs` are durations."""

    queuedMs: float
    dnsMs: float
    connectMs: float
    tlsMs: float
    firstByteMs: float


class Image:
    """A loaded image. `wire` is the complete result as the worker sent it; the other members read it.

    What need not be there is None. With a transform, all but `source` tells of the variant.
    """

    __slots__ = ("wire", "pixels")

    def __init__(self, wire: Mapping[str, Any], release: Callable[[str], None]) -> None:
        self.wire = wire
        self.pixels = Pixels(wire["pixels"], release) if "pixels" in wire else None

    def __repr__(self) -> str:
        size = f"{self.width} x {self.height}" if self.width else f"{self.size} bytes"
        return f"<Image {self.format or self.media_type} {size} {self.cache} {self.url or self.key}>"

    @property
    def url(self) -> Optional[str]:
        return self.wire.get("url")

    @property
    def final_url(self) -> Optional[str]:
        """The URL after redirects."""
        return self.wire.get("finalURL")

    @property
    def key(self) -> str:
        return str(self.wire["key"])

    @property
    def cache(self) -> Literal["miss", "memory", "disk", "revalidated", "stale"]:
        """The source of the image: `miss` is the network, `revalidated` a 304, `stale` a cached image that is not fresh."""
        place: Literal["miss", "memory", "disk", "revalidated", "stale"] = self.wire["cache"]
        return place

    @property
    def size(self) -> int:
        """Size of the content in bytes."""
        return int(self.wire["bytes"])

    @property
    def media_type(self) -> str:
        return str(self.wire["mediaType"])

    @property
    def format(self) -> Optional[Format]:
        return self.wire.get("format")

    @property
    def width(self) -> Optional[int]:
        return self.wire.get("width")

    @property
    def height(self) -> Optional[int]:
        return self.wire.get("height")

    @property
    def frames(self) -> int:
        return int(self.wire.get("frames", 1))

    @property
    def orientation(self) -> int:
        """As in EXIF: 1 is upright."""
        return int(self.wire.get("orientation", 1))

    @property
    def path(self) -> Optional[Path]:
        """A file whose bytes never change and that stays for at least 60 seconds."""
        return Path(self.wire["path"]) if "path" in self.wire else None

    @property
    def data(self) -> Optional[bytes]:
        return base64.b64decode(self.wire["data"]) if "data" in self.wire else None

    @property
    def placeholder(self) -> Optional[Placeholder]:
        return self.wire.get("placeholder")

    @property
    def source(self) -> Optional[Source]:
        return self.wire.get("source")

    @property
    def response(self) -> Optional[HTTPResponse]:
        return self.wire.get("response")

    @property
    def kept(self) -> bool:
        """False if the disk cache could not store the image."""
        return bool(self.wire.get("kept", True))

    @property
    def damaged(self) -> bool:
        """True if a decode found that the original is damaged. The decoded part is as in browsers."""
        return bool(self.wire.get("damaged", False))

    @property
    def attempts(self) -> int:
        return int(self.wire.get("attempts", 1))

    @property
    def timing(self) -> Optional[Timing]:
        return self.wire.get("timing")


EventHandler = Callable[[Event], None]
ExitHandler = Callable[[WorkerExited], None]


def find_worker(binary: Optional[StrPath] = None) -> str:
    """The worker to start: the argument, else $IMAGEWORKER, else this package's release build, else $PATH."""
    chosen = binary or os.environ.get("IMAGEWORKER")
    if chosen:
        return os.fspath(chosen)
    built = Path(__file__).resolve().parent.parent.parent / ".build" / "release" / "imageworker"
    found = str(built) if os.access(built, os.X_OK) else shutil.which("imageworker")
    if found is None:
        raise FileNotFoundError("imageworker was not found: build it (swift build -c release), or set IMAGEWORKER to its path")
    return found


# One worker process


class _Call(NamedTuple):
    result: asyncio.Future[Any]
    params: Mapping[str, Any]
    on_event: Optional[EventHandler]
    made: Callable[[Any], Any]
    """Makes the caller's value of the result. Called even if nobody waits, so that pixels are released when they are dropped."""
    refusal: Optional[Mapping[str, Any]] = None
    """The refusal of a line that may be the line of this call."""


class _Life:
    """One worker process from its start to its end: its pipes, and the calls that wait for it.

    It is started here, and not by the loop, which tells of the pipes only when it has connected them: a fork may come first.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        on_event: Optional[EventHandler],
        on_answer: Callable[[], None],
        on_end: ExitHandler,
        is_last: bool,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self.loop.create_future()
        self._on_event = on_event
        self._on_answer = on_answer
        self._on_end = on_end
        self._is_last = is_last
        self._is_ending = False
        self._pipes: dict[int, Any] = {}
        self._left: set[object] = {1, 2, "process"}
        """The resources that must end before the life does."""
        self._calls: dict[int, _Call] = {}  # Until the answer, which comes to cancelled ones, too.
        self._last_id = 0
        self._outgoing: dict[object, bytes] = {}  # Lines in their order; that of a call by its id.
        self._is_full = True  # Until there is a pipe.
        self._asked_id = 0
        self._line: dict[int, bytearray] = {1: bytearray(), 2: bytearray()}
        self._log: deque[str] = deque(maxlen=20)
        with _starts:
            # In a session of its own, Ctrl-C at a terminal reaches only the host, which decides about its loads.
            self._process = Popen(arguments, bufsize=0, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True)
            self._files: tuple[Any, ...] = (self._process.stdin, self._process.stdout, self._process.stderr)
            _living.add(self)
        self._connecting = self.loop.create_task(self._connect())
        exited = weakref.WeakMethod(self._process_exited)
        threading.Thread(target=_await_exit, args=(self._process, self.loop, exited), daemon=True).start()

    async def _connect(self) -> None:
        try:
            for descriptor, file in enumerate(self._files):
                connect: Any = self.loop.connect_read_pipe if descriptor else self.loop.connect_write_pipe
                self._pipes[descriptor], _ = await connect(functools.partial(_Pipe, self, descriptor), file)
        except BaseException as error:
            self._log.append(f"its pipes cannot be used: {error!r}")
            self._close()
            for descriptor, file in enumerate(self._files):
                if descriptor not in self._pipes:
                    file.close()
                    self._end_without(descriptor)
            raise
        self.resume_writing()

    # Requests

    @property
    def pid(self) -> int:
        return self._process.pid

    async def call(
        self, method: str, params: Mapping[str, Any], on_event: Optional[EventHandler], made: Callable[[Any], Any]
    ) -> Any:
        if self.ended.done():
            raise self._exit(params.get("url"), ())
        self._last_id += 1
        identity = self._last_id
        self._send(identity, {"id": identity, "method": method, "params": params})
        call = self._calls[identity] = _Call(self.loop.create_future(), params, on_event, made)
        try:
            return await call.result
        except asyncio.CancelledError:
            if self._outgoing.pop(identity, None) is not None:
                del self._calls[identity]  # The worker never hears of it.
            elif identity in self._calls:
                self.tell("cancel", {"id": identity})
            raise

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._send(object(), {"method": method, "params": params})

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Sends a request of the client itself. It has an id, so that the host gets no event of it; its answer is ignored."""
        self._last_id += 1
        self._send(object(), {"id": self._last_id, "method": method, "params": params})

    def _send(self, key: object, request: Mapping[str, Any]) -> None:
        """Writes at the end of this turn of the loop, or once the pipe has room. Never waits. The pending calls bound the buffer."""
        line = _encode(request)
        if not self._outgoing:
            self.loop.call_soon(self._flush)
        self._outgoing[key] = line

    def _flush(self) -> None:
        if self._is_full:
            return
        lines, self._outgoing = self._outgoing, {}
        pipe = self._pipes.get(0)
        if lines and pipe is not None and not pipe.is_closing():
            pipe.write(b"".join(lines.values()))

    async def end(self, grace: float) -> None:
        """Ends the process in steps of `grace` seconds: cancel and close input, SIGTERM, SIGKILL."""
        self._is_ending = True
        try:
            await asyncio.wait([self._connecting])
            for identity in list(self._calls):
                self.tell("cancel", {"id": identity})
            self.resume_writing()
            if 0 in self._pipes:
                self._pipes[0].close()
            for signal in (self._process.terminate, self._process.kill):
                if (await asyncio.wait([self.ended], timeout=grace))[0]:
                    break
                with contextlib.suppress(ProcessLookupError):
                    signal()
            await asyncio.wait([self.ended])
        finally:
            self._close()  # Also when this wait itself is cancelled.

    def leave_to_parent(self) -> None:
        """Closes a forked child's copies of the pipes. Otherwise the worker would not notice the end of its host."""
        for file in self._files:
            file.close()

    def _close(self) -> None:
        """Closes the pipes, and kills the process if it still runs."""
        for pipe in self._pipes.values():
            pipe.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def _exit(self, url: Optional[str], lost: Sequence[str]) -> WorkerExited:
        status = self._process.returncode
        is_hopeless = self._is_last or self._is_ending or status in _HOPELESS
        return WorkerExited(status, self._log, url, lost, retryable=not is_hopeless)

    # Output and end of the process

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._flush()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Splits lines of any length without joining the start of a long one again and again."""
        first, newline, rest = data.partition(b"\n")
        start = self._line[fd]
        start += first
        if not newline:
            return
        *lines, self._line[fd] = [bytes(start), *rest.split(b"\n")[:-1], bytearray(rest[rest.rfind(b"\n") + 1 :])]
        receive = self._receive if fd == 1 else self._keep_log
        for line in lines:
            if line:
                try:
                    receive(line)
                except Exception:
                    logger.exception("not understood: %r", line[:40])  # What follows may be a URL.

    def pipe_connection_lost(self, fd: int) -> None:
        if fd != 0:
            self.pipe_data_received(fd, b"\n")  # Ends a last line that has no end of its own.
        if fd == 1 or (fd == 0 and not self._is_ending):
            self._end_soon()
        self._end_without(fd)

    def _process_exited(self) -> None:
        self._end_soon()
        self._end_without("process")

    def _end_soon(self) -> None:
        """Ends a life whose pipes stay open after the process has ended, or whose process runs on after it closed a pipe."""
        self.loop.call_later(1.0, self._close)

    def _end_without(self, part: object) -> None:
        """Ends the life once the process has ended and all its output has been read."""
        self._left.discard(part)
        if self._left or self.ended.done():
            return
        calls = [call for call in self._calls.values() if not call.result.done()]
        self._calls.clear()
        lost = [url for call in calls for url in _urls(call.params)]
        for call in calls:
            call.result.set_exception(self._exit(call.params.get("url"), lost))
        self._close()
        self.ended.set_result(None)
        self._on_end(self._exit(None, lost))

    def _receive(self, line: bytes) -> None:
        message = json.loads(line)
        if "method" in message:
            return self._receive_event(Event(message["method"], message.get("params", {})))
        identity = message["id"]
        self._on_answer()
        if identity is None:
            return self._ask_whose(message["error"])
        call = self._calls.pop(identity, None)
        if call is None:
            return
        try:
            outcome = self._error(call, message["error"]) if "error" in message else call.made(message["result"])
        except Exception as error:
            data = {"kind": "internal", "retryable": False, "url": call.params.get("url")}
            outcome = RequestError(-32603, f"the answer cannot be used: {error!r}", data)
            outcome.__cause__ = error
        if call.result.done():
            return  # It was cancelled.
        if isinstance(outcome, ImageWorkerError):
            call.result.set_exception(outcome)
        else:
            call.result.set_result(outcome)

    def _ask_whose(self, refusal: Mapping[str, Any]) -> None:
        """Finds the call whose line the worker could not read: the refusal has no id.

        Each id is sent again, without a method. One in flight is refused a second time, with the id in `data`, and goes on;
        one that the worker has never read is answered, and its call ends in the refusal.
        """
        if "id" in refusal["data"]:
            return
        logger.error("the worker refused a line: %s", refusal["message"])
        for identity, call in self._calls.items():
            self._calls[identity] = call._replace(refusal=refusal)
            if identity > self._asked_id:
                self._send(object(), {"id": identity})
        self._asked_id = self._last_id

    def _error(self, call: _Call, error: Mapping[str, Any]) -> ImageWorkerError:
        if error["code"] == -32600 and call.refusal:  # The answer to what `_ask_whose` sent.
            error = {**call.refusal, "data": {**call.refusal["data"], "url": call.params.get("url")}}
        return ImageWorkerError.of(error)

    def _receive_event(self, event: Event) -> None:
        call = self._calls.get(event.params.get("id", 0))
        handler = call.on_event if call and not call.result.done() else self._on_event
        if handler is not None:
            _tell(handler, event, f"on_event failed for {event.name}")

    def _keep_log(self, line: bytes) -> None:
        text = line.decode(errors="replace")
        self._log.append(text)
        logger.info("%s", text)


class _Pipe(asyncio.Protocol):
    """One of the three pipes, by its number in the worker."""

    def __init__(self, life: _Life, fd: int) -> None:
        self._life = life
        self._fd = fd

    def pause_writing(self) -> None:
        self._life.pause_writing()

    def resume_writing(self) -> None:
        self._life.resume_writing()

    def data_received(self, data: bytes) -> None:
        self._life.pipe_data_received(self._fd, data)

    def connection_lost(self, error: Optional[Exception]) -> None:
        self._life.pipe_connection_lost(self._fd)


def _await_exit(
    process: Popen[bytes], loop: asyncio.AbstractEventLoop, exited: weakref.WeakMethod[Callable[[], None]]
) -> None:
    """Runs on a thread of its own. It holds no reference to the life, so that the pipes of a dropped life close."""
    process.wait()
    tell = exited()
    if tell is not None:
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            loop.call_soon_threadsafe(tell)


# Sorting fails if one key is text and another is not: 1 and "1" would become a duplicate name, which the worker refuses.
_to_json = json.JSONEncoder(separators=(",", ":"), default=os.fspath, ensure_ascii=False, allow_nan=False, sort_keys=True).encode


def _encode(request: Mapping[str, Any]) -> bytes:
    """The line of a request. Values that JSON does not have (NaN, half a surrogate pair, an object) are refused here."""
    try:
        return (_to_json(request) + "\n").encode()
    except (TypeError, ValueError, RecursionError) as error:
        data = {"kind": "invalidParams", "retryable": False, "url": request["params"].get("url")}
        raise RequestError(-32602, f"the parameters must be JSON: {error}", data) from error


def _urls(params: Mapping[str, Any]) -> Iterator[str]:
    """The URLs of a request: one of a load, all of a prefetch."""
    urls = params.get("urls")
    for item in (params, *(urls if isinstance(urls, (list, tuple)) else ())):
        url = item.get("url") if isinstance(item, Mapping) else item
        if isinstance(url, str):
            yield url


_starts = threading.RLock()
"""Held while a process is being started, and by a fork. Otherwise a forked child would inherit pipes that are not yet listed."""
_living: weakref.WeakSet[_Life] = weakref.WeakSet()
_blocking: weakref.WeakSet[BlockingImageWorker] = weakref.WeakSet()


def _leave_to_parent() -> None:
    """Runs in a forked child, before it can start a thread."""
    _starts.release()
    for life in list(_living):
        life.leave_to_parent()
    _living.clear()
    for worker in list(_blocking):
        worker._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_starts.acquire, after_in_parent=_starts.release, after_in_child=_leave_to_parent)


@atexit.register
def _close_all() -> None:
    for worker in list(_blocking):
        worker.close(grace=1.0)


_Told = TypeVar("_Told")


def _tell(handler: Callable[[_Told], None], what: _Told, complaint: str) -> None:
    """Calls a handler of the host. Its exceptions must end neither the reading nor the loop."""
    try:
        handler(what)
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit) and threading.current_thread() is threading.main_thread():
            raise  # Elsewhere it would end a thread alone, which is the worker's.
        asyncio.get_running_loop().call_exception_handler({"message": complaint, "exception": error})


# The worker, for asyncio


class ImageWorker:
    """A worker for one event loop. Use it in `async with`."""

    def __init__(
        self,
        options: Sequence[str] = (),
        *,
        binary: Optional[StrPath] = None,
        on_event: Optional[EventHandler] = None,
        on_exit: Optional[ExitHandler] = None,
        max_restarts: int = 5,
        longest_pause: float = 10.0,
    ) -> None:
        """
        - `options` are the worker's own, such as ["--max-per-host", "8"].
        - `on_event` gets events of no pending call; `on_exit` each unexpected end, with the loads `lost`.
        - `max_restarts`: how often it may die in a row, without one answer in between, and be started again. After that, calls fail at
          once; once `longest_pause` has passed since the last death, one call tries again. 0 never restarts.
        - `longest_pause`: the pause before a restart is 0.1 s, doubling to this many seconds.
        """
        self._arguments = [find_worker(binary), *options]
        self._on_event = on_event
        self._on_exit = on_exit
        self._max_restarts = max_restarts
        self._longest_pause = longest_pause
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._life: Optional[_Life] = None  # While it lives.
        self._starting: Optional[asyncio.Task[Optional[_Life]]] = None
        self._end: Optional[WorkerExited] = None
        self._deaths = 0
        self._next_start = 0.0
        self._is_closed = False

    async def __aenter__(self) -> ImageWorker:
        await self.start()
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()

    @property
    def pid(self) -> Optional[int]:
        return self._life.pid if self._life else None

    async def start(self) -> None:
        if self._loop is not None or self._is_closed:
            raise RuntimeError("an ImageWorker must be started only once, and not after close")
        self._loop = asyncio.get_running_loop()
        self._starting = self._loop.create_task(self._start())
        try:
            await self._started(None)
        except (Exception, asyncio.CancelledError):
            await self.close()  # It may run by now.
            raise

    async def close(self, grace: float = 5.0) -> None:
        """Ends the worker. Calls still pending are cancelled; earlier notifications are carried out if `grace` suffices.

        Each step (close input, SIGTERM, SIGKILL) gets `grace` seconds.
        """
        if self._loop is not None:
            self._check_loop()
        self._is_closed = True
        try:
            if self._starting is not None:
                self._starting.cancel()
                await asyncio.wait([self._starting])
        finally:  # Also when this wait is cancelled, as it is where a task is cancelled twice.
            if self._life is not None:
                await self._life.end(grace)

    async def load(
        self, url: str, *, on_event: Optional[EventHandler] = None, **params: Unpack[LoadParams]
    ) -> Image:
        """Loads one image. Cancelling the task cancels the load. With `on_event`, `events` defaults to all but `preview`."""
        request: dict[str, Any] = {"url": url}
        for name, value in params.items():
            request[_WIRE_NAMES.get(name, name)] = value
        if "save_to" in params:
            request["saveTo"] = os.fsdecode(os.path.abspath(params["save_to"]))
        if on_event is not None:
            request.setdefault("events", _ALL_EVENTS)
        image: Image = await self._call("load", request, on_event, lambda wire: Image(wire, self._release))
        return image

    async def load_events(self, url: str, **params: Unpack[LoadParams]) -> AsyncGenerator[Event, None]:
        """Loads one image and yields its events; the last is `completed` with the result.

        Closing the iterator cancels a load that is still under way.
        """
        events: asyncio.Queue[Optional[Event]] = asyncio.Queue()
        loading = asyncio.ensure_future(self.load(url, on_event=events.put_nowait, **params))
        loading.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            image = await loading
            yield Event("completed", image.wire, image)
        finally:
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)

    async def prefetch(
        self,
        urls: Sequence[Union[str, PrefetchItem]],
        *,
        on_event: Optional[EventHandler] = None,
        **params: Unpack[PrefetchParams],
    ) -> PrefetchResult:
        """Loads images into the cache. Cancelling the task cancels the remaining loads. With `on_event`, `events` defaults to `progress`."""
        if on_event is not None:
            params.setdefault("events", ["progress"])
        result: PrefetchResult = await self.call("prefetch", {"urls": urls, **params}, on_event=on_event)
        return result

    async def call(
        self, method: Method, params: Optional[Mapping[str, Any]] = None, *, on_event: Optional[EventHandler] = None
    ) -> Any:
        """Any method of the protocol, by its name; returns its result as it came."""
        return await self._call(method, params or {}, on_event, lambda result: result)

    def notify(self, method: Method, params: Optional[Mapping[str, Any]] = None) -> None:
        """Sends a request that is carried out but not answered. Lost when the worker is dead."""
        if self._life is not None:
            self._check_loop()
            self._life.notify(method, params or {})

    async def _call(
        self, method: str, params: Mapping[str, Any], on_event: Optional[EventHandler], made: Callable[[Any], Any]
    ) -> Any:
        if self._is_closed or self._loop is None:
            raise RuntimeError("use this ImageWorker in `async with`, or between start and close")
        self._check_loop()
        life = self._life or await self._started(params.get("url"))
        return await life.call(method, params, on_event, made)

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("this ImageWorker must be used from the event loop that started it")

    def _release(self, path: str) -> None:
        """Called on any thread: the one that dropped the last reference to pixels."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # The loop is closed, and the worker with it.
                self._loop.call_soon_threadsafe(self._tell_of_release, path)

    def _tell_of_release(self, path: str) -> None:
        if self._life is not None:
            self._life.tell("release", {"path": path})

    # Start, end and restart

    async def _start(self) -> _Life:
        is_last = self._max_restarts == 0
        self._life = _Life(self._arguments, self._on_event, self._note_answer, self._note_end, is_last)
        return self._life

    async def _started(self, url: Optional[str]) -> _Life:
        """The running worker. All callers share one attempt to start it; none can cancel it, and each gets an error of its own."""
        starting = self._starting
        if starting is None or (starting.done() and self._end is not None):
            self._check_hope(url)
            starting = self._starting = asyncio.ensure_future(self._pause_and_start())
        await asyncio.wait([starting])
        if starting.cancelled():
            raise CancelledByRequest(-32800, "cancelled: closed", {"kind": "cancelled", "retryable": False, "url": url})
        life = starting.result()
        if life is None:
            raise self._dead(url)
        return life

    def _check_hope(self, url: Optional[str]) -> None:
        assert self._loop is not None and self._end is not None
        is_given_up = self._deaths > self._max_restarts and self._loop.time() < self._next_start
        if is_given_up or not self._end.retryable:
            raise self._dead(url)

    def _dead(self, url: Optional[str]) -> WorkerExited:
        """The reason of the last end, as an error for another call."""
        assert self._end is not None
        error = WorkerExited(self._end.data["exitStatus"], self._end.data["log"], url, retryable=self._end.retryable)
        error.__cause__ = self._end.__cause__
        return error

    async def _pause_and_start(self) -> Optional[_Life]:
        await asyncio.sleep(self._next_start - asyncio.get_running_loop().time())
        logger.warning("starting the worker again")
        try:
            return await self._start()
        except OSError as error:
            end = WorkerExited(None, [str(error)])
            end.__cause__ = error
            self._note_end(end)
            return None

    def _note_answer(self) -> None:
        self._deaths = 0

    def _note_end(self, end: WorkerExited) -> None:
        self._life, self._end = None, end
        if self._is_closed:
            return
        loop = asyncio.get_running_loop()
        self._deaths += 1
        pause = 0.1 * 2 ** min(self._deaths - 1, 20) if self._deaths <= self._max_restarts else self._longest_pause
        self._next_start = loop.time() + min(pause, self._longest_pause)
        # The log gets the number of URLs only: a URL may contain a password or a signature.
        logger.warning("%s; URLs lost with it: %d", end, len(end.lost))
        if self._on_exit is not None:
            loop.call_soon(_tell, self._on_exit, end, "on_exit failed")


_HOPELESS = (64, 66, 73)
"""Exit statuses after which a restart would fail again: an invalid option, an unusable cookie file or cache directory."""


# The worker, for scripts and threads

_Result = TypeVar("_Result")

_FIRST = 1000
"""Maximum number of concurrent loads of `load_all` while loads end."""
_FEW = 50
"""Ended loads in half a second below which `load_all` assumes that loads wait for servers in trouble."""


class BlockingImageWorker:
    """A worker for scripts and threads: its methods wait for their results. Any number of threads may share one.

    It starts when it is first used, and again in a forked child. The loop that it needs runs on a thread of its own.
    """

    def __init__(self, options: Sequence[str] = (), **settings: Any) -> None:
        """Takes the arguments of ImageWorker. Handlers are called on the loop's thread, and must not wait there for another call."""
        find_worker(settings.get("binary"))  # A missing binary is an error here and not of the first load.
        self._arguments = (tuple(options), settings)
        self._is_closed = False
        self._forget()
        _blocking.add(self)

    def _forget(self) -> None:
        """Resets the state, also in a forked child: the thread belongs to the parent, where another thread may hold the lock."""
        self._lock = threading.RLock()  # Held for moments; a signal handler that calls `close` may come in one of them.
        self._thread: Optional[_WorkerThread] = None

    def __enter__(self) -> BlockingImageWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> Optional[int]:
        thread = self._thread
        return thread.worker.pid if thread else None

    def close(self, grace: float = 5.0) -> None:
        """Ends the worker. Pending calls of other threads are cancelled."""
        self._check_thread()
        with self._lock:
            self._is_closed = True
            thread = self._thread
            if thread is not None:
                thread.end_soon(grace)
        if thread is not None and thread.is_alive():
            thread.join()

    def load(self, url: str, *, on_event: Optional[EventHandler] = None, **params: Unpack[LoadParams]) -> Image:
        """Loads one image. An exception such as KeyboardInterrupt while it waits cancels the load."""
        return self._wait(self._begin(lambda worker: worker.load(url, on_event=on_event, **params)))

    def load_all(
        self, urls: Iterable[str], *, at_once: int = 20_000, **params: Unpack[LoadParams]
    ) -> Iterator[tuple[str, Union[Image, ImageWorkerError]]]:
        """Loads many URLs and yields each with its image or error, in the order in which the loads end.

        A thousand are under way, so that no more than that wait for a slow caller. Where hardly any ends, since their servers are
        down, so are up to `at_once`: the others are not to wait for them. `urls` is read no faster than that.
        """
        if at_once < 1:
            raise ValueError("at_once must be 1 or more")
        ended: SimpleQueue[tuple[str, Union[Image, BaseException]]] = SimpleQueue()

        async def load(worker: ImageWorker, url: str) -> None:
            try:
                ended.put((url, await worker.load(url, **params)))
            except BaseException as error:
                ended.put((url, error))

        async def load_some(worker: ImageWorker, some: list[str]) -> None:
            await asyncio.gather(*(load(worker, url) for url in some))

        left = iter(urls)
        pending = came = 0
        limit, looked = min(at_once, _FIRST), time.monotonic()
        begun: list[Future[None]] = []
        try:
            while True:
                if time.monotonic() - looked > 0.5:
                    if not ended.empty():
                        limit = min(at_once, _FIRST)
                    elif came < _FEW:
                        limit = min(at_once, pending + _FIRST)
                    came, looked = 0, time.monotonic()
                # A piece has as many URLs as loads are under way: handing over a piece costs more than a load from the cache. If
                # `urls` is slow to read, neither the first loads nor ended ones must wait for a large piece.
                if ended.empty() or pending <= limit // 2:
                    some = list(itertools.islice(left, max(min(max(pending, 1), limit - pending), 0)))
                    if some:
                        begun = [future for future in begun if not future.done()]
                        begun.append(self._begin(functools.partial(load_some, some=some)))
                        pending += len(some)
                        if ended.empty():
                            continue
                if pending == 0:
                    return
                try:
                    url, outcome = ended.get(timeout=0.5)
                except Empty:
                    continue
                pending -= 1
                came += 1
                if not isinstance(outcome, (Image, ImageWorkerError)):
                    raise outcome
                yield url, outcome
        finally:
            for future in begun:
                future.cancel()

    def prefetch(
        self,
        urls: Sequence[Union[str, PrefetchItem]],
        *,
        on_event: Optional[EventHandler] = None,
        **params: Unpack[PrefetchParams],
    ) -> PrefetchResult:
        return self._wait(self._begin(lambda worker: worker.prefetch(urls, on_event=on_event, **params)))

    def call(
        self, method: Method, params: Optional[Mapping[str, Any]] = None, *, on_event: Optional[EventHandler] = None
    ) -> Any:
        """Any method of the protocol, by its name; returns its result as it came."""
        return self._wait(self._begin(lambda worker: worker.call(method, params, on_event=on_event)))

    def notify(self, method: Method, params: Optional[Mapping[str, Any]] = None) -> None:
        """Sends a request that is carried out but not answered. Lost when the worker is dead."""

        async def notify(worker: ImageWorker) -> None:
            worker.notify(method, params)

        self._wait(self._begin(notify))

    def _begin(self, work: Callable[[ImageWorker], Coroutine[Any, Any, _Result]]) -> Future[_Result]:
        self._check_thread()
        with self._lock:
            thread = self._running_thread()
        loop = thread.loop.result()
        with self._lock:  # What is begun here has begun when `close` tells the thread to end.
            self._check_open()
            future = asyncio.run_coroutine_threadsafe(work(thread.worker), loop)
        if not thread.is_alive():  # A signal handler has called `close` in between.
            future.cancel()
            self._check_open()
        return future

    def _running_thread(self) -> _WorkerThread:
        self._check_open()
        if self._thread is None or self._thread.has_ended:
            options, settings = self._arguments
            thread = _WorkerThread(ImageWorker(options, **settings), self)
            try:
                self._thread = thread
                thread.start()
            except BaseException:  # As Ctrl-C: whether it runs by now is not known.
                self._thread = None
                thread.end_soon(0)
                raise
        return self._thread

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("this BlockingImageWorker is closed")

    def _check_thread(self) -> None:
        if threading.current_thread() is self._thread:
            raise RuntimeError("a handler cannot wait for a call: it runs on the thread that the answer comes to")

    def _wait(self, future: Future[_Result]) -> _Result:
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


class _WorkerThread(threading.Thread):
    """The thread of a worker and of its loop, all three from `start` until `end_soon`, a failed start or an end of the loop.

    The end of the `owner`, whom nothing here keeps, is one, too.
    """

    def __init__(self, worker: ImageWorker, owner: BlockingImageWorker) -> None:
        super().__init__(name="imageworker", daemon=True)
        self.worker = worker
        self._owner = weakref.ref(owner, self._lose_owner)
        self.loop: Future[asyncio.AbstractEventLoop] = Future()
        """The worker, once it has started."""
        self._end: Future[float] = Future()

    @property
    def has_ended(self) -> bool:
        """The loop, once it has started."""
        return not self.is_alive() or (self.loop.done() and self.loop.exception() is not None)

    def end_soon(self, grace: float) -> None:
        """May be called before `start`. Never waits."""
        with contextlib.suppress(InvalidStateError):  # It ends already.
            self._end.set_result(grace)

    def _lose_owner(self, _: object) -> None:
        """Called on any thread: the one that collected the owner. In a forked child the thread is not alive."""
        if self.is_alive():
            self.end_soon(1.0)

    def run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if self.loop.done():
                raise
            self.loop.set_exception(error)

    async def _serve(self) -> None:
        await self.worker.start()
        self.loop.set_result(asyncio.get_running_loop())
        grace = 1.0
        try:
            grace = await asyncio.wrap_future(self._end)
        finally:  # Also when something has ended the loop.
            await self.worker.close(grace)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:  # All calls have ended; those who made them need some turns of the loop to see it.
            await asyncio.wait(others, timeout=grace)
