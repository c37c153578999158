"""Small libraries that stand in for those that a packed library names, and the worker never calls.

Debian's libvips, libcurl and others name libraries for formats and protocols that the worker does not use. The dynamic
linker only looks for the names of their functions. A stand-in has these names, and ends the process if one is called.
So the packed libraries stay as Debian ships them, and bring no others that nobody uses.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Dict, Iterable, List, NamedTuple

from release_files import Stop, said

LEFT_OUT = {
    "operations and formats of libvips that the decoder does not permit": (
        "libmatio", "libOpenEXR", "libfftw3", "libcfitsio", "libopenjp2", "libgsf-1", "libarchive",
    ),
    "JBIG in TIFF, under the GPL: such a file is answered with unsupportedFormat": ("libjbig",),
    "compression of metadata in JPEG XL, which the decoder does not write": ("libbrotlienc",),
    "encoders of AV1 other than aom, and decoders other than dav1d": ("libSvtAv1Enc", "librav1e", "libgav1"),
    "encoders of HEIC": ("libx265",),
    "windows, into which cairo could draw": ("libX11", "libXext", "libXrender", "libxcb", "libxcb-render", "libxcb-shm"),
    "mounted volumes, of which GIO could tell": ("libmount", "libselinux"),
    "colours of GIFs, under the GPL: the one here is a part of ImageWorker with the same functions": ("libimagequant",),
    "protocols and logins of libcurl other than HTTP": (
        "libldap", "liblber", "libldap-2.5", "liblber-2.5", "librtmp", "libssh2", "libgssapi_krb5",
    ),
}  # fmt: skip
"""The reasons, each with the libraries' names without `.so` and version."""
RESULTS = {
    "gsf_init": 0, "gsf_shutdown": 0,  # by libvips at its start and end
    "jbg_dec_init": 0, "jbg_newlen": 0, "jbg_dec_in": 4, "jbg_dec_free": 0,  # 4: invalid data
    "jbg_strerror": '(long)"JBIG is not supported"',  # by these words, the decoder knows what it is
    "ldap_get_option": -1, "RTMP_LibVersion": 0, "libssh2_init": 0, "libssh2_exit": 0, "libssh2_version": 0,  # by libcurl
}  # fmt: skip
"""The functions that are called all the same, and what they return, in C."""

CHANGED = """Changed in other ways:
  ld-linux-*, the dynamic linker of glibc, does not look for libraries in the system, nor for /etc/ld.so.preload
  libicudata, if it is here, has only conversions of character encodings
  lib/gconv has those that SVGs are read in; GBK and GB 2312 are read as GB 18030, as in browsers
"""
LARGE_ENCODINGS = (
    "gb18030", "ibm-1386", "ibm-1383",  # GB 18030, GBK, GB 2312
    "ibm-1373", "ibm-1375",  # Big5, Big5-HKSCS
    "ibm-943_P15A", "euc-jp", "jisx-212",  # Shift_JIS, EUC-JP, ISO-2022-JP
    "ibm-1363_P11B", "ibm-970",  # EUC-KR
)  # fmt: skip
"""ICU's tables of the multi-byte encodings of the Encoding standard (whatwg.org), see convrtrs.txt of ICU."""


class Symbol(NamedTuple):
    size: int
    kind: str
    section: str
    name: str
    version: str


def symbols(file: Path) -> List[Symbol]:
    row = r"^\s*\d+: [0-9a-f]+\s+(\w+) (\w+)\s+\w+\s+\w+\s+(\w+) ([^\s@]+)(?:@@?(\S+))?"
    rows = re.findall(row, said("readelf", "--dyn-syms", "--wide", file), re.MULTILINE)
    return [Symbol(int(size, 0), *others) for size, *others in rows]


def stem(library: str) -> str:
    """`libldap-2.5` of libldap-2.5.so.0, and `libOpenEXR` of libOpenEXR-3_1.so.30."""
    return re.sub(r"(-\d+_\d+)?\.so.*", "", library)


def is_left_out(library: str) -> bool:
    return any(stem(library) in names for names in LEFT_OUT.values())


def put_stand_in(library: Path, users: Iterable[Path], target: Path) -> None:
    """Writes a library of the same name with what the users take from it."""
    if stem(library.name) == "libimagequant":
        return compile_library(Path(__file__).parent / "quantizer.c", library, target, "-O2")
    wanted = {symbol.name for user in users for symbol in symbols(user) if symbol.section == "UND"}
    found: Dict[str, Symbol] = {}
    for symbol in symbols(library):
        if symbol.name in wanted and symbol.section not in ("UND", "ABS"):
            found.setdefault(symbol.name, symbol)
    code = []
    for name, symbol in found.items():
        if symbol.kind in ("FUNC", "IFUNC"):
            body = f"return {RESULTS[name]};" if name in RESULTS else "__builtin_trap();"
            code.append(f"long {name}(void) {{ {body} }}")
        else:
            code.append(f"char {name}[{symbol.size}] __attribute__((aligned(32)));")
    versions: Dict[str, List[str]] = {}
    for name, symbol in found.items():
        versions.setdefault(symbol.version, []).append(name)
    build(library, code, versions, target)


def put_converters(library: Path, target: Path, work: Path) -> None:
    """Writes libicudata with the tables of character encodings, which libxml2 uses for SVG, and without all else. The
    tables of Chinese, Japanese and Korean are large: only those of the web are kept."""
    (data,) = (symbol for symbol in symbols(library) if re.fullmatch(r"icudt\d+_dat", symbol.name))
    whole, small = work / f"{data.name[:-4]}l.dat", work / "converters" / f"{data.name[:-4]}l.dat"
    small.parent.mkdir(exist_ok=True)
    whole.write_bytes((ctypes.c_char * data.size).in_dll(ctypes.CDLL(str(library)), data.name).raw)
    items = said("icupkg", "--list", whole).splitlines()
    subprocess.run(["icupkg", "--extract", "*.cnv", "--destdir", work, whole], check=True)
    tables = [name for name in items if name.endswith(".cnv")]
    kept = {name for name in tables if (work / name).stat().st_size < 20_000 or name.startswith(LARGE_ENCODINGS)}
    others = [item for item in items if item not in kept and item != "cnvalias.icu"]
    (work / "others.lst").write_text("".join(f"{item}\n" for item in others), "utf-8")
    subprocess.run(["icupkg", "--ignore-deps", "--remove", work / "others.lst", whole, small], check=True)
    code = f'__asm__(".section .rodata; .globl {data.name}; .type {data.name}, %object; .balign 16; {data.name}: .incbin \\"{small}\\"");'
    build(library, [code], {data.version: [data.name]}, target)


def build(library: Path, code: List[str], versions: Dict[str, List[str]], target: Path) -> None:
    if not code:
        raise Stop(f"{library} is used by no packed library")
    source, script = target.with_suffix(".c"), target.with_suffix(".map")
    source.write_text("\n".join(code) + "\n", "utf-8")
    nodes = [f"{version} {{ global: {' '.join(f'{each};' for each in sorted(names))} }};\n" for version, names in sorted(versions.items())]
    script.write_text("".join(nodes), "utf-8")
    compile_library(source, library, target, "-nostdlib", "-fno-builtin", "-w", f"-Wl,--version-script={script}")
    source.unlink()
    script.unlink()


def compile_library(source: Path, library: Path, target: Path, *options: str) -> None:
    (name,) = re.findall(r"\(SONAME\).*\[(.*)\]", said("readelf", "--dynamic", "--wide", library)) or [library.name]
    every = ["-shared", "-fPIC", f"-Wl,--build-id=none,--strip-all,--soname={name}"]
    subprocess.run(["clang", *every, *options, "-o", target, source], check=True)


def left_out(libraries: List[str]) -> str:
    """The text of LEFT-OUT.txt."""
    lines = [
        "Libraries of which only the names are here, since a library of this release refers to them. The worker never",
        "calls them; the process would end.\n",
    ]
    for reason, names in LEFT_OUT.items():
        present = sorted(library for library in libraries if stem(library) in names)
        if present:
            lines.append(f"{reason}:\n  {', '.join(present)}\n")
    lines.append(CHANGED)
    return "\n".join(lines)
