"""ImageWorker for Python: one file, standard library only, Python 3.9 or newer.

    async with ImageWorker(max_per_host=8) as worker:
        image = await worker.load("https://example.com/cat.jpg", priority="high")
        print(image.path, image.width, image.height)

    with BlockingImageWorker() as worker:  # the same for scripts and threads
        image = worker.load("https://example.com/cat.jpg")

Names are snake_case, times are seconds, sizes are bytes. None for a keyword means that it is not given.

A program that uses this client can rely on these rules:

- Reading never waits for writing. All requests of one turn of the event loop go to the pipe in one write, or wait while the pipe is full.
- A line may have any length. The client always reads the worker's log on standard error.
- Each call ends once: in a result, in an ImageWorkerError, or in the cancellation of its task, which cancels the load.
- When the worker dies, every pending call fails with WorkerExited, which names the lost URLs. The next call starts another worker, after
  a pause that doubles with each death in a row. After `max_restarts` deaths calls fail at once. Once `longest_pause` has passed since the
  last death, one call tries again. A new worker gets the options that `configure` has set.
- `load_row` and `load_all` send a load again that has ended with its worker, up to four times.
- A handler that raises is reported to the event loop's exception handler, and everything goes on. SystemExit ends the program on the main
  thread, as usual.
- The end of the `with` block ends the worker: the client closes its input and waits, then sends SIGTERM, then SIGKILL. A
  BlockingImageWorker that is garbage-collected ends its worker in the same way, without a wait. If the program exits or is killed, its
  pipes close, and the worker ends. The worker has a session of its own, so Ctrl-C reaches the program alone.
- After a fork the child has nothing of the parent's worker. A fork waits while another thread starts the process. In the child a
  BlockingImageWorker starts a worker of its own at its first call, unless it was closed before the fork.
- A BlockingImageWorker works with gevent, which may change the standard library before or after the import of this module. A call then
  blocks its greenlet alone.

README.md beside this file shows how to use it. protocol/reference.md describes the protocol.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import contextlib
import copy
import functools
import inspect
import itertools
import json
import logging
import math
import mmap
import os
import queue
import re
import selectors
import shutil
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter, deque
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    AsyncGenerator,
    Callable,
    ClassVar,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Literal,
    Mapping,
    NamedTuple,
    NoReturn,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    Type,
    TypedDict,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

if TYPE_CHECKING:
    import numpy  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import PIL.Image  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from typing_extensions import Concatenate, ParamSpec, Unpack

    _Params = ParamSpec("_Params")

__version__ = "0.1.0"
PROTOCOL_VERSION = 1

logger = logging.getLogger("imageworker")

Priority = Literal["lowest", "low", "normal", "high", "highest"]
CacheMode = Literal["default", "no-store", "reload", "no-cache", "force-cache", "only-if-cached", "refresh"]
Deliver = Literal["path", "data", "pixels", "none"]
LoadEventName = Literal["started", "progress", "retrying", "preview", "cached"]
PrefetchEventName = Literal["progress", "completed", "failed"]
EventName = Literal["started", "progress", "retrying", "cached", "preview", "completed", "failed"]
Format = Literal["jpeg", "png", "gif", "webp", "avif", "heic", "jxl", "jp2", "tiff", "bmp", "ico", "svg"]
Method = Literal[
    "initialize", "load", "prefetch", "probe", "process", "cancel", "prioritize", "pause", "resume", "query", "store",
    "clear", "release", "stats", "metrics", "configure", "trace", "shutdown",
]  # fmt: skip
ErrorKind = Literal[
    "parseError", "invalidRequest", "methodNotFound", "invalidParams", "internal",
    "cancelled",
    "resolve", "connect", "tls", "timeout", "http", "redirects", "truncated", "tooLarge", "blockedAddress",
    "recentlyFailed", "network", "robots",
    "notCached", "diskFull", "io",
    "notAnImage", "unsupportedFormat", "corrupt", "tooManyPixels", "decoderCrashed", "decodeTimeout", "digestMismatch",
    "unwanted",
    "shuttingDown", "overloaded",
    "workerExited", "protocolMismatch",
]  # fmt: skip
StrPath = Union[str, "os.PathLike[str]"]


# Errors


class ImageWorkerError(Exception):
    """A request ended in an error. Catch a class, or switch on `kind`. README.md lists both."""

    def __init__(self, message: str, data: Mapping[str, Any], code: Optional[int] = None) -> None:
        super().__init__(message)
        self.data = data
        """The error's data in the protocol's spelling."""
        self.code = code
        """The protocol's number. None if the error is the client's own."""

    @property
    def kind(self) -> ErrorKind:
        kind: ErrorKind = self.data.get("kind", "internal")
        return kind

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later. The worker has used up its own retries."""
        return bool(self.data.get("retryable", False))

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed later: it is retryable, or the error names a time."""
        return self.retryable or self.retry_after is not None

    @property
    def is_about_row(self) -> bool:
        """Whether the URL, its server or its image is at fault. Any other error is a fault of the run: other rows of a list get it, too."""
        return isinstance(self, (LoadError, RequestError))

    @property
    def url(self) -> Optional[str]:
        return self.data.get("url")

    @property
    def attempts(self) -> int:
        """The number of transfers that were tried."""
        return int(self.data.get("attempts", 1))

    @property
    def retry_after(self) -> Optional[float]:
        """Seconds to wait before the same request is sent again."""
        return self.data["retryAfterMs"] / 1000 if "retryAfterMs" in self.data else None

    @property
    def timing(self) -> Optional[Timing]:
        """The phases of the load. The last one is that in which it failed."""
        return _parsed(Timing, self.data["timing"]) if "timing" in self.data else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Support for pickle and copy, which would call `__init__` with the message alone."""
        return _without_init, (type(self), *self.args), self.__dict__

    @staticmethod
    def of(error: Mapping[str, Any]) -> ImageWorkerError:
        """The error of an answer in the class of its kind. A kind of a newer worker gets the class of its family."""
        code, data = error["code"], error.get("data", {})
        kind = _CLASSES.get(data.get("kind")) or _FAMILIES.get(code // 1000, ImageWorkerError)
        return kind(error["message"], data, code)


class LoadError(ImageWorkerError):
    """The image could not be loaded: the server, the network, the URL or the content is at fault."""

    @property
    def origin_down(self) -> bool:
        """Whether the load ended without a transfer because its server does not answer."""
        return bool(self.data.get("originDown", False))


class LoadTimeout(LoadError):
    """The load took too long."""

    @property
    def phase(self) -> Literal["connect", "firstByte", "idle", "slow", "deadline", "client"]:
        """The part of the load that took too long. `client`: the deadline was over, and the worker did not say so."""
        phase: Literal["connect", "firstByte", "idle", "slow", "deadline", "client"] = self.data["phase"]
        return phase


class HTTPStatusError(LoadError):
    """The server answered with a status other than 2xx."""

    @property
    def status(self) -> int:
        return int(self.data["status"])

    @property
    def response(self) -> Optional[HTTPResponse]:
        """The response's status and headers, if the load asked for them with `response=True`."""
        return _parsed(HTTPResponse, self.data["response"]) if "response" in self.data else None


class TransportError(LoadError):
    """The connection failed."""


class ResolveError(TransportError):
    """The host name has no address, or no name server answered."""


class ConnectError(TransportError):
    """No connection to the server or the proxy could be made."""


class TLSError(TransportError):
    """The TLS handshake failed, or the certificate is not trusted."""


class TruncatedError(TransportError):
    """The connection ended within the body."""


class TooManyRedirects(LoadError):
    """There were too many redirects, or a redirect to another scheme."""


class TooLarge(LoadError):
    """The body is larger than `max_bytes`, or the headers are too large."""


class BlockedAddress(LoadError):
    """The address is not globally routable, and `network` is `public`."""


class NotPermitted(LoadError):
    """The site does not allow it, and `robots="obey"`."""

    @property
    def rule(self) -> Optional[str]:
        """The rule of robots.txt or the header field."""
        return self.data.get("rule")


class RecentlyFailed(LoadError):
    """The same image failed permanently a short while ago. No transfer was made."""

    @property
    def failure(self) -> ErrorKind:
        """The kind of that failure."""
        kind: ErrorKind = self.data["failure"]
        return kind

    @property
    def first(self) -> ImageWorkerError:
        """That failure, as far as the worker remembers it."""
        data = {name: value for name, value in self.data.items() if name != "retryAfterMs"}
        return ImageWorkerError.of({"code": self.code, "message": str(self), "data": {**data, "kind": self.failure}})


class NotCached(LoadError):
    """The image is not in the cache, and the mode is `only-if-cached`."""


class ContentError(LoadError):
    """The content is not the image that was asked for, or cannot be decoded.

    `data` has the figures of the image and of the limit: `width`, `height`, `frames`, `limit`, `maxSide`, `wanted`, `format`."""

    @property
    def detected(self) -> Optional[str]:
        """The media type of the content, if it is recognisably something else than an image, or a raw photo (DNG)."""
        return self.data.get("detected")


class NotAnImage(ContentError):
    """The content is not an image, or is empty."""


class UnsupportedFormat(ContentError):
    """The image cannot be decoded here."""


class CorruptImage(ContentError):
    """The image is damaged and does not decode."""


class TooManyPixels(ContentError):
    """The image has more pixels than `max_pixels`."""


class DecoderCrashed(ContentError):
    """The decoder process died twice while it decoded this image."""


class DecodeTimeout(ContentError):
    """Decoding used more processor time than `decode_timeout`, or, if it is retryable, waited too long for the processor."""


class DigestMismatch(ContentError):
    """The content does not have the given digest."""


class Unwanted(ContentError):
    """The image does not have the properties of `want`."""


class StorageError(ImageWorkerError):
    """The disk failed."""


class DiskFull(StorageError):
    """The disk has no space for the image."""


class FileError(StorageError):
    """A file could not be read or written."""


class RequestError(ImageWorkerError):
    """The worker refused the request."""


class InvalidParams(RequestError):
    """A parameter is missing, unknown, of the wrong type or out of range."""

    @property
    def member(self) -> Optional[str]:
        """The parameter's name in the protocol, such as `transform.crop.height`."""
        return self.data.get("member")

    @property
    def is_about_row(self) -> bool:
        """A refused parameter other than the URL is wrong for every row."""
        return self.member in ("url", None)


class InvalidRequest(RequestError):
    """The line is not a request, or is longer than `max_line`."""


class ParseError(RequestError):
    """The line is not JSON that the worker can read."""


class MethodNotFound(RequestError):
    """The worker does not have the method."""


class Cancelled(ImageWorkerError):
    """The load was cancelled by another request: `cancel`, another URL in its slot, or the end of the worker."""


class InternalError(ImageWorkerError):
    """The worker or the client failed. Please report it."""


class WorkerError(ImageWorkerError):
    """The worker takes no more requests, or none now."""


class ShuttingDown(WorkerError):
    """The worker is about to exit."""


class Overloaded(WorkerError):
    """More loads than `max_queued` wait, or unreleased pixels leave no room. See `retry_after`."""

    @property
    def is_about_row(self) -> bool:
        """Whether the load has begun, or would wait for its server, such as for a long Crawl-delay. Otherwise the queue is full."""
        return "requestMs" in self.data.get("timing", {}) or (self.retry_after or 0) > _LONGEST_WAIT


_LONGEST_WAIT = 30.0
"""Seconds. A load that is to come again later than that waits for its server, and not for the worker's queue."""


def _log_message(line: str) -> str:
    """The text of a line of the log, which is a JSON object with `log_format="json"`."""
    with contextlib.suppress(ValueError, TypeError, KeyError):
        return str(json.loads(line)["message"])
    return line


class WorkerExited(WorkerError):
    """The worker ended before it answered, or could not be started again. `retryable` is False if no worker will be started any more."""

    def __init__(
        self, status: Optional[int], log: Sequence[str], url: Optional[str] = None, lost: Sequence[str] = (), retryable: bool = True
    ) -> None:
        message = f"the worker ended (status {status})" if status is not None else "the worker did not start"
        super().__init__(f"{message}: {_log_message(log[-1])}" if log else message, {"kind": "workerExited", "retryable": retryable, "url": url})
        self.exit_status = status
        """The exit status, negative for a signal. None if the worker did not start."""
        self.log: Sequence[str] = list(log)
        """The last lines of the worker's log."""
        self.lost: Sequence[str] = list(lost)
        """The URLs of all requests that ended with the worker. Their errors share one list."""

    def for_call(self, url: Optional[str], lost: Sequence[str] = ()) -> WorkerExited:
        """The same end as the error of another call, which has `lost` itself, and not a copy."""
        error = copy.copy(self)
        error.data, error.lost, error.__cause__ = {**self.data, "url": url}, lost, self.__cause__
        return error


class ProtocolMismatch(WorkerExited):
    """The worker speaks another version of the protocol than this client. The client has ended the worker."""

    def __init__(self, message: str, url: Optional[str] = None, lost: Sequence[str] = ()) -> None:
        super().__init__(None, [], url, lost, retryable=False)
        self.args = (message,)
        self.data = {**self.data, "kind": "protocolMismatch"}


def _without_init(kind: Type[ImageWorkerError], *arguments: Any) -> ImageWorkerError:
    return kind.__new__(kind, *arguments)


_CLASSES: Mapping[Any, Type[ImageWorkerError]] = {
    "parseError": ParseError,
    "invalidRequest": InvalidRequest,
    "methodNotFound": MethodNotFound,
    "invalidParams": InvalidParams,
    "internal": InternalError,
    "cancelled": Cancelled,
    "resolve": ResolveError,
    "connect": ConnectError,
    "tls": TLSError,
    "timeout": LoadTimeout,
    "http": HTTPStatusError,
    "redirects": TooManyRedirects,
    "truncated": TruncatedError,
    "tooLarge": TooLarge,
    "blockedAddress": BlockedAddress,
    "robots": NotPermitted,
    "recentlyFailed": RecentlyFailed,
    "network": TransportError,
    "notCached": NotCached,
    "diskFull": DiskFull,
    "io": FileError,
    "notAnImage": NotAnImage,
    "unsupportedFormat": UnsupportedFormat,
    "corrupt": CorruptImage,
    "tooManyPixels": TooManyPixels,
    "decoderCrashed": DecoderCrashed,
    "decodeTimeout": DecodeTimeout,
    "digestMismatch": DigestMismatch,
    "unwanted": Unwanted,
    "shuttingDown": ShuttingDown,
    "overloaded": Overloaded,
}
_FAMILIES: Mapping[int, Type[ImageWorkerError]] = {-33: RequestError, 2: LoadError, 3: StorageError, 4: ContentError, 5: WorkerError}


# Parameters. A mark tells how a value is written in the protocol.


class _Mark(NamedTuple):
    to_wire: Callable[[Any, str], Any]
    """Called with the value and the Python name."""
    from_wire: Callable[[Any], Any]
    suffix: str = ""
    """The end of the member's name in the protocol."""
    name: Optional[str] = None
    """The member's name in the protocol, if it does not follow from the Python name."""


def _milliseconds(seconds: float, name: str) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, not {seconds!r}")
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{name} must be a finite number of seconds and not negative (given: {seconds}); 0 is no limit")
    return round(seconds * 1000) or (1 if seconds else 0)  # 0 would mean that there is no limit.


def _per_second(rate: float, name: str) -> Optional[str]:
    if isinstance(rate, bool) or not isinstance(rate, (int, float)):
        raise TypeError(f"{name} must be a number of requests per second, not {rate!r}")
    if math.isnan(rate):
        raise ValueError(f"{name} must be a number of requests per second, not {rate}")
    return None if rate == math.inf else f"{rate}/s"


def _whole_seconds(seconds: float, name: str) -> int:
    return math.ceil(_milliseconds(seconds, name) / 1000)


def _base64(data: bytes, name: str) -> str:
    try:
        return base64.b64encode(data).decode()
    except TypeError:
        raise TypeError(f"{name} must be bytes, not {type(data).__name__}") from None


def _absolute(path: StrPath, name: str) -> str:
    try:
        return os.fsdecode(os.path.abspath(path))
    except TypeError:
        raise TypeError(f"{name} must be a path, not {path!r}") from None


def _advice(value: object) -> str:
    """The end of the message that refuses a value."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return ": decode it, such as with str(value, 'utf-8')"
    if hasattr(value, "__float__"):  # As one of numpy.
        return ": convert it with int() or float()"
    return ": convert it with list()" if hasattr(value, "__iter__") else ""


def _header_lines(headers: Mapping[str, Optional[str]], name: str) -> list[str]:
    if not isinstance(headers, Mapping):
        raise TypeError(f"{name} must be a dict of header fields, not {headers!r}")
    for field, value in headers.items():
        if not isinstance(field, str):
            raise TypeError(f"a name in {name} must be a string, not {field!r}{_advice(field) if isinstance(field, bytes) else ''}")
        if not isinstance(value, (str, type(None))):
            advice = ": convert it with str()" if isinstance(value, (int, float)) else _advice(value)
            raise TypeError(f"{name}: the value of {field} must be a string or None, not {value!r}{advice}")
    return [f"{field}:" if value is None else f"{field}: {value}" if value else f"{field};" for field, value in headers.items()]


def _headers(lines: Sequence[str]) -> dict[str, Optional[str]]:
    parts = [line.partition(":") for line in lines]
    return {field if colon else field[:-1]: value.strip() or None if colon else "" for field, colon, value in parts}


Seconds = Annotated[float, _Mark(_milliseconds, lambda value: value / 1000, "Ms")]
_AbsolutePath = Annotated[StrPath, _Mark(_absolute, Path)]
_FilePath = Annotated[StrPath, _Mark(lambda path, name: {"path": _absolute(path, name)}, lambda file: Path(file["path"]))]
_Base64 = Annotated[bytes, _Mark(_base64, base64.b64decode)]
_Mode = Annotated[int, _Mark(lambda mode, _: f"{mode:03o}", lambda text: int(text, 8))]
_Rate = Annotated[float, _Mark(_per_second, lambda text: math.inf if text is None else float(text[:-2]))]
_HeaderFields = Annotated[Mapping[str, Optional[str]], _Mark(_header_lines, _headers, name="header")]
_WholeSeconds = Annotated[float, _Mark(_whole_seconds, float, "Seconds")]


class Crop(TypedDict):
    """In pixels of the oriented source."""

    x: int
    y: int
    width: int
    height: int


class FocalPoint(TypedDict):
    """In fractions of the sides of the oriented source, from 0 to 1."""

    x: float
    y: float


Metadata = Literal[
    "dateTimeOriginal", "make", "model", "lensModel", "exposureTime", "fNumber", "iso", "focalLength", "focalLengthIn35mm", "artist", "copyright", "gps"
]


class Transform(TypedDict, total=False):
    """The worker changes the image in this order: orientation, crop, size, the rest. See "Transforms" in protocol/reference.md."""

    width: Optional[int]
    height: Optional[int]
    fit: Optional[Literal["inside", "contain", "cover", "fill"]]
    enlarge: Optional[bool]
    rotate: Optional[Literal["auto", "none"]]
    crop: Optional[Union[Crop, FocalPoint, Literal["attention", "entropy"]]]
    format: Optional[Literal["keep", "jpeg", "png", "webp", "avif", "gif", "jxl"]]
    quality: Optional[int]
    frames: Optional[Literal["first", "all"]]
    background: Optional[str]
    blur: Optional[float]
    grayscale: Optional[bool]
    corner_radius: Optional[int]
    metadata: Optional[Sequence[Metadata]]
    """The fields of the EXIF data that the result keeps. Default: none."""


class Want(TypedDict, total=False):
    """The properties that an image must have. A load of another image raises `Unwanted`."""

    min_width: Optional[int]
    min_height: Optional[int]
    max_width: Optional[int]
    max_height: Optional[int]
    max_pixels: Optional[int]
    """Of width x height, without frames."""
    max_frames: Optional[int]
    max_aspect_ratio: Optional[float]
    formats: Optional[Sequence[Format]]


class OutputParams(TypedDict, total=False):
    """A file to make of an image. See "Several files of one image" in protocol/images.md."""

    transform: Optional[Transform]
    strip: Optional[bool]
    """The bytes of the image without its metadata; the transform, if any, has nothing but `metadata`."""
    max_bytes: Optional[int]
    """The quality is lowered until the file fits."""
    min_quality: Optional[int]
    deliver: Optional[Literal["path", "data", "none"]]
    """Default: `none` with `save_to`, otherwise `path`."""
    save_to: Optional[_AbsolutePath]
    mode: Optional[_Mode]
    """The permissions of the saved file, such as 0o640, whatever the umask is."""


_Outputs = Annotated[
    Mapping[str, OutputParams],
    _Mark(lambda given, name: {key: _wire(OutputParams, each, f"{name}[{key!r}]", "member") for key, each in given.items()}, dict),
]


class LoadParams(TypedDict, total=False):
    """The parameters of `load` except `url`, `file` and `deliver`. See "load" in protocol/reference.md."""

    key: Optional[str]
    priority: Optional[Priority]
    group: Optional[str]
    slot: Optional[str]
    headers: Optional[Mapping[str, str]]
    cache: Optional[CacheMode]
    store: Optional[Literal["all", "memory", "disk", "none"]]
    save_to: Optional[_AbsolutePath]
    transform: Optional[Transform]
    placeholder: Optional[bool]
    facts: Optional[Sequence[Literal["container", "digest", "exif", "gps", "perceptualHash"]]]
    isolate: Optional[Literal["image", "tenant", "none"]]
    """Images that may be decoded in one process with this one: none, those of the group, or all that have none."""
    validate: Optional[Literal["none", "header", "decode"]]
    events: Optional[Sequence[LoadEventName]]
    timeout: Optional[Seconds]
    """Maximum time without a received byte; 0 is no limit."""
    deadline: Optional[Seconds]
    """Maximum time for the load, with the time in the queue and all retries; 0 is no limit."""
    retries: Optional[int]
    max_bytes: Optional[int]
    retry_failed: Optional[bool]
    response: Optional[bool]
    digest: Optional[str]
    want: Optional[Want]
    outputs: Optional[_Outputs]
    """Files to make of the image, by name. It is then not delivered itself."""


class _HasURL(TypedDict):
    url: str


class LoadItem(LoadParams, _HasURL):
    """A URL of `load_all` with parameters of its own."""


class ListParams(LoadParams, total=False):
    """The parameters of `load_all` except `deliver`. They hold for each row."""

    at_once: int
    passes: int
    counts: Counter[str]


class PrefetchParams(TypedDict, total=False):
    """The parameters of `prefetch` except the URLs."""

    priority: Optional[Priority]
    group: Optional[str]
    headers: Optional[Mapping[str, str]]
    want: Optional[Want]
    transform: Optional[Transform]
    events: Optional[Sequence[PrefetchEventName]]


class PrefetchItem(_HasURL, total=False):
    """A URL of `prefetch` with parameters of its own."""

    key: Optional[str]
    headers: Optional[Mapping[str, str]]


class ProbeParams(TypedDict, total=False):
    """The parameters of `probe` except `url`."""

    key: Optional[str]
    priority: Optional[Priority]
    group: Optional[str]
    slot: Optional[str]
    headers: Optional[Mapping[str, str]]
    cache: Optional[CacheMode]
    timeout: Optional[Seconds]
    deadline: Optional[Seconds]
    retries: Optional[int]
    retry_failed: Optional[bool]


class ProcessParams(TypedDict, total=False):
    """The parameters of `process` except the image. See "process" in protocol/reference.md."""

    priority: Optional[Priority]
    group: Optional[str]
    slot: Optional[str]
    deadline: Optional[Seconds]
    max_bytes: Optional[int]
    want: Optional[Want]
    validate: Optional[Literal["header", "decode"]]
    placeholder: Optional[bool]
    facts: Optional[Sequence[Literal["container", "digest", "exif", "gps", "perceptualHash"]]]
    isolate: Optional[Literal["image", "tenant", "none"]]
    outputs: Optional[_Outputs]


class CancelParams(TypedDict, total=False):
    """Give exactly one."""

    url: Optional[str]
    group: Optional[str]
    slot: Optional[str]
    all: Optional[Literal[True]]


class PrioritizeParams(TypedDict, total=False):
    """Give exactly one."""

    url: Optional[str]
    group: Optional[str]
    slot: Optional[str]


class QueryParams(TypedDict, total=False):
    """Give `url`, `key` or `file`."""

    url: Optional[str]
    key: Optional[str]
    file: Optional[_FilePath]
    transform: Optional[Transform]


class StoreParams(TypedDict, total=False):
    """The parameters of `store` except `deliver`. Give `url`, `key` or both, and `path` or `data`."""

    url: Optional[str]
    key: Optional[str]
    path: Optional[_AbsolutePath]
    data: Optional[_Base64]


class ClearParams(TypedDict, total=False):
    """Give at most one of the members after `tier`."""

    tier: Optional[Literal["memory", "disk", "all"]]
    url: Optional[str]
    key: Optional[str]
    file: Optional[_FilePath]
    prefix: Optional[str]
    host: Optional[str]
    older_than: Optional[_WholeSeconds]
    """Whole seconds. A fraction is rounded up."""
    expired: Optional[Literal[True]]
    failures: Optional[Literal[True]]


class ReleaseParams(TypedDict, total=False):
    """Give exactly one of `path` and `all`."""

    path: Optional[_AbsolutePath]
    all: Optional[Literal[True]]
    unused: Optional[bool]
    """Nobody reads the pixels through a mapping either: another image may get the memory."""


class Options(TypedDict, total=False):
    """The worker's options that can change at run time. See "Options" in protocol/reference.md. Sizes are bytes."""

    memory_limit: Optional[int]
    disk_limit: Optional[int]
    max_age: Optional[Seconds]
    max_concurrent: Optional[Union[int, Literal["auto"]]]
    max_per_host: Optional[Union[int, Literal["auto"]]]
    max_connections_per_host: Optional[int]
    rate: Optional[_Rate]
    """Requests a second and origin. `math.inf` is no limit."""
    max_redirects: Optional[int]
    max_queued: Optional[int]
    order: Optional[Literal["fifo", "lifo"]]
    timeout: Optional[Seconds]
    connect_timeout: Optional[Seconds]
    min_rate: Optional[int]
    deadline: Optional[Seconds]
    retries: Optional[int]
    failed_ttl: Optional[Seconds]
    max_bytes: Optional[int]
    max_pixels: Optional[int]
    decode_timeout: Optional[Seconds]
    min_free: Optional[int]
    """Percent."""
    verify: Optional[Literal["random", "always", "never"]]
    resolver: Optional[Literal["c-ares", "system"]]
    network: Optional[Literal["any", "public"]]
    proxy: Optional[str]
    """An empty string connects directly."""
    user_agent: Optional[str]
    headers: Optional[_HeaderFields]
    """Fields of every request. An empty string sends the field empty. None leaves out a field that is sent by default."""
    insecure: Optional[bool]
    key_ignore_query: Optional[Sequence[str]]
    events: Optional[Sequence[LoadEventName]]
    eof: Optional[Literal["drain", "cancel"]]
    exit_status: Optional[bool]
    log_level: Optional[Literal["error", "warning", "info", "debug"]]
    log_format: Optional[Literal["text", "json"]]


class StartOptions(Options, total=False):
    """The worker's options, with those that are fixed at its start."""

    cache_dir: Optional[StrPath]
    cache_namespace: Optional[str]
    read_only_cache: Optional[Union[StrPath, Sequence[StrPath]]]
    max_line: Optional[int]
    decoders: Optional[int]
    decoder_lifetime: Optional[int]
    """Images that a decoder process decodes before it ends; 1 by default."""
    decode_memory: Optional[int]
    """Maximum bytes of memory of a decoder process; 2 GiB by default."""
    cookies: Optional[StrPath]
    files: Optional[StrPath]
    """The folder below which files of `process` and `store` must be."""
    robots: Optional[Literal["obey", "ignore"]]
    metrics_file: Optional[StrPath]
    trace: Optional[StrPath]
    """A `%p` becomes the process ID, so that a restarted worker keeps the trace of the one before."""
    trace_limit: Optional[int]


class Settings(StartOptions, total=False):
    """The keywords of ImageWorker and BlockingImageWorker."""

    binary: Optional[StrPath]
    """The worker's executable. The default is that of `find_worker`."""
    arguments: Optional[Sequence[str]]
    """Flags as `imageworker --help` lists them, such as ["--max-per-host=8"]. They follow those of the keywords."""
    on_event: Optional[EventHandler]
    """Called with each event that belongs to no pending call."""
    on_exit: Optional[ExitHandler]
    """Called at each unexpected end of the worker."""
    max_restarts: Optional[int]
    """The number of deaths in a row, without an answer in between, after which calls fail at once. 0 never restarts. The default is 5."""
    longest_pause: Optional[Seconds]
    """The limit of the pause before a restart, which begins at 0.1 s and doubles. The default is 10 s."""


# Results. Members that the worker may leave out are None.


@dataclass(frozen=True)
class Container:
    """What the structure of the file tells. None: it does not tell it for certain."""

    has_alpha: Optional[bool] = None
    color_space: Optional[str] = None
    """The description of the ICC profile, or a name such as sRGB, Display P3 and gray."""
    bit_depth: Optional[int] = None
    has_gps: Optional[bool] = None
    c2pa: Optional[bool] = None


@dataclass(frozen=True)
class EXIF:
    """Fields of the EXIF data. See "EXIF" in protocol/reference.md."""

    orientation: Optional[int] = None
    date_time_original: Optional[str] = None
    make: Optional[str] = None
    model: Optional[str] = None
    lens_model: Optional[str] = None
    exposure_time: Optional[float] = None
    """Seconds."""
    f_number: Optional[float] = None
    iso: Optional[float] = None
    focal_length: Optional[float] = None
    """Millimetres."""
    focal_length_in_35mm: Optional[float] = None
    artist: Optional[str] = None
    copyright: Optional[str] = None


@dataclass(frozen=True)
class Position:
    """The position of the camera, in degrees and metres."""

    latitude: float
    longitude: float
    altitude: Optional[float] = None


@dataclass(frozen=True)
class Placeholder:
    """A substitute to show until the image is loaded."""

    thumbhash: str
    """Base64; evanw.github.io/thumbhash."""
    color: str
    """The mean colour, as #rrggbb."""


@dataclass(frozen=True)
class HTTPResponse:
    status: int
    headers: Mapping[str, Union[str, Sequence[str]]]
    """Lower-case names. `set-cookie` is a list."""


@dataclass(frozen=True)
class Size:
    """In pixels."""

    width: int
    height: int


@dataclass(frozen=True)
class Source:
    """The original of a transformed image."""

    byte_count: int
    format: Format
    width: Optional[int] = None
    height: Optional[int] = None
    frames: Optional[int] = None
    orientation: Optional[int] = None
    upright: Optional[Size] = None
    """With `orientation`: the size after it is applied, as browsers show the image."""


@dataclass(frozen=True)
class Timing:
    """Seconds. `total`, `queued` and `first_byte` are times since the request. The others are the phases of the load, which add up to `total`."""

    total: Seconds
    queued: Optional[Seconds] = None
    lookup: Optional[Seconds] = None
    wait: Optional[Seconds] = None
    dns: Optional[Seconds] = None
    connect: Optional[Seconds] = None
    tls: Optional[Seconds] = None
    request: Optional[Seconds] = None
    body: Optional[Seconds] = None
    store: Optional[Seconds] = None
    decode_wait: Optional[Seconds] = None
    decode: Optional[Seconds] = None
    deliver: Optional[Seconds] = None
    first_byte: Optional[Seconds] = None


@dataclass(frozen=True)
class PrefetchFailure:
    url: str
    kind: ErrorKind
    message: str


@dataclass(frozen=True)
class PrefetchResult:
    """The numbers of items by outcome. `errors` has the first 100 failures."""

    total: int
    downloaded: int
    cached: int
    failed: int
    cancelled: int
    byte_count: int
    errors: Sequence[PrefetchFailure]


@dataclass(frozen=True)
class ImageFacts:
    """The properties of an image. See "probe" in protocol/reference.md."""

    url: str
    key: str
    cache: Literal["miss", "file", "memory", "disk", "revalidated", "stale"]
    media_type: str
    timing: Timing
    byte_count: Optional[int] = None
    """Bytes of the file, if the server declared them."""
    received: Optional[int] = None
    """Bytes that had arrived when the header of the image was complete; None if the image is in the cache."""
    format: Optional[Format] = None
    width: Optional[int] = None
    height: Optional[int] = None
    frames: Optional[int] = None
    orientation: Optional[int] = None
    upright: Optional[Size] = None
    """With `orientation`: the size after it is applied, as browsers show the image."""
    final_url: Optional[str] = None
    etag: Optional[str] = None
    last_modified: Optional[str] = None
    attempts: Optional[int] = None


@dataclass(frozen=True)
class OutputFile:
    """A file made of an image."""

    byte_count: int
    media_type: str
    format: Format
    width: int
    height: int
    frames: Optional[int] = None
    orientation: Optional[int] = None
    upright: Optional[Size] = None
    quality: Optional[int] = None
    """With `max_bytes`: the quality of the file, if its format has one."""
    path: Optional[Path] = None
    """With `deliver="path"`. Valid for at least 60 seconds."""
    data: Optional[_Base64] = None
    """With `deliver="data"`."""


_OutputFiles = Annotated[
    Mapping[str, OutputFile], _Mark(lambda given, _: given, lambda wire: {name: _parsed(OutputFile, each) for name, each in wire.items()})
]


@dataclass(frozen=True)
class ProcessedImage:
    """An image of the program's own. See "process" in protocol/reference.md."""

    byte_count: int
    media_type: str
    format: Format
    timing: Timing
    width: Optional[int] = None
    """As stored, before orientation."""
    height: Optional[int] = None
    frames: Optional[int] = None
    orientation: Optional[int] = None
    upright: Optional[Size] = None
    """With `orientation`: the size as shown."""
    placeholder: Optional[Placeholder] = None
    digest: Optional[str] = None
    perceptual_hash: Optional[str] = None
    container: Optional[Container] = None
    exif: Optional[EXIF] = None
    gps: Optional[Position] = None
    damaged: Optional[bool] = None
    hdr: Optional[Literal["pq", "hlg", "gainMap"]] = None
    outputs: _OutputFiles = field(default_factory=dict)


@dataclass(frozen=True)
class Lease:
    pid: int
    """The process of the worker that transfers the image."""


@dataclass(frozen=True)
class CacheEntry:
    """The cache's knowledge of an image. See "query" in protocol/reference.md."""

    memory: bool
    disk: bool
    fresh: bool
    reason: str
    path: Optional[Path] = None
    byte_count: Optional[int] = None
    stored_at: Optional[datetime] = None
    expires_at: Optional[datetime] = None
    used_at: Optional[datetime] = None
    uses: Optional[int] = None
    etag: Optional[str] = None
    directory: Optional[Path] = None
    variants: Optional[int] = None
    varying: Sequence[str] = ()
    transforms: Sequence[str] = ()
    lease: Optional[Lease] = None
    failure: Optional[ErrorKind] = None
    failed_until: Optional[datetime] = None


@dataclass(frozen=True)
class Trace:
    """A trace that has been started or stopped. See examples/operating/tracing.md."""

    path: str
    limit: Optional[int] = None
    """The maximum size of the file in bytes, after `start_trace`."""
    events: Optional[int] = None
    """The number of events that were written, after `stop_trace`; so are the members below."""
    byte_count: Optional[int] = None
    dropped: Optional[int] = None
    """The number of records that came too fast to be written."""
    full: Optional[bool] = None
    """Whether the trace ended at its limit, before it was stopped."""


@dataclass(frozen=True)
class Cleared:
    removed: int
    byte_count: int


@dataclass(frozen=True)
class Server:
    name: str
    version: str


@dataclass(frozen=True)
class Formats:
    decode: Sequence[str]
    encode: Sequence[str]
    libraries: Mapping[str, str]
    """The versions of the image libraries by name."""


@dataclass(frozen=True)
class Limits:
    max_line: int
    max_url: int
    max_concurrent: int
    max_per_host: int
    max_queued: int
    max_bytes: int
    max_pixels: int


@dataclass(frozen=True)
class CacheLocation:
    directory: Path
    namespace: str


@dataclass(frozen=True)
class WorkerInfo:
    """The worker's answer to `initialize`."""

    server: Server
    protocol_version: int
    methods: Sequence[str]
    events: Sequence[str]
    limits: Limits
    cache: CacheLocation
    formats: Optional[Formats] = None
    """Only if they were asked for, as `sandbox`."""
    sandbox: Optional[Sequence[str]] = None
    """The active layers of the decoders' sandbox."""


@dataclass(frozen=True)
class RequestCounts:
    received: int
    succeeded: int
    failed: int
    cancelled: int


@dataclass(frozen=True)
class WaitingCounts:
    """The numbers of waiting loads by priority."""

    lowest: int
    low: int
    normal: int
    high: int
    highest: int


@dataclass(frozen=True)
class QueueState:
    waiting: WaitingCounts
    active: int
    window: int
    paused: bool


@dataclass(frozen=True)
class OriginState:
    origin: str
    active: int
    waiting: int
    window: int
    health: Literal["healthy", "limited", "suspended", "probing", "down"]
    held_until: Optional[datetime] = None
    reason: Optional[OriginReason] = None


OriginReason = Literal[
    "retryAfter", "unavailable", "unreachable", "unresponsive", "rate", "resolving", "robots", "retry", "otherWorker", "perHostLimit",
    "concurrencyLimit", "paused",
]  # fmt: skip


@dataclass(frozen=True)
class ResolverState:
    kind: Literal["c-ares", "system"]
    names: Optional[int] = None
    waiting: Optional[int] = None
    in_flight: Optional[int] = None
    window: Optional[int] = None
    lookups: Optional[int] = None
    queries: Optional[int] = None
    unanswered: Optional[int] = None


@dataclass(frozen=True)
class TransferCounts:
    started: int
    succeeded: int
    failed: int
    byte_count: int


@dataclass(frozen=True)
class CacheCounts:
    memory_hits: int
    disk_hits: int
    revalidated: int
    stale: int
    misses: int
    bytes_saved: int


@dataclass(frozen=True)
class MemoryTierState:
    entries: int
    byte_count: int
    limit: int
    evicted: int


@dataclass(frozen=True)
class EvictionCounts:
    """The numbers of evicted images by cause."""

    limit: int
    free_space: int
    disk_full: int


@dataclass(frozen=True)
class DiskTierState:
    entries: int
    byte_count: int
    limit: int
    evicted: int
    evicted_for: EvictionCounts


@dataclass(frozen=True)
class DecoderState:
    running: int
    decoded: int
    failed: int
    crashed: int
    timed_out: int
    sandbox: Sequence[str]


@dataclass(frozen=True)
class PixelsState:
    regions: int
    byte_count: int


@dataclass(frozen=True)
class FailureExample:
    """A failed load. `url` has no query."""

    url: str
    message: str
    time: datetime
    status: Optional[int] = None
    phase: Optional[Literal["connect", "firstByte", "idle", "slow", "deadline"]] = None


@dataclass(frozen=True)
class FailureState:
    """The failed loads of a kind since the worker's start."""

    kind: ErrorKind
    count: int
    latest: FailureExample
    hint: Optional[str] = None
    """What to do if many loads fail with it."""


@dataclass(frozen=True)
class Stats:
    """Counters since the worker's start. See "stats" in protocol/reference.md."""

    uptime: Seconds
    requests: RequestCounts
    queue: QueueState
    origins: Sequence[OriginState]
    resolver: ResolverState
    transfers: TransferCounts
    cache: CacheCounts
    failures: Sequence[FailureState]
    memory: MemoryTierState
    disk: DiskTierState
    decoders: DecoderState
    pixels: PixelsState
    rss_bytes: int


@dataclass(frozen=True)
class Metrics:
    """See "metrics" in protocol/reference.md."""

    content_type: str
    text: str


class Pixels:
    """Decoded pixels in memory shared with the worker: 8-bit sRGB, rows of `stride` bytes, straight alpha.

    They belong to the program until `release` or until the object is garbage-collected. Arrays and pictures made from them stay valid. Up
    to 1 MB is copied, more is mapped. Before Python 3.13 each mapping holds a file descriptor until all objects made from it are collected.

    If no array or picture is left at `release`, the next image gets the memory, which takes a third less time for a large one.
    """

    def __init__(self, wire: Mapping[str, Any], owner: _PixelOwner) -> None:
        self.width: int = wire["width"]
        self.height: int = wire["height"]
        self.stride: int = wire["stride"]
        self.channels: int = wire["channels"]
        """1 grey, 3 R G B, 4 R G B A."""
        self.path = Path(wire["path"])
        self._owner = owner
        self._mapping: Optional[mmap.mmap] = None
        self._finalizer = weakref.finalize(self, owner.release, wire["path"])
        start, end = wire["offset"], wire["offset"] + wire["bytes"]
        self._range = slice(start, end)
        try:
            if wire["bytes"] <= _COPIED:
                self.memory = _copy(self.path, start, wire["bytes"])
            else:
                kept = owner.take(wire["path"])
                self._mapping = kept if kept is not None and len(kept) >= end else _mapping(self.path)
                self.memory = memoryview(self._mapping)[self._range]
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Returns the memory to the worker's budget. `memory` can no longer be read if no array or picture uses it. Later calls do nothing."""
        if self._finalizer.detach() is None:
            return
        if self._is_unused():
            mapping, self._mapping = self._mapping, None
            self._owner.release_unused(str(self.path), mapping)
        else:
            self._owner.release(str(self.path))

    def _is_unused(self) -> bool:
        """Whether nobody else reads the pixels. Releases `memory` then, if it is mapped.

        Some libraries keep a buffer locked, some only refer to the object that has it.
        """
        if self._mapping is None:
            return hasattr(self, "memory")
        views, mappings = [self.memory], [self._mapping]
        del self.memory
        self._mapping = None
        is_unused = _references(views) == _ALONE
        try:
            if is_unused:
                views[0].release()
                is_unused = _references(mappings) == _ALONE
                if not is_unused:
                    views = [memoryview(mappings[0])[self._range]]
        except BufferError:
            is_unused = False
        self.memory, self._mapping = views[0], mappings[0]
        return is_unused

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


def _references(one: list[Any]) -> int:
    """How many there are to an object. 0 if this Python does not count them."""
    return sys.getrefcount(one[0]) if hasattr(sys, "getrefcount") else 0


_ALONE = _references([object()]) or -1


def _copy(path: Path, start: int, size: int) -> memoryview:
    with open(path, "rb") as file:
        file.seek(start)
        return memoryview(file.read(size))


def _mapping(path: Path) -> mmap.mmap:
    """The file may be removed from now on."""
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ, **_UNTRACKED)


class _PixelOwner:
    """Tells the worker of pixels that the program has released, and keeps the mappings of those that other images may get.

    Used on any thread: the one that drops the last reference to pixels.
    """

    _KEPT = 10.0
    _MAX_KEPT = 256 << 20

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._mappings: dict[str, tuple[mmap.mmap, float]] = {}
        """The oldest first."""
        self._is_closed = False

    def release(self, path: str) -> None:
        self._tell({"path": path})

    def release_unused(self, path: str, mapping: Optional[mmap.mmap]) -> None:
        """For pixels that nobody reads."""
        if mapping is not None:
            with self._lock:
                if not self._is_closed:
                    self._mappings[path] = mapping, time.monotonic()
                while len(self._mappings) > 1 and sum(len(each) for each, _ in self._mappings.values()) > self._MAX_KEPT:
                    del self._mappings[next(iter(self._mappings))]
        self._tell({"path": path, "unused": True})

    def take(self, path: str) -> Optional[mmap.mmap]:
        """The mapping of a file that the worker uses again."""
        with self._lock:
            return self._mappings.pop(path, (None, 0))[0]

    def close(self) -> None:
        """The worker has removed all its files, or will."""
        with self._lock:
            self._is_closed = True
            self._mappings.clear()

    def forget_old(self) -> bool:
        """Drops the mappings that were not needed. Whether none is left."""
        with self._lock:
            for path, (_, since) in list(self._mappings.items()):
                if time.monotonic() - since >= self._KEPT:
                    del self._mappings[path]
            return not self._mappings


class Image:
    """A loaded image. `wire` is the complete result in the protocol's spelling. The other members read it.

    Members that the worker left out are None. With a transform, all members but `source` describe the variant.
    """

    __slots__ = ("wire",)

    def __init__(self, wire: Mapping[str, Any]) -> None:
        self.wire = wire

    def __repr__(self) -> str:
        size = f"{self.width} x {self.height}" if self.width else f"{self.byte_count} bytes"
        return f"<{type(self).__name__} {self.format or self.media_type} {size} {self.cache} {self.url or self.key}>"

    @property
    def path(self) -> Optional[Path]:
        """A file whose bytes never change and that stays for at least 60 seconds. With `deliver="path"`, the default."""
        return None

    @property
    def data(self) -> Optional[bytes]:
        """The content. With `deliver="data"`."""
        return None

    @property
    def pixels(self) -> Optional[Pixels]:
        """With `deliver="pixels"`."""
        return None

    @property
    def url(self) -> Optional[str]:
        return self.wire.get("url")

    @property
    def final_url(self) -> Optional[str]:
        """The URL after redirects. None if there was no redirect."""
        return self.wire.get("finalURL")

    @property
    def key(self) -> str:
        return str(self.wire["key"])

    @property
    def cache(self) -> Literal["miss", "file", "memory", "disk", "revalidated", "stale"]:
        """The source of the image: `miss` is the network, `revalidated` a 304, `stale` a cached image that is not fresh."""
        place: Literal["miss", "file", "memory", "disk", "revalidated", "stale"] = self.wire["cache"]
        return place

    @property
    def byte_count(self) -> int:
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
    def upright(self) -> Optional[Size]:
        """The size after the orientation is applied, as browsers show the image; None if the orientation is 1."""
        return _parsed(Size, self.wire["upright"]) if "upright" in self.wire else None

    @property
    def placeholder(self) -> Optional[Placeholder]:
        return _parsed(Placeholder, self.wire["placeholder"]) if "placeholder" in self.wire else None

    @property
    def digest(self) -> Optional[str]:
        """With `facts=["digest"]`: the SHA-256 of the content, as sha256- and 64 hexadecimal digits."""
        return self.wire.get("digest")

    @property
    def perceptual_hash(self) -> Optional[str]:
        """With `facts=["perceptualHash"]`: 16 hexadecimal digits."""
        return self.wire.get("perceptualHash")

    @property
    def container(self) -> Optional[Container]:
        """With `facts=["container"]`."""
        return _parsed(Container, self.wire["container"]) if "container" in self.wire else None

    @property
    def exif(self) -> Optional[EXIF]:
        """With `facts=["exif"]`."""
        return _parsed(EXIF, self.wire["exif"]) if "exif" in self.wire else None

    @property
    def gps(self) -> Optional[Position]:
        """With `facts=["gps"]`: the position of the camera, if the image has it."""
        return _parsed(Position, self.wire["gps"]) if "gps" in self.wire else None

    @property
    def outputs(self) -> Mapping[str, OutputFile]:
        """With `outputs`: the files, by name."""
        return {name: _parsed(OutputFile, each) for name, each in self.wire.get("outputs", {}).items()}

    @property
    def source(self) -> Optional[Source]:
        return _parsed(Source, self.wire["source"]) if "source" in self.wire else None

    @property
    def response(self) -> Optional[HTTPResponse]:
        """With `response=True` or `validate="none"`."""
        return _parsed(HTTPResponse, self.wire["response"]) if "response" in self.wire else None

    @property
    def expires_at(self) -> Optional[datetime]:
        """Until when the image is fresh; in the past if it is stale."""
        return _time(self.wire["expiresAt"]) if "expiresAt" in self.wire else None

    @property
    def kept(self) -> bool:
        """False if the image was to be stored on disk and could not be."""
        return bool(self.wire["kept"])

    @property
    def damaged(self) -> bool:
        """True if a decode found that the original is damaged. The decoded part is as in browsers."""
        return bool(self.wire.get("damaged", False))

    @property
    def hdr(self) -> Optional[Literal["pq", "hlg", "gainMap"]]:
        """The high dynamic range that a decode found in the original."""
        return self.wire.get("hdr")

    @property
    def attempts(self) -> int:
        return int(self.wire.get("attempts", 1))

    @property
    def timing(self) -> Optional[Timing]:
        return _parsed(Timing, self.wire["timing"]) if "timing" in self.wire else None


class FileImage(Image):
    """An image in a file. The result of `deliver="path"`, the default."""

    __slots__ = ()

    @property
    def path(self) -> Path:
        return Path(self.wire["path"])


class DataImage(Image):
    """An image in memory. The result of `deliver="data"`."""

    __slots__ = ()

    @property
    def data(self) -> bytes:
        return base64.b64decode(self.wire["data"])


class PixelsImage(Image):
    """A decoded image. The result of `deliver="pixels"`."""

    __slots__ = ("_pixels",)

    def __init__(self, wire: Mapping[str, Any], owner: _PixelOwner) -> None:
        super().__init__(wire)
        self._pixels = Pixels(wire["pixels"], owner)

    @property
    def pixels(self) -> Pixels:
        return self._pixels


def _image(wire: Mapping[str, Any], owner: _PixelOwner) -> Image:
    if "path" in wire:
        return FileImage(wire)
    if "pixels" in wire:
        return PixelsImage(wire, owner)
    return DataImage(wire) if "data" in wire else Image(wire)


# Events


@dataclass(frozen=True)
class Started:
    """The transfer has started, or the load joined a running one. Images from the cache have no such event."""

    name: ClassVar[Literal["started"]] = "started"
    url: str
    attempt: int


@dataclass(frozen=True)
class Progress:
    """Bytes of a load. `total` is None if it is unknown."""

    name: ClassVar[Literal["progress"]] = "progress"
    url: str
    received: int
    total: Optional[int] = None


@dataclass(frozen=True)
class PrefetchProgress:
    """Items of a prefetch."""

    name: ClassVar[Literal["progress"]] = "progress"
    done: int
    total: int
    byte_count: int


@dataclass(frozen=True)
class Retrying:
    """An attempt failed. The attempt with the number `attempt` comes after `delay` seconds."""

    name: ClassVar[Literal["retrying"]] = "retrying"
    url: str
    attempt: int
    delay: Seconds
    kind: ErrorKind


@dataclass(frozen=True)
class Preview:
    """The part of a progressive JPEG that has arrived, in a file that lives for 60 seconds."""

    name: ClassVar[Literal["preview"]] = "preview"
    url: str
    path: Path
    width: int
    height: int
    scan: int
    """The number of complete scans."""


@dataclass(frozen=True)
class Cached:
    """With `cache="refresh"`: the cached image, before the server is asked."""

    name: ClassVar[Literal["cached"]] = "cached"
    image: Image


@dataclass(frozen=True)
class Completed:
    """A load of `load_events`, an item of a prefetch or a notified load has ended in an image."""

    name: ClassVar[Literal["completed"]] = "completed"
    image: Image


@dataclass(frozen=True)
class Failed:
    """An item of a prefetch or a notification has failed."""

    name: ClassVar[Literal["failed"]] = "failed"
    error: ImageWorkerError


@dataclass(frozen=True)
class Answered:
    """A notification of a method without an image has been carried out. `result` is in the protocol's spelling."""

    name: ClassVar[Literal["completed"]] = "completed"
    result: Mapping[str, Any]


LoadEvent = Union[Started, Progress, Retrying, Preview, Cached]
PrefetchEvent = Union[PrefetchProgress, Completed, Failed]
Event = Union[LoadEvent, PrefetchEvent, Answered]
LoadEventHandler = Callable[[LoadEvent], None]
PrefetchEventHandler = Callable[[PrefetchEvent], None]
EventHandler = Callable[[Event], None]
ExitHandler = Callable[[WorkerExited], None]


def _event(name: str, wire: Mapping[str, Any], owner: _PixelOwner) -> Optional[Event]:
    """None for an event that only a newer worker has."""
    if name == "progress":
        return _parsed(Progress, wire) if "received" in wire else _parsed(PrefetchProgress, wire)
    if name == "cached":
        return Cached(_image(wire, owner))
    if name == "completed":
        return Completed(_image(wire, owner)) if "mediaType" in wire else Answered(wire)
    if name == "failed":
        return Failed(ImageWorkerError.of(wire["error"]))
    kinds: Mapping[str, Any] = {"started": Started, "retrying": Retrying, "preview": Preview}
    return _parsed(kinds[name], wire) if name in kinds else None


_ALL_EVENTS = ("started", "progress", "retrying", "cached")


# Python's spelling and the protocol's


class _Spelling(NamedTuple):
    name: str
    """The member's name in the protocol."""
    to_wire: Optional[Callable[[Any, str], Any]]
    from_wire: Optional[Callable[[Any], Any]]


_NAMES = {"byte_count": "bytes", "final_url": "finalURL", "has_gps": "hasGPS", "max_url": "maxURL"}
"""The members whose names in the protocol are not the Python names in camelCase."""


@functools.lru_cache(maxsize=None)
def _spellings(kind: type) -> Mapping[str, _Spelling]:
    """The members of a TypedDict or a dataclass by their Python names, as their annotations tell."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: _spelling(name, hint) for name, hint in hints.items() if get_origin(hint) is not ClassVar}


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _spelling(name: str, hint: Any) -> _Spelling:
    if get_origin(hint) is Union and type(None) in get_args(hint):
        hint = Union[tuple(part for part in get_args(hint) if part is not type(None))]
    first, *others = name.split("_")
    wire_name = _NAMES.get(name) or first + "".join(word.capitalize() for word in others)
    if get_origin(hint) is Annotated:
        mark: _Mark = hint.__metadata__[0]
        return _Spelling(mark.name or wire_name + mark.suffix, mark.to_wire, mark.from_wire)
    if hint is Path:
        return _Spelling(wire_name, None, Path)
    if hint is datetime:
        return _Spelling(wire_name, None, _time)
    if isinstance(hint, type) and hasattr(hint, "__total__"):  # A TypedDict.
        return _Spelling(wire_name, lambda given, _: _wire(hint, given, name, "member"), lambda wire: _parsed(hint, wire))
    if hasattr(hint, "__dataclass_fields__"):
        return _Spelling(wire_name, None, lambda wire: _parsed(hint, wire))
    for choice in get_args(hint) if get_origin(hint) is Union else ():  # The first TypedDict has all members of the others.
        if isinstance(choice, type) and hasattr(choice, "__total__"):
            return _Spelling(wire_name, lambda given, _: _wire(choice, given, name, "member") if isinstance(given, dict) else given, None)
    (item,) = get_args(hint) if len(get_args(hint)) == 1 else (None,)
    if hasattr(item, "__dataclass_fields__"):
        return _Spelling(wire_name, None, lambda wire: [_parsed(item, each) for each in wire])
    return _Spelling(wire_name, None, None)


def _wire(kind: type, given: Mapping[str, Any], place: str, noun: str = "keyword") -> dict[str, Any]:
    """The members of a TypedDict in the protocol's spelling, without those that are None. An unknown name is a TypeError."""
    if not isinstance(given, (dict, Mapping)):  # `dict` first: the check of a Mapping is slow.
        raise TypeError(f"{place} must be a dict, not {given!r}")
    spellings = _spellings(kind)
    wire: dict[str, Any] = {}
    for name, value in given.items():
        if name not in spellings:
            raise TypeError(f"unknown {noun} {name} of {place}" + _near(name, spellings))
        if value is not None:
            wire_name, to_wire, _ = spellings[name]
            wire[wire_name] = value if to_wire is None else to_wire(value, name)
    return wire


class SupportsFileno(Protocol):
    """An open file with a descriptor."""

    def fileno(self) -> int: ...


def _host_file(image: Any, root: Optional[StrPath]) -> dict[str, Any]:
    """The parameters of `process` and `load` that name the image."""
    if root is not None:
        return {"file": {"root": _absolute(root, "root"), "path": os.fspath(image)}}
    if isinstance(image, (bytes, bytearray, memoryview)):
        return {"data": _base64(bytes(image), "image")}
    if hasattr(image, "fileno"):
        if hasattr(image, "flush"):
            image.flush()
        try:
            return {"file": {"fd": image.fileno(), "pid": os.getpid()}}
        except (AttributeError, OSError):  # It has no descriptor, such as a BytesIO or a member of an archive.
            image.seek(0)
            return {"data": _base64(image.read(), "image")}
    return {"file": {"path": _absolute(image, "image")}}


def _near(name: object, known: Iterable[str]) -> str:
    import difflib

    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in str(name))
    near = difflib.get_close_matches(snake, list(known), 1)
    return f" (did you mean {near[0]}?)" if near else ""


_Made = TypeVar("_Made")


def _parsed(kind: Type[_Made], wire: Mapping[str, Any]) -> _Made:
    """A dataclass or a TypedDict of the members of a result that this client knows."""
    members = {}
    for name, spelling in _spellings(cast(Any, kind)).items():
        if spelling.name in wire:
            value = wire[spelling.name]
            members[name] = value if spelling.from_wire is None else spelling.from_wire(value)
    return kind(**members)


def _flags(settings: Mapping[str, Any]) -> Iterator[str]:
    """The command line of the worker's options among the settings."""
    wire = _wire(Settings, settings, "ImageWorker")
    for name, (wire_name, _, _) in _spellings(StartOptions).items():
        value = wire.get(wire_name)
        if value is None or value is False:
            continue
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(each, (bytes, bytearray, memoryview)):
                raise TypeError(f"{name} must be a string, not {each!r}{_advice(each)}")
        flag = "--header" if name == "headers" else "--" + name.replace("_", "-")
        if value is True:
            yield flag
        elif name == "events":
            yield f"{flag}={','.join(value)}"
        elif isinstance(value, (list, tuple)):
            yield from (f"{flag}={each}" for each in value)
        else:
            yield f"{flag}={value}ms" if wire_name.endswith("Ms") else f"{flag}={value}"


def find_worker(binary: Optional[StrPath] = None) -> str:
    """The worker to start: the argument, else $IMAGEWORKER, else that of the wheel, else the source tree's release build, else $PATH."""
    chosen = binary or os.environ.get("IMAGEWORKER")
    if chosen:
        return os.fspath(chosen)
    here = Path(__file__).resolve().parent
    for place in (here / "bin" / "imageworker", here.parent.parent / ".build" / "release" / "imageworker", "imageworker"):
        found = shutil.which(str(place))
        if found is not None:
            return found
    advice = "install its wheel, put a release of it on the PATH, build it (swift build -c release), or set IMAGEWORKER to its path"
    raise FileNotFoundError(f"imageworker was not found: {advice}")


# gevent


class _GreenletLoop(asyncio.SelectorEventLoop):
    """The event loop of a BlockingImageWorker under gevent, which makes a greenlet of its thread.

    asyncio knows one running loop for each thread of the system. While this loop waits, other greenlets run, and the running loop must be
    theirs, if they have one.

    gunicorn's `--preload` imports this module before gevent changes the standard library. Members that gevent replaces, such as
    `subprocess.Popen`, are therefore looked up when they are used, and no class here inherits from `threading.Thread`.
    """

    def __init__(self) -> None:
        loop = self
        starter = os.getpid()

        class Selector(selectors.DefaultSelector):  # gevent's.
            def select(self, timeout: Optional[float] = None) -> list[Tuple[selectors.SelectorKey, int]]:
                with loop.put_aside():
                    try:
                        return super().select(timeout)
                    finally:
                        if os.getpid() != starter:  # A forked child has a copy of the greenlet, which must not go on.
                            threading.Event().wait()

        self._outer = asyncio._get_running_loop()
        self._watching = Selector()
        super().__init__(self._watching)

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        with contextlib.closing(self):
            asyncio._set_running_loop(None)
            try:
                self.run_until_complete(work)
            finally:
                asyncio._set_running_loop(self._outer)

    @contextlib.contextmanager
    def put_aside(self) -> Iterator[None]:
        """Around what lets other greenlets run."""
        asyncio._set_running_loop(self._outer)
        try:
            yield
        finally:
            self._outer = asyncio._get_running_loop()
            asyncio._set_running_loop(self)

    def leave_to_parent(self) -> None:
        """Stops watching in a forked child. Otherwise gevent's loop aborts the process once the descriptors are closed."""
        if not self.is_closed():
            self._watching.close()


def _others_may_run(loop: asyncio.AbstractEventLoop) -> contextlib.AbstractContextManager[None]:
    return loop.put_aside() if isinstance(loop, _GreenletLoop) else contextlib.nullcontext()


def _has_greenlets() -> bool:
    """Whether gevent has replaced threads by greenlets."""
    monkey: Any = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


# One worker process


class _Call(NamedTuple):
    result: asyncio.Future[Any]
    params: Mapping[str, Any]
    on_event: Optional[Callable[[Any], None]]
    made: Callable[[Any], Any]
    """Makes the caller's value of the result. Called even if nobody waits, so that dropped pixels are released."""
    late: Optional[float] = None
    """The time of the loop from which the call ends if the worker is silent."""
    refusal: Optional[Mapping[str, Any]] = None
    """The refusal of a line that may be the line of this call."""


class _Life:
    """One worker process from its start to its end: its pipes, and the calls that wait for it.

    The process is started here and not by the event loop: the loop reveals the pipes only after it has connected them, and a fork may come
    before that.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        options: Mapping[str, Any],
        owner: _PixelOwner,
        on_event: Optional[EventHandler],
        on_answer: Callable[[], None],
        on_end: ExitHandler,
        is_last: bool,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self.loop.create_future()
        self._owner = owner
        self._on_event = on_event
        self._on_answer = on_answer
        self._on_end = on_end
        self._is_last = is_last
        self._is_ending = False
        self._misfit: Optional[str] = None
        self._pipes: dict[int, Any] = {}
        self._left: set[object] = {1, 2, "process"}
        """The resources that must end before the life does."""
        self._calls: dict[int, _Call] = {}  # Until the answer, which comes to cancelled ones, too.
        self._last_id = 0
        self._outgoing: dict[object, bytes] = {}  # Lines in their order; that of a call by its id.
        self._is_full = True  # Until there is a pipe.
        self._asked_id = 0
        self._is_looking = False  # For calls that may be late.
        self._silence = 0  # The number of looks since the worker wrote.
        self._line: dict[int, bytearray] = {1: bytearray(), 2: bytearray()}
        self._log: deque[str] = deque(maxlen=20)
        with _starts:
            # The worker has a session of its own. Ctrl-C at a terminal reaches only the program, which decides about its loads.
            pipe = subprocess.PIPE
            with _others_may_run(self.loop):
                self._process = subprocess.Popen(arguments, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
            self._files: tuple[Any, ...] = (self._process.stdin, self._process.stdout, self._process.stderr)
            _living.add(self)
        # The first line. No request waits for its answer.
        client = {"name": "imageworker.py", "version": __version__}
        introduction = {"protocolVersion": PROTOCOL_VERSION, "client": client, **({"options": options} if options else {})}
        self._send(object(), {"id": _INITIALIZE, "method": "initialize", "params": introduction})
        self._connecting = self.loop.create_task(self._connect())
        exited = weakref.WeakMethod(self._process_exited)
        with _others_may_run(self.loop):
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
        self,
        method: str,
        params: Mapping[str, Any],
        on_event: Optional[Callable[[Any], None]],
        made: Callable[[Any], Any],
        late: Optional[float] = None,
    ) -> Any:
        if self.ended.done():
            raise self._exit(()).for_call(params.get("url"))
        self._last_id += 1
        identity = self._last_id
        self._send(identity, {"id": identity, "method": method, "params": params})
        call = self._calls[identity] = _Call(self.loop.create_future(), params, on_event, made, late)
        if late is not None and not self._is_looking:
            self._end_late(0)
        try:
            return await call.result
        except asyncio.CancelledError:
            self._give_up(identity)
            raise

    def _give_up(self, identity: int) -> None:
        if self._outgoing.pop(identity, None) is not None:
            del self._calls[identity]  # The worker never hears of it.
        elif identity in self._calls:
            self.tell("cancel", {"id": identity})

    def _end_late(self, due: float) -> None:
        """Looks each second for calls that are late when the look is due. They go on while the worker writes: their answers may be on the way.

        A look that comes much later than it was due follows a time in which this program did not run, and so did not read.
        """
        self._silence += 1
        limited = [(identity, call, call.late) for identity, call in self._calls.items() if call.late is not None and not call.result.done()]
        for identity, call, late in limited:
            if late < due and self._silence > 2:
                self._give_up(identity)
                data = {"kind": "timeout", "retryable": False, "url": call.params.get("url"), "phase": "client"}
                call.result.set_exception(LoadTimeout("no answer in time", data))
        self._is_looking = bool(limited)
        if limited:
            next_due = self.loop.time() + 1
            self.loop.call_at(next_due, self._end_late, next_due)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._send(object(), {"method": method, "params": params})

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Sends a request of the client itself. It has an id, so that the program gets no event of it. The answer is ignored."""
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
        """Closes a forked child's copies of the pipes. Otherwise the worker would not notice the end of the program."""
        if isinstance(self.loop, _GreenletLoop):
            self.loop.leave_to_parent()
        for file in self._files:
            file.close()

    def _close(self) -> None:
        """Closes the pipes, and kills the process if it still runs."""
        for pipe in self._pipes.values():
            pipe.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def _exit(self, lost: Sequence[str]) -> WorkerExited:
        if self._misfit is not None:
            return ProtocolMismatch(self._misfit, None, lost)
        status = self._process.returncode
        is_hopeless = self._is_last or self._is_ending or status in _HOPELESS
        return WorkerExited(status, self._log, None, lost, retryable=not is_hopeless)

    # Output and end of the process

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._flush()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Splits lines of any length without joining the start of a long one again and again."""
        self._silence = 0
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
        end = self._exit([url for call in calls for url in _urls(call.params)])
        for call in calls:
            call.result.set_exception(end.for_call(call.params.get("url"), end.lost))
        self._close()
        self.ended.set_result(None)
        self._on_end(end)

    def _receive(self, line: bytes) -> None:
        message = json.loads(line)
        if self._misfit is not None:
            return
        if "method" in message:
            return self._receive_event(message["method"], message.get("params", {}))
        identity = message["id"]
        if identity == _INITIALIZE:
            return self._check_fit(message)
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
            outcome = InternalError(f"the answer cannot be used: {error!r}", data)
            outcome.__cause__ = error
        if call.result.done():
            return  # It was cancelled.
        if isinstance(outcome, ImageWorkerError):
            call.result.set_exception(outcome)
        else:
            call.result.set_result(outcome)

    def _check_fit(self, answer: Mapping[str, Any]) -> None:
        """Reads the answer to `initialize`. Ends a worker that speaks another version of the protocol."""
        error, result = answer.get("error", {}), answer.get("result", {})
        versions = error.get("data", {}).get("supported") or [result.get("protocolVersion")]
        if PROTOCOL_VERSION in versions:
            return
        if error and error["code"] == -32602 and "supported" not in error["data"]:
            logger.error("the worker refused the options that configure had set: %s", error["message"])
            return
        worker = f"the worker ({result['server']['version']})" if "server" in result else "the worker"
        spoken = " and ".join(map(str, versions))
        self._misfit = (
            f"{worker} speaks version {spoken} of the protocol, and this client ({__version__}) speaks version {PROTOCOL_VERSION}: "
            "take the client and the worker from the same release"
        )
        self._close()

    def _ask_whose(self, refusal: Mapping[str, Any]) -> None:
        """Finds the call whose line the worker could not read: the refusal has no id.

        The client sends each id again, without a method. If the worker has read the call, it refuses the id as in flight, with the id in
        `data`, and the call goes on. If the worker has never read the call, it answers the id, and the call ends in the refusal.
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

    def _receive_event(self, name: str, params: Mapping[str, Any]) -> None:
        call = self._calls.get(params.get("id", 0))
        handler = call.on_event if call and not call.result.done() else self._on_event
        event = _event(name, params, self._owner) if handler is not None else None
        if handler is not None and event is not None:
            _tell(handler, event, f"on_event failed for {name}")

    def _keep_log(self, line: bytes) -> None:
        text = line.decode(errors="replace")
        self._log.append(text)
        grave = _GRAVE.match(text)
        logger.log(logging.getLevelName(grave[1].upper()) if grave else logging.INFO, "%s", text)


_GRAVE = re.compile(r'(?:imageworker: |\{"time":"[^"]*","level":")(error|warning)\b')
"""The start of a line of the log that says error or warning, as text or as JSON."""

_INITIALIZE = 0
"""The id of the first request."""


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
    process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop, exited: weakref.WeakMethod[Callable[[], None]]
) -> None:
    """Runs on a thread of its own. It holds no reference to the life, so that the pipes of a dropped life close."""
    process.wait()
    tell = exited()
    if tell is not None:
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            loop.call_soon_threadsafe(tell)


def _json_value(value: object) -> Any:
    """The value of JSON for one that the encoder does not know: a path is text, and another kind of mapping a dict."""
    if isinstance(value, Mapping):
        return dict(value)
    path = os.fspath(cast(Any, value))
    if not isinstance(path, str):  # Bytes, which the encoder would hand in again and again.
        raise TypeError
    return path


# Sorting fails if one key is text and another is not: 1 and "1" would become a duplicate name, which the worker refuses.
_to_json = json.JSONEncoder(separators=(",", ":"), default=_json_value, ensure_ascii=False, allow_nan=False, sort_keys=True).encode


def _encode(request: Mapping[str, Any]) -> bytes:
    """The line of a request. Values that JSON does not have (NaN, bytes, half a surrogate pair, an object) are refused here."""
    try:
        return (_to_json(request) + "\n").encode()
    except (TypeError, ValueError, RecursionError) as error:
        params = request["params"]
        found = _fault(params) or _fault({"method": request["method"]})
        member, message = found or ("", f"the parameters must be JSON: {error}")
        url = params.get("url")
        data = {"kind": "invalidParams", "retryable": False, "url": url if isinstance(url, str) else None}
        raise InvalidParams(message, {**data, "member": member} if member else data) from error


class _Place(NamedTuple):
    """A value within parameters."""

    path: str
    """As `urls[1].headers.Accept`. Empty for the parameters themselves."""
    value: Any
    parent: Optional[_Place] = None


def _fault(params: Any) -> Optional[Tuple[str, str]]:
    """The path and the fault of the first value that JSON does not have; None if all are of JSON."""
    left = [_Place("", params)]
    while left:
        place = left.pop()
        fault = _own_fault(place)
        if fault is not None:
            return place.path, f"{place.path or 'the parameters'} {fault}"
        path, value, _ = place
        if isinstance(value, Mapping):
            members = [_Place(f"{path}.{name}" if path else name, item, place) for name, item in value.items()]
        elif isinstance(value, (list, tuple)):
            members = [_Place(f"{path}[{index}]", item, place) for index, item in enumerate(value)]
        else:
            continue
        left += reversed(members)
    return None


def _own_fault(place: _Place) -> Optional[str]:
    """The fault of a value and of the names of its members."""
    value = place.value
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"must be a string, not {type(value).__name__}{_advice(value)}"
    if isinstance(value, str):
        return None if _is_unicode(value) else f"must not contain half a surrogate pair: {value!r}"
    if isinstance(value, float):
        return None if math.isfinite(value) else f"must be a finite number, not {float(value)}"
    if value is None or isinstance(value, int):
        return None
    if not isinstance(value, (Mapping, list, tuple)):
        module, name = type(value).__module__, type(value).__qualname__
        return f"must be a string, a number, a list or a dict, not {name if module == 'builtins' else f'{module}.{name}'}{_advice(value)}"
    parent = place.parent
    while parent is not None:
        if parent.value is value:
            return "contains itself (a circular reference)"
        parent = parent.parent
    for name in value if isinstance(value, Mapping) else ():
        if not isinstance(name, str):
            return f"must have names that are strings, not {name!r}{_advice(name) if isinstance(name, bytes) else ''}"
        if not _is_unicode(name):
            return f"must not have a name with half a surrogate pair: {name!r}"
    return None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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


def _check_handler(handler: object, name: str) -> None:
    """Refuses what cannot be called when it is given, and not at the first event, which an image from the cache does not have."""
    if handler is None:
        return
    if not callable(handler):
        raise TypeError(f"{name} must be a function, not {handler!r}")
    if inspect.iscoroutinefunction(handler):
        raise TypeError(f"{name} must be a plain function, not a coroutine function: nobody would await it")


def _check_call(params: object, on_event: object) -> None:
    if not isinstance(params, (dict, Mapping)):  # `dict` first: the check of a Mapping is slow.
        raise TypeError(f"params must be a dict, not {params!r}")
    _check_handler(on_event, "on_event")


_Told = TypeVar("_Told")


def _tell(handler: Callable[[_Told], None], what: _Told, complaint: str) -> None:
    """Calls a handler of the program. Its exceptions must end neither the reading nor the event loop."""
    try:
        handler(what)
    except BaseException as error:
        if isinstance(error, (SystemExit, KeyboardInterrupt)) and threading.current_thread() is threading.main_thread():
            raise  # On another thread it would end that thread only, which is the worker's.
        asyncio.get_running_loop().call_exception_handler({"message": complaint, "exception": error})


# The worker, for asyncio

_FIRST = 1000
"""Maximum number of rows that `load_all` has read and not yielded, while loads end."""
_FEW = 50
"""The number of ended loads in a turn below which `load_all` assumes that loads wait for servers that do not answer."""
_TURN = 0.5
"""Seconds after which `load_all` looks at the number of ended loads."""
_PER_HOST = 64
"""The number of loads that `load_all` has in flight for a host that ends none."""
_Key = TypeVar("_Key")


class _Window:
    """The number of rows that `load_all` may have read and not yielded.

    A thousand rows are enough if loads end. If hardly any load ends, because servers do not answer, more rows are read, so that other
    servers need not wait.
    """

    def __init__(self, at_once: int) -> None:
        if at_once < 1:
            raise ValueError("at_once must be 1 or more")
        self._most = at_once
        self.limit = min(at_once, _FIRST)
        self._ended = 0
        self._looked = time.monotonic()

    def note_end(self) -> None:
        self._ended += 1

    def adapt(self, unended: int, has_ended: bool) -> None:
        """Called before rows are read. `has_ended` tells whether ended loads wait for the caller."""
        now = time.monotonic()
        if now - self._looked <= _TURN:
            return
        if has_ended:
            self.limit = min(self._most, _FIRST)
        elif self._ended < _FEW:
            self.limit = min(self._most, unended + _FIRST)
        self._ended, self._looked = 0, now


class _Row(NamedTuple):
    key: Any
    url: str
    params: Mapping[str, Any]
    host: str
    """The beginning of the URL, up to its path."""


class _Host:
    """The loads for a host. Beyond `_PER_HOST`, it has as many in flight as it has ended in this turn and in the last one.

    So the queue of a slow host stays in the list, and that of a fast one doubles with each round trip.
    """

    __slots__ = ("in_flight", "held", "_turn", "_ended", "_ended_before")

    def __init__(self) -> None:
        self.in_flight = 0
        self.held: deque[_Row] = deque()
        self._turn = self._ended = self._ended_before = 0

    @property
    def has_room(self) -> bool:
        return self.in_flight < _PER_HOST + self._ended + self._ended_before

    def note_end(self) -> None:
        self.in_flight -= 1
        turn = int(time.monotonic() / _TURN)
        if turn > self._turn:
            self._ended, self._ended_before = 0, self._ended if turn == self._turn + 1 else 0
            self._turn = turn
        self._ended += 1


class _Rows:
    """The rows of `load_all`: those in flight, those held until their host has room, and failed ones for the next pass."""

    def __init__(self, urls: Iterable[Any], at_once: int, passes: int, counts: Optional[Counter[str]]) -> None:
        self._left = _rows(urls)
        self._window = _Window(at_once)
        self._passes = passes
        self._counts = Counter() if counts is None else counts
        self._hosts: dict[str, _Host] = {}
        self._ready: deque[_Row] = deque()
        self._again: list[_Row] = []
        self.in_flight = 0
        self.unended = 0
        """The number of rows that are in flight or held."""

    @property
    def room(self) -> int:
        """The number of rows that may begin if the list has as many, and their hosts have room."""
        return len(self._ready) + self._window.limit - self.unended

    def take(self, most: float, has_ended: bool) -> list[_Row]:
        """The rows whose loads begin now. At most so many rows are read from the list."""
        self._window.adapt(self.unended, has_ended)
        rows = [self._ready.popleft() for _ in range(int(min(most, len(self._ready))))]
        for row in itertools.islice(self._left, int(max(min(most - len(rows), self._window.limit - self.unended), 0))):
            self.unended += 1
            host = self._hosts.get(row.host)
            if host is None:
                host = self._hosts[row.host] = _Host()
            if host.has_room:
                host.in_flight += 1
                rows.append(row)
            else:
                host.held.append(row)
        self.in_flight += len(rows)
        if self.unended == 0 and self._again:
            self._left, self._again = iter(self._again), []
            self._passes -= 1
            return self.take(most, has_ended)
        return rows

    def end(self, row: _Row, outcome: Union[Image, BaseException]) -> bool:
        """Whether the outcome is the last one of the row. Raises a fault of the run."""
        host = self._hosts[row.host]
        host.note_end()
        while host.held and host.has_room:
            host.in_flight += 1
            self._ready.append(host.held.popleft())
        if host.in_flight == 0:
            del self._hosts[row.host]
        self._window.note_end()
        self.in_flight -= 1
        self.unended -= 1
        if isinstance(outcome, Image):
            self._counts["loaded"] += 1
            return True
        if not isinstance(outcome, ImageWorkerError) or not outcome.is_about_row:
            raise outcome
        if outcome.may_pass and self._passes > 1:
            self._again.append(row)
            return False
        self._counts[outcome.kind] += 1
        return True


def _rows(urls: Iterable[Any]) -> Iterator[_Row]:
    for item in _checked(urls):
        key, load = item if isinstance(item, tuple) else (item, item)
        params: Mapping[str, Any] = {}
        if isinstance(load, Mapping):
            params = {name: value for name, value in load.items() if name != "url"}
            load = load["url"]
        yield _Row(key, load, params, load[: load.find("/", 8)] if isinstance(load, str) else "")


def _is_passing(fault: ImageWorkerError) -> bool:
    """Whether the load of a row may succeed in a moment, such as with another worker, after a fault of the run."""
    return not isinstance(fault, InvalidParams) and (fault.retryable or not isinstance(fault, WorkerExited))


def _checked(urls: Iterable[Any]) -> Iterable[Any]:
    if isinstance(urls, (str, bytes, bytearray, memoryview, Mapping)):
        raise TypeError(f"urls must be an iterable of URLs, not {type(urls).__name__}")
    return urls


class ImageWorker:
    """A worker for one event loop. Use it in `async with`."""

    def __init__(self, *positional: NoReturn, **settings: Unpack[Settings]) -> None:
        """Takes the worker's options as keywords, and the client's settings: see `Settings` and `StartOptions`."""
        if positional:
            raise TypeError(
                "ImageWorker takes keywords, such as max_per_host=8, and no positional arguments: "
                'give raw flags as arguments=["--max-per-host=8"]'
            )
        arguments = settings.get("arguments") or []
        if isinstance(arguments, (str, bytes, bytearray)):
            raise TypeError(f'arguments must be a list of flags, such as ["--max-per-host=8"], not {arguments!r}')
        flags = list(_flags(settings))
        for name in ("on_event", "on_exit"):
            _check_handler(settings.get(name), name)
        restarts, pause = settings.get("max_restarts"), settings.get("longest_pause")
        self._arguments = [find_worker(settings.get("binary")), *flags, *map(os.fspath, arguments)]
        self._on_event = settings.get("on_event")
        self._on_exit = settings.get("on_exit")
        self._max_restarts = 5 if restarts is None else restarts
        self._longest_pause = 10.0 if pause is None else pause
        self._deadline = settings.get("deadline")
        self._configured: dict[str, Any] = {}
        """The options that `configure` has set."""
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._life: Optional[_Life] = None  # While it lives.
        self._pixel_owner = _PixelOwner(self._release)
        self._cleanup: Optional[asyncio.TimerHandle] = None
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
        """Ends the worker and cancels the pending calls. Earlier notifications are carried out if `grace` suffices.

        Each step (close input, SIGTERM, SIGKILL) gets `grace` seconds.
        """
        if self._loop is not None:
            self._check_loop()
        self._is_closed = True
        self._pixel_owner.close()
        if self._cleanup is not None:
            self._cleanup.cancel()
        try:
            if self._starting is not None:
                self._starting.cancel()
                await asyncio.wait([self._starting])
        finally:  # Also when this wait is cancelled, as it is where a task is cancelled twice.
            if self._life is not None:
                await self._life.end(grace)

    async def shutdown(self, mode: Optional[Literal["drain", "cancel"]] = None, grace: float = 5.0) -> None:
        """Ends the worker after it has finished all accepted requests, or with `cancel` has cancelled them. New calls are refused."""
        life = None if self._is_closed else self._life
        if life is not None:
            self._check_loop()
        self._is_closed = True
        try:
            if life is not None:
                await life.call("shutdown", {} if mode is None else {"mode": mode}, None, lambda result: result)
        finally:
            await self.close(grace)

    @overload
    async def load(
        self,
        url: str,
        *,
        deliver: Optional[Literal["path"]] = None,
        on_event: Optional[LoadEventHandler] = None,
        **params: Unpack[LoadParams],
    ) -> FileImage: ...

    @overload
    async def load(
        self, url: str, *, deliver: Literal["data"], on_event: Optional[LoadEventHandler] = None, **params: Unpack[LoadParams]
    ) -> DataImage: ...

    @overload
    async def load(
        self, url: str, *, deliver: Literal["pixels"], on_event: Optional[LoadEventHandler] = None, **params: Unpack[LoadParams]
    ) -> PixelsImage: ...

    @overload
    async def load(
        self, url: str, *, deliver: Optional[Deliver], on_event: Optional[LoadEventHandler] = None, **params: Unpack[LoadParams]
    ) -> Image: ...

    async def load(
        self,
        url: str,
        *,
        deliver: Optional[Deliver] = None,
        on_event: Optional[LoadEventHandler] = None,
        **params: Unpack[LoadParams],
    ) -> Image:
        """Loads one image. Cancelling the task cancels the load.

        With `on_event`, `events` defaults to all but `preview`.
        """
        request = _wire(LoadParams, params, "load") if params else {}
        request["url"] = url
        if deliver is not None:
            request["deliver"] = deliver
        if on_event is not None:
            request.setdefault("events", _ALL_EVENTS)
        image: Image = await self._call("load", request, on_event, self._made_image)
        return image

    async def load_file(
        self, file: Union[StrPath, SupportsFileno], *, root: Optional[StrPath] = None, deliver: Optional[Deliver] = None, **params: Unpack[LoadParams]
    ) -> Image:
        """Loads an image from a file of the program's, such as a photo, and caches the results of transforms, but not the file.

        A result serves only the version of the file that it was made from. `file` is a path or an open file, which needs a `key`. With `root`,
        the path may come from a stranger: it leads nowhere but below `root`.
        """
        request = _wire(LoadParams, params, "load_file")
        request.update(_host_file(file, root))
        if "data" in request:
            raise TypeError(f"file must be a path or an open file with a descriptor, not {type(file).__name__}")
        if deliver is not None:
            request["deliver"] = deliver
        image: Image = await self._call("load", request, None, self._made_image)
        return image

    async def load_row(self, url: str, *, deliver: Optional[Deliver] = None, **params: Unpack[LoadParams]) -> Image:
        """Loads a row of a list. Unlike `load`:

        - A load that ended with its worker, or that another fault of the run has ended, is sent again, four times in 1.5 seconds.
        - While the worker's queue is full, the row waits.
        - `deadline` begins with the transfer, and not with the time in the queue. The default is the `deadline` of the worker's settings.
        - A row that fails as an earlier one with the same URL has the kind of that failure, and not `recentlyFailed`.

        An error is about the row, or a fault of the run: see `ImageWorkerError.is_about_row`.
        """
        pauses = iter((0.1, 0.2, 0.4, 0.8))
        while True:
            try:
                try:
                    return await self._load_in_time(url, deliver, params)
                except RecentlyFailed as error:
                    raise error.first from None
            except ImageWorkerError as error:
                pause = error.retry_after or 1 if isinstance(error, Overloaded) else next(pauses, None)
                if error.is_about_row or pause is None or self._is_closed or not _is_passing(error):
                    raise
            await asyncio.sleep(pause)

    async def _load_in_time(self, url: str, deliver: Optional[Deliver], params: LoadParams) -> Image:
        """Loads an image with a deadline that begins with the transfer. If the next attempt would be too late, the load ends before it."""
        given = params.get("deadline")
        deadline = self._deadline if given is None else given
        if not deadline or not _milliseconds(deadline, "deadline"):
            return await self.load(url, deliver=deliver, **params)
        timer: Optional[asyncio.TimerHandle] = None
        ends: list[dict[str, Any]] = []

        def end(**data: Any) -> None:
            ends.append({"kind": "timeout", "retryable": False, "url": url, "phase": "deadline", **data})
            loading.cancel()

        def note(event: LoadEvent) -> None:
            nonlocal timer
            if timer is None:
                timer = loop.call_later(deadline, end)
            elif isinstance(event, Retrying) and loop.time() + event.delay > timer.when():
                end(retryAfterMs=round(event.delay * 1000))
            if self._on_event is not None:
                self._on_event(event)

        loop = asyncio.get_running_loop()
        own: Any = {**params, "deadline": 0, "events": sorted({"started", "retrying", *(params.get("events") or ())})}
        loading = asyncio.ensure_future(self.load(url, deliver=deliver, on_event=note, **own))
        try:
            return await loading
        except asyncio.CancelledError:
            if not ends:
                raise
            raise LoadTimeout(f"the load took longer than {deadline} s", ends[0]) from None
        finally:
            if timer is not None:
                timer.cancel()

    async def load_events(
        self, url: str, *, deliver: Optional[Deliver] = None, **params: Unpack[LoadParams]
    ) -> AsyncGenerator[Union[LoadEvent, Completed], None]:
        """Loads one image and yields its events. The last event is Completed, with the image.

        Closing the iterator cancels a load that is still under way.
        """
        events: asyncio.Queue[Optional[LoadEvent]] = asyncio.Queue()
        loading = asyncio.ensure_future(self.load(url, deliver=deliver, on_event=events.put_nowait, **params))
        loading.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            yield Completed(await loading)
        finally:
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)

    @overload
    def load_all(
        self,
        urls: Iterable[str],
        *,
        deliver: Optional[Literal["path"]] = None,
        **params: Unpack[ListParams],
    ) -> AsyncGenerator[Tuple[str, Union[FileImage, ImageWorkerError]], None]: ...

    @overload
    def load_all(
        self,
        urls: Iterable[Tuple[_Key, Union[str, LoadItem]]],
        *,
        deliver: Optional[Literal["path"]] = None,
        **params: Unpack[ListParams],
    ) -> AsyncGenerator[Tuple[_Key, Union[FileImage, ImageWorkerError]], None]: ...

    @overload
    def load_all(
        self, urls: Iterable[str], *, deliver: Optional[Deliver], **params: Unpack[ListParams]
    ) -> AsyncGenerator[Tuple[str, Union[Image, ImageWorkerError]], None]: ...

    @overload
    def load_all(
        self,
        urls: Iterable[Tuple[_Key, Union[str, LoadItem]]],
        *,
        deliver: Optional[Deliver],
        **params: Unpack[ListParams],
    ) -> AsyncGenerator[Tuple[_Key, Union[Image, ImageWorkerError]], None]: ...

    async def load_all(
        self,
        urls: Iterable[Any],
        *,
        deliver: Optional[Deliver] = None,
        at_once: int = 20_000,
        passes: int = 2,
        counts: Optional[Counter[str]] = None,
        **params: Unpack[LoadParams],
    ) -> AsyncGenerator[Any, None]:
        """Loads the rows of a list by `load_row` and yields each once, with its image or error, in the order in which the loads end.

        A row is a URL, or a pair of a key and a URL, or a pair of a key and a LoadItem with parameters of its own. A URL is its own key.
        A fault of the run is raised: see `ImageWorkerError.is_about_row`. Rows that fail and may pass are tried again at the end, in
        `passes` - 1 further passes. `counts` gets the number of rows by kind of error, and of images as `loaded`.

        Usually a thousand rows are read and not yielded. If hardly any load ends, because servers do not answer, there may be up to
        `at_once`. A slow host has few loads in flight. `urls` is read only as loads begin, on the event loop: it must not wait.
        """
        rows = _Rows(urls, at_once, passes, counts)
        ended: asyncio.Queue[tuple[_Row, Union[Image, BaseException]]] = asyncio.Queue()
        tasks: set[asyncio.Task[None]] = set()

        async def load(row: _Row) -> None:
            merged: Any = {**params, **row.params}
            try:
                ended.put_nowait((row, await self.load_row(row.url, deliver=deliver, **merged)))
            except Exception as error:
                ended.put_nowait((row, error))

        try:
            while True:
                for row in rows.take(math.inf, not ended.empty()):
                    task = asyncio.ensure_future(load(row))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                if rows.in_flight == 0:
                    return
                if ended.empty():
                    try:
                        row, outcome = await asyncio.wait_for(ended.get(), _TURN)
                    except asyncio.TimeoutError:
                        continue
                else:
                    row, outcome = ended.get_nowait()
                if rows.end(row, outcome):
                    yield row.key, outcome
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def prefetch(
        self,
        urls: Iterable[Union[str, PrefetchItem]],
        *,
        on_event: Optional[PrefetchEventHandler] = None,
        **params: Unpack[PrefetchParams],
    ) -> PrefetchResult:
        """Loads images into the cache. Cancelling the task cancels the remaining loads.

        `urls` may be any iterable. With `on_event`, `events` defaults to `progress`.
        """
        request = _wire(PrefetchParams, params, "prefetch")
        request["urls"] = [_wire(PrefetchItem, item, "urls", "member") if isinstance(item, Mapping) else item for item in _checked(urls)]
        if on_event is not None:
            request.setdefault("events", ["progress"])
        return _parsed(PrefetchResult, await self._call("prefetch", request, on_event))

    async def probe(self, url: str, **params: Unpack[ProbeParams]) -> ImageFacts:
        """The format and size of an image, from the cache or from the first bytes of its file."""
        return _parsed(ImageFacts, await self._call("probe", {"url": url, **_wire(ProbeParams, params, "probe")}))

    async def process(
        self, image: Union[StrPath, bytes, bytearray, memoryview, SupportsFileno], *, root: Optional[StrPath] = None, **params: Unpack[ProcessParams]
    ) -> ProcessedImage:
        """Checks an image of the program's own, tells facts about it, and makes files of it. Nothing is stored.

        `image` is a path, an open file or its bytes. A file without a descriptor, such as a BytesIO, is read from its start. With `root`, the
        path may come from a stranger: it leads nowhere but below `root`.
        """
        request = _wire(ProcessParams, params, "process")
        request.update(_host_file(image, root))
        return _parsed(ProcessedImage, await self._call("process", request))

    async def cancel(self, **which: Unpack[CancelParams]) -> int:
        """Cancels loads by URL, group or slot, or all of them. Returns their number. To cancel one load, cancel its task."""
        return int((await self._call("cancel", _wire(CancelParams, which, "cancel")))["cancelled"])

    async def prioritize(self, priority: Priority, **which: Unpack[PrioritizeParams]) -> int:
        """Changes the priority of waiting loads by URL, group or slot. Returns the number of changed loads."""
        request = {"priority": priority, **_wire(PrioritizeParams, which, "prioritize")}
        return int((await self._call("prioritize", request))["changed"])

    async def pause(self) -> None:
        """Starts no more transfers until `resume`. Running transfers go on, and images come from the cache."""
        await self._call("pause", {})

    async def resume(self) -> None:
        await self._call("resume", {})

    async def query(self, **which: Unpack[QueryParams]) -> CacheEntry:
        """The cache's knowledge of an image, without a transfer."""
        return _parsed(CacheEntry, await self._call("query", _wire(QueryParams, which, "query")))

    @overload
    async def store(self, *, deliver: Literal["path"] = "path", **content: Unpack[StoreParams]) -> FileImage: ...

    @overload
    async def store(self, *, deliver: Literal["none"], **content: Unpack[StoreParams]) -> Image: ...

    async def store(self, *, deliver: Literal["path", "none"] = "path", **content: Unpack[StoreParams]) -> Image:
        """Puts an image of the program's own into the cache. With `deliver="none"`, its file may be evicted at once."""
        request = {**_wire(StoreParams, content, "store"), "deliver": deliver}
        image: Image = await self._call("store", request, None, self._made_image)
        return image

    async def clear(self, **which: Unpack[ClearParams]) -> Cleared:
        """Removes images from the cache: all, or those that the filter names."""
        return _parsed(Cleared, await self._call("clear", _wire(ClearParams, which, "clear")))

    async def release(self, **which: Unpack[ReleaseParams]) -> int:
        """Returns pixels to the worker by their path, or all. `Pixels.release` is the usual way."""
        return int((await self._call("release", _wire(ReleaseParams, which, "release")))["released"])

    async def configure(self, **options: Unpack[Options]) -> Options:
        """Changes options, also for workers that are started later. Returns all options in force. Without options, nothing changes."""
        request = _wire(Options, options, "configure")
        answer = await self._call("configure", request)
        self._configured.update(request)
        self._deadline = options.get("deadline", self._deadline)
        return _parsed(Options, answer)

    async def start_trace(self, path: StrPath, *, limit: Optional[int] = None) -> Trace:
        """Starts a timeline of all loads in a file, which Perfetto can open. `limit` is its maximum size in bytes. A `%p` in the path becomes
        the process ID of the worker. A trace ends with its worker."""
        return await self._trace({"action": "start", "path": _absolute(path, "path"), "limit": limit})

    async def stop_trace(self) -> Trace:
        """Completes the file of the trace."""
        return await self._trace({"action": "stop"})

    async def _trace(self, request: Mapping[str, Any]) -> Trace:
        return _parsed(Trace, await self._call("trace", {key: value for key, value in request.items() if value is not None}))

    async def initialize(self, *, formats: bool = False) -> WorkerInfo:
        """The worker's version, limits and cache directory. With `formats`, it starts a decoder and also returns the formats that can be
        decoded and encoded. The client itself checks the version of the protocol at each start."""
        return _parsed(WorkerInfo, await self._call("initialize", {"protocolVersion": PROTOCOL_VERSION, "formats": formats}))

    async def stats(self) -> Stats:
        return _parsed(Stats, await self._call("stats", {}))

    async def metrics(self) -> Metrics:
        """The metrics of the worker, to answer a scraper with."""
        return _parsed(Metrics, await self._call("metrics", {}))

    async def call(
        self, method: Method, params: Optional[Mapping[str, Any]] = None, *, on_event: Optional[EventHandler] = None
    ) -> Any:
        """Any method with its parameters and its result in the protocol's spelling."""
        return await self._call(method, params or {}, on_event)

    def notify(self, method: Method, params: Optional[Mapping[str, Any]] = None) -> None:
        """Sends a request, in the protocol's spelling, that is carried out and not answered. It is lost if the worker is dead.

        Its outcome comes to the `on_event` of the constructor: Completed, Answered or Failed.
        """
        _check_call(params or {}, None)
        if self._life is not None:
            self._check_loop()
            self._life.notify(method, params or {})

    async def _call(
        self,
        method: str,
        params: Mapping[str, Any],
        on_event: Optional[Callable[[Any], None]] = None,
        made: Callable[[Any], Any] = lambda result: result,
    ) -> Any:
        if self._is_closed or self._loop is None:
            raise RuntimeError("use this ImageWorker in `async with`, or between start and close")
        self._check_loop()
        _check_call(params, on_event)
        given = params.get("deadlineMs")
        deadline = self._deadline if given is None else given
        late = None
        if deadline and method in _WITH_DEADLINE and isinstance(deadline, (int, float)):
            late = self._loop.time() + (deadline if given is None else min(given, 1e15) / 1000) + _LATE
        life = self._life or await self._started(params.get("url"))
        return await life.call(method, params, on_event, made, late)

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("this ImageWorker must be used from the event loop that started it")

    def _made_image(self, wire: Mapping[str, Any]) -> Image:
        return _image(wire, self._pixel_owner)

    def _release(self, which: dict[str, Any]) -> None:
        """Called on any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # The loop is closed, and the worker with it.
                self._loop.call_soon_threadsafe(self._tell_of_release, which)

    def _tell_of_release(self, which: dict[str, Any]) -> None:
        if self._life is not None:
            self._life.tell("release", which)
        if self._cleanup is None:
            self._forget_mappings()

    def _forget_mappings(self) -> None:
        is_empty = self._pixel_owner.forget_old()
        self._cleanup = None if is_empty or self._is_closed or self._loop is None else self._loop.call_later(5, self._forget_mappings)

    # Start, end and restart

    async def _start(self) -> _Life:
        is_last = self._max_restarts == 0
        self._life = _Life(
            self._arguments, self._configured, self._pixel_owner, self._on_event, self._note_answer, self._note_end, is_last
        )
        return self._life

    async def _started(self, url: Optional[str]) -> _Life:
        """The running worker. All callers share one attempt to start it; none can cancel it, and each gets an error of its own."""
        starting = self._starting
        if starting is None or (starting.done() and self._end is not None):
            self._check_hope(url)
            starting = self._starting = asyncio.ensure_future(self._pause_and_start())
        await asyncio.wait([starting])
        if starting.cancelled():
            raise Cancelled("cancelled: closed", {"kind": "cancelled", "retryable": False, "url": url})
        life = starting.result()
        if life is None:
            assert self._end is not None
            raise self._end.for_call(url)
        return life

    def _check_hope(self, url: Optional[str]) -> None:
        assert self._loop is not None and self._end is not None
        is_given_up = self._deaths > self._max_restarts and self._loop.time() < self._next_start
        if is_given_up or not self._end.retryable:
            raise self._end.for_call(url)

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


_WITH_DEADLINE = {"load", "probe", "process"}

_LATE = 10
"""Seconds after the deadline of a call until it ends without an answer: a worker that is stopped or hangs does not answer."""

_HOPELESS = (64, 66, 73)
"""Exit statuses after which a restart would fail again: an invalid option, an unusable cookie file or cache directory."""


# The worker, for scripts and threads

_Result = TypeVar("_Result")


def _waiting(
    method: Callable[Concatenate[ImageWorker, _Params], Coroutine[Any, Any, _Result]],
) -> Callable[Concatenate[BlockingImageWorker, _Params], _Result]:
    """A method of ImageWorker as a method that waits for the result, with the same parameters."""

    def wait(self: BlockingImageWorker, /, *args: _Params.args, **keywords: _Params.kwargs) -> _Result:
        return self._wait(self._begin(lambda worker: method(worker, *args, **keywords)))

    functools.update_wrapper(wait, method)
    return wait


class BlockingImageWorker:
    """A worker for scripts and threads: its methods wait for their results. Any number of threads may share one.

    The worker starts at the first call, and again in a forked child. Its event loop runs on a thread of its own.
    """

    def __init__(self, *positional: NoReturn, **settings: Unpack[Settings]) -> None:
        """Takes the arguments of ImageWorker. Handlers run on the event loop's thread, and must not call this object."""
        ImageWorker(*positional, **settings)  # Wrong arguments and a missing binary are errors here and not of the first load.
        self._settings = settings
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

    load = _waiting(ImageWorker.load)
    load_file = _waiting(ImageWorker.load_file)
    load_row = _waiting(ImageWorker.load_row)
    prefetch = _waiting(ImageWorker.prefetch)
    cancel = _waiting(ImageWorker.cancel)
    prioritize = _waiting(ImageWorker.prioritize)
    pause = _waiting(ImageWorker.pause)
    resume = _waiting(ImageWorker.resume)
    probe = _waiting(ImageWorker.probe)
    process = _waiting(ImageWorker.process)
    query = _waiting(ImageWorker.query)
    store = _waiting(ImageWorker.store)
    clear = _waiting(ImageWorker.clear)
    release = _waiting(ImageWorker.release)
    configure = _waiting(ImageWorker.configure)
    start_trace = _waiting(ImageWorker.start_trace)
    stop_trace = _waiting(ImageWorker.stop_trace)
    initialize = _waiting(ImageWorker.initialize)
    stats = _waiting(ImageWorker.stats)
    metrics = _waiting(ImageWorker.metrics)
    call = _waiting(ImageWorker.call)

    def shutdown(self, mode: Optional[Literal["drain", "cancel"]] = None, grace: float = 5.0) -> None:
        """Ends the worker after it has finished all accepted requests, or with `cancel` has cancelled them."""
        self._wait(self._begin(lambda worker: worker.shutdown(mode, grace)))
        self.close(grace)

    def notify(self, method: Method, params: Optional[Mapping[str, Any]] = None) -> None:
        """As in ImageWorker."""

        async def notify(worker: ImageWorker) -> None:
            worker.notify(method, params)

        self._wait(self._begin(notify))

    @overload
    def load_all(
        self,
        urls: Iterable[str],
        *,
        deliver: Optional[Literal["path"]] = None,
        **params: Unpack[ListParams],
    ) -> Generator[Tuple[str, Union[FileImage, ImageWorkerError]], None, None]: ...

    @overload
    def load_all(
        self,
        urls: Iterable[Tuple[_Key, Union[str, LoadItem]]],
        *,
        deliver: Optional[Literal["path"]] = None,
        **params: Unpack[ListParams],
    ) -> Generator[Tuple[_Key, Union[FileImage, ImageWorkerError]], None, None]: ...

    @overload
    def load_all(
        self, urls: Iterable[str], *, deliver: Optional[Deliver], **params: Unpack[ListParams]
    ) -> Generator[Tuple[str, Union[Image, ImageWorkerError]], None, None]: ...

    @overload
    def load_all(
        self,
        urls: Iterable[Tuple[_Key, Union[str, LoadItem]]],
        *,
        deliver: Optional[Deliver],
        **params: Unpack[ListParams],
    ) -> Generator[Tuple[_Key, Union[Image, ImageWorkerError]], None, None]: ...

    def load_all(
        self,
        urls: Iterable[Any],
        *,
        deliver: Optional[Deliver] = None,
        at_once: int = 20_000,
        passes: int = 2,
        counts: Optional[Counter[str]] = None,
        **params: Unpack[LoadParams],
    ) -> Generator[Any, None, None]:
        """As in ImageWorker. `urls` is read on the caller's thread, and may wait."""
        rows = _Rows(urls, at_once, passes, counts)
        ended: queue.SimpleQueue[tuple[_Row, Union[Image, BaseException]]] = queue.SimpleQueue()

        async def load(worker: ImageWorker, row: _Row) -> None:
            merged: Any = {**params, **row.params} if row.params else params
            try:
                ended.put((row, await worker.load_row(row.url, deliver=deliver, **merged)))
            except BaseException as error:
                ended.put((row, error))

        async def load_some(worker: ImageWorker, some: list[_Row]) -> None:
            await asyncio.gather(*(load(worker, row) for row in some))

        begun: list[Future[None]] = []
        most_begun = 0
        try:
            while True:
                # A piece has as many rows as loads are in flight: handing over a piece costs more than a load from the cache. If `urls`
                # is slow to read, neither the first loads nor ended loads must wait for a large piece.
                if ended.empty() or rows.room >= rows.in_flight:
                    unended = rows.unended
                    some = rows.take(max(rows.in_flight, 1), not ended.empty())
                    if some:
                        if len(begun) >= most_begun:  # Not each time: a piece may be one row, and a thousand may be under way.
                            begun = [future for future in begun if not future.done()]
                            most_begun = 2 * len(begun) + 100
                        begun.append(self._begin(functools.partial(load_some, some=some)))
                    if rows.unended > unended and ended.empty():
                        continue
                if rows.in_flight == 0:
                    return
                try:
                    row, outcome = ended.get(timeout=_TURN)
                except queue.Empty:
                    continue
                if rows.end(row, outcome):
                    yield row.key, outcome
        finally:
            for future in begun:
                future.cancel()

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
            thread = _WorkerThread(ImageWorker(**self._settings), self)
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
        thread = self._thread
        if thread is not None and thread.is_current:
            raise RuntimeError("a handler cannot wait for a call: it runs on the thread that the answer comes to")

    def _wait(self, future: Future[_Result]) -> _Result:
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


class _WorkerThread:
    """The thread of a worker and of its loop, all three from `start` until `end_soon`, a failed start or an end of the loop.

    The end of the `owner`, whom nothing here keeps, is one, too.
    """

    def __init__(self, worker: ImageWorker, owner: BlockingImageWorker) -> None:
        # Not a subclass: if gevent comes after this module, its Thread is another class, and that of before cannot be joined.
        self._thread = threading.Thread(target=self._run, name="imageworker", daemon=True)
        self.start, self.join, self.is_alive = self._thread.start, self._thread.join, self._thread.is_alive
        self.worker = worker
        self._owner = weakref.ref(owner, self._lose_owner)
        self.loop: Future[asyncio.AbstractEventLoop] = Future()
        """The worker, once it has started."""
        self._end: Future[float] = Future()

    @property
    def is_current(self) -> bool:
        return threading.current_thread() is self._thread

    @property
    def has_ended(self) -> bool:
        """The loop, once it has started."""
        return (self._thread.ident is not None and not self.is_alive()) or (self.loop.done() and self.loop.exception() is not None)

    def end_soon(self, grace: float) -> None:
        """May be called before `start`. Never waits."""
        with contextlib.suppress(InvalidStateError):  # It ends already.
            self._end.set_result(grace)

    def _lose_owner(self, _: object) -> None:
        """Called on any thread: the one that collected the owner. In a forked child the thread is not alive."""
        if self.is_alive():
            self.end_soon(1.0)

    def _run(self) -> None:
        try:
            if _has_greenlets():
                _GreenletLoop().run(self._serve())
            else:
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
