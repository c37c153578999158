"""The clients of `network`: how each is started with a list of URLs, and how many images it has when it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence

from bulk import BULK, CORES
from measuring import module, plain_environment, program
from network_scenarios import SIZE, Scenario
from worker import existing, loads

THREADS = 256
"""Threads of each process of img2dataset."""
KILL_AFTER = 10.0


@dataclass(frozen=True)
class Client:
    command: Callable[[Path], Sequence[str]]
    """The words of a command that works in a folder."""
    delivered: Callable[[Path], int]
    """How many images lie there when it has ended."""
    input: Optional[Path] = None
    environment: Optional[Dict[str, str]] = None


@dataclass(frozen=True)
class Ended:
    begun: float
    """By the monotonic clock, as `whole` in seconds."""
    whole: float
    processor_time: float
    """Seconds, with all processes that it has started."""
    was_stopped: bool


def run(prefix: Sequence[str], client: Client, folder: Path, stop: float) -> Ended:
    """Run a client in the namespace that `prefix` enters, for at most `stop` seconds."""
    environment = {**plain_environment(), "TMPDIR": str(folder), **(client.environment or {})}
    command = [*prefix, *client.command(folder)]
    with open(client.input or os.devnull, "rb") as source, open(folder / "output", "wb") as output:
        with open(folder / "log", "wb") as log:
            begun = time.monotonic()
            process = subprocess.Popen(
                command, env=environment, stdin=source, stdout=output, stderr=log, start_new_session=True
            )
            timers = [threading.Timer(stop, process.terminate), threading.Timer(stop + KILL_AFTER, process.kill)]
            for timer in timers:
                timer.start()
            try:
                _, status, used = os.wait4(process.pid, 0)  # Popen.wait does not tell the processor time.
                whole = time.monotonic() - begun
                process.returncode = status
            finally:
                for timer in timers:
                    timer.cancel()
                if process.returncode is None:  # Interrupted.
                    process.kill()
    return Ended(begun, whole, used.ru_utime + used.ru_stime, whole >= stop)


def the_worker(worker: Path, scenario: Scenario, inputs: Path, *options: str) -> Client:
    existing(worker)
    lines = inputs / "lines"
    if not lines.exists():
        lines.write_bytes(loads(scenario.urls))

    def delivered(folder: Path) -> int:
        answers = [json.loads(line) for line in (folder / "output").read_bytes().splitlines()]
        if len(answers) != len(scenario.urls):
            log = (folder / "log").read_text()
            raise RuntimeError(f"{len(answers)} answers instead of {len(scenario.urls)}: {log}")
        return sum(answer.get("result", {}).get("bytes") == SIZE for answer in answers)

    return Client(
        lambda folder: [str(worker), "--cache-dir", str(folder / "cache"), *scenario.worker, *options], delivered, lines
    )


def bulk(worker: Path, inputs: Path, *options: str) -> Client:
    existing(worker)

    def command(folder: Path) -> List[str]:
        words = [sys.executable, str(BULK), str(inputs / "urls.txt"), str(folder / "out"), "--format", "webdataset"]
        words += ["--robots", "ignore", "--passes", "1"]  # img2dataset does not load robots.txt, and tries each URL once.
        return words + [f"--worker-option={option}" for option in (f"--cache-dir={folder / 'cache'}", *options)]

    def delivered(folder: Path) -> int:
        # 00007.json is the report of a shard; the ledger is a .jsonl.
        reports = [json.loads(path.read_text()) for path in (folder / "out").glob("?????.json")]
        return sum(report["succeeded"] for report in reports)

    return Client(command, delivered, environment={"IMAGEWORKER": str(worker)})


def curl(scenario: Scenario, inputs: Path, at_once: int) -> Client:
    config = inputs / "curl"
    if not config.exists():
        lines = (f'url = "{url}"\noutput = "files/{number}"\n' for number, url in enumerate(scenario.urls))
        config.write_text("".join(lines))
    words = [program("curl"), "-q", "-Z", "--parallel-max", str(at_once), "--fail", "--insecure", "--retry", "2"]
    # --speed-time never ends a transfer on which nothing has come at all (curl 7.88 with -Z); no image takes so long.
    words += ["--connect-timeout", "10", "--max-time", str(scenario.timeout)]
    words += ["--no-progress-meter", "--create-dirs", "-K", str(config)]
    return Client(lambda folder: ["env", "-C", str(folder), *words], images)


def aria2(scenario: Scenario, inputs: Path, at_once: int) -> Client:
    words = [program("aria2c"), "--no-conf", "--quiet", "-j", str(at_once), "-x", "1", "--file-allocation=none"]
    words += ["--max-tries=3", "--connect-timeout=10", f"--timeout={scenario.timeout}", "-i", str(inputs / "urls.txt")]
    return Client(lambda folder: [*words, "-d", str(folder / "files")], images)


def images(folder: Path) -> int:
    """Whole files; aria2 keeps one NAME.aria2 beside each that is not."""
    if not (folder / "files").exists():
        return 0
    sizes = {entry.name: entry.stat().st_size for entry in os.scandir(folder / "files")}
    return sum(size == SIZE and f"{name}.aria2" not in sizes for name, size in sizes.items())


def img2dataset(scenario: Scenario, inputs: Path, python: str) -> Client:
    module(python, "img2dataset")
    shard = -(-len(scenario.urls) // (4 * CORES))
    words = [python, "-m", "img2dataset.main", f"--url_list={inputs / 'urls.txt'}", "--output_format=webdataset"]
    words += [f"--number_sample_per_shard={shard}", f"--processes_count={CORES}", f"--thread_count={THREADS}"]
    words += ["--retries=2", f"--timeout={scenario.timeout}", "--extract_exif=False", "--compute_hash=None"]
    words += ["--disable_all_reencoding=True"]

    def delivered(folder: Path) -> int:
        shards = [json.loads(path.read_text()) for path in (folder / "out").glob("*_stats.json")]
        return sum(shard["successes"] for shard in shards)

    environment = {"NO_ALBUMENTATIONS_UPDATE": "1"}
    return Client(lambda folder: [*words, f"--output_folder={folder / 'out'}"], delivered, environment=environment)
