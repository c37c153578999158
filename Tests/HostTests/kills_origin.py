"""An origin whose pictures change: each tells in its first bytes whose it is, by name, version and language."""

from __future__ import annotations

import contextlib
import struct
import threading
import time
import zlib
from dataclasses import dataclass
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Mapping, Optional

LABEL = b"iWkl"
POLICIES = {
    "kept": "max-age=600",
    "asked": "max-age=0",
    "never": "no-store",
    "varied": "max-age=600",
}
LANGUAGES = ("de", "en")
MANNERS = {"good": 80, "slow": 10, "cut": 6, "failing": 4}
"""How often each is had. `cut` bodies end in the middle."""


@dataclass(frozen=True)
class Picture:
    """The identity of a body."""

    name: str
    version: int
    language: str

    @property
    def tag(self) -> str:
        return f'"{self.name}-{self.version}-{self.language}"'


def policy_of(name: str) -> str:
    return name.partition("-")[0]


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


@lru_cache(maxsize=512)
def body_of(picture: Picture) -> bytes:
    """A PNG by its header, all of it different from every other's."""
    large = picture.name.endswith("L")
    random = Random(picture.name)
    size = random.randint(270_000, 700_000) if large else random.randint(200, 30_000)
    # One version is often as long as the one before.
    size += picture.version // 2 % 3 * 500
    label = f"{picture.name} {picture.version} {picture.language}".encode()
    filler = Random(f"{picture}").getrandbits(8 * size).to_bytes(size, "big")
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 32, 24, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(LABEL, label) + chunk(b"iWfl", filler)


def picture_of(body: bytes) -> Optional[Picture]:
    """The identity that the first bytes of a body give; None if they have none."""
    start = 8 + 25
    if body[start + 4 : start + 8] != LABEL:
        return None
    length = int.from_bytes(body[start : start + 4], "big")
    name, version, language = body[start + 8 : start + 8 + length].decode().split(" ")
    return Picture(name, int(version), language)


class ChangingOrigin:
    """Serves `/i/NAME`. Every version is one more than the one before, and is never served again after the next."""

    def __init__(self, seed: int, manners: Mapping[str, int] = MANNERS) -> None:
        self._random = Random(seed)
        self._manners = manners
        self._lock = threading.Lock()
        self._versions: dict[str, int] = {}
        self.served: dict[str, int] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/i/{name}.png"

    def version(self, name: str) -> int:
        with self._lock:
            return self._versions.get(name, 1)

    def change(self, name: str) -> int:
        with self._lock:
            self._versions[name] = self._versions.get(name, 1) + 1
            return self._versions[name]

    def _manner(self) -> str:
        with self._lock:
            [manner] = self._random.choices(list(self._manners), list(self._manners.values()))
            self.served[manner] = self.served.get(manner, 0) + 1
            return manner

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        origin = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, format: str, *arguments: object) -> None:
                pass

            def handle(self) -> None:
                with contextlib.suppress(OSError):  # the worker was killed, or has cancelled
                    super().handle()

            def do_GET(self) -> None:
                name = self.path.rpartition("/")[2].partition(".")[0]
                language = self.headers.get("x-language", "-") if policy_of(name) == "varied" else "-"
                origin._answer(self, Picture(name, origin.version(name), language))

        return Handler

    def _answer(self, request: BaseHTTPRequestHandler, picture: Picture) -> None:
        manner = self._manner()
        if manner == "failing":
            request.send_response(500)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        if request.headers.get("if-none-match") == picture.tag:
            request.send_response(304)
            self._end_head(request, picture)
            return
        body = body_of(picture)
        start = self._start(request, picture, len(body))
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        request.send_header("Content-Length", f"{len(body) - start}")
        request.send_header("Content-Type", "image/png")
        self._end_head(request, picture)
        end = len(body) if manner != "cut" else (start + len(body)) // 2
        while start < end:
            piece = body[start : min(end, start + 50_000)]
            request.wfile.write(piece)
            start += len(piece)
            if manner == "slow":
                time.sleep(0.003)
        if manner == "cut":
            request.close_connection = True

    def _end_head(self, request: BaseHTTPRequestHandler, picture: Picture) -> None:
        policy = policy_of(picture.name)
        request.send_header("ETag", picture.tag)
        request.send_header("Cache-Control", POLICIES[policy])
        if policy == "varied":
            request.send_header("Vary", "x-language")
        request.end_headers()

    def _start(self, request: BaseHTTPRequestHandler, picture: Picture, length: int) -> int:
        """From where on the rest is wanted, if that is of the same picture."""
        wanted = request.headers.get("range", "")
        if not wanted.startswith("bytes=") or request.headers.get("if-range") != picture.tag:
            return 0
        start = int(wanted[len("bytes=") :].partition("-")[0])
        return start if start < length else 0
