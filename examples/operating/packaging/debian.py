"""The Debian package, which uses the libraries of the system."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path

from cache_manual import cache_manual
from manual import manual
from release_files import BINARIES, CLIENTS, Release, put, put_binaries, put_guide, put_text, said

PACKAGING = Path(__file__).parent


def pack(release: Release, work: Path, output: Path) -> Path:
    tree = work / "debian-package"
    # The worker looks for the codec beside the file that it runs. A link to it is resolved.
    put_binaries(release, tree / "usr/lib/imageworker")
    command = tree / "usr/bin/imageworker"
    command.parent.mkdir()
    command.symlink_to("../lib/imageworker/imageworker")

    pages = tree / "usr/share/man/man1"
    pages.mkdir(parents=True)
    for name, text in (("imageworker", manual(release)), ("imageworker-cache", cache_manual(release))):
        (pages / f"{name}.1.gz").write_bytes(gzip.compress(text.encode("utf-8"), 9, mtime=0))

    examples = release.root / "examples"
    recipes = [path.relative_to(examples) for path in (examples / "shell").iterdir() if path.is_file() and path.suffix != ".md"]
    for example in [*map(Path, CLIENTS), *recipes]:
        put(examples / example, tree / "usr/share/imageworker/examples" / example)
    put_guide(release, tree / "usr/share/imageworker/protocol", tree / "usr/share/imageworker/examples")
    for unit in ("imageworker-mirror.service", "imageworker-mirror.timer"):
        put(examples / "operating" / unit, tree / "lib/systemd/system" / unit)
    put(PACKAGING / "sysusers.conf", tree / "usr/lib/sysusers.d/imageworker.conf")
    put(PACKAGING / "README.Debian", tree / "usr/share/doc/imageworker/README.Debian")
    put(release.root / "protocol/openrpc.json", tree / "usr/share/doc/imageworker/openrpc.json")

    architecture = said("dpkg", "--print-architecture").strip()
    kilobytes = sum(path.stat().st_size // 1024 + 1 for path in tree.rglob("*") if not path.is_symlink())
    put(PACKAGING / "postinst", tree / "DEBIAN/postinst")
    put_text(
        f"""Package: imageworker
Version: {release.version}
Architecture: {architecture}
Maintainer: ImageWorker <imageworker@localhost>
Installed-Size: {kilobytes}
Depends: {_libraries(tree / "usr/lib/imageworker", work)}, ca-certificates
Suggests: jq, python3, nodejs
Section: graphics
Priority: optional
Description: image loader as a process
 A program in any language starts imageworker and sends URLs as lines of JSON.
 The worker downloads each image once, caches it, checks it, scales it if asked,
 and answers with the path of a file.
""",
        tree / "DEBIAN/control",
    )
    package = output / f"imageworker_{release.version}_{architecture}.deb"
    # With one thread, since the number of threads changes the compressed bytes. The times come from SOURCE_DATE_EPOCH.
    compression = ["-Zxz", f"-z{min(release.level, 9)}", "--threads-max=1"]
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", *compression, "--build", tree, package], check=True, stdout=subprocess.DEVNULL
    )
    return package


def _libraries(folder: Path, work: Path) -> str:
    """The packages of the libraries that the binaries need, each with the oldest version that has the functions used."""
    put_text("Source: imageworker\n\nPackage: imageworker\nArchitecture: any\n", work / "debian/control")
    # It also warns of libraries that pkg-config names and the codec does not need. They do no harm.
    command = ["dpkg-shlibdeps", "-O", "--warnings=1", *(str(folder / name) for name in BINARIES)]
    answer = subprocess.run(command, cwd=work, check=True, stdout=subprocess.PIPE, text=True)
    return str(answer.stdout).strip().partition("shlibs:Depends=")[2]
