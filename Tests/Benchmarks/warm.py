"""Images that the worker has already, asked for through its pipe, beside diskcache and `cat`.

diskcache needs no pipe. `cat` returns each line as it is, as the fastest process behind a pipe.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Dict, List

from cache import fill
from cold import PEERS, SIZE
from measuring import Report, Round, Skipped, Workspace, interleaved, median, module, program
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
            contestants["worker, spawn to exit"] = lambda directory: from_spawn_to_exit(worker, directory, urls, requests)
        except Skipped as reason:
            report.skip("warm, worker", reason)
        try:
            module(python, "diskcache")
            contestants["diskcache get"] = lambda directory: diskcache(python, directory, server.files, requests)
        except Skipped as reason:
            report.skip("warm, diskcache", reason)
        samples = interleaved(rounds, contestants, workspace)
        round_trips(report, workspace, worker, urls[:1000], rounds)
    rates = {name: [requests / seconds for seconds in times] for name, times in samples.items()}
    for name, values in rates.items():
        target = 50_000.0 if name == "worker, memory" else None
        report.add(f"warm: {name}", median(values), "requests/s", at_least=target, samples=values)
    for name, factor in (("worker, memory", 2.0), ("worker, disk", 0.9), ("worker, spawn to exit", 1.2)):
        if name in rates and "diskcache get" in rates:
            ratio = median(rates[name]) / median(rates["diskcache get"])
            report.add(f"warm: {name} / diskcache get", ratio, "x", at_least=factor)


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
    fill(worker, directory / "cache", urls)
    running = Worker(worker, directory / "cache", "--memory-limit", "0")
    try:
        took, answers = running.converse(loads(urls * (requests // len(urls))), requests)
    finally:
        running.end()
    check(answers, requests, cache="disk", bytes=SIZE)
    return took


def from_spawn_to_exit(worker: Path, directory: Path, urls: List[str], requests: int) -> float:
    """A new process reads each from disk once, and serves it from memory after that."""
    fill(worker, directory / "cache", urls)
    begun = time.perf_counter()
    running = Worker(worker, directory / "cache")
    try:
        _, answers = running.converse(loads(urls * (requests // len(urls))), requests)
    finally:
        running.end()
    took = time.perf_counter() - begun
    check(answers, requests, bytes=SIZE)
    return took


def round_trips(report: Report, workspace: Workspace, worker: Path, urls: List[str], rounds: int) -> None:
    """One request after the other, each a hit from memory, and the same lines to `cat`."""
    lines = loads(urls).splitlines(keepends=True)

    def one_by_one(running: Worker) -> float:
        times: List[float] = []
        for line in lines:
            begun = time.perf_counter()
            running.send(line)
            answer = running.read()
            times.append(time.perf_counter() - begun)
            if not answer.endswith(b"\n"):
                raise RuntimeError("an answer came in pieces")
        return median(times) * 1e6

    def hit(directory: Path) -> float:
        running = Worker(worker, directory / "cache")
        try:
            running.converse(loads(urls), len(urls))
            return one_by_one(running)
        finally:
            running.end()

    def cat(directory: Path) -> float:
        running = Worker.of([program("cat")])
        try:
            return one_by_one(running)
        finally:
            running.end()

    samples = interleaved(rounds, {"hit": hit, "cat": cat}, workspace)
    for name, values in samples.items():
        report.add(f"warm: round trip, {name}", median(values), "us", samples=values)
    report.add("warm: round trip, hit / cat", median(samples["hit"]) / median(samples["cat"]), "x", at_most=1.5)


def diskcache(python: str, directory: Path, files: Path, requests: int) -> float:
    command = [python, str(PEERS / "get_with_diskcache.py"), str(files), str(directory / "cache"), str(requests)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
