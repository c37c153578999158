"""`load` of files of the host: variants are kept, the file is not, and a changed file is never served as it was."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import threading
import time
import unittest
from pathlib import Path
from typing import Any

from PIL import Image

from chaos_session import default_worker
from test_cache_disk import Disk, Worker
from test_process import Process, picture

THUMB = {"width": 64, "format": "png"}


def paint(path: Path, color: tuple[int, int, int], size: tuple[int, int] = (320, 240), *, settled: bool = True) -> Path:
    Image.new("RGB", size, color).save(path, format="PNG")
    return settle(path) if settled else path


def settle(path: Path, seconds: float = 10) -> Path:
    """Makes the file look as if nobody had written to it lately. Another call gives it another version."""
    written = time.time() - seconds
    os.utime(path, (written, written))
    return path


RED, GREEN, BLUE = (200, 0, 0), (0, 200, 0), (0, 0, 200)


class LoadFile(Process):
    def setUp(self) -> None:
        super().setUp()
        self.file = paint(self.spool / "a picture & more.png", RED)

    def load(self, file: Path | dict[str, Any] | None = None, *, worker: Worker | None = None, **params: Any) -> dict[str, Any]:
        place = file if isinstance(file, dict) else {"path": str(file or self.file)}
        if "transform" not in params and "outputs" not in params:
            params["transform"] = THUMB
        params = {name: value for name, value in params.items() if value is not None}
        return (worker or self.worker).call("load", file=place, **params)

    def seen(self, *arguments: Any, **params: Any) -> tuple[str, tuple[int, ...]]:
        """The source of the image and its colour."""
        answer = self.load(*arguments, **params)
        self.assertIn("result", answer, answer)
        result: dict[str, Any] = answer["result"]
        with Image.open(result["path"]) as image:
            return result["cache"], image.convert("RGB").getpixel((0, 0))  # type: ignore[return-value]

    def another_worker(self, *options: str) -> Worker:
        worker = Worker(self.folder / "cache", *options)
        self.addCleanup(worker.__exit__)
        return worker

    def entries(self) -> list[dict[str, Any]]:
        command = [default_worker(), "cache", "ls", "--json", "--cache-dir", str(self.folder / "cache")]
        listed = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return [json.loads(line) for line in listed.stdout.splitlines() if "key" in json.loads(line)]

    def await_entries(self, count: int) -> list[dict[str, Any]]:
        until = time.monotonic() + 60
        while len(entries := self.entries()) != count:
            self.assertLess(time.monotonic(), until, entries)
            time.sleep(0.1)
        return entries


class Cached(LoadFile):
    def test_the_second_load_is_answered_from_memory(self) -> None:
        answer = self.load()
        result = answer["result"]
        self.assertEqual((result["cache"], result["kept"], result["width"]), ("file", True, 64))
        self.assertEqual(result["url"], f"file://{self.spool}/a%20picture%20%26%20more.png")
        self.assertEqual(result["key"], result["url"])
        self.assertEqual(result["source"]["width"], 320)
        self.assertNotIn("attempts", result)
        again = self.load()["result"]
        self.assertEqual((again["cache"], again["path"]), ("memory", result["path"]))
        # The same file by other names of it.
        for file in ({"root": str(self.spool), "path": self.file.name}, {"path": f"{self.spool}/.//{self.file.name}"}):
            self.assertEqual(self.load(file)["result"]["cache"], "memory", file)

    def test_variants_are_kept_and_the_file_is_not(self) -> None:
        self.load()
        self.load(transform={"width": 32, "format": "webp"})
        entries = self.await_entries(2)
        self.assertEqual({entry["key"] for entry in entries}, {self.load()["result"]["key"]})
        self.assertEqual({entry["format"] for entry in entries}, {"png", "webp"})
        self.assertTrue(all(entry["variant"] for entry in entries), entries)
        disk = self.worker.call("stats")["result"]["disk"]
        self.assertEqual(disk["entries"], 2)

    def test_another_worker_finds_them(self) -> None:
        self.assertEqual(self.seen(), ("file", RED))
        self.await_entries(1)
        self.worker.__exit__()
        worker = self.another_worker()
        self.assertEqual(self.seen(worker=worker), ("disk", RED))
        self.assertEqual(self.seen(worker=worker), ("memory", RED))
        settle(paint(self.file, GREEN), 20)
        self.assertEqual(self.seen(worker=worker), ("file", GREEN))

    def test_two_workers_of_one_directory(self) -> None:
        other = self.another_worker()
        self.assertEqual(self.seen(), ("file", RED))
        self.await_entries(1)
        self.assertEqual(self.seen(worker=other), ("disk", RED))
        settle(paint(self.file, GREEN), 20)
        self.assertEqual(self.seen(worker=other), ("file", GREEN))
        self.assertEqual(self.seen()[1], GREEN)

    def test_what_a_variant_tells_is_kept_with_it(self) -> None:
        asked: dict[str, Any] = {"placeholder": True, "facts": ["digest", "perceptualHash"], "validate": "decode"}
        first = self.load(**asked)["result"]
        self.assertEqual(first["cache"], "file")
        again = self.load(**asked)["result"]
        self.assertEqual(again["cache"], "memory")
        for name in ("placeholder", "digest", "perceptualHash", "source"):
            self.assertEqual(first[name], again[name])
        digest = hashlib.sha256(self.file.read_bytes()).hexdigest()
        self.assertEqual(self.load(digest=f"sha256-{digest}")["result"]["cache"], "memory")
        self.assertEqual(self.kind(self.load(digest=f"sha256-{digest[::-1]}")), "digestMismatch")
        self.assertEqual(self.kind(self.load(want={"minWidth": 1000})), "unwanted")
        self.assertEqual(self.kind(self.load(want={"formats": ["jpeg"]})), "unwanted")

    def test_the_structure_of_a_file_is_told(self) -> None:
        grey = self.spool / "grey.png"
        Image.new("LA", (64, 48), (90, 100)).save(grey)
        settle(grey)
        expected = {"hasAlpha": True, "colorSpace": "gray", "bitDepth": 8, "hasGPS": False, "c2pa": False}
        for cache in ("file", "memory"):
            result = self.load(grey, facts=["container"])["result"]
            self.assertEqual((result["cache"], result["container"]), (cache, expected))
        settle(paint(grey, GREEN), 20)
        changed = self.load(grey, facts=["container"], outputs={"small": {"transform": THUMB}})["result"]
        self.assertEqual(changed["container"], {**expected, "hasAlpha": False, "colorSpace": "sRGB"})
        processed = self.worker.call("process", file={"path": str(grey)}, facts=["container"])["result"]
        self.assertEqual(processed["container"], changed["container"])

    def test_a_key_of_the_host(self) -> None:
        self.assertEqual(self.load(key="photo 1")["result"]["key"], "photo 1")
        other = paint(self.spool / "other.png", GREEN)
        # The key says which entry it is, and the version which content.
        self.assertEqual(self.seen(other, key="photo 1"), ("file", GREEN))
        self.assertEqual(self.seen(key="photo 1"), ("file", RED))
        linked = self.spool / "linked.png"
        os.link(self.file, linked)
        self.assertEqual(self.seen(linked, key="photo 1")[1], RED)
        self.assertEqual(self.seen(key="photo 1"), ("memory", RED))

    def test_an_open_file_needs_a_key(self) -> None:
        with open(self.file, "rb") as file:
            refused = self.load({"fd": file.fileno()})
            self.assertEqual((self.kind(refused), refused["error"]["data"]["member"]), ("invalidParams", "file.fd"))
            self.assertEqual(self.seen({"fd": file.fileno()}, key="open"), ("file", RED))
            self.assertEqual(self.seen({"fd": file.fileno()}, key="open"), ("memory", RED))

    def test_modes(self) -> None:
        self.assertEqual(self.kind(self.load(cache="only-if-cached")), "notCached")
        self.assertEqual(self.load(cache="no-store")["result"]["cache"], "file")
        self.assertEqual(self.kind(self.load(cache="only-if-cached")), "notCached")
        self.assertEqual(self.seen(), ("file", RED))
        for mode in ("default", "no-cache", "only-if-cached"):
            self.assertEqual(self.seen(cache=mode), ("memory", RED), mode)
        for mode in ("reload", "no-store"):
            self.assertEqual(self.seen(cache=mode), ("file", RED), mode)
        settle(paint(self.file, GREEN), 20)
        self.assertEqual(self.kind(self.load(cache="only-if-cached")), "notCached")
        self.assertEqual(self.seen(cache="reload"), ("file", GREEN))
        self.assertEqual(self.seen(cache="only-if-cached"), ("memory", GREEN))

    def test_tiers(self) -> None:
        for tier, found in (("memory", "memory"), ("disk", "disk"), ("none", "file")):
            self.worker.call("clear")
            self.assertEqual(self.load(store=tier)["result"]["cache"], "file")
            self.assertEqual(self.load(store=tier)["result"]["cache"], found)

    def test_query_and_clear(self) -> None:
        place, key = {"path": str(self.file)}, self.load()["result"]["key"]
        other = paint(self.spool / "other.png", BLUE)
        self.assertEqual(self.seen(other), ("file", BLUE))
        report = self.worker.call("query", file=place, transform=THUMB)["result"]
        self.assertEqual((report["memory"], report["disk"], report["fresh"]), (True, True, True))
        settle(paint(self.file, GREEN), 20)
        stale = self.worker.call("query", file=place, transform=THUMB)["result"]
        self.assertEqual((stale["disk"], stale["fresh"]), (True, False), stale)
        self.assertIn("changed", stale["reason"])
        self.file.unlink()
        gone = self.worker.call("query", file=place, transform=THUMB)["result"]
        self.assertEqual((gone["disk"], gone["fresh"]), (True, False), gone)
        self.assertIn("No such file", gone["reason"])
        # The file need not exist.
        self.assertEqual(self.worker.call("clear", file=place)["result"]["removed"], 1)
        self.assertEqual(self.worker.call("query", key=key, transform=THUMB)["result"]["disk"], False)
        self.assertEqual(self.seen(other), ("memory", BLUE))
        self.assertEqual(self.worker.call("clear", prefix=f"file://{self.spool}/")["result"]["removed"], 1)
        self.assertEqual(self.seen(other), ("file", BLUE))

    def test_query_tells_why_a_file_failed(self) -> None:
        self.file.write_bytes(b"%PDF-1.7" + bytes(1000))
        settle(self.file)
        self.assertEqual(self.kind(self.load()), "notAnImage")
        report = self.worker.call("query", file={"path": str(self.file)}, transform=THUMB)["result"]
        self.assertEqual(report.get("failure"), "notAnImage", report)
        settle(paint(self.file, GREEN), 20)
        self.assertNotIn("failure", self.worker.call("query", file={"path": str(self.file)}, transform=THUMB)["result"])

    def test_query_and_clear_of_an_open_file_ask_for_its_key(self) -> None:
        for method in ("query", "clear"):
            error = self.worker.call(method, file={"fd": 0})["error"]
            self.assertEqual(error["data"]["member"], "file.fd")
            self.assertIn("give the key", error["message"])


class Credentials(LoadFile):
    options = ("--header", "Authorization: Bearer secret")

    def test_those_of_the_options_are_not_for_files(self) -> None:
        self.assertEqual(self.seen(), ("file", RED))
        report = self.worker.call("query", file={"path": str(self.file)}, transform=THUMB)["result"]
        self.assertEqual((report["memory"], report["disk"], report["fresh"]), (True, True, True), report)


class Changed(LoadFile):
    def test_every_change_is_seen(self) -> None:
        def rewrite() -> None:
            settle(paint(self.file, GREEN), 20)

        def replace() -> None:
            os.replace(settle(paint(self.spool / "new", BLUE), 10), self.file)

        def overwrite_in_place() -> None:
            content = paint(self.spool / "new", RED).read_bytes()
            with open(self.file, "r+b") as file:
                file.write(content)
                file.truncate()
            settle(self.file, 30)

        for change, color in ((rewrite, GREEN), (replace, BLUE), (overwrite_in_place, RED)):
            with self.subTest(change.__name__):
                self.seen()
                self.assertEqual(self.seen()[0], "memory")
                change()
                self.assertEqual(self.seen(), ("file", color))
                self.assertEqual(self.seen(), ("memory", color))

    def test_the_same_size_and_time_do_not_hide_a_change(self) -> None:
        times = (1_000_000_000, 1_000_000_000)
        file = self.spool / "same.bmp"  # Its size depends on the number of pixels alone.
        for color in (RED, GREEN, BLUE, RED):
            Image.new("RGB", (64, 64), color).save(file)
            os.utime(file, times)
            self.assertEqual(self.seen(file), ("file", color))
            self.assertEqual(self.seen(file), ("memory", color))
            time.sleep(0.05)  # A file system counts in steps, which are shorter here.

    def test_a_touched_file_is_read_but_not_decoded(self) -> None:
        first = self.load()["result"]
        settle(self.file, 20)
        again = self.load()["result"]
        self.assertEqual((again["cache"], again["path"]), ("file", first["path"]))
        self.assertEqual(self.load()["result"]["cache"], "memory")
        self.assertEqual(len(self.await_entries(1)), 1)

    def test_variants_of_an_earlier_version_are_removed(self) -> None:
        for width in (16, 24, 32):
            self.load(transform={"width": width})
        self.await_entries(3)
        settle(paint(self.file, GREEN), 20)
        self.load(transform={"width": 48})
        self.await_entries(1)

    def test_a_file_that_is_removed_is_an_error(self) -> None:
        self.assertEqual(self.seen(), ("file", RED))
        self.file.unlink()
        for mode in ("default", "no-cache", "only-if-cached", "reload", "no-store"):
            answer = self.load(cache=mode)
            self.assertEqual((self.kind(answer), answer["error"]["data"]["retryable"]), ("io", False), mode)
        self.assertIn("No such file", answer["error"]["message"])

    def test_a_file_that_may_not_be_read_any_more_is_an_error(self) -> None:
        if os.geteuid() == 0:
            self.skipTest("root may read everything")
        self.assertEqual(self.seen(), ("file", RED))
        self.file.chmod(0)
        self.assertEqual(self.kind(self.load()), "io")

    def test_a_truncated_file_is_corrupt_and_not_remembered(self) -> None:
        photo = settle(picture(self.spool / "photo.jpg", quality=85))
        content = photo.read_bytes()
        self.assertEqual(self.load(photo)["result"]["cache"], "file")
        os.truncate(photo, len(content) // 3)
        settle(photo, 20)
        self.assertEqual(self.kind(self.load(photo)), "corrupt")
        photo.write_bytes(b"")
        settle(photo, 30)
        self.assertEqual(self.kind(self.load(photo)), "notAnImage")
        photo.write_bytes(b"%PDF-1.7" + bytes(1000))
        settle(photo, 40)
        self.assertEqual(self.kind(self.load(photo)), "notAnImage")
        # Another version is another file: what failed before is not remembered for it.
        photo.write_bytes(content)
        settle(photo, 50)
        self.assertEqual(self.load(photo)["result"]["cache"], "file")

    def test_a_corrupt_content_is_not_decoded_twice(self) -> None:
        def failed() -> int:
            return int(self.worker.call("stats")["result"]["decoders"]["failed"])

        content = self.file.read_bytes()
        os.truncate(self.file, len(content) // 2)
        settle(self.file)
        steps: list[tuple[int, dict[str, Any]]] = [(1, {}), (1, {}), (2, {"transform": {"width": 8}}), (3, {"retryFailed": True})]
        for count, params in steps:
            self.assertEqual(self.kind(self.load(**params)), "corrupt")
            self.assertEqual(failed(), count, params)
        self.file.write_bytes(content)
        settle(self.file)
        self.assertEqual(self.seen(), ("file", RED))

    def test_a_failure_is_remembered_for_its_version(self) -> None:
        self.file.write_bytes(b"%PDF-1.7" + bytes(1000))
        settle(self.file)
        self.assertEqual(self.kind(self.load()), "notAnImage")
        again = self.load()["error"]["data"]
        self.assertEqual((again["kind"], again["failure"]), ("recentlyFailed", "notAnImage"))
        self.assertEqual(self.kind(self.load(retryFailed=True)), "notAnImage")

    def test_a_file_that_was_just_written_is_served_and_not_kept(self) -> None:
        paint(self.file, GREEN, settled=False)
        for _ in range(3):
            os.utime(self.file)
            result = self.load()["result"]
            self.assertEqual((result["cache"], result["kept"]), ("file", False))
        self.assertEqual(self.load(cache="no-store")["result"]["kept"], True)
        self.assertEqual(self.kind(self.load(cache="only-if-cached")), "notCached")
        future = time.time() + 1000
        os.utime(self.file, (future, future))
        self.assertEqual(self.load()["result"]["kept"], False)
        # Nothing was to be kept.
        more: list[dict[str, Any]] = [{"deliver": "data"}, {"deliver": "none", "facts": ["container"]}, {"outputs": self.outputs("a")}]
        for params in more:
            self.assertEqual(self.load(transform=None, **params)["result"]["kept"], True, params)
        settle(self.file)
        self.assertEqual(self.load()["result"]["kept"], True)
        self.assertEqual(self.seen(), ("memory", GREEN))

    def test_loads_during_writes_see_a_whole_version(self) -> None:
        """The picture is one of the versions, or the load says that it changed; it is never older than what was complete before."""
        palette = [(number, 255 - number, 0) for number in range(0, 250, 5)]
        newest, stop = [0], threading.Event()
        paint(self.file, palette[0])

        def write() -> None:
            for number, color in enumerate(palette[1:], 1):
                if stop.is_set():
                    return
                os.replace(paint(self.spool / "new", color), self.file)
                newest[0] = number
                time.sleep(random.random() / 50)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            while thread.is_alive():
                oldest = newest[0]
                answer = self.load()
                if "error" in answer:
                    self.assertTrue(answer["error"]["data"]["retryable"], answer)
                    continue
                with Image.open(answer["result"]["path"]) as image:
                    shown = palette.index(image.convert("RGB").getpixel((0, 0)))  # type: ignore[arg-type]
                self.assertGreaterEqual(shown, oldest, answer)
        finally:
            stop.set()
            thread.join()
        self.assertEqual(self.seen()[1], palette[-1])


class Refused(LoadFile):
    def test_what_has_no_meaning_for_a_file_is_named(self) -> None:
        for name, value in (
            ("headers", {"accept": "*/*"}),
            ("timeoutMs", 100),
            ("retries", 1),
            ("response", True),
            ("events", ["progress"]),
            ("cache", "refresh"),
            ("cache", "force-cache"),
            ("validate", "none"),
        ):
            params: dict[str, Any] = {name: value}
            data = self.load(**params)["error"]["data"]
            self.assertEqual((data["kind"], data["member"]), ("invalidParams", name), value)
        data = self.load(transform=None)["error"]["data"]
        self.assertEqual((data["kind"], data["member"]), ("invalidParams", "transform"))
        data = self.load(url="http://example.com/")["error"]["data"]
        self.assertEqual((data["kind"], data["member"]), ("invalidParams", "file"))
        for file, member in (
            ({}, "file.path"),
            ({"path": "relative.png"}, "file.path"),
            ({"path": "/a", "root": "/b"}, "file.path"),
            ({"path": "/a", "fd": 1}, "file.fd"),
            ({"name": "/a"}, "file.name"),
            ({"path": "/a", "pid": 1}, "file.pid"),
        ):
            data = self.load(file)["error"]["data"]
            self.assertEqual((data["kind"], data["member"]), ("invalidParams", member), file)
        for method in ("probe", "store"):
            data = self.worker.call(method, file={"path": str(self.file)}, key="k")["error"]["data"]
            self.assertEqual((data["kind"], data["member"]), ("invalidParams", "file"), method)
        for method, words in {"load": "one of url, file must be given", "probe": "url must be given"}.items():
            self.assertIn(words, self.worker.call(method)["error"]["message"])

    def test_other_kinds_of_files_and_places(self) -> None:
        os.mkfifo(self.spool / "pipe")
        (self.spool / "folder").mkdir()
        (self.spool / "link").symlink_to(self.file)
        (self.spool / "loop").symlink_to("loop")
        for path in ("pipe", "folder", "missing", "loop", f"{self.file.name}/x"):
            self.assertEqual(self.kind(self.load(self.spool / path)), "io", path)
        for device in ("/dev/null", "/dev/zero", "/dev/tty", "/proc/self/mem"):
            self.assertIn(self.kind(self.load({"path": device})), ("io", "notAnImage"), device)
        self.assertEqual(self.seen(self.spool / "link"), ("file", RED))
        data = self.load({"root": str(self.spool), "path": "link"})["error"]["data"]
        self.assertEqual((data["kind"], data["member"]), ("invalidParams", "file"))
        for path in ("../spool/" + self.file.name, "folder/../../outside.png"):
            self.assertEqual(self.kind(self.load({"root": str(self.spool), "path": path})), "invalidParams", path)
        self.assertEqual(self.kind(self.load({"path": "/" + "a" * 5000})), "io")
        self.assertEqual(self.kind(self.load({"path": "/" + "a/" * 100_000})), "io")
        self.assertEqual(self.kind(self.load(maxBytes=10)), "tooLarge")

    def test_deliveries(self) -> None:
        content = self.file.read_bytes()
        whole = self.load(transform=None, deliver="data", facts=["digest"])["result"]
        self.assertEqual((whole["cache"], whole["bytes"], whole["format"]), ("file", len(content), "png"))
        self.assertEqual(base64.b64decode(whole["data"]), content)
        facts = self.load(transform=None, deliver="none", facts=["perceptualHash"])["result"]
        self.assertIn("perceptualHash", facts)
        self.assertEqual(self.load(deliver="data")["result"]["cache"], "file")
        self.assertEqual(self.load(deliver="data")["result"]["cache"], "memory")
        self.assertEqual(self.load(deliver="none")["result"]["cache"], "memory")
        saved = self.media / "thumb.png"
        self.assertEqual(self.load(saveTo=str(saved))["result"]["cache"], "memory")
        with Image.open(saved) as image:
            self.assertEqual(image.size, (64, 48))
        pixels = self.load(deliver="pixels", transform={"width": 8})["result"]
        self.assertEqual((pixels["cache"], pixels["pixels"]["width"]), ("file", 8))
        self.worker.call("release", all=True)
        made = self.load(outputs=self.outputs("a", "b"))["result"]["outputs"]
        self.assertEqual(made["b"]["width"], 80)
        self.assertEqual(len(self.await_entries(1)), 1)


class Permitted(LoadFile):
    options = ("--files", "SPOOL")

    def test_the_folder_applies_to_kept_variants_too(self) -> None:
        outside = paint(self.folder / "outside.png", GREEN)
        self.assertEqual(self.seen(), ("file", RED))
        free = self.another_worker()
        self.assertEqual(self.seen(outside, worker=free), ("file", GREEN))
        self.await_entries(2)
        for cache in ("default", "only-if-cached"):
            data = self.load(outside, cache=cache)["error"]["data"]
            self.assertEqual((data["kind"], data["member"]), ("invalidParams", "file"))
        (self.spool / "link.png").symlink_to(outside)
        self.assertEqual(self.kind(self.load(self.spool / "link.png")), "invalidParams")
        self.assertIn("must be a regular file", self.load(self.spool)["error"]["message"])


class AtOnce(LoadFile):
    """Many requests in one write."""

    options = ("--memory-limit", "8M")

    def ask(self, requests: list[tuple[str, dict[str, Any]]], *options: str, cache: str = "cache") -> dict[int, dict[str, Any]]:
        command = [default_worker(), "--cache-dir", str(self.folder / cache), "--min-free", "0%", *options]
        lines = [json.dumps({"id": number, "method": method, "params": params}) for number, (method, params) in enumerate(requests)]
        done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=300)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        return {answer["id"]: answer for answer in answers if "id" in answer}

    def request(self, file: Path, **params: Any) -> tuple[str, dict[str, Any]]:
        return "load", {"file": {"path": str(file)}, "transform": THUMB, **params}

    def copies(self, count: int) -> list[Path]:
        """Files of one picture, each of them with versions of its own."""
        content = picture(self.spool / "original.png", (1200, 900)).read_bytes()
        files = [self.spool / f"{number}.png" for number in range(count)]
        for file in files:
            file.write_bytes(content)
            settle(file)
        return files

    def test_a_thousand_files(self) -> None:
        for number in range(1000):
            paint(self.spool / f"{number}.png", (number % 251, number // 251, 7), (32 + number % 7, 32))
        requests = [self.request(self.spool / f"{number}.png") for number in range(1000)]
        for expected in ({"file"}, {"disk"}):
            answers = self.ask(requests, "--memory-limit", "1M")
            self.assertEqual({answers[number]["result"]["cache"] for number in range(1000)}, expected)
            for number in (0, 1, 500, 999):
                with Image.open(answers[number]["result"]["path"]) as image:
                    self.assertEqual(image.convert("RGB").getpixel((0, 0)), (number % 251, number // 251, 7))
        self.assertEqual(len(self.entries()), 1000)

    def test_equal_loads_share_one_decode(self) -> None:
        large = settle(picture(self.spool / "large.png", (3000, 2000)))
        answers = self.ask([self.request(large) for _ in range(300)] + [("metrics", {})], "--decoders", "2")
        paths = {answers[number]["result"]["path"] for number in range(300)}
        self.assertEqual(len(paths), 1)
        self.assertEqual(len(self.entries()), 1)

    def test_cancelled_loads_leave_the_others(self) -> None:
        """The first load of a file is the one that waits for its turn; the others go on without it."""
        files = self.copies(40)
        requests = [self.request(file, group=group) for file in files for group in ("first", "second")]
        requests.append(("cancel", {"group": "first"}))
        answers = self.ask(requests, "--decoders", "1")
        for number in range(80):
            if number % 2:
                self.assertIn("result", answers[number])
            elif "error" in answers[number]:
                self.assertEqual(self.kind(answers[number]), "cancelled")
        self.assertGreater(answers[80]["result"]["cancelled"], 0)

    def test_priorities_and_slots(self) -> None:
        files = self.copies(60)
        answers = self.ask([self.request(file, slot="one") for file in files], "--decoders", "1")
        self.assertEqual({self.kind(answers[number]) for number in range(59)}, {"cancelled"})
        self.assertIn("result", answers[59])
        self.assertEqual(self.kind(self.ask([self.request(files[0], deadlineMs=1) for _ in range(1)], cache="other")[0]), "timeout")

    def test_a_priority_counts_before_the_file_is_found(self) -> None:
        large = settle(picture(self.spool / "large.png", (3000, 2000)))
        for command in ({"id": 0}, {"url": f"file://{large}"}):
            answers = self.ask([self.request(large), ("prioritize", {**command, "priority": "high"})], cache="empty")
            self.assertEqual(answers[1]["result"]["changed"], 1)
            shutil.rmtree(self.folder / "empty")

    def test_the_file_of_a_cancelled_load_is_not_read_to_its_end(self) -> None:
        os.truncate(self.photo, 4 << 30)
        settle(self.photo)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_oublock
        for end in (("cancel", {"id": 0}), ("shutdown", {"mode": "cancel"})):
            answers = self.ask([self.request(self.photo), end], "--max-bytes", "8G")
            self.assertEqual(self.kind(answers[0]), "cancelled")
        written = resource.getrusage(resource.RUSAGE_CHILDREN).ru_oublock - before
        self.assertLess(512 * written, 1 << 30)

    def test_a_queue_that_is_full(self) -> None:
        files = self.copies(60)
        answers = self.ask([self.request(file) for file in files], "--decoders", "1", "--max-queued", "5")
        kinds = [self.kind(answers[number]) if "error" in answers[number] else "ok" for number in range(60)]
        self.assertEqual(set(kinds), {"ok", "overloaded"})

    def test_a_full_disk(self) -> None:
        with contextlib.ExitStack() as exits:
            disk = exits.enter_context(Disk(self.folder / "small", "2m"))
            with (disk.path / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
                while filler.write(bytes(4096)):
                    pass
            worker = exits.enter_context(Worker(disk.path, "--memory-limit", "0"))
            answer = self.load(worker=worker, deliver="data")
            self.assertEqual((answer["result"]["cache"], answer["result"]["kept"]), ("file", False), answer)
            self.assertEqual(self.load(worker=worker, deliver="data")["result"]["cache"], "file")
            (disk.path / "filler").unlink()

    def test_killed_workers(self) -> None:
        """Whatever was stored when the worker died is the picture of its file, or is not served."""
        chance = random.Random(3)
        colors = {self.spool / f"{number}.png": (number, 9, 9) for number in range(60)}
        for file, color in colors.items():
            paint(file, color, (600, 400))
        self.ask([self.request(file) for file in colors])
        command = [default_worker(), "--cache-dir", str(self.folder / "cache"), "--min-free", "0%"]
        for round in range(8):
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
                assert worker.stdin and worker.stdout
                lines = [json.dumps({"id": 1, "method": "load", "params": self.request(file)[1]}) for file in colors]
                worker.stdin.write("\n".join(lines).encode() + b"\n")
                worker.stdin.flush()
                for _ in range(chance.randrange(60)):
                    worker.stdout.readline()
                changed = chance.choice(list(colors))
                colors[changed] = (chance.randrange(256), round, 77)
                settle(paint(changed, colors[changed], (600, 400)), 20 + round)
                worker.send_signal(signal.SIGKILL)
        worker_after = self.another_worker()
        seen = {file: self.seen(file, worker=worker_after) for file in colors}
        self.assertEqual({file: color for file, (_, color) in seen.items()}, colors)
        self.assertIn("disk", {cache for cache, _ in seen.values()})


if __name__ == "__main__":
    unittest.main()
