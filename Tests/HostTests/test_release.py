"""Packs the built worker with examples/operating/release, installs the packages, and runs the archive in systems that have nothing else.

    IMAGEWORKER=PATH python -m unittest test_release
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import unittest
import zipfile
from pathlib import Path
from typing import Any, Callable, Union

from package import ROOT
from release_packages import BINARIES, DRAWING, OPERATING, WORKER, objects, packed, pictures, run, thumbnails, unpacked, work
from release_roots import LIKE_BUILD, OTHERS, Roots as Roots
from test_documents import broken_links

def setUpModule() -> None:
    work()


def content(pattern: str) -> Path:
    """The files of a package."""
    folder = work() / f"content{pattern[1:]}"
    if not folder.exists():
        folder.mkdir()
        extract = {"*.deb": ("dpkg-deb", "--extract"), "*.whl": (sys.executable, "-m", "zipfile", "--extract")}
        if pattern in extract:
            run(*extract[pattern], packed(pattern), folder)
        else:
            run("tar", "--extract", "--file", packed(pattern), "--directory", folder)
    return folder


class Packing(unittest.TestCase):
    @unittest.skipUnless(LIKE_BUILD, "RELEASE may be of another Debian")
    def test_the_second_run_gives_the_same_bytes(self) -> None:
        again = work() / "again"
        environment = {**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8", "LD_LIBRARY_PATH": "/nonexistent"}
        release = (OPERATING / "release", "--build", WORKER.parent, "--level", "1", "--output", again)
        run("sh", "-c", 'umask 077; exec "$@"', "sh", *release, env=environment, cwd="/")
        for file in (work() / "packages").iterdir():
            self.assertEqual(file.read_bytes() == (again / file.name).read_bytes(), True, file.name)

    def test_names_have_version_and_architecture(self) -> None:
        version = run(WORKER, "--version").split()[1]
        self.assertTrue(packed(f"imageworker-{version}-linux-{platform.machine()}.tar.gz"))
        self.assertTrue(packed(f"imageworker_{version}_{run('dpkg', '--print-architecture').strip()}.deb"))
        machine = platform.machine()
        tags = f"py3-none-manylinux2014_{machine}.manylinux_2_17_{machine}.musllinux_1_1_{machine}"
        self.assertTrue(packed(f"imageworker-{version}-{tags}.whl"))
        self.assertRegex(packed("*.tgz").name, rf"^imageworker-{version}-npm-linux-(x64|arm64)\.tgz$")

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

    def test_clients_and_guide_are_those_of_the_checkout(self) -> None:
        for file in ("python/imageworker.py", "node/imageworker.mjs", "node/imageworker.d.ts", "node/imageworker.d.mts"):
            self.assertEqual((unpacked() / "examples" / file).read_bytes(), (ROOT / "examples" / file).read_bytes(), file)
        for page in ("protocol/openrpc.json", "protocol/images/load.svg", "protocol/sharing.md", "examples/operating/cache.md"):
            self.assertEqual((unpacked() / page).read_bytes(), (ROOT / page).read_bytes(), page)

    def test_each_link_leads_to_a_packed_file(self) -> None:
        for package in ("*.tar.gz", "*.whl", "*.tgz", "*.deb"):
            folder = content(package)
            pages = sorted(folder.rglob("*.md"))
            self.assertGreater(len([page for page in pages if "../../protocol/reference.md" in page.read_text()]), 3, package)
            self.assertEqual([link for page in pages for link in broken_links(page)], [], package)

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

    @unittest.skipUnless(LIKE_BUILD, "RELEASE may be of another Debian")
    def test_each_library_has_its_licence(self) -> None:
        notices = unpacked() / "notices"
        lines = (notices / "PACKAGES.txt").read_text().splitlines()
        packages = {line.split()[0] for line in lines}
        statements = {path.name for path in notices.glob("*.txt")} - {"PACKAGES.txt", "LEFT-OUT.txt"}
        self.assertEqual({line.split()[-1] for line in lines}, statements)
        owners = {"ca-certificates", "fonts-dejavu-core", "swift"}
        for file in objects()[len(BINARIES) :]:
            found = {line.partition(":")[0] for line in run("dpkg-query", "--search", f"*/{file.name}").splitlines()}
            self.assertTrue(found & packages or file.name in (notices / "LEFT-OUT.txt").read_text(), file.name)
            owners |= found
        # Packages for developers have links of the same names.
        self.assertEqual(packages - owners, set())
        self.assertIn("libvips42", packages)
        self.assertIn("GPL-2", [path.name for path in (notices / "common-licenses").iterdir()])
        for file in (notices / "swift.txt", content("*.deb") / "usr/share/doc/imageworker/copyright"):
            self.assertIn("Runtime Library Exception", file.read_text())


class Damaged(unittest.TestCase):
    """The archive's folder without a file, moved, and in a place where it cannot work."""

    def setUp(self) -> None:
        self.folder = work() / "damaged"
        shutil.copytree(unpacked(), self.folder, copy_function=os.link)
        self.addCleanup(shutil.rmtree, self.folder)

    def load(self, url: str, before: Callable[[], object] = lambda: None) -> dict[str, Any]:
        """The answer to a load in a worker that has started a decoder, for plain images."""
        command = [f"{self.folder}/imageworker", "--cache-dir", f"{work()}/cache"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdin and process.stdout
            params = {"url": pictures().get("png", DRAWING), "transform": {"width": 3}, "store": "none", "deliver": "data"}
            process.stdin.write(json.dumps({"id": 0, "method": "load", "params": params}) + "\n")
            process.stdin.flush()
            process.stdout.readline()
            before()
            output, _ = process.communicate(json.dumps({"id": 1, "method": "load", "params": {**params, "url": url}}))
        answer: dict[str, Any] = json.loads(output.splitlines()[-1])
        return answer

    def test_a_missing_library_is_told_and_not_taken_from_the_system(self) -> None:
        (self.folder / "lib/libtiff.so.6").unlink()
        self.assertRegex(self.load(DRAWING)["error"]["message"], r"imageworker-codec exited .* libtiff\.so\.6: cannot open")
        (self.folder / "lib/libz.so.1").unlink()
        ended = subprocess.run([self.folder / "imageworker", "--version"], stderr=subprocess.PIPE, text=True)
        self.assertEqual(ended.returncode, 127)
        self.assertRegex(ended.stderr, r"\A.* libz\.so\.1: cannot open .*\n\Z")

    def test_it_may_be_moved_while_a_worker_runs(self) -> None:
        moved = work() / "moved"
        self.addCleanup(moved.rename, self.folder)
        self.assertIn("result", self.load(pictures().get("heic", DRAWING), before=lambda: self.folder.rename(moved)))

    def test_a_path_that_is_not_utf_8_is_refused(self) -> None:
        name = os.fsencode(work()) + b"/damaged-\xff"
        os.rename(self.folder, name)
        self.addCleanup(os.rename, name, self.folder)
        ended = subprocess.run([name + b"/imageworker"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((ended.returncode, ended.stdout), (os.EX_OSERR, ""))
        self.assertRegex(ended.stderr, r"\A.*not UTF-8\n\Z")

    def test_jbig_in_tiff_is_an_unsupported_format(self) -> None:
        fields = {256: 8, 257: 8, 258: 1, 259: 34661, 262: 0, 273: 8, 278: 8, 279: 40}  # one strip, after the header
        directory = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in fields.items())
        tiff = b"II*\0" + struct.pack("<I", 48) + bytes(40) + struct.pack("<H", len(fields)) + directory + bytes(4)
        error = self.load(f"data:image/tiff;base64,{base64.b64encode(tiff).decode()}")["error"]
        self.assertEqual(error["data"]["kind"], "unsupportedFormat")
        self.assertIn("JBIG is not supported", error["message"])


def without_worker() -> dict[str, str]:
    """An environment in which no worker is found."""
    return {"PATH": "/usr/bin:/bin", "HOME": str(work()), "XDG_CACHE_HOME": str(work() / "cache")}


def worker_files(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """The bytes of each file of the worker below a folder, and whether it can be executed."""
    others = ("README.txt", "SHA256SUMS", "examples", "notices", "protocol")
    files = [path for path in folder.rglob("*") if path.is_file() and path.relative_to(folder).parts[0] not in others]
    return {str(path.relative_to(folder)): (path.read_bytes(), os.access(path, os.X_OK)) for path in files}


class Wheel(unittest.TestCase):
    """The packed("*.whl"), installed in a virtual environment."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = work() / "environment"
        run(sys.executable, "-m", "venv", cls.folder)
        cls.empty = sorted(cls.folder.rglob("*"))
        run(cls.folder / "bin" / "pip", "install", "--no-index", packed("*.whl"))
        (cls.installed,) = cls.folder.glob("lib/python3*/site-packages/imageworker")

    folder: Path
    empty: list[Path]
    installed: Path

    def python(self, *arguments: Union[str, Path], **options: Any) -> str:
        return run(self.folder / "bin" / "python", *arguments, cwd=work(), env=without_worker(), **options)

    def test_the_client_finds_the_worker_beside_it(self) -> None:
        program = (
            "import sys; from imageworker import BlockingImageWorker, find_worker\n"
            "print(find_worker())\n"
            "with BlockingImageWorker() as worker: print(worker.load(sys.argv[1], transform={'width': 30}).path)"
        )
        found, path = self.python("-c", program, DRAWING).splitlines()
        self.assertEqual(found, str(self.installed / "bin" / "imageworker"))
        self.assertTrue(Path(path).is_file())

    def test_the_commands_start_the_worker_of_the_wheel(self) -> None:
        command = self.folder / "bin" / "imageworker"
        # A command that looked for the worker would find itself.
        environment = {**without_worker(), "IMAGEWORKER": str(command), "PATH": f"{self.folder}/bin:/usr/bin:/bin"}
        self.assertEqual(run(command, "--version", env=environment), run(WORKER, "--version"))
        self.assertIn(str(self.installed / "bin" / "imageworker-codec"), self.python("-m", "imageworker", "--self-test"))

    def test_it_loads_lists_by_bulk(self) -> None:
        self.assertIn("--format {files,webdataset}", self.python("-m", "imageworker.bulk", "--help"))
        (work() / "list.txt").write_text(f"{DRAWING}\n")
        self.assertRegex(self.python("-m", "imageworker.bulk", "list.txt", "images", "--size", "30"), r"^1 loaded, 0 failed, \d+/s\n$")
        self.assertEqual(sorted(path.name for path in (work() / "images" / "00000").iterdir()), ["000000000.jpg", "000000000.json"])

    def test_it_has_the_worker_of_the_archive_and_the_guide(self) -> None:
        self.assertEqual(worker_files(self.installed / "bin") == worker_files(unpacked()), True)
        self.assertTrue((self.installed / "guide" / "examples" / "python" / "README.md").exists())
        self.assertEqual((self.installed / "notices" / "PACKAGES.txt").read_bytes(), (unpacked() / "notices" / "PACKAGES.txt").read_bytes())

    def test_the_record_lists_all_files_with_their_hashes(self) -> None:
        with zipfile.ZipFile(packed("*.whl")) as archive:
            self.assertIsNone(archive.testzip())
            (record,) = (name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
            rows = [line.split(",") for line in archive.read(record).decode().splitlines()]
            self.assertEqual([name for name, _, _ in rows], archive.namelist())
            for name, digest, size in rows[:-1]:
                data = archive.read(name)
                expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
                self.assertEqual((digest, size), (f"sha256={expected}", str(len(data))), name)

    def test_its_types_are_found(self) -> None:
        if importlib.util.find_spec("mypy") is None:
            raise unittest.SkipTest("there is no mypy here")
        program = work() / "program.py"
        program.write_text("from imageworker import BlockingImageWorker\n\nreveal_type(BlockingImageWorker().load('data:,').path)\n")
        checked = run(sys.executable, "-m", "mypy", "--strict", "--python-executable", self.folder / "bin" / "python", program, cwd=work())
        self.assertIn('Revealed type is "pathlib.Path"', checked)

    def test_uninstall_leaves_nothing(self) -> None:
        self.addCleanup(run, self.folder / "bin" / "pip", "install", "--no-index", packed("*.whl"))
        run(self.folder / "bin" / "pip", "uninstall", "--yes", "imageworker")
        self.assertEqual(sorted(self.folder.rglob("*")), self.empty)


class NpmPackage(unittest.TestCase):
    """The package for npm, unpacked() as npm does it."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.project = work() / "project"
        cls.installed = cls.project / "node_modules" / "imageworker"
        cls.installed.mkdir(parents=True)
        run("tar", "--extract", "--file", packed("*.tgz"), "--directory", cls.installed, "--strip-components=1")
        cls.description = json.loads((cls.installed / "package.json").read_text())

    project: Path
    installed: Path
    description: dict[str, Any]

    def test_it_has_the_worker_of_the_archive_and_the_guide(self) -> None:
        self.assertEqual(worker_files(self.installed / "bin") == worker_files(unpacked()), True)
        self.assertTrue((self.installed / "guide" / "examples" / "node" / "README.md").exists())
        self.assertTrue((self.installed / "notices" / "PACKAGES.txt").exists())

    def test_all_is_in_one_folder(self) -> None:
        self.assertEqual({name.partition("/")[0] for name in run("tar", "--list", "--file", packed("*.tgz")).splitlines()}, {"package"})

    def test_a_link_to_the_command_starts_the_worker(self) -> None:
        ((name, path),) = self.description["bin"].items()
        link = self.project / "node_modules" / ".bin" / name
        link.parent.mkdir()
        link.symlink_to(f"../imageworker/{path}")
        self.assertEqual(run(link, "--version"), run(WORKER, "--version"))
        self.assertIn(str(self.installed / "bin" / "imageworker-codec"), run(link, "--self-test", env=without_worker()))

    def test_the_client_finds_the_worker_beside_it(self) -> None:
        node = shutil.which("node")
        if node is None:
            raise unittest.SkipTest("there is no node here")
        program = self.project / "program.mjs"
        program.write_text(
            'import { ImageWorker, findWorker } from "imageworker";\n'
            "const worker = new ImageWorker();\n"
            "const image = await worker.load(process.argv[2], { transform: { width: 30 } });\n"
            "console.log(JSON.stringify([findWorker(), image.width, process.platform, process.arch]));\n"
            "await worker.close();\n"
        )
        found, width, system, cpu = json.loads(run(node, program, DRAWING, env=without_worker()))
        self.assertEqual((found, width), (str(self.installed / "bin" / "imageworker"), 30))
        self.assertEqual((self.description["os"], self.description["cpu"]), ([system], [cpu]))

    def test_tsc_finds_its_types(self) -> None:
        if shutil.which("tsc") is None:
            raise unittest.SkipTest("there is no tsc here")
        program = self.project / "program.mts"
        program.write_text(
            'import { ImageWorker } from "imageworker";\n'
            'const image = await new ImageWorker().load("data:,");\n'
            "export const path: string = image.path;\n"
        )
        options = ["--noEmit", "--strict", "--target", "es2022", "--module", "node16", "--lib", "es2022,dom"]
        self.assertEqual(run("tsc", *options, program, cwd=self.project), "")


class DebianPackage(unittest.TestCase):
    def setUp(self) -> None:
        self.tree = content("*.deb")

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
    """The package for Debian in a bare one."""

    base: Path

    @classmethod
    def setUpClass(cls) -> None:
        if "deb" not in OTHERS:
            raise unittest.SkipTest("the package for Debian is installed if RELEASE_ROOTS contains deb")
        if shutil.which("debootstrap") is None or os.geteuid() != 0:
            raise unittest.SkipTest("there is no debootstrap here, or the tests do not run as root")
        if subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL).returncode != 0:
            raise unittest.SkipTest("network namespaces are not permitted here")
        # A release for others is made in Debian 13.
        release, address = mirror().split() if LIKE_BUILD else ("trixie", "http://deb.debian.org/debian")
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

    def assert_thumbnails(self, worker: str, user: str) -> None:
        """Loads an image of each format."""
        command = self.command(worker, "--decoders", "1", user=user)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            output, _ = process.communicate(thumbnails(("png",)))
        self.assertEqual(process.returncode, 0)
        for answer in map(json.loads, output.splitlines()):
            result = answer.get("result", {})
            self.assertEqual((result.get("width"), result.get("height")), (30, 20), answer)
            self.assertEqual((self.root / result["path"][1:]).stat().st_size, result["bytes"])

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
