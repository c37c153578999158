"""From spawn to the first line of output: the worker's first answers beside `curl --version`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Callable, Dict, List, Tuple

from measuring import Report, Skipped, Workspace, median, plain_environment, program
from worker import existing, request

REQUEST = request(1, "stats")


def run(report: Report, workspace: Workspace, worker: Path, rounds: int) -> None:
    contestants: Dict[str, Callable[[], float]] = {}
    try:
        curl = [program("curl"), "--version"]
        contestants["curl --version"] = lambda: first_line(curl, REQUEST)[0]
    except Skipped as reason:
        report.skip("startup, curl", reason)
    try:
        used = [str(existing(worker)), "--cache-dir", str(workspace.fresh("startup") / "cache")]
        fresh = workspace.fresh("startup-fresh")
        contestants["worker"] = lambda: first_line(used, REQUEST)[0]
        contestants["worker, new cache directory"] = lambda: first_line(
            [str(worker), "--cache-dir", str(fresh / f"{time.monotonic_ns()}")], REQUEST
        )[0]
        contestants["worker, initialize"] = lambda: first_line(used, request(1, "initialize"))[0]
    except Skipped as reason:
        report.skip("startup, worker", reason)
    samples: Dict[str, List[float]] = {name: [] for name in contestants}
    order = list(contestants.items())
    for number in range(rounds + 3):
        for name, measure in order:
            took = measure()
            if number >= 3:  # the first ones fill the system's caches
                samples[name].append(took * 1000)
        order = order[1:] + order[:1]
    for name, values in samples.items():
        target = 15.0 if name == "worker, initialize" else None
        report.add(f"startup: {name}", median(values), "ms", at_most=target, samples=values)
    if "worker" in samples and "curl --version" in samples:
        ratio = median(samples["worker"]) / median(samples["curl --version"])
        report.add("startup: worker / curl --version", ratio, "x", at_most=1.3)


def first_line(command: List[str], lines: bytes) -> Tuple[float, bytes]:
    """Seconds from spawn to the first output, and all the output. The input is written at once; not all read it."""
    input_read, input_write = os.pipe()
    output_read, output_write = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, input_read, 0), (os.POSIX_SPAWN_DUP2, output_write, 1)]
    begun = time.perf_counter()
    process = os.posix_spawn(command[0], command, plain_environment(), file_actions=actions)
    os.close(input_read)
    os.close(output_write)
    try:
        os.write(input_write, lines)
    except BrokenPipeError:
        pass  # curl was so quick that it is gone already
    received = os.read(output_read, 65536)
    took = time.perf_counter() - begun
    os.close(input_write)
    while chunk := os.read(output_read, 65536):
        received += chunk
    os.close(output_read)
    _, status = os.waitpid(process, 0)
    if os.waitstatus_to_exitcode(status) != 0 or b"\n" not in received:
        raise RuntimeError(f"{command[0]} ended with {status} after {received[:200]!r}")
    return took, received
