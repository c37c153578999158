"""Images that the worker has already, asked for through its pipe, beside diskcache, which needs no pipe."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Dict, List

from cold import PEERS, SIZE
from measuring import Report, Round, Skipped, Workspace, interleaved, median, module
from server import Server
from worker import Worker, check, existing, loads


def run(
    report: Report, workspace: Workspace, worker: Path, python: str, images: int, requests: int, rounds: int
) -> None:
    requests -= requests % images
    with Server(workspace.fresh("server")) as server:
        urls = server.add_images(images, SIZE)
        contestants: Dict[str, Round] = {}
        try:
            existing(worker)
            contestants["worker, memory"] = lambda directory: from_memory(worker, directory, urls, requests)
            contestants["worker, disk"] = lambda directory: from_disk(worker, directory, urls, requests)
        except Skipped as reason:
            report.skip("warm, worker", reason)
        try:
            module(python, "diskcache")
            contestants["diskcache get"] = lambda directory: diskcache(python, directory, server.files, requests)
        except Skipped as reason:
            report.skip("warm, diskcache", reason)
        samples = interleaved(rounds, contestants, workspace)
    rates = {name: [requests / seconds for seconds in times] for name, times in samples.items()}
    for name, values in rates.items():
        target = 50_000.0 if name == "worker, memory" else None
        report.add(f"warm: {name}", median(values), "requests/s", at_least=target, samples=values)
    if "worker, memory" in rates and "diskcache get" in rates:
        ratio = median(rates["worker, memory"]) / median(rates["diskcache get"])
        report.add("warm: worker, memory / diskcache get", ratio, "x", at_least=1.5)


def from_memory(worker: Path, directory: Path, urls: List[str], requests: int) -> float:
    """The process that loaded them serves them."""
    running = Worker(worker, directory / "cache")
    try:
        running.converse(loads(urls), len(urls))
        took, answers = running.converse(loads(urls * (requests // len(urls))), requests)
    finally:
        running.end()
    check(answers, requests, cache="memory", bytes=SIZE)
    return took


def from_disk(worker: Path, directory: Path, urls: List[str], requests: int) -> float:
    """Another process without a memory tier finds them in the cache directory."""
    first = Worker(worker, directory / "cache")
    try:
        first.converse(loads(urls), len(urls))
    finally:
        first.end()
    running = Worker(worker, directory / "cache", "--memory-limit", "0")
    try:
        took, answers = running.converse(loads(urls * (requests // len(urls))), requests)
    finally:
        running.end()
    check(answers, requests, cache="disk", bytes=SIZE)
    return took


def diskcache(python: str, directory: Path, files: Path, requests: int) -> float:
    command = [python, str(PEERS / "get_with_diskcache.py"), str(files), str(directory / "cache"), str(requests)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
