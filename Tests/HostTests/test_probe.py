"""`probe` answers as `load` does for each file of the test corpora, whether the server serves ranges or not."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib.util
import os
import re
import sys
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Iterator, Optional

from bomb_files import bombs
from package import ROOT

sys.path.insert(0, str(ROOT / "examples" / "python"))
sys.path.insert(0, str(ROOT / "Tests" / "Origin"))

from images import MAKERS, Picture, image  # noqa: E402
from imageworker import ImageWorker, ImageWorkerError, find_worker  # noqa: E402

PNG_SUITE = next((each / "shared/pngsuite" for each in ROOT.parents if (each / "shared/pngsuite").is_dir()), None)
HAS_PICTURES = all(importlib.util.find_spec(name) for name in ("numpy", "PIL"))
MEMBERS = ("format", "media_type", "width", "height", "frames", "orientation")


class Handler(BaseHTTPRequestHandler):
    """Serves `files` by number: `/ranges/5` with ranges and a validator, `/weak/5` with ranges alone, `/whole/5` without."""

    protocol_version = "HTTP/1.1"
    files: list[bytes] = []

    def do_GET(self) -> None:
        kind, number = self.path.split("?")[0].strip("/").split("/")
        content = self.files[int(number)]
        status, first, last = 200, 0, len(content) - 1
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked and kind != "whole":
            first = int(asked[1])
            last = min(int(asked[2] or last), last)
            status = 206 if first <= last else 416
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        if kind == "ranges":
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        body = content[first : last + 1] if status != 416 else b""
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):  # A probe may end the connection.
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextlib.contextmanager
def serving(files: list[bytes]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("FileHandler", (Handler,), {"files": files}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Probes(unittest.IsolatedAsyncioTestCase):
    async def compare(self, files: dict[str, bytes]) -> None:
        """Each file by probe, by load, and by load after the probe, which goes on from what the probe received."""
        self.assertTrue(files)
        with tempfile.TemporaryDirectory() as folder, serving(list(files.values())) as base:
            binary = find_worker(os.environ.get("IMAGEWORKER"))
            async with ImageWorker(binary=binary, cache_dir=Path(folder)) as worker:
                for kind in ("ranges", "weak", "whole"):

                    async def answers(number: int, kind: str = kind) -> list[Any]:
                        url = f"{base}/{kind}/{number}"
                        probed = await self.facts(worker.probe(f"{url}?probed"))
                        loaded = await self.facts(worker.load(f"{url}?loaded", deliver="none"))
                        # A failure of the probe would be remembered.
                        after = await self.facts(worker.load(f"{url}?probed", deliver="none", retry_failed=True))
                        return [probed, loaded, after]

                    found = await asyncio.gather(*map(answers, range(len(files))))
                    for name, (probed, loaded, after) in zip(files, found):
                        with self.subTest(file=name, server=kind):
                            self.assertEqual(probed, loaded)
                            self.assertEqual(after, loaded)

    async def facts(self, call: Any) -> dict[str, Any]:
        try:
            answer = await call
        except ImageWorkerError as error:
            return {"kind": error.kind}
        facts = {member: getattr(answer, member) for member in MEMBERS}
        # Left out of the answer to a probe if they are 1.
        return facts | {member: facts[member] or 1 for member in ("frames", "orientation")}

    async def test_made_images(self) -> None:
        """Small ones, and ones that are longer than the first range."""
        files: dict[str, bytes] = {}
        for kind in MAKERS:
            for size in (None, 32_768, 32_769, 100_000):
                for frames in (1, 3):
                    for orientation in (1, 6):
                        picture = Picture(7, 70, 50, size=size, frames=frames, orientation=orientation)
                        with contextlib.suppress(ValueError):  # The format has no padding, or no frames.
                            _, body = image(kind, picture)
                            content = body.read(0, body.length)
                            files[f"{kind}, {len(content)} bytes, {frames} frames, orientation {orientation}"] = content
        files["nothing"] = b""
        files["text"] = b"no image" * 10_000
        await self.compare(files)

    async def test_bombs(self) -> None:
        await self.compare({bomb.name: bomb.file for bomb in bombs() if len(bomb.file) < 8 << 20})

    @unittest.skipUnless(HAS_PICTURES, "numpy or Pillow is not installed")
    async def test_pictures_of_all_formats(self) -> None:
        from picture_cases import cases

        await self.compare({case.name: case.content for case in cases()})

    @unittest.skipIf(PNG_SUITE is None, "PngSuite is not beside the package")
    async def test_png_suite(self) -> None:
        folder: Optional[Path] = PNG_SUITE
        assert folder
        await self.compare({path.name: path.read_bytes() for path in sorted(folder.glob("*.png"))})

    async def test_images_of_the_documents(self) -> None:
        paths = sorted((ROOT / "protocol" / "images").iterdir())
        await self.compare({path.name: path.read_bytes() for path in paths})


if __name__ == "__main__":
    unittest.main()
