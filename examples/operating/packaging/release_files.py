"""What the packages are made from."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Union


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
    level: int
    """How well the packages are compressed, 1 to 12 as in libdeflate."""

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


def put_package(release: Release, programs: Path, package: Path) -> None:
    """Writes `bin`, `guide` and `notices` of the wheel and of the package for npm."""
    shutil.copytree(programs, package / "bin")
    (package / "bin" / "notices").rename(package / "notices")
    put_guide(release, package / "guide" / "protocol", package / "guide" / "clients")


def tar(release: Release, folder: Path, archive: Path) -> None:
    """Packs a folder so that the same files give the same bytes, whoever owns them."""
    whole = folder.parent / "whole.tar"
    with tarfile.open(whole, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(str(path.relative_to(folder.parent)))
            entry.size = path.stat().st_size
            entry.mode = path.stat().st_mode & 0o777
            entry.mtime = release.time
            with path.open("rb") as content:
                tar.addfile(entry, content)
    with archive.open("wb") as file:  # 4 % smaller than zlib's
        subprocess.run(["libdeflate-gzip", f"-{release.level}", "-n", "-c", whole], check=True, stdout=file)
    whole.unlink()


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


def put_binaries(release: Release, folder: Path) -> None:
    """Copies the binaries without symbols, and without the places of the toolchain's libraries, which they do not use."""
    for name in BINARIES:
        put(release.build / name, folder / name)
        subprocess.run(["strip", folder / name], check=True)
        subprocess.run(["patchelf", "--remove-rpath", folder / name], check=True)
