"""The archive in systems that lack nearly everything. Each runs in a chroot of its own.

    IMAGEWORKER=PATH python -m unittest test_release
    RELEASE_ROOTS=musl,11,12,13,deb IMAGEWORKER=PATH python -m unittest test_release.Roots

The empty system is always tested. The others are downloaded: `musl` has a shell and another C library, and each number is
a Debian with Python.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

from origin_process import Origin
from release_packages import DRAWING, WORKER, packed, run, thumbnails, unpacked, work

OUTPUTS = ("png", "jpeg", "webp", "avif", "jxl", "gif")
OTHERS = os.environ.get("RELEASE_ROOTS", "").split(",")
ENCODINGS = "utf-8 utf-16 iso-8859-2 iso-8859-15 windows-1251 koi8-r ibm866 gbk gb18030 big5 euc-jp shift_jis iso-2022-jp euc-kr".split()
LIKE_BUILD = "RELEASE" not in os.environ
"""Whether the archive has the libraries of this machine."""


def musl() -> Path:
    root = work() / "root-musl"
    root.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["apt-get", "download", "-qq", "musl", "busybox-static"], cwd=folder).returncode != 0:
            raise unittest.SkipTest("musl cannot be downloaded")
        for package in Path(folder).glob("*.deb"):
            run("dpkg-deb", "--extract", package, root)
    return root


def debian(version: str) -> Path:
    root = work() / f"root-{version}"
    name = {"11": "bullseye", "12": "bookworm", "13": "trixie"}[version]
    command = ["debootstrap", "--variant=minbase", "--include=python3-venv", name, str(root), "http://deb.debian.org/debian"]
    if shutil.which("debootstrap") is None or subprocess.run(command, stdout=subprocess.DEVNULL).returncode != 0:
        raise unittest.SkipTest(f"Debian {version} cannot be installed")
    return root


def entering(root: Path, *variables: str) -> list[str]:
    """The words before a command that runs in a system, with nothing else in its environment."""
    chroot = shutil.which("chroot", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    return ["env", "-i", "HOME=/root", *variables, chroot or "chroot", str(root)]


class Roots(unittest.TestCase):
    def setUp(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("chroot needs root")

    def answers(self, command: list[str], requests: str) -> dict[str, dict[str, Any]]:
        ended = subprocess.run(command, input=requests, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return {answer["id"]: answer for answer in map(json.loads, ended.stdout.splitlines()) if "id" in answer}

    def check(self, root: Path) -> None:
        """The program works in a system, alone, and with the files of this build's worker."""
        shutil.copytree(unpacked(), root / "worker")
        enter = entering(root)
        report = run(*enter, "/worker/imageworker", "--self-test")
        self.assertNotRegex(report, "(?m)^(warning|failed)")
        if not (root / "etc").exists():
            self.assertIn("/worker/share/ca-certificates.crt", report)
            self.assertIn("/worker/share/fonts/fonts.conf", report)
        self.assertEqual(sum(path.is_file() for path in root.glob("tmp/**/*.part")), 0)

        made = thumbnails(OUTPUTS, deliver="data", store="none")
        mine = self.answers([str(WORKER)], made)
        theirs = self.answers([*enter, "/worker/imageworker"], made)
        self.assertEqual(set(theirs), set(mine))
        for name, answer in theirs.items():
            self.assertIn("result", answer, name)
            if LIKE_BUILD and not name.startswith("svg") and not name.endswith("gif"):  # fonts; the release's own palette
                self.assertEqual(answer["result"]["data"], mine[name]["result"]["data"], name)
        # Text is drawn, in the font that it names. Without fonts, all characters are the same boxes.
        texts = [DRAWING, DRAWING.replace("DejaVu%20Sans", "DejaVu%20Serif")]
        loads = [{"id": text, "method": "load", "params": {"url": text, "transform": {"format": "png"}, "deliver": "data"}} for text in texts]
        drawn = self.answers([*enter, "/worker/imageworker"], "".join(json.dumps(load) + "\n" for load in loads))
        self.assertEqual(len({answer["result"]["data"] for answer in drawn.values()}), 2)

        loads = []
        for encoding in ENCODINGS:
            drawing = f"<?xml version='1.0' encoding='{encoding}'?><svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>"
            url = f"data:image/svg+xml;base64,{base64.b64encode(drawing.encode(encoding)).decode()}"
            loads.append({"id": encoding, "method": "load", "params": {"url": url, "transform": {"format": "png"}, "deliver": "none"}})
        for encoding, answer in self.answers([*enter, "/worker/imageworker"], "".join(json.dumps(load) + "\n" for load in loads)).items():
            self.assertIn("result", answer, encoding)

        with Origin("--tls") as origin:
            assert origin.authority
            shutil.copy(origin.authority, root / "ca.pem")
            request: dict[str, Any] = {"id": 1, "method": "load", "params": {"url": f"{origin.url}/image/1.png", "deliver": "pixels"}}
            trusting = [*entering(root, "SSL_CERT_FILE=/ca.pem"), "/worker/imageworker"]
            (trusted,) = self.answers(trusting, json.dumps(request) + "\n").values()
            self.assertIn("result", trusted)
            request["params"]["url"] = f"{origin.url}/image/2.png"
            (refused,) = self.answers([*enter, "/worker/imageworker"], json.dumps(request) + "\n").values()
            self.assertEqual(refused["error"]["data"]["kind"], "tls")

    def test_a_system_that_has_nothing(self) -> None:
        root = work() / "root-empty"
        root.mkdir()
        self.check(root)

    def test_a_system_that_has_nothing_and_an_old_kernel(self) -> None:
        root = work() / "root-old"
        shutil.copytree(unpacked(), root / "worker")
        (root / "etc").mkdir()
        (root / "etc/ld.so.preload").write_text("/missing.so")
        command = [sys.executable, "-B", str(Path(__file__).with_name("old_kernel.py")), str(root), "/worker/imageworker"]
        report = run(*command, "--self-test")
        self.assertIn("landlock is missing", report)
        self.assertNotRegex(report, "failed|preload")
        for name, answer in self.answers(command, thumbnails(("png",), deliver="data", store="none")).items():
            self.assertIn("result", answer, name)

    def test_musl(self) -> None:
        self.needs("musl")
        self.check(musl())

    def test_debian_11(self) -> None:
        self.check_debian("11")

    def test_debian_12(self) -> None:
        self.check_debian("12")

    def test_debian_13(self) -> None:
        self.check_debian("13")

    def needs(self, name: str) -> None:
        if name not in OTHERS:
            self.skipTest(f"it is downloaded if RELEASE_ROOTS contains {name}")

    def check_debian(self, version: str) -> None:
        self.needs(version)
        root = debian(version)
        self.check(root)
        wheel = packed("*.whl")
        shutil.copy(wheel, root / wheel.name)
        snippet = "from imageworker import BlockingImageWorker\nwith BlockingImageWorker() as worker:\n"
        snippet += f"    print(worker.load({DRAWING!r}, transform={{'width': 30}}).width)\n"
        (root / "snippet.py").write_text(snippet)
        enter = entering(root, "PATH=/usr/bin:/bin")
        run(*enter, "python3", "-m", "venv", "/venv")
        begun = time.monotonic()
        run(*enter, "/venv/bin/pip", "install", "--no-index", f"/{wheel.name}")
        self.assertEqual(run(*enter, "/venv/bin/python", "/snippet.py"), "30\n")
        print(f"Debian {version}: {time.monotonic() - begun:.1f} s from pip install to the first thumbnail", file=sys.stderr)
