"""A cache that is large, and one that is full."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Dict, List

from cold import SIZE, the_worker
from grown import age, grow, index
from measuring import Report, Round, Workspace, interleaved, median
from server import Server
from startup import first_line
from worker import Worker, check, existing, loads, request

FEW = 1000
ASKED = 8000
FACTOR = 125
MANY = ASKED * FACTOR
HITS = 10_000
TURNS = 21
SPAWNS = 50
# Room for what the index says that there is.
ROOM = ("--disk-limit", "1000G", "--min-free", "0%")


def run(report: Report, workspace: Workspace, worker: Path, images: int, rounds: int) -> None:
    existing(worker)
    with Server(workspace.fresh("server")) as server:
        urls = server.add_images(max(ASKED, images), SIZE)
        caches = {FEW: workspace.fresh("few") / "cache", MANY: workspace.fresh("many") / "cache"}
        asked = workspace.fresh("asked") / "cache"
        fill(worker, caches[FEW], urls[:FEW])
        fill(worker, asked, urls[:ASKED])
        grow(asked, caches[MANY], FACTOR)
        hits(report, worker, caches, urls[:FEW], "disk", "--memory-limit", "0")
        hits(report, worker, {MANY: caches[MANY]}, urls[:ASKED], "disk", "--memory-limit", "0")
        hits(report, worker, caches, urls[:FEW], "memory")
        spawns(report, worker, caches, urls[:FEW])
        eviction(report, workspace, worker, urls[:images], rounds)


def fill(worker: Path, cache: Path, urls: List[str]) -> None:
    running = Worker(worker, cache, *ROOM)
    try:
        _, answers = running.converse(loads(urls), len(urls))
    finally:
        running.end()
    check(answers, len(urls), cache="miss", bytes=SIZE)


def hits(report: Report, worker: Path, caches: Dict[int, Path], asked: List[str], tier: str, *options: str) -> None:
    """Processor time for a hit, in turns by workers that live all the time. `caches` are by their numbers of entries."""
    chance = random.Random(1)
    workers = {size: Worker(worker, cache, *ROOM, *options) for size, cache in caches.items()}
    samples: Dict[int, List[float]] = {size: [] for size in workers}
    try:
        for size, running in workers.items():
            running.converse(loads(asked), len(asked))  # not counted: memory and page caches fill
            expect(running, entries=size)
        for _ in range(TURNS):
            lines = loads(chance.choices(asked, k=HITS))
            for size, running in workers.items():
                before = running.processor_time()
                _, answers = running.converse(lines, HITS)
                samples[size].append((running.processor_time() - before) / HITS * 1e6)
                check(answers, HITS, cache=tier, bytes=SIZE)
    finally:
        for running in workers.values():
            running.end()
    name = f"cache: a hit from {tier}, {len(asked):,} asked for of"
    for size, values in samples.items():
        report.add(f"{name} {size:,}", median(values), "us", samples=values)
    if len(samples) == 2:
        report.add(f"{name} {MANY:,} / {FEW:,}", median(samples[MANY]) / median(samples[FEW]), "x", at_most=1.2)


def expect(running: Worker, **members: int) -> None:
    running.send(request(0, "stats"))
    disk = json.loads(running.answer_to(0))["result"]["disk"]
    if any(disk[name] != value for name, value in members.items()):
        raise RuntimeError(f"not the cache that is meant: {disk}")


def spawns(report: Report, worker: Path, caches: Dict[int, Path], urls: List[str]) -> None:
    samples: Dict[int, List[float]] = {size: [] for size in caches}
    for number in range(SPAWNS):
        for size, cache in caches.items():
            took, answer = first_line([str(worker), "--cache-dir", str(cache), *ROOM], loads([urls[number]]))
            check(answer, 1, cache="disk", bytes=SIZE)
            samples[size].append(took * 1000)
    for size, values in samples.items():
        bound = 50.0 if size == MANY else None
        report.add(f"cache: spawn to a hit, {size:,} entries", median(values), "ms", at_most=bound, samples=values)


def eviction(report: Report, workspace: Workspace, worker: Path, urls: List[str], rounds: int) -> None:
    """Cold into an empty cache, and into one that is full of images of the same size, used a while ago."""
    inputs = workspace.fresh("inputs")
    (inputs / "lines").write_bytes(loads(urls))
    full = workspace.fresh("full") / "cache"
    fill(worker, full, [f"{url}?old" for url in urls])
    limit = age(full, seconds=3600)

    def into_full(directory: Path) -> float:
        shutil.copytree(full, directory / "cache")
        took = the_worker(worker, "", inputs, urls, "--disk-limit", str(limit), "--min-free", "0%")(directory).elapsed
        left = index(directory / "cache").execute("SELECT count(*), max(key LIKE '%?old') FROM responses").fetchone()
        if left != (len(urls), 0):
            raise RuntimeError(f"not all that was old was evicted: {left}")
        return took

    contestants: Dict[str, Round] = {
        "empty": lambda directory: the_worker(worker, "", inputs, urls, *ROOM)(directory).elapsed,
        "full": into_full,
    }
    interleaved(1, contestants, workspace)  # not counted: the server's and the system's caches fill
    samples = interleaved(rounds, contestants, workspace)
    rates = {name: [len(urls) / seconds for seconds in times] for name, times in samples.items()}
    for name, values in rates.items():
        report.add(f"cache: cold into {name} cache", median(values), "files/s", samples=values)
    report.add("cache: cold, full / empty", median(rates["full"]) / median(rates["empty"]), "x", at_least=0.8)
