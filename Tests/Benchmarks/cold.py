"""Small images that nobody has yet: the worker beside curl, aria2 and aiohttp."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Dict, List

from measuring import Report, Round, Skipped, Workspace, interleaved, median, module, plain_environment, program
from server import Server
from worker import check, existing, loads

SIZE = 10_000
AT_ONCE = "64"
PEERS = Path(__file__).resolve().parent / "peers"


def run(report: Report, workspace: Workspace, worker: Path, python: str, images: int, rounds: int) -> None:
    with Server(workspace.fresh("server")) as server:
        urls = server.add_images(images, SIZE)
        inputs = workspace.fresh("inputs")
        (inputs / "lines").write_bytes(loads(urls))
        (inputs / "urls").write_text("".join(f"{url}\n" for url in urls))
        contestants: Dict[str, Round] = {}
        for name, make in {"worker": the_worker, "curl -Z": curl, "aria2": aria2, "aiohttp": aiohttp}.items():
            try:
                contestants[name] = make(worker, python, inputs, urls)
            except Skipped as reason:
                report.skip(f"cold, {name}", reason)
        interleaved(1, contestants, workspace)  # not counted: the server's and the system's caches fill
        samples = interleaved(rounds, contestants, workspace)
    rates = {name: [images / seconds for seconds in times] for name, times in samples.items()}
    for name, values in rates.items():
        report.add(f"cold: {name}", median(values), "files/s", samples=values)
    for peer, factor in (("curl -Z", 1.2), ("aiohttp", 3.0)):
        if "worker" in rates and peer in rates:
            report.add(f"cold: worker / {peer}", median(rates["worker"]) / median(rates[peer]), "x", at_least=factor)


def the_worker(worker: Path, python: str, inputs: Path, urls: List[str], *options: str) -> Round:
    """From spawn to exit: lines from a file, answers into one."""
    existing(worker)

    def one(directory: Path) -> float:
        command = [str(worker), "--cache-dir", str(directory / "cache")]
        command += ["--max-concurrent", AT_ONCE, "--max-per-host", AT_ONCE, *options]
        with open(inputs / "lines", "rb") as lines, open(directory / "answers", "wb") as answers:
            took = timed(command, stdin=lines, stdout=answers)
        check((directory / "answers").read_bytes(), len(urls), cache="miss", bytes=SIZE, format="png")
        return took

    return one


def curl(worker: Path, python: str, inputs: Path, urls: List[str]) -> Round:
    command = [program("curl"), "-q", "-Z", "--parallel-max", AT_ONCE, "--no-progress-meter", "-K"]

    def one(directory: Path) -> float:
        lines = (f'url = "{url}"\noutput = "{directory}/files/{name}"\n' for name, url in enumerate(urls))
        (directory / "files").mkdir()
        (directory / "config").write_text("".join(lines))
        return complete(timed([*command, str(directory / "config")]), directory / "files", len(urls))

    return one


def aria2(worker: Path, python: str, inputs: Path, urls: List[str]) -> Round:
    command = [program("aria2c"), "--no-conf", "--quiet", "-j", AT_ONCE, "-x", "1", "--file-allocation=none"]

    def one(directory: Path) -> float:
        took = timed([*command, "-i", str(inputs / "urls"), "-d", str(directory / "files")])
        return complete(took, directory / "files", len(urls))

    return one


def aiohttp(worker: Path, python: str, inputs: Path, urls: List[str]) -> Round:
    module(python, "aiohttp")

    def one(directory: Path) -> float:
        (directory / "files").mkdir()
        command = [python, str(PEERS / "fetch_with_aiohttp.py"), str(inputs / "urls")]
        command += [str(directory / "files"), AT_ONCE]
        told = subprocess.run(command, env=plain_environment(), check=True, stdout=subprocess.PIPE, text=True)
        return complete(float(told.stdout), directory / "files", len(urls))

    return one


def timed(command: List[str], **streams: object) -> float:
    begun = time.perf_counter()
    subprocess.run(command, env=plain_environment(), check=True, **streams)  # type: ignore[call-overload]
    return time.perf_counter() - begun


def complete(took: float, files: Path, count: int) -> float:
    """A peer's time counts only if it wrote every file."""
    sizes = [path.stat().st_size for path in files.iterdir()]
    if sizes != [SIZE] * count:
        raise RuntimeError(f"{len(sizes)} files in {files}, {sum(size != SIZE for size in sizes)} of a wrong size")
    return took
