"""The part of an image that a cover keeps, in the built worker, as Pillow sees the results."""

from __future__ import annotations

import contextlib
import io
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from PIL import Image
from test_cache_disk import Worker


class Images(contextlib.AbstractContextManager["Images"]):
    """A server of images that may be cached for an hour."""

    def __init__(self) -> None:
        files = self.files = dict[str, bytes]()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = files[self.path]
                self.send_response(200)
                self.send_header("Cache-Control", "max-age=3600")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def url(self, name: str, body: bytes) -> str:
        self.files["/" + name] = body
        return f"http://127.0.0.1:{self._server.server_port}/{name}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


class WithWorker(unittest.TestCase):
    def setUp(self) -> None:
        exits = contextlib.ExitStack()
        self.addCleanup(exits.close)
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory())).resolve()
        self.images = exits.enter_context(Images())
        self.worker = exits.enter_context(Worker(folder / "cache"))

    def load(self, name: str, body: bytes, **params: Any) -> dict[str, Any]:
        answer = self.worker.call("load", url=self.images.url(name, body), **params)
        self.assertIn("result", answer)
        result: dict[str, Any] = answer["result"]
        return result


class Crop(WithWorker):
    def test_all_frames_keep_the_part_that_the_first_one_chose(self) -> None:
        frames = []
        for left, color in ((260, "red"), (0, "lime")):
            frame = Image.new("RGB", (300, 40), "gray")
            frame.paste(color, (left, 0, left + 40, 40))
            frames.append(frame)
        body = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=100)
        transform = {"width": 40, "height": 40, "fit": "cover", "crop": "attention", "frames": "all"}
        with Image.open(self.load("moving.gif", body, transform=transform)["path"]) as image:
            self.assertEqual((image.size, getattr(image, "n_frames")), ((40, 40), 2))
            colors = []
            for number in range(2):
                image.seek(number)
                colors.append(image.convert("RGB").getpixel((36, 20)))
        red, gray = colors
        self.assertGreater(red[0], red[1] + 100, "the first frame shows its red part")
        self.assertLess(max(gray) - min(gray), 40, "the second frame shows the same part, where it is grey")


if __name__ == "__main__":
    unittest.main()
