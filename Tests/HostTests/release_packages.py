"""The packages that examples/operating/release makes of the built worker. They are made once for all tests of a process."""

from __future__ import annotations

import atexit
import base64
import functools
import json
import os
import platform
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any, Optional, Union

from package import ROOT

OPERATING = ROOT / "examples" / "operating"
WORKER = Path(os.environ.get("IMAGEWORKER", ROOT / ".build" / "release" / "imageworker")).resolve()
BINARIES = ("imageworker", "imageworker-codec", "imageworker-plain")
DRAWING = "data:image/svg+xml," + (
    "%3Csvg%20xmlns='http://www.w3.org/2000/svg'%20width='90'%20height='60'%3E"
    "%3Ctext%20y='40'%20font-family='DejaVu%20Sans'%3EText%3C/text%3E%3C/svg%3E"
)


def run(*command: Union[str, Path], **options: Any) -> str:
    """The output of a command that must succeed."""
    ended = subprocess.run(
        command, stdin=options.pop("stdin", subprocess.DEVNULL), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    assert ended.returncode == 0, f"{command} ended with {ended.returncode}: {ended.stdout}"
    return str(ended.stdout)


def _reason_against_packing() -> Optional[str]:
    if platform.system() != "Linux" or not all(map(shutil.which, ("apt-get", "dpkg-query"))):
        return "a release is packed on Debian only"
    if not WORKER.with_name("imageworker-codec").exists():
        return f"there is no codec beside {WORKER}"
    return None


@functools.lru_cache(maxsize=None)
def work() -> Path:
    """A folder with the packages in its folder `packages`. They are those of $RELEASE, if that names a folder."""
    reason = _reason_against_packing()
    if reason is not None:
        raise unittest.SkipTest(reason)
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    if "RELEASE" in os.environ:
        shutil.copytree(os.environ["RELEASE"], folder / "packages")
    else:
        run(OPERATING / "release", "--build", WORKER.parent, "--level", "1", "--output", folder / "packages")
    return folder


def packed(pattern: str) -> Path:
    (file,) = (work() / "packages").glob(pattern)
    return file


@functools.lru_cache(maxsize=None)
def unpacked() -> Path:
    """The archive's folder."""
    archive = packed("*.tar.gz")
    run("tar", "--extract", "--file", archive, "--directory", work())
    return work() / archive.name[: -len(".tar.gz")]


def objects() -> list[Path]:
    """All programs and libraries in the archive."""
    return [*(unpacked() / name for name in BINARIES), *sorted((unpacked() / "lib").rglob("*.so*"))]


@functools.lru_cache(maxsize=None)
def pictures() -> dict[str, str]:
    """URLs of small images, by their formats. Those of rare formats need the program vips."""
    urls = {"svg": DRAWING}
    if shutil.which("vips") is not None:
        folder = work() / "pictures"
        folder.mkdir()
        run("vips", "black", folder / "black.png", "90", "60", "--bands", "3")
        run("vips", "linear", folder / "black.png", folder / "picture.png[bitdepth=8]", "1", "20 120 220")
        for format in ("png", "jpeg", "webp", "avif", "heic", "jxl", "tiff", "gif"):
            file = folder / f"picture.{format}"
            if format != "png":
                run("vips", "copy", folder / "picture.png", file)
            urls[format] = f"data:image/{format};base64,{base64.b64encode(file.read_bytes()).decode()}"
    return urls


def thumbnails(outputs: tuple[str, ...], **parameters: Any) -> str:
    """Requests for a thumbnail of each picture in each format. Their ids are `from to`."""
    requests = []
    for format, url in pictures().items():
        for output in outputs:
            params = {"url": url, "key": f"{format} {output}", "transform": {"width": 30, "format": output}, **parameters}
            requests.append({"id": params["key"], "method": "load", "params": params})
    return "".join(json.dumps(request) + "\n" for request in requests)
