"""examples/uploads/active_storage_pictures.rb in a Rails application, if its packages are installed, with Puma and Sidekiq.

    apt-get install --no-install-recommends ruby-rails ruby-sqlite3 puma ruby-sidekiq redis-server libvips-tools
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import unittest
import urllib.error
import urllib.request
import zlib
from pathlib import Path
from typing import Any, Optional
from urllib.parse import urlencode

import bomb_files
from origin_process import PATIENCE
from package import ROOT
from processes import descendants
from test_uploads import EXAMPLES, Uploads, needs

try:
    from PIL import Image

    from upload_pictures import PDF, Server, jpeg, png
except ModuleNotFoundError:
    pass

SITE = Path(__file__).parent / "clients" / "active_storage_site.rb"


def has_gems(*names: str) -> bool:
    if shutil.which("ruby") is None:
        return False
    code = "ARGV.each { |name| Gem::Specification.find_by_name(name) }"
    return subprocess.run(["ruby", "-e", code, *names], stderr=subprocess.DEVNULL).returncode == 0


def animation() -> bytes:
    file = io.BytesIO()
    frames = [Image.new("RGB", (120, 90), (shade, 0, 255 - shade)) for shade in (0, 120, 250)]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=100, loop=0)
    return file.getvalue()


@needs()
@unittest.skipUnless(has_gems("rails", "sqlite3", "puma"), "not all of Rails, sqlite3 and Puma are installed for Ruby")
class ActiveStorage(Uploads):
    def setUp(self) -> None:
        super().setUp()
        for folder in ("config/initializers", "lib", "storage", "tmp/pids"):
            (self.folder / folder).mkdir(parents=True)
        readme = (EXAMPLES / "README.md").read_text()
        self.initializer = self.folder / "config" / "initializers" / "pictures.rb"
        self.initializer.write_text(re.findall(r"(?s)```ruby\n(# config/initializers/pictures\.rb.*?)```", readme)[0])
        for program in (EXAMPLES / "active_storage_pictures.rb", ROOT / "examples" / "ruby" / "imageworker.rb"):
            shutil.copy(program, self.folder / "lib")
        (self.folder / "config.ru").write_text(f'require "{SITE}"\nrun Rails.application\n')
        self.own = {**os.environ, "SITE": str(self.folder), "RAILS_ENV": "production", "TMPDIR": str(self.folder / "tmp")}

    def log(self, last: Optional[int] = 4000) -> str:
        return (self.folder / "site.log").read_text(errors="replace")[-last if last else None :]

    def set_worker(self, options: str) -> None:
        text = self.initializer.read_text()
        self.assertIn("deadline_ms: 60_000, decoders: 1", text)
        self.initializer.write_text(text.replace("deadline_ms: 60_000, decoders: 1", options))

    def puma(self, *options: str, **environment: str) -> Server:
        command = ["puma", "--no-config", "-b", "tcp://127.0.0.1:0", *options, "config.ru"]
        return self.exits.enter_context(Server(command, self.folder, {**self.own, **environment}))

    def upload(self, server: Server, content: bytes, variants: Any = None, status: int = 200, **query: str) -> Any:
        """If variants are given, the answer has their errors."""
        if variants is not None:
            query = {"variants": json.dumps(variants), **({"explain": "1"} if status == 200 else {}), **query}
        got, answer, _ = server.post_form("/pictures?" + urlencode(query), content)
        self.assertEqual(got, status, (answer, self.log()))
        return answer

    def got(self, server: Server, link: str) -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(server.url + link, timeout=PATIENCE) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, b""

    def check_file(self, made: Any, kind: str, size: tuple[int, int], frames: int = 1, mode: Optional[str] = None) -> None:
        with Image.open(made.get("path") or self.fail(made)) as picture:
            self.assertEqual((picture.format, picture.size, getattr(picture, "n_frames", 1)), (kind, size, frames))
            self.assertEqual((dict(picture.getexif()), picture.info.get("xmp")), ({}, None))
            self.assertEqual(mode or picture.mode, picture.mode)
        self.assertEqual(made["type"], f"image/{kind.lower()}")

    def await_children_of_ended(self, server: Server) -> None:
        pids = descendants(server.process.pid)
        self.assertNotEqual(pids, [])
        server.end()
        self.await_end(pids)
        self.assertEqual([name for name in self.files(self.folder / "tmp") if "pids" not in name], [])

    def test_variants(self) -> None:
        with self.puma() as server:
            turned = jpeg(1600, 1200, 6)
            answer = self.upload(server, turned, {name: variation for name, variation, *_ in TURNED})
            self.assertEqual((answer["width"], answer["height"], answer["analyzed"]), (1200, 1600, True))
            for name, variation, *expected in TURNED:
                with self.subTest(name, variation=variation):
                    self.check_file(answer["variants"][name], *expected)
            with Image.open(answer["variants"]["gray"]["path"]) as picture:
                red, _, blue = picture.convert("RGB").split()
                self.assertEqual(red.tobytes(), blue.tobytes())
            sizes = {name: Path(answer["variants"][name]["path"]).stat().st_size for name in ("fine", "coarse")}
            self.assertLess(sizes["coarse"] * 2, sizes["fine"])
            ends = [Path(answer["variants"][name]["path"]).read_bytes() for name in ("north", "south")]
            self.assertNotEqual(*ends)
            status, content = self.got(server, answer["link"])
            with Image.open(io.BytesIO(content)) as picture:
                self.assertEqual((status, picture.format, picture.size), (200, "PNG", (38, 50)))

            clear = self.upload(server, png(), {"as it is": {"resize_to_limit": [100, 100]}, "flat": {"format": "jpg", "background": "#ff0000"}})
            self.assertEqual((clear["width"], clear["height"], clear["type"]), (400, 300, "image/png"))
            self.check_file(clear["variants"]["as it is"], "PNG", (100, 75), mode="RGBA")
            self.check_file(clear["variants"]["flat"], "JPEG", (400, 300))
            with Image.open(clear["variants"]["flat"]["path"]) as picture:
                pixel: Any = picture.getpixel((200, 2))  # Of a part that is clear.
                self.assertTrue(pixel[0] > 240 and pixel[1] < 20, pixel)

            both = {"resize_to_limit": [60, 60], "loader": {"page": None}}
            moving = self.upload(server, animation(), {"first": {"resize_to_limit": [60, 60]}, "gif": both, "webp": {**both, "format": "webp"}})
            self.assertEqual((moving["width"], moving["height"], moving["type"]), (120, 90, "image/gif"))
            self.check_file(moving["variants"]["first"], "GIF", (60, 45))
            self.check_file(moving["variants"]["gif"], "GIF", (60, 45), frames=3)
            self.check_file(moving["variants"]["webp"], "WEBP", (60, 45), frames=3)
            avif = Path(answer["variants"]["avif"]["path"]).read_bytes()
            again = self.upload(server, avif, {"a": {"resize_to_limit": [60, 60], "format": "png"}})
            self.assertEqual((again["width"], again["height"], again["type"]), (240, 320, "image/avif"))
            self.check_file(again["variants"]["a"], "PNG", (45, 60))
            self.await_children_of_ended(server)

    def test_what_is_not_the_worker_s_is_refused(self) -> None:
        with self.puma() as server:
            answer = self.upload(server, jpeg(), {str(number): variation for number, (variation, _) in enumerate(REFUSED)})
            for number, (variation, words) in enumerate(REFUSED):
                with self.subTest(variation=variation):
                    made = answer["variants"][str(number)]
                    self.assertEqual(made.get("error"), "ActiveStoragePictures::Unsupported", made)
                    self.assertIn(words, made["message"])
            self.assertEqual(answer["width"], 1600)
            self.upload(server, jpeg(), {"a": {"trim": True}}, status=500)
            self.upload(server, jpeg(), {"a": {"quality": 101}}, status=500)
            self.await_children_of_ended(server)

    def test_a_picture_that_does_not_fit_the_variant_is_refused(self) -> None:
        with self.puma() as server:
            for content, variation, words in (
                (jpeg(), {"crop": [5000, 0, 10, 10]}, "the crop must overlap the image, which has 1600 x 1200 pixels"),
                (png(8000, 3, "RGB"), {"resize_to_fit": [None, 3000]}, "8000000 x 3000 is more than 100000000 pixels"),
            ):
                made = self.upload(server, content, {"a": variation})["variants"]["a"]
                self.assertEqual(made, {"error": "ActiveStoragePictures::Refused", "message": words})
                self.upload(server, content, {"a": variation}, status=422)

    @unittest.skipIf(shutil.which("vips") is None, "vips is not installed")
    def test_a_photo_of_a_phone(self) -> None:
        (self.folder / "a.png").write_bytes(png(300, 200, "RGB"))
        made = subprocess.run(["vips", "copy", "a.png", "a.heic"], cwd=self.folder, capture_output=True)
        if made.returncode != 0:
            self.skipTest("the libvips of this machine writes no HEIC")
        with self.puma() as server:
            answer = self.upload(server, (self.folder / "a.heic").read_bytes(), {"a": {"resize_to_limit": [150, 150], "format": "jpg"}})
            self.assertEqual((answer["width"], answer["height"], answer["type"]), (300, 200, "image/heic"))
            self.check_file(answer["variants"]["a"], "JPEG", (150, 100))

    def test_a_hostile_picture_is_an_error_of_its_own_request(self) -> None:
        whole = jpeg()
        with self.puma() as server:
            for content, width, words in (
                (whole[: len(whole) // 3], 1600, ""),
                (bomb_files.png(60_000, zlib.compress(bytes(100_000))), 60_000, "pixels"),
                (PDF, None, "a PDF"),
                (b"hello, world", None, "not an image"),
                (b"", None, "not an image"),
                (b'push graphic-context\nimage over 0,0 0,0 "https://127.0.0.1/a"\n', None, "not an image"),
            ):
                with self.subTest(content[:10]):
                    # As if Rails had believed the name of the file.
                    asked = {"a": {"resize_to_limit": [50, 50], "format": "png"}}
                    answer = self.upload(server, content, asked, type="image/png")
                    self.assertEqual((answer.get("width"), answer["analyzed"]), (width, True))
                    self.assertEqual(answer["variants"]["a"]["error"], "ActiveStoragePictures::Refused")
                    self.assertIn(words, answer["variants"]["a"]["message"])
                    self.upload(server, content, asked, status=422, type="image/png")
                    self.assertEqual(self.got(server, answer["link"])[0], 422)
            self.assertEqual([name for name in self.files(self.folder / "tmp") if name.startswith("variant")], [])
            self.upload(server, PDF, {}, type="application/pdf")  # Rails itself knows that it has no variants.
            self.check_file(self.upload(server, jpeg(), {"a": {"resize_to_fit": [50, 50]}})["variants"]["a"], "JPEG", (50, 38))
            self.await_children_of_ended(server)

    def check_cluster(self, *options: str, **environment: str) -> None:
        """Uploads before and after the death of a worker and of a process of Puma, and after a restart."""
        turned = jpeg(1600, 1200, 6)
        with self.puma("-w", "2", "-t", "8:8", *options, **environment) as server:

            def uploads() -> set[tuple[int, int]]:
                answers = self.at_once(16, lambda: self.upload(server, turned, {"a": {"resize_to_fill": [320, 320]}, "b": {"rotate": 90}}))
                for answer in answers:
                    self.assertEqual((answer["width"], answer["height"]), (1200, 1600))
                    self.check_file(answer["variants"]["a"], "JPEG", (320, 320))
                    self.assertEqual(answer["variants"]["b"]["error"], "ActiveStoragePictures::Unsupported")
                pairs = {(answer["process"], answer["worker"]) for answer in answers}
                self.assertEqual(len({process for process, _ in pairs}), len(pairs))  # A worker for each process,
                self.assertEqual(len({worker for _, worker in pairs}), len(pairs))  # and none for two.
                return pairs

            pairs = uploads()
            if environment.get("USED"):
                used = int(server.awaited(r"used: (\d+)"))
                self.assertNotIn(used, [worker for _, worker in pairs])
            process, worker = next(iter(pairs))
            os.kill(worker, signal.SIGKILL)
            self.await_end([worker])
            uploads()
            process, worker = next(iter(uploads()))
            os.kill(process, signal.SIGKILL)
            self.await_end([process, worker])
            self.check_file(self.upload(server, turned, {"a": {"resize_to_limit": [90, 90]}})["variants"]["a"], "JPEG", (68, 90))
            self.await_children_of_ended(server)

    def test_a_cluster_of_puma(self) -> None:
        self.check_cluster()

    def test_a_cluster_of_puma_that_forks_a_process_with_a_worker(self) -> None:
        (self.folder / "used.jpg").write_bytes(jpeg())
        self.check_cluster("--preload", USED=str(self.folder / "used.jpg"))

    def test_a_process_of_puma_that_forks_the_others(self) -> None:
        turned = jpeg(1600, 1200, 6)
        with self.puma("-w", "3", "-t", "4:4", "--fork-worker=0") as server:

            def workers() -> set[int]:
                answers = self.at_once(12, lambda: self.upload(server, turned, {"a": {"resize_to_limit": [90, 90]}}))
                return {answer["worker"] for answer in answers}

            booted = r"((?s:(Worker \d \(PID: \d+\) booted.*?){%d}))"
            server.awaited(booted % 3)
            before = workers()
            server.log = ""
            server.process.send_signal(signal.SIGURG)  # The others are forked again, from the first, which has a worker.
            server.awaited(booted % 2)
            self.assertTrue(workers() - before)
            self.await_children_of_ended(server)

    def test_a_worker_that_is_killed_again_and_again(self) -> None:
        with self.puma("-t", "16:16", JOBS="async") as server:  # The adapter "inline" cannot repeat an analysis.
            worker = self.upload(server, jpeg(), {"a": {"resize_to_limit": [90, 90]}})["worker"]
            killed = []

            def kill(number: int) -> None:
                for pid in descendants(server.process.pid):
                    if number % 4 == 3 and Path(f"/proc/{pid}/comm").exists() and Path(f"/proc/{pid}/comm").read_text() == "imageworker\n":
                        os.kill(pid, signal.SIGKILL)
                        killed.append(pid)

            numbers = iter(range(12))

            def one() -> Any:
                kill(next(numbers))
                query = urlencode({"variants": json.dumps({"a": {"resize_to_limit": [90, 90]}})})
                return server.post_form("/pictures?" + query, jpeg())

            answers = self.at_once(12, one)
            self.assertLessEqual({status for status, _, _ in answers}, {200, 503}, self.log())
            self.assertIn(worker, killed)
            self.upload(server, jpeg(), {"a": {"resize_to_limit": [90, 90]}})
            self.await_children_of_ended(server)

    def test_a_busy_worker_is_asked_again_and_then_told(self) -> None:
        self.set_worker("decoders: 1, max_queued: 1")
        with self.puma("-t", "16:16") as server:
            query = "/pictures?" + urlencode({"variants": json.dumps({"a": {"resize_to_limit": [90, 90]}})})
            answers = self.at_once(16, lambda: server.post_form(query, jpeg(3000, 2000)))
            self.assertLessEqual({status for status, _, _ in answers}, {200, 503}, self.log())
            self.assertIn(200, {status for status, _, _ in answers})
            self.upload(server, jpeg(), {"a": {"resize_to_limit": [90, 90]}})

    def test_a_picture_is_analyzed_later_if_the_worker_is_busy(self) -> None:
        (self.initializer.parent / "worker.rb").write_text(BUSY)
        with self.puma(JOBS="async") as server:
            self.upload(server, jpeg(), {"a": {"resize_to_limit": [90, 90]}}, status=503)
            self.until(lambda: re.search(r"Retrying ActiveStorage::AnalyzeJob .*due to a ActiveStoragePictures::Busy", self.log(None)))

    def test_what_may_succeed_later_is_tried_again(self) -> None:
        (self.folder / "again.rb").write_text(AGAIN)
        later = [{"kind": "overloaded", "retryAfterMs": 1}, {"kind": "workerExited", "retryable": True, "retryAfterMs": 1}]
        slow = {"kind": "decodeTimeout", "retryable": True, "retryAfterMs": 1}
        cases: list[tuple[list[Any], str, int]] = [
            ([None], "ok", 0),
            ([*later, None], "ok", 0),
            ([slow, None], "ok", 0),
            ([*later, slow, None], "ActiveStoragePictures::Busy", 1),
            ([{"kind": "overloaded", "retryAfterMs": 60_000}, None], "ActiveStoragePictures::Busy", 1),
            ([{"kind": "timeout", "phase": "deadline"}, None], "ActiveStoragePictures::Busy", 1),
            ([{"kind": "cancelled"}, None], "ActiveStoragePictures::Busy", 1),
            ([{"kind": "decodeTimeout"}, None], "ActiveStoragePictures::Refused", 1),
            ([{"kind": "decoderCrashed"}, None], "ActiveStoragePictures::Refused", 1),
            ([{"kind": "tooLarge", "limit": 5}, None], "ActiveStoragePictures::Refused", 1),
            ([{"kind": "unsupportedFormat", "output": "variant"}, None], "ActiveStoragePictures::Unsupported", 1),
            ([{"kind": "unsupportedFormat"}, None], "ActiveStoragePictures::Refused", 1),
            ([{"kind": "tooManyPixels", "output": "variant"}, None], "ActiveStoragePictures::Refused", 1),
            ([{"kind": "invalidParams", "output": "variant"}, None], "ActiveStoragePictures::Refused", 1),
            ([{"kind": "invalidParams"}, None], "ActiveStoragePictures::Unsupported", 1),
            ([{"kind": "io", "output": "variant"}, None], "ImageWorker::CacheError", 1),
            ([{"kind": "diskFull"}, None], "ImageWorker::CacheError", 1),
            ([{"kind": "internal"}, None], "ImageWorker::InternalError", 1),
            ([{"kind": "shuttingDown"}, None], "ImageWorker::LifecycleError", 1),
        ]
        asked = json.dumps([answers for answers, _, _ in cases])
        run = subprocess.run(["ruby", "again.rb", asked], cwd=self.folder, env=self.own, capture_output=True, timeout=PATIENCE)
        self.assertEqual(run.returncode, 0, run.stderr)
        for (answers, outcome, left), got in zip(cases, json.loads(run.stdout), strict=True):
            self.assertEqual(got, [outcome, left], answers)

    def test_a_worker_that_is_missing_is_an_error_of_the_site(self) -> None:
        self.set_worker('binary: "/missing/imageworker"')
        with self.puma() as server:
            self.upload(server, jpeg(), {"a": {"resize_to_limit": [90, 90]}}, status=500)

    def test_a_worker_without_its_decoders_is_an_error_of_the_site(self) -> None:
        initializer = self.initializer.read_text()
        for count, decoders in enumerate(((), ("imageworker-codec",)), 1):
            self.initializer.write_text(initializer)
            self.set_worker(f'binary: "{self.worker_with(*decoders)}"')
            with self.puma() as server, self.subTest(decoders):
                self.upload(server, jpeg(), {"a": {"resize_to_limit": [90, 90]}}, status=500)
                self.until(lambda: self.log(None).count("WARN -- : imageworker: warning: there must be an executable file") == count)

    @unittest.skipUnless(has_gems("sidekiq") and shutil.which("redis-server"), "Sidekiq or redis-server is not installed")
    def test_jobs_of_sidekiq(self) -> None:
        path = self.folder / "redis.sock"
        redis = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(self.folder)], stdout=subprocess.DEVNULL
        )
        self.addCleanup(redis.wait, PATIENCE)
        self.addCleanup(redis.terminate)
        self.until(path.exists)
        address = {"JOBS": "sidekiq", "REDIS_URL": f"unix://{path}"}
        (self.folder / "jobs.rb").write_text(f'require "sidekiq"\nrequire "{SITE}"\n')
        with self.puma("-w", "2", **address) as server:
            for content in [jpeg(1600, 1200, 6), png()] * 6:
                self.assertIsNone(self.upload(server, content).get("analyzed"))  # Later.
            command = ["sidekiq", "-r", "./jobs.rb", "-c", "8", "-q", "default"]
            sidekiq = subprocess.Popen(command, cwd=self.folder, env={**self.own, **address}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                sizes: list[Any] = []

                def analyzed() -> bool:
                    with contextlib.closing(sqlite3.connect(self.folder / "site.sqlite3", PATIENCE)) as database:
                        rows = database.execute("SELECT metadata FROM active_storage_blobs ORDER BY id").fetchall()
                    sizes[:] = [json.loads(row) for (row,) in rows]
                    return all(each.get("analyzed") for each in sizes)

                self.until(analyzed)
                found = [(each["width"], each["height"]) for each in sizes]
                self.assertEqual(found, [(1200, 1600), (400, 300)] * 6)
                pids = descendants(sidekiq.pid)
                self.assertNotEqual(pids, [])
            finally:
                sidekiq.terminate()
                sidekiq.wait(PATIENCE)
            self.await_end(pids)


BUSY = """
error = ImageWorker::Error.of("code" => 0, "message" => "", "data" => { "kind" => "overloaded", "retryAfterMs" => 60_000 })
ActiveStoragePictures.worker = Object.new
ActiveStoragePictures.worker.define_singleton_method(:process) { |*, **| raise error }
"""

AGAIN = """
require "json"
require "./lib/active_storage_pictures"
Worker = Struct.new(:answers) do
  def process(_file)
    data = answers.shift
    raise ImageWorker::Error.of("code" => 0, "message" => "", "data" => data) if data
  end

  def call(*, **) = ImageWorker::InitializeResult.new(formats: ImageWorker::InitializeResult::NESTED[:formats].new(decode: ["jpeg"]))
end
outcomes = JSON.parse(ARGV[0]).map do |answers|
  ActiveStoragePictures.worker = Worker.new(answers)
  ActiveStoragePictures.process(nil)
  ["ok", answers.size]
rescue StandardError => error
  [error.class.name, answers.size]
end
puts outcomes.to_json
"""

# Of a JPEG that is shown as 1200 x 1600: name, variation, format, size.
TURNED: list[tuple[Any, ...]] = [
    ("nothing", {}, "JPEG", (1200, 1600)),
    ("limit", {"resize_to_limit": [320, 320]}, "JPEG", (240, 320)),
    ("limit of what is small", {"resize_to_limit": [9000, 9000]}, "JPEG", (1200, 1600)),
    ("one side", {"resize_to_limit": [600, None]}, "JPEG", (600, 800)),
    ("fit", {"resize_to_fit": [2400, 2400]}, "JPEG", (1800, 2400)),
    ("fill", {"resize_to_fill": [300, 100]}, "JPEG", (300, 100)),
    ("fill a square", {"resize_to_fill": [100, None]}, "JPEG", (100, 100)),
    ("all frames of a still", {"resize_to_limit": [320, 320], "loader": {"n": -1}}, "JPEG", (240, 320)),
    ("all pages of a still", {"resize_to_limit": [320, 320], "loader": {"page": None}, "format": "png"}, "PNG", (240, 320)),
    ("fill what is small", {"resize_to_fill": [1300, 200]}, "JPEG", (1300, 200)),
    ("north", {"resize_to_fill": [300, 100, {"gravity": "North"}]}, "JPEG", (300, 100)),
    ("south", {"resize_to_fill": [300, 100, {"gravity": "SouthWest"}]}, "JPEG", (300, 100)),
    ("attention", {"resize_to_fill": [300, 100, {"crop": "attention"}]}, "JPEG", (300, 100)),
    ("pad", {"resize_and_pad": [200, 200]}, "JPEG", (200, 200)),
    ("pad in colour", {"resize_and_pad": [200, 200, {"background": [255, 0, 0]}], "format": "png"}, "PNG", (200, 200)),
    ("pad in the colour of the variant", {"resize_and_pad": [200, 200], "background": "#00ff00", "format": "webp"}, "WEBP", (200, 200)),
    ("crop", {"crop": [100, 200, 300, 400]}, "JPEG", (300, 400)),
    ("crop and size", {"crop": "300x400+100+200", "resize_to_limit": [150, 150]}, "JPEG", (113, 150)),
    ("geometry", {"resize": "2400x2400"}, "JPEG", (1800, 2400)),
    ("geometry that is a limit", {"resize": "2400x2400>"}, "JPEG", (1200, 1600)),
    ("geometry with one side", {"resize": "x400"}, "JPEG", (300, 400)),
    ("webp", {"resize_to_limit": [320, 320], "format": "webp"}, "WEBP", (240, 320)),
    ("avif", {"resize_to_limit": [320, 320], "format": "avif"}, "AVIF", (240, 320)),
    ("upper case", {"resize_to_limit": [320, 320], "format": "PNG"}, "PNG", (240, 320)),
    ("fine", {"resize_to_limit": [320, 320], "saver": {"quality": 95, "strip": True}}, "JPEG", (240, 320)),
    ("coarse", {"resize_to_limit": [320, 320], "quality": 20, "strip": True, "auto_orient": True}, "JPEG", (240, 320)),
    ("gray", {"resize_to_limit": [320, 320], "colourspace": "b-w", "gaussblur": 2}, "JPEG", (240, 320)),
    ("as stored", {"resize_to_limit": [320, 320], "loader": {"auto_orient": False}}, "JPEG", (320, 240)),
    ("what is false", {"resize_to_limit": [320, 320], "monochrome": False, "rotate": ""}, "JPEG", (240, 320)),
]

REFUSED: list[tuple[Any, str]] = [
    ({"rotate": 90}, "rotate: a picture is turned only as its EXIF orientation says"),
    ({"monochrome": True}, "ImageWorker has no monochrome. A variant can have resize_to_limit"),
    ({"combine_options": {"resize": "100x100"}}, "ImageWorker has no combine_options"),
    ({"system": "touch /tmp/dangerous"}, "ImageWorker has no system"),
    ({"resize": "100x100^"}, "is for ImageMagick. Use resize_to_limit"),
    ({"resize": "-PaTh /tmp/file.erb"}, "is for ImageMagick"),
    ({"resize": "100x100\n-write /tmp/file.erb"}, "is for ImageMagick"),
    ({"resize_to_limit": [None, None]}, "resize_to_limit needs a width or a height"),
    ({"resize_to_limit": ["100", 100]}, "width must be an integer from 1 to 65535"),
    ({"resize_to_limit": [0, 100]}, "width must be an integer from 1 to 65535"),
    ({"resize_to_limit": [100, 100, 100]}, "resize_to_limit is [width, height] or [width, height, { ... }]"),
    ({"resize_to_limit": [100, 100, {}, 100]}, "resize_to_limit is [width, height] or [width, height, { ... }]"),
    ({"resize_and_pad": [100, None]}, "fit contain needs width and height"),
    ({"gaussblur": 2, "resize_to_limit": [100, 100]}, "gaussblur is done after the size: name it last"),
    ({"gaussblur": "0x2"}, "blur must be a number from 0.0 to 250.0"),
    ({"quality": 101}, "quality must be an integer from 1 to 100"),
    ({"background": ["a", 0, 0]}, 'background is "#rrggbb" or [red, green, blue]'),
    ({"crop": [1, 2, 3, 4, 5]}, "crop is [left, top, width, height]"),
    ({"resize_to_limit": [100, 100], "resize_to_fill": [50, 50]}, "only one width, height, fit"),
    ({"resize_to_limit": [100, 100], "crop": [0, 0, 10, 10]}, "crop is done before the size"),
    ({"resize_to_fill": [100, 100, {"gravity": "Up"}]}, "gravity is Center, North, NorthEast and so on"),
    ({"resize_to_fill": [100, 100, {"linear": True}]}, "ImageWorker has no resize_to_fill with linear: true"),
    ({"resize_to_limit": [100, 100, {"sharpen": {"sigma": 2}}]}, "ImageWorker has no resize_to_limit with sharpen"),
    ({"resize_and_pad": [100, 100], "format": "png"}, 'resize_and_pad needs background: "#rrggbb"'),
    ({"resize_and_pad": [100, 100, {"background": "transparent"}]}, 'background is "#rrggbb" or [red, green, blue]'),
    ({"background": [300, -1, 0]}, 'background is "#rrggbb" or [red, green, blue]'),
    ({"crop": "300x200"}, "crop is [left, top, width, height]"),
    ({"crop": [1, 2, 3]}, "crop is [left, top, width, height]"),
    ({"colourspace": "cmyk"}, "the colours of a variant are srgb or b-w"),
    ({"saver": {"interlace": True}}, "ImageWorker has no saver with interlace: true"),
    ({"saver": {"quality": 80}, "quality": 70}, "only one quality"),
    ({"saver": "-write /tmp/file.erb"}, "saver is a hash"),
    ({"format": "tiff"}, "a variant cannot be written as tiff"),
    ({"convert": "exe"}, "a variant cannot be written as exe"),
]


if __name__ == "__main__":
    unittest.main()
