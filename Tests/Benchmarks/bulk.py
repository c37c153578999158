"""A list of URLs to WebDataset shards by examples/bulk, beside img2dataset: images as they come, and scaled to 256 pixels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Tuple

from cold import PEERS
from measuring import Report, Round, Skipped, Workspace, interleaved, median, module, plain_environment
from server import Server
from worker import existing

BULK = Path(__file__).resolve().parents[2] / "examples" / "bulk" / "bulk.py"
PAINTED = 100
SIDE = 256
QUALITY = 95
AT_ONCE = 64
SHARDS_PER_CORE = 4
CORES = os.cpu_count() or 1


@dataclass(frozen=True)
class Work:
    """A list of images, all of one size, and what becomes of them."""

    name: str
    width: int
    height: int
    count: int
    scaled: bool

    @property
    def shard(self) -> int:
        return -(-self.count // (SHARDS_PER_CORE * CORES))


def works(images: int) -> List[Work]:
    return [
        Work("600 x 450 as they come", 600, 450, images, scaled=False),
        Work(f"600 x 450 to {SIDE}", 600, 450, images // 2, scaled=True),
        Work(f"1600 x 1200 to {SIDE}", 1600, 1200, images // 8, scaled=True),
    ]


def run(report: Report, workspace: Workspace, worker: Path, python: str, images: int, rounds: int) -> None:
    existing(worker)
    module(python, "img2dataset")
    for work in works(images):
        with Server(workspace.fresh("server")) as server:
            measure(report, workspace, worker, python, server, work, rounds)


def measure(
    report: Report, workspace: Workspace, worker: Path, python: str, server: Server, work: Work, rounds: int
) -> None:
    paint = [python, str(PEERS / "bulk_photographs.py"), str(server.files)]
    subprocess.run([*paint, *map(str, (PAINTED, work.count, work.width, work.height))], check=True)
    urls = workspace.fresh("list") / "urls.txt"
    urls.write_text("".join(f"{server.url(f'{number}.jpg')}\n" for number in range(work.count)))
    loading: List[float] = []  # what img2dataset takes between its start and its end

    def with_img2dataset(directory: Path) -> float:
        took, loaded = img2dataset(python, urls, directory, work)
        loading.append(loaded)
        return took

    contestants: Dict[str, Round] = {
        "bulk": lambda directory: bulk(worker, urls, directory, work),
        "img2dataset": with_img2dataset,
    }
    interleaved(1, contestants, workspace)  # not counted
    loading.clear()
    times = interleaved(rounds, contestants, workspace)
    rates = {
        "bulk.py": [work.count / took for took in times["bulk"]],
        "img2dataset": [work.count / took for took in times["img2dataset"]],
        "img2dataset, less its start and end": [work.count / took for took in loading],
    }
    for name, values in rates.items():
        report.add(f"{work.name}: {name}", median(values), "images/s", samples=values)
    mine, whole, pace = (median(values) for values in rates.values())
    report.add(f"{work.name}: bulk.py / img2dataset", mine / whole, "x", at_least=3)
    report.add(f"{work.name}: bulk.py / img2dataset, less its start and end", mine / pace, "x")


def bulk(worker: Path, urls: Path, directory: Path, work: Work) -> float:
    command = [sys.executable, str(BULK), str(urls), str(directory / "out"), "--format", "webdataset"]
    command += ["--shard-size", str(work.shard), f"--worker-option=--cache-dir={directory / 'cache'}"]
    command += [f"--worker-option=--max-concurrent={AT_ONCE}", f"--worker-option=--max-per-host={AT_ONCE}"]
    if work.scaled:
        command += ["--size", str(SIDE), "--quality", str(QUALITY)]
    took = seconds(command, {"IMAGEWORKER": str(worker)}, directory / "log")
    check(directory / "out", work)
    return took


def img2dataset(python: str, urls: Path, directory: Path, work: Work) -> Tuple[float, float]:
    """Seconds from spawn to exit, and from the first shard's begin to the last one's end.

    It has as many processes as there are cores, and leaves out EXIF data and digests.
    """
    command = [python, "-m", "img2dataset.main", f"--url_list={urls}", f"--output_folder={directory / 'out'}"]
    command += ["--output_format=webdataset", f"--number_sample_per_shard={work.shard}", f"--processes_count={CORES}"]
    command += [f"--thread_count={AT_ONCE // CORES}", "--extract_exif=False", "--compute_hash=None"]
    if work.scaled:
        command += [f"--image_size={SIDE}", "--resize_mode=keep_ratio_largest", f"--encode_quality={QUALITY}"]
    else:
        command += ["--disable_all_reencoding=True"]
    took = seconds(command, {"NO_ALBUMENTATIONS_UPDATE": "1"}, directory / "log")
    check(directory / "out", work)
    shards = [json.loads(path.read_text()) for path in (directory / "out").glob("*_stats.json")]
    return took, max(shard["end_time"] for shard in shards) - min(shard["start_time"] for shard in shards)


def seconds(command: List[str], environment: Dict[str, str], log: Path) -> float:
    with log.open("wb") as output:
        begun = time.perf_counter()
        environment = {**plain_environment(), "TMPDIR": str(log.parent), **environment}
        status = subprocess.run(command, env=environment, stdout=output, stderr=output).returncode
        took = time.perf_counter() - begun
    if status != 0:
        raise RuntimeError(f"{command[1]} failed: {log.read_text()[-500:]}")
    return took


def check(folder: Path, work: Work) -> None:
    """Every image is there, is a JPEG, and as large as it should be by the facts beside it."""
    images = 0
    for shard in folder.glob("*.tar"):
        with tarfile.open(shard) as tar:
            for member in tar:
                file = tar.extractfile(member)
                assert file is not None
                if member.name.endswith(".json"):
                    facts = json.load(file)
                    if work.scaled and max(facts["width"], facts["height"]) != SIDE:
                        raise RuntimeError(f"not what was asked for: {facts}")
                else:
                    images += file.read(2) == b"\xff\xd8"
    if images != work.count:
        raise RuntimeError(f"{images} images instead of {work.count} in {folder}")
