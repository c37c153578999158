"""The shared libraries that the binaries load, and the Debian packages that these come from."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Dict, Iterable, List, Set, Tuple

from release_files import Stop, said
from stand_ins import is_left_out

LINKERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
"""glibc's dynamic linkers by architecture, as Sources/CStart/start.c names them."""
MODULES = ("vips-heif.so", "vips-jxl.so")
"""The modules of libvips that the codec opens, see Sources/Codec/Process/Library.swift."""
PLUGINS = ("libheif-libde265.so",)
"""The plugins of libheif that read HEIC. libheif has had plugins since version 1.16."""


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


SUPERSETS = {"GBK": "GB18030", "EUC-CN": "GB18030"}
"""Encodings that are read as a larger one, as in browsers (WHATWG Encoding, sections 4.2 and 10.1.1). EUC-CN is GB 2312."""


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


def conversions(source: str, libraries: Iterable[Path]) -> Tuple[Set[Path], str]:
    """glibc's files for the character encodings that crsvg_keep_encodings names in the source, with the tables that they share,
    and a list of them for the folder that GCONV_PATH names. libxml2 uses them, or ICU."""
    folder = next(path for path in libraries if path.name == "libc.so.6").parent / "gconv"
    text = "".join(file.read_text("ascii") for file in [folder / "gconv-modules", *folder.glob("gconv-modules.d/*.conf")])
    aliases: Dict[str, str] = dict(re.findall(r"(?m)^alias\s+(\S+)//\s+(\S+)//", text))
    files: Dict[str, str] = dict(re.findall(r"(?m)^module\s+(\S+)//\s+INTERNAL\s+(\S+)", text))
    targets = {name: SUPERSETS.get(target, target) for name, target in {**dict(zip(files, files)), **aliases}.items()}
    named = re.findall('"(.+?)"', source.partition("void crsvg_keep_encodings(")[2].partition("};")[0])
    kept = sorted({targets[name] for name in named})
    found = {folder / f"{files[name]}.so" for name in kept}
    found |= {folder / library.name for library in loaded_by(found) if (folder / library.name).exists()}
    lines = [f"alias {name}// {target}//" for name, target in targets.items() if name != target and target in kept]
    for name in kept:
        lines += [f"module {name}// INTERNAL {files[name]} 1", f"module INTERNAL {name}// {files[name]} 1"]
    return found, "\n".join([*lines, ""])


def owners(files: Iterable[Path]) -> Set[str]:
    """The packages that the files come from."""
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
    return set(found.values())

