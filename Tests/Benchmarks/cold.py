"""Small images that nobody has yet: the worker beside curl, aria2 and aiohttp."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional

from measuring import Report, Skipped, Workspace, interleaved, median, module, plain_environment, program
from server import Server
from worker import check, existing, loads

SIZE = 10_000
AT_ONCE = "64"
PEERS = Path(__file__).resolve().parent / "peers"


class Cost(NamedTuple):
    """Seconds, from start to exit, and seconds of processor time; None where only a part of the process is timed."""

    elapsed: float
    processor: Optional[float] = None


Round = Callable[[Path], Cost]


class Targets(NamedTuple):
    """Ratios to curl: the files a second, and the processor time of a file."""

    rate: float
    processor: float


def run(report: Report, workspace: Workspace, worker: Path, python: str, images: int, rounds: int) -> None:
    makers = {"worker": the_worker, "curl -Z": curl, "aria2": aria2, "aiohttp": aiohttp}
    rates = compare("cold", makers, Targets(0.9, 1.7), report, workspace, worker, python, images, rounds)
    if "worker" in rates and "aiohttp" in rates:
        report.add("cold: worker / aiohttp", rates["worker"] / rates["aiohttp"], "x", at_least=3.0)
    makers = {"worker": the_worker, "curl -Z": curl}
    compare("cold, HTTP/2", makers, Targets(0.85, 1.8), report, workspace, worker, python, images, rounds, tls=True)


def compare(
    name: str,
    makers: Dict[str, Callable[[Path, str, Path, List[str]], Round]],
    targets: Targets,
    report: Report,
    workspace: Workspace,
    worker: Path,
    python: str,
    images: int,
    rounds: int,
    tls: bool = False,
) -> Dict[str, float]:
    """Returns the files a second of each contestant, and reports them."""
    with Server(workspace.fresh("server"), tls=tls) as server:
        urls = server.add_images(images, SIZE)
        inputs = workspace.fresh("inputs")
        (inputs / "lines").write_bytes(loads(urls))
        (inputs / "urls").write_text("".join(f"{url}\n" for url in urls))
        contestants: Dict[str, Round] = {}
        for contestant, make in makers.items():
            try:
                contestants[contestant] = make(worker, python, inputs, urls)
            except Skipped as reason:
                report.skip(f"{name}, {contestant}", reason)
        interleaved(1, contestants, workspace)  # not counted: the server's and the system's caches fill
        samples = interleaved(rounds, contestants, workspace)
    rates: Dict[str, float] = {}
    processor: Dict[str, float] = {}
    for contestant, costs in samples.items():
        values = [images / cost.elapsed for cost in costs]
        rates[contestant] = median(values)
        report.add(f"{name}: {contestant}", rates[contestant], "files/s", samples=values)
        values = [cost.processor / images * 1e6 for cost in costs if cost.processor is not None]
        if values:
            processor[contestant] = median(values)
            report.add(f"{name}: {contestant}, processor time", processor[contestant], "us/file", samples=values)
    if "worker" in rates and "curl -Z" in rates:
        report.add(f"{name}: worker / curl -Z", rates["worker"] / rates["curl -Z"], "x", at_least=targets.rate)
        ratio = processor["worker"] / processor["curl -Z"]
        report.add(f"{name}: worker / curl -Z, processor time", ratio, "x", at_most=targets.processor)
    return rates


def the_worker(worker: Path, python: str, inputs: Path, urls: List[str], *options: str) -> Round:
    """From spawn to exit: lines from a file, answers into one."""
    existing(worker)

    def one(directory: Path) -> Cost:
        command = [str(worker), "--cache-dir", str(directory / "cache"), "--insecure"]
        command += ["--max-concurrent", AT_ONCE, "--max-per-host", AT_ONCE, *options]
        with open(inputs / "lines", "rb") as lines, open(directory / "answers", "wb") as answers:
            cost = measured(command, stdin=lines, stdout=answers)
        check((directory / "answers").read_bytes(), len(urls), cache="miss", bytes=SIZE, format="png")
        return cost

    return one


def curl(worker: Path, python: str, inputs: Path, urls: List[str]) -> Round:
    command = [program("curl"), "-q", "-Z", "--parallel-max", AT_ONCE, "--insecure", "--no-progress-meter", "-K"]

    def one(directory: Path) -> Cost:
        lines = (f'url = "{url}"\noutput = "{directory}/files/{name}"\n' for name, url in enumerate(urls))
        (directory / "files").mkdir()
        (directory / "config").write_text("".join(lines))
        return complete(measured([*command, str(directory / "config")]), directory / "files", len(urls))

    return one


def aria2(worker: Path, python: str, inputs: Path, urls: List[str]) -> Round:
    command = [program("aria2c"), "--no-conf", "--quiet", "-j", AT_ONCE, "-x", "1", "--file-allocation=none"]

    def one(directory: Path) -> Cost:
        cost = measured([*command, "-i", str(inputs / "urls"), "-d", str(directory / "files")])
        return complete(cost, directory / "files", len(urls))

    return one


def aiohttp(worker: Path, python: str, inputs: Path, urls: List[str]) -> Round:
    module(python, "aiohttp")

    def one(directory: Path) -> Cost:
        (directory / "files").mkdir()
        command = [python, str(PEERS / "fetch_with_aiohttp.py"), str(inputs / "urls")]
        command += [str(directory / "files"), AT_ONCE]
        told = subprocess.run(command, env=plain_environment(), check=True, stdout=subprocess.PIPE, text=True)
        return complete(Cost(float(told.stdout)), directory / "files", len(urls))

    return one


def measured(command: List[str], **streams: object) -> Cost:
    begun = time.perf_counter()
    process = subprocess.Popen(command, env=plain_environment(), **streams)  # type: ignore[call-overload]
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(elapsed, usage.ru_utime + usage.ru_stime)


def complete(cost: Cost, files: Path, count: int) -> Cost:
    """The cost of a peer counts only if it wrote every file."""
    sizes = [path.stat().st_size for path in files.iterdir()]
    if sizes != [SIZE] * count:
        raise RuntimeError(f"{len(sizes)} files in {files}, {sum(size != SIZE for size in sizes)} of a wrong size")
    return cost
