"""The cost of waiting loads: memory, the time to cancel them, and the delay of the next load."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

from measuring import Report, Round, Skipped, Workspace, interleaved, median, plain_environment, program
from server import Server
from slow import SilentOrigin
from worker import Worker, existing, loads, memory, request

LOADS = 100_000
ITEMS = 1_000_000
ITEMS_A_REQUEST = 100_000
SHORT, LONG = 1_000, 1_000_000
LOADS_A_ROUND = 4_000
ROUNDS_OF_LOADS = 21
"""There are more of these than of others: they cost little, and it is small differences that are looked for."""


def run(report: Report, workspace: Workspace, worker: Path, rounds: int) -> None:
    existing(worker)
    waiting_loads(report, workspace, worker, rounds)
    waiting_items(report, workspace, worker)
    enqueue_to_start(report, workspace, worker)


def photographs(port: int, count: int) -> List[str]:
    """Distinct URLs as they are found in the wild: about 110 bytes, and equal for most of their length."""
    words = random.Random(count)
    return [
        f"http://127.0.0.1:{port}/media/photos/2024/{number % 12 + 1:02}/{number % 28 + 1:02}/"
        f"{words.getrandbits(96):024x}-{number}/large-1280x960.jpg?w=640&q=80"
        for number in range(count)
    ]


# Waiting loads take memory, and can be cancelled.


def waiting_loads(report: Report, workspace: Workspace, worker: Path, rounds: int) -> None:
    with SilentOrigin() as origin:
        urls = photographs(origin.port, LOADS)
        samples = [loads_that_wait(worker, workspace.fresh("loads"), urls) for _ in range(rounds)]
    resident, each, peak, cancelling = zip(*samples)
    report.add("queue: 100,000 waiting loads, resident", median(resident), "MB", at_most=250, samples=resident)
    report.add("queue: 100,000 waiting loads, peak", median(peak), "MB", at_most=250, samples=peak)
    report.add("queue: one waiting load", median(each), "bytes", samples=each)
    name = "queue: 100,000 loads cancelled, all answers read"
    report.add(name, median(cancelling), "s", at_most=2, samples=cancelling)
    for name, command in {"curl -Z": curl, "aria2": aria2}.items():
        try:
            own = [peer_that_waits(command, workspace.fresh(name), urls) for _ in range(rounds)]
            report.add(f"queue: {name} with these 100,000 URLs", median(own), "MB", samples=own)
        except Skipped as reason:
            report.skip(f"queue, {name}", reason)


def loads_that_wait(worker: Path, directory: Path, urls: List[str]) -> Tuple[float, float, float, float]:
    """MB in all, bytes for each load, MB at the worst, seconds to cancel all."""
    running = Worker(worker, directory / "cache", "--timeout", "0")
    try:
        running.converse(request(0, "stats"), 1)
        idle = running.memory()["VmRSS"]
        running.converse(loads(urls) + request(0, "stats"), 1)
        settle(running, len(urls))
        memory = running.memory()
        cancelling, answers = running.converse(request(0, "cancel", all=True), len(urls) + 1)
    finally:
        running.end()
    told = [json.loads(line) for line in answers.splitlines()]
    cancelled = {each["id"] for each in told if each.get("error", {}).get("code") == -32800}
    if len(cancelled) != len(urls) or {"cancelled": len(urls)} not in (each.get("result") for each in told):
        raise RuntimeError(f"{len(cancelled)} of {len(urls)} were cancelled")
    return memory["VmRSS"], (memory["VmRSS"] - idle) * (1 << 20) / len(urls), memory["VmHWM"], cancelling


def waiting_items(report: Report, workspace: Workspace, worker: Path) -> None:
    """Once: a million of anything is a sample large enough."""
    with SilentOrigin() as origin:
        urls = photographs(origin.port, ITEMS)
        lines = b"".join(
            request(number, "prefetch", urls=urls[at : at + ITEMS_A_REQUEST])
            for number, at in enumerate(range(0, ITEMS, ITEMS_A_REQUEST), 1)
        )
        options = ("--timeout", "0", "--max-queued", str(2 * ITEMS))
        running = Worker(worker, workspace.fresh("items") / "cache", *options)
        try:
            running.converse(lines + request(0, "stats"), 1)
            settle(running, ITEMS)
            memory = running.memory()
            cancelling, _ = running.converse(request(0, "cancel", all=True), ITEMS // ITEMS_A_REQUEST + 1)
        finally:
            running.end()
    report.add("queue: 1,000,000 prefetch items, resident", memory["VmRSS"], "MB", at_most=600)
    report.add("queue: 1,000,000 prefetch items, peak", memory["VmHWM"], "MB", at_most=600)
    report.add("queue: 1,000,000 prefetch items cancelled", cancelling, "s")


def settle(running: Worker, count: int) -> None:
    """Wait until that many wait or are on their way, and nothing is left to do."""
    used = -1.0
    while True:
        _, answer = running.converse(request(0, "stats"), 1)
        queue = json.loads(answer)["result"]["queue"]
        before, used = used, running.processor_time()
        if sum(queue["waiting"].values()) + queue["active"] >= count and used - before < 0.005:
            return
        time.sleep(0.1)


def curl(urls: Path, directory: Path) -> List[str]:
    lines = (f'url = "{url}"\noutput = "{directory}/{name}"\n' for name, url in enumerate(urls.read_text().split()))
    (directory / "config").write_text("".join(lines))
    return [program("curl"), "-q", "-Z", "--parallel-max", "6", "--no-progress-meter", "-K", f"{directory}/config"]


def aria2(urls: Path, directory: Path) -> List[str]:
    return [program("aria2c"), "--no-conf", "--quiet", "-j", "6", "-x", "1", "-i", str(urls), "-d", str(directory)]


def peer_that_waits(command: Callable[[Path, Path], List[str]], directory: Path, urls: List[str]) -> float:
    """MB that a program takes when it has read all URLs and has connected; both read them all before they connect."""
    with SilentOrigin() as origin:
        port = urls[0].split(":")[2].split("/")[0]
        (directory / "urls").write_text("".join(f"{url}\n" for url in urls).replace(f":{port}/", f":{origin.port}/"))
        process = subprocess.Popen(command(directory / "urls", directory), env=plain_environment())
        try:
            origin.wait_for_client()
            return memory(process.pid)["VmRSS"]
        finally:
            process.kill()
            process.wait()


# Loads that wait make others no slower.


class Cycle:
    """A worker with so many loads waiting in which, while it runs, each answer brings one more load.

    So the queue keeps its length, and each load that starts is one that came a whole queue earlier.
    """

    def __init__(self, worker: Path, directory: Path, ports: List[int], waiting: int) -> None:
        options = ("--max-queued", str(2 * waiting), "--max-concurrent", "32", "--max-per-host", "32")
        self._length = waiting
        self._worker = Worker(worker, directory / "cache", *options)
        self._lines = self._endless_lines(ports)
        self._tail = b""
        first = b"".join(next(self._lines) for _ in range(waiting))
        self._worker.converse(request(0, "pause") + first + request(0, "stats"), 2)
        settle(self._worker, waiting)

    @staticmethod
    def _endless_lines(ports: List[int]) -> Iterator[bytes]:
        number = 0
        while True:
            number += 1
            url = f"http://127.0.0.1:{ports[number % len(ports)]}/dot/photos/2024/{number:x}/large-1280x960.gif?q=80"
            params = f'{{"url":"{url}","cache":"no-store","deliver":"none"}}'
            yield f'{{"jsonrpc":"2.0","id":{number},"method":"load","params":{params}}}\n'.encode()

    def round(self) -> float:
        """Microseconds of the worker's processor time for each load, from one moment in full flow to another."""
        self._worker.send(request(0, "resume"))
        self._replace(LOADS_A_ROUND // 4)
        begun = self._worker.processor_time()
        done = self._replace(LOADS_A_ROUND)
        used = self._worker.processor_time() - begun
        self._worker.send(request(0, "pause"))
        while self._waiting() != self._length:
            pass  # until those that run are answered, and the others are in their place
        return used / done * 1e6

    def end(self) -> None:
        self._worker.end()

    def _replace(self, least: int) -> int:
        """Send a load for each that is answered, until at least that many are; returns how many."""
        done = 0
        while done < least:
            done += sum(answer["id"] != 0 for answer in self._answers())
        return done

    def _waiting(self) -> int:
        self._worker.send(request(0, "stats"))
        while True:
            for answer in self._answers():
                if answer["id"] == 0 and "queue" in answer["result"]:
                    return sum(answer["result"]["queue"]["waiting"].values())

    def _answers(self) -> List[Dict[str, Any]]:
        """The received lines. Each load among them is replaced by another."""
        *lines, self._tail = (self._tail + self._worker.read()).split(b"\n")
        answers = [json.loads(line) for line in lines]
        loaded = [answer for answer in answers if answer["id"] != 0]
        if any(answer.get("result", {}).get("cache") != "miss" for answer in loaded):
            raise RuntimeError(f"not what was asked for: {loaded[:3]}")
        self._worker.send(b"".join(itertools.islice(self._lines, len(loaded))))
        return answers


def enqueue_to_start(report: Report, workspace: Workspace, worker: Path) -> None:
    with Server(workspace.fresh("server"), ports=16) as server, ExitStack() as cycles:
        lengths: Dict[str, Cycle] = {}
        for waiting in (SHORT, LONG):
            lengths[f"{waiting:,}"] = Cycle(worker, workspace.fresh("cycle"), server.ports, waiting)
            cycles.callback(lengths[f"{waiting:,}"].end)
        rounds: Dict[str, Round] = {name: lambda _, cycle=cycle: cycle.round() for name, cycle in lengths.items()}
        interleaved(1, rounds, workspace)  # not counted: connections are made
        samples = interleaved(ROUNDS_OF_LOADS, rounds, workspace)
    for name, values in samples.items():
        report.add(f"queue: a load enqueued and started, {name} waiting", median(values), "us", samples=values)
    short, long = samples.values()
    report.add("queue: that at 1,000,000 / at 1,000", median(long) / median(short), "x", at_most=1.3)
