"""Resident memory: of a worker that has nothing to do, and how much more while it takes a body of 500 MB."""

from __future__ import annotations

from pathlib import Path

from measuring import Report, Skipped, Workspace, median
from server import Server
from worker import Worker, check, existing, request

BODY = 500 << 20


def run(report: Report, workspace: Workspace, worker: Path, rounds: int) -> None:
    try:
        existing(worker)
        with Server(workspace.fresh("server")) as server:
            url = server.add_sparse("large", BODY)
            pairs = [one(worker, workspace.fresh("memory"), url) for _ in range(rounds)]
    except Skipped as reason:
        report.skip("memory", reason)
        return
    idle, added = zip(*pairs)
    report.add("memory: idle", median(idle), "MB", at_most=25, samples=idle)
    report.add("memory: peak while a body of 500 MB arrives, less idle", median(added), "MB", at_most=30, samples=added)


def one(worker: Path, directory: Path, url: str) -> tuple[float, float]:
    running = Worker(worker, directory / "cache", "--max-bytes", "1G", "--disk-limit", "4G")
    try:
        running.converse(request(1, "stats"), 1)
        idle = running.memory()["VmRSS"]
        _, answer = running.converse(request(2, "load", url=url, validate="none"), 1)
        peak = running.memory()["VmHWM"]
    finally:
        running.end()
    check(answer, 1, cache="miss", bytes=BODY)
    return idle, peak - idle
