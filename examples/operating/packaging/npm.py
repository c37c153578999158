"""The package for npm: the client for Node with its types, and the worker in it."""

from __future__ import annotations

import json
from pathlib import Path

from release_files import Release, put, put_package, put_text, tar

CPUS = {"x86_64": "x64", "aarch64": "arm64"}
"""Node's names of architectures, by those of `uname` that differ."""


def pack(release: Release, programs: Path, work: Path, output: Path) -> Path:
    cpu = CPUS.get(release.architecture, release.architecture)
    tree = work / "npm"
    package = tree / "package"  # npm wants this name.
    for name in ("imageworker.mjs", "imageworker.d.ts"):
        put(release.root / "examples" / "node" / name, package / name)
    put(Path(__file__).parent / "README.package", package / "README.md")
    put_package(release, programs, package)
    description = {
        "name": "imageworker",
        "version": release.version,
        "description": "Image loader as a process: downloads, caches and scales images",
        "license": "UNLICENSED",
        "type": "module",
        "exports": {"types": "./imageworker.d.ts", "default": "./imageworker.mjs"},
        "types": "./imageworker.d.ts",
        "bin": {"imageworker": "bin/imageworker"},
        "os": ["linux"],
        "cpu": [cpu],
        "engines": {"node": ">=20"},
        # Yarn would leave the worker in a zip file, where it cannot be started.
        "preferUnplugged": True,
    }
    put_text(json.dumps(description, indent=2) + "\n", package / "package.json")

    archive = output / f"imageworker-{release.version}-npm-linux-{cpu}.tgz"
    tar(release, package, archive)
    return archive
