"""The decoders: thumbnails compared with a pool of pyvips processes, variants from the cache, pixels for the host."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

import decode_bombs
from cold import PEERS
from measuring import Report, Round, Skipped, Workspace, interleaved, median, module, plain_environment
from server import Server
from worker import Worker, check, existing, request

PHOTOGRAPHS = 200
OTHERS = {"png": 40, "gif": 40, "webp": 40, "avif": 40, "tif": 40}
WIDTH, HEIGHT = 1600, 1200
SIDE = 256
QUALITY = 80
THUMBNAIL = {"width": SIDE, "height": SIDE, "quality": QUALITY, "format": "jpeg"}
SHOWN = 20
HITS = 10_000
TURNS = 21
ONE_BY_ONE = 300


def run(report: Report, workspace: Workspace, worker: Path, python: str, rounds: int) -> None:
    existing(worker)
    decode_bombs.run(report, workspace, worker, rounds)
    module(python, "pyvips")
    with Server(workspace.fresh("server")) as server:
        urls = paint(python, server, "jpg", PHOTOGRAPHS)
        originals = workspace.fresh("originals") / "cache"
        fill(worker, originals, urls)
        thumbnails(report, workspace, worker, python, server.files, originals, urls, rounds)
        for extension, count in OTHERS.items():
            try:
                others = paint(python, server, extension, count)
            except subprocess.CalledProcessError as failure:
                report.skip(f"decode, thumbnails of {extension}", failure)
                continue
            stored = workspace.fresh(extension) / "cache"
            fill(worker, stored, others)
            thumbnails(report, workspace, worker, python, server.files, stored, others, rounds)
        variants(report, workspace, worker, originals, urls)
        try:
            module(python, "numpy")
            module(python, "PIL", "Pillow")
            pixels(report, workspace, worker, python, originals, urls[:SHOWN], rounds)
        except Skipped as reason:
            report.skip("decode, pixels", reason)


def paint(python: str, server: Server, extension: str, count: int) -> List[str]:
    subprocess.run([python, str(PEERS / "make_photographs.py"), str(server.files), extension, str(count)], check=True)
    return [server.url(f"{number}.{extension}") for number in range(count)]


def asked(urls: List[str], **params: Any) -> bytes:
    return b"".join(request(number, "load", url=url, **params) for number, url in enumerate(urls, 1))


def fill(worker: Path, cache: Path, urls: List[str]) -> None:
    running = Worker(worker, cache)
    try:
        _, answers = running.converse(asked(urls), len(urls))
    finally:
        running.end()
    check(answers, len(urls), cache="miss", width=WIDTH, height=HEIGHT)


def thumbnails(
    report: Report,
    workspace: Workspace,
    worker: Path,
    python: str,
    files: Path,
    originals: Path,
    urls: List[str],
    rounds: int,
) -> None:
    """Both have the originals as files, all processes that they will need, and write a file for each thumbnail."""
    processes = os.cpu_count() or 1
    extension = urls[0].rpartition(".")[2]
    what = "thumbnails" if extension == "jpg" else f"thumbnails of {extension}"

    def by_worker(directory: Path, lifetime: int = 1) -> float:
        shutil.copytree(originals, directory / "cache")
        options = ("--decoders", str(processes), "--decoder-lifetime", str(lifetime))
        running = Worker(worker, directory / "cache", *options)
        try:
            running.converse(asked(urls[: 4 * processes], transform={"width": 8}), 4 * processes)
            took, answers = running.converse(asked(urls, transform=THUMBNAIL), len(urls))
        finally:
            running.end()
        check(answers, len(urls), width=SIDE, height=SIDE * HEIGHT // WIDTH, format="jpeg")
        if len({json.loads(line)["result"]["path"] for line in answers.splitlines()}) < len(urls):
            raise RuntimeError("not a thumbnail for each")
        return took

    def by_pool(directory: Path) -> float:
        peer = [python, str(PEERS / "thumbnails_with_pyvips.py"), str(files), str(directory), extension]
        command = [*peer, *map(str, (SIDE, QUALITY, processes))]
        return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)

    contestants: Dict[str, Round] = {
        "worker": by_worker,
        "shared": lambda directory: by_worker(directory, lifetime=1000),
        "pool": by_pool,
    }
    interleaved(1, contestants, workspace)  # not counted: the system's caches fill
    samples = interleaved(rounds, contestants, workspace)
    rates = {name: [len(urls) / seconds for seconds in times] for name, times in samples.items()}
    report.add(f"decode: {what}, worker", median(rates["worker"]), "images/s", samples=rates["worker"])
    report.add(f"decode: {what}, 1,000 images a process", median(rates["shared"]), "images/s", samples=rates["shared"])
    costs = [isolated / shared for isolated, shared in zip(rates["worker"], rates["shared"])]
    report.add(f"decode: {what}, one image a process / 1,000", median(costs), "x", samples=costs)
    name = f"decode: {what}, {processes} processes with pyvips"
    report.add(name, median(rates["pool"]), "images/s", samples=rates["pool"])
    # For each round, since the machine's speed changes between rounds.
    ratios = [mine / other for mine, other in zip(rates["worker"], rates["pool"])]
    target = 0.95 if extension == "jpg" else None
    report.add(f"decode: {what}, worker / pyvips", median(ratios), "x", at_least=target, samples=ratios)


def variants(report: Report, workspace: Workspace, worker: Path, originals: Path, urls: List[str]) -> None:
    """Hits of originals and of variants, in turns by one worker: the time of each, and the worker's processor time of many."""
    chance = random.Random(1)
    kinds: Dict[str, Dict[str, Any]] = {"original": {}, "variant": {"transform": THUMBNAIL}}
    for tier, options in (("memory", []), ("disk", ["--memory-limit", "0"])):
        cache = workspace.fresh("variants") / "cache"
        shutil.copytree(originals, cache)
        times: Dict[str, List[float]] = {kind: [] for kind in kinds}
        costs: Dict[str, List[float]] = {kind: [] for kind in kinds}
        running = Worker(worker, cache, *options)
        try:
            for params in kinds.values():
                running.converse(asked(urls, **params), len(urls))
            for _ in range(TURNS):
                chosen = chance.choices(urls, k=HITS)
                for kind, params in kinds.items():
                    times[kind].append(time_of_one(running, chosen[:ONE_BY_ONE], params) * 1e6)
                for kind, params in kinds.items():
                    lines = asked(chosen, **params)
                    before = running.processor_time()
                    _, answers = running.converse(lines, HITS)
                    costs[kind].append((running.processor_time() - before) / HITS * 1e6)
                    check(answers, HITS, cache=tier, width=SIDE if params else WIDTH)
        finally:
            running.end()
        for kind in kinds:
            report.add(f"decode: time of a hit from {tier}, {kind}", median(times[kind]), "us", samples=times[kind])
        ratios = [variant / original for original, variant in zip(*times.values())]
        report.add(f"decode: time of a hit from {tier}, variant / original", median(ratios), "x", at_most=1.05, samples=ratios)
        for kind in kinds:
            name = f"decode: processor time for a hit from {tier}, {kind}"
            report.add(name, median(costs[kind]), "us", samples=costs[kind])


def time_of_one(running: Worker, urls: List[str], params: Dict[str, Any]) -> float:
    """Seconds from the request to the answer, of requests that are sent one after the other: their median."""
    times: List[float] = []
    for url in urls:
        line = request(1, "load", url=url, **params)
        begun = time.perf_counter()
        running.send(line)
        running.answer_to(1)
        times.append(time.perf_counter() - begun)
    return median(times)


def pixels(
    report: Report, workspace: Workspace, worker: Path, python: str, originals: Path, urls: List[str], rounds: int
) -> None:
    def shown(way: str, directory: Path) -> Tuple[float, float]:
        shutil.copytree(originals, directory / "cache")
        command = [python, str(PEERS / "show_images.py"), str(worker), str(directory / "cache"), way, *urls]
        peer = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, env={**plain_environment(), "OMP_NUM_THREADS": "1"}
        )
        spent, took = map(float, peer.stdout.split())
        return spent / len(urls) * 1000, took / len(urls) * 1000

    times: Dict[str, List[Tuple[float, float]]] = {"pixels": [], "data": []}
    for _ in range(rounds):
        for way, values in times.items():
            values.append(shown(way, workspace.fresh(way)))
    for way, values in times.items():
        spent, took = zip(*values)
        report.add(f"decode: the host's processor time, {way}", median(spent), "ms", samples=spent)
        report.add(f"decode: from request to pixels, {way}", median(took), "ms", samples=took)
    ratio = median([spent for spent, _ in times["data"]]) / median([spent for spent, _ in times["pixels"]])
    report.add("decode: the host's processor time, data / pixels", ratio, "x", at_least=3)
