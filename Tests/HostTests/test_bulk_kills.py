"""A list of good and bad rows, by a run of examples/bulk that is killed, or whose worker is, again and again: the output is that of a run
without kills.

BULK_ROWS and BULK_KILLS are the numbers of rows and of kills.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import signal
import subprocess
import tarfile
import unittest
from pathlib import Path
from typing import Iterable, Optional

from bulk_runs import BulkRuns
from origin_process import PATIENCE
from processes import descendants
from test_datasets import PYTHON, lacks

ROWS = int(os.environ.get("BULK_ROWS", "2000"))
KILLS = int(os.environ.get("BULK_KILLS", "6"))

MENU = [
    *(("/image/{}.png", "loaded"),) * 7,
    ("/image/{}.png?fail=1&close=headers", "loaded"),
    ("/image/{}.png?status=404", "http"),
    ("/html?x-n={}", "notAnImage"),
    ("/image/{}.png?truncate=20", "truncated"),
    ("no URL {}", "invalidParams"),
]
"""Rows in turn, with their outcomes at the end. The second kind succeeds in the second pass: the worker makes one attempt."""


class Kills(BulkRuns):
    maxDiff = 2000

    def test_a_run_that_is_killed_often_ends_as_if_nothing_had_happened(self) -> None:
        rows = [MENU[number % len(MENU)] for number in range(ROWS)]
        urls = [(self.origin.url if url.startswith("/") else "") + url.format(number) for number, (url, _) in enumerate(rows)]
        self.write("list.txt", *urls)
        shard_size = max(ROWS // 25, 1)
        options = ["--format", "webdataset", "--shard-size", str(shard_size), "--worker-option=--retries=0"]
        run: Optional[subprocess.Popen[bytes]] = None
        for kill in range(1, KILLS + 1):
            run = run or self.begin("list.txt", *options)
            for requests in range(ROWS * (kill - 1) // (KILLS + 1), ROWS * kill // (KILLS + 1), 500):  # Each wait has a time limit.
                self.origin.command({"do": "await", "requests": requests + 500}, patience=4 * PATIENCE)
            if kill % 2:
                os.kill(next(filter(is_worker, descendants(run.pid))), signal.SIGKILL)
            else:
                run.kill()
                run.wait()
                run = None
        self.assertEqual(run.wait() if run else 0, 0)
        shown = self.run_bulk("list.txt", *options)

        expected = collections.Counter(outcome for _, outcome in rows)
        lines = self.ledger()
        self.assertEqual([(line["row"], line["url"], line["outcome"]) for line in lines], [
            (number, url, outcome) for number, (url, (_, outcome)) in enumerate(zip(urls, rows))
        ])  # fmt: skip
        self.assertEqual(self.samples(), {line["key"]: (line["shard"], line["url"]) for line in lines if "key" in line})
        self.assertRegex(shown, rf"(?m)^{expected['loaded']} loaded, {ROWS - expected['loaded']} failed, ")
        for kind in expected.keys() - {"loaded"}:
            self.assertRegex(shown, rf"(?m)^ +{expected[kind]:,} {kind} ")
        self.assertEqual(sum(summary["succeeded"] for summary in self.summaries()), expected["loaded"])
        self.assertEqual(list(self.out.glob("*.partial")), [])
        with self.subTest("PyTorch's DataLoader"):
            loaded = [line["url"] for line in lines if line["outcome"] == "loaded"]
            self.assertEqual(sorted(urls_by_data_loader(self, self.out.glob("*.tar"))), sorted(loaded))

    def samples(self) -> dict[str, tuple[str, str]]:
        """The tar file and the URL of each sample, by key. Each has an image and its metadata, and none is there twice."""
        found: dict[str, tuple[str, str]] = {}
        for path in self.out.glob("*.tar"):
            with tarfile.open(path) as tar:
                names = []
                for member in tar:
                    key, extension = member.name.split(".", 1)
                    names.append((key, extension))
                    if extension == "json":
                        file = tar.extractfile(member)
                        assert file is not None
                        self.assertNotIn(key, found)
                        found[key] = (path.name, json.load(file)["url"])
            self.assertEqual(sorted(names), sorted((key, end) for key, _ in names[::2] for end in ("json", "png")))
        return found


def is_worker(pid: int) -> bool:
    return b"imageworker\0--" in command_line(pid)


def command_line(pid: int) -> bytes:
    """Without a process, nothing."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def urls_by_data_loader(test: unittest.TestCase, shards: Iterable[Path]) -> list[str]:
    """The URLs of the samples that PyTorch's DataLoader yields with two processes, which decode the images."""
    reason = lacks("torch", "webdataset", "numpy", "PIL")
    if reason:
        test.skipTest(reason)
    program = """if True:
        import json, sys, torch, webdataset
        samples = webdataset.WebDataset(json.load(sys.stdin), shardshuffle=False).decode("torchrgb8").to_tuple("json", "png")
        pairs = samples.map_tuple(lambda about: about["url"], lambda image: image)
        for urls, images in torch.utils.data.DataLoader(pairs, batch_size=64, num_workers=2):
            assert images.shape == (len(urls), 3, 24, 32) and images.dtype == torch.uint8, images
            print(*urls, sep="\\n")
        """
    names = json.dumps(sorted(map(str, shards)))
    run = subprocess.run([PYTHON, "-c", program], input=names, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    test.assertEqual(run.returncode, 0, run.stderr[-5000:])
    return run.stdout.splitlines()


if __name__ == "__main__":
    unittest.main()
