"""A Debian in a folder, in which the release is built whatever this machine runs. It needs root and debootstrap."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Sequence

from release_files import Stop

VERSIONS = {
    "12": ("bookworm", "libgcc-12-dev libstdc++-12-dev"),
    "13": ("trixie", "binutils-gold libgcc-14-dev libstdc++-14-dev"),
}
"""The name of each Debian, and its packages that the Swift toolchain needs."""
MIRROR = "http://deb.debian.org"
PACKAGES = "binutils git libc6-dev libcurl4 libedit2 libncurses6 libsqlite3-0 libxml2 python3 tzdata"
UPDATE = """
apt-get update -qq
apt-get upgrade -qq --yes
apt-get install -qq --yes --no-install-recommends $0
"""


def create(root: Path, version: str) -> None:
    """Installs a Debian with its security updates, unless the folder has one that is complete."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise Stop("a release is built in a Debian of its own, which needs root and debootstrap; --build packs a build of yours")
    name, packages = VERSIONS[version]
    if not (root / "created").exists():
        shutil.rmtree(root, ignore_errors=True)
        root.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["debootstrap", "--variant=minbase", name, root, f"{MIRROR}/debian"], check=True, stdout=subprocess.DEVNULL)
        with (root / "etc/apt/sources.list").open("a") as sources:
            sources.write(f"deb {MIRROR}/debian-security {name}-security main\n")
        (root / "created").touch()
    run(root, "sh", "-ec", UPDATE, f"{PACKAGES} {packages}")


def run(root: Path, *command: str, folders: Sequence[Path] = ()) -> None:
    """Runs a command in the Debian, with /proc and some of this machine's folders in their usual places."""
    mounts = "".join(f"mkdir -p '{root}{folder}'; mount --bind '{folder}' '{root}{folder}'; " for folder in folders)
    script = f"mount -t proc proc '{root}/proc'; {mounts} exec chroot '{root}' \"$@\""
    environment = {name: os.environ[name] for name in ("http_proxy", "https_proxy", "SOURCE_DATE_EPOCH") if name in os.environ}
    environment.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root", LC_ALL="C", DEBIAN_FRONTEND="noninteractive")
    subprocess.run(["unshare", "--mount", "sh", "-ec", script, "sh", *command], check=True, env=environment)
