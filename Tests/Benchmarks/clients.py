"""Loads of images that the worker has in memory, through the clients for Python and Node, as a program uses them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, List, Tuple

from cold import SIZE
from measuring import Report, Round, Skipped, Workspace, interleaved, median, plain_environment, program
from server import Server
from worker import existing

FOLDER = Path(__file__).resolve().parent
AT_ONCE = 1000
THREADS = 8

TARGETS = {"Python": 15_000.0, "Node": 30_000.0}
"""Requests/s of each face that has one."""


def run(report: Report, workspace: Workspace, worker: Path, images: int, requests: int, rounds: int) -> None:
    existing(worker)
    with Server(workspace.fresh("server")) as server:
        urls = workspace.fresh("list") / "urls"
        urls.write_text("".join(f"{url}\n" for url in server.add_images(images, SIZE)))

        def contestant(command: List[str], face: str, at_once: int, deliver: str) -> Round:
            arguments = [str(worker), str(urls), str(requests), face, str(at_once), deliver, str(SIZE)]
            return lambda directory: seconds([*command, *arguments, str(directory / "cache")])

        contestants: Dict[str, Round] = {}
        for name, find, face, at_once in FACES:
            try:
                command = find()
            except Skipped as reason:
                report.skip(f"clients, {name}", reason)
                continue
            for deliver in ("none", "path"):
                contestants[f"{name}, deliver {deliver}"] = contestant(command, face, at_once, deliver)
        interleaved(1, contestants, workspace)  # not counted
        samples = interleaved(rounds, contestants, workspace)
    for name, times in samples.items():
        rates = [requests / taken for taken in times]
        target = TARGETS.get(name.split(",")[0])
        report.add(f"clients: {name}", median(rates), "loads/s", at_least=target, samples=rates)


def python() -> List[str]:
    return [sys.executable, str(FOLDER / "clients_loads.py")]


def node() -> List[str]:
    return [program("node"), str(FOLDER / "clients_loads.mjs")]


FACES: Tuple[Tuple[str, Callable[[], List[str]], str, int], ...] = (
    ("Python", python, "async", AT_ONCE),
    (f"blocking Python in {THREADS} threads", python, "threads", THREADS),
    ("blocking Python, load_all", python, "load_all", AT_ONCE),
    ("Node", node, "async", AT_ONCE),
)


def seconds(command: List[str]) -> float:
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=plain_environment())
    if ended.returncode != 0:
        raise RuntimeError(f"{command[1]} failed")
    return float(ended.stdout)
