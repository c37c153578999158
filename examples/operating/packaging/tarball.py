"""The archive: the programs with all that they need of a system, to be unpacked anywhere."""

from __future__ import annotations

import hashlib
import shutil
import string
import subprocess
from pathlib import Path
from typing import Set

import libraries
from entry_point import hide_system, use_own_linker
from notices import put_notices
from release_files import BINARIES, CLIENTS, Release, Stop, put, put_binaries, put_guide, put_text, tar
from stand_ins import is_left_out, left_out, put_converters, put_stand_in

PACKAGING = Path(__file__).parent
CERTIFICATES = Path("/usr/share/ca-certificates/mozilla")
"""Those of Debian's package. /etc/ssl/certs may also hold some that this machine's owner has added."""
FONT_FILES = [Path(f"/usr/share/fonts/truetype/dejavu/DejaVu{name}.ttf") for name in ("Sans", "Serif", "SansMono")]
"""fonts.conf makes bold and oblique ones of them."""


def put_programs(release: Release, folder: Path, work: Path) -> None:
    """Fills the folder with the programs, their libraries, certificates, fonts and licences."""
    put_binaries(release, folder)
    for name in BINARIES:
        use_own_linker(folder / name, release.build / name)
    files = _put_libraries(release, folder, work)
    certificates = sorted(CERTIFICATES.glob("*.crt"))
    put_text("".join(path.read_text("ascii").strip() + "\n" for path in certificates), folder / "share/ca-certificates.crt")
    put(PACKAGING / "fonts.conf", folder / "share/fonts/fonts.conf")
    for font in FONT_FILES:
        put(font, folder / "share/fonts" / font.name)
    put_notices(libraries.owners([*files, *certificates, *FONT_FILES]), folder / "notices")
    check = [f"{folder}/imageworker", "--self-test", "--cache-dir", f"{work}/cache"]
    ended = subprocess.run(check, stdout=subprocess.PIPE, text=True)
    if ended.returncode != 0 or "warning  formats" in ended.stdout:
        raise Stop(f"the packed worker does not work:\n{ended.stdout}")


def pack(release: Release, programs: Path, work: Path, output: Path) -> Path:
    name = release.archive
    folder = work / name
    shutil.copytree(programs, folder)
    for client in CLIENTS:
        put(release.root / "examples" / client, folder / "examples" / client)
    put_guide(release, folder)
    template = string.Template((PACKAGING / "README.txt").read_text("utf-8"))
    put_text(template.substitute(version=release.version, architecture=release.architecture), folder / "README.txt")
    _put_checksums(folder)
    archive = output / f"{name}.tar.gz"
    tar(release, folder, archive)
    return archive


def _put_libraries(release: Release, folder: Path, work: Path) -> Set[Path]:
    """Returns the files of Debian that it puts there."""
    binaries = [release.build / name for name in BINARIES]
    modules = libraries.modules(libraries.loaded_by(binaries))
    plugins = libraries.plugins(libraries.loaded_by(modules))
    opened = [*modules, *plugins]
    places = {module: module.parent.name for module in modules}
    places.update((plugin, "libheif-plugins") for plugin in plugins)
    needed = libraries.needed_by([*binaries, *opened], libraries.loaded_by([*binaries, *opened])) | set(opened)
    whole = {library for library in needed if not is_left_out(library.name)}
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
    source = (release.root / "Sources/CRSVG/shim.h").read_text("utf-8")
    conversions, listed = libraries.conversions(source, whole)
    for file in conversions:
        put(file, folder / "lib/gconv" / file.name)
    put_text(listed, folder / "lib/gconv/gconv-modules")
    hide_system(folder / "lib" / libraries.LINKERS[release.architecture])
    put_text(left_out([library.name for library in needed - whole]), folder / "notices/LEFT-OUT.txt")
    return whole | conversions


def _put_checksums(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in files]
    put_text("".join(lines), folder / "SHA256SUMS")
