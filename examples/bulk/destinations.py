"""The place of finished shards: the output folder, or a URL of fsspec with a local folder for the shards under way."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from pathlib import Path
from typing import Any, Iterable, Iterator, Optional, Sequence

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
        self.staging.mkdir(parents=True, exist_ok=True)
        if self.files:
            with self._problems("create the folder"):
                self.files.makedirs(self.root, exist_ok=True)

    def read(self, name: str) -> Optional[bytes]:
        """The content of a file; None if it does not exist."""
        with self._problems(f"read {name}"), contextlib.suppress(FileNotFoundError):
            return bytes(self.files.cat_file(f"{self.root}/{name}")) if self.files else (self.staging / name).read_bytes()
        return None

    def publish(self, paths: Sequence[Path]) -> None:
        """Moves finished files and folders from the staging folder to the output, the last one last."""
        for path in paths if self.files else ():
            names = [f"{path.name}/{name}" for name in sorted(os.listdir(path))] if path.is_dir() else [path.name]
            with self._problems(f"write {path.name}"):
                if path.is_dir():
                    self.files.makedirs(f"{self.root}/{path.name}", exist_ok=True)
                self.files.put([str(path.parent / name) for name in names], [f"{self.root}/{name}" for name in names])
        if self.files:
            remove(paths)

    @contextlib.contextmanager
    def _problems(self, purpose: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # Each file system of fsspec has errors of its own.
            raise Problem(f"cannot {purpose} at {self.name}: {error}. If that passes, the same command goes on from here") from error


def remove(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
