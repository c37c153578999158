"""The wheel for pip: the package imageworker, which is the client for Python with the worker in it."""

from __future__ import annotations

import base64
import hashlib
import time
import zipfile
from pathlib import Path

from release_files import Release, put, put_package, put_text

PACKAGING = Path(__file__).parent


def pack(release: Release, programs: Path, work: Path, output: Path) -> Path:
    tree = work / "wheel"
    package = tree / "imageworker"
    put(release.root / "examples" / "python" / "imageworker.py", package / "__init__.py")
    put(PACKAGING / "wheel_command.py", package / "__main__.py")
    for module in sorted((release.root / "examples" / "bulk").glob("*.py")):
        if module.name != "bulk.py":  # It finds the package in a checkout.
            put(module, package / "bulk" / module.name)
    put_text("", package / "py.typed")
    put_package(release, programs, package)

    machine = release.architecture
    # For glibc and musl: the worker brings its C library.
    platforms = [f"manylinux2014_{machine}", f"manylinux_2_17_{machine}", f"musllinux_1_1_{machine}"]
    about = tree / f"imageworker-{release.version}.dist-info"
    put_text(
        f"""Metadata-Version: 2.1
Name: imageworker
Version: {release.version}
Summary: Image loader as a process: downloads, caches and scales images
Requires-Python: >=3.9
Classifier: Operating System :: POSIX :: Linux
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

{(PACKAGING / "README.package").read_text("utf-8")}""",
        about / "METADATA",
    )
    put_text("[console_scripts]\nimageworker = imageworker.__main__:main\n", about / "entry_points.txt")
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in platforms)
    put_text(f"Wheel-Version: 1.0\nGenerator: imageworker\nRoot-Is-Purelib: false\n{tags}", about / "WHEEL")

    # The specification of wheels recommends to have the .dist-info at the end.
    files = sorted((path for path in tree.rglob("*") if path.is_file()), key=lambda path: (path.is_relative_to(about), path))
    record = about / "RECORD"
    rows = [f"{path.relative_to(tree)},{_digest(path)},{path.stat().st_size}\n" for path in files]
    put_text("".join([*rows, f"{record.relative_to(tree)},,\n"]), record)

    wheel = output / f"imageworker-{release.version}-py3-none-{'.'.join(platforms)}.whl"
    first_time = 315532800  # A zip file has no time before 1980.
    date = time.gmtime(max(release.time, first_time))[:6]
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in [*files, record]:
            entry = zipfile.ZipInfo(str(path.relative_to(tree)), date)
            entry.external_attr = path.stat().st_mode << 16
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, compresslevel=min(release.level, 9))
    return wheel


def _digest(path: Path) -> str:
    digest = hashlib.sha256(path.read_bytes()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")
