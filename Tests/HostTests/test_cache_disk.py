"""Faults of the disk, with the built worker: it is full, read-only or missing, or holds something else."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import shutil
import sqlite3
import struct
import subprocess
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path
from typing import Any

from chaos_session import default_worker
from kills_origin import ChangingOrigin, Picture, body_of
from origin_process import PATIENCE


class Disk(contextlib.AbstractContextManager["Disk"]):
    """A small file system of its own, which can be made read-only."""

    def __init__(self, path: Path, size: str) -> None:
        self.path = path
        path.mkdir()
        self._run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path))

    def __exit__(self, *_: object) -> None:
        self._run("umount", "-l", str(self.path))

    def make_read_only(self) -> None:
        """Nobody may have a file open there for writing."""
        self._run("mount", "-o", "remount,ro", str(self.path))

    def _run(self, *command: str) -> None:
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise unittest.SkipTest(f"a file system can be mounted by root only, and not everywhere: {error}") from None


class SilentDisk(contextlib.AbstractContextManager["SilentDisk"]):
    """A file system that never answers, as one of a network whose server is gone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        try:
            self._server = os.open("/dev/fuse", os.O_RDWR)
        except OSError as error:
            raise unittest.SkipTest(f"no file system of a process can be mounted: {error}") from None
        options = f"fd={self._server},rootmode=40000,user_id=0,group_id=0"
        if ctypes.CDLL(None).mount(b"silent", os.fsencode(path), b"fuse", 0, options.encode()) != 0:
            os.close(self._server)
            raise unittest.SkipTest("a file system can be mounted by root only, and not everywhere")

    def __exit__(self, *_: object) -> None:
        # It ends whatever waits for an answer.
        os.close(self._server)
        subprocess.run(["umount", "-l", str(self.path)], check=True)


class Worker(contextlib.AbstractContextManager["Worker"]):
    """Asked one thing after the other."""

    def __init__(self, cache: Path, *options: str) -> None:
        command = [default_worker(), "--cache-dir", str(cache), "--min-free", "0%", *options]
        pipe = subprocess.PIPE
        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._log)
        self._numbers = itertools.count()

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._log.close()

    @property
    def process(self) -> int:
        return self._process.pid

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The response."""
        assert self._process.stdin and self._process.stdout
        line = json.dumps({"id": next(self._numbers), "method": method, "params": params})
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the worker has ended: {self.log()}"
        response: dict[str, Any] = json.loads(answer)
        return response

    def log(self) -> list[str]:
        self._log.seek(0)
        return self._log.read().decode().splitlines()


class CacheDisk(unittest.TestCase):
    def setUp(self) -> None:
        exits = contextlib.ExitStack()
        self.addCleanup(exits.close)
        self.folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        self.origin = ChangingOrigin(seed=1, manners={"good": 1})
        exits.callback(self.origin.close)
        self.exits = exits

    def worker(self, cache: Path, *options: str) -> Worker:
        return self.exits.enter_context(Worker(cache, "--memory-limit", "0", *options))

    def load(self, worker: Worker, name: str, **params: Any) -> str:
        """The source of the image, which must be complete."""
        response = worker.call("load", url=self.origin.url(name), **params)
        self.assertIn("result", response)
        content = Path(response["result"]["path"]).read_bytes()
        self.assertEqual(content, body_of(Picture(name, self.origin.version(name), "-")))
        where: str = response["result"]["cache"]
        return where

    def test_a_full_disk_costs_no_load_and_one_warning(self) -> None:
        disk = self.exits.enter_context(Disk(self.folder / "disk", "3m"))
        worker = self.worker(disk.path)
        for number in range(40):
            self.assertEqual(self.load(worker, f"kept-{number}{'L' if number % 2 else 'S'}"), "miss")
        self.assertEqual(self.load(worker, "kept-0S"), "disk")
        self.assertLessEqual(len(worker.log()), 1, worker.log())
        self.assertIn("result", worker.call("clear"))

    def test_a_clear_makes_room_on_a_full_disk(self) -> None:
        disk = self.exits.enter_context(Disk(self.folder / "disk", "40m"))
        worker, image, count = self.worker(disk.path), self.folder / "image.png", 1000
        for number in range(count):  # All are delivered within the last 60 s.
            image.write_bytes(body_of(Picture(f"kept-{number}S", 1, "-")))
            self.assertIn("result", worker.call("store", url=self.origin.url(f"{number}"), path=str(image)))
        self.wait_for_rows(disk.path / "default" / "index.sqlite", count)
        with (disk.path / "filler").open("wb", buffering=0) as filler, self.assertRaises(OSError):
            while True:
                filler.write(bytes(4096))
        cleared = worker.call("clear")
        self.assertEqual(cleared.get("result", cleared).get("removed"), count, cleared)
        self.assertFalse(worker.call("query", url=self.origin.url("0"))["result"]["disk"])
        self.assertEqual(worker.log(), [])

    def wait_for_rows(self, index: Path, count: int) -> None:
        """They are written half a second after the first of them was gathered."""
        begun = time.monotonic()
        while time.monotonic() - begun < PATIENCE:
            with contextlib.closing(sqlite3.connect(f"file:{index}?mode=ro", uri=True)) as opened:
                [[found]] = opened.execute("SELECT count(*) FROM responses")
            if found == count:
                return
            time.sleep(0.05)
        raise AssertionError(f"only {found} rows")

    def test_a_disk_without_room_for_a_decoded_image_is_told(self) -> None:
        disk = self.exits.enter_context(Disk(self.folder / "disk", "256k"))
        image, side = self.folder / "image.bmp", 400
        header = struct.pack("<IIIIiiHHIIIIII", 54 + 3 * side**2, 0, 54, 40, side, side, 1, 24, 0, 0, 0, 0, 0, 0)
        image.write_bytes(b"BM" + header + os.urandom(3 * side**2))
        self.exits.enter_context(unittest.mock.patch.dict(os.environ, TMPDIR=str(disk.path)))
        output = {"transform": {"width": 390, "format": "png"}, "saveTo": str(self.folder / "output.png")}
        for cache in (disk.path, self.folder / "cache"):
            worker = self.worker(cache, "--files", str(self.folder))
            answers = [
                worker.call("process", file={"root": str(self.folder), "path": image.name}, outputs={"small": output}),
                worker.call("load", file={"path": str(image)}, transform=output["transform"]),
            ]
            self.assertEqual([answer["error"]["data"]["kind"] for answer in answers], ["diskFull"] * 2)
        self.assertFalse((self.folder / "output.png").exists())

    def test_query_names_no_file_that_is_missing(self) -> None:
        with self.worker(self.folder / "cache") as worker:
            self.load(worker, "kept-0S")
            found = worker.call("query", url=self.origin.url("kept-0S"))["result"]
            Path(found["path"]).unlink()
            missing = worker.call("query", url=self.origin.url("kept-0S"))["result"]
            self.assertTrue(found["disk"])
            self.assertFalse(missing["disk"])
            self.assertNotIn("path", missing)

    def test_a_read_only_disk_is_refused_as_the_cache_and_read_as_a_further_one(self) -> None:
        disk = self.exits.enter_context(Disk(self.folder / "disk", "9m"))
        with self.worker(disk.path) as worker:
            self.load(worker, "kept-0S")
            self.load(worker, "kept-1L")
        disk.make_read_only()
        refused = subprocess.run(
            [default_worker(), "--cache-dir", str(disk.path)], stdin=subprocess.DEVNULL, capture_output=True
        )
        self.assertEqual((refused.returncode, refused.stdout, refused.stderr.count(b"\n")), (73, b"", 1))
        self.assertIn(str(disk.path).encode(), refused.stderr)
        later = self.worker(self.folder / "cache", "--read-only-cache", str(disk.path))
        found = [self.load(later, name) for name in ("kept-0S", "kept-1L", "kept-2S")]
        self.assertEqual(found, ["disk", "disk", "miss"])
        self.assertEqual(later.log(), [])

    def test_a_directory_deleted_under_a_worker_is_made_again(self) -> None:
        cache = self.folder / "cache"
        worker = self.worker(cache)
        self.assertEqual(self.load(worker, "kept-0S"), "miss")
        shutil.rmtree(cache)
        for name in ("kept-0S", "kept-1L", "kept-2S"):
            self.assertEqual(self.load(worker, name), "miss")
            self.assertEqual(self.load(worker, name), "disk")
        self.assertEqual(worker.log(), [])
        worker.__exit__()
        self.assertEqual(self.load(self.worker(cache), "kept-1L"), "disk")

    def test_a_board_or_an_index_that_is_cut_short_costs_no_load(self) -> None:
        for file in ("board-3", "index.sqlite", "index.sqlite-wal"):
            with self.subTest(file):
                cache = self.folder / file
                workers = [self.worker(cache), self.worker(cache)]
                names = [f"kept-{number}S" for number in range(8)]
                for worker in workers:
                    for name in names:
                        self.load(worker, name)
                os.truncate(cache / "default" / file, 0)
                for name in [*names, "kept-8S", "kept-9L"]:
                    for worker in workers:
                        self.load(worker, name)
                for worker in workers:
                    self.assertLessEqual(len(worker.log()), 0 if file == "board-3" else 1, worker.log())
                    worker.__exit__()

    def test_files_that_are_missing_or_not_what_they_were_are_loaded_again(self) -> None:
        cache = self.folder / "cache"
        worker = self.worker(cache, "--verify", "always")
        damages = ["missing", "short", "long", "altered", "empty", "a folder"]
        for number, damage in enumerate(damages * 2):
            name = f"kept-{number}{'S' if number < len(damages) else 'L'}"
            first = Path(worker.call("load", url=self.origin.url(name))["result"]["path"])
            content = first.read_bytes()
            if damage == "short":
                os.truncate(first, len(content) - 1)
            elif damage == "long":
                first.write_bytes(content + b"x")
            elif damage == "altered":
                first.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
            elif damage == "empty":
                os.truncate(first, 0)
            else:
                first.unlink()
            if damage == "a folder":
                first.mkdir()
            with self.subTest(damage):
                self.assertEqual(self.load(worker, name), "miss")
                self.assertEqual(self.load(worker, name), "disk")
        self.assertEqual(worker.log(), [])

    def test_after_a_power_loss_zeros_are_not_served(self) -> None:
        """As if the machine had been started anew, and had written the index but not all of the images."""
        cache = self.folder / "cache"
        with self.worker(cache, "--verify", "random") as worker:
            names = [f"kept-{number}S" for number in range(8)]
            answers = [worker.call("load", url=self.origin.url(name)) for name in names]
        with contextlib.closing(sqlite3.connect(cache / "default" / "index.sqlite")) as index:
            index.execute("UPDATE responses SET boot = 12345")
            index.commit()
        for answer in answers[::2]:
            path = Path(answer["result"]["path"])
            path.write_bytes(bytes(path.stat().st_size))
        later = self.worker(cache, "--verify", "random")
        self.assertEqual([self.load(later, name) for name in names], ["miss", "disk"] * 4)
        self.assertEqual(later.log(), [])

    def test_an_index_of_a_newer_version_is_left_alone(self) -> None:
        cache = self.folder / "cache"
        with self.worker(cache) as worker:
            self.load(worker, "kept-0S")
        with contextlib.closing(sqlite3.connect(cache / "default" / "index.sqlite")) as index:
            index.execute("PRAGMA user_version = 1000")
        before = sorted(path for path in cache.rglob("*.png"))
        worker = self.worker(cache)
        self.assertEqual([self.load(worker, "kept-0S") for _ in range(3)], ["miss"] * 3)
        self.assertEqual(len(worker.log()), 1, worker.log())
        self.assertEqual(worker.call("clear")["result"], {"removed": 0, "bytes": 0})
        command = [default_worker(), "cache", "rm", "--all", "--cache-dir", str(cache)]
        removal = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual((removal.returncode, removal.stdout), (74, ""))
        self.assertIn("has version 1000 of the index", removal.stderr)
        self.assertEqual(sorted(path for path in cache.rglob("*.png")), before)


if __name__ == "__main__":
    unittest.main()
