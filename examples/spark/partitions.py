"""What runs on the executors: a module of its own, so that its worker outlives the task."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any, Iterable, Iterator, Optional
from urllib.parse import urlsplit

from imageworker import BlockingImageWorker, ImageWorkerError

_worker: Optional[BlockingImageWorker] = None


def worker(options: list[str], binary: Optional[str]) -> BlockingImageWorker:
    """The worker of this Python process. Spark uses the process for one task after the other, so connections and cache stay warm."""
    global _worker
    if _worker is None:
        _worker = BlockingImageWorker(options, binary=binary)
    return _worker


def origin(url: str) -> str:
    """Scheme, host and port, as text."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname}:{parts.port or ''}".lower()
    except ValueError:
        return ""


def partition_of(key: str, count: int) -> int:
    """The same in every process and every run, unlike `hash`: finished partitions must be found again."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % count


def load_partition(number: int, urls: Iterable[str], settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Loads the URLs of one partition into OUT/NNNNN.tar and yields its report."""
    out = Path(settings["out"])
    report = out / f"{number:05}.json"
    if report.exists():
        yield {**json.loads(report.read_text()), "skipped": True}
        return
    succeeded, failures = 0, []
    tar_path = out / f"{number:05}.tar"
    partial = tar_path.with_name(tar_path.name + ".partial")
    loads = worker(settings["options"], settings["binary"]).load_all(urls, **settings["load"])
    with tarfile.open(partial, "w") as tar:
        for url, outcome in loads:
            if isinstance(outcome, ImageWorkerError):
                failures.append({"url": url, "kind": outcome.kind, "error": str(outcome)})
                continue
            name = hashlib.sha256(url.encode()).hexdigest()[:32]
            facts = {"url": url, "width": outcome.width, "height": outcome.height}
            add(tar, f"{name}.{outcome.format}", outcome.data or b"")
            add(tar, f"{name}.json", json.dumps(facts).encode())
            succeeded += 1
    partial.rename(tar_path)
    (out / f"{number:05}.failures.jsonl").write_text("".join(json.dumps(line) + "\n" for line in failures))
    summary = {"partition": number, "succeeded": succeeded, "failed": len(failures)}
    unfinished = report.with_name(report.name + ".partial")
    unfinished.write_text(json.dumps(summary))
    unfinished.rename(report)  # Last: from here on the partition is finished.
    yield {**summary, "skipped": False}


def add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))
