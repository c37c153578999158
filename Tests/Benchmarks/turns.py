"""Whose turn it is: an urgent load before a long queue, and many origins beside one that never answers."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Dict, List, Optional

from measuring import Report, Round, Workspace, interleaved, median
from slow import SilentOrigin, SlowServer, slow_url
from worker import Worker, check, existing, loads, request

WAITING = 20_000
URGENT = 40
URGENT_ANSWER = 50
ORIGINS = 64
LOADS_AN_ORIGIN = 40
ANSWER = 40
HEAD_START = 0.2
FEW_SLOTS = 8


def run(report: Report, workspace: Workspace, worker: Path, rounds: int) -> None:
    existing(worker)
    urgent_loads(report, workspace, worker, rounds)
    silent_origin(report, workspace, worker, rounds)


def urgent_loads(report: Report, workspace: Workspace, worker: Path, rounds: int) -> None:
    """All for one origin, whose few transfers the urgent load has to wait for: the worst case."""
    with SlowServer(origins=1) as server:
        [port] = server.ports
        contestants: Dict[str, Round] = {
            "idle": lambda directory: urgent(worker, directory, port, 0),
            "busy": lambda directory: urgent(worker, directory, port, WAITING),
        }
        samples = interleaved(rounds, contestants, workspace)
    idle, busy = samples["idle"], samples["busy"]
    report.add("queue: a `highest` load on an idle worker", median(idle), "ms", samples=idle)
    report.add("queue: a `highest` load with 20,000 waiting", median(busy), "ms", samples=busy)
    report.add("queue: that / on an idle worker", median(busy) / median(idle), "x", at_most=1.5)


def urgent(worker: Path, directory: Path, port: int, waiting: int) -> float:
    """Milliseconds from the request to the answer: the median of loads that are sent one after the other."""
    limits = ["--max-concurrent", "32", "--max-per-host", "6"]
    running = Worker(worker, directory / "cache", "--eof", "cancel", *limits)
    times: List[float] = []
    try:
        # Some more, for those that are done meanwhile.
        others = [slow_url(port, URGENT_ANSWER, URGENT + number) for number in range(waiting * 11 // 10)]
        running.converse(request(-1, "pause") + loads(others) + request(-1, "stats"), 2)
        running.send(request(-1, "resume"))
        for number in range(URGENT):
            url = slow_url(port, URGENT_ANSWER, number)
            begun = time.perf_counter()
            running.send(request(0, "load", url=url, priority="highest"))
            answer = running.answer_to(0)
            times.append(time.perf_counter() - begun)
            check(answer, 1, cache="miss", format="gif")
        running.send(request(-1, "stats"))
        queue = json.loads(running.answer_to(-1))["result"]["queue"]
        if sum(queue["waiting"].values()) < waiting:
            raise RuntimeError(f"fewer than {waiting} are waiting: {queue}")
    finally:
        running.end()
    return median(times) * 1000


def silent_origin(report: Report, workspace: Workspace, worker: Path, rounds: int) -> None:
    with SlowServer(origins=ORIGINS - 1) as server, SilentOrigin() as silent:
        contestants: Dict[str, Round] = {
            "without": lambda directory: answered(worker, directory, server.ports),
            "with": lambda directory: answered(worker, directory, server.ports, silent),
            "after": lambda directory: answered(worker, directory, server.ports, silent, HEAD_START),
            "few": lambda directory: answered(worker, directory, server.ports, slots=FEW_SLOTS),
            "few after": lambda directory: answered(worker, directory, server.ports, silent, HEAD_START, FEW_SLOTS),
        }
        interleaved(1, contestants, workspace)  # not counted: the server warms up
        samples = interleaved(rounds, contestants, workspace)
    without, beside, after = samples["without"], samples["with"], samples["after"]
    report.add("queue: 63 origins", median(without), "s", samples=without)
    report.add("queue: 63 origins beside one that never answers", median(beside), "s", samples=beside)
    report.add("queue: that / without it", median(beside) / median(without), "x", at_most=1.1)
    report.add("queue: 63 origins after one that never answers", median(after), "s", samples=after)
    report.add("queue: that / without it", median(after) / median(without), "x", at_most=1.1)
    few, few_after = samples["few"], samples["few after"]
    report.add(f"queue: 63 origins, {FEW_SLOTS} slots", median(few), "s", samples=few)
    report.add(f"queue: 63 origins after the other, {FEW_SLOTS} slots", median(few_after), "s", samples=few_after)
    # One of the slots is the silent origin's all the time.
    report.add("queue: that / without it", median(few_after) / median(few), "x", at_most=1.3)


def answered(
    worker: Path,
    directory: Path,
    ports: List[int],
    silent: Optional[SilentOrigin] = None,
    head_start: float = 0,
    slots: int = 32,
) -> float:
    """Seconds until the last load is answered of those that will be. The origins take turns in what is sent.

    With a head start, the loads of the silent origin are sent so many seconds before the others, and the clock starts after it.
    """
    running = Worker(worker, directory / "cache", "--eof", "cancel", "--max-concurrent", str(slots))
    try:
        together = [silent.port] if silent and not head_start else []
        if silent and head_start:
            early = [slow_url(silent.port, ANSWER, number) for number in range(LOADS_AN_ORIGIN)]
            running.send(b"".join(request(-1 - number, "load", url=url) for number, url in enumerate(early)))
            time.sleep(head_start)
        urls = [slow_url(port, ANSWER, number) for number in range(LOADS_AN_ORIGIN) for port in [*together, *ports]]
        took, answers = running.converse(loads(urls), LOADS_AN_ORIGIN * len(ports))
    finally:
        running.end()
    check(answers, LOADS_AN_ORIGIN * len(ports), cache="miss", format="gif")
    return took
