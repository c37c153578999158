#!/usr/bin/env python3
"""Paints a few PNGs and serves them on the loopback interface: images to load without a network.

Prints a JSON line with the pictures' addresses when it is ready, and ends when its standard input ends. Bodies are sent
in pieces, so that there is progress to see.
"""

from __future__ import annotations

import json
import math
import struct
import sys
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Callable, Dict, Tuple

Painter = Callable[[float, float], Tuple[float, float, float]]


def png(width: int, height: int, paint: Painter) -> bytes:
    """An RGB image; `paint` gets the place from -1 to 1 along the shorter side and gives colours from 0 to 1."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = bytearray()
    side = min(width, height) / 2
    for row in range(height):
        rows.append(0)
        for column in range(width):
            colour = paint((column - width / 2) / side, (row - height / 2) / side)
            rows.extend(min(255, max(0, round(255 * part))) for part in colour)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(rows))) + chunk(b"IEND", b"")
    )


def dusk(x: float, y: float) -> Tuple[float, float, float]:
    glow = math.exp(-4 * ((x - 0.3) ** 2 + (y - 0.2) ** 2))
    return 0.15 + 0.3 * (y + 1) + 0.6 * glow, 0.1 + 0.15 * (y + 1) + 0.4 * glow, 0.35 - 0.1 * y + 0.1 * glow


def waves(x: float, y: float) -> Tuple[float, float, float]:
    phases = [math.sin(14 * math.hypot(x - a, y - b)) for a, b in ((-0.7, -0.4), (0.8, -0.2), (0.1, 0.7))]
    return 0.5 + 0.25 * (phases[0] + phases[1]), 0.5 + 0.25 * (phases[1] + phases[2]), 0.6 + 0.2 * sum(phases)


def julia(x: float, y: float) -> Tuple[float, float, float]:
    point, steps = complex(1.4 * x, 1.4 * y), 0
    while abs(point) < 4 and steps < 60:
        point = point * point + complex(-0.79, 0.15)
        steps += 1
    if steps == 60:
        return 0.02, 0.02, 0.08
    tone = steps - math.log2(math.log2(max(abs(point), 2.0)))
    return 0.5 + 0.5 * math.sin(0.28 * tone), 0.5 + 0.5 * math.sin(0.28 * tone + 1.2), 0.5 + 0.5 * math.sin(0.28 * tone + 2.4)


PICTURES: Dict[str, Tuple[int, int, Painter]] = {
    "dusk.png": (320, 200, dusk),
    "waves.png": (400, 300, waves),
    "julia.png": (480, 360, julia),
}


class Gallery(BaseHTTPRequestHandler):
    painted: Dict[str, bytes] = {}

    def do_GET(self) -> None:
        body = self.painted.get(self.path.lstrip("/"))
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "image/png")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=3600")
        self.end_headers()
        for start in range(0, len(body), 16384):
            self.wfile.write(body[start : start + 16384])
            time.sleep(0.03)

    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> None:
    Gallery.painted = {name: png(*picture) for name, picture in PICTURES.items()}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Gallery)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps([f"http://127.0.0.1:{server.server_port}/{name}" for name in PICTURES]), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
