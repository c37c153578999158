"""examples/uploads, and application servers that fork, with their libraries if these are installed for this Python.

    python -m pip install celery Django fastapi gevent gunicorn packaging python-multipart uvicorn
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import importlib.util
import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock as mock
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Mapping
from urllib.parse import urlsplit

from chaos_session import default_worker
from origin_process import PATIENCE
from package import ROOT
from processes import descendants

EXAMPLES = ROOT / "examples" / "uploads"
sys.path[:0] = [str(ROOT / "examples" / "python"), str(EXAMPLES)]
os.environ.setdefault("IMAGEWORKER", default_worker())

from imageworker import BlockingImageWorker, FileError, ImageWorkerError, InternalError, WorkerExited  # noqa: E402


def has(*modules: str) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in modules)


def needs(*modules: str) -> Callable[[Any], Any]:
    return unittest.skipUnless(has("PIL", "numpy", *modules), f"not all of {', '.join(modules or ('Pillow',))} are installed")


if has("PIL", "numpy"):
    from PIL import Image

    from upload_pictures import PDF, Server, jpeg, png


class Uploads(unittest.TestCase):
    def setUp(self) -> None:
        self.exits = contextlib.ExitStack()
        self.addCleanup(self.exits.close)
        self.folder = Path(self.exits.enter_context(tempfile.TemporaryDirectory())).resolve()
        self.media = self.folder / "media"
        self.media.mkdir()

    def files(self, folder: Path) -> list[str]:
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())

    def worker_with(self, *decoders: str) -> str:
        """A worker that finds only these of its decoders."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        for name in ("imageworker", *decoders):
            shutil.copy(Path(os.environ["IMAGEWORKER"]).with_name(name), folder)
        return str(folder / "imageworker")

    def serve(self, *command: str, **environment: str) -> Server:
        """A server that is told where to write."""
        own = {**os.environ, "MEDIA": str(self.media), "SPOOL": str(self.folder / "spool"), "XDG_CACHE_HOME": str(self.folder)}
        return self.exits.enter_context(Server(command, self.folder, {**own, **environment}))

    def at_once(self, count: int, post: Callable[[], Any]) -> list[Any]:
        with ThreadPoolExecutor(count) as pool:
            return [upload.result() for upload in [pool.submit(post) for _ in range(count)]]

    def check_sizes(self, answer: Any) -> None:
        """The answer for a JPEG of 1600 x 1200 that is shown upright."""
        self.assertEqual((answer["width"], answer["height"]), (1200, 1600))
        for size, expected in (("large", (1200, 1600)), ("thumb", (320, 320))):
            with Image.open(self.media / answer["sizes"][size]["path"]) as picture:
                self.assertEqual((picture.format, picture.size), ("WEBP", expected))
                self.assertEqual(dict(picture.getexif()), {})

    def until(self, is_so: Callable[[], object]) -> None:
        until = time.monotonic() + PATIENCE
        while not is_so():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.002)

    def await_end(self, pids: list[int]) -> None:
        self.until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))


if has("django"):
    import django  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from django.conf import settings  # type: ignore[import-not-found, import-untyped, unused-ignore]

    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}, MEDIA_URL="/media/", IMAGEWORKER={"decoders": 2}
    )
    django.setup()
    from django import forms  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from django.core.files.uploadedfile import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
        SimpleUploadedFile,
        TemporaryUploadedFile,
    )
    from django.core.exceptions import ValidationError  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from django.core.files import File  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from django.core.files.base import ContentFile  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from django.core.validators import FileExtensionValidator  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from django.db import connection, models  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from django.test.utils import override_settings  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from django_pictures import PictureField, refusal

    LIMITS = {"want": {"formats": ["jpeg", "png"], "min_width": 64, "max_pixels": 3_000_000}, "max_bytes": 2_000_000}
    FACTS = {"width": "width", "height": "height", "digest": "digest", "placeholder": "placeholder"}

    class Article(models.Model):  # type: ignore[misc, unused-ignore]
        title = models.CharField(max_length=10)
        picture = PictureField(
            upload_to="articles", sizes={"large": {"width": 2048}, "thumb": {"width": 320, "height": 320}}, facts=FACTS, process=LIMITS
        )
        width = models.IntegerField(null=True, editable=False)
        height = models.IntegerField(null=True, editable=False)
        digest = models.CharField(max_length=80, editable=False)
        placeholder = models.CharField(max_length=80, editable=False)

        class Meta:
            app_label = "uploads"

    class Broken(models.Model):  # type: ignore[misc, unused-ignore]
        picture = PictureField(upload_to="articles", sizes={"large": {"width": 2048}, "missing/thumb": {"width": 320}})

        class Meta:
            app_label = "uploads"

    def refuse_comments(upload: Any) -> None:
        if b"comment" in upload.read():
            raise ValidationError("comment")

    class Checked(models.Model):  # type: ignore[misc, unused-ignore]
        picture = PictureField(
            upload_to="checked",
            sizes={"part": {"crop": {"x": 0, "y": 1000, "width": 100, "height": 100}}},
            validators=[FileExtensionValidator(["jpg", "png"]), refuse_comments],
        )

        class Meta:
            app_label = "uploads"

    class ArticleForm(forms.ModelForm):  # type: ignore[misc, unused-ignore]
        class Meta:
            model = Article
            fields = ["title", "picture"]

    class ReadingForm(ArticleForm):
        def clean_picture(self) -> Any:
            upload = self.cleaned_data["picture"]
            upload.read()
            return upload

    with connection.schema_editor() as editor:
        editor.create_model(Article)
        editor.create_model(Checked)


def in_memory(content: bytes) -> Any:
    return SimpleUploadedFile("a.jpg", content)


def in_file(content: bytes) -> Any:
    upload = TemporaryUploadedFile("a.jpg", "image/jpeg", len(content), None)
    upload.write(content)
    upload.flush()
    upload.seek(0)
    return upload


@needs("django")
class Django(Uploads):
    def setUp(self) -> None:
        super().setUp()
        self.exits.enter_context(override_settings(MEDIA_ROOT=str(self.media)))

    def form(self, upload: Any, title: str = "a") -> Any:
        self.addCleanup(upload.close)
        return ArticleForm({"title": title}, {"picture": upload})

    def test_an_upload_becomes_upright_files_without_a_position(self) -> None:
        content = jpeg(orientation=6)
        for upload in (in_memory, in_file):
            with self.subTest(upload.__name__):
                form = self.form(upload(content))
                self.assertTrue(form.is_valid(), form.errors)
                article = Article.objects.get(pk=form.save().pk)
                self.assertEqual((article.width, article.height), (1200, 1600))
                self.assertEqual(article.digest, f"sha256-{hashlib.sha256(content).hexdigest()}")
                self.assertGreater(len(article.placeholder), 10)
                self.assertRegex(article.picture.url, r"^/media/articles/\w{32}/large\.webp$")
                for file, expected in ((article.picture, (1200, 1600)), (article.picture.of("thumb"), (240, 320))):
                    with Image.open(file.path) as picture:
                        self.assertEqual((picture.format, picture.size), ("WEBP", expected))
                        self.assertEqual((dict(picture.getexif()), picture.info.get("xmp")), ({}, None))
                article.title = "b"
                article.save()
        self.assertEqual(len(self.files(self.media)), 4)

    def test_alpha_is_kept(self) -> None:
        article = self.form(in_memory(png())).save()
        with Image.open(article.picture.path) as picture:
            self.assertEqual((picture.mode, picture.size), ("RGBA", (400, 300)))

    def test_a_refused_upload_is_told_with_its_figures_and_leaves_nothing(self) -> None:
        whole = jpeg()
        for content, code, words in (
            (PDF, "notAnImage", "This is not a picture, but application/pdf."),
            (b"hello, world", "notAnImage", "This picture cannot be used."),
            (png(1, 1), "minWidth", "The picture is 1 pixels wide. At least 64 are needed."),
            (jpeg(2100, 1500), "maxPixels", "The picture has 2100 x 1500 pixels. At most 3000000 are allowed."),
            (whole + bytes(2_000_000), "tooLarge", f"The file has {len(whole) + 2_000_000} bytes. At most 2000000 are allowed."),
            (whole[: len(whole) // 3], "corrupt", "The picture is damaged."),
            (gif(), "formats", "Pictures of the format gif are not accepted."),
        ):
            for upload in (in_memory, in_file):
                with self.subTest(code, upload=upload.__name__):
                    errors = self.form(upload(content)).errors.as_data()
                    self.assertEqual([error.messages for error in errors["picture"]], [[words]])
                    self.assertEqual(errors["picture"][0].code, code)
        gc.collect()
        self.assertEqual(list((self.media / "articles").iterdir()), [])

    def test_all_sizes_are_written_or_none(self) -> None:
        with self.assertRaises(FileError):
            Broken(picture=in_memory(jpeg())).full_clean()
        self.assertEqual(list((self.media / "articles").iterdir()), [])

    def test_a_form_that_is_wrong_elsewhere_leaves_nothing(self) -> None:
        form = self.form(in_memory(jpeg()), title="longer than ten")
        self.assertEqual(list(form.errors), ["title"])
        self.assertEqual(len(self.files(self.media)), 2)
        del form
        gc.collect()
        self.assertEqual(list((self.media / "articles").iterdir()), [])

    def test_an_instance_may_be_saved_without_a_form(self) -> None:
        article = Article(title="a", picture=in_memory(jpeg()))
        article.save()
        self.assertEqual((article.width, len(self.files(self.media))), (1600, 2))

    def test_a_picture_may_be_saved_by_its_name(self) -> None:
        (self.folder / "a.jpg").write_bytes(jpeg(orientation=6))
        with open(self.folder / "a.jpg", "rb") as file:
            article = Article(title="a")
            article.picture.save("photo.jpg", File(file))
        article = Article.objects.get(pk=article.pk)
        self.assertEqual((article.width, article.height), (1200, 1600))
        for size in (article.picture, article.picture.of("thumb")):
            with Image.open(size.path) as picture:
                self.assertEqual((picture.format, dict(picture.getexif())), ("WEBP", {}))
        with self.assertRaises(ValidationError) as caught:
            article.picture.save("evil.html", ContentFile(b"<script>alert(1)</script>"))
        self.assertEqual(caught.exception.code, "notAnImage")
        article.picture.save("photo.jpg", ContentFile(jpeg()), save=False)
        with self.assertRaises(ValidationError):
            article.picture.save("photo.jpg", ContentFile(b""), save=False)
        article.save()
        name = article.picture.name
        self.assertEqual((article.width, len(self.files(self.media))), (1600, 4))
        del article
        gc.collect()
        with Article.objects.get(picture=name).picture.open() as file:
            self.assertEqual(file.read(4), b"RIFF")

    def test_an_upload_that_has_been_read_is_read_again(self) -> None:
        for upload in (in_memory(jpeg()), in_file(jpeg())):
            self.addCleanup(upload.close)
            form = ReadingForm({"title": "a"}, {"picture": upload})
            self.assertTrue(form.is_valid(), form.errors)

    def test_validators_see_the_upload(self) -> None:
        checked = Checked(picture=in_memory(jpeg()))
        checked.full_clean()
        checked.save()
        checked = Checked.objects.get(pk=checked.pk)
        checked.full_clean()  # As a form that does not change the picture.
        for content, name, words in (
            (jpeg(), "a.gif", "File extension “gif” is not allowed. Allowed extensions are: jpg, png."),
            (jpeg() + b"comment", "a.jpg", "comment"),
        ):
            with self.assertRaises(ValidationError) as caught:
                Checked(picture=SimpleUploadedFile(name, content)).full_clean()
            self.assertEqual(caught.exception.messages, [words])
        self.assertEqual(len(self.files(self.media)), 1)

    def test_a_picture_without_the_part_that_is_wanted_is_refused(self) -> None:
        with self.assertRaises(ValidationError) as caught:
            Checked(picture=in_memory(png())).full_clean()
        self.assertEqual(caught.exception.messages, ["This picture cannot be used."])

    def test_all_sizes_are_deleted(self) -> None:
        article = Article.objects.create(title="a", picture=in_memory(jpeg()))
        other = Article.objects.create(title="b", picture=in_memory(jpeg()))
        article.picture.delete()
        self.assertFalse(Article.objects.get(pk=article.pk).picture)
        self.assertFalse(article.picture.of("thumb"))
        folder = os.path.dirname(other.picture.path)
        self.assertEqual([str(path) for path in (self.media / "articles").iterdir()], [folder])
        self.assertEqual(sorted(os.listdir(folder)), ["large.webp", "thumb.webp"])
        (self.media / "articles" / "old.jpg").write_bytes(b"")  # Of a FileField.
        Article(title="c", picture="articles/old.jpg").picture.delete(save=False)
        self.assertEqual(sorted(os.listdir(folder)), ["large.webp", "thumb.webp"])

    def test_a_migration_has_the_sizes(self) -> None:
        field, copy = Article._meta.get_field("picture"), Article._meta.get_field("picture").clone()
        self.assertEqual((copy.sizes, copy.facts, copy.process), (field.sizes, field.facts, field.process))

    def test_a_worker_without_its_decoders_is_an_error_of_the_site(self) -> None:
        with BlockingImageWorker(binary=self.worker_with()) as worker, mock.patch("django_pictures.worker", worker):
            with self.assertRaises(InternalError), self.assertLogs("imageworker", "WARNING") as logs:
                Article(title="a", picture=in_memory(jpeg())).full_clean()
        self.assertRegex(logs.output[0], "^WARNING:imageworker:imageworker: warning: there must be an executable file imageworker-plain")
        self.assertEqual(list((self.media / "articles").iterdir()), [])

    def test_what_may_succeed_later_is_told_as_busy(self) -> None:
        for data in ({"kind": "overloaded", "retryable": False}, {"kind": "io", "retryable": True}, {"kind": "workerExited", "retryable": True}):
            self.assertEqual(refusal(ImageWorkerError.of({"code": 0, "message": "", "data": data})).code, "busy")
        with self.assertRaises(WorkerExited):
            refusal(WorkerExited(None, [], retryable=False))


def gif() -> bytes:
    file = io.BytesIO()
    Image.new("P", (100, 100)).save(file, "GIF")
    return file.getvalue()


@needs("fastapi", "uvicorn", "python_multipart")
class FastAPI(Uploads):
    def serve_pictures(self, **environment: str) -> Server:
        command = ("-m", "uvicorn", "--app-dir", str(EXAMPLES), "--host", "127.0.0.1", "--port", "0", "fastapi_pictures:app")
        return self.serve(sys.executable, *command, **environment)

    def test_16_uploads_at_once(self) -> None:
        with self.serve_pictures() as server:
            large = jpeg(1600, 1200, 6) + bytes(1 << 20)  # In a file, and not in memory.
            for content in (jpeg(1600, 1200, 6), large):
                for status, answer, _ in self.at_once(16, lambda: server.post_form("/pictures", content)):
                    self.assertEqual(status, 201, answer)
                    self.assertEqual(answer["digest"], f"sha256-{hashlib.sha256(content).hexdigest()}")
                    self.check_sizes(answer)
            self.assertEqual(len(self.files(self.media)), 2 * 16 * 2)
            pids = descendants(server.process.pid)
            self.assertNotEqual(pids, [])
            server.end()
            self.await_end(pids)

    def test_a_refusal_has_figures_and_leaves_nothing(self) -> None:
        with self.serve_pictures() as server:
            for content, expected in (
                (PDF, {"kind": "notAnImage", "detected": "application/pdf"}),
                (gif(), {"kind": "unwanted", "wanted": "formats", "format": "gif"}),
                (jpeg()[:20_000], {"kind": "corrupt"}),
                (bytes(21 << 20), {"kind": "tooLarge", "bytes": 21 << 20, "limit": 20 << 20}),
            ):
                self.assertEqual(server.post_form("/pictures", content)[:2], (422, expected))
        self.assertEqual(list(self.media.iterdir()), [])

    def test_what_may_succeed_later_is_a_503(self) -> None:
        from fastapi_pictures import refuse

        no_request: Any = None

        def answered(**data: Any) -> tuple[int, Any]:
            response = asyncio.run(refuse(no_request, ImageWorkerError.of({"code": 0, "message": "", "data": data})))
            return response.status_code, response.headers.get("retry-after")

        self.assertEqual(answered(kind="overloaded", retryable=False, retryAfterMs=6100), (503, "7"))
        self.assertEqual(answered(kind="workerExited", retryable=True), (503, "1"))
        self.assertEqual(answered(kind="corrupt", retryable=False), (422, None))
        self.assertEqual(answered(kind="unsupportedFormat", retryable=False), (422, None))
        with self.assertRaises(ImageWorkerError):
            answered(kind="workerExited", retryable=False)
        with self.assertRaises(FileError):
            answered(kind="io", retryable=False, output="large")


    def test_a_worker_without_its_decoders_is_an_error_of_the_site(self) -> None:
        with self.serve_pictures(IMAGEWORKER=self.worker_with()) as server:
            self.assertEqual(server.post_form("/pictures", jpeg())[0], 500)
            server.end()
        self.assertIn("InternalError: no decoder is available", server.log)
        self.assertIn("imageworker: warning: there must be an executable file imageworker-plain", server.log)
        self.assertEqual(list(self.media.iterdir()), [])


@needs()
@unittest.skipIf(shutil.which("node") is None, "there is no node here")
class Node(Uploads):
    def serve_pictures(self, **environment: str) -> Server:
        return self.serve("node", str(EXAMPLES / "upload.mjs"), PORT="0", **environment)

    def test_16_uploads_at_once(self) -> None:
        with self.serve_pictures() as server:
            for status, answer, _ in self.at_once(16, lambda: server.post("/pictures", jpeg(1600, 1200, 6))):
                self.assertEqual(status, 201, answer)
                self.check_sizes(answer)
            self.assertEqual((self.files(self.folder / "spool"), len(self.files(self.media))), ([], 32))
            pids = descendants(server.process.pid)
            self.assertEqual(server.end(), 0)
            self.await_end(pids)

    def test_a_refusal_has_figures_and_leaves_nothing(self) -> None:
        with self.serve_pictures() as server:
            for content, status, expected in (
                (PDF, 415, {"kind": "notAnImage", "detected": "application/pdf"}),
                (gif(), 422, {"kind": "unwanted", "wanted": "formats", "format": "gif"}),
                (jpeg()[:20_000], 422, {"kind": "corrupt"}),
            ):
                self.assertEqual(server.post("/pictures", content)[:2], (status, expected))
            for head in (b"Content-Length: 30000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n1500000\r\n" + bytes(0x1500000)):
                with self.connected(server, head) as connection:
                    answer = connection.makefile("rb").read()
                self.assertEqual(answer.split(b" ", 2)[1], b"413")
                self.assertIn(b'{"kind":"tooLarge","limit":20971520}', answer)
            self.await_no_file()

    def test_a_worker_that_is_not_installed_is_an_error_of_the_site(self) -> None:
        for worker, kind, words in (
            ("/missing/imageworker", "workerExited", "the worker did not start"),
            (self.worker_with(), "internal", "InternalError: no decoder is available"),
        ):
            with self.subTest(kind), self.serve_pictures(IMAGEWORKER=worker) as server:
                for _ in range(2):
                    self.assertEqual(server.post("/pictures", jpeg())[:2], (500, {"kind": kind}))
                server.end()
                self.assertIn(words, server.log)
                self.await_no_file()

    def test_the_decoder_for_unchecked_pictures_is_not_needed(self) -> None:
        with self.serve_pictures(IMAGEWORKER=self.worker_with("imageworker-codec")) as server:
            self.assertEqual(server.post("/pictures", jpeg())[0], 201)

    def test_an_aborted_upload_leaves_no_file(self) -> None:
        content = jpeg(4000, 3000)
        with self.serve_pictures() as server:
            for sent in (0, 100_000, len(content)):  # The last is cut off while it is decoded.
                with self.connected(server, b"Content-Length: %d\r\n\r\n" % len(content) + content[:sent]):
                    self.until(lambda: self.files(self.folder / "spool") != [])
                self.await_no_file()
            self.assertEqual(server.post("/pictures", jpeg())[0], 201)

    def connected(self, server: Server, rest: bytes) -> socket.socket:
        address = urlsplit(server.url)
        connection = socket.create_connection((address.hostname or "", address.port or 0), PATIENCE)
        with contextlib.suppress(ConnectionError):  # The answer comes before all is read.
            connection.sendall(b"POST /pictures HTTP/1.1\r\nHost: a\r\n" + rest)
        return connection

    def await_no_file(self) -> None:
        self.until(lambda: self.files(self.folder / "spool") == [] and list(self.media.iterdir()) == [])


SITE = '''
import json, os, sys
sys.path.insert(0, os.environ["CLIENT"])
from imageworker import BlockingImageWorker
worker = BlockingImageWorker(memory_limit=0, disk_limit=0, decoders=1)

def application(environ, start_response):
    content = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    facts = worker.process(content, validate="decode", outputs={"thumb": {"transform": {"width": 320}, "deliver": "data"}})
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps({"width": facts.width, "process": os.getpid(), "worker": worker.pid}).encode()]
'''


@needs("gunicorn")
class Gunicorn(Uploads):
    def check(self, *options: str) -> None:
        """Uploads before and after HUP, which replaces the processes."""
        (self.folder / "site_of_test.py").write_text(SITE)
        command = ("-m", "gunicorn", "-b", "127.0.0.1:0", "-w", "2", "--graceful-timeout", "10", *options, "site_of_test:application")
        client = {"CLIENT": str(ROOT / "examples" / "python")}
        with self.serve(sys.executable, *command, **client) as server:
            pairs: list[set[tuple[int, int]]] = []
            for _ in range(2):
                answers = self.at_once(16, lambda: server.post("/", jpeg()))
                self.assertEqual({status for status, _, _ in answers}, {200}, answers[0])
                pairs.append({(answer["process"], answer["worker"]) for _, answer, _ in answers})
                self.assertEqual(len({process for process, _ in pairs[-1]}), len(pairs[-1]))  # A worker for each process.
                before = descendants(server.process.pid)
                server.log = ""
                server.process.send_signal(signal.SIGHUP)
                server.awaited("(Booting worker).*(?s:.*)Booting worker")
                self.await_end([pid for pair in pairs[-1] for pid in pair])
                self.await_end([pid for pid in before if pid not in descendants(server.process.pid)])
            self.assertEqual(pairs[0] & pairs[1], set())
            _, answer, _ = server.post("/", jpeg())
            os.kill(answer["process"], signal.SIGKILL)
            self.await_end([answer["worker"]])
            self.assertEqual(server.post("/", jpeg())[0], 200)
            pids = descendants(server.process.pid)
            self.assertEqual(server.end(), 0)
            self.await_end(pids)
            self.assertNotIn("Traceback", server.log)

    def test_processes_with_threads(self) -> None:
        self.check("-k", "gthread", "--threads", "8")
        self.check("-k", "gthread", "--threads", "8", "--preload")

    def test_processes_with_one_thread(self) -> None:
        self.check("-k", "sync", "--preload")

    @needs("gevent", "packaging")
    def test_greenlets(self) -> None:
        self.check("-k", "gevent")

    @needs("gevent", "packaging")
    def test_greenlets_that_gevent_makes_after_the_import(self) -> None:
        self.check("-k", "gevent", "--preload")


TASKS = '''
import os, sys
sys.path.insert(0, os.environ["CLIENT"])
from celery import Celery
from imageworker import BlockingImageWorker
worker = BlockingImageWorker(memory_limit=0, disk_limit=0, decoders=1)
app = Celery(broker="filesystem://")
app.conf.broker_transport_options = {name: os.environ["MEDIA"] + "/queue" for name in ("data_folder_in", "data_folder_out", "control_folder")}

@app.task
def scale(source, target):
    worker.process(source, outputs={"thumb": {"transform": {"width": 320, "format": "webp"}, "save_to": target}})

def send(count):
    for number in range(count):
        scale.delay(os.environ["MEDIA"] + "/photo.jpg", os.environ["MEDIA"] + "/%d.webp" % number)
'''


@needs("celery")
class Celery(Uploads):
    def test_processes_that_are_replaced(self) -> None:
        (self.folder / "tasks_of_test.py").write_text(TASKS)
        (self.media / "queue").mkdir()
        (self.media / "photo.jpg").write_bytes(jpeg())
        own: Mapping[str, str] = {**os.environ, "MEDIA": str(self.media), "CLIENT": str(ROOT / "examples" / "python")}
        subprocess.run([sys.executable, "-c", "import tasks_of_test; tasks_of_test.send(12)"], cwd=self.folder, env=own, check=True, timeout=PATIENCE)
        options = ["-P", "prefork", "-c", "2", "--max-tasks-per-child", "3", "--without-gossip", "--without-mingle", "--without-heartbeat"]
        command = [sys.executable, "-m", "celery", "-A", "tasks_of_test", "worker", "-l", "warning", *options]
        process = subprocess.Popen(command, cwd=self.folder, env=own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + PATIENCE
            while len(list(self.media.glob("*.webp"))) < 12:
                self.assertLess(time.monotonic(), until)
                time.sleep(0.05)
            pids = descendants(process.pid)
        finally:
            process.terminate()
            process.wait(PATIENCE)
        self.await_end(pids)


if __name__ == "__main__":
    unittest.main()
