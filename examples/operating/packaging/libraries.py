"""The shared libraries that the binaries load, and the Debian packages that these come from."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Dict, Iterable, List, Set, Tuple

from release_files import Stop, said

GLIBC = "libc6"
MODULES = ("vips-heif.so", "vips-jxl.so")
"""The modules of libvips that the codec opens, see Sources/Codec/Process/Library.swift."""


def loaded_by(files: Iterable[Path]) -> Set[Path]:
    """All libraries that the dynamic linker loads for these files, directly or for another library."""
    found: Set[Path] = set()
    for file in files:
        for name, path in re.findall(r"^\t(\S+) => (not found|/\S+)", said("ldd", file), re.MULTILINE):
            if path == "not found":
                raise Stop(f"{file} needs {name}, which is not installed")
            found.add(Path(path))
    return found


def modules(libraries: Iterable[Path]) -> List[Path]:
    """The codec looks for them in a folder beside libvips. Other builds of libvips have them inside."""
    vips = next(path for path in libraries if path.name.startswith("libvips.so."))
    found = [path for name in MODULES for path in vips.parent.glob(f"vips-modules-*/{name}")]
    if len({path.parent for path in found}) > 1:
        raise Stop(f"the modules of more than one libvips are installed: {', '.join(map(str, found))}")
    return found


def owners(files: Iterable[Path]) -> Dict[Path, str]:
    """The package that each file comes from."""
    # /lib is a link to /usr/lib, and dpkg knows a file by one of the two paths.
    spellings = {str(spelling): file for file in files for spelling in (file, Path("/usr", *file.parts[1:]))}
    answer = subprocess.run(["dpkg-query", "--search", *spellings], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    found = {
        spellings[path]: package.partition(":")[0]
        for package, path in (line.split(": ") for line in answer.stdout.splitlines())
        if path in spellings
    }
    for file in spellings.values():
        if file not in found:
            raise Stop(f"{file} comes from no Debian package: its licence is unknown")
    return found


def needed_glibc(files: Iterable[Path]) -> Tuple[int, ...]:
    """The oldest version of glibc that has all functions that the files use."""
    symbols = said("objdump", "--dynamic-syms", *files)
    versions = re.findall(r"\*UND\*.*\bGLIBC_([\d.]+)\b", symbols)
    return max(tuple(map(int, version.split("."))) for version in versions)
