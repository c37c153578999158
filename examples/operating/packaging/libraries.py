"""The shared libraries that the binaries load, and the Debian packages that these come from."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Dict, Iterable, List, Set

from release_files import Stop, said
from stand_ins import is_left_out

LINKERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
"""glibc's dynamic linkers by architecture, as Sources/CStart/start.c names them."""
MODULES = ("vips-heif.so", "vips-jxl.so")
"""The modules of libvips that the codec opens, see Sources/Codec/Process/Library.swift."""
PLUGINS = ("libheif-libde265.so",)
"""The plugins of libheif that read HEIC. libheif has had plugins since version 1.16."""

CONVERSIONS = """
BIG5 BIG5HKSCS CP125* EUC-CN EUC-JP EUC-KR GB18030 GBK IBM866 IBM874 ISO-2022-JP ISO8859-* KOI8-R KOI8-U
MAC-UK MACINTOSH SJIS UHC libGB libJIS libKSC
""".split()
"""glibc's files for the character encodings of the Encoding standard, see crsvg_keep_encodings, and the tables that they
share. libxml2 uses them, or ICU."""


def loaded_by(files: Iterable[Path]) -> Set[Path]:
    """All libraries that the dynamic linker loads for these files, directly or for another library, and the linker."""
    found: Set[Path] = set()
    for file in files:
        for name, path in re.findall(r"^\t(\S+)(?: => (not found|/\S+))? ?", said("ldd", file), re.MULTILINE):
            if path == "not found":
                raise Stop(f"{file} needs {name}, which is not installed")
            if path or name.startswith("/"):
                found.add(Path(path or name))
    return found


def needed_by(files: Iterable[Path], loaded: Iterable[Path]) -> Set[Path]:
    """Those of the loaded libraries that the files need if the ones that are left out need no others."""
    by_name = {library.name: library for library in loaded}
    found: Set[Path] = set()
    rest = list(files)
    while rest:
        names = re.findall(r"\(NEEDED\).*\[(.*)\]", said("readelf", "--dynamic", "--wide", rest.pop()))
        new = {by_name[name] for name in names} - found
        found |= new
        rest += [library for library in new if not is_left_out(library.name)]
    return found


def modules(libraries: Iterable[Path]) -> List[Path]:
    """The codec looks for them in a folder beside libvips. Other builds of libvips have them inside."""
    vips = next(path for path in libraries if path.name.startswith("libvips.so."))
    found = [path for name in MODULES for path in vips.parent.glob(f"vips-modules-*/{name}")]
    if len({path.parent for path in found}) > 1:
        raise Stop(f"the modules of more than one libvips are installed: {', '.join(map(str, found))}")
    return found


def plugins(libraries: Iterable[Path]) -> List[Path]:
    """libheif looks for them in a folder that the environment names, see DecoderProcess.swift."""
    heif = next(path for path in libraries if path.name.startswith("libheif.so."))
    return [path for name in PLUGINS for path in heif.parent.glob(f"libheif/plugins/{name}")]


def conversions(libraries: Iterable[Path]) -> Dict[Path, Path]:
    """glibc's files for CONVERSIONS and their lists, each with its path in the folder that GCONV_PATH names."""
    folder = next(path for path in libraries if path.name == "libc.so.6").parent / "gconv"
    patterns = [*(f"{name}.so" for name in CONVERSIONS), "gconv-modules", "gconv-modules.d/*.conf"]
    return {file: file.relative_to(folder) for pattern in patterns for file in folder.glob(pattern)}


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

