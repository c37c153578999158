"""The licences of what is packed and is not ImageWorker's, as Debian's packages and the Swift toolchain state them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, Iterable

from release_files import put, said, toolchain

COMMON_LICENSES = Path("/usr/share/common-licenses")
RUNTIME = "share/swift/LICENSE.txt"
"""The licence of Swift's runtime, which is in the programs, in the toolchain."""


def put_notices(packages: Iterable[str], folder: Path) -> None:
    """Writes the statements of the packages, the licences that these refer to, and the list of the packages with their sources and
    the files of their statements. Packages of one source often have the same statement, which is written once."""
    names = sorted(packages)
    files: Dict[bytes, str] = {}
    lines = []
    columns = "${Package} ${Version} from source ${source:Package} ${source:Version}\n"
    for name in names:
        source = Path("/usr/share/doc", name, "copyright")
        file = files.setdefault(source.read_bytes(), f"{name}.txt")
        put(source, folder / file)
        versions = said("dpkg-query", "--show", f"--showformat={columns}", name).splitlines()
        lines += [f"{version}: {file}\n" for version in versions]
    statements = "\n".join((folder / file).read_text("utf-8", "replace") for file in files.values())
    mentioned = set(re.findall(rf"{COMMON_LICENSES}/([\w.+-]*\w)", statements))
    for license in sorted(mentioned):
        if (COMMON_LICENSES / license).is_file():
            put(COMMON_LICENSES / license, folder / "common-licenses" / license)
    put(toolchain() / RUNTIME, folder / "swift.txt")
    swift = re.findall(r"Swift version (\S+)", said(toolchain() / "bin" / "swift", "--version"))
    lines += [f"swift {version} from https://swift.org, the runtime in the programs: swift.txt\n" for version in swift]
    (folder / "PACKAGES.txt").write_text("".join(sorted(set(lines))), "utf-8")
