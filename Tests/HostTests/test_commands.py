"""The help and the errors of the commands of examples and tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from origin_process import Origin
from package import ROOT

DEMOS = [[sys.executable, str(ROOT / "examples" / "python" / "demo.py")]]
if shutil.which("node") is not None:
    DEMOS.append(["node", str(ROOT / "examples" / "node" / "demo.mjs")])
DRAWING = "data:image/svg+xml,%3Csvg%20xmlns=%22http://www.w3.org/2000/svg%22/%3E"


def run(*command: str, **environment: str) -> tuple[int, str]:
    # The worker of a host that has just ended may still be at its last file.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        ended = subprocess.run(
            command,
            env={**os.environ, "XDG_CACHE_HOME": cache, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    return ended.returncode, ended.stdout


class Commands(unittest.TestCase):
    def test_help_is_asked_for_and_is_no_mistake(self) -> None:
        for command in ("examples/quickstart", "examples/install-missing", "Tests/run"):
            status, words = run(str(ROOT / command), "--help")
            self.assertEqual((status, f"    {command}" in words), (0, True), words)

    def test_what_is_no_argument_is_refused_before_anything_is_done(self) -> None:
        for command in (
            ["examples/install-missing", "jq", "--reinstall"],
            ["Tests/run", "--quick", "--quick"],
            ["Tests/run", "--slow"],
        ):
            status, words = run(str(ROOT / command[0]), *command[1:])
            self.assertEqual((status, len(words.splitlines()) < 10), (64, True), words)
        for option in ("--spawns", "--rounds", "--images", "--requests", "--rows"):
            status, words = run(sys.executable, str(ROOT / "Tests" / "Benchmarks" / "run"), option, "0")
            self.assertEqual((status, f"argument {option}: 0 is not 1 or more" in words), (2, True), words)

    def test_a_worker_that_is_not_there_is_named_in_one_line(self) -> None:
        missing = "/missing/imageworker"
        benchmarks = [sys.executable, str(ROOT / "Tests" / "Benchmarks" / "run"), "--worker", missing]
        for command in (*([*demo, "data:,"] for demo in DEMOS), [str(ROOT / "examples" / "quickstart")], benchmarks):
            status, words = run(*command, IMAGEWORKER=missing)
            self.assertEqual((status, len(words.splitlines()), missing in words), (69, 1, True), words)


class Demos(unittest.TestCase):
    def test_a_drawing_that_says_nothing_of_its_size(self) -> None:
        for demo in DEMOS:
            status, words = run(*demo, DRAWING)
            self.assertEqual((status, "svg 300 x 150" in words), (0, True), words)

    def test_nobody_reads_any_more(self) -> None:
        with Origin() as origin:
            urls = [f"{origin.url}/image/{n}.png" for n in range(200)]
            for demo in DEMOS:
                status, words = run("sh", "-c", '"$@" | head -n 1', "sh", *demo, *urls)
                self.assertEqual((status, len(words.splitlines())), (0, 1), words)

    def test_ctrl_c_ends_them_without_a_trace(self) -> None:
        with Origin() as origin:
            for demo in DEMOS:
                url = f"{origin.url}/image/1.png?hold={len(demo[0])}"
                with subprocess.Popen([*demo, url], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
                    origin.command({"do": "await", "gate": url.rpartition("=")[2], "held": 1})
                    process.send_signal(signal.SIGINT)
                    words, _ = process.communicate()
                self.assertEqual((process.returncode in (130, -signal.SIGINT), words), (True, ""), words)


if __name__ == "__main__":
    unittest.main()
