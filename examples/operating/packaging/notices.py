"""The licences of what is packed and is not ImageWorker's, as Debian's packages and the Swift toolchain state them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Iterable

from release_files import put, said, toolchain

COMMON_LICENSES = Path("/usr/share/common-licenses")
RUNTIME = "share/swift/LICENSE.txt"
"""The licence of Swift's runtime, which is in the programs, in the toolchain."""


def put_notices(packages: Iterable[str], folder: Path) -> None:
    """Writes a file for each package, the licences that these refer to, and the list of the packages with their sources."""
    names = sorted(packages)
    for name in names:
        put(Path("/usr/share/doc", name, "copyright"), folder / f"{name}.txt")
    statements = "\n".join((folder / f"{name}.txt").read_text("utf-8", "replace") for name in names)
    mentioned = set(re.findall(rf"{COMMON_LICENSES}/([\w.+-]*\w)", statements))
    for license in sorted(mentioned):
        if (COMMON_LICENSES / license).is_file():
            put(COMMON_LICENSES / license, folder / "common-licenses" / license)
    columns = "${Package} ${Version} from source ${source:Package} ${source:Version}\n"
    put(toolchain() / RUNTIME, folder / "swift.txt")
    swift = re.findall(r"Swift version (\S+)", said(toolchain() / "bin" / "swift", "--version"))
    lines = said("dpkg-query", "--show", f"--showformat={columns}", *names).splitlines(keepends=True)
    lines += [f"swift {version} from https://swift.org, the runtime in the programs\n" for version in swift]
    (folder / "PACKAGES.txt").write_text("".join(sorted(set(lines))), "utf-8")
