"""How soon small files that want to be large images are answered, and what they take of memory until then."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Tuple

from measuring import Report, Workspace, median
from server import Server
from worker import Worker, check, memory, request

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "HostTests"))

from bomb_files import SMALL, Bomb, bombs, harmless  # noqa: E402
from processes import descendants  # noqa: E402


def run(report: Report, workspace: Workspace, worker: Path, rounds: int) -> None:
    with Server(workspace.fresh("server")) as server:
        (server.files / "harmless").write_bytes(harmless())
        for number, bomb in enumerate(bombs()):
            (server.files / str(number)).write_bytes(bomb.file)
            pairs = [
                one(worker, workspace.fresh("bomb"), server.url("harmless"), server.url(str(number)), bomb)
                for _ in range(rounds)
            ]
            times, added = zip(*pairs)
            name = f"decode: {bomb.name}, {len(bomb.file) / 1000:,.0f} kB"
            report.add(name, median(times), "ms", at_most=100, samples=times)
            report.add(f"{name}: more memory", median(added), "MB", at_most=20, samples=added)


def one(worker: Path, directory: Path, small: str, url: str, bomb: Bomb) -> Tuple[float, float]:
    """Milliseconds to the answer; and by how much the peak of worker and decoder is above what they had before, in MB."""
    running = Worker(worker, directory / "cache", "--decoders", "1", "--decoder-lifetime", "1000")
    try:
        _, answer = running.converse(request(1, "load", url=small, **SMALL), 1)
        check(answer, 1, width=8)
        processes = [running.process.pid, *descendants(running.process.pid)]
        before = sum(memory(process)["VmRSS"] for process in processes)
        took, answer = running.converse(request(2, "load", url=url, **bomb.params), 1)
        peak = sum(memory(process)["VmHWM"] for process in processes)
    finally:
        running.end()
    members = json.loads(answer)
    outcome = "result" if "result" in members else members["error"]["data"]["kind"]
    if outcome != bomb.outcome or len(processes) != 2:
        raise RuntimeError(f"{bomb.name}: {answer!r}, {processes}")
    return took * 1000, peak - before
