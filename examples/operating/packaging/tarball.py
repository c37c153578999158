"""The archive: the programs with all that they need of a system, to be unpacked anywhere."""

from __future__ import annotations

import hashlib
import shutil
import string
import subprocess
from pathlib import Path
from typing import Set

import libraries
from entry_point import use_own_linker
from notices import put_notices
from release_files import BINARIES, CLIENTS, Release, Stop, put, put_binaries, put_guide, put_text, tar
from stand_ins import is_left_out, left_out, put_converters, put_stand_in

PACKAGING = Path(__file__).parent
CERTIFICATES = Path("/usr/share/ca-certificates/mozilla")
"""Those of Debian's package. /etc/ssl/certs may also hold some that this machine's owner has added."""
FONTS = Path("/usr/share/fonts/truetype/dejavu")
FONT_FILES = [f"DejaVu{name}.ttf" for name in ("Sans", "Serif", "SansMono")]
"""fonts.conf makes bold and oblique ones of them."""


def put_programs(release: Release, folder: Path, work: Path) -> None:
    """Fills the folder with the programs, their libraries, certificates, fonts and licences."""
    put_binaries(release, folder)
    for name in BINARIES:
        use_own_linker(folder / name, release.build / name)
    packages = _put_libraries(release, folder, work)
    certificates = [path.read_text("ascii").strip() + "\n" for path in sorted(CERTIFICATES.glob("*.crt"))]
    put_text("".join(certificates), folder / "share/ca-certificates.crt")
    put(PACKAGING / "fonts.conf", folder / "share/fonts/fonts.conf")
    for name in FONT_FILES:
        put(FONTS / name, folder / "share/fonts" / name)
    put_notices(packages | {"ca-certificates", "fonts-dejavu-core"}, folder / "notices")
    check = [f"{folder}/imageworker", "--self-test", "--cache-dir", f"{work}/cache"]
    ended = subprocess.run(check, stdout=subprocess.PIPE, text=True)
    if ended.returncode != 0 or "warning  formats" in ended.stdout:
        raise Stop(f"the packed worker does not work:\n{ended.stdout}")


def pack(release: Release, programs: Path, work: Path, output: Path) -> Path:
    name = release.archive
    folder = work / name
    shutil.copytree(programs, folder)
    for client in CLIENTS:
        put(release.root / "examples" / client, folder / "clients" / client)
    put_guide(release, folder / "protocol", folder / "clients")
    template = string.Template((PACKAGING / "README.txt").read_text("utf-8"))
    put_text(template.substitute(version=release.version, architecture=release.architecture), folder / "README.txt")
    _put_checksums(folder)
    archive = output / f"{name}.tar.gz"
    tar(release, folder, archive)
    return archive


def _put_libraries(release: Release, folder: Path, work: Path) -> Set[str]:
    """Returns the packages that the libraries come from."""
    binaries = [release.build / name for name in BINARIES]
    modules = libraries.modules(libraries.loaded_by(binaries))
    plugins = libraries.plugins(libraries.loaded_by(modules))
    opened = [*modules, *plugins]
    places = {module: module.parent.name for module in modules}
    places.update((plugin, "libheif-plugins") for plugin in plugins)
    needed = libraries.needed_by([*binaries, *opened], libraries.loaded_by([*binaries, *opened])) | set(opened)
    whole = {library for library in needed if not is_left_out(library.name)}
    owners = libraries.owners(whole)
    for library in needed:
        target = folder / "lib" / places.get(library, "") / library.name
        target.parent.mkdir(parents=True, exist_ok=True)
        if library not in whole:
            put_stand_in(library, [*binaries, *whole], target)
        elif library.name.startswith("libicudata.so."):
            put_converters(library, target, work)
        else:
            put(library, target)
        target.chmod(0o644)
    for file, place in libraries.conversions(whole).items():
        put(file, folder / "lib/gconv" / place)
    if not (folder / "lib" / libraries.LINKERS[release.architecture]).is_file():
        raise Stop("the dynamic linker is not among the libraries")
    put_text(left_out([library.name for library in needed - whole]), folder / "notices/LEFT-OUT.txt")
    return set(owners.values())


def _put_checksums(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in files]
    put_text("".join(lines), folder / "SHA256SUMS")
