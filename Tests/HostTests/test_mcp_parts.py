"""The parts of examples/mcp without a server: lines, schemas, plans of renditions, and sheets."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import os
import random
import unittest
from typing import Any, Optional

import mcp_process  # noqa: F401  The path of the modules below.
from contact_sheet import layout_of
from fitting import Budget, Rendition, Source, first_rendition, next_rendition
from lines import LineSplitter, LineWriter
from schema import Refused, arguments, checked, integer, max_bytes
from sheet import GAP, Picture, png_of_sheet

SCHEMA = arguments(
    "url",
    url={"type": "string", "pattern": "^https?://", "maxLength": 20},
    maxBytes=max_bytes(5000),
    side=integer(1, 9, "Side"),
    format={"type": "string", "enum": ["a", "b"], "default": "a"},
    list={"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "pattern": "^https?://", "maxLength": 20}},
)


class Lines(unittest.TestCase):
    def test_lines_are_the_same_however_the_input_is_cut(self) -> None:
        source = random.Random(1)
        for _ in range(300):
            text = bytes(source.choice(b"ab \r\n\n") for _ in range(source.randrange(60)))
            expected = [None if len(line) > 5 else line.strip() for line in text.split(b"\n")]
            splitter = LineSplitter(longest=5)
            lines: list[Optional[bytes]] = []
            while text:
                cut = source.randrange(1, 8)
                lines += splitter.split(text[:cut])
                text = text[cut:]
            self.assertEqual(lines + splitter.rest(), [line for line in expected if line != b""])

    def test_a_line_that_has_not_begun_is_taken_back(self) -> None:
        async def run() -> bytes:
            reader, writer = os.pipe()
            output = LineWriter(writer, lambda: None)
            first = output.send(b"1" * 200_000 + b"\n")  # More than a pipe takes.
            second, third = output.send(b"2\n"), output.send(b"3\n")
            second.cancel()
            received = b""
            while not received.endswith(b"3\n"):
                received += await asyncio.to_thread(os.read, reader, 1 << 20)
            await asyncio.gather(first, third)
            os.close(reader)
            return received

        self.assertEqual(asyncio.run(run()), b"1" * 200_000 + b"\n3\n")

    def test_an_output_that_nobody_reads_any_more_is_told_of(self) -> None:
        async def run() -> None:
            reader, writer = os.pipe()
            os.close(reader)
            broken = asyncio.get_running_loop().create_future()
            output = LineWriter(writer, lambda: broken.set_result(None))
            output.send(b"1\n")
            await broken

        asyncio.run(run())


class Schemas(unittest.TestCase):
    @unittest.skipIf(importlib.util.find_spec("jsonschema") is None, "there is no jsonschema here")
    def test_what_is_refused_is_what_json_schema_refuses(self) -> None:
        import jsonschema

        validator = jsonschema.Draft202012Validator(SCHEMA)
        source = random.Random(2)
        url = "http://example/"
        values: list[Any] = [url, 1, 9, 10, 0, 2000, 3.0, 3.5, True, "a", "c", [], [url], [url] * 4, ["http://" + "x" * 20], {}, -1]
        outcomes = set()
        for _ in range(3000):
            names = source.sample(["url", "maxBytes", "side", "format", "list", "other"], source.randrange(6))
            given = {name: source.choice(values) for name in names if name != "url"}
            given.update({"url": source.choice([url, url, url, url, 7, "ftp://x", "http://" + "x" * 20])} if "url" in names else {})
            try:
                checked(SCHEMA, given)
                is_accepted = True
            except Refused:
                is_accepted = False
            self.assertEqual(is_accepted, validator.is_valid(given), given)
            outcomes.add(is_accepted)
        self.assertEqual(outcomes, {True, False})

    def test_defaults_take_the_place_of_what_is_missing_or_null(self) -> None:
        expected = {"url": "https://x/", "maxBytes": 5000, "format": "a"}
        self.assertEqual(checked(SCHEMA, {"url": "https://x/", "maxBytes": None}), expected)
        self.assertEqual(checked(SCHEMA, {"url": "https://x/", "side": 3.0})["side"], 3)


class Fitting(unittest.TestCase):
    def test_each_plan_ends_and_each_rendition_is_smaller_than_the_one_before(self) -> None:
        source = random.Random(3)
        for _ in range(2000):
            width, height = int(10 ** source.uniform(0, 4.2)), int(10 ** source.uniform(0, 4.2))
            budget = Budget(
                source.randrange(2000, 5_000_000), int(10 ** source.uniform(1.8, 7)), source.randrange(1, 16_384), source.randrange(1, 16_384)
            )
            original = Source(width, height, source.randrange(1, 20_000_000), source.choice(["jpeg", "png", "svg", "webp"]))
            wanted = source.choice(["auto", "jpeg", "png", "webp"])
            bytes_a_pixel = 10 ** source.uniform(-3, 2)
            rendition: Optional[Rendition] = first_rendition(original, budget, wanted)
            count = 0
            while rendition is not None:
                self.assertLessEqual(rendition.width * rendition.height, budget.max_pixels)
                self.assertTrue(1 <= rendition.width <= min(width, budget.max_width))
                self.assertTrue(1 <= rendition.height <= min(height, budget.max_height))
                self.assertTrue(wanted in ("auto", rendition.format))
                size = int(300 + rendition.width * rendition.height * bytes_a_pixel)
                if size <= budget.max_bytes:
                    break
                before, rendition = rendition, next_rendition(rendition, size, budget, wanted)
                if rendition is not None:
                    area = rendition.width * rendition.height
                    is_smaller = area < before.width * before.height or (rendition.quality or 0) < (before.quality or 101)
                    self.assertTrue(is_smaller, (before, rendition))
                count += 1
                self.assertLess(count, 100)
            else:
                self.assertGreater(bytes_a_pixel, 1, "what compresses at all fits into 2 kB")

    def test_a_typical_photograph_needs_two_attempts_at_most(self) -> None:
        budget = Budget(300_000, 1_150_000, 16_384, 16_384)
        first = first_rendition(Source(4032, 3024, 3_000_000, "jpeg"), budget, "auto")
        self.assertEqual(first, Rendition(1238, 928, "jpeg", 85))
        self.assertEqual(next_rendition(first, 400_000, budget, "auto"), Rendition(1238, 928, "jpeg", 70))
        self.assertEqual(next_rendition(first, 600_000, budget, "auto"), Rendition(1238, 928, "jpeg", 50))
        smaller = next_rendition(first, 2_000_000, budget, "auto")
        assert smaller is not None
        self.assertEqual((smaller.quality, smaller.width < 1238 * 0.6), (50, True))


class Sheets(unittest.TestCase):
    def test_the_largest_cells_that_fit_are_taken(self) -> None:
        for count in range(1, 65):
            for columns in (None, 1, 16):
                for side, pixels in ((256, 1_150_000), (512, 4_000_000), (32, 100_000)):
                    layout = layout_of(count, columns, side, pixels)
                    self.assertEqual(layout.columns, min(count, columns or layout.columns))
                    self.assertGreaterEqual(layout.columns * layout.rows, count)
                    self.assertLess(layout.columns * (layout.rows - 1), count)
                    self.assertLessEqual(layout.width * layout.height, pixels)
                    if layout.side < side:
                        larger = layout_of(count, columns, layout.side + 1, 1 << 60)
                        self.assertGreater(larger.width * larger.height, pixels)

    @unittest.skipIf(importlib.util.find_spec("PIL") is None, "there is no Pillow here")
    def test_pixels_of_each_kind_come_to_the_middle_of_their_cells(self) -> None:
        from PIL import Image

        layout = layout_of(5, 3, 32, 1 << 20)
        pictures = [picture(20, 10, 24, b"\x07"), picture(32, 32, 96, b"\1\2\3"), picture(1, 1, 4, b"\4\5\6\x80"), None, picture(10, 30, 40, b"\0\0\0\0")]
        sheet: Any = Image.open(io.BytesIO(png_of_sheet(layout, pictures)))
        self.assertEqual((sheet.mode, sheet.size), ("RGBA", (3 * 36 + 4, 2 * 36 + 4)))
        middles = []
        for index in range(5):
            x, y = layout.corner(index)
            middles.append(sheet.getpixel((x + 16, y + 16)))
        self.assertEqual(middles[:3], [(7, 7, 7, 255), (1, 2, 3, 255), (255, 255, 255, 255)])
        x, y = layout.corner(2)
        self.assertEqual(sheet.getpixel((x + 15, y + 15)), (4, 5, 6, 128))
        self.assertEqual(middles[3][:3], (192, 32, 32))
        self.assertEqual(middles[4], (0, 0, 0, 0))
        x, y = layout.corner(0)
        self.assertEqual(sheet.getpixel((x + 16, y + 30)), (255, 255, 255, 255), "below a picture that is lower than its cell")
        self.assertEqual(sheet.getpixel((GAP - 1, GAP - 1)), (176, 176, 176, 255))

    @unittest.skipIf(importlib.util.find_spec("PIL") is None, "there is no Pillow here")
    def test_numbers_differ(self) -> None:
        from PIL import Image

        layout = layout_of(64, 8, 32, 1 << 20)
        sheet = Image.open(io.BytesIO(png_of_sheet(layout, [picture(1, 1, 1, b"\0")] * 64)))
        labels = {sheet.crop((x, y, x + 13, y + 9)).tobytes() for x, y in map(layout.corner, range(64))}
        self.assertEqual(len(labels), 64)


def picture(width: int, height: int, stride: int, pixel: bytes) -> Picture:
    row = (pixel * width).ljust(stride, b"\xee")
    return Picture(width, height, stride, len(pixel), memoryview(row * height))


if __name__ == "__main__":
    unittest.main()
