"""The place of finished shards: the output folder, or a URL of fsspec with a local folder for the shards under way."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any, Iterable, Optional, Sequence, Union

from lists import Problem


class Folder:
    """A local output folder. Shards under way are in it as well."""

    def __init__(self, path: Path) -> None:
        self.staging = path
        self.name = str(path)

    def prepare(self) -> None:
        self.staging.mkdir(parents=True, exist_ok=True)

    def read(self, name: str) -> Optional[bytes]:
        """The content of a file; None if it does not exist."""
        try:
            return (self.staging / name).read_bytes()
        except FileNotFoundError:
            return None

    def publish(self, paths: Sequence[Path]) -> None:
        """Moves finished files and folders from the staging folder to the output, the last one last. They are there already."""

    def tidy(self, shard: str) -> None:
        """Removes the files of a published shard from the staging folder, after a kill had prevented it. It has no copies."""


class Remote:
    """A URL of fsspec, such as s3://bucket/folder. Files are uploaded when their shard is finished, and then removed here."""

    def __init__(self, url: str, staging: Optional[Path]) -> None:
        try:
            import fsspec  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ModuleNotFoundError:
            raise Problem(f"the output {url} needs fsspec: pip install fsspec. Only a folder works without it") from None
        try:
            self.files, self.root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise Problem(f"fsspec cannot write to {url}: {error}") from error
        self.name = url
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self.staging = staging or cache / "imageworker-bulk" / hashlib.sha256(url.encode()).hexdigest()[:16]

    def prepare(self) -> None:
        self.staging.mkdir(parents=True, exist_ok=True)
        self._do("create the folder", lambda: self.files.makedirs(self.root, exist_ok=True))

    def read(self, name: str) -> Optional[bytes]:
        def read() -> Optional[bytes]:
            try:
                return bytes(self.files.cat_file(f"{self.root}/{name}"))
            except FileNotFoundError:
                return None

        content: Optional[bytes] = self._do(f"read {name}", read)
        return content

    def publish(self, paths: Sequence[Path]) -> None:
        for path in paths:
            self._do(f"write {path.name}", lambda: self._put(path))
        self._remove(paths)

    def tidy(self, shard: str) -> None:
        self._remove(path for path in self.staging.glob(f"{shard}*") if path.suffix != ".partial")

    @staticmethod
    def _remove(paths: Iterable[Path]) -> None:
        for path in paths:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

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


Destination = Union[Folder, Remote]


def destination(out: str, staging: Optional[Path]) -> Destination:
    if "://" in out:
        return Remote(out, staging)
    if staging is not None:
        raise Problem(f"--staging is for an output with a URL; {out} is a folder")
    return Folder(Path(out))
