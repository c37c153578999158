"""The functions of examples/operating/packaging/quantizer.c, which libvips calls to write GIF.

    python -m unittest test_quantizer
"""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
import tempfile
import unittest
from ctypes import POINTER, byref, c_double, c_float, c_int, c_size_t, c_ubyte, c_uint, c_void_p
from pathlib import Path
from typing import Any, Sequence

from package import ROOT

SOURCE = ROOT / "examples" / "operating" / "packaging" / "quantizer.c"
OK, OUT_OF_RANGE, BUFFER_TOO_SMALL, INVALID_POINTER, UNSUPPORTED = 0, 100, 104, 105, 106
CLEAR = (0, 0, 0, 0)


class Color(ctypes.Structure):
    _fields_ = [(channel, c_ubyte) for channel in "rgba"]


class Palette(ctypes.Structure):
    _fields_ = [("count", c_uint), ("entries", Color * 256)]


FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "attr_create": (c_void_p,),
    "attr_destroy": (None, c_void_p),
    "set_max_colors": (c_int, c_void_p, c_int),
    "set_speed": (c_int, c_void_p, c_int),
    "set_quality": (c_int, c_void_p, c_int, c_int),
    "image_create_rgba": (c_void_p, c_void_p, ctypes.c_char_p, c_int, c_int, c_double),
    "image_destroy": (None, c_void_p),
    "image_add_fixed_color": (c_int, c_void_p, Color),
    "image_quantize": (c_int, c_void_p, c_void_p, POINTER(c_void_p)),
    "result_destroy": (None, c_void_p),
    "get_palette": (POINTER(Palette), c_void_p),
    "set_dithering_level": (c_int, c_void_p, c_float),
    "write_remapped_image": (c_int, c_void_p, c_void_p, ctypes.c_char_p, c_size_t),
}

Pixel = tuple[int, int, int, int]
call: dict[str, Any] = {}


def setUpModule() -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        raise unittest.SkipTest("there is no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "libimagequant.so.0"
        options = ("-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror")
        subprocess.run([compiler, *options, "-o", library, SOURCE], check=True)
        loaded = ctypes.CDLL(str(library))
    for name, (result, *arguments) in FUNCTIONS.items():
        call[name] = getattr(loaded, f"liq_{name}")
        call[name].restype, call[name].argtypes = result, arguments


class Reduced:
    """A picture with the colours that it has afterwards."""

    def __init__(
        self,
        pixels: Sequence[Pixel],
        width: int,
        max_colors: int = 256,
        dithering: float = 1,
        fixed: Sequence[Pixel] = (),
    ) -> None:
        data = bytes(channel for pixel in pixels for channel in pixel)
        attributes, result, numbers = call["attr_create"](), c_void_p(), ctypes.create_string_buffer(len(pixels))
        image = call["image_create_rgba"](attributes, data, width, len(pixels) // width, 0)
        codes = [call["set_max_colors"](attributes, max_colors)]
        codes += [call["image_add_fixed_color"](image, Color(*color)) for color in fixed]
        codes.append(call["image_quantize"](image, attributes, byref(result)))
        codes.append(call["set_dithering_level"](result, dithering))
        codes.append(call["write_remapped_image"](result, image, numbers, len(pixels)))
        assert set(codes) == {OK}, codes
        palette = call["get_palette"](result).contents
        self.palette = [(each.r, each.g, each.b, each.a) for each in palette.entries[: palette.count]]
        self.pixels = [self.palette[number] for number in numbers.raw]
        call["result_destroy"](result)
        call["image_destroy"](image)
        call["attr_destroy"](attributes)


def mean_square(some: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> float:
    """The mean of the squared differences of red, green and blue."""
    pairs = [(a, b) for pixel, other in zip(some, others) for a, b in zip(pixel[:3], other[:3])]
    return sum((a - b) ** 2 for a, b in pairs) / len(pairs)


def scaled_down(pixels: Sequence[Pixel]) -> list[tuple[float, ...]]:
    """The means of squares of 8 x 8 pixels in 256 x 256."""
    rows = [range(y * 256 + x, y * 256 + x + 2048, 256) for y in range(0, 256, 8) for x in range(0, 256, 8)]
    squares = [[pixel for start in row for pixel in pixels[start : start + 8]] for row in rows]
    return [tuple(sum(channel) / 64 for channel in zip(*square)) for square in squares]


def noise(count: int, alphas: Sequence[int] = (255,)) -> list[Pixel]:
    numbers = random.Random(1)
    return [(*numbers.randbytes(3), numbers.choice(alphas)) for _ in range(count)]  # type: ignore[misc, unused-ignore]


class Pictures(unittest.TestCase):
    def test_few_colours_stay_as_they_are(self) -> None:
        for count in (1, 2, 16, 255, 256):
            for alphas in ((255,), range(1, 256)):
                colors = noise(count, alphas)
                pixels = random.Random(count).choices(colors, k=4000) + colors
                reduced = Reduced(pixels, 1)
                self.assertEqual(reduced.pixels, pixels)
                self.assertEqual(sorted(reduced.palette), sorted(set(colors)))

    def test_a_gradient_stays_smooth(self) -> None:
        pixels = [(x, y, 255 - x, 255) for y in range(256) for x in range(256)]
        plain, dithered = (Reduced(pixels, 256, dithering=level) for level in (0, 1))
        self.assertEqual(len(plain.palette), 256)
        self.assertLess(mean_square(pixels, plain.pixels), 25)
        self.assertLess(mean_square(pixels, dithered.pixels), 50)
        self.assertLess(mean_square(scaled_down(pixels), scaled_down(dithered.pixels)), 2)

    def test_transparent_pixels_stay_transparent_and_others_opaque(self) -> None:
        for max_colors in (2, 3, 255):
            pixels = noise(3000, (0, 255))
            reduced = Reduced(pixels, 50, max_colors)
            self.assertEqual([pixel[3] for pixel in reduced.pixels], [pixel[3] for pixel in pixels])
            self.assertEqual((reduced.palette[0], len(reduced.palette)), (CLEAR, max_colors))

    def test_translucent_pixels_keep_their_alpha_almost(self) -> None:
        pixels = [(200, 100, 50, alpha) for alpha in range(256)] * 16
        reduced = Reduced(pixels, 64, 64, dithering=0)
        self.assertLessEqual(max(abs(a[3] - b[3]) for a, b in zip(pixels, reduced.pixels)), 4)

    def test_one_pixel(self) -> None:
        for pixel in ((1, 2, 3, 255), (1, 2, 3, 4), CLEAR):
            self.assertEqual(Reduced([pixel], 1, 2).pixels, [pixel])
        self.assertEqual(Reduced([(1, 2, 3, 0)], 1).palette, [CLEAR])

    def test_noise_of_more_colours_than_are_counted(self) -> None:
        pixels = noise(100_000)
        reduced = Reduced(pixels, 400, dithering=0)
        self.assertEqual(len(reduced.palette), 256)
        self.assertLess(mean_square(pixels, reduced.pixels), 200)

    def test_fixed_colours_are_in_the_palette(self) -> None:
        fixed = [*noise(254), CLEAR]
        for max_colors in (255, 256):
            palette = Reduced([CLEAR], 1, max_colors, fixed=fixed).palette
            self.assertEqual((palette[0], sorted(palette)), (CLEAR, sorted(fixed)))
        palette = Reduced(noise(1000), 10, 50, fixed=fixed[:20]).palette
        self.assertEqual((len(palette), set(fixed[:20]) - set(palette)), (50, set()))


class Errors(unittest.TestCase):
    def test_values_out_of_range(self) -> None:
        attributes = call["attr_create"]()
        for name, *values in (
            ("set_max_colors", 1), ("set_max_colors", 257), ("set_speed", 0), ("set_speed", 11),
            ("set_quality", -1, 5), ("set_quality", 6, 5), ("set_quality", 0, 101),
        ):  # fmt: skip
            self.assertEqual(call[name](attributes, *values), OUT_OF_RANGE, (name, values))
        for width, height, gamma in ((0, 1, 0), (1, -1, 0), (1, 1, -1), (1, 1, 2), (1 << 16, 1 << 16, 0)):
            self.assertIsNone(call["image_create_rgba"](attributes, b"1234", width, height, gamma))
        image, result = call["image_create_rgba"](attributes, b"1234", 1, 1, 0), c_void_p()
        codes = [call["image_add_fixed_color"](image, Color()) for _ in range(257)]
        self.assertEqual(codes, [OK] * 256 + [UNSUPPORTED])
        self.assertEqual(call["image_quantize"](image, attributes, byref(result)), OK)
        for level in (-1, 1.1, float("nan")):
            self.assertEqual(call["set_dithering_level"](result, level), OUT_OF_RANGE)
        self.assertEqual(call["write_remapped_image"](result, image, b"", 0), BUFFER_TOO_SMALL)
        call["result_destroy"](result)
        call["image_destroy"](image)
        call["attr_destroy"](attributes)

    def test_missing_objects(self) -> None:
        self.assertEqual(call["set_max_colors"](None, 2), INVALID_POINTER)
        self.assertEqual(call["image_quantize"](None, None, byref(c_void_p())), INVALID_POINTER)
        self.assertEqual(call["write_remapped_image"](None, None, b"", 0), INVALID_POINTER)
        self.assertIsNone(call["image_create_rgba"](None, b"1234", 1, 1, 0))
        for name in ("result_destroy", "image_destroy", "attr_destroy"):
            call[name](None)


if __name__ == "__main__":
    unittest.main()
