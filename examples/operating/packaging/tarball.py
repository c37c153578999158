"""The tarball: both binaries with all shared libraries but glibc's, to be unpacked anywhere."""

from __future__ import annotations

import hashlib
import string
import subprocess
from pathlib import Path
from typing import Tuple

import libraries
from notices import put_notices
from release_files import BINARIES, CLIENTS, Release, Stop, put, put_binaries, put_guide, put_text

RUN_PATH = ("--force-rpath", "--set-rpath", "$ORIGIN/lib")
"""DT_RPATH instead of DT_RUNPATH: it also serves the libraries of libraries and of modules, see ld.so(8). So the libraries
need no run path of their own, and are packed as Debian ships them."""


def pack(release: Release, floor: Tuple[int, ...], work: Path, output: Path) -> Path:
    name = release.archive
    folder = work / name
    put_binaries(release, folder, *RUN_PATH)
    packages = _put_libraries(release, folder / "lib")
    for client in CLIENTS:
        put(release.root / "examples" / client, folder / "clients" / client)
    put_guide(release, folder / "protocol", folder / "clients")
    put_notices(packages, folder / "notices")
    glibc = check_glibc(folder, floor)
    template = string.Template((Path(__file__).parent / "README.txt").read_text("utf-8"))
    put_text(template.substitute(version=release.version, architecture=release.architecture, glibc=glibc), folder / "README.txt")
    _put_checksums(folder)

    archive = output / f"{name}.tar.gz"
    with archive.open("wb") as file:
        sorted_tar = ["tar", "--create", "--format=gnu", "--sort=name", f"--mtime=@{release.time}"]
        sorted_tar += ["--owner=0", "--group=0", "--numeric-owner", f"--directory={work}", name]
        with subprocess.Popen(sorted_tar, stdout=subprocess.PIPE) as tar:
            subprocess.run(["gzip", "--no-name"], stdin=tar.stdout, stdout=file, check=True)
        if tar.returncode != 0:
            raise Stop(f"tar ended with status {tar.returncode}")
    return archive


def _put_libraries(release: Release, folder: Path) -> set[str]:
    """Returns the packages that the libraries come from."""
    binaries = [release.build / name for name in BINARIES]
    modules = libraries.modules(libraries.loaded_by(binaries))
    owners = libraries.owners(libraries.loaded_by([*binaries, *modules]) | set(modules))
    for library, package in owners.items():
        if library in modules:
            put(library, folder / library.parent.name / library.name)
        elif package != libraries.GLIBC:
            put(library, folder / library.name)
    return set(owners.values()) - {libraries.GLIBC}


def check_glibc(folder: Path, floor: Tuple[int, ...]) -> str:
    needed = libraries.needed_glibc([*(folder / name for name in BINARIES), *sorted((folder / "lib").rglob("*.so*"))])
    version = ".".join(map(str, needed))
    print(f"{folder.name} needs glibc {version}")
    if needed > floor:
        raise Stop(f"glibc {version} is newer than the floor, {'.'.join(map(str, floor))}: run this on an older system")
    return version


def _put_checksums(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in files]
    put_text("".join(lines), folder / "SHA256SUMS")
