"""examples/gallery in a headless Chromium: placeholders first, then previews, then images; what is on the screen before what
is near, and what has left is cancelled."""

from __future__ import annotations

import json
import os
import shutil
import signal
import unittest
from pathlib import Path
from typing import Any, Iterable

from browser import CHROMIUM, Browser
from gallery_server import GalleryTest
from origin_process import Origin
from processes import Watched, children

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

MEAN_COLOUR = """
    window.meanColour = (element) => {
        const [width, height] = [element.naturalWidth ?? element.width, element.naturalHeight ?? element.height];
        const context = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d");
        context.drawImage(element, 0, 0);
        const sums = [0, 0, 0];
        context.getImageData(0, 0, width, height).data.forEach((value, at) => (sums[at % 4] += value));
        return sums.slice(0, 3).map((sum) => sum / width / height);
    };
    undefined
"""

TOP = range(12)
"""The cells that are always on the first screen."""


def final(numbers: Iterable[int]) -> str:
    return f"{json.dumps([*numbers])}.every((n) => grid.children[n]?.dataset.final)"


def first_places(log: list[dict[str, Any]], drawn: str) -> dict[int, int]:
    """The place in the log of the first drawing in each cell."""
    return {entry["n"]: place for place, entry in reversed(list(enumerate(log))) if entry.get("drawn") == drawn}


def screenshot(browser: Browser, name: str) -> bytes:
    """Kept in the folder $SCREENSHOTS, if that is set."""
    picture = browser.screenshot()
    if "SCREENSHOTS" in os.environ:
        Path(os.environ["SCREENSHOTS"], name).write_bytes(picture)
    return picture


@unittest.skipIf(shutil.which("node") is None, "there is no node here")
@unittest.skipIf(CHROMIUM is None, "there is no Chromium here")
class Gallery(GalleryTest):
    def test_pictures_of_its_own_come_on_the_screen_after_previews(self) -> None:
        address = self.serve("--pictures", "60")
        with Browser() as browser:
            browser.open(address)
            drawn = "gallery.log.filter((entry) => entry.drawn === 'image').length"
            browser.evaluate(f"gallery.when(() => {drawn} >= 20)")
            self.assertGreater(len(screenshot(browser, "gallery.png")), 100_000, "there is something to see")
            panel = browser.evaluate("gallery.when(() => gallery.stats).then(() => document.getElementById('panel').innerText)")
            self.assertIn("on screen", panel)
            is_previewed = "(entry) => entry.drawn === 'preview' && grid.children[entry.n].dataset.final"
            browser.evaluate(f"gallery.when(() => gallery.log.some({is_previewed}))")
            self.assert_order(browser, "preview", "image")
            self.assertFalse(browser.evaluate("gallery.log.some((entry) => entry.stats)"), "figures would make the log long")

    def test_a_preview_is_drawn_while_the_rest_of_the_image_is_to_come(self) -> None:
        origin = self.exits.enter_context(Origin())
        halves = "progressive&bytes=100000&hold=half@50000"
        urls = self.list_of(f"{origin.url}/image/{n}.jpg?{halves}" for n in range(60))
        with Browser() as browser:
            browser.open(self.serve("--list", urls))
            browser.evaluate("gallery.when(() => gallery.log.some((entry) => entry.drawn === 'preview'))")
            self.assertEqual(browser.evaluate(f"{DRAWN}.length"), 0)
            origin.command({"do": "release", "gate": "half"})
            browser.evaluate(f"gallery.when(() => {final(TOP)})")
            self.assert_order(browser, "preview", "image")

    def test_what_is_near_has_a_placeholder_in_its_colours_before_it_is_on_the_screen(self) -> None:
        near = "gallery.log.find(({ n, drawn }) => drawn === 'placeholder' && seen.near.has(n) && !seen.shown.has(n))"
        with Browser() as browser:
            browser.open(self.serve("--pictures", "500"))
            n = browser.evaluate(f"gallery.when(() => {near}).then(() => {near}.n)")
            browser.evaluate(MEAN_COLOUR)
            placeholder = browser.evaluate(f"meanColour(grid.children[{n}].querySelector('canvas'))")
            browser.evaluate(f"grid.children[{n}].scrollIntoView(); gallery.when(() => {final([n])})")
            image = browser.evaluate(f"meanColour(grid.children[{n}].lastChild)")
            for found, expected in zip(placeholder, image):
                self.assertAlmostEqual(found, expected, delta=8)
            self.assertIn(n, self.assert_order(browser, "placeholder", "image"))

    def test_a_page_that_is_opened_again_begins_with_placeholders(self) -> None:
        address = self.serve("--pictures", "500")
        with Browser() as browser:
            browser.open(address)
            browser.evaluate(f"gallery.when(() => {final(TOP)})")
            browser.send("Network.enable")
            browser.send("Network.setBlockedURLs", urls=["*/look*"])  # So that no image comes.
            browser.open(address)
            has_placeholder = "(n) => grid.children[n]?.querySelector('canvas')"
            browser.evaluate(f"gallery.when(() => {json.dumps([*TOP])}.every({has_placeholder}))")
            self.assertEqual(browser.evaluate(f"{DRAWN}.length"), 0)
            screenshot(browser, "gallery-placeholders.png")
            browser.send("Network.setBlockedURLs", urls=[])
            browser.evaluate(f"tell(); gallery.when(() => {final(TOP)})")
            self.assertLessEqual(set(TOP), self.assert_order(browser, "placeholder", "image"))

    def test_placeholders_and_images_outlive_the_server(self) -> None:
        with Browser() as browser:
            browser.open(self.serve("--pictures", "500"))
            browser.evaluate(f"gallery.when(() => {final(TOP)})")
            with Watched(self.server) as server:
                os.kill(self.server, signal.SIGTERM)
                self.assertTrue(server.ends())
            browser.open(self.serve("--pictures", "500"))
            browser.evaluate(f"gallery.when(() => {final(TOP)})")
            self.assertLessEqual(set(TOP), self.assert_order(browser, "placeholder", "image"))
            images = [entry for entry in browser.evaluate("gallery.log") if "image" in entry and entry["n"] in TOP]
            self.assertNotIn("miss", {entry["cache"] for entry in images})

    def assert_order(self, browser: Browser, earlier: str, later: str) -> set[int]:
        """The cells in which both were drawn; there must be some."""
        log = browser.evaluate("gallery.log")
        before, after = first_places(log, earlier), first_places(log, later)
        both = before.keys() & after.keys()
        self.assertTrue(both)
        for n in both:
            self.assertLess(before[n], after[n], f"{n}: {earlier} before {later}")
        return both

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
