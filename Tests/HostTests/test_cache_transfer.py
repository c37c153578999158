"""imageworker cache export, import, pin and unpin, with the built worker, a counting server and Python's tarfile."""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import io
import itertools
import json
import os
import random
import signal
import sqlite3
import struct
import subprocess
import tarfile
import tempfile
import threading
import unittest
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from chaos_session import default_worker
from test_cache_disk import Worker

FOLDER = "imageworker-cache/"
Members = list[tuple[str, bytes]]


@functools.cache
def picture(seed: int, side: int = 24) -> bytes:
    """A PNG of noise, of about 3 bytes for each pixel."""
    noise = random.Random(seed)
    rows = b"".join(b"\0" + noise.randbytes(3 * side) for _ in range(side))

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(rows, 0))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + body + chunk(b"IEND", b"")


class Server(contextlib.AbstractContextManager["Server"]):
    """Serves `/KIND/SEED/SIDE` and records each request. The kind is `fresh`, `stale`, `vary` or `cookie`."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str | None]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server.requests.append((self.path, self.headers["If-None-Match"]))
                _, kind, seed, side = self.path.split("?")[0].split("/")
                tag = f'"{seed}-{side}"'
                unchanged = self.headers["If-None-Match"] == tag
                body = b"" if unchanged else picture(int(seed), int(side))
                self.send_response(304 if unchanged else 200)
                self.send_header("Content-Type", "image/png")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("ETag", tag)
                self.send_header("Cache-Control", "no-cache" if kind == "stale" else "max-age=86400")
                if kind == "vary":
                    self.send_header("Vary", "Accept-Language")
                if kind == "cookie":
                    self.send_header("Set-Cookie", "session=secret")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def url(self, kind: str, seed: int, side: int = 24, query: str = "") -> str:
        return f"http://127.0.0.1:{self._server.server_port}/{kind}/{seed}/{side}{query}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Transfer(unittest.TestCase):
    def setUp(self) -> None:
        exits = contextlib.ExitStack()
        self.addCleanup(exits.close)
        self.exits = exits
        self.folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        self.server = exits.enter_context(Server())
        self.cache = self.folder / "cache"
        self.other = self.folder / "other"
        self.archive = self.folder / "images.tar"

    # Tools

    @contextlib.contextmanager
    def worker(self, cache: Path, *options: str) -> Iterator[Worker]:
        with Worker(cache, "--memory-limit", "0", *options) as worker:
            yield worker

    def load(self, worker: Worker, url: str, **params: Any) -> dict[str, Any]:
        answer = worker.call("load", url=url, **params)
        self.assertIn("result", answer)
        result: dict[str, Any] = answer["result"]
        return result

    def fill(self, *urls: str, cache: Path | None = None, **params: Any) -> None:
        with self.worker(cache or self.cache) as worker:
            for url in urls:
                self.assertEqual(self.load(worker, url, **params)["cache"], "miss")

    def command(
        self, *arguments: str, cache: Path | None = None, status: int = 0, stdin: bytes | None = b""
    ) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(
            [default_worker(), "cache", *arguments, "--cache-dir", str(cache or self.cache)],
            input=stdin, capture_output=True, timeout=300)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stderr!r}, {done.stdout[:500]!r}")
        return done

    def export(self, *options: str, cache: Path | None = None, status: int = 0) -> bytes:
        return self.command("export", *options, cache=cache, status=status).stdout

    def bring(
        self, archive: bytes, *options: str, status: int = 0, cache: Path | None = None
    ) -> tuple[dict[str, Any], list[str]]:
        """The summary of an import, and the lines on standard error."""
        done = self.command("import", *options, cache=cache or self.other, status=status, stdin=archive)
        return json.loads(done.stdout or b"{}"), done.stderr.decode().splitlines()

    def entries(self, cache: Path) -> list[dict[str, Any]]:
        done = subprocess.run(
            [default_worker(), "cache", "ls", "--json", "--cache-dir", str(cache)], capture_output=True, timeout=300)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def keys(self, cache: Path) -> set[str]:
        return {entry["key"] for entry in self.entries(cache)}

    def members(self, archive: bytes) -> Members:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            found = []
            for member in tar:
                self.assertTrue(member.isreg())
                content = tar.extractfile(member)
                assert content
                found.append((member.name, content.read()))
            return found

    def archived(self, members: Members, form: int = tarfile.USTAR_FORMAT) -> bytes:
        """The archive that Python writes of these members."""
        output = io.BytesIO()
        with tarfile.open(fileobj=output, mode="w", format=form) as tar:
            for name, content in members:
                header = tarfile.TarInfo(name)
                header.size = len(content)
                tar.addfile(header, io.BytesIO(content))
        return output.getvalue()

    def changed(self, description: bytes, **members: Any) -> bytes:
        values = {**json.loads(description), **members}
        return json.dumps({name: value for name, value in values.items() if value is not None}).encode()


class Carry(Transfer):
    """From one directory to another."""

    def test_images_are_served_elsewhere_without_a_request_and_revalidated_with_their_tags(self) -> None:
        fresh, stale = self.server.url("fresh", 1, query="?signature=abc"), self.server.url("stale", 2)
        varying = self.server.url("vary", 3)
        self.fill(fresh, stale)
        self.fill(varying, headers={"Accept-Language": "de"})
        with self.worker(self.cache) as worker:
            thumbnail = self.load(worker, fresh, transform={"width": 5})
            self.assertEqual(thumbnail["cache"], "disk")
        summary, errors = self.bring(self.export())
        self.assertEqual((summary["stored"], summary["kept"], summary["refused"]), (4, 0, 0))
        self.assertEqual(errors, [])
        self.server.requests.clear()
        with self.worker(self.other) as worker:
            found = self.load(worker, fresh)
            self.assertEqual(found["cache"], "disk")
            self.assertEqual(Path(found["path"]).read_bytes(), picture(1))
            self.assertEqual((found["width"], found["height"], found["format"]), (24, 24, "png"))
            self.assertEqual(self.load(worker, fresh, cache="only-if-cached")["cache"], "disk")
            self.assertEqual(self.load(worker, stale, cache="only-if-cached")["cache"], "stale")
            self.assertEqual(self.load(worker, varying, headers={"Accept-Language": "de"})["cache"], "disk")
            again = self.load(worker, fresh, transform={"width": 5}, cache="only-if-cached")
            self.assertEqual(Path(again["path"]).read_bytes(), Path(thumbnail["path"]).read_bytes())
            self.assertEqual(worker.call("stats")["result"]["decoders"]["decoded"], 0)
            self.assertEqual(self.server.requests, [])
            self.assertEqual(self.load(worker, stale)["cache"], "revalidated")
            self.assertEqual(self.server.requests, [("/stale/2/24", '"2-24"')])
            self.assertEqual(self.load(worker, varying, headers={"Accept-Language": "fr"})["cache"], "miss")

    def test_images_that_a_host_stored_under_a_key_alone_are_carried(self) -> None:
        with self.worker(self.cache) as worker:
            answer = worker.call("store", key="logo", data=base64.b64encode(picture(1)).decode())
            self.assertIn("result", answer)
        self.assertEqual(self.bring(self.export())[0]["stored"], 1)
        self.assertEqual(os.listdir(self.other / "default" / "workers"), [])
        with self.worker(self.other) as worker:
            found = worker.call("query", key="logo")["result"]
            self.assertEqual(Path(found["path"]).read_bytes(), picture(1))

    def test_an_archive_is_a_tar_in_the_order_of_keys_with_the_same_bytes_each_time(self) -> None:
        urls = [self.server.url("fresh", seed) for seed in (5, 3, 4, 1, 2)]
        self.fill(*urls)
        archive = self.export()
        self.assertEqual(archive, self.export())
        members = self.members(archive)
        names = [name for name, _ in members]
        expected = [f"{FOLDER}{number:08}.{ending}" for number in range(1, 6) for ending in ("json", "png")]
        self.assertEqual(names, [FOLDER + "manifest.json", *expected])
        self.assertEqual(json.loads(members[0][1])["format"], "imageworker-cache")
        descriptions = [json.loads(content) for _, content in members[1::2]]
        self.assertEqual([each["key"] for each in descriptions], sorted(urls))
        for description, (_, content) in zip(descriptions, members[2::2], strict=True):
            self.assertEqual(description["digest"], hashlib.sha256(content).hexdigest())
            self.assertEqual(description["bytes"], len(content))
        listing = subprocess.run(["tar", "tvf", "-"], input=archive, capture_output=True, check=True)
        self.assertEqual(len(listing.stdout.splitlines()), len(names))
        self.assertEqual(listing.stderr, b"")

    def test_archives_of_other_writers_of_tar_are_read(self) -> None:
        urls = [self.server.url("fresh", seed) for seed in range(3)]
        self.fill(*urls)
        members = self.members(self.export())
        for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            with self.subTest(form=form):
                cache = self.folder / f"form-{form}"
                summary, _ = self.bring(self.archived(members, form), cache=cache)
                self.assertEqual(summary["stored"], 3)
                self.assertEqual(self.keys(cache), set(urls))

    def test_filters_select_what_is_exported(self) -> None:
        urls = [self.server.url("fresh", seed) for seed in range(12)]
        self.fill(*urls)
        with self.worker(self.cache) as worker:
            self.load(worker, urls[1], transform={"width": 5})
        for options, expected in [
            (["--url", urls[3]], [urls[3]]),
            (["--prefix", urls[1][:-2]], [urls[1], urls[1]]),
            (["--prefix", urls[1][:-2], "--originals"], [urls[1]]),
            (["--host", "127.0.0.1", "--originals"], sorted(urls)),
        ]:
            with self.subTest(options=options):
                found = [json.loads(content) for _, content in self.members(self.export(*options))[1::2]]
                self.assertEqual([each["key"] for each in found], expected)
        nothing = self.export("--key", "no such key", status=1)
        self.assertEqual([name for name, _ in self.members(nothing)], [FOLDER + "manifest.json"])

    def test_credentials_and_cookies_are_left_out_unless_asked_for(self) -> None:
        open_to_all, private = self.server.url("cookie", 1), self.server.url("fresh", 2)
        self.fill(open_to_all)
        authorization = {"Authorization": "Bearer secret"}
        self.fill(private, headers=authorization)
        archive = self.export()
        self.assertNotIn(b"secret", archive)
        self.assertEqual([json.loads(each)["key"] for _, each in self.members(archive)[1::2]], [open_to_all])
        complete = self.export("--with-credentials")
        self.assertIn(b"session=secret", complete)
        self.bring(complete)
        self.server.requests.clear()
        with self.worker(self.other) as worker:
            self.assertEqual(self.load(worker, private, headers=authorization)["cache"], "disk")
            self.assertEqual(worker.call("load", url=private, cache="only-if-cached")["error"]["data"]["kind"], "notCached")
        self.assertEqual(self.server.requests, [])

    def test_output_appears_when_it_is_complete(self) -> None:
        self.fill(self.server.url("fresh", 1))
        self.archive.write_bytes(b"older")
        done = self.command("export", "--output", str(self.archive))
        self.assertEqual(json.loads(done.stdout)["images"], 1)
        self.assertEqual(self.archive.read_bytes(), self.export())
        self.archive.unlink()
        self.command("export", "--output", str(self.archive))
        self.assertEqual(self.archive.stat().st_mode & 0o777, 0o600)
        self.assertEqual(os.listdir(self.folder / "cache"), ["default"])
        done = self.command("import", str(self.archive), cache=self.other)
        self.assertEqual(json.loads(done.stdout)["stored"], 1)
        missing = self.command("import", str(self.folder / "none.tar"), cache=self.other, status=66)
        self.assertIn(b"none.tar cannot be opened: No such file", missing.stderr)

    def test_a_newer_image_is_kept_unless_it_is_to_be_replaced(self) -> None:
        url = self.server.url("fresh", 1)
        self.fill(url)
        archive = self.export()
        name, description = self.members(archive)[1]
        image = picture(9)
        digest = hashlib.sha256(image).hexdigest()
        arrival = json.loads(description)["responseTime"]

        def version(age: int) -> bytes:
            other = self.changed(description, digest=digest, bytes=len(image), responseTime=arrival - age)
            return self.archived([self.members(archive)[0], (name, other), (f"{FOLDER}00000001.png", image)])

        summary, _ = self.bring(archive, cache=self.cache)
        self.assertEqual((summary["stored"], summary["kept"]), (0, 1))
        summary, _ = self.bring(version(age=10), cache=self.cache)
        self.assertEqual((summary["stored"], summary["kept"]), (0, 1))
        summary, _ = self.bring(version(age=10), "--replace", cache=self.cache)
        self.assertEqual((summary["stored"], summary["kept"]), (1, 0))
        with self.worker(self.cache) as worker:
            self.assertEqual(Path(self.load(worker, url, cache="only-if-cached")["path"]).read_bytes(), image)
        summary, _ = self.bring(archive, cache=self.cache)
        self.assertEqual((summary["stored"], summary["kept"]), (1, 0))
        with self.worker(self.cache) as worker:
            self.assertEqual(Path(self.load(worker, url, cache="only-if-cached")["path"]).read_bytes(), picture(1))

    def test_a_running_worker_serves_what_is_imported(self) -> None:
        urls = [self.server.url("fresh", seed) for seed in range(3)]
        self.fill(*urls)
        archive = self.export()
        with self.worker(self.other) as worker:
            self.assertEqual(worker.call("load", url=urls[0], cache="only-if-cached")["error"]["data"]["kind"], "notCached")
            self.server.requests.clear()
            self.bring(archive)
            for url in urls:
                self.assertEqual(self.load(worker, url)["cache"], "disk")
        self.assertEqual(self.server.requests, [])

    def test_an_import_that_is_killed_leaves_a_whole_cache(self) -> None:
        urls = [self.server.url("fresh", seed) for seed in range(20)]
        self.fill(*urls)
        archive = self.export()
        # In the middle of the 14th image, for whose end the command waits.
        cut = archive.index(FOLDER.encode() + b"00000014.png") + 512 + 100
        process = subprocess.Popen(
            [default_worker(), "cache", "import", "--cache-dir", str(self.other)], stdin=subprocess.PIPE)
        assert process.stdin
        process.stdin.write(archive[:cut])
        process.stdin.flush()
        while not (self.other / "default").exists() or len(self.entries(self.other)) < 13:
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdin.close()
        self.command("verify", "--repair", cache=self.other, status=1)
        self.command("verify", cache=self.other)
        found = self.keys(self.other)
        self.assertEqual(len(found), 13)
        summary, _ = self.bring(archive)
        self.assertEqual((summary["stored"], summary["kept"]), (len(urls) - len(found), len(found)))
        self.assertEqual(self.keys(self.other), set(urls))

    def test_the_limit_of_the_directory_is_honoured(self) -> None:
        many = [self.server.url("fresh", seed, 60) for seed in range(40)]
        self.fill(*many)
        archive = self.export()
        old = [self.server.url("fresh", 100 + seed, 60) for seed in range(10)]
        with self.worker(self.other, "--disk-limit", "240K") as worker:
            for url in old:
                self.load(worker, url, deliver="none")
        self.command("pin", old[0], cache=self.other)
        # As if time had passed.
        with contextlib.closing(sqlite3.connect(self.other / "default" / "index.sqlite")) as index:
            index.execute("UPDATE responses SET used_at = used_at - 100")
            index.commit()
        summary, errors = self.bring(archive, status=1)
        # 12 kB each: 20 fit, of which one is pinned.
        self.assertEqual((summary["stored"], summary["refused"]), (19, 21))
        self.assertIn("entry 20: it and the images before it exceed the disk limit", errors[0])
        self.assertEqual(errors[-1], "imageworker: 1 more entries were refused")
        self.assertEqual(self.keys(self.other), {old[0], *sorted(many)[:19]})

    def test_an_export_beside_busy_workers_is_whole(self) -> None:
        stop = threading.Event()
        rounds = [threading.Semaphore(0) for _ in range(8)]

        def work(number: int) -> None:
            chance = random.Random(number)
            with self.worker(self.cache, "--disk-limit", "400K") as worker:
                while not stop.is_set():
                    url = self.server.url("fresh", chance.randrange(60), 60)
                    self.load(worker, url, cache=chance.choice(["default", "reload"]), deliver="none")
                    rounds[number].release()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        try:
            exported = 0
            for attempt in range(5):
                for each in itertools.chain.from_iterable([each] * 5 for each in rounds):
                    each.acquire()
                archive = self.export(status=0)
                for _, content in self.members(archive)[2::2]:
                    exported += 1
                descriptions = [json.loads(each) for _, each in self.members(archive)[1::2]]
                for description, (_, image) in zip(descriptions, self.members(archive)[2::2], strict=True):
                    self.assertEqual(hashlib.sha256(image).hexdigest(), description["digest"])
                summary, errors = self.bring(archive, cache=self.folder / f"copy-{attempt}")
                self.assertEqual((summary["stored"], errors), (len(descriptions), []))
            self.assertGreater(exported, 50)
        finally:
            stop.set()
            for thread in threads:
                thread.join()


class Damage(Transfer):
    """Archives that are damaged, or made by an enemy."""

    def setUp(self) -> None:
        super().setUp()
        self.fill(*[self.server.url("fresh", seed) for seed in range(3)])
        self.whole = self.export()
        self.parts = self.members(self.whole)

    def replaced(self, place: int, content: bytes | None = None, name: str | None = None) -> bytes:
        members = list(self.parts)
        old_name, old_content = members[place]
        members[place] = (name or old_name, old_content if content is None else content)
        return self.archived(members)

    def described(self, **members: Any) -> bytes:
        """The archive with another description of the second entry."""
        return self.replaced(3, self.changed(self.parts[3][1], **members))

    def patched(self, offset: int, content: bytes, fix_checksum: bool = True) -> bytes:
        """The archive with other bytes in the header of the second entry's image."""
        start = self.whole.index(b"imageworker-cache/00000002.png")
        header = bytearray(self.whole[start : start + 512])
        header[offset : offset + len(content)] = content
        if fix_checksum:
            header[148:156] = b" " * 8
            header[148:156] = f"{sum(header):06o}\0 ".encode()
        return self.whole[:start] + bytes(header) + self.whole[start + 512 :]

    def test_an_archive_that_cannot_be_read_further_ends_the_import_at_the_entry(self) -> None:
        start = self.whole.index(b"imageworker-cache/00000002.png")
        link = io.BytesIO()
        with tarfile.open(fileobj=link, mode="w") as tar:
            for name, content in self.parts[:3]:
                header = tarfile.TarInfo(name)
                header.size = len(content)
                tar.addfile(header, io.BytesIO(content))
            header = tarfile.TarInfo(self.parts[3][0])
            header.type, header.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(header)
        for name, archive, stored, message in [
            ("empty", b"", 0, "this is no archive of imageworker cache export: the archive is cut off"),
            ("text", b"not a tar" * 1000, 0, "this is no archive of imageworker cache export: no tar header"),
            ("zeros", bytes(10240), 0, "it does not begin with imageworker-cache/manifest.json"),
            ("another tar", self.archived([("a.txt", b"a")]), 0, "it does not begin with"),
            ("cut in the manifest", self.whole[:700], 0, "the archive is cut off"),
            ("cut in a description", self.whole[: start - 300], 1, "entry 2: the archive is cut off; stored 1 image, 1.8K before it"),
            ("cut in a header", self.whole[: start + 100], 1, "entry 2: the archive is cut off"),
            ("cut in an image", self.whole[: start + 612], 1, "entry 2: the archive is cut off"),
            ("cut before an image", self.whole[:start], 1, "entry 2: the archive is cut off"),
            ("cut before the end", self.whole[:-1024], 3, "entry 4: the archive is cut off"),
            ("no checksum", self.patched(0, b"x", fix_checksum=False), 1, "entry 2: no tar header where one must be"),
            ("a large size", self.patched(124, b"\xff" * 12), 1, "entry 2: a tar header without a size"),
            ("a size beyond the end", self.patched(124, b"77777777777\0"), 1, "entry 2: the archive is cut off"),
            ("a size in base 256", self.patched(124, b"\x80" + b"\x7f" * 11), 1, "a tar header without a size"),
            ("a negative size", self.patched(124, b"-0000000001\0"), 1, "a tar header without a size"),
            ("a link", link.getvalue(), 1, "entry 2: a member that is no regular file"),
            ("a folder", self.patched(156, b"5"), 1, "entry 2: a member that is no regular file"),
            ("another version", self.replaced(0, self.changed(self.parts[0][1], version=2)), 0, "has version 2 of its"),
            ("another format", self.replaced(0, b'{"format":"x","version":1}'), 0, "the manifest is not that of"),
            ("a manifest that is no JSON", self.replaced(0, b"\0"), 0, "the manifest is not that of"),
            ("a path", self.replaced(3, name="../../etc/passwd"), 1, "expected, and not ../../etc/passwd"),
            ("an absolute path", self.replaced(4, name="/etc/passwd"), 1, "00000002.json is not followed by its image"),
            ("the wrong number", self.replaced(3, name=FOLDER + "00000003.json"), 1, "00000002.json expected"),
            ("a large description", self.replaced(3, b" " * 1_100_000), 1, "00000002.json has 1100000 bytes"),
            ("a large manifest", self.replaced(0, b" " * 1_100_000), 0, "manifest.json has 1100000 bytes"),
            ("no image", self.archived(self.parts[:4]), 1, "00000002.json is not followed by its image"),
        ]:
            with self.subTest(name):
                cache = self.folder / name
                done = self.command("import", cache=cache, status=65, stdin=archive)
                self.assertIn(message, done.stderr.decode())
                self.assertEqual(len(done.stderr.splitlines()), 2 if name == "a size beyond the end" else 1)
                self.assertEqual(len(self.entries(cache)) if (cache / "default").exists() else 0, stored)
                if stored:
                    self.command("verify", cache=cache)

    def test_an_entry_that_is_wrong_is_refused_and_the_others_are_stored(self) -> None:
        text = self.parts[3][1].decode()
        later = json.loads(text)["digest"]
        for name, archive, message in [
            ("other content", self.replaced(4, picture(7)), "does not have the digest of its description"),
            ("another size", self.replaced(4, picture(1) + b"\0"), "and its image has"),
            ("an empty image", self.replaced(4, b""), "and its image has 0"),
            ("no JSON", self.replaced(3, b"{"), "its description is not JSON"),
            ("deep JSON", self.replaced(3, b"[" * 100_000), "its description is not JSON"),
            ("a list", self.replaced(3, b"[]"), "it is not an object"),
            ("twice the same", self.replaced(3, text.replace('"key"', '"key":"a","key"', 1).encode()), "is not JSON"),
            ("no key", self.described(key=None), "key must be given"),
            ("an empty key", self.described(key=""), "key must not be empty"),
            ("an unknown member", self.described(path="/etc/passwd"), 'unknown parameter path'),
            ("a short digest", self.described(digest="00"), "digest must be 64 hexadecimal digits"),
            ("another digest", self.described(digest="0" * 64), "does not have the digest of its description"),
            ("a partition that is none", self.described(partition="all"), "partition must be 64 hexadecimal digits"),
            ("another format", self.described(format="jpeg"), "its image is not of the format jpeg"),
            ("an unknown format", self.described(format="../x"), "format must be one of jpeg, png"),
            ("a failure", self.described(status=404), "status must be an integer from 200 to 299"),
            ("a time out of range", self.described(expiresAt=2**62), "expiresAt must be an integer from"),
            ("a line break", self.described(headers=[["a", "b\nc:d"]]), "headers must be a list of pairs"),
            ("a colon", self.described(headers=[["a:b", "c"]]), "headers must be a list of pairs"),
            ("no pairs", self.described(varying=[["a"]]), "varying must be a list of pairs"),
            ("a variant that is none", self.described(variant="../x"), "variant must be a canonical transform"),
            ("a variant without source", self.described(variant="v3,w=5"), "decoded.source must be given"),
            ("negative bytes", self.described(bytes=-1), "bytes must be an integer from 0"),
            ("a hash that is none", self.described(decoded={"placeholder": {"thumbHash": "x", "color": 0}}), "ThumbHash"),
        ]:
            with self.subTest(name):
                cache = self.folder / name
                summary, errors = self.bring(archive, cache=cache, status=1)
                self.assertEqual((summary["stored"], summary["refused"]), (2, 1))
                self.assertEqual(len(errors), 1)
                self.assertIn("entry 2: ", errors[0])
                self.assertIn(message, errors[0])
                self.assertNotIn(later, [entry.get("digest") for entry in self.entries(cache)])
                self.command("verify", cache=cache)

    def test_random_damage_never_stores_wrong_bytes(self) -> None:
        chance = random.Random(int.from_bytes(os.urandom(4), "big"))
        known = {hashlib.sha256(content).digest() for _, content in self.parts[2::2]}
        for attempt in range(40):
            state = chance.getstate()
            damaged = bytearray(self.whole)
            for _ in range(chance.randint(1, 4)):
                place = chance.randrange(len(damaged))
                damaged[place : place + chance.randint(0, 9)] = chance.randbytes(chance.randint(0, 9))
            cache = self.folder / f"random-{attempt}"
            done = subprocess.run(
                [default_worker(), "cache", "import", "--cache-dir", str(cache)], input=bytes(damaged),
                capture_output=True, timeout=300)
            self.assertIn(done.returncode, (0, 1, 65), (state, done.stderr))
            if not (cache / "default").exists():
                continue
            for entry in self.entries(cache):
                content = (cache / "default" / entry["file"]).read_bytes()
                self.assertIn(hashlib.sha256(content).digest(), known, state)


class Pins(Transfer):
    """Pins keep images, under pressure and across workers."""

    LIMIT = ("--disk-limit", "400K")

    def press(self, worker: Worker, first: int, count: int = 60) -> None:
        """Loads more images than the limit allows, 12 kB each, of which no path is promised."""
        for seed in range(first, first + count):
            self.load(worker, self.server.url("fresh", seed, 60), deliver="none")

    def pinned(self) -> set[str]:
        return {entry["key"] for entry in self.entries(self.cache) if entry["pinned"]}

    def test_a_running_worker_honours_pins_and_unpins(self) -> None:
        kept = [self.server.url("fresh", seed, 60) for seed in range(10)]
        with self.worker(self.cache, *self.LIMIT) as worker, self.worker(self.cache, *self.LIMIT) as peer:
            for url in kept:
                self.load(worker, url, deliver="none")
            done = self.command("pin", *kept)
            self.assertEqual(json.loads(done.stdout), {"pinned": 10, "images": 10, "allocated": 10 * 12288})
            self.press(worker, 100)
            self.press(peer, 200)
            self.assertEqual(self.pinned(), set(kept))
            self.assertLess(len(self.entries(self.cache)), 36)
            self.assertEqual(worker.call("stats")["result"]["disk"]["pinned"], 10)
            self.server.requests.clear()
            for url in kept:
                self.assertEqual(self.load(peer, url, deliver="none")["cache"], "disk")
            self.assertEqual(self.server.requests, [])
            self.assertEqual(json.loads(self.command("unpin", "--all").stdout), {"unpinned": 10})
            self.press(worker, 300)
            self.assertEqual(self.keys(self.cache) & set(kept), set())

    def test_a_pin_stays_with_its_key(self) -> None:
        stale = self.server.url("stale", 1, 60)
        with self.worker(self.cache, *self.LIMIT) as worker:
            self.load(worker, stale, deliver="none")
            self.command("pin", stale)
            self.assertEqual(self.load(worker, stale, deliver="none")["cache"], "revalidated")
            self.assertEqual(self.load(worker, stale, cache="reload", deliver="none")["cache"], "miss")
            self.press(worker, 100)
        with self.worker(self.cache, *self.LIMIT) as worker:
            self.press(worker, 200)
            self.assertEqual(self.pinned(), {stale})
            file = next(entry["file"] for entry in self.entries(self.cache) if entry["pinned"])
            (self.cache / "default" / file).unlink()
            self.assertEqual(self.load(worker, stale)["cache"], "miss")
            self.press(worker, 300)
            self.assertEqual(self.pinned(), {stale})
            self.command("rm", "--older-than", "0", "--expired", status=1)
            self.assertEqual(self.pinned(), {stale})
            self.assertEqual(worker.call("clear", url=stale)["result"]["removed"], 1)
            self.load(worker, stale, deliver="none")
            self.assertEqual(self.pinned(), set())

    def test_names_come_from_arguments_a_list_or_filters(self) -> None:
        urls = [self.server.url("fresh", seed) for seed in range(10)]
        self.fill(*urls[:8])
        with self.worker(self.cache) as worker:
            self.load(worker, urls[8], key="logo")
        self.command("pin", urls[0], "logo")
        self.assertEqual(self.pinned(), {urls[0], "logo"})
        listed = "\n".join([urls[1], "", urls[9], urls[2], "no such key"]).encode()
        done = self.command("pin", "-", status=1, stdin=listed)
        self.assertEqual(
            done.stderr.decode().splitlines(),
            [f"imageworker: {urls[9]} is not stored", "imageworker: no such key is not stored"])
        self.assertEqual(self.pinned(), {urls[0], "logo", urls[1], urls[2]})
        self.command("pin", "--prefix", urls[3])
        self.assertEqual(json.loads(self.command("pin", "--prefix", urls[3]).stdout)["pinned"], 0)
        self.command("pin", "--host", "other.example", status=1)
        self.command("unpin", urls[3], "logo")
        self.assertEqual(self.pinned(), {urls[0], urls[1], urls[2]})
        done = self.command("unpin", urls[3], status=1)
        self.assertIn(f"{urls[3]} is not pinned", done.stderr.decode())

    def test_pins_have_a_limit(self) -> None:
        with self.worker(self.cache, *self.LIMIT) as worker:
            self.press(worker, 0)
        done = self.command("pin", "--host", "127.0.0.1", status=1)
        self.assertIn(b"more than 90 % of the disk limit of 409600 bytes", done.stderr)
        self.assertEqual(self.pinned(), set())
        self.command("pin", "--host", "127.0.0.1", "--disk-limit", "1M")
        self.assertGreater(len(self.pinned()), 30)

    def test_wrong_arguments_are_named(self) -> None:
        for arguments, message in [
            (["pin"], "a URL must be given, - for a list on standard input, or a filter"),
            (["unpin"], "or a filter, or --all"),
            (["pin", "a", "--key", "b"], "a URL and a filter must not be given together"),
            (["unpin", "--all", "--expired"], "--all and a filter must not be given together"),
            (["pin", "a", "--disk-limit", "0"], "--disk-limit must be more than 0"),
            (["export", "--output", ""], "--output must not be empty"),
            (["import", "a", "b"], "unexpected argument b"),
        ]:
            with self.subTest(arguments=arguments):
                (self.cache / "default").mkdir(parents=True, exist_ok=True)
                self.assertIn(message, self.command(*arguments, status=64).stderr.decode())


if __name__ == "__main__":
    unittest.main()
