"""The code that runs on the executors: a module of its own, so that its worker outlives the task."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Iterable, Iterator, Literal, Optional
from urllib.parse import urlsplit

from failures import Failures
from imageworker import BlockingImageWorker, ImageWorkerError
from outcomes import extension_of, failure_of

PORTS = {"http": 80, "https": 443}

_worker: Optional[BlockingImageWorker] = None


def worker(options: list[str], binary: Optional[str], robots: Literal["obey", "ignore"]) -> BlockingImageWorker:
    """The worker of this Python process. Spark uses the process for one task after the other, so connections and cache stay warm."""
    global _worker
    if _worker is None:  # They are strangers' servers: as many connections to each as a browser has.
        _worker = BlockingImageWorker(max_connections_per_host=6, robots=robots, arguments=options, binary=binary)
    return _worker


def end_worker() -> None:
    global _worker
    if _worker is not None:
        _worker.close()
        _worker = None


def origin(url: str) -> str:
    """Scheme, host and port, in one spelling for all URLs of an origin."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".").encode("idna").decode()
        return f"{parts.scheme}://{host}:{parts.port or PORTS.get(parts.scheme)}"
    except ValueError:
        return ""


def partition_of(key: str, count: int) -> int:
    """A hash that is the same in every process and run, unlike `hash`, so that finished partitions are found again."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % count


class Digest:
    """A digest of URLs in any order, because Spark does not keep their order."""

    def __init__(self) -> None:
        self.sum = 0

    def noting(self, urls: Iterable[str]) -> Iterator[str]:
        for url in urls:
            self.sum += int.from_bytes(hashlib.sha256(url.encode()).digest(), "big")
            yield url

    def __str__(self) -> str:
        return f"{self.sum % 2**256:064x}"


class Attempt:
    """One attempt at a partition. Spark may make two at a time, and kill either: each writes into a folder of its own."""

    def __init__(self, out: Path, number: int) -> None:
        self.out = out
        self.name = f"{number:05}"
        self.report = out / f"{self.name}.json"
        self.folder = Path(tempfile.mkdtemp(prefix=f"{self.name}.", suffix=".partial", dir=out))

    def publish(self, summary: dict[str, Any]) -> None:
        """Gives the files their final names, the report last, unless another attempt has done so."""
        with (self.out / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.report.exists():
                return
            (self.folder / self.report.name).write_text(json.dumps(summary))
            for name in (f"{self.name}.tar", f"{self.name}.failures.jsonl", self.report.name):
                (self.folder / name).rename(self.out / name)
            for folder in self.out.glob(f"{self.name}.*.partial"):  # Of attempts that were killed, or are of no use now.
                shutil.rmtree(folder, ignore_errors=True)


def load_partition(number: int, urls: Iterable[str], settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Loads the URLs of one partition into OUT/NNNNN.tar and yields its report.

    Raises what keeps URLs from being tried, for Spark to run the task again.
    """
    out = Path(settings["out"])
    made_with = {name: settings[name] for name in ("load", "robots")}
    digest = Digest()
    report = out / f"{number:05}.json"
    if report.exists():
        before = json.loads(report.read_text())
        for _ in digest.noting(urls):
            pass
        differs = (before.get("list"), before.get("settings")) != (str(digest), made_with)
        yield {**before, "skipped": True, "differs": differs}
        return
    attempt = Attempt(out, number)
    try:
        succeeded, failed, failures = write(attempt, digest.noting(urls), settings)
        attempt.publish(
            {
                "partition": number,
                "succeeded": succeeded,
                "failed": failed,
                "failures": failures.wire,
                "list": str(digest),
                "settings": made_with,
            }
        )
    except ImageWorkerError:
        end_worker()  # It may not start any more; the next attempt has one of its own.
        raise
    except OSError:
        if not report.exists():  # Else another attempt has won, and has taken the folder of this one away.
            raise
    finally:
        shutil.rmtree(attempt.folder, ignore_errors=True)
    yield {**json.loads(report.read_text()), "skipped": False, "differs": False}


def write(attempt: Attempt, urls: Iterable[str], settings: dict[str, Any]) -> tuple[int, int, Failures]:
    """Returns the numbers of images and of failures, and the latter by kind."""
    succeeded = failed = 0
    by_kind = Failures()
    with contextlib.ExitStack() as files:
        tar = files.enter_context(tarfile.open(attempt.folder / f"{attempt.name}.tar", "w"))
        failures = files.enter_context((attempt.folder / f"{attempt.name}.failures.jsonl").open("w"))
        loader = worker(settings["options"], settings["binary"], settings["robots"])
        for url, result in loader.load_all(urls, deliver="data", **settings["load"]):
            if isinstance(result, ImageWorkerError):
                failure = failure_of(result)
                failures.write(json.dumps({"url": url, **failure._asdict()}) + "\n")
                failed += 1
                by_kind.note(url, failure)
                continue
            name = hashlib.sha256(url.encode()).hexdigest()[:32]
            facts = {"url": url, "width": result.width, "height": result.height}
            add(tar, f"{name}.{extension_of(result)}", result.data or b"")
            add(tar, f"{name}.json", json.dumps(facts).encode())
            succeeded += 1
    return succeeded, failed, by_kind


def add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))
