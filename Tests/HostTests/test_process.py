"""`process` asked of the built worker: files of strangers, outputs that fail, and what is left behind.

UPLOADS is the number of uploads under a small disk limit.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
from PIL import Image, ImageCms, PngImagePlugin

from chaos_session import default_worker
from origin_process import PATIENCE
from package import ROOT
from test_cache_disk import SilentDisk, Worker

sys.path.insert(0, str(ROOT / "examples" / "python"))
from imageworker import BlockingImageWorker  # noqa: E402


def picture(path: Path, size: tuple[int, int] = (640, 480), **options: Any) -> Path:
    noise = numpy.random.default_rng(1).integers(0, 255, (size[1] // 8, size[0] // 8, 3), dtype=numpy.uint8)
    Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC).save(path, **options)
    return path


class Process(unittest.TestCase):
    options: tuple[str, ...] = ()

    def setUp(self) -> None:
        exits = contextlib.ExitStack()
        self.addCleanup(exits.close)
        self.folder = Path(exits.enter_context(tempfile.TemporaryDirectory())).resolve()
        self.spool, self.media = self.folder / "spool", self.folder / "media"
        self.spool.mkdir()
        self.media.mkdir()
        self.photo = picture(self.spool / "photo.jpg", quality=85)
        options = [option.replace("SPOOL", str(self.spool)) for option in self.options]
        self.worker = exits.enter_context(Worker(self.folder / "cache", *options))

    def process(self, file: dict[str, Any], **params: Any) -> dict[str, Any]:
        return self.worker.call("process", file=file, **params)

    def kind(self, answer: dict[str, Any]) -> str:
        return str(answer.get("error", {}).get("data", {}).get("kind"))

    def outputs(self, *names: str, **more: Any) -> dict[str, Any]:
        return {name: {"transform": {"width": 40 * (index + 1)}, "saveTo": str(self.media / name), **more} for index, name in enumerate(names)}


class Files(Process):
    def test_only_regular_files_below_the_folder_are_read(self) -> None:
        outside = picture(self.folder / "outside.png")
        (self.spool / "link").symlink_to(outside)
        (self.spool / "inner").symlink_to("photo.jpg")
        (self.spool / "up").symlink_to("..")
        os.mkfifo(self.spool / "pipe")
        (self.spool / "folder").mkdir()
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(self.spool / "socket"))
        root = str(self.spool)
        for path in ("link", "inner", "up/outside.png", "../outside.png", "folder/../../outside.png", "up/spool/photo.jpg"):
            with self.subTest(path):
                answer = self.process({"root": root, "path": path})
                self.assertEqual((self.kind(answer), answer["error"]["data"]["member"]), ("invalidParams", "file"), answer)
        for path in ("pipe", "folder", "socket", "missing", ".", "photo.jpg/x"):
            with self.subTest(path):
                self.assertEqual(self.kind(self.process({"root": root, "path": path})), "io")
                self.assertEqual(self.kind(self.process({"path": f"{root}/{path}"})), "io")
        for device in ("/dev/null", "/dev/zero", "/dev/tty", "/proc/self/mem"):
            self.assertIn(self.kind(self.process({"path": device})), ("io", "notAnImage"), device)
        self.assertEqual(self.process({"root": root, "path": "folder/../photo.jpg"})["result"]["width"], 640)
        self.assertEqual(self.process({"path": str(self.spool / "link")})["result"]["format"], "png")

    def test_a_descriptor_needs_no_name(self) -> None:
        with tempfile.TemporaryFile() as unnamed:
            unnamed.write(self.photo.read_bytes())
            unnamed.flush()
            for file in ({"fd": unnamed.fileno()}, {"fd": unnamed.fileno(), "pid": os.getpid()}):
                self.assertEqual(self.process(file)["result"]["width"], 640)
        memory = os.memfd_create("picture")
        with open(memory, "wb") as content:
            content.write(self.photo.read_bytes())
            content.flush()
            self.assertEqual(self.process({"fd": memory})["result"]["format"], "jpeg")
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, write)
        for file in ({"fd": read}, {"fd": 9999}, {"fd": 0, "pid": 1 << 30}):
            self.assertEqual(self.kind(self.process(file)), "io", file)

    def test_a_file_that_is_replaced_or_grows_is_read_as_one_version_or_refused(self) -> None:
        small, large = picture(self.spool / "a.png", (320, 240)), picture(self.spool / "b.png", (1600, 1200))
        contents, target = [small.read_bytes(), large.read_bytes()], self.spool / "changing.png"
        target.write_bytes(contents[0])
        stop = threading.Event()

        def change() -> None:
            turn = 0
            while not stop.is_set():
                turn += 1
                content = contents[turn % 2]
                if turn % 3 == 0:  # Replaced.
                    (self.spool / "new").write_bytes(content)
                    (self.spool / "new").rename(target)
                elif turn % 3 == 1:  # Written anew in place, piece by piece.
                    with open(target, "r+b", buffering=0) as file:
                        for start in range(0, len(content), 4096):
                            file.write(content[start : start + 4096])
                else:
                    os.truncate(target, len(content) // 2)

        thread = threading.Thread(target=change)
        thread.start()
        try:
            seen = {self.outcome(target) for _ in range(300)}
        finally:
            stop.set()
            thread.join()
        self.assertLessEqual(seen, {"(320, 240)", "(1600, 1200)", "changed", "corrupt", "io", "notAnImage"})
        self.assertIn("changed", seen)

    def outcome(self, target: Path) -> str:
        answer = self.process({"path": str(target)}, validate="decode", outputs={"a": {"transform": {"width": 16}, "deliver": "data"}})
        if "error" in answer:
            return "changed" if answer["error"]["data"]["retryable"] else self.kind(answer)
        return str((answer["result"]["width"], answer["result"]["height"]))


class Facts(Process):
    def test_facts_alone_need_no_pixel(self) -> None:
        """The answer about a file that is cut is the one of `load`. A bitmap is decoded when it is opened."""
        file = picture(self.spool / "cut.bmp")
        os.truncate(file, file.stat().st_size // 2)
        told = self.process({"path": str(file)}, facts=["container"])
        self.assertEqual(told.get("result", {}).get("container", {}).get("bitDepth"), 8, told)
        url = "data:image/bmp;base64," + base64.b64encode(file.read_bytes()).decode()
        loaded = self.worker.call("load", url=url, facts=["container"])
        self.assertEqual(loaded["result"]["container"], told["result"]["container"])
        self.assertEqual(self.kind(self.process({"path": str(file)}, facts=["container"], outputs=self.outputs("a"))), "corrupt")


class Outputs(Process):
    def test_all_or_none(self) -> None:
        names = ("a", "b", "c")
        bad = {
            "a crop outside": {"transform": {"crop": {"x": 9999, "y": 0, "width": 5, "height": 5}}},
            "too many bytes": {"maxBytes": 10},
            "a folder": {"saveTo": str(self.media)},
            "no folder": {"saveTo": str(self.media / "missing" / "d")},
            "a file as folder": {"saveTo": str(self.photo / "d")},
        }
        (self.media / "b").write_bytes(b"before")
        for what, output in bad.items():
            for place in (0, 3):
                items = list(self.outputs(*names).items())
                items.insert(place, ("bad", output))
                with self.subTest(what, place=place):
                    answer = self.process({"path": str(self.photo)}, outputs=dict(items))
                    self.assertEqual(answer["error"]["data"].get("output"), "bad", answer)
                    self.assertEqual({path.name: path.read_bytes() for path in self.media.iterdir()}, {"b": b"before"})
        answer = self.process({"path": str(self.photo)}, outputs=self.outputs(*names, mode="604"))
        self.assertEqual(set(answer["result"]["outputs"]), set(names))
        for index, name in enumerate(names):
            with Image.open(self.media / name) as made:
                self.assertEqual(made.width, 40 * (index + 1))
            self.assertEqual((self.media / name).stat().st_mode & 0o777, 0o604)

    def test_two_outputs_of_one_file_are_refused(self) -> None:
        (self.folder / "link").symlink_to(self.media)
        (self.media / "alias").symlink_to("a")
        (self.media / "a").write_bytes(b"before")
        for other in (f"{self.media}/./a", f"{self.media}//a", f"{self.media}/../media/a", str(self.folder / "link" / "a"), str(self.media / "alias")):
            outputs = {"one": {"saveTo": str(self.media / "a")}, "two": {"saveTo": other}}
            answer = self.process({"path": str(self.photo)}, outputs=outputs)
            self.assertEqual((self.kind(answer), answer["error"]["data"]["output"]), ("io", "two"), other)
            self.assertEqual((self.media / "a").read_bytes(), b"before")

    def test_names_are_bytes(self) -> None:
        names = ["\u00e9", "e\u0301", 'a "quoted"\nname', "../x", "__proto__"]
        answer = self.process({"path": str(self.photo)}, outputs={name: {"transform": {"width": 9}} for name in names})
        self.assertEqual(list(answer["result"]["outputs"]), names)

    def test_animations_and_stills_in_one_set(self) -> None:
        frames = [Image.new("RGB", (40, 30), color) for color in ("red", "green", "blue")]
        for kind in ("png", "gif", "webp"):
            file = self.spool / f"animated.{kind}"
            frames[0].save(file, save_all=True, append_images=frames[1:], duration=100)
            outputs: dict[str, Any] = {
                "all": {"transform": {"frames": "all", "format": "webp"}},
                "first": {"transform": {"format": "png"}},
                "small": {"transform": {"width": 12, "format": "jpeg"}},
                "gif": {"transform": {"frames": "all", "format": "gif", "width": 20}},
            }
            with self.subTest(kind):
                facts = {"facts": ["perceptualHash"], "placeholder": True, "validate": "decode"}
                together = self.process({"path": str(file)}, outputs=outputs, **facts)["result"]
                alone = self.process({"path": str(file)}, **facts)["result"]
                self.assertEqual(together["perceptualHash"], alone["perceptualHash"])
                self.assertEqual(together["placeholder"], alone["placeholder"])
                sizes = {name: (made["width"], made["height"], made.get("frames", 1)) for name, made in together["outputs"].items()}
                self.assertEqual(sizes, {"all": (40, 30, 3), "first": (40, 30, 1), "small": (12, 9, 1), "gif": (20, 15, 3)})
                with Image.open(together["outputs"]["first"]["path"]) as first:
                    red, green, blue = first.convert("RGB").getpixel((20, 15))  # type: ignore[misc]
                    self.assertTrue(red > 250 and green < 5 and blue < 5)
                with Image.open(together["outputs"]["gif"]["path"]) as made:
                    self.assertEqual(made.n_frames, 3)  # type: ignore[attr-defined]

    def test_a_request_that_is_cancelled_writes_nothing(self) -> None:
        lines = []
        for number in range(200):
            outputs = {name: {"transform": {"width": 30}, "saveTo": str(self.media / f"{number}-{name}")} for name in "abcd"}
            lines.append({"id": number, "method": "process", "params": {"file": {"path": str(self.photo)}, "outputs": outputs}})
            lines += [{"id": f"c{number}-{late}", "method": "cancel", "params": {"id": late}} for late in (number - 9,) if late >= 0]
        command = [default_worker(), "--cache-dir", str(self.folder / "other")]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        answers = [json.loads(line) for line in subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.splitlines()]
        self.assertEqual(len(answers), len(lines))
        for answer in answers:
            if isinstance(answer["id"], int):
                made = sum((self.media / f"{answer['id']}-{name}").exists() for name in "abcd")
                self.assertEqual(made, 0 if "error" in answer else 4, answer)

    def test_waiting_files_are_not_read_and_count_as_queued(self) -> None:
        lines = [{"id": number, "method": "process", "params": {"file": {"path": str(self.photo)}, "validate": "decode"}} for number in range(100)]
        lines.append({"id": 100, "method": "stats", "params": {}})
        command = [default_worker(), "--cache-dir", str(self.folder / "other"), "--decoders", "1", "--max-queued", "5"]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        answers = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.splitlines()
        kinds = [self.kind(json.loads(answer)) for answer in answers]
        self.assertGreater(kinds.count("overloaded"), 0)
        self.assertEqual(kinds.count("overloaded") + kinds.count("None"), 101)
        (stats,) = (answer["result"] for answer in map(json.loads, answers) if answer["id"] == 100)
        self.assertIn(stats["queue"]["waiting"]["normal"], range(1, 6))

    def test_a_worker_that_ends_leaves_no_copy_of_a_waiting_file(self) -> None:
        temporary = self.folder / "temporary"
        temporary.mkdir()
        large = picture(self.spool / "large.bmp", (4000, 2500))
        command = [default_worker(), "--memory-limit", "0", "--disk-limit", "0", "--decoders", "1"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=os.environ | {"TMPDIR": str(temporary)}
        ) as worker:  # fmt: skip
            assert worker.stdin
            for number in range(8):
                params = {"file": {"path": str(large)}, "outputs": {"small": {"transform": {"width": 300}, "deliver": "data"}}}
                print(json.dumps({"id": number, "method": "process", "params": params}), file=worker.stdin, flush=True)
            end = time.monotonic() + PATIENCE
            while not any(path.stat().st_size == large.stat().st_size for path in temporary.rglob("*.bmp")):
                self.assertLess(time.monotonic(), end, "no file waits")
            print(json.dumps({"id": "end", "method": "shutdown", "params": {"mode": "cancel"}}), file=worker.stdin, flush=True)
        self.assertEqual(worker.returncode, 0)
        self.assertEqual([path for path in temporary.rglob("*") if path.is_file()], [])

    def test_a_file_system_that_does_not_answer_holds_nothing_else_up(self) -> None:
        content = base64.b64encode(self.photo.read_bytes()).decode()
        with SilentDisk(self.folder / "silent") as disk:
            silent = {"file": {"path": str(disk.path / "photo.jpg")}, "deadlineMs": 300}
            for method, more in (("process", {"validate": "decode"}), ("load", {"transform": {"width": 64}}), ("process", {"facts": ["exif"]})):
                answer = self.worker.call(method, **silent, **more)
                self.assertEqual(self.kind(answer), "timeout", answer)
            for params in ({"data": content}, {"file": {"path": str(self.photo)}}):
                answer = self.worker.call("process", validate="decode", deadlineMs=20_000, **params)
                self.assertEqual(answer["result"]["width"], 640)
            stored = self.worker.call("store", key="kept", data=content)["result"]["path"]
            self.assertEqual(Path(stored).read_bytes(), self.photo.read_bytes())
            kept = self.worker.call("load", file={"path": str(self.photo)}, transform={"width": 64}, deadlineMs=20_000)
            self.assertEqual(kept["result"]["width"], 64)

    def test_data_and_paths_are_the_files(self) -> None:
        kinds = {"data": {"deliver": "data"}, "path": {}, "both": {"deliver": "data", "saveTo": str(self.media / "both")}}
        made = self.process({"path": str(self.photo)}, outputs=kinds)["result"]["outputs"]
        contents = {base64.b64decode(made["data"]["data"]), Path(made["path"]["path"]).read_bytes(), (self.media / "both").read_bytes()}
        self.assertEqual(len(contents), 1)
        self.assertEqual({output["bytes"] for output in made.values()}, {len(contents.pop())})

    def test_nothing_is_left_and_nothing_is_stored(self) -> None:
        before = self.worker.call("stats")["result"]
        for _ in range(50):
            self.process({"path": str(self.photo)}, outputs=self.outputs("a", "b"), facts=["digest"], placeholder=True)
            self.process({"path": str(self.photo)}, outputs=self.outputs("a", "b"), want={"minWidth": 9999})
        after = self.worker.call("stats")["result"]
        for tier in ("memory", "disk"):
            self.assertEqual(after[tier]["entries"], before[tier]["entries"])
        self.assertEqual({path.name for path in self.media.iterdir()}, {"a", "b"})
        self.assertEqual({path.name for path in self.spool.iterdir()}, {"photo.jpg"})

    def test_a_cancelled_request_leaves_nothing(self) -> None:
        heavy = picture(self.spool / "heavy.png", (2400, 1800))
        params = {"file": {"path": str(heavy)}, "group": "upload", "outputs": self.outputs("a", "b")}
        requests = [{"id": number, "method": "process", "params": params} for number in range(20)]
        requests.append({"id": 20, "method": "cancel", "params": {"group": "upload"}})
        command = [default_worker(), "--cache-dir", str(self.folder / "other")]
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        answers = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
        kinds = [self.kind(json.loads(answer)) for answer in answers]
        self.assertEqual((kinds.count("cancelled"), len(kinds)), (20, 21))
        self.assertLessEqual({path.name for path in self.media.iterdir()}, {"a", "b"})


class Uploads(unittest.TestCase):
    def test_uploads_of_many_times_the_disk_limit_are_all_accepted(self) -> None:
        count = int(os.environ.get("UPLOADS", "300"))
        with contextlib.ExitStack() as exits:
            folder = Path(exits.enter_context(tempfile.TemporaryDirectory())).resolve()
            limited = BlockingImageWorker(cache_dir=folder / "cache", disk_limit=50 << 20, files=folder, binary=default_worker())
            worker = exits.enter_context(limited)
            content = picture(folder / "original.jpg", (1600, 1200), quality=90).read_bytes()

            def upload(number: int) -> None:
                path, large = folder / f"{number}.jpg", folder / f"{number}-large.jpg"
                path.write_bytes(content + number.to_bytes(8, "big"))  # Each has a digest of its own.
                made = worker.process(
                    path.name,
                    root=folder,
                    validate="decode",
                    facts=["digest"],
                    outputs={
                        "large": {"transform": {"width": 1024}, "save_to": large},
                        "thumb": {"transform": {"width": 320}},
                        "tiny": {"transform": {"width": 32}, "deliver": "data"},
                    },
                )
                assert made.outputs and made.outputs["thumb"].path
                with Image.open(large) as first, Image.open(made.outputs["thumb"].path) as second:
                    self.assertEqual((first.size, second.size), ((1024, 768), (320, 240)))
                path.unlink()
                large.unlink()

            started = time.monotonic()
            with ThreadPoolExecutor(8) as pool:
                for _ in pool.map(upload, range(count)):
                    pass
            print(f"{count} uploads of {len(content):,} bytes in {time.monotonic() - started:.0f} s", file=sys.stderr)
            self.assertLessEqual(worker.stats().disk.byte_count, 50 << 20)


class Stripped(Process):
    secret = b"SECRET"

    def files(self) -> dict[str, bytes]:
        """Images with metadata of every kind, and what is not theirs after the end."""
        exif = Image.Exif()
        exif[0x0112], exif[0x010F] = 6, "SECRET"
        exif.get_ifd(0x8825).update({1: "N", 2: (1.0, 2.0, 3.0)})
        text = PngImagePlugin.PngInfo()
        text.add_text("Comment", "SECRET")
        text.add_itxt("XML:com.adobe.xmp", "<x>SECRET</x>")
        kinds: dict[str, dict[str, Any]] = {
            "jpeg": {"quality": 90, "comment": self.secret},
            "jpeg, progressive": {"progressive": True},
            "png": {"pnginfo": text},
            "webp": {"xmp": b"<x>SECRET</x>"},
            "webp, lossless": {"lossless": True},
            "webp, animated": {"save_all": True, "append_images": [self.picture.rotate(90), self.picture.rotate(180)]},
        }
        files = {}
        for kind, options in kinds.items():
            file = io.BytesIO()
            profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
            self.picture.save(file, kind.split(",")[0], exif=exif, icc_profile=profile, **options)
            files[kind] = file.getvalue() + self.secret
        return files

    def test_nothing_but_metadata_is_left_out(self) -> None:
        with Image.open(self.photo) as photo:
            self.picture = photo.resize((96, 72))
        for kind, file in self.files().items():
            with self.subTest(kind):
                outputs = {"kept": {"strip": True, "deliver": "data"}, "small": {"transform": {"width": 40}}}
                answer = self.worker.call("process", data=base64.b64encode(file).decode(), outputs=outputs)
                kept = answer["result"]["outputs"]["kept"]
                self.assertEqual((kept["orientation"], kept["upright"]), (6, {"width": 72, "height": 96}))
                stripped = base64.b64decode(kept["data"])
                self.assertEqual(len(stripped), kept["bytes"])
                self.assertNotIn(self.secret, stripped)
                with Image.open(io.BytesIO(stripped)) as new, Image.open(io.BytesIO(file)) as old:
                    self.assertEqual(dict(new.getexif()), {0x0112: 6})
                    self.assertEqual(new.info.get("icc_profile"), old.info["icc_profile"])
                    self.assertEqual(getattr(new, "n_frames", 1), getattr(old, "n_frames", 1))
                    self.assertTrue(numpy.array_equal(numpy.asarray(new), numpy.asarray(old)))

    def test_what_cannot_be_stripped(self) -> None:
        gif = self.photo.with_suffix(".gif")
        with Image.open(self.photo) as photo:
            photo.save(gif)
        answer = self.process({"path": str(gif)}, outputs={"kept": {"strip": True}})
        self.assertEqual((self.kind(answer), answer["error"]["data"]["output"]), ("unsupportedFormat", "kept"))
        self.photo.write_bytes(self.photo.read_bytes()[:-500])
        self.assertEqual(self.kind(self.process({"path": str(self.photo)}, outputs={"kept": {"strip": True}})), "corrupt")


class Permitted(Process):
    options = ("--files", "SPOOL")

    def test_files_must_be_below_the_folder(self) -> None:
        outside = picture(self.folder / "outside.png")
        (self.spool / "link").symlink_to(outside)
        (self.spool / "inner").mkdir()
        inner = picture(self.spool / "inner" / "a.png")
        refused: list[dict[str, Any]] = [
            {"path": str(outside)}, {"path": str(self.spool / "link")}, {"path": f"{self.spool}/../outside.png"},
            {"root": str(self.folder), "path": "outside.png"}, {"root": str(self.spool / "inner"), "path": "../photo.jpg"},
            {"path": f"{self.spool}x"}, {"fd": 0, "pid": 1},
        ]  # fmt: skip
        for file in refused:
            with self.subTest(file):
                answer = self.process(file)
                self.assertEqual((self.kind(answer), answer["error"]["data"].get("member")), ("invalidParams", "file"), answer)
        answer = self.worker.call("store", key="a", path=str(outside))
        self.assertEqual(self.kind(answer), "invalidParams")
        for file in ({"path": str(inner)}, {"path": f"{self.spool}//./inner/a.png"}, {"root": str(self.spool), "path": "inner/a.png"}, {"root": str(self.spool / "inner"), "path": "a.png"}):
            self.assertEqual(self.process(file)["result"]["format"], "png")
        self.assertEqual(self.worker.call("store", key="a", path=str(inner))["result"]["format"], "png")
        with open(outside, "rb") as given:
            self.assertEqual(self.process({"fd": given.fileno()})["result"]["format"], "png")


if __name__ == "__main__":
    unittest.main()
