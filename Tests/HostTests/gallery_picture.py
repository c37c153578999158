#!/usr/bin/env python3
"""Makes protocol/images/gallery.webp, the picture of examples/gallery in the README, in a headless Chromium.

    IMAGEWORKER=.build/release/imageworker Tests/HostTests/gallery_picture.py

The gallery paints its own pictures. The page is scrolled until it shows images, previews and placeholders.
"""

from __future__ import annotations

import base64
import contextlib
import subprocess
import tempfile

from browser import Browser
from gallery_server import SERVER
from package import ROOT

WIDTH, HEIGHT = 1200, 700
PICTURE = ROOT / "protocol" / "images" / "gallery.webp"

STAGES = """
    const shown = () => [...grid.children].filter((cell) => {
        const { top, bottom } = cell.getBoundingClientRect();
        return bottom > 0 && top < innerHeight;
    });
    const stages = () => {
        const cells = shown();
        const images = cells.filter((cell) => cell.dataset.final).length;
        const previews = cells.filter((cell) => !cell.dataset.final && cell.querySelector("img")).length;
        return { cells: cells.length, images, previews, empty: cells.filter((cell) => !cell.firstChild).length };
    };
    /** True when the screen shows images, previews and placeholders; false when it shows nothing but images. */
    const isMixed = () => new Promise((done) => gallery.when(() => {
        const { cells, images, previews, empty } = stages();
        if (scrollY > 0 && images >= 8 && previews >= 2 && empty < 4 && gallery.stats?.queue.active > 0) return done(true), true;
        return cells > 0 && images === cells && (done(false), true);
    }));
    undefined
"""


def main() -> None:
    with contextlib.ExitStack() as exits:
        cache = exits.enter_context(tempfile.TemporaryDirectory())
        command = [str(SERVER), "--port", "0", "--", f"--cache-dir={cache}"]
        server = exits.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        exits.callback(server.terminate)
        assert server.stdout is not None
        browser = exits.enter_context(Browser())
        metrics = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        browser.send("Emulation.setDeviceMetricsOverride", **metrics)
        browser.open(server.stdout.readline().strip())
        browser.evaluate(STAGES)
        while not browser.evaluate("isMixed()"):
            browser.evaluate("scrollBy(0, 4 * (grid.children[0].offsetHeight + 6))")
        screenshot = browser.send("Page.captureScreenshot", format="webp", quality=80)["data"]
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_bytes(base64.b64decode(screenshot))


if __name__ == "__main__":
    main()
