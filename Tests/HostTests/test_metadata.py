"""The fields of EXIF data that a result keeps: those that are named, in every format, and nothing else."""

from __future__ import annotations

import base64
import io
import random
import shutil
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

from PIL import Image, TiffImagePlugin, features

from test_load_file import settle
from test_process import Process

FORMATS = [form for form in ("jpeg", "png", "webp", "avif") if form != "avif" or features.check("avif")]
TEXTS = {0x010F: "Maker", 0x0110: "Model", 0x013B: "A. Person", 0x8298: "(c) A. Person"}
GPS: dict[int, Any] = {0: b"\x02\x03\x00\x00", 1: "S", 2: (33.0, 51.0, 35.4), 3: "E", 4: (151.0, 12.0, 40.0), 5: b"\x00", 6: 58.5}
ALL = ["artist", "copyright", "dateTimeOriginal", "exposureTime", "fNumber", "focalLength", "focalLengthIn35mm", "gps", "iso", "lensModel", "make", "model"]


def photograph(form: str, size: tuple[int, int] = (96, 64), **options: Any) -> bytes:
    """A picture that is stored on its side, with a field of every kind and secrets in others."""
    exif = Image.Exif()
    exif[0x0112], exif[0x0131], exif[0x010E] = 6, "SECRET", "SECRET"
    for tag, text in TEXTS.items():
        exif[tag] = text
    exif.get_ifd(0x8769).update(
        {
            0x829A: TiffImagePlugin.IFDRational(1, 250),
            0x829D: TiffImagePlugin.IFDRational(28, 10),
            0x8827: 400,
            0x9003: "2024:05:01 12:30:09",
            0x9011: "+02:00",
            0x920A: TiffImagePlugin.IFDRational(50, 1),
            0xA405: 75,
            0xA434: "Lens",
            0x927C: b"SECRET",
            0x9286: b"SECRET",
            0xA431: "SECRET",
        }
    )
    exif.get_ifd(0x8825).update(GPS)
    file = io.BytesIO()
    picture = Image.radial_gradient("L").resize(size).convert("RGB")
    if form == "WEBP":
        options["xmp"] = b"<x>SECRET</x>"
    picture.save(file, form, exif=exif, **options)
    return file.getvalue()


class Metadata(Process):
    def made(self, content: bytes, **transform: Any) -> bytes:
        result = self.answer(content, {"made": {"transform": transform, "deliver": "data"}})["result"]
        return base64.b64decode(result["outputs"]["made"]["data"])

    def answer(self, content: bytes, outputs: dict[str, Any]) -> dict[str, Any]:
        return self.worker.call("process", data=base64.b64encode(content).decode(), outputs=outputs)

    def fields(self, content: bytes) -> tuple[dict[int, Any], dict[int, Any], dict[int, Any]]:
        """The fields of the image, of the camera and of the position, as Pillow reads them."""
        with Image.open(io.BytesIO(content)) as image:
            image.load()
            exif = image.getexif()
            camera, position = dict(exif.get_ifd(0x8769)), dict(exif.get_ifd(0x8825))
            return {tag: value for tag, value in exif.items() if tag not in (0x8769, 0x8825)}, camera, position

    def test_named_fields_are_kept_in_every_format(self) -> None:
        sources = {form: photograph(form.upper()) for form in [*FORMATS, "tiff"]}
        for source, content in sources.items():
            for form in FORMATS:
                with self.subTest(source, form=form):
                    bare = self.made(content, width=20, format=form)
                    self.assertEqual(self.fields(bare), ({}, {}, {}))
                    made = self.made(content, width=20, format=form, metadata=["copyright", "make", "dateTimeOriginal"])
                    image, camera, position = self.fields(made)
                    self.assertEqual(image, {0x010F: "Maker", 0x8298: "(c) A. Person"})
                    expected = {0x9000: b"0232", 0x9003: "2024:05:01 12:30:09", 0x9011: "+02:00"}
                    # Pillow writes no directory of the camera into a TIFF.
                    self.assertEqual((camera, position), ({} if source == "tiff" else expected, {}))
                    self.assertNotIn(b"SECRET", made)
                    with Image.open(io.BytesIO(made)) as new, Image.open(io.BytesIO(bare)) as old:
                        self.assertEqual((new.size, new.tobytes()), (old.size, old.tobytes()))
                        if source not in ("avif", "tiff"):
                            self.assertEqual(new.size, (20, 30))

    @unittest.skipUnless(shutil.which("vips"), "vips, which writes the HEIC, is not installed")
    def test_a_heic(self) -> None:
        for order in ("II", "MM"):
            with tempfile.TemporaryDirectory() as folder:
                jpeg, heic = Path(folder) / "a.jpg", Path(folder) / "a.heic"
                jpeg.write_bytes(photograph("JPEG"))
                with Image.open(jpeg) as image:
                    exif = image.getexif()
                    exif.endian = "<" if order == "II" else ">"
                    image.save(jpeg, exif=exif)
                if subprocess.run(["vips", "heifsave", jpeg, heic, "--compression", "hevc"], capture_output=True).returncode:
                    self.skipTest("the installed libheif writes no HEIC")
                content = heic.read_bytes()
            self.assertIn(order.encode(), content)
            for form in FORMATS:
                result = self.made(content, width=32, format=form, metadata=ALL)
                fields, camera, position = self.fields(result)
                self.assertEqual(fields, TEXTS, form)
                self.assertEqual((camera[0x8827], camera[0x9003], camera[0xA434]), (400, "2024:05:01 12:30:09", "Lens"))
                self.assertEqual(position[3], "E")
                self.assertNotIn(b"SECRET", result)

    def test_all_fields(self) -> None:
        for form in FORMATS:
            with self.subTest(form):
                made = self.made(photograph("JPEG"), format=form, metadata=ALL)
                image, camera, position = self.fields(made)
                self.assertEqual(image, TEXTS)
                numbers = {tag: float(value) for tag, value in camera.items() if not isinstance(value, (str, bytes))}
                self.assertEqual(numbers, {0x829A: 0.004, 0x829D: 2.8, 0x8827: 400, 0x920A: 50, 0xA405: 75})
                self.assertEqual(camera[0xA434], "Lens")
                self.assertEqual({tag: position[tag] for tag in (1, 3)}, {1: "S", 3: "E"})
                for tag in (2, 4):
                    degrees, minutes, seconds = (float(part) - wanted for part, wanted in zip(position[tag], GPS[tag]))
                    self.assertAlmostEqual(degrees + minutes / 60 + seconds / 3600, 0, 6)
                self.assertEqual(float(position[6]), 58.5)
                self.assertNotIn(b"SECRET", made)
                facts = self.worker.call("process", data=base64.b64encode(made).decode(), facts=["exif", "gps"])["result"]
                original = self.worker.call("process", data=base64.b64encode(photograph("JPEG")).decode(), facts=["exif", "gps"])["result"]
                del original["exif"]["orientation"]
                self.assertEqual((facts["exif"], facts["gps"]), (original["exif"], original["gps"]))

    def test_an_animation_and_artwork_with_alpha(self) -> None:
        frames = [Image.new("RGBA", (30, 20), (200, shade, 0, 90)) for shade in (0, 90, 180)]
        content = photograph("WEBP", save_all=True, append_images=[Image.new("RGB", (96, 64), "red")], lossless=True)
        made = self.made(content, frames="all", metadata=["artist"])
        with Image.open(io.BytesIO(made)) as image:
            self.assertEqual((getattr(image, "n_frames"), dict(image.getexif())), (2, {0x013B: "A. Person"}))
        exif = Image.Exif()
        exif[0x013B] = "A. Person"
        for picture, mode in ((frames[0], "RGBA"), (frames[0].convert("RGB"), "RGB"), (frames[0].convert("P"), None)):
            file = io.BytesIO()
            picture.save(file, "PNG", exif=exif)
            made = self.made(file.getvalue(), format="webp", metadata=["artist"])
            bare = self.made(file.getvalue(), format="webp")
            with Image.open(io.BytesIO(made)) as new, Image.open(io.BytesIO(bare)) as old:
                self.assertEqual((new.mode, new.size, new.tobytes()), (old.mode, old.size, old.tobytes()))
                self.assertEqual(mode or new.mode, new.mode)
                self.assertEqual(dict(new.getexif()), {0x013B: "A. Person"})

    def test_strip_keeps_named_fields(self) -> None:
        for form in ("JPEG", "PNG", "WEBP"):
            with self.subTest(form):
                content = photograph(form)
                outputs = {"kept": {"strip": True, "transform": {"metadata": ["copyright", "iso"]}, "deliver": "data"}}
                kept = base64.b64decode(self.answer(content, outputs)["result"]["outputs"]["kept"]["data"])
                image, camera, position = self.fields(kept)
                self.assertEqual((image, position), ({0x0112: 6, 0x8298: "(c) A. Person"}, {}))
                self.assertEqual(camera, {0x9000: b"0232", 0x8827: 400})
                self.assertNotIn(b"SECRET", kept)

    def test_several_outputs_have_fields_of_their_own(self) -> None:
        outputs: dict[str, Any] = {
            "large": {"transform": {"width": 60, "metadata": ["artist", "gps"]}, "deliver": "data"},
            "small": {"transform": {"width": 20, "metadata": ["copyright"]}, "maxBytes": 3000, "deliver": "data"},
            "bare": {"transform": {"width": 20}, "deliver": "data"},
        }
        found = self.answer(photograph("JPEG"), outputs)["result"]["outputs"]
        tags = {name: self.fields(base64.b64decode(output["data"])) for name, output in found.items()}
        self.assertEqual({name: set(image) for name, (image, _, _) in tags.items()}, {"large": {0x013B}, "small": {0x8298}, "bare": set()})
        self.assertEqual({name for name, (_, _, position) in tags.items() if position}, {"large"})
        self.assertLessEqual(found["small"]["bytes"], 3000)
        # The fields count.
        least = len(base64.b64decode(found["bare"]["data"])) - 200
        outputs = {"small": {"transform": {"width": 20, "metadata": ["copyright"]}, "maxBytes": least}}
        self.assertEqual(self.kind(self.answer(photograph("JPEG"), outputs)), "tooLarge")

    def test_a_variant_is_that_of_its_fields(self) -> None:
        file = self.spool / "photo.jpg"
        file.write_bytes(photograph("JPEG"))
        settle(file)
        found = []
        for names in ([], ["artist"], ["artist", "copyright"], ["copyright", "artist"], ["copyright", "copyright", "artist"]):
            transform: dict[str, Any] = {"width": 20, **({"metadata": names} if names else {})}
            result = self.worker.call("load", file={"path": str(file)}, transform=transform, store="memory")["result"]
            self.assertEqual(set(self.fields(Path(result["path"]).read_bytes())[0]), {{"artist": 0x013B, "copyright": 0x8298}[name] for name in names})
            found.append(result["cache"])
        self.assertEqual(found, ["file", "file", "file", "memory", "memory"])

    def test_what_is_refused(self) -> None:
        content = photograph("JPEG")
        wrong: list[Any] = [[], "artist", ["orientation"], ["latitude"], ["artist", 5], {}]
        refused: list[tuple[str, Any]] = [("transform.metadata", {"transform": {"metadata": metadata}}) for metadata in wrong]
        refused += [("transform.metadata", {"transform": {"format": form, "metadata": ["artist"]}}) for form in ("gif", "jxl")]
        refused += [("transform", {"strip": True, "transform": transform}) for transform in ({}, {"width": 5}, {"width": 5, "metadata": ["artist"]})]
        for member, output in refused:
            with self.subTest(output=output):
                answer = self.answer(content, {"made": output})
                self.assertEqual((self.kind(answer), answer["error"]["data"]["member"]), ("invalidParams", f"outputs.made.{member}"))
        answer = self.worker.call("process", data=base64.b64encode(content).decode(), deliver="pixels", transform={"metadata": ["artist"]})
        self.assertEqual(self.kind(answer), "invalidParams")

    def test_damaged_exif_is_never_a_crash_and_never_tells_more(self) -> None:
        """Loops, counts and offsets outside, and other bytes, in a file that is otherwise whole."""
        chance = random.Random(40)
        content = photograph("JPEG")
        start = content.index(b"Exif\0\0") + 6
        length = struct.unpack(">H", content[start - 8 : start - 6])[0] - 8
        for number in range(150):
            broken = bytearray(content)
            for _ in range(chance.randint(1, 6)):
                place = start + chance.randrange(length)
                new = chance.choice([b"\xff\xff\xff\xff", b"\0\0\0\x08", b"\0\0\0\0", bytes(chance.randrange(256) for _ in range(4))])
                end = min(place + 4, start + length)
                broken[place:end] = new[: end - place]
            answer = self.answer(
                bytes(broken), {"made": {"transform": {"width": 9, "metadata": [name for name in ALL if name != "gps"]}, "deliver": "data"}}
            )
            with self.subTest(number):
                self.assertIn("result", answer, answer)
                made = base64.b64decode(answer["result"]["outputs"]["made"]["data"])
                self.assertLess(len(made), 6000)
                image, _, position = self.fields(made)
                self.assertEqual((position, image.get(0x0112)), ({}, None))


if __name__ == "__main__":
    unittest.main()
