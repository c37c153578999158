#!/usr/bin/env python3
"""examples/datasets beside the usual ways of the same libraries: 600 x 450 JPEGs from a server on this machine, to 256 pixels.

    .build-tests/datasets/bin/python Tests/Benchmarks/libraries.py [--images 1500] [--rounds 3] [LIBRARY...]

LIBRARY is hf, torch, ray, daft or scrapy; the default is all. A figure is the time of a run with all images less that of a run with a
few: what an image takes, without the start of the library. The processor time is that of all processes, the server's aside; it is unknown
unless a control group can be made (`peers/tree_cost.py`). A run that does not deliver all images gives no figure.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, Tuple

import pyarrow.ipc  # type: ignore[import-not-found, import-untyped, unused-ignore]
import pyarrow.parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]

sys.dont_write_bytecode = True

from measuring import Workspace, plain_environment  # noqa: E402
from painting import encoded, photograph  # noqa: E402
from server import Server  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "Tests" / "Benchmarks" / "peers"
EXAMPLES = ROOT / "examples" / "datasets"
PAINTED = 50
FEW = 50
SIZE = "256"
CORES = str(os.cpu_count() or 1)

Cost = Tuple[float, float]
"""Seconds, and seconds of processor time."""


def commands(names: str, out: str) -> Dict[str, Dict[str, List[str]]]:
    spider = ["-m", "scrapy", "runspider", str(EXAMPLES / "scrapy_images.py"), "-a", f"urls={names}", "-s", f"IMAGES_STORE={out}"]
    return {
        "hf": {
            "ImageWorker": [str(EXAMPLES / "hf_map.py"), names, out, "--size", SIZE],
            "usual": [str(PEERS / "usual_hf.py"), names, out, SIZE, CORES],
        },
        "torch": {
            "ImageWorker": [str(EXAMPLES / "torch_images.py"), names, "--size", SIZE],
            "usual": [str(PEERS / "usual_torch.py"), names, SIZE, CORES],
        },
        "ray": {
            "ImageWorker": [str(EXAMPLES / "ray_data.py"), names, out, "--size", SIZE],
            "usual": [str(PEERS / "usual_ray.py"), names, out, SIZE],
        },
        "daft": {
            "ImageWorker": [str(EXAMPLES / "daft_images.py"), names, out, "--size", SIZE],
            "usual": [str(PEERS / "usual_daft.py"), names, out, SIZE, "192"],
        },
        "scrapy": {
            "ImageWorker": spider,
            "usual": [*spider, "-s", 'ITEM_PIPELINES={"scrapy.pipelines.images.ImagesPipeline": 1}'],
        },
    }


def cost(command: List[str], directory: Path) -> Tuple[Cost, str]:
    """Also what the command says."""
    own = {name: str(directory) for name in ("XDG_CACHE_HOME", "HF_HOME")}  # Not TMPDIR: the names of Ray's sockets would be too long.
    own.update(SCRAPY_SETTINGS_MODULE="scrapy_settings", PYTHONPATH=str(PEERS))
    environment = {**plain_environment(), **own, "HF_HUB_OFFLINE": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    run = subprocess.run(
        [sys.executable, str(PEERS / "tree_cost.py"), sys.executable, *command],
        env=environment,
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if run.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:3])} failed: {run.stderr[-2000:]}")
    wall, processor = map(float, run.stdout.split())
    return (wall, processor), run.stderr


def delivered(library: str, out: Path, said: str) -> int:
    """The number of images in the output: in the files, or in the batches of PyTorch."""
    if library == "torch":
        return sum(map(int, re.findall(r"^(\d+) loaded", said, re.MULTILINE)))
    if library == "scrapy":
        return len(list(out.glob("thumbs/small/*.jpg")))
    tables = [pyarrow.parquet.read_table(path, columns=["image"]) for path in out.glob("*.parquet")]
    tables += [pyarrow.ipc.open_stream(path).read_all() for path in out.glob("*.arrow")]
    return sum(len(table["image"]) - int(table["image"].null_count) for table in tables)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", nargs="*", default=["hf", "torch", "ray", "daft", "scrapy"])
    parser.add_argument("--images", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with Workspace() as workspace, Server(workspace.fresh("server")) as server:
        for number in range(PAINTED):
            (server.files / f"{number}.jpg").write_bytes(encoded(photograph(600, 450, number), "JPEG", quality=90))
        for number in range(PAINTED, given.images):
            os.link(server.files / f"{number % PAINTED}.jpg", server.files / f"{number}.jpg")
        lists = workspace.fresh("lists")
        for count in (FEW, given.images):
            (lists / f"{count}.txt").write_text("".join(f"{server.url(f'{number}.jpg')}\n" for number in range(count)))
        for library in given.libraries:
            samples: Dict[str, List[Cost]] = {"ImageWorker": [], "usual": []}
            for turn in range(given.rounds):
                order = list(samples) if turn % 2 else list(reversed(list(samples)))
                for way in order:
                    costs = []
                    for count in (FEW, given.images):
                        directory = workspace.fresh(f"{library}-{way}")
                        spent, said = cost(commands(str(lists / f"{count}.txt"), str(directory / "out"))[library][way], directory)
                        images = delivered(library, directory / "out", said)
                        if images != count:
                            raise RuntimeError(f"{library}, {way}: {images} images of {count} URLs")
                        costs.append(spent)
                        shutil.rmtree(directory)
                    few, many = costs
                    images = given.images - FEW
                    samples[way].append(((many[0] - few[0]) / images * 1000, (many[1] - few[1]) / images * 1000))
            for way, values in samples.items():
                wall, processor = (statistics.median(value[part] for value in values) for part in (0, 1))
                effort = "processor time unknown" if math.isnan(processor) else f"{processor:.2f} ms of processor time an image"
                print(f"{library:8} {way:12} {1000 / wall:8.0f} images/s, {effort}", flush=True)


if __name__ == "__main__":
    main()
