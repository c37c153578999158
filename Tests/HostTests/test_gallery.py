"""examples/gallery in a headless Chromium: what is on the screen comes first, what has left is cancelled."""

from __future__ import annotations

import json
import os
import shutil
import signal
import unittest
from pathlib import Path

from browser import CHROMIUM, Browser
from gallery_server import GalleryTest
from origin_process import Origin
from processes import children

DRAWN = "gallery.log.filter((entry) => entry.drawn === 'image')"

HELD_LOOKS = """
    window.looks = [];
    const send = fetch;
    window.fetch = async (url, options) => {
        looks.push(JSON.parse(options.body));
        notice();
        await new Promise((done) => (window.arrive = done));
        return send(url, options);
    };
    const frame = () => new Promise(requestAnimationFrame);
    const isShown = async (n) => { while (!seen.shown.has(n)) await frame(); };
    undefined
"""


@unittest.skipIf(shutil.which("node") is None, "there is no node here")
@unittest.skipIf(CHROMIUM is None, "there is no Chromium here")
class Gallery(GalleryTest):
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
            self.assertFalse(browser.evaluate("gallery.log.some((entry) => entry.stats)"), "figures would make the log long")

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

    def test_one_look_is_under_way_at_a_time_and_the_newest_comes_next(self) -> None:
        address = self.serve("--pictures", "2000")
        with Browser() as browser:
            browser.open(address)
            browser.evaluate(f"gallery.when(() => {DRAWN}.length > 0)")
            browser.evaluate(HELD_LOOKS)
            browser.evaluate("scrollTo(0, 20_000); gallery.when(() => looks.length === 1)")
            browser.evaluate("scrollTo(0, document.body.scrollHeight); isShown(1999).then(frame).then(frame)")
            self.assertEqual(browser.evaluate("looks.length"), 1)
            browser.evaluate("arrive(); gallery.when(() => looks.length === 2)")
            self.assertIn(1999, browser.evaluate("looks[1].shown"))

    def test_what_was_lost_with_the_worker_comes_all_the_same(self) -> None:
        origin = self.exits.enter_context(Origin())
        urls = self.list_of(f"{origin.url}/image/{n}.png?hold=gate" for n in range(500))
        with Browser() as browser:
            browser.open(self.serve("--list", urls))
            origin.command({"do": "await", "gate": "gate", "held": 6})
            shown = browser.evaluate("[...seen.shown]")
            for worker in children(self.server):
                os.kill(worker, signal.SIGKILL)
            browser.evaluate("gallery.when(() => gallery.log.some((entry) => entry.error))")
            origin.command({"do": "release", "gate": "gate"})
            browser.evaluate(f"gallery.when(() => {json.dumps(shown)}.every((n) => grid.children[n].dataset.final))")
            self.assertEqual(browser.evaluate("document.querySelectorAll('.failed').length"), 0)

    def test_a_file_that_did_not_come_is_asked_for_again(self) -> None:
        address = self.serve("--pictures", "60")
        with Browser() as browser:
            browser.send("Network.enable")
            browser.send("Network.setBlockedURLs", urls=["*/file/*"])
            browser.open(address)
            broken = "gallery.log.filter((entry) => entry.broken).map((entry) => entry.n)"
            missed = browser.evaluate(f"gallery.when(() => {broken}.length > 0).then(() => {broken})")
            browser.send("Network.setBlockedURLs", urls=[])
            browser.evaluate(f"gallery.when(() => {json.dumps(missed)}.every((n) => grid.children[n].dataset.final))")

    def test_what_fails_again_and_again_is_marked_until_it_comes(self) -> None:
        picture = self.folder / "picture.svg"
        picture.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
        refuses = f"""
    if request["method"] == "load":
        with open(folder / "loads", "a") as loads:
            print(request["params"]["url"], file=loads)
        answer = {{"error": {{"code": 2011, "message": "refused", "data": {{"retryable": True}}}}}}
        if (folder / "mended").exists():
            answer = {{"result": {{"path": {str(picture)!r}, "cache": "miss"}}}}
"""
        urls = self.list_of(f"https://example.com/{n}" for n in range(500))
        with Browser() as browser:
            browser.open(self.serve("--list", urls, worker=self.worker(refuses)))
            browser.evaluate("gallery.when(() => grid.children[0]?.matches('.failed'))")
            loads = (self.folder / "loads").read_text().split("\n")
            self.assertEqual(loads.count("https://example.com/0"), 4)
            (self.folder / "mended").touch()
            browser.evaluate("scrollTo(0, document.body.scrollHeight); gallery.when(() => grid.children[499].dataset.final)")
            browser.evaluate("scrollTo(0, 0); gallery.when(() => grid.children[0].dataset.final)")
            self.assertFalse(browser.evaluate("grid.children[0].matches('.failed')"))


if __name__ == "__main__":
    unittest.main()
