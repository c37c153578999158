"""What the packages are made from."""

from __future__ import annotations

import re
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
    def level_of_others(self) -> int:
        """The level for zlib and xz."""
        return min(self.level, 9)

    @property
    def archive(self) -> str:
        """The name of the archive, and of the folder in it."""
        return f"imageworker-{self.version}-linux-{self.architecture}"


BINARIES = ("imageworker", "imageworker-codec", "imageworker-plain")
CLIENTS = ("python/imageworker.py", "node/imageworker.mjs", "node/imageworker.d.mts", "node/imageworker.d.ts")
"""In the folder examples."""
GUIDE = (
    "protocol/*.*", "protocol/transcripts/*", "protocol/images/*.svg", "examples/operating/*.*",
    "examples/bulk/README.md", "examples/node/README.md", "examples/python/README.md",
)  # fmt: skip
LINK = re.compile(r"(?ms)^ *```.*?^ *```|`[^`\n]*`|!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?![a-z]+:)([^()\s#]+)[^()\s]*\)")
"""A link to a file or a picture, with its text and its path; or code, which has neither."""


def put_guide(release: Release, folder: Path) -> None:
    """Copies the pages about the protocol, the clients and operations, in the folders that they have in the sources. Links
    to what is not in the folder become text, so all else must be there before."""
    files = [file.relative_to(release.root) for pattern in GUIDE for file in release.root.glob(pattern) if file.is_file()]
    for file in files:
        put(release.root / file, folder / file)
    for page in (folder / file for file in files if file.suffix == ".md"):
        text = page.read_text("utf-8")
        page.write_text(LINK.sub(lambda link: link[0] if not link[2] or (page.parent / link[2]).exists() else link[1], text), "utf-8")


def put_package(release: Release, programs: Path, package: Path) -> None:
    """Writes `bin`, `guide` and `notices` of the wheel and of the package for npm."""
    shutil.copytree(programs, package / "bin")
    (package / "bin" / "notices").rename(package / "notices")
    put_guide(release, package / "guide")


def toolchain() -> Path:
    """The folder `usr` of the Swift toolchain."""
    swift = shutil.which("swift")
    if swift is None:
        raise Stop("swift is not on PATH")
    return Path(swift).resolve().parents[1]


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
