"""examples/gallery in a headless Chromium: what is on the screen comes first, what has left is cancelled."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from browser import CHROMIUM, Browser
from origin_process import Origin
from package import ROOT

SERVER = ROOT / "examples" / "gallery" / "server.mjs"


@unittest.skipIf(shutil.which("node") is None, "there is no node here")
class Gallery(unittest.TestCase):
    def setUp(self) -> None:
        self.exits = contextlib.ExitStack()
        self.addCleanup(self.exits.close)
        self.folder = Path(self.exits.enter_context(tempfile.TemporaryDirectory()))

    def serve(self, *options: str) -> str:
        command = [str(SERVER), "--port", "0", *options, "--", f"--cache-dir={self.folder}/cache"]
        server = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None

        def stop() -> None:
            server.terminate()
            server.wait()
            assert server.stdout is not None
            server.stdout.close()

        self.exits.callback(stop)
        return server.stdout.readline().strip()

    @unittest.skipIf(CHROMIUM is None, "there is no Chromium here")
    def test_pictures_of_its_own_come_on_the_screen(self) -> None:
        address = self.serve("--pictures", "60")
        with Browser() as browser:
            browser.open(address)
            drawn = "gallery.log.filter((entry) => entry.drawn === 'image').length"
            browser.evaluate(f"gallery.when(() => {drawn} >= 20)")
            picture = browser.screenshot()
            place = os.environ.get("SCREENSHOTS")
            if place:
                Path(place, "gallery.png").write_bytes(picture)
            self.assertGreater(len(picture), 100_000, "there is something to see")
            panel = browser.evaluate("gallery.when(() => gallery.stats).then(() => document.getElementById('panel').innerText)")
            self.assertIn("on screen", panel)

    @unittest.skipIf(CHROMIUM is None, "there is no Chromium here")
    def test_what_is_on_the_screen_comes_first_and_what_has_left_is_cancelled(self) -> None:
        origin = self.exits.enter_context(Origin())
        count = 3000
        held = (f"{origin.url}/image/{n}.png?hold=gate&cache-control=max-age%3D600" for n in range(count))
        (self.folder / "list").write_text("\n".join(held))
        with Browser() as browser:
            browser.open(self.serve("--list", str(self.folder / "list")))
            origin.command({"do": "await", "gate": "gate", "held": 6})
            browser.evaluate("scrollTo(0, document.body.scrollHeight)")
            # All that was wanted at the top and is no longer.
            browser.evaluate("gallery.when(() => gallery.log.filter((entry) => entry.cancelled).length >= 30)")
            browser.evaluate(f"gallery.when(() => gallery.stats?.requests.cancelled >= 30)")
            shown = browser.evaluate("[...seen.shown]")
            near = set(browser.evaluate("[...seen.near]")) - set(shown)
            self.assertIn(count - 1, shown)
            self.assertTrue(near)
            origin.command({"do": "release", "gate": "gate"})
            drawn = "gallery.log.filter((entry) => entry.drawn === 'image').map((entry) => entry.n)"
            everything = browser.evaluate(f"gallery.when(() => {drawn}.length >= {len(shown)}).then(() => {drawn})")
            self.assertEqual(set(everything), set(shown))

            targets = [entry["target"] for entry in origin.command({"do": "log", "path": "/image"})["exchanges"]]
            asked = [int(target.split("/")[2].split(".")[0]) for target in targets]
            bottom = [n for n in asked if n in near or n in shown]
            last_shown = max(place for place, n in enumerate(bottom) if n in shown)
            # Six may have started before the browser said what was on the screen.
            early = [n for n in bottom[:last_shown] if n in near]
            self.assertLessEqual(len(early), 6, "what is on the screen is asked for before what is near")
            self.assertLess(len(set(asked)), 200, "what nobody came to see is not asked for")


if __name__ == "__main__":
    unittest.main()
