"""Pictures and other files that people upload, made here, and requests that upload them."""

from __future__ import annotations

import functools
import http.client
import io
import json
import re
import selectors
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Mapping, Optional, Sequence
from urllib.parse import urlsplit

import numpy
from PIL import Image

from origin_process import PATIENCE


def photo(width: int, height: int, mode: str = "RGB") -> Image.Image:
    """Smooth, with a little noise, as of a camera."""
    noise = numpy.random.default_rng(width)
    small = Image.fromarray(noise.integers(0, 255, (max(height // 40, 1), max(width // 40, 1), 3), dtype=numpy.uint8))
    pixels = numpy.asarray(small.resize((width, height), Image.Resampling.BICUBIC)).astype(numpy.int16)
    picture = Image.fromarray((pixels + noise.integers(-6, 7, (height, width, 1))).clip(0, 255).astype(numpy.uint8))
    if mode == "RGBA":
        picture.putalpha(Image.linear_gradient("L").resize((width, height)))
    return picture


@functools.lru_cache(maxsize=None)
def jpeg(width: int = 1600, height: int = 1200, orientation: int = 1) -> bytes:
    """With the position of the camera."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x0110] = "Camera"
    exif[0x8825] = {1: "N", 2: (52.0, 31.0, 12.0), 3: "E", 4: (13.0, 24.0, 18.0)}
    file = io.BytesIO()
    photo(width, height).save(file, "JPEG", quality=88, exif=exif)
    return file.getvalue()


@functools.lru_cache(maxsize=None)
def png(width: int = 400, height: int = 300, mode: str = "RGBA") -> bytes:
    file = io.BytesIO()
    photo(width, height, mode).save(file, "PNG")
    return file.getvalue()


PDF = b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n"


class Server:
    """A server in a process of its own. A line of its output has the URL at which it listens."""

    def __init__(self, command: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.log = ""
        try:
            self.url = self.awaited(r"(http://127\.0\.0\.1:\d+)")
        except BaseException:
            self.end()
            raise

    def awaited(self, pattern: str) -> str:
        """The first group of the pattern in the output. Reads on until it comes."""
        assert self.process.stdout is not None
        until = time.monotonic() + PATIENCE
        with selectors.DefaultSelector() as readable:
            readable.register(self.process.stdout, selectors.EVENT_READ)
            while True:
                found = re.search(pattern, self.log)
                if found:
                    return found[1]
                if not readable.select(until - time.monotonic()):
                    raise AssertionError(f"no {pattern} in {self.log}")
                read = self.process.stdout.read1(1 << 16)  # type: ignore[attr-defined]
                if not read:
                    raise AssertionError(f"the server has ended: {self.log}")
                self.log += read.decode(errors="replace")

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        try:
            rest, _ = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            rest, _ = self.process.communicate()
        self.log += rest.decode(errors="replace")
        return self.process.returncode

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self.process.poll() is None:
            self.end()
        elif self.process.stdout is not None:
            self.process.stdout.close()

    def post(self, path: str, body: bytes, headers: Mapping[str, str] = {}) -> tuple[int, Any, Mapping[str, str]]:
        """The status, the JSON and the headers of the response."""
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE)
        try:
            connection.request("POST", path, body, dict(headers))
            response = connection.getresponse()
            text = response.read()
            return response.status, json.loads(text) if text[:1] in (b"{", b"[") else text.decode(), dict(response.getheaders())
        finally:
            connection.close()

    def post_form(self, path: str, content: bytes) -> tuple[int, Any, Mapping[str, str]]:
        """As a form of a page with the file in its field `picture`."""
        head = b'--boundary\r\nContent-Disposition: form-data; name="picture"; filename="a.jpg"\r\nContent-Type: image/jpeg\r\n\r\n'
        body = head + content + b"\r\n--boundary--\r\n"
        return self.post(path, body, {"Content-Type": "multipart/form-data; boundary=boundary"})
