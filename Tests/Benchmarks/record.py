"""A list as LAION's by examples/bulk to shards of images of 256 pixels, beside img2dataset, and the limit that the costs of the parts set."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tarfile
import threading
import time
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import network_clients as clients
from bulk import CORES, QUALITY, SIDE
from cold import PEERS
from measuring import Report, Skipped, Workspace, interleaved, median, module
from network_clients import Client
from network_scenarios import Scenario
from worker import Worker, check, existing, request

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Internet"))

from habits import CLOSED_PORT, Habit, host  # noqa: E402
from internet_process import Internet, Unavailable, namespace_options  # noqa: E402

PAINTED = 200
ROWS_PER_HOST = 3
TIMEOUT = 10
"""Seconds: what img2dataset has by default."""
SHARES = {"missing": 6.0, "gone": 3.0, "page": 2.0, "closed": 1.0, "silent": 0.5}
"""Percent of rows that fail: 404, a name that does not exist, HTML, a refused connection, no answer. The others are images."""
STOP = 3600.0
TICK = 0.02
BOX = {"width": SIDE, "height": SIDE, "fit": "inside", "format": "jpeg", "quality": QUALITY}


@dataclass(frozen=True)
class Run:
    """What a run took. Processor times are in seconds."""

    whole: float
    """Seconds from start to exit."""
    middle: float
    """Images a second from 10 to 90 % of those that the hosts served: without the start, and without the time-outs at the end."""
    delivered: float
    client: float
    """Processor time of the process that was started: bulk's Python."""
    worker: float
    decoders: float
    """Of the processes that the worker has started, or img2dataset's Python."""
    origin: float

    @property
    def processor(self) -> float:
        return self.client + self.worker + self.decoders + self.origin


def run(report: Report, workspace: Workspace, worker: Path, python: str, rows: int, turns: int) -> None:
    existing(worker)
    try:
        namespace_options()
    except Unavailable as reason:
        raise Skipped(reason) from None
    module(python, "PIL", "Pillow")
    module(python, "numpy")
    inputs = workspace.fresh("inputs")
    (inputs / "images").mkdir()
    (inputs / "pages").mkdir()
    (inputs / "pages" / "page.html").write_text("<!doctype html><title>Gone</title>" + "<p>This image is no longer here.</p>" * 100)
    paint = [python, str(PEERS / "record_pictures.py"), str(inputs / "images"), str(min(PAINTED, max(rows // 10, 20)))]
    average = int(subprocess.run(paint, check=True, stdout=subprocess.PIPE).stdout)
    work = scenario(inputs, rows)
    (inputs / "urls.txt").write_text("".join(f"{url}\n" for url in work.urls))
    print(f"record: {rows:,} rows, {work.deliverable:,} images of {average / 1000:.0f} kB on average", file=sys.stderr, flush=True)

    runs: Dict[str, Callable[[Path], Run]] = {
        "transport": partial(in_internet, work, transport(worker, work, inputs)),
        **{f"codec, {kind}": partial(codec, worker, files, share) for kind, files, share in formats(inputs / "images", work.deliverable)},
        "python": partial(alone, instant(worker, inputs), work),
        "bulk": partial(in_internet, work, to_shards(worker, inputs)),
    }
    try:
        runs["img2dataset"] = partial(in_internet, work, img2dataset(work, inputs, python))
    except Skipped as reason:
        report.skip("record, img2dataset", reason)
    samples = interleaved(turns, runs, workspace)
    medians = {name: median_of(each) for name, each in samples.items()}
    print(parts_table(medians, rows, work.deliverable), flush=True)
    print(runs_table(medians, rows, work.deliverable), flush=True)
    tell(report, samples, medians, rows, work.deliverable)


def scenario(inputs: Path, rows: int) -> Scenario:
    """The list: some hosts have many rows, and most have one or two."""
    chance = random.Random(1)
    kinds = [kind for kind, share in SHARES.items() for _ in range(round(share * rows / 100))]
    good = rows - len(kinds)
    kinds += ["good"] * good
    chance.shuffle(kinds)
    hosts = {kind: max(1, kinds.count(kind) // ROWS_PER_HOST) for kind in ("good", *SHARES)}
    ports = {"closed": f":{CLOSED_PORT}"}
    urls = []
    for number, kind in enumerate(kinds):
        of = int(hosts[kind] * chance.random() ** 2)
        urls.append(f"http://{host(kind, of)}{ports.get(kind, '')}/{number}.jpg")
    habits = [
        Habit("good", files=str(inputs / "images")), Habit("page", files=str(inputs / "pages")), Habit("missing", status=404),
        Habit("closed"), Habit("silent", does="ignore"),
    ]  # fmt: skip
    return Scenario("record", urls, habits, good, curl=0, aria2=None, fixed=[], timeout=TIMEOUT, stop=STOP)


# The parts


def transport(worker: Path, work: Scenario, inputs: Path) -> Client:
    """The worker loads the list, and keeps and delivers nothing. The header of an image is looked at, as always."""
    lines = (request(number, "load", url=url, deliver="none", store="none") for number, url in enumerate(work.urls, 1))
    (inputs / "lines").write_bytes(b"".join(lines))

    def delivered(folder: Path) -> int:
        answers = [json.loads(line) for line in (folder / "output").read_bytes().splitlines()]
        return sum("result" in answer for answer in answers)

    words = [str(worker), f"--timeout={TIMEOUT}s", "--retries=0", "--max-per-host=6"]
    return Client(lambda folder: [*words, f"--cache-dir={folder / 'cache'}"], delivered, inputs / "lines")


def formats(folder: Path, images: int) -> Iterator[Tuple[str, List[Path], int]]:
    """Each format with its files, and its share of the images: a host serves each file equally often."""
    files = sorted(folder.iterdir())
    for kind in sorted({path.suffix for path in files}):
        of_kind = [path for path in files if path.suffix == kind]
        yield kind[1:], of_kind, max(1, round(images * len(of_kind) / len(files)))


def codec(worker: Path, images: Sequence[Path], count: int, folder: Path) -> Run:
    """The worker makes the same files of images on this machine."""
    begun = time.monotonic()
    running = Worker(worker, folder / "cache")
    lines = []
    for number in range(count):
        outputs = {"image": {"transform": BOX, "saveTo": str(folder / f"{number}.jpg")}}
        lines.append(request(number + 1, "process", file={"path": str(images[number % len(images)])}, outputs=outputs))
    took, answers = running.converse(b"".join(lines), count)
    check(answers, count)
    if sum(os.path.getsize(folder / f"{number}.jpg") > 0 for number in range(count)) < count:
        raise RuntimeError("an image is missing")
    own = running.processor_time()
    assert running.process.stdin and running.process.stdout
    running.process.stdin.close()
    running.process.stdout.close()
    _, running.process.returncode, used = os.wait4(running.process.pid, 0)
    decoders = used.ru_utime + used.ru_stime - own
    return Run(time.monotonic() - begun, count / took, count, 0, own, decoders, 0)


def instant(worker: Path, inputs: Path) -> Client:
    """bulk.py with a stand-in for the worker that answers at once with an image of a usual size."""
    program, sample = inputs / "instant", inputs / "sample.jpg"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {PEERS / "instant_worker.py"} "$@"\n')
    program.chmod(0o755)
    sample.write_bytes(b"\xff\xd8" + random.Random(1).randbytes(20_000))
    environment = {"SAMPLE": str(sample), "WORKER": str(worker)}
    client = to_shards(program, inputs)
    return replace(client, environment={**(client.environment or {}), **environment})


# The whole


def to_shards(worker: Path, inputs: Path) -> Client:
    client = clients.bulk(worker, inputs, f"--timeout={TIMEOUT}s", "--retries=0")
    more = ["--size", str(SIDE), "--quality", str(QUALITY), "--shard-size", "1000"]
    return Client(lambda folder: [*client.command(folder), *more], in_shards, environment=client.environment)


def img2dataset(work: Scenario, inputs: Path, python: str) -> Client:
    """As in the examples for LAION, apart from EXIF data and digests. It does not load robots.txt, and makes one attempt."""
    client = clients.img2dataset(work, inputs, python)
    own = {"--retries": "0", "--number_sample_per_shard": "1000"}
    more = [f"--image_size={SIDE}", "--resize_mode=keep_ratio_largest", f"--encode_quality={QUALITY}"]

    def command(folder: Path) -> List[str]:
        words = [word for word in client.command(folder) if word != "--disable_all_reencoding=True"]
        return [f"{name}={own[name]}" if (name := word.partition("=")[0]) in own else word for word in words] + more

    return Client(command, in_shards, environment=client.environment)


def in_shards(folder: Path) -> int:
    """The images in the tar files. Each must be a JPEG."""
    images = 0
    for shard in (folder / "out").glob("*.tar"):
        with tarfile.open(shard) as tar:
            for member in tar:
                if member.name.endswith(".jpg"):
                    file = tar.extractfile(member)
                    if file is None or file.read(2) != b"\xff\xd8":
                        raise RuntimeError(f"{member.name} in {shard} must be a JPEG")
                    images += 1
    return images


def in_internet(work: Scenario, client: Client, folder: Path) -> Run:
    around = folder / "internet"
    around.mkdir()
    with Internet(around, work.habits) as internet:
        ran = processes(internet.prefix, client, folder)
        saw = internet.end()
    served: List[float] = saw["web"]["served"]
    first, last = len(served) // 10, len(served) * 9 // 10
    middle = (last - first) / max(served[last] - served[first], 1e-9) if served else 0.0
    return replace(ran, middle=middle, origin=saw["processorTime"])


def alone(client: Client, work: Scenario, folder: Path) -> Run:
    return processes([], client, folder)


def processes(prefix: Sequence[str], client: Client, folder: Path) -> Run:
    """Runs a client, and divides its processor time among itself, the worker, and all others that it has started."""
    clocks: Dict[str, float] = {}
    is_over = threading.Event()
    thread = threading.Thread(target=watch, args=(clocks, is_over, folder))
    thread.start()
    try:
        ended = clients.run([*prefix, sys.executable, "-c", NAMED, str(folder)], client, folder, STOP)
    finally:
        is_over.set()
        thread.join()
    if ended.was_stopped:
        raise RuntimeError(f"the client does not end: {(folder / 'log').read_text()[-500:]}")
    own, worker = clocks.get("client", 0.0), clocks.get("imageworker", 0.0)
    delivered = client.delivered(folder)
    if delivered == 0:
        raise RuntimeError(f"no images: {(folder / 'log').read_text()[-500:]}")
    return Run(ended.whole, delivered / ended.whole, delivered, own, worker, ended.processor_time - own - worker, 0)


NAMED = "import os, sys; open(sys.argv[1] + '/pid', 'w').write(str(os.getpid())); os.execvpe(sys.argv[2], sys.argv[2:], os.environ)"
"""Writes the process ID of the client, and becomes the client."""


def watch(clocks: Dict[str, float], is_over: threading.Event, folder: Path) -> None:
    """Reads the processor clocks of the client and of its worker again and again: the last values are those of their ends."""
    pids: Dict[str, int] = {}
    while not is_over.wait(TICK):
        try:
            if "client" not in pids:
                pids["client"] = int((folder / "pid").read_text())
            if "imageworker" not in pids:
                found = worker_of(pids["client"])
                if found == pids["client"]:
                    pids = {"imageworker": found, "client": 0}
                elif found is not None:
                    pids["imageworker"] = found
        except (OSError, ValueError):
            pass  # Not written yet, or just ended.
        for name, pid in pids.items():
            try:
                if pid:
                    clocks[name] = time.clock_gettime((~pid << 3) | 2)  # What clock_getcpuclockid(3) gives on Linux.
            except OSError:
                pass


def worker_of(pid: int) -> Optional[int]:
    """The process itself, or its child, if it is a worker."""
    for found in (pid, *children(pid)):
        if Path(f"/proc/{found}/comm").read_text() == "imageworker\n":
            return found
    return None


def children(pid: int) -> List[int]:
    found: List[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return found


# The tables


def median_of(each: Sequence[Run]) -> Run:
    return Run(**{field.name: median([getattr(one, field.name) for one in each]) for field in fields(Run)})


def rate_of(one: Run) -> float:
    return one.delivered / one.whole


def parts_of(runs: Dict[str, Run], rows: int, images: int) -> Dict[str, float]:
    """Milliseconds of processor time for each row of the list. A row that fails has no part in the codec."""
    codecs = {name: one for name, one in runs.items() if name.startswith("codec")}
    decoders = {
        f"{name}: {100 * one.delivered / images:.0f} % of the images, {1000 * one.decoders / one.delivered:.1f} ms each": one.decoders
        for name, one in codecs.items()
    }
    seconds = {
        "transport: the worker": runs["transport"].worker,
        "codec: the worker": sum(one.worker for one in codecs.values()),
        **decoders,
        "bulk.py: list, client, tar, ledger": runs["python"].client,
    }
    return {name: 1000 * each / rows for name, each in seconds.items()}


def limits_of(runs: Dict[str, Run], rows: int, images: int) -> Dict[str, float]:
    """Images a second, if all cores did nothing but this."""
    ours = sum(parts_of(runs, rows, images).values())
    origin = 1000 * runs["transport"].origin / rows
    share = images / rows
    return {"without the origin": 1000 * CORES * share / ours, "with the origin": 1000 * CORES * share / (ours + origin)}


def parts_table(runs: Dict[str, Run], rows: int, images: int) -> str:
    parts = parts_of(runs, rows, images)
    ours, origin = sum(parts.values()), 1000 * runs["transport"].origin / rows
    lines = ["", f"| part, by itself, {rows:,} rows | ms a row |", "| --- | --- |"]
    lines += [f"| {name} | {cost:.2f} |" for name, cost in parts.items()]
    lines += [f"| sum | {ours:.2f} |", f"| origin, which is on the same {CORES} cores | {origin:.2f} |"]
    lines += [f"| limit of {CORES} cores, {name} | {limit:,.0f} images/s |" for name, limit in limits_of(runs, rows, images).items()]
    return "\n".join(lines)


def runs_table(runs: Dict[str, Run], rows: int, images: int) -> str:
    """The whole runs. The sum of a row is the time of all cores: what is left is that of other programs, and of cores without work."""
    columns = ["images/s", "in the middle", "delivered", "client", "worker", "decoders", "origin", "sum", "no work", "ms a row"]
    lines = ["", f"| {' | '.join(['run', *columns])} |", f"|{' --- |' * (len(columns) + 1)}"]
    for name in ("bulk", "img2dataset"):
        if name in runs:
            one = runs[name]
            times = [one.client, one.worker, one.decoders, one.origin, one.processor, CORES * one.whole - one.processor]
            cells = [f"{rate_of(one):,.0f}", f"{one.middle:,.0f}", f"{one.delivered / images:.1%}"]
            cells += [f"{100 * each / (CORES * one.whole):.0f} %" for each in times] + [f"{1000 * (one.processor - one.origin) / rows:.2f}"]
            lines.append(f"| {' | '.join([name, *cells])} |")
    return "\n".join(lines)


def tell(report: Report, samples: Dict[str, List[Run]], runs: Dict[str, Run], rows: int, images: int) -> None:
    for name, cost in parts_of(runs, rows, images).items():
        report.add(f"record: {name.partition(':')[0] if ' ms ' in name else name}, by itself", cost, "ms a row")
    limits = limits_of(runs, rows, images)
    for name, limit in limits.items():
        report.add(f"record: limit {name}", limit, "images/s")
    for name in ("bulk", "img2dataset"):
        if name in runs:
            whole = [rate_of(one) for one in samples[name]]
            report.add(f"record: {name}", median(whole), "images/s", samples=whole)
            report.add(f"record: {name}, in the middle", runs[name].middle, "images/s", samples=[one.middle for one in samples[name]])
            report.add(f"record: {name}, processor time", 1000 * (runs[name].processor - runs[name].origin) / rows, "ms a row")
    report.add("record: bulk.py, delivered of what can be had", 100 * runs["bulk"].delivered / images, "%", at_least=99.9)
    report.add("record: bulk.py in the middle / limit with the origin", runs["bulk"].middle / limits["with the origin"], "x", at_least=0.9)
    if "img2dataset" in runs:
        ratio = runs["bulk"].middle / runs["img2dataset"].middle
        report.add("record: bulk.py / img2dataset, in the middle", ratio, "x", at_least=1)
