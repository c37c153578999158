"""`saveTo` at symbolic links, folders, pipes and devices, asked of the built worker."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import unittest
from pathlib import Path
from typing import Any

from kills_origin import ChangingOrigin, Picture, body_of
from test_cache_disk import Worker

NAME = "kept-0S"


class SaveTo(unittest.TestCase):
    def setUp(self) -> None:
        exits = contextlib.ExitStack()
        self.addCleanup(exits.close)
        self.folder = Path(exits.enter_context(tempfile.TemporaryDirectory())).resolve()
        self.origin = ChangingOrigin(seed=1, manners={"good": 1})
        exits.callback(self.origin.close)
        self.worker = exits.enter_context(Worker(self.folder / "cache"))
        self.places = self.folder / "places"
        self.places.mkdir()

    def save(self, place: str) -> dict[str, Any]:
        return self.worker.call("load", url=self.origin.url(NAME), saveTo=place)

    def tree(self) -> dict[str, str]:
        """The kind and destination of each name below `places`."""
        paths = self.places.rglob("*")
        kinds = {path: os.readlink(path) if path.is_symlink() else oct(path.stat().st_mode) for path in paths}
        return {str(path.relative_to(self.places)): kind for path, kind in kinds.items()}

    def assert_refused(self, place: str) -> None:
        before = self.tree()
        # First as it is transferred, then from the cache.
        self.worker.call("clear")
        for _ in range(2):
            with self.subTest(place):
                answer = self.save(place)
                self.assertEqual(answer.get("error", {}).get("data", {}).get("kind"), "io", answer)
                self.assertIn(place, answer["error"]["message"])
                self.assertEqual(self.tree(), before)

    def test_a_link_is_followed_to_a_regular_file_and_stays(self) -> None:
        (self.places / "elsewhere").mkdir()
        file = self.places / "elsewhere" / "file"
        (self.places / "absolute").symlink_to(file)
        (self.places / "relative").symlink_to("elsewhere/second")
        (self.places / "elsewhere" / "second").symlink_to("file")
        (self.places / "folder").symlink_to("elsewhere")
        for name in ("absolute", "relative", "folder/second", "folder/file"):
            for how in ("miss", "memory"):
                with self.subTest(name, how=how):
                    if how == "miss":
                        self.worker.call("clear")
                    file.write_bytes(b"before")
                    before = self.tree()
                    answer = self.save(str(self.places / name))
                    self.assertEqual(answer.get("result", {}).get("cache"), how, answer)
                    self.assertEqual(file.read_bytes(), body_of(Picture(NAME, 1, "-")))
                    self.assertEqual(self.tree(), before)

    def test_a_link_to_nothing_to_itself_or_to_a_folder_is_refused(self) -> None:
        os.mkfifo(self.places / "pipe")
        destinations = ["nothing", "no/where", "link", ".", "..", "/", str(self.folder / "nothing"), "pipe"]
        for destination in destinations:
            link = self.places / "link"
            link.symlink_to(destination)
            self.assert_refused(str(link))
            link.unlink()

    def test_a_folder_a_pipe_and_a_device_are_refused(self) -> None:
        (self.places / "folder").mkdir()
        os.mkfifo(self.places / "pipe")
        names = ["folder", "pipe", "folder/.", "folder/.."]
        with contextlib.suppress(PermissionError):
            os.mknod(self.places / "null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
            names.append("null")
        for name in names:
            self.assert_refused(str(self.places / name))
        answer = self.save(f"{self.places / 'folder'}/")
        self.assertEqual(answer["error"]["code"], -32602, answer)

    @unittest.skipUnless(os.path.isdir("/proc/self/fd"), "there are such names on Linux only")
    def test_no_way_leads_into_proc_or_dev(self) -> None:
        """Nothing that the machine has in /dev is named, since a worker that gets this wrong would replace it."""
        process = self.worker.process
        missing = Path("/dev/imageworker-test")
        self.addCleanup(missing.unlink, missing_ok=True)
        (self.places / "fds").symlink_to(f"/proc/{process}/fd")
        (self.places / "devices").symlink_to("/dev")
        direct = [f"/proc/{process}/fd/2", "/proc/self/fd/2", "/dev/fd/2", "/proc/imageworker-test", str(missing)]
        for place in [*direct, str(self.places / "fds" / "2"), str(self.places / "devices" / missing.name)]:
            self.assert_refused(place)
        for destination in direct:
            link = self.places / "link"
            link.symlink_to(destination)
            self.assert_refused(str(link))
            link.unlink()
        self.assertFalse(missing.exists())
        # All loads of this test fail, and a warning says so.
        self.assertEqual([line for line in self.worker.log() if "loads of the last minute failed" not in line], [])


if __name__ == "__main__":
    unittest.main()
