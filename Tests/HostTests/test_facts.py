"""Facts that the pages tell of the worker: exit statuses, default header fields, modes of files."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

from origin_process import Origin
from package import ROOT

WORKER = os.environ.get("IMAGEWORKER", str(ROOT / ".build" / "release" / "imageworker"))
REFERENCE = (ROOT / "protocol" / "reference.md").read_text()


class Facts(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_worker(self, *options: str, text: str = "") -> "subprocess.CompletedProcess[str]":
        command = [WORKER, f"--cache-dir={self.folder}/cache", *options]
        return subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_each_option_with_a_path_has_the_exit_status_that_the_reference_names(self) -> None:
        statuses = dict(re.findall(r"(?m)^\| (\d+) \| (.+) \|$", REFERENCE.partition("## Exit statuses")[2]))
        missing = f"{self.folder}/missing/file"
        for status, word, option in (
            (64, "an option is invalid", "--no-such-option"),
            (66, "the cookie file", f"--cookies={missing}"),
            (73, "the cache directory", "--cache-dir=/dev/null"),
            (73, "`--read-only-cache`", f"--read-only-cache={missing}"),
            (73, "`--metrics-file`", f"--metrics-file={missing}"),
            (73, "`--trace`", f"--trace={missing}"),
        ):
            with self.subTest(option):
                self.assertEqual(self.run_worker(option).returncode, status)
                self.assertIn(word, statuses[str(status)])

    def test_an_unknown_option_is_answered_as_the_reference_says(self) -> None:
        self.assertIn("unknown option of the command line suggests a similar one, or refers to `--help`", " ".join(REFERENCE.split()))
        self.assertIn("did you mean --retries?", self.run_worker("--retrys=1").stderr)
        self.assertIn("see imageworker --help", self.run_worker("--xyz").stderr)

    def test_the_default_header_fields_are_those_of_the_reference(self) -> None:
        with Origin() as origin:
            self.run_worker(text=json.dumps({"id": 1, "method": "load", "params": {"url": f"{origin.url}/image/1.png"}}))
            (request,) = origin.command({"do": "log", "path": "/"})["exchanges"]
        fields = {name.lower(): value for name, value in request["headers"]}
        self.assertIn(f"`Accept: {fields['accept']}`", REFERENCE)
        product, _, version = fields["user-agent"].partition("/")
        self.assertEqual(version, self.run_worker("--version").stdout.split()[1])
        self.assertRegex(REFERENCE, rf"(?m)^\| `--user-agent [^`]+` \| `{product}/VERSION` \|")

    def test_only_its_user_can_read_a_path_and_all_can_read_what_was_saved(self) -> None:
        (self.folder / "cache").mkdir(mode=0o755)
        saved = self.folder / "saved.png"
        with Origin() as origin:
            params = {"url": f"{origin.url}/image/1.png", "saveTo": str(saved)}
            before = os.umask(0o022)
            try:
                answer = json.loads(self.run_worker(text=json.dumps({"id": 1, "method": "load", "params": params})).stdout)
            finally:
                os.umask(before)
        path = Path(answer["result"]["path"])
        modes = [stat.S_IMODE(each.stat().st_mode) for each in (path.parent, path, saved)]
        self.assertEqual(modes, [0o700, 0o600, 0o644])


if __name__ == "__main__":
    unittest.main()
