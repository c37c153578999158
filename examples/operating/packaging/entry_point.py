"""Makes a program load the dynamic linker in its own folder, see Sources/CStart/start.c, and this no library of the system."""

from __future__ import annotations

import re
import struct
from pathlib import Path

from release_files import Stop, said

PT_NULL, PT_INTERP = 0, 3


def use_own_linker(program: Path, symbols: Path) -> None:
    """Makes `cstart` the entry point, and removes PT_INTERP. `symbols` is the same program before `strip`. See elf(5)."""
    found = re.search(r"^\s*\d+: ([0-9a-f]+)\s.* cstart$", said("readelf", "--symbols", "--wide", symbols), re.MULTILINE)
    if found is None:
        raise Stop(f"{symbols} has no symbol cstart")
    data = bytearray(program.read_bytes())
    (headers,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    struct.pack_into("<Q", data, 24, int(found[1], 16))
    for header in range(headers, headers + size * count, size):
        if struct.unpack_from("<I", data, header) == (PT_INTERP,):
            struct.pack_into("<I", data, header, PT_NULL)
    program.write_bytes(data)


def hide_system(linker: Path) -> None:
    """Has glibc's linker look in folders that do not exist for the system's libraries, their cache and /etc/ld.so.preload. A
    library that is missing in the release is then an error, instead of one of the system that may not fit."""
    names = rb"/(?:lib|etc)/(?=(?:[\w-]+-linux-gnu/|ld\.so\.cache|ld\.so\.preload)?\0)"
    data, count = re.subn(names, b"/.../", linker.read_bytes())
    if count != 10:  # two lists of four folders, and two files
        raise Stop(f"{linker} is not as other linkers of glibc: it names the system's libraries in {count} places")
    linker.write_bytes(data)
