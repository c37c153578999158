"""Crops and facts of the built worker, as Pillow and ImageHash see the images."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import math
import statistics
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from PIL import Image, ImageCms, TiffImagePlugin, features
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
                colors.append(image.convert("RGB").crop((36, 20, 37, 21)).tobytes())
        red, gray = colors
        self.assertGreater(red[0], red[1] + 100, "the first frame shows its red part")
        self.assertLess(max(gray) - min(gray), 40, "the second frame shows the same part, where it is grey")


def phash(image: Image.Image) -> str:
    """The hash by its definition: a naive DCT-II of 32 x 32 pixels, and the median of the lowest frequencies."""
    small = image.convert("L").resize((32, 32), Image.Resampling.LANCZOS)
    pixels = small.tobytes()
    waves = [[2 * math.cos(math.pi * frequency * (2 * place + 1) / 64) for place in range(32)] for frequency in range(8)]
    rows = [[sum(pixels[32 * y + x] * wave[y] for y in range(32)) for x in range(32)] for wave in waves]
    # Rounded, because coefficients that are equal differ by rounding errors.
    found = [round(sum(map(lambda value, factor: value * factor, row, wave)), 6) for row in rows for wave in waves]
    median = statistics.median(found)
    return f"{int(''.join('1' if value > median else '0' for value in found), 2):016x}"


def scene(seed: int, size: tuple[int, int]) -> Image.Image:
    """A picture with large shapes and fine grain, as a photograph has."""
    width, height = size
    noise = Image.effect_noise((max(2, seed % 9 + 2), seed % 5 + 3), 90).resize(size, Image.Resampling.BICUBIC)
    grain = Image.effect_noise(size, 12)
    slope = Image.linear_gradient("L").rotate(90 * (seed % 4)).resize(size)
    picture = Image.merge("RGB", (noise, Image.blend(noise, slope, 0.5), Image.blend(slope, grain, 0.4)))
    picture.paste((seed * 37 % 256, seed * 91 % 256, seed * 53 % 256), (width // 5, height // 4, width // 2, height // 2))
    return picture


class PerceptualHash(WithWorker):
    def pictures(self) -> dict[str, bytes]:
        """Files of all formats that Pillow and the worker read in the same way."""
        files: dict[str, bytes] = {}
        for number, size in enumerate([(640, 480), (480, 640), (33, 31), (32, 32), (7, 300), (1000, 21)]):
            image = scene(number, size)
            files[f"{number}.png"] = encoded(image, "PNG")
            files[f"{number}-grey.png"] = encoded(image.convert("L"), "PNG")
            files[f"{number}-palette.png"] = encoded(image.convert("P", palette=Image.Palette.ADAPTIVE), "PNG")
            files[f"{number}.tiff"] = encoded(image, "TIFF")
            files[f"{number}.bmp"] = encoded(image, "BMP")
            files[f"{number}.gif"] = encoded(image, "GIF")
            files[f"{number}-lossless.webp"] = encoded(image, "WEBP", lossless=True)
            alpha = image.copy()
            alpha.putalpha(image.getchannel("R"))
            files[f"{number}-alpha.png"] = encoded(alpha, "PNG")
        files["black.png"] = encoded(Image.new("RGB", (50, 40)), "PNG")
        files["white.png"] = encoded(Image.new("L", (50, 40), 255), "PNG")
        files["one.png"] = encoded(Image.new("RGB", (1, 1), "teal"), "PNG")
        return files

    def lossy(self) -> dict[str, bytes]:
        """Files that two decoders may read into slightly different pixels."""
        return {
            f"{number}-{sampling}-{progressive}.jpg": encoded(
                scene(number, (500 + number, 333)), "JPEG", quality=60 + 9 * number, subsampling=sampling, progressive=progressive
            )
            for number in range(4)
            for sampling in (0, 1, 2)
            for progressive in (False, True)
        }

    def hash(self, name: str, body: bytes, **params: Any) -> str:
        found: str = self.load(name, body, facts=["perceptualHash"], **params)["perceptualHash"]
        return found

    def test_the_hash_is_that_of_its_definition(self) -> None:
        for name, body in self.pictures().items():
            with self.subTest(name), Image.open(io.BytesIO(body)) as image:
                self.assertEqual(self.hash(name, body), phash(image))

    def test_the_hash_of_a_jpeg_differs_in_two_bits_at_most(self) -> None:
        for name, body in self.lossy().items():
            with self.subTest(name), Image.open(io.BytesIO(body)) as image:
                self.assertLessEqual((int(self.hash(name, body), 16) ^ int(phash(image), 16)).bit_count(), 2)

    def test_the_hash_is_that_of_imagehash(self) -> None:
        if importlib.util.find_spec("imagehash") is None:
            self.skipTest("ImageHash is not installed: pip install ImageHash")
        imagehash = importlib.import_module("imagehash")
        for name, body in self.pictures().items():
            with self.subTest(name), Image.open(io.BytesIO(body)) as image:
                self.assertEqual(self.hash(name, body), str(imagehash.phash(image)))

    def test_the_hash_is_that_of_the_original_in_every_answer(self) -> None:
        body = encoded(scene(3, (300, 200)), "PNG")
        with Image.open(io.BytesIO(body)) as image:
            expected = phash(image)
        transform = {"width": 20, "height": 20, "fit": "cover", "grayscale": True}
        for params in ({}, {"transform": transform}, {"transform": transform}, {"deliver": "pixels"}, {"cache": "reload"}, {}):
            with self.subTest(params=params):
                self.assertEqual(self.hash("same.png", body, **params), expected)
        self.assertNotIn("perceptualHash", self.load("same.png", body))

    def test_the_digest_is_that_of_the_content(self) -> None:
        body = encoded(scene(4, (300, 200)), "PNG")
        transform = {"width": 20, "height": 20, "fit": "cover"}
        for params in ({}, {"transform": transform}, {"transform": transform}, {"cache": "reload"}, {"store": "none"}):
            with self.subTest(params=params):
                result = self.load("digest.png", body, facts=["digest"], **params)
                self.assertEqual(result["digest"], f"sha256-{hashlib.sha256(Path(result['path']).read_bytes()).hexdigest()}")
        pixels = self.load("digest.png", body, facts=["digest", "perceptualHash"], deliver="pixels", transform=transform)
        self.assertEqual(pixels["digest"], f"sha256-{hashlib.sha256(body).hexdigest()}")
        self.assertEqual(pixels["bytes"], len(body))
        self.assertIn("perceptualHash", pixels)
        self.assertNotIn("digest", self.load("digest.png", body))
    def test_fields_of_exif_are_those_that_pillow_wrote(self) -> None:
        exif = Image.Exif()
        exif[271], exif[272], exif[274] = "Maker", "Größe 5".encode(), 6  # Pillow would write the text in ASCII.
        camera = {33434: TiffImagePlugin.IFDRational(1, 250), 34855: 400, 36867: "2024:05:01 12:30:09", 37500: b"secret"}
        exif.get_ifd(0x8769).update(camera)
        exif.get_ifd(0x8825).update({1: "S", 2: (33.0, 51.0, 35.4), 3: "E", 4: (151.0, 12.0, 40.0)})
        expected = {"orientation": 6, "dateTimeOriginal": "2024-05-01T12:30:09", "make": "Maker", "model": "Größe 5"}
        expected |= {"exposureTime": 0.004, "iso": 400}
        for form in ("JPEG", "PNG", "WEBP", "AVIF"):
            if form == "AVIF" and not features.check("avif"):
                continue
            with self.subTest(form):
                body = encoded(scene(2, (64, 48)), form, exif=exif)
                name = f"exif.{form}"
                result = self.load(name, body, facts=["exif"])
                found = dict(result["exif"])
                # Pillow turns an AVIF itself.
                self.assertEqual({**found, "orientation": 6}, expected)
                self.assertNotIn("gps", result)
                transform = {"width": 10}
                result = self.load(name, body, facts=["exif", "gps"], transform=transform)
                self.assertEqual(result["exif"], found)
                self.assertAlmostEqual(result["gps"]["latitude"], -33.8598333, 6)
                self.assertAlmostEqual(result["gps"]["longitude"], 151.2111111, 6)
                self.assertNotIn("secret", str(result))
        plain = self.load("plain.png", encoded(scene(1, (20, 20)), "PNG"), facts=["exif", "gps"])
        self.assertEqual(plain["exif"], {})
        self.assertNotIn("gps", plain)

    def test_the_container_is_what_pillow_wrote(self) -> None:
        exif = Image.Exif()
        exif[271] = "Maker"  # Pillow leaves out EXIF that has nothing but a position.
        exif.get_ifd(0x8825).update({1: "S", 2: (33.0, 51.0, 35.4), 3: "E", 4: (151.0, 12.0, 40.0)})
        xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description exif:GPSLatitude="33,51.59S"/></x:xmpmeta>'
        profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
        name = ImageCms.getProfileDescription(ImageCms.ImageCmsProfile(io.BytesIO(profile))).strip()
        none = {"hasAlpha": False, "colorSpace": "sRGB", "bitDepth": 8, "hasGPS": False, "c2pa": False}
        # Pillow declares the colours of an AVIF by code points.
        for form in ("JPEG", "PNG", "WEBP", "TIFF", "AVIF"):
            if form == "AVIF" and not features.check("avif"):
                continue
            plain = scene(2, (64, 48))
            cases: list[tuple[Image.Image, dict[str, Any], dict[str, Any]]] = [
                (plain, {}, none),
                (plain, {"icc_profile": profile}, {**none, "colorSpace": name}),
            ]
            # Pillow leaves out the position in a TIFF.
            if form != "TIFF":
                cases.append((plain, {"exif": exif}, {**none, "hasGPS": True}))
            if form == "AVIF":
                cases.append((plain, {"xmp": xmp}, {**none, "hasGPS": True}))
            if form in ("PNG", "TIFF", "JPEG"):
                cases.append((plain.convert("L"), {}, {**none, "colorSpace": "gray"}))
            if form in ("WEBP", "JPEG"):
                cases.append((plain, {"xmp": xmp}, {**none, "hasGPS": True}))
            if form != "JPEG":
                cases.append((plain.convert("RGBA").resize((9, 9)), {}, none))
                see_through = plain.convert("RGBA")
                see_through.putalpha(100)
                cases.append((see_through, {}, {**none, "hasAlpha": True}))
            for number, (image, options, expected) in enumerate(cases):
                with self.subTest(form, number=number):
                    body = encoded(image, form, **options)
                    found = self.load(f"{number}.{form}", body, facts=["container"])["container"]
                    if image.mode == "RGBA":
                        # An encoder may leave out alpha that is opaque.
                        with Image.open(io.BytesIO(body)) as written:
                            expected = {**expected, "hasAlpha": written.mode == "RGBA"}
                    self.assertEqual(found, expected)
        deep = Image.new("I;16", (20, 20))
        self.assertEqual(self.load("deep.png", encoded(deep, "PNG"), facts=["container"])["container"]["bitDepth"], 16)
        drawing = self.load("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>", facts=["container"])
        self.assertEqual(drawing["container"], {"hasGPS": False, "c2pa": False})

    def test_the_container_is_that_of_the_original_of_a_transform(self) -> None:
        body = encoded(scene(1, (64, 48)).convert("L"), "PNG")
        for _ in range(2):
            result = self.load("grey.png", body, facts=["container", "exif", "perceptualHash"], transform={"format": "webp"})
            self.assertEqual(result["container"]["colorSpace"], "gray")
            self.assertEqual((result["format"], result["exif"]), ("webp", {}))

    def test_other_facts_are_refused(self) -> None:
        refused: tuple[Any, ...] = ("perceptualHash", [], ["hash"], ["digest", "hash"], [7], {}, None)
        for facts in refused:
            with self.subTest(facts=facts):
                error = self.worker.call("load", url="http://127.0.0.1:1/", facts=facts)["error"]
                self.assertEqual((error["code"], error["data"]["member"]), (-32602, "facts"))
                self.assertRegex(error["message"], "digest, .*perceptualHash")


if __name__ == "__main__":
    unittest.main()
