"""Reads a cache directory that no worker has open, and compares its files with its index."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import sqlite3
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from kills_oracle import Book, Violation
from kills_origin import body_of, picture_of

BLOCK = 4096
STAYS = 50.0
"""Seconds for which a delivered path is looked for; it is promised for a little longer."""
PINNED = 65.0
"""Seconds after which a delivery is no excuse any more."""
UNNOTED = 4.0
"""Seconds after which the index surely knows of a delivery. A worker that dies before takes that along."""


def allocated(size: int) -> int:
    return (size + BLOCK - 1) // BLOCK * BLOCK


@dataclass
class Found:
    """The content of the folder."""

    files: dict[str, int] = field(default_factory=dict)
    """The size of each image and temporary file, by its path in the folder."""
    listed: set[str] = field(default_factory=set)
    """Files that the index knows of."""
    missing: set[str] = field(default_factory=set)
    """Files of rows that are not there."""
    workers: set[str] = field(default_factory=set)
    """Instance numbers that have a lock file."""

    @property
    def orphans(self) -> set[str]:
        return set(self.files) - self.listed


def instance(file: str) -> str:
    return file.rpartition("/")[2][:8]


class Inspector:
    """Compares what is there now with what was there after the death before."""

    def __init__(self, folder: Path, book: Book) -> None:
        self._folder = folder
        self._book = book
        self._known: dict[str, bytes] = {}
        self._total = 0
        self._last = Found()

    def forget(self) -> None:
        """The directory was removed."""
        self._known, self._total, self._last = {}, 0, Found()

    def files(self) -> Found:
        found = Found()
        for path in self._folder.glob("[0-9a-f][0-9a-f]/*"):
            with contextlib.suppress(FileNotFoundError):  # It has just been swept.
                found.files["/".join(path.parts[-2:])] = path.stat().st_size
        found.workers = {path.stem for path in self._folder.glob("workers/*.lock") if path.stem != "index"}
        return found

    def torn(self, living: set[str]) -> set[str]:
        """Temporary files of the dead that nobody may go on with."""
        temporary = {path for path in self.files().files if path.endswith(".tmp") and instance(path) not in living}
        if not temporary:
            return set()
        index = sqlite3.connect(f"file:{self._folder}/index.sqlite?mode=ro", uri=True, timeout=30)
        with contextlib.closing(index):
            return temporary - {name(*row) for row in index.execute("SELECT id FROM partials")}

    def inspect(self, limit: int, death: float) -> Found:
        """After all have died, the last of them at `death`, with a disk limit of at most `limit`."""
        found = self.files()
        if not (self._folder / "index.sqlite").exists():
            if found.listed:
                raise Violation("images without an index")
            return found
        with tempfile.TemporaryDirectory() as copies:
            # Reading may have to roll back what was not committed; that is for the next worker to do.
            for path in self._folder.glob("index.sqlite*"):
                if not path.name.endswith("-shm"):
                    shutil.copy(path, copies)
            with contextlib.closing(sqlite3.connect(f"{copies}/index.sqlite")) as index:
                if index.execute("PRAGMA user_version").fetchone()[0] == 0:
                    return found
                if (problem := index.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
                    raise Violation(f"the index is broken: {problem}")
                self._compare(found, index)
        self._check_delivered(death)
        self._check_limit(found, limit)
        self._last = found
        return found

    def _compare(self, found: Found, index: sqlite3.Connection) -> None:
        sums = 0
        entries = 0
        rows = index.execute("SELECT id, digest, format, bytes, allocated FROM responses").fetchall()
        for row_id, digest, kind, size, taken in rows:
            entries, sums = entries + 1, sums + taken
            file = name(row_id, digest, kind)
            found.listed.add(file)
            if file not in found.files:
                found.missing.add(file)
                continue
            if found.files[file] != size or taken != allocated(size):
                raise Violation(f"{file} has {found.files[file]} bytes; its row says {size}, {taken} allocated")
            self._check_content(file, digest)
        for file, taken in index.execute("SELECT file, allocated FROM doomed"):
            sums += taken
            found.listed.add(file)
        for row_id, taken in index.execute("SELECT id, allocated FROM partials"):
            sums += taken
            found.listed.add(name(row_id))
        [total] = index.execute("SELECT entries, bytes FROM totals").fetchall()
        if total != (entries, sums):
            raise Violation(f"totals says {total}; it is {(entries, sums)}")
        for file in found.orphans:
            if instance(file) not in found.workers:
                raise Violation(f"nobody will sweep {file}: there are {found.workers}")

    def _check_content(self, file: str, digest: bytes) -> None:
        """A file is read once; its bytes never change, and its time would tell."""
        status = (self._folder / file).stat()
        stamp = digest + f"{status.st_ino} {status.st_mtime_ns}".encode()
        if self._known.get(file) == stamp:
            return
        content = (self._folder / file).read_bytes()
        picture = picture_of(content)
        if hashlib.sha256(content).digest() != digest or picture is None or content != body_of(picture):
            raise Violation(f"{file} has other bytes than its row says: {picture}")
        self._known[file] = stamp

    def _check_delivered(self, death: float) -> None:
        now = time.monotonic()
        for path, deliveries in list(self._book.delivered.items()):
            deliveries[:] = [each for each in deliveries if now - each.at <= STAYS]
            if not deliveries:
                del self._book.delivered[path]
                continue
            try:
                content: Optional[bytes] = Path(path).read_bytes()
            except FileNotFoundError:
                content = None
            for delivery in deliveries:
                died = self._book.deaths.get(delivery.session, death)
                if content is None and not delivery.is_new and died - delivery.at < UNNOTED:
                    continue
                if content != delivery.content:
                    how = "is gone" if content is None else "has changed"
                    raise Violation(f"{path} {how} after {now - delivery.at:.1f} s: {delivery.session}")

    def _check_limit(self, found: Found, limit: int) -> None:
        """But for what was delivered lately, and what those left who died before."""
        counted = {
            file: allocated(size)
            for file, size in found.files.items()
            if file not in self._last.orphans and not self._was_delivered(file)
        }
        total = sum(counted.values())
        if total > max(limit, self._total):
            files = {file: (size, file in found.listed, file in self._last.files) for file, size in counted.items()}
            raise Violation(f"{total} bytes, with a limit of {limit} and {self._total} before: {files}")
        self._total = total

    def _was_delivered(self, file: str) -> bool:
        try:
            with (self._folder / file).open("rb") as opened:
                picture = picture_of(opened.read(200))
        except FileNotFoundError:
            return False
        if picture is None:
            return False
        times = [self._book.digests.get(picture.tag.encode()), self._book.perhaps.get(picture.name)]
        return any(at is not None and time.monotonic() - at < PINNED for at in times)


def name(row_id: int, digest: bytes = b"", kind: Optional[str] = None) -> str:
    """A file's name as the index means it; that of a temporary file without a digest."""
    start = f"{row_id & 0xFF:02x}/{row_id:016x}"
    if not digest:
        return start + ".tmp"
    return f"{start}-{digest[:4].hex()}.{kind or 'bin'}"
