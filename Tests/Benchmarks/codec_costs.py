"""The processor time of an image, of all processes together, beside the libraries that work in the host's process."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from cold import PEERS
from measuring import Report, Skipped, Workspace, interleaved, median, module, plain_environment
from worker import Worker, request

UNDER_WAY = 8
Cost = Tuple[float, float, int]
"""Milliseconds of processor time, milliseconds on the clock, and bytes of the result, of an image."""


@dataclass(frozen=True)
class Case:
    name: str
    file: str
    width: int
    """Of the thumbnail; 0 for all pixels."""
    peers: Tuple[str, ...]
    target: float
    """Of the first peer's processor time."""
    suffix: str = ""
    quality: Optional[int] = None
    count: int = 40


PIXELS = ("simplejpeg", "OpenCV", "Pillow")
CASES = [
    Case("JPEG 600 x 450 to 256", "small.jpg", 256, ("libvips",), 0.5, ".jpg[Q=95]", 95, 300),
    Case("JPEG 2725 x 2225 to 720", "large.jpg", 720, ("libvips",), 0.6, ".jpg[Q=80]", 80),
    Case("progressive JPEG to 720", "progressive.jpg", 720, ("libvips",), 0.91, ".jpg[Q=80]", 80),
    Case("AVIF 1600 x 1200 to 256 JPEG", "middle.avif", 256, ("libvips",), 0.6, ".jpg[Q=80]", 80),
    Case("WebP 1600 x 1200 to 256 WebP", "middle.webp", 256, ("libvips",), 0.9, ".webp[Q=80]", 80),
    Case("PNG photo to 720 JPEG", "photo.png", 720, ("libvips",), 0.75, ".jpg[Q=80]", 80),
    Case("PNG photo to 720 PNG", "photo.png", 720, ("libvips",), 0.75, ".png[filter=all]"),
    Case("JPEG 2725 x 2225 to 720 PNG", "large.jpg", 720, ("libvips",), 0.75, ".png[filter=all]"),
    Case("PNG screenshot to 720 WebP", "screen.png", 720, ("libvips",), 0.9, ".webp[Q=80]", 80),
    Case("pixels of a JPEG of 600 x 450", "small.jpg", 0, PIXELS, 1.8, count=300),
    Case("pixels of a JPEG of 2725 x 2225", "large.jpg", 0, PIXELS, 1.25),
]


def run(report: Report, workspace: Workspace, worker: Path, python: str, rounds: int) -> None:
    module(python, "pyvips", "pyvips-binary")
    check_libvips(python)
    module(python, "simplejpeg")
    module(python, "cv2", "opencv-python-headless")
    module(python, "PIL", "Pillow")
    pictures = workspace.fresh("pictures")
    subprocess.run([python, str(PEERS / "make_pictures.py"), str(pictures)], check=True)
    for case in CASES:
        contestants: Dict[str, Callable[[Path], Cost]] = {
            "worker": partial(ours, worker, pictures, case),
            **{peer: partial(theirs, python, pictures, case, peer) for peer in case.peers},
        }
        samples = interleaved(rounds, contestants, workspace)
        costs = {name: [median([cost[part] for cost in list_]) for part in range(3)] for name, list_ in samples.items()}
        ratio = costs["worker"][0] / costs[case.peers[0]][0]
        report.add(f"codecs: {case.name}, processor time", ratio, f"x {case.peers[0]}", at_most=case.target)
        for name, (used, took, size) in costs.items():
            report.add(f"  {name}", used, f"ms, {took:.2f} ms elapsed, {size / 1000:.0f} kB")


def check_libvips(python: str) -> None:
    """Check that pyvips has the libvips of pyvips-binary: pip may have compiled it against that of the system."""
    versions = "import importlib.metadata, pyvips; print(importlib.metadata.version('pyvips-binary'))"
    versions += "; print(*map(pyvips.version, range(3)), sep='.')"
    binary, used = subprocess.run([python, "-c", versions], check=True, capture_output=True, text=True).stdout.split()
    if binary != used:
        raise Skipped(f"pyvips uses libvips {used}; try `pip install --force-reinstall --no-deps pyvips-binary`")


def theirs(python: str, pictures: Path, case: Case, peer: str, _: Path) -> Cost:
    command = [python, str(PEERS / "transform_pictures.py"), peer, str(pictures / case.file), str(case.width)]
    printed = subprocess.run([*command, case.suffix, str(case.count)], check=True, capture_output=True, text=True).stdout
    used, took, size = printed.split()
    return float(used), float(took), int(size)


def ours(path: Path, pictures: Path, case: Case, directory: Path) -> Cost:
    suffix = case.suffix[1:].partition("[")[0]
    transform: Dict[str, Any] = {"width": case.width, "format": {"jpg": "jpeg"}.get(suffix, suffix)}
    if case.quality:
        transform["quality"] = case.quality
    wanted: Dict[str, Any] = {"transform": transform} if case.width else {"deliver": "pixels"}
    running = Worker(path, directory / "cache", "--decoders", "2")
    try:
        stored = (request(n, "store", key=f"picture-{n}", path=str(pictures / case.file)) for n in range(10))
        running.converse(b"".join(stored), 10)
        repeat(running, wanted, 20, 0)
        used, begun = processor_time(running.process.pid), time.perf_counter()
        size = repeat(running, wanted, case.count, 1000)
        return (
            1000 * (processor_time(running.process.pid) - used) / case.count,
            1000 * (time.perf_counter() - begun) / case.count,
            size,
        )
    finally:
        running.end()


def repeat(running: Worker, wanted: Dict[str, Any], count: int, first: int) -> int:
    """Has some loads under way until all are answered; returns the bytes of the last result."""

    def load(number: int) -> bytes:
        return request(number, "load", url="http://127.0.0.1:1/", key=f"picture-{number % 10}", store="none", **wanted)

    running.send(b"".join(load(first + number) for number in range(min(UNDER_WAY, count))))
    sent, size = min(UNDER_WAY, count), 0
    for result in islice(results(running), count):
        size = result["bytes"]
        if "pixels" in result:
            pixels = result["pixels"]
            size = pixels["width"] * pixels["height"] * pixels["channels"]
            released = {"jsonrpc": "2.0", "method": "release", "params": {"path": pixels["path"], "unused": True}}
            running.send(json.dumps(released).encode() + b"\n")
        if sent < count:
            running.send(load(first + sent))
            sent += 1
    return size


def results(running: Worker) -> Iterator[Dict[str, Any]]:
    rest = b""
    while True:
        *lines, rest = (rest + running.read()).split(b"\n")
        for line in lines:
            answer = json.loads(line)
            # The event after a release, which has no ID.
            if answer.get("method") == "completed":
                continue
            if "result" not in answer:
                raise RuntimeError(f"not what was asked for: {line[:500]!r}")
            yield answer["result"]


def processor_time(process: int) -> float:
    """Seconds of a process and of all that it has started."""
    children: Dict[int, List[int]] = {}
    used: Dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(name))
            used[int(name)] = sum(int(field) for field in fields[11:15])
    family = [process]
    for member in family:
        family += children.get(member, [])
    return sum(used.get(member, 0) for member in family) / os.sysconf("SC_CLK_TCK")
