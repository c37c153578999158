"""The place of finished shards: the output folder, or a URL of fsspec with a local folder for the shards under way."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any, Iterable, Optional, Sequence

from .lists import Problem, file_system


class Destination:
    """In an output folder, shards under way are beside the finished ones. Files for a URL are uploaded when their shard is finished, and
    then removed here."""

    def __init__(self, out: str, staging: Optional[Path]) -> None:
        self.name = out
        self.files: Any = None
        if "://" in out:
            self.files, self.root = file_system(out)
            cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
            self.staging = staging or cache / "imageworker-bulk" / hashlib.sha256(out.encode()).hexdigest()[:16]
        elif staging is not None:
            raise Problem(f"--staging is for an output with a URL; {out} is a folder")
        else:
            self.staging = Path(out)

    def prepare(self) -> None:
        self.staging.mkdir(parents=True, exist_ok=True)
        if self.files:
            self._do("create the folder", lambda: self.files.makedirs(self.root, exist_ok=True))

    def read(self, name: str) -> Optional[bytes]:
        """The content of a file; None if it does not exist."""

        def read() -> Optional[bytes]:
            try:
                return bytes(self.files.cat_file(f"{self.root}/{name}")) if self.files else (self.staging / name).read_bytes()
            except FileNotFoundError:
                return None

        content: Optional[bytes] = self._do(f"read {name}", read)
        return content

    def publish(self, paths: Sequence[Path]) -> None:
        """Moves finished files and folders from the staging folder to the output, the last one last."""
        if self.files:
            for path in paths:
                self._do(f"write {path.name}", lambda: self._put(path))
            remove(paths)

    def tidy(self, shard: str) -> None:
        """Removes the files of a published shard from the staging folder, after a kill had prevented it."""
        if self.files:
            remove(path for path in self.staging.glob(f"{shard}*") if path.suffix != ".partial")

    def _put(self, path: Path) -> None:
        target = f"{self.root}/{path.name}"
        if path.is_dir():
            self.files.makedirs(target, exist_ok=True)
            names = sorted(os.listdir(path))
            self.files.put([str(path / name) for name in names], [f"{target}/{name}" for name in names])
        else:
            self.files.put_file(str(path), target)

    def _do(self, purpose: str, work: Any) -> Any:
        try:
            return work()
        except Exception as error:  # Each file system of fsspec has errors of its own.
            raise Problem(f"cannot {purpose} at {self.name}: {error}. If that passes, the same command goes on from here") from error


def remove(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
