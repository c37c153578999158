"""The images of a shard with their metadata and captions, as files in a folder or as members of a tar file."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path
from typing import Sequence, Tuple

from .ledgers import Record


class Files:
    """A folder NNNNN. Its files have their final names from the start. They count if the ledger has a line for them."""

    def __init__(self, folder: Path, shard: str, number: int) -> None:
        self.path = folder / shard
        self.path.mkdir(exist_ok=True)

    def restore(self, lines: Sequence[Record], earlier: Sequence[Record]) -> bool:
        """Removes what no line is about. Returns whether the samples of `lines`, those of this pass, are there."""
        keys, known = ({line["key"] for line in some if "key" in line} for some in (lines, earlier))
        found = {path: path.name.partition(".")[0] for path in self.path.iterdir()}
        for path, key in found.items():
            if key not in keys and key not in known:
                path.unlink()
        return keys <= set(found.values())

    def add(self, key: str, parts: Sequence[Tuple[str, bytes]]) -> dict[str, int]:
        """Adds a sample: files by their extensions. Returns the columns of its place in a tar file."""
        for extension, content in parts:
            with open(f"{self.path}/{key}.{extension}", "wb") as file:
                file.write(content)
        return {}

    def finish(self) -> bool:
        """Completes the file or folder. Returns whether there is one."""
        return True


class WebDataset:
    """A file NNNNN.tar, or NNNNN.1.tar of a second pass, whose members with a name that is equal up to the first dot are one sample."""

    def __init__(self, folder: Path, shard: str, number: int) -> None:
        self.path = folder / (f"{shard}.{number}.tar" if number else f"{shard}.tar")
        self.partial = folder / f"{shard}.{number}.tar.partial"
        if self.path.exists():  # A run was killed after it had finished this file, and before it had finished the shard.
            self.path.rename(self.partial)
        self.tar = self.partial.open("ab")

    def restore(self, lines: Sequence[Record], earlier: Sequence[Record]) -> bool:
        """Cuts off what follows the last sample that a line is about. Returns whether the file has so many bytes."""
        end: int = max((line["tar_offset"] + line["tar_bytes"] for line in lines if "key" in line), default=0)
        is_complete = self.partial.stat().st_size >= end
        self.end = end if is_complete else 0
        self.tar.truncate(self.end)
        return is_complete

    def add(self, key: str, parts: Sequence[Tuple[str, bytes]]) -> dict[str, int]:
        pieces: list[bytes] = []
        for extension, content in parts:
            pieces += (header(f"{key}.{extension}", len(content)), content, bytes(-len(content) % tarfile.BLOCKSIZE))
        sample, offset = b"".join(pieces), self.end
        self.tar.write(sample)
        self.tar.flush()
        self.end += len(sample)
        return {"tar_offset": offset, "tar_bytes": len(sample)}

    def finish(self) -> bool:
        if self.end == 0:  # Readers refuse a tar file without members.
            self.partial.unlink()
            return False
        self.tar.write(bytes(2 * tarfile.BLOCKSIZE))
        self.tar.flush()
        os.fsync(self.tar.fileno())
        self.tar.close()
        self.partial.rename(self.path)
        return True


EMPTY = tarfile.TarInfo().tobuf(tarfile.USTAR_FORMAT)
"""The header of an empty file without a name."""

EMPTY_SUM = int(EMPTY[148:154], 8)


def header(name: str, size: int) -> bytes:
    """The header of a file (POSIX.1-2017, pax, "ustar Interchange Format"). `TarInfo.tobuf` takes ten times as long.

    `name` has at most 100 bytes, and `size` is less than 8 GB.
    """
    own_name, own_size = name.encode().ljust(100, b"\0"), b"%011o" % size
    checksum = b"%06o" % (EMPTY_SUM + sum(own_name) + sum(own_size) - sum(EMPTY[124:135]))
    return own_name + EMPTY[100:124] + own_size + EMPTY[135:148] + checksum + EMPTY[154:]
