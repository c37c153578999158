"""The start of the worker in processes that lack something: /proc, a standard stream, a usable proxy variable."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from chaos_session import default_worker

WITHOUT_PROC = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$0" "$@"']
MOVES_ENVIRONMENT = """
#include <stdlib.h>
__attribute__((constructor)) static void set(void) { setenv("MOVED", "1", 1); }
"""


class Start(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_worker(self, *command: str, **environment: str) -> tuple[int, str, str]:
        ended = subprocess.run(
            command,
            env={**os.environ, "XDG_CACHE_HOME": str(self.folder), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return ended.returncode, ended.stdout, ended.stderr

    def assert_options_hold(self, *command: str, **environment: str) -> None:
        status, output, _ = self.run_worker(*command, "--version", **environment)
        self.assertEqual((status, output.split()[:1]), (0, ["imageworker"]))
        status, _, errors = self.run_worker(*command, "--no-such-option", **environment)
        self.assertEqual((status, "--no-such-option is not an option" in errors), (64, True), errors)
        cache = self.folder / "cache"
        self.assertEqual(self.run_worker(*command, "--cache-dir", str(cache), **environment)[0], 0)
        self.assertTrue(cache.is_dir())

    def test_options_hold_without_proc(self) -> None:
        if subprocess.run([*WITHOUT_PROC, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("mounts are not permitted here")
        self.assert_options_hold(*WITHOUT_PROC, default_worker())
        status, output, errors = self.run_worker(*WITHOUT_PROC, default_worker(), "--self-test")
        self.assertNotIn("executable file", output + errors)  # The decoder is found beside the worker.

    def test_options_hold_if_a_preloaded_library_moves_the_environment(self) -> None:
        compiler = shutil.which("cc") or shutil.which("clang")
        if compiler is None:
            self.skipTest("a C compiler is missing here")
        library = self.folder / "moves.so"
        subprocess.run(
            [compiler, "-x", "c", "-shared", "-fPIC", "-o", library, "-"], input=MOVES_ENVIRONMENT, text=True, check=True
        )
        self.assert_options_hold(default_worker(), LD_PRELOAD=str(library))

    def test_a_closed_stream_is_named(self) -> None:
        for closing, stream in (("<&-", "standard input"), (">&-", "standard output")):
            status, _, errors = self.run_worker("sh", "-c", f'exec "$0" {closing}', default_worker())
            self.assertEqual((status, f"{stream} is closed" in errors), (74, True), errors)
        self.assertEqual(self.run_worker("sh", "-c", 'exec "$0" 2>&-', default_worker())[0], 0)

    def test_a_variable_that_names_no_proxy_is_refused_by_its_name(self) -> None:
        for variable in ("http_proxy", "HTTPS_PROXY", "all_proxy"):
            status, _, errors = self.run_worker(default_worker(), **{variable: "foo://secret"})
            self.assertEqual((status, f"environment variable {variable} must have" in errors), (64, True), errors)
            self.assertNotIn("secret", errors)
            self.assertEqual(self.run_worker(default_worker(), "--proxy=", **{variable: "foo://secret"})[0], 0)


if __name__ == "__main__":
    unittest.main()
