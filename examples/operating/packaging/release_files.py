"""What the packages are made from."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence, Union


class Stop(Exception):
    """The reason that there is no release."""


@dataclass(frozen=True)
class Release:
    root: Path
    build: Path
    version: str
    architecture: str
    """As `uname` calls it."""
    time: int
    """The time of all packed files, in seconds since 1970."""

    @property
    def archive(self) -> str:
        """The name of the archive, and of the folder in it."""
        return f"imageworker-{self.version}-linux-{self.architecture}"


BINARIES = ("imageworker", "imageworker-codec", "imageworker-plain")
CLIENTS = ("python/imageworker.py", "node/imageworker.mjs", "node/imageworker.d.mts", "node/imageworker.d.ts")
"""In the folder examples."""


def put_guide(release: Release, protocol: Path, examples: Path) -> None:
    """Copies openrpc.json, the pages about the protocol, and those about the clients, which lead to them by `../../protocol`."""
    pages = release.root / "protocol"
    for page in [pages / "openrpc.json", *pages.glob("*.md"), *(pages / "images").iterdir()]:
        put(page, protocol / page.relative_to(pages))
    for client in {Path(client).parent for client in CLIENTS}:
        put(release.root / "examples" / client / "README.md", examples / client / "README.md")


def put_package(release: Release, work: Path, package: Path) -> None:
    """Writes `bin`, `guide` and `notices` of the wheel and of the package for npm, from the folder that is packed as the archive.

    `bin` gets the worker and its files: all files of the archive except those that are named here.
    """
    archive = work / release.archive
    others = ("README.txt", "SHA256SUMS", "clients", "notices", "protocol")
    put_folder(archive, package / "bin", without=others)
    put_folder(archive / "notices", package / "notices")
    put_guide(release, package / "guide" / "protocol", package / "guide" / "clients")


def put_folder(source: Path, target: Path, without: Sequence[str] = ()) -> None:
    for path in source.rglob("*"):
        place = path.relative_to(source)
        if path.is_file() and place.parts[0] not in without:
            put(path, target / place)


def said(*command: Union[str, Path]) -> str:
    """The standard output of a command that must succeed."""
    return subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout


def put(source: Path, target: Path) -> None:
    """Copies a file with its permission to be executed, but not with its other permissions."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    if source.stat().st_mode & 0o100:
        target.chmod(0o755)


def put_text(text: str, target: Path, mode: int = 0o644) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, "utf-8")
    target.chmod(mode)


def put_binaries(release: Release, folder: Path, *run_path: str) -> None:
    """Copies both binaries without symbols. `run_path` is what patchelf does with their run path."""
    for name in BINARIES:
        put(release.build / name, folder / name)
        subprocess.run(["strip", folder / name], check=True)
        subprocess.run(["patchelf", *run_path, folder / name], check=True)
