"""The images of a shard with their metadata and captions, as files in a folder or as members of a tar file."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path
from typing import NamedTuple, Optional, Sequence


class Part(NamedTuple):
    """A file of a sample."""

    extension: str
    content: bytes
    saved: Optional[str] = None
    """The path of the file that the worker has saved with this content."""


class Files:
    """A folder NNNNN. Its files have their final names from the start. They count if the ledger has a line for them."""

    def __init__(self, folder: Path, shard: str, number: int) -> None:
        self.path = folder / shard
        self.path.mkdir(exist_ok=True)

    def restore(self, end: int, keys: set[str], earlier: set[str]) -> bool:
        """Removes what no line is about. Returns whether the samples of `keys`, those of this pass, are there."""
        found = set()
        for path in self.path.iterdir():
            key = path.name.partition(".")[0]
            found.add(key)
            if key not in keys and key not in earlier:
                path.unlink()
        return keys <= found

    def add(self, key: str, parts: Sequence[Part]) -> dict[str, int]:
        """Adds a sample. Returns the columns of its place in a tar file."""
        for part in parts:
            path = os.path.join(self.path, f"{key}.{part.extension}")
            if part.saved is not None:
                os.rename(part.saved, path)
            else:
                with open(path, "wb") as file:
                    file.write(part.content)
        return {}

    def finish(self) -> Optional[Path]:
        """Returns the finished file or folder; None for an empty shard."""
        return self.path


class WebDataset:
    """A file NNNNN.tar, or NNNNN.1.tar of a second pass, whose members with a name that is equal up to the first dot are one sample."""

    def __init__(self, folder: Path, shard: str, number: int) -> None:
        self.number = number
        self.path = folder / (f"{shard}.{number}.tar" if number else f"{shard}.tar")
        self.partial = folder / f"{shard}.{number}.tar.partial"
        if self.path.exists():  # A run was killed after it had finished this file, and before it had finished the shard.
            self.path.rename(self.partial)
        self.tar = self.partial.open("r+b" if self.partial.exists() else "w+b")

    def restore(self, end: int, keys: set[str], earlier: set[str]) -> bool:
        """Cuts off what follows `end`, the end of the last sample that a line is about. Returns whether the file has so many bytes."""
        is_complete = self.tar.seek(0, os.SEEK_END) >= end
        self.tar.truncate(end if is_complete else 0)
        self.tar.seek(0, os.SEEK_END)
        return is_complete

    def add(self, key: str, parts: Sequence[Part]) -> dict[str, int]:
        offset = self.tar.tell()
        self.tar.write(b"".join(piece for part in parts for piece in self._member(f"{key}.{part.extension}", part.content)))
        self.tar.flush()
        for part in parts:
            if part.saved is not None:
                os.unlink(part.saved)
        return {"tar_offset": offset, "tar_bytes": self.tar.tell() - offset}

    @staticmethod
    def _member(name: str, content: bytes) -> Sequence[bytes]:
        """A member's bytes. TarFile would search for extended headers that these members never need, and store every member."""
        info = tarfile.TarInfo(name)
        info.size = len(content)
        return info.tobuf(tarfile.USTAR_FORMAT), content, bytes(-len(content) % tarfile.BLOCKSIZE)

    def finish(self) -> Optional[Path]:
        is_empty = self.tar.tell() == 0
        self.tar.write(bytes(2 * tarfile.BLOCKSIZE))
        self.tar.flush()
        os.fsync(self.tar.fileno())
        self.tar.close()
        if is_empty and self.number:
            self.partial.unlink()
            return None
        self.partial.rename(self.path)
        return self.path
