#!/usr/bin/env python3
"""Compares the worker's pictures with Chromium's, for generated images of every format, and prints a table.

    compare_pictures.py [--worker PATH] [--all] [WORD...]

Formats that Chromium does not show are compared with Pillow's. A difference is one of premultiplied colours or of alpha,
of 255. Rows are those whose worst pixel differs by more than 2, or all with --all, or those whose names have all WORDs.
The exit status is 1 where a difference is larger than `picture_cases.py` explains.

With images that the worker writes, Chromium compares the source with what was written of it.
"""

from __future__ import annotations

import argparse
import base64
import http.server
import io
import sys
import tempfile
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Iterator, Literal, Optional, Sequence

import numpy
from PIL import Image, ImageCms, ImageOps

import picture_cases
from browser import Browser
from chaos_session import default_worker
from package import ROOT
from picture_cases import Case, Pixels

sys.path.insert(0, str(ROOT / "examples" / "python"))
from imageworker import BlockingImageWorker, ImageWorkerError, Transform  # noqa: E402

SHOW = """
    const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const pixels = (picture, width, height) => {
        const context = new OffscreenCanvas(width, height).getContext("2d");
        context.drawImage(picture, 0, 0);
        let text = "";
        for (const byte of context.getImageData(0, 0, width, height).data) text += String.fromCharCode(byte);
        return { width, height, data: btoa(text) };
    };
    window.show = async (type, text) => {
        const image = new Image();
        image.src = `data:${type};base64,${text}`;
        try { await image.decode(); } catch { return []; }
        return [pixels(image, image.naturalWidth, image.naturalHeight)];
    };
    window.showFrames = async (type, text) => {
        const decoder = new ImageDecoder({ type, data: bytes(text) });
        const frames = [];
        try {
            await decoder.tracks.ready;
            await decoder.completed;
            for (let frameIndex = 0; frameIndex < decoder.tracks.selectedTrack.frameCount; frameIndex++) {
                const { image } = await decoder.decode({ frameIndex });
                frames.push({ duration: image.duration, ...pixels(image, image.displayWidth, image.displayHeight) });
            }
        } catch { return []; }
        return frames;
    };
    undefined
"""
MEDIA_TYPES = {"JPEG": "image/jpeg", "GIF": "image/gif", "WebP": "image/webp", "AVIF": "image/avif", "SVG": "image/svg+xml"}
MEDIA_TYPES |= {"BMP": "image/bmp", "ICO": "image/x-icon", "PNG": "image/png", "APNG": "image/png"}


class Chromium:
    """The pixels that a page shows. `ImageDecoder` needs a page from a server on this machine."""

    def __enter__(self) -> Chromium:
        class Blank(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        with ExitStack() as stack:
            server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Blank))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            self._browser = stack.enter_context(Browser())
            self._browser.open(f"http://127.0.0.1:{server.server_port}/")
            self._browser.evaluate(SHOW)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._stack.close()

    def frames(self, content: bytes, media_type: str, are_all: bool = False) -> list[Pixels]:
        """RGBA. Empty if the browser does not show it."""
        text = base64.b64encode(content).decode()
        shown = self._browser.evaluate(f"{'showFrames' if are_all else 'show'}('{media_type}', '{text}')")
        return [
            numpy.frombuffer(base64.b64decode(frame["data"]), numpy.uint8).reshape(frame["height"], frame["width"], 4)
            for frame in shown
        ]


def by_pillow(content: bytes) -> list[Pixels]:
    with Image.open(io.BytesIO(content)) as file:
        picture: Image.Image = ImageOps.exif_transpose(file)
    if picture.mode.startswith("I;16"):
        deep = numpy.asarray(picture).astype(numpy.float64) / 257
        return [numpy.asarray(Image.fromarray(deep.round().astype(numpy.uint8)).convert("RGBA"))]
    profile = picture.info.get("icc_profile")
    if profile:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        picture = ImageCms.profileToProfile(picture, source, ImageCms.createProfile("sRGB")) or picture
    return [numpy.asarray(picture.convert("RGBA"))]


class Painter:
    """The worker's variant of an image."""

    def __init__(self, worker: BlockingImageWorker) -> None:
        self._worker = worker

    def pixels(self, content: bytes) -> list[Pixels]:
        image = self._worker.load(data_url(content), deliver="pixels", cache="no-store")
        with image.pixels as memory:
            return [numpy.asarray(memory.pil().convert("RGBA"))]

    def written(self, content: bytes, transform: Transform) -> bytes:
        return self._worker.load(data_url(content), transform=transform, deliver="data", cache="no-store").data


def data_url(content: bytes) -> str:
    return "data:application/octet-stream;base64," + base64.b64encode(content).decode()


@dataclass(frozen=True)
class Row:
    name: str
    mean: float
    worst: int
    note: str = ""
    allowed: int = 2

    @property
    def is_explained(self) -> bool:
        return self.worst <= self.allowed


def difference(name: str, ours: Sequence[Pixels], theirs: Sequence[Pixels], allowed: int, reason: str) -> Row:
    if not theirs:
        return Row(name, 0, 255, "the oracle does not show it", allowed)
    if len(ours) != len(theirs) or any(one.shape != other.shape for one, other in zip(ours, theirs)):
        sizes = [[f"{frame.shape[1]}x{frame.shape[0]}" for frame in frames] for frames in (ours, theirs)]
        return Row(name, 255, 255, f"{' '.join(sizes[0])} instead of {' '.join(sizes[1])}", allowed)
    differences = [numpy.abs(premultiplied(one) - premultiplied(other)) for one, other in zip(ours, theirs)]
    worst = max(float(values.max()) for values in differences)
    return Row(name, float(numpy.mean(differences)), round(worst), reason, allowed)


def premultiplied(pixels: Pixels) -> Pixels:
    values = pixels.astype(numpy.float64)
    values[:, :, :3] *= values[:, :, 3:] / 255
    return values


def compare(case: Case, painter: Painter, chromium: Chromium) -> Row:
    try:
        if case.frames > 1:
            # Without a quality, what has a palette is written without loss.
            transform: Transform = {"frames": "all", "format": "webp"}
            if not case.name.startswith("GIF"):
                transform["quality"] = 95
            ours = chromium.frames(painter.written(case.content, transform), "image/webp", are_all=True)
        else:
            ours = painter.pixels(case.content)
    except ImageWorkerError as error:
        return Row(case.name, 255, 255, str(error), case.worst)
    if case.oracle == "pillow":
        theirs = by_pillow(case.content)
    else:
        media_type = MEDIA_TYPES[case.name.replace(",", " ").split()[0]]
        theirs = chromium.frames(case.content, media_type, are_all=case.frames > 1)
    return difference(case.name, ours, theirs, case.worst, case.reason)


def written(painter: Painter, chromium: Chromium) -> Iterator[Row]:
    """Compares a browser's pixels of images that the worker wrote with their sources."""
    lossy = "lossy"
    for name, pixels in (("RGB", picture_cases.colours()), ("RGBA", picture_cases.with_alpha())):
        source = picture_cases.saved(Image.fromarray(pixels), "PNG")
        theirs = chromium.frames(source, "image/png")
        targets: list[tuple[Literal["png", "webp", "avif", "jpeg"], int, int]]
        targets = [("png", 80, 0), ("webp", 95, 12), ("avif", 95, 20), ("jpeg", 95, 8)]
        for format, quality, allowed in targets:
            if format == "jpeg" and name == "RGBA":
                continue
            try:
                file = painter.written(source, {"format": format, "quality": quality})
            except ImageWorkerError as error:
                yield Row(f"writes {format} of {name}", 255, 255, str(error))
                continue
            ours = chromium.frames(file, f"image/{format}")
            yield difference(f"writes {format} of {name}", ours, theirs, allowed, lossy)
            if name == "RGBA":
                alphas = [numpy.repeat(frame[:, :, 3:], 4, axis=2) for frame in (ours[0], theirs[0])]
                alphas = [numpy.dstack([frame[:, :, :3], numpy.full(frame.shape[:2], 255)]) for frame in alphas]
                expands = format == "avif"
                note = "Chromium 156 takes the alpha of every AVIF for limited range" if expands else ""
                yield difference(f"writes {format} of {name}: alpha", alphas[:1], alphas[1:], 20 if expands else 2, note)
                written_alpha, source_alpha = (numpy.asarray(Image.open(io.BytesIO(each)).convert("RGBA")) for each in (file, source))
                worst = int(numpy.abs(written_alpha[:, :, 3].astype(int) - source_alpha[:, :, 3]).max())
                yield Row(f"writes {format} of {name}: alpha, by Pillow", 0, worst)


def table(rows: Sequence[Row]) -> str:
    lines = [f"{'image':<52} {'mean':>6} {'worst':>6}  note"]
    lines += [f"{row.name:<52} {row.mean:>6.2f} {row.worst:>6}  {row.note}".rstrip() for row in rows]
    return "\n".join(lines)


def measure(worker: str, words: Sequence[str] = ()) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, Chromium() as chromium:
        with BlockingImageWorker(cache_dir=folder, min_free=0, binary=worker) as host:
            painter = Painter(host)
            rows = [
                compare(case, painter, chromium)
                for case in picture_cases.cases()
                if all(word in case.name for word in words)
            ]
            return rows + [row for row in written(painter, chromium) if all(word in row.name for word in words)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", default=default_worker())
    parser.add_argument("--all", action="store_true")
    parser.add_argument("words", nargs="*", metavar="WORD")
    arguments = parser.parse_args()
    rows = measure(arguments.worker, arguments.words)
    shown = rows if arguments.all or arguments.words else [row for row in rows if row.worst > 2]
    print(table(shown))
    for reason in picture_cases.missing():
        print(f"skipped: {reason} is not installed")
    unexplained = [row for row in rows if not row.is_explained]
    print(f"{len(rows)} images, {sum(row.worst <= 2 for row in rows)} alike, {len(unexplained)} differ without a reason")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
