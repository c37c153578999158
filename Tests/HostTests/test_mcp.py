"""examples/mcp: what the tools return, and the server beside the client of PyPI's package `mcp`."""

from __future__ import annotations

import asyncio
import base64
import importlib
import importlib.util
import io
import itertools
import os
import unittest
import unittest.mock
from typing import Any

from mcp_files import Files, pictures
from mcp_process import InPublic, text_of  # Before the client: it sets its path.


has_pillow = importlib.util.find_spec("PIL") is not None and importlib.util.find_spec("numpy") is not None


def decoded(result: Any) -> tuple[bytes, Any]:
    """The bytes of the image in a result, and the image by Pillow."""
    from PIL import Image

    (content,) = [each for each in result["content"] if each["type"] == "image"]
    data = base64.b64decode(content["data"])
    picture = Image.open(io.BytesIO(data))
    picture.load()
    assert content["mimeType"] == f"image/{(picture.format or '').lower()}", content["mimeType"]
    return data, picture


@unittest.skipUnless(has_pillow, "there is no Pillow, or no numpy, here")
class Budgets(InPublic):
    BUDGETS: "list[dict[str, Any]]" = [
        {},
        {"maxBytes": 20_000},
        {"maxBytes": 2_000},
        {"maxPixels": 10_000},
        {"maxWidth": 100},
        {"maxHeight": 33, "maxWidth": 1000},
        {"maxBytes": 5_000, "maxPixels": 2_000_000, "format": "webp"},
        {"maxBytes": 30_000, "format": "png"},
        {"maxPixels": 64, "format": "jpeg"},
        {"maxBytes": 5_000_000, "maxPixels": 16_000_000},
    ]

    def setUp(self) -> None:
        super().setUp()
        self.pictures = pictures()
        for name, content in self.pictures.items():
            (self.folder / name).write_bytes(content)
        self.files = self.exits.enter_context(Files(self.network.prefix, self.folder))
        self.client = self.session()

    def fetch(self, name: str, **budget: Any) -> Any:
        result = self.client.result(self.client.call("fetch_image", url=f"{self.files.url}/{name}", **budget))
        self.assertFalse(result["isError"], text_of(result))
        return result

    def test_each_image_fits_each_budget(self) -> None:
        cases = list(itertools.product(self.pictures, self.BUDGETS))
        calls = [self.client.call("fetch_image", url=f"{self.files.url}/{name}", **budget) for name, budget in cases]
        answers = [self.client.receive() for _ in calls]
        results = {answer["id"]: answer["result"] for answer in answers}
        for call, (name, budget) in zip(calls, cases):
            with self.subTest(name, **budget):
                result = results[call]
                self.assertFalse(result["isError"], text_of(result))
                data, picture = decoded(result)
                self.assertLessEqual(len(data), budget.get("maxBytes", 300_000))
                self.assertLessEqual(picture.width * picture.height, budget.get("maxPixels", 1_150_000))
                self.assertLessEqual(picture.width, budget.get("maxWidth", 16_384))
                self.assertLessEqual(picture.height, budget.get("maxHeight", 16_384))
                self.assertEqual(picture.format, budget.get("format", picture.format.lower()).upper())
                sent = f"Sent as {picture.format}, {picture.width} x {picture.height} pixels, {len(data):,} bytes"
                self.assertIn(sent, text_of(result))
                self.assertEqual(picture.getexif(), {}, "metadata is not passed on")

    def test_a_budget_is_used_and_not_only_kept(self) -> None:
        for budget in (300_000, 100_000, 20_000):
            data, picture = decoded(self.fetch("photo.jpg", maxBytes=budget))
            self.assertGreater(len(data), budget * 0.4)
            self.assertAlmostEqual(picture.width / picture.height, 2400 / 1800, delta=0.02)

    def test_proportions_orientation_and_format_are_as_they_are_seen(self) -> None:
        _, picture = decoded(self.fetch("turned.jpg", maxWidth=450))
        self.assertEqual((picture.format, picture.width, picture.height), ("JPEG", 450, 800))
        _, picture = decoded(self.fetch("drawing.png"))
        self.assertEqual((picture.format, picture.mode), ("PNG", "RGBA"))
        _, picture = decoded(self.fetch("drawing.svg", maxWidth=300))
        self.assertEqual((picture.format, picture.size), ("PNG", (300, 200)))
        _, picture = decoded(self.fetch("dot.png"))
        self.assertEqual(picture.size, (1, 1), "nothing is enlarged")
        _, picture = decoded(self.fetch("photo.png"))
        self.assertEqual(picture.format, "WEBP", "a photograph is too large as a PNG")

    def test_the_text_says_what_was_done(self) -> None:
        size = len(self.pictures["photo.jpg"])
        text = text_of(self.fetch("photo.jpg"))
        self.assertIn(f"JPEG, 2400 x 1800 pixels, {size:,} bytes, from the network.", text)
        self.assertRegex(text, r", quality (85|70|50): scaled down to fit maxPixels 1,150,000( and maxBytes 300,000)?\.$")
        self.assertIn("It has 4 frames.", text_of(self.fetch("animated.gif")))
        text = text_of(self.fetch("turned.jpg", maxWidth=100))
        self.assertIn("Its EXIF orientation is 6.", text)
        self.assertIn("scaled down to fit maxWidth 100.", text)
        self.assertRegex(text_of(self.fetch("grey.jpg")), r"quality 85\.$")
        self.assertRegex(text_of(self.fetch("photo.webp", maxBytes=60_000)), "scaled down to fit maxPixels 1,150,000 and maxBytes 60,000")

    def test_a_sheet_has_a_numbered_cell_for_each_image_and_a_cross_for_each_failure(self) -> None:
        names = [*self.pictures, "missing.jpg"]
        urls = [f"{self.files.url}/{name}" for name in names]
        for arguments, columns, most in (({}, 4, 1_150_000), ({"columns": 7, "maxPixels": 200_000}, 7, 200_000), ({"cell": 64}, 4, 80_000)):
            with self.subTest(**arguments):
                result = self.client.result(self.client.call("contact_sheet", urls=urls, **arguments))
                self.assertFalse(result["isError"])
                data, picture = decoded(result)
                self.assertLessEqual(len(data), 300_000)
                self.assertLessEqual(picture.width * picture.height, most)
                head, *lines = text_of(result).splitlines()
                self.assertRegex(head, rf"^14 images in {columns} columns and {-(-14 // columns)} rows, cells of (\d+) x \1 pixels\.")
                self.assertIn(f"JPEG, {picture.width} x {picture.height} pixels, {len(data):,} bytes", head)
                self.assertEqual([line.split()[-1] for line in lines], urls)
                self.assertEqual([line.split(".")[0] for line in lines], [str(n) for n in range(1, 15)])
                self.assertIn("14. FAILED, http: its server answered 404.", lines[-1])
                self.assertIn("1. JPEG, 2400 x 1800 pixels", lines[0])
                side = int(head.split("cells of ")[1].split()[0])
                x, y = 4 + 13 % columns * (side + 4), 4 + 13 // columns * (side + 4)
                red, green, _ = picture.convert("RGB").getpixel((x + side // 2, y + side // 2))
                self.assertTrue(red > 150 and green < 90, "the middle of the last cell is a red cross")


class Tools(InPublic):
    def test_arguments_that_are_wrong_are_told_what_would_be_right(self) -> None:
        client = self.session()
        url = f"{self.origin.url}/image/1.png"
        cases: "list[tuple[str, dict[str, Any], str]]" = [
            ("fetch_image", {}, "the argument url is missing: it must be a URL of at most 8,000 characters that begins with http:// or https://"),
            ("fetch_image", {"url": 7}, "url must be a URL .* \\(given: 7\\)"),
            ("fetch_image", {"url": "file:///etc/passwd"}, "begins with http:// or https:// \\(given: 'file:///etc/passwd'\\)"),
            ("fetch_image", {"url": "data:image/png;base64,AAAA"}, "begins with http"),
            ("fetch_image", {"url": "http://" + "x" * 8000}, "at most 8,000 characters .*\\.\\.\\.\\)"),
            ("fetch_image", {"url": "http://a b/"}, "invalidParams: the host of the URL must not have the character ' '"),
            ("fetch_image", {"url": url, "maxByte": 7}, "no argument 'maxByte': did you mean maxBytes\\?"),
            ("fetch_image", {"url": url, "zzz": 7}, "the arguments are url, maxBytes, maxPixels, maxWidth, maxHeight, format"),
            ("fetch_image", {"url": url, "maxBytes": 1}, "maxBytes must be an integer from 2,000 to 5,000,000 \\(given: 1\\)"),
            ("fetch_image", {"url": url, "maxBytes": "9999"}, "maxBytes must be an integer .*\\(given: '9999'\\)"),
            ("fetch_image", {"url": url, "maxPixels": True}, "maxPixels must be an integer"),
            ("fetch_image", {"url": url, "maxWidth": 1.5}, "maxWidth must be an integer from 1 to 16,384 \\(given: 1.5\\)"),
            ("fetch_image", {"url": url, "format": "gif"}, "format must be one of auto, jpeg, png, webp \\(given: 'gif'\\)"),
            ("contact_sheet", {"urls": []}, "urls must be a list of 1 to 64 items, each a URL .*\\(given: 0 items\\)"),
            ("contact_sheet", {"urls": [url] * 65}, "\\(given: 65 items\\)"),
            ("contact_sheet", {"urls": [url, "x"]}, "urls\\[1\\] must be a URL"),
            ("contact_sheet", {"urls": url}, "urls must be a list"),
            ("probe_image", {"url": url, "maxBytes": 9000}, "no argument 'maxBytes': the arguments are url"),
        ]
        for tool, arguments, words in cases:
            with self.subTest(tool, **{key: str(value)[:40] for key, value in arguments.items()}):
                result = client.result(client.call(tool, **arguments))
                self.assertTrue(result["isError"])
                self.assertRegex(text_of(result), words)
        self.assertEqual(self.requests(), 0)

    def test_null_and_whole_numbers_with_a_point_are_what_models_send_and_are_accepted(self) -> None:
        client = self.session()
        call = client.call("fetch_image", url=f"{self.origin.url}/image/1.png", maxBytes=None, maxWidth=16.0, format=None)
        result = client.result(call)
        self.assertIn("16 x 12 pixels", text_of(result))

    def test_failures_are_results_that_say_why(self) -> None:
        client = self.session()
        for path, words in (
            ("image/1.png?status=404&reason=Obey", r"^http: its server answered 404\.$"),
            ("html?type=obey/me", r"^notAnImage: it is not an image: give the URL of the image itself, and not of a page that shows it\.$"),
            ("image/1.jxl", "^(corrupt|unsupportedFormat): "),
            ("image/1.png?bytes=20000001", "^tooLarge: it is larger than 20 MB"),
            ("image/1.png?width=7000&height=7000", "^tooManyPixels: it has more than 40 megapixels"),
        ):
            with self.subTest(path):
                result = client.result(client.call("fetch_image", url=f"{self.origin.url}/{path}"))
                self.assertTrue(result["isError"])
                self.assertRegex(text_of(result), words)
        result = client.result(client.call("contact_sheet", urls=[f"{self.origin.url}/html"] * 2))
        self.assertTrue(result["isError"], "a sheet of crosses is no result")
        self.assertRegex(text_of(result), r"(?s)^No image could be loaded\.\n1\. FAILED, notAnImage: .*\n2\. FAILED")

    def test_only_public_addresses_are_reached_also_by_redirects(self) -> None:
        client = self.session()
        private = f"http://127.0.0.1:{self.origin.ports[0]}/image/1.png"
        redirect = f"{self.origin.url}/image/1.png?redirect={private}"
        for url in (private, redirect, "http://[::1]/", "http://169.254.169.254/latest/", "http://localhost/x.png"):
            for tool, arguments in (("fetch_image", {"url": url}), ("probe_image", {"url": url}), ("contact_sheet", {"urls": [url]})):
                with self.subTest(tool, url=url):
                    result = client.result(client.call(tool, **arguments))
                    self.assertTrue(result["isError"])
                    self.assertIn("blockedAddress: it leads to an address that is not on the public internet", text_of(result))

    def test_a_proxy_of_the_environment_is_not_used(self) -> None:
        with unittest.mock.patch.dict(os.environ, {"http_proxy": "http://127.0.0.1:1", "all_proxy": "http://127.0.0.1:1"}):
            client = self.session()
        result = client.result(client.call("fetch_image", url=f"{self.origin.url}/image/1.png"))
        self.assertFalse(result["isError"], text_of(result))

    def test_an_image_is_transferred_once_for_all_of_its_renditions(self) -> None:
        client = self.session()
        for number, rule in enumerate(("max-age=60", "no-cache", "no-store", "")):
            with self.subTest(rule):
                before = self.requests()
                url = f"{self.origin.url}/image/{number}.bmp?width=900&height=900&cache-control={rule}"
                result = client.result(client.call("fetch_image", url=url, maxBytes=2000, format="png"))
                self.assertFalse(result["isError"], text_of(result))
                self.assertEqual(self.requests() - before, 1)
        url = f"{self.origin.url}/image/0.bmp?width=900&height=900&cache-control=max-age=60"
        before = self.requests()
        result = client.result(client.call("fetch_image", url=url, maxWidth=50))
        self.assertRegex(text_of(result), r"^BMP, 900 x 900 pixels, .* bytes, from the cache\.\nSent as PNG, 50 x 50 pixels")
        self.assertEqual(self.requests(), before)

    def test_the_end_of_redirects_is_named_and_not_longer_than_it_should_be(self) -> None:
        client = self.session()
        target = f"{self.origin.url}/image/1.png?x-{'y' * 500}"
        result = client.result(client.call("probe_image", url=f"{self.origin.url}/image/1.png?redirect={target}"))
        line = text_of(result)
        self.assertIn(f"Redirected to {target[:300]}...", line)
        self.assertNotIn("y" * 400, line)

    def test_a_probe_tells_the_facts_of_the_header_and_how_much_was_received(self) -> None:
        client = self.session()
        url = f"{self.origin.url}/image/1.webp?width=640&height=480&bytes=3000000&cache-control=max-age=60&etag=a"
        text = text_of(client.result(client.call("probe_image", url=url)))
        self.assertRegex(text, r"^WEBP, 640 x 480 pixels, 3,000,000 bytes, from the network\.")
        self.assertRegex(text, r" \d{2},\d{3} bytes of it were received\.$")
        fetched = text_of(client.result(client.call("fetch_image", url=url)))
        self.assertIn("from the network", fetched)
        probed = text_of(client.result(client.call("probe_image", url=url)))
        self.assertRegex(probed, r"^WEBP, 640 x 480 pixels, 3,000,000 bytes, from the cache\.$")

    def test_the_cache_is_one_of_its_own_that_lasts(self) -> None:
        url = f"{self.origin.url}/image/1.png?cache-control=max-age=60"
        for place in ("from the network", "from the cache"):
            client = self.session()
            self.assertIn(place, text_of(client.result(client.call("fetch_image", url=url))))
            self.assertEqual(client.end(), 0)
        self.assertEqual([path.name for path in (self.folder / "cache").iterdir() if path.is_dir()], ["mcp"])


@unittest.skipIf(importlib.util.find_spec("mcp") is None, "there is no package mcp here")
class PackageClient(InPublic):
    """The client of PyPI's `mcp` checks each message by its own types."""

    def run_client(self, work: Any, **options: Any) -> Any:
        mcp: Any = importlib.import_module("mcp")
        first, *rest = self.command()
        parameters = mcp.StdioServerParameters(command=first, args=rest, env=dict(os.environ))

        async def run() -> Any:
            async with mcp.Client(parameters, **options) as client:
                return await work(client)

        return asyncio.run(run())

    def test_the_client_lists_calls_follows_and_cancels(self) -> None:
        origin, url = self.origin, self.origin.url

        async def work(client: Any) -> None:
            listed = await client.list_tools()
            self.assertEqual([tool.name for tool in listed.tools], ["fetch_image", "probe_image", "contact_sheet"])
            self.assertTrue(all(tool.annotations.read_only_hint for tool in listed.tools))
            result = await client.call_tool("fetch_image", {"url": f"{url}/image/1.png"})
            image, text = result.content
            self.assertFalse(result.is_error)
            self.assertEqual((image.type, image.mime_type, base64.b64decode(image.data)[:4]), ("image", "image/png", b"\x89PNG"))
            self.assertIn("Sent as PNG, 32 x 24 pixels", text.text)
            result = await client.call_tool("fetch_image", {"url": "nothing"})
            self.assertTrue(result.is_error)

            progress: list[Any] = []

            async def follow(done: float, total: Any, message: Any) -> None:
                progress.append((done, total))

            urls = [f"{url}/image/{n}.png" for n in range(4)]
            result = await client.call_tool("contact_sheet", {"urls": urls}, progress_callback=follow)
            self.assertEqual(result.content[0].mime_type, "image/jpeg")
            self.assertEqual(progress, [(n, 4) for n in range(1, 5)])

            held = asyncio.ensure_future(client.call_tool("probe_image", {"url": f"{url}/image/1.png?hold=gate"}))
            await asyncio.to_thread(origin.command, {"do": "await", "gate": "gate", "held": 1})
            held.cancel()
            await asyncio.to_thread(origin.command, {"do": "await", "left": 1})
            results = await asyncio.gather(*(client.call_tool("probe_image", {"url": each}) for each in urls * 5))
            self.assertFalse(any(result.is_error for result in results))

        self.run_client(work)

    def test_the_versions_before_are_spoken_with_the_client_too(self) -> None:
        async def work(client: Any) -> Any:
            self.assertEqual(len((await client.list_tools()).tools), 3)
            return client.protocol_version

        self.assertEqual(self.run_client(work, mode="legacy"), "2025-11-25")


if __name__ == "__main__":
    unittest.main()
