"""Packs the built worker with examples/operating/release, and uses both packages in a bare Debian.

A bare Debian is what debootstrap installs: the package manager, and nothing that the worker needs. Takes about two minutes.

    IMAGEWORKER=PATH python -m unittest test_release
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from package import ROOT
from processes import children
from release_packages import BINARIES, OPERATING, WORKER, objects, packed, run, thumbnails, unpacked, work
from release_roots import Roots as Roots

def content() -> Path:
    """The files of the Debian package."""
    folder = work() / "content"
    if not folder.exists():
        run("dpkg-deb", "--extract", packed("*.deb"), folder)
    return folder


class Packing(unittest.TestCase):
    def test_the_second_run_gives_the_same_bytes(self) -> None:
        again = work() / "again"
        environment = {**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8", "LD_LIBRARY_PATH": "/nonexistent"}
        release = (OPERATING / "release", "--build", WORKER.parent, "--output", again)
        run("sh", "-c", 'umask 077; exec "$@"', "sh", *release, env=environment, cwd="/")
        for file in (work() / "packages").iterdir():
            self.assertEqual(file.read_bytes() == (again / file.name).read_bytes(), True, file.name)

    def test_names_have_version_and_architecture(self) -> None:
        version = run(WORKER, "--version").split()[1]
        self.assertTrue(packed(f"imageworker-{version}-linux-{platform.machine()}.tar.gz"))
        self.assertTrue(packed(f"imageworker_{version}_{run('dpkg', '--print-architecture').strip()}.deb"))

    def test_a_folder_without_the_binaries_is_refused_in_one_line(self) -> None:
        ended = subprocess.run(
            [OPERATING / "release", "--build", work(), "--output", work() / "none"], stderr=subprocess.PIPE, text=True
        )
        self.assertEqual((ended.returncode, len(ended.stderr.splitlines())), (1, 1), ended.stderr)


class Tarball(unittest.TestCase):
    def test_the_checksums_are_those_of_all_files(self) -> None:
        run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=unpacked())
        listed = [line.partition("  ")[2] for line in (unpacked() / "SHA256SUMS").read_text().splitlines()]
        files = [str(path.relative_to(unpacked())) for path in unpacked().rglob("*") if path.is_file()]
        self.assertEqual(sorted([*listed, "SHA256SUMS"]), sorted(files))

    def test_nobody_but_the_owner_may_write_and_all_may_read(self) -> None:
        rights = {line.split()[0][1:] for line in run("tar", "--list", "--verbose", "--file", packed("*.tar.gz")).splitlines()}
        self.assertEqual(rights, {"rwxr-xr-x", "rw-r--r--"})

    def test_clients_and_protocol_are_those_of_the_checkout(self) -> None:
        for file in ("python/imageworker.py", "node/imageworker.mjs", "node/imageworker.d.ts", "node/imageworker.d.mts"):
            self.assertEqual((unpacked() / "clients" / file).read_bytes(), (ROOT / "examples" / file).read_bytes(), file)
        pages = [path.relative_to(ROOT) for path in (ROOT / "protocol").glob("*.md")]
        for page in [*pages, Path("protocol/openrpc.json"), Path("protocol/images/load.svg")]:
            self.assertEqual((unpacked() / page).read_bytes(), (ROOT / page).read_bytes(), page)
        for folder in (unpacked() / "clients", content() / "usr/share/imageworker/examples"):
            for client in ("python", "node"):
                page = folder / client / "README.md"
                self.assertIn("../../protocol/reference.md", page.read_text())
                self.assertTrue((folder / client / "../../protocol/reference.md").exists())

    def test_the_binaries_have_no_symbols(self) -> None:
        for name in BINARIES:
            self.assertNotIn(".symtab", run("objdump", "--section-headers", "--wide", unpacked() / name))

    def test_each_needed_library_is_packed(self) -> None:
        packed = {path.name for path in objects()}
        for file in objects():
            needed = set(re.findall(r"^ +NEEDED +(\S+)$", run("objdump", "--private-headers", file), re.MULTILINE))
            self.assertEqual(needed - packed, set(), file.name)

    def test_no_library_is_under_the_gpl_alone(self) -> None:
        for name in ("imagequant", "x265", "fftw3", "jbig"):
            for file in (unpacked() / "lib").glob(f"lib{name}*"):
                self.assertLess(file.stat().st_size, 20_000, file.name)
                self.assertIn(file.name, (unpacked() / "notices" / "LEFT-OUT.txt").read_text())

    def test_each_library_has_its_licence(self) -> None:
        notices = unpacked() / "notices"
        packages = {line.split()[0] for line in (notices / "PACKAGES.txt").read_text().splitlines()}
        self.assertEqual(packages, {path.stem for path in notices.glob("*.txt")} - {"PACKAGES"})
        owners: set[str] = set()
        for file in objects()[len(BINARIES) :]:
            owners |= {line.partition(":")[0] for line in run("dpkg-query", "--search", f"*/{file.name}").splitlines()}
        # Packages for developers have links of the same names.
        self.assertEqual(packages - owners, set())
        self.assertIn("libvips42", packages)
        self.assertIn("GPL-2", [path.name for path in (notices / "common-licenses").iterdir()])


class DebianPackage(unittest.TestCase):
    def setUp(self) -> None:
        self.tree = work() / "tree"
        run("dpkg-deb", "--extract", packed("*.deb"), self.tree)

    def test_the_command_leads_to_the_worker_beside_its_codec(self) -> None:
        link = self.tree / "usr" / "bin" / "imageworker"
        self.assertEqual(link.resolve(), (self.tree / "usr" / "lib" / "imageworker" / "imageworker").resolve())
        self.assertTrue(os.access(link.resolve().with_name("imageworker-codec"), os.X_OK))

    def test_all_belongs_to_root(self) -> None:
        self.assertEqual({line.split()[1] for line in run("dpkg-deb", "--contents", packed("*.deb")).splitlines()}, {"root/root"})

    def test_the_manual_page_has_each_option(self) -> None:
        page = gzip.decompress((self.tree / "usr/share/man/man1/imageworker.1.gz").read_bytes()).decode()
        section = page.partition("\n.SH OPTIONS\n")[2].partition("\n.SH ")[0]
        usage = run(WORKER, "--help")
        options = re.findall(r"^  (--[\w-]+)", usage, re.MULTILINE)
        self.assertGreater(len(options), 20)
        documented = [name.replace("\\", "") for name in re.findall(r"^\.B (\\-\\-[\w\\-]+)", section, re.MULTILINE)]
        self.assertEqual(documented, options)
        if shutil.which("groff") is not None:
            self.assertEqual(run("groff", "-ww", "-man", "-Tutf8", "-z", input=page, stdin=None), "")

    def test_the_manual_page_of_the_cache_has_each_command_and_option(self) -> None:
        page = gzip.decompress((self.tree / "usr/share/man/man1/imageworker-cache.1.gz").read_bytes()).decode()
        commands = page.partition("\n.SH COMMANDS")[2].split("\n.SS ")[1:]
        names = re.findall(r"(?m)^  (\w+)", run(WORKER, "cache", "--help"))
        self.assertEqual([section.split()[2].strip('"') for section in commands], names)
        for name, section in zip(names, commands):
            options = re.findall(r"^  (--[\w-]+)", run(WORKER, "cache", name, "--help"), re.MULTILINE)
            documented = [each.replace("\\", "") for each in re.findall(r"^\.B (\\-\\-[\w\\-]+)", section, re.MULTILINE)]
            self.assertEqual(documented, options)
        if shutil.which("groff") is not None:
            self.assertEqual(run("groff", "-ww", "-man", "-Tutf8", "-z", input=page, stdin=None), "")

    def test_the_unit_starts_what_is_in_the_package(self) -> None:
        unit = (self.tree / "lib/systemd/system/imageworker-mirror.service").read_text()
        for path in re.findall(r"(?:ExecStart|IMAGEWORKER)=/(\S+)", unit):
            self.assertTrue(os.access((self.tree / path), os.X_OK), path)
        user = re.findall(r"^User=(.+)$", unit, re.MULTILINE)
        self.assertEqual(re.findall(r"^u (\S+)", (self.tree / "usr/lib/sysusers.d/imageworker.conf").read_text()), user)


def mirror() -> str:
    """The URL that this machine has its packages from."""
    wanted = re.search(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(), re.MULTILINE)
    assert wanted
    repositories = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
    for line in repositories.splitlines():
        address, release, component = line.split()
        if (release, component) == (wanted[1], "main"):
            return f"{release} {address}"
    raise unittest.SkipTest("apt has no mirror of this Debian")


class Bare(unittest.TestCase):
    """Each test has a copy of one bare Debian."""

    base: Path

    @classmethod
    def setUpClass(cls) -> None:
        if shutil.which("debootstrap") is None or os.geteuid() != 0:
            raise unittest.SkipTest("there is no debootstrap here, or the tests do not run as root")
        if subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL).returncode != 0:
            raise unittest.SkipTest("network namespaces are not permitted here")
        release, address = mirror().split()
        cls.base = work() / "bare"
        command = ["debootstrap", "--variant=minbase", release, str(cls.base), address]
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ended.returncode != 0:
            raise unittest.SkipTest(f"debootstrap failed: {ended.stdout.splitlines()[-1:]}")

    def setUp(self) -> None:
        self.root = work() / self.id().rpartition(".")[2]
        run("cp", "--archive", self.base, self.root)
        self.addCleanup(shutil.rmtree, self.root)

    def command(self, *words: str, user: str = "root", network: bool = False) -> list[str]:
        isolation = ["unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={self.root}/proc"]
        home = "/root" if user == "root" else f"/home/{user}"
        entrance = ["chroot", f"--userspec={user}:{user}", str(self.root), "env", "-i", f"HOME={home}", "LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
        return [*isolation, *([] if network else ["--net"]), *entrance, "sh", "-c", 'cd; exec "$@"', "sh", *words]

    def inside(self, *words: str, user: str = "root", network: bool = False) -> str:
        return run(*self.command(*words, user=user, network=network))

    def assert_thumbnails(self, worker: str, user: str) -> list[str]:
        """Loads an image of each format. Returns the libraries that worker and decoders have loaded."""
        requests = thumbnails(("png",))
        command = self.command(worker, "--decoders", "1", user=user)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin and process.stdout
            process.stdin.write(requests)
            process.stdin.flush()
            answers = [json.loads(process.stdout.readline()) for _ in requests.splitlines()]
            # unshare, then the worker, which runs in place of the shell, then the decoders.
            (pid,) = children(process.pid)
            maps = "".join(Path(f"/proc/{each}/maps").read_text() for each in (pid, *children(pid)))
            process.stdin.close()
            process.wait()
        self.assertEqual(process.returncode, 0)
        for answer in answers:
            result = answer.get("result", {})
            self.assertEqual((result.get("width"), result.get("height")), (30, 20), answer)
            file = self.root / result["path"][1:]
            self.assertEqual(file.stat().st_size, result["bytes"])
        libraries = sorted(set(re.findall(r" (/\S+\.so\S*)$", maps, re.MULTILINE)))
        self.assertIn("imageworker-codec", maps)
        return libraries

    def test_the_archive_as_an_ordinary_user_without_network(self) -> None:
        self.inside("useradd", "--create-home", "ann")
        archive = packed("*.tar.gz")
        shutil.copy(archive, self.root / "home" / "ann")
        self.inside("tar", "--extract", "--file", archive.name, user="ann")
        folder = f"/home/ann/{unpacked().name}"
        loaded = self.assert_thumbnails(f"{folder}/imageworker", user="ann")
        self.assertEqual([path for path in loaded if f"{folder}/lib/" not in path], [])
        self.assertGreater(len(loaded), 50)
        self.assertIn("imageworker", self.inside(f"{folder}/imageworker", "--self-test", user="ann"))

    def test_the_container_file_with_the_debian_package(self) -> None:
        user = "root"
        instructions = (OPERATING / "Containerfile").read_text().replace("\\\n", "").splitlines()
        for instruction, _, words in (line.partition(" ") for line in instructions if not line.startswith("#")):
            if instruction == "COPY":
                pattern, target = words.split()
                (file,) = (work() / "packages").glob(pattern)
                shutil.copy(file, f"{self.root}{target}")
            elif instruction == "USER":
                user = words
            elif instruction == "RUN":
                self.inside("sh", "-c", words, user=user, network=True)
            elif instruction == "ENTRYPOINT":
                self.assertEqual(self.inside(*json.loads(words), user=user), "")
            else:
                self.assertEqual((instruction, words), ("FROM", "debian:trixie-slim"))  # what release builds for
        self.assertEqual(user, "worker")
        self.assert_thumbnails("imageworker", user=user)
        self.assertEqual(self.inside("dpkg", "--verify", "imageworker").strip(), "")
        self.inside("apt-get", "purge", "--yes", "imageworker")
        self.assertEqual([str(path) for path in self.root.glob("usr/**/*imageworker*")], [])


if __name__ == "__main__":
    unittest.main()
