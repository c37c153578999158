"""Probes: the bytes that an origin sends for them, and their number a second beside whole loads of 1 MB."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Dict, List, Tuple

from cold import PEERS
from measuring import Report, Round, Workspace, interleaved, median, module
from server import Server
from worker import Worker, check, existing, request

COUNT = 600
LARGE = "1000000.jpg"
KINDS = {
    "JPEG": ".jpg",
    "PNG": ".png",
    "AVIF": ".avif",
    "WebP": "0.webp",
    "WebP with EXIF data at its end": "-exif.webp",
}
"""The ends of the names of files."""


def run(report: Report, workspace: Workspace, worker: Path, python: str, rounds: int) -> None:
    existing(worker)
    module(python, "pyvips")
    with Server(workspace.fresh("server"), logs=True) as server:
        paint = [python, str(PEERS / "probe_pictures.py"), str(server.files)]
        sides = json.loads(subprocess.run(paint, check=True, capture_output=True).stdout)
        bytes_sent(report, workspace, worker, server, sides)
        rates(report, workspace, worker, server, rounds)


def bytes_sent(
    report: Report, workspace: Workspace, worker: Path, server: Server, sides: Dict[str, Tuple[int, int]]
) -> None:
    """By the log of the origin, which counts what it has written, also if it never arrives."""
    probing = Worker(worker, workspace.fresh("bytes") / "cache")
    try:
        for number, (name, (width, height)) in enumerate(sides.items()):
            probing.send(request(number, "probe", url=server.url(name)))
            check(probing.answer_to(number), 1, width=width, height=height, bytes=size_of(server, name))
    finally:
        probing.end()
    sent = {name: 0 for name in sides}
    for name, count in server.sent():
        sent[name] += count
    for kind, end in KINDS.items():
        of_kind = [float(count) for name, count in sent.items() if name.endswith(end)]
        report.add(f"probe: bytes sent, {kind}", median(of_kind) / 1000, "kB", samples=of_kind)
    every = [float(count) for count in sent.values()]
    report.add("probe: bytes sent, all formats", median(every) / 1000, "kB", at_most=40, samples=every)


def rates(report: Report, workspace: Workspace, worker: Path, server: Server, rounds: int) -> None:
    names = [f"large/{number}.jpg" for number in range(COUNT)]
    (server.files / "large").mkdir()
    for name in names:
        os.link(server.files / LARGE, server.files / name)
    urls = [server.url(name) for name in names]
    size = size_of(server, LARGE)

    def contestant(method: str) -> Round:
        lines = b"".join(request(number, method, url=url) for number, url in enumerate(urls))

        def one(directory: Path) -> float:
            running = Worker(worker, directory / "cache")
            try:
                took, answers = running.converse(lines, COUNT)
            finally:
                running.end()
            check(answers, COUNT, cache="miss", bytes=size)
            return took

        return one

    contestants = {"probe": contestant("probe"), "load": contestant("load")}
    interleaved(1, contestants, workspace)  # not counted: the system's caches fill
    samples = {name: [COUNT / took for took in times] for name, times in interleaved(rounds, contestants, workspace).items()}
    report.add("probe: probes of 1 MB", median(samples["probe"]), "files/s", samples=samples["probe"])
    report.add("probe: loads of 1 MB", median(samples["load"]), "files/s", samples=samples["load"])
    pairs: List[float] = [probe / load for probe, load in zip(samples["probe"], samples["load"])]
    report.add("probe: probes / loads", median(pairs), "x", at_least=5, samples=pairs)


def size_of(server: Server, name: str) -> int:
    return (server.files / name).stat().st_size
