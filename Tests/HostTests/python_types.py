"""Uses of examples/python/imageworker.py that mypy must accept or refuse: it reports an ignored error that does not exist.

The program uses each method, each event and each result of the client.
"""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Optional

from imageworker import (
    Answered,
    BlockingImageWorker,
    Cached,
    Completed,
    ContentError,
    Event,
    Failed,
    FileImage,
    HTTPStatusError,
    Image,
    ImageWorker,
    ImageWorkerError,
    InvalidParams,
    LoadError,
    LoadEvent,
    LoadItem,
    LoadParams,
    LoadTimeout,
    PrefetchEvent,
    PrefetchProgress,
    Preview,
    Progress,
    ProtocolMismatch,
    Retrying,
    Settings,
    Started,
    Transform,
    WorkerExited,
)

URL = "https://example.com/cat.jpg"


def handle_load(event: LoadEvent) -> None:
    if isinstance(event, Started):
        print(event.url, event.attempt + 1)
    elif isinstance(event, Progress):
        print(event.received + (event.total or 0))
        event.done  # type: ignore[attr-defined]
    elif isinstance(event, Retrying):
        print(event.delay + 0.5, event.attempt + 1, event.kind == "connect")
        event.kind == "purple"  # type: ignore[comparison-overlap]
    elif isinstance(event, Preview):
        print(event.path.suffix, event.width * event.height, event.scan + 1)
    else:
        print(event.image.cache)
    if event.name == "cached":
        print(event.image.byte_count)
    if event.name == "cachd":  # type: ignore[comparison-overlap]
        pass


def handle_prefetch(event: PrefetchEvent) -> None:
    if isinstance(event, PrefetchProgress):
        print(event.done / event.total, event.byte_count)
    elif isinstance(event, Completed):
        print(event.image.key)
    else:
        print(event.error.kind, event.error.url)


def handle(event: Event) -> None:
    if isinstance(event, Answered):
        print(event.result["removed"])
    elif isinstance(event, (Cached, Completed)):
        print(event.image.url)
    elif isinstance(event, Failed):
        raise event.error


def note_exit(end: WorkerExited) -> None:
    print(end.exit_status, end.log[-1:], end.lost, end.retryable)


def settings() -> Settings:
    ImageWorker(["--max-per-host", "8"])  # type: ignore[arg-type]
    ImageWorker(max_per_hosts=8)  # type: ignore[call-arg]
    ImageWorker(timeout="10s")  # type: ignore[arg-type]
    ImageWorker(network="private")  # type: ignore[arg-type]
    return {
        "cache_dir": Path("cache"),
        "max_per_host": 8,
        "max_concurrent": "auto",
        "timeout": 10.0,
        "rate": 0.5,
        "network": "public",
        "headers": {"Accept": "image/*", "User-Agent": None},
        "read_only_cache": ["a", Path("b")],
        "events": ["started"],
        "insecure": None,
        "arguments": ["--retries=1"],
        "on_event": handle,
        "on_exit": note_exit,
        "max_restarts": 3,
        "longest_pause": 2.5,
    }


async def load(worker: ImageWorker) -> None:
    thumbnail: Transform = {"width": 256, "height": None, "fit": "cover", "corner_radius": 4, "metadata": ["artist", "gps"]}
    common: LoadParams = {"priority": "high", "timeout": 5.0, "deadline": None}
    image: FileImage = await worker.load(URL, transform=thumbnail, save_to=Path("cat.jpg"), on_event=handle_load)
    path: Path = (await worker.load(URL, **common)).path
    data: bytes = (await worker.load(URL, deliver="data")).data
    pixels = (await worker.load(URL, deliver="pixels")).pixels
    print(path, data, pixels.width, pixels.memory, pixels.numpy(), pixels.pil())
    none: Image = await worker.load(URL, deliver="none")
    none.path.name  # type: ignore[union-attr]
    image.width + 1  # type: ignore[operator]
    if image.timing and image.source and image.placeholder and image.response:
        print(image.timing.total + 0.5, image.source.byte_count + 1, image.placeholder.color, image.response.status + 1)
    await worker.load(URL, priority="urgent")  # type: ignore[call-overload]
    await worker.load(URL, colour="red")  # type: ignore[call-overload]
    await worker.load(URL, timeoutMs=5)  # type: ignore[call-overload]
    await worker.load(URL, timeout="5s")  # type: ignore[call-overload]
    await worker.load(URL, transform={"cornerRadius": 4})  # type: ignore[call-overload]
    async for event in worker.load_events(URL, deliver="none", events=["started", "preview"]):
        if isinstance(event, Completed):
            print(event.image.cache)
        else:
            handle_load(event)


async def load_all(worker: ImageWorker, urls: list[str]) -> None:
    async for url, outcome in worker.load_all(urls, at_once=100, priority="low"):
        print(url.upper(), outcome.kind if isinstance(outcome, ImageWorkerError) else outcome.path.name)
    counts: Counter[str] = Counter()
    async for _, image in worker.load_all(urls, deliver="data", passes=1, counts=counts):
        print(image.is_about_row and image.may_pass if isinstance(image, ImageWorkerError) else image.data)
    worker.load_all(urls, counts={})  # type: ignore[call-overload]
    row: Image = await worker.load_row(URL, deadline=5.0, deliver="none")
    await worker.load_row(URL, colour="red")  # type: ignore[call-arg]
    print(row.byte_count)
    item: LoadItem = {"url": URL, "deadline": 3.0}
    async for number, outcome in worker.load_all([(1, item), (2, URL)]):
        print(number + 1, outcome.kind if isinstance(outcome, ImageWorkerError) else outcome.path.name)


async def other_methods(worker: ImageWorker) -> None:
    result = await worker.prefetch((URL for _ in range(2)), on_event=handle_prefetch, events=["completed", "failed"])
    print(result.downloaded + result.byte_count, [failure.kind == "http" for failure in result.errors])
    await worker.prefetch([URL, {"url": URL, "key": "2"}], group=None)
    await worker.prefetch([URL], slot="a")  # type: ignore[call-arg]
    cancelled: int = await worker.cancel(group="a")
    changed: int = await worker.prioritize("high", url=URL)
    await worker.prioritize("urgent", url=URL)  # type: ignore[arg-type]
    await worker.pause()
    await worker.resume()
    entry = await worker.query(url=URL, transform={"width": 5})
    stored: Optional[datetime] = entry.stored_at
    place: Path = (await worker.store(url=URL, path="cat.jpg")).path
    await worker.store(key="cat", data=b"...")
    cleared = await worker.clear(tier="disk", older_than=60.0)
    await worker.clear(olderThanSeconds=60)  # type: ignore[call-arg]
    released: int = await worker.release(all=True)
    options = await worker.configure(timeout=3.0, rate=math.inf)
    print(cancelled, changed, stored, place, cleared.byte_count, released, options.get("timeout"), options["max_per_host"])
    info = await worker.initialize()
    print(info.server.version, info.protocol_version, info.limits.max_line, info.cache.directory / "x")
    if (formats := (await worker.initialize(formats=True)).formats) is not None:
        print(formats.decode)
    print(info.formats.decode)  # type: ignore[union-attr]
    stats = await worker.stats()
    print(stats.uptime + 0.5, stats.queue.waiting.high, [origin.held_until for origin in stats.origins], stats.disk.evicted_for.limit)
    await worker.call("stats", {})
    print((await worker.start_trace(Path("trace.json"), limit=1 << 20)).limit, (await worker.stop_trace()).byte_count)
    await worker.call("statistics")  # type: ignore[arg-type]
    worker.notify("prefetch", {"urls": [URL]})
    print(worker.pid)
    await worker.shutdown("drain")
    await worker.close(grace=1.0)


def blocking(worker: BlockingImageWorker) -> None:
    path: Path = worker.load(URL, transform={"width": 5}, on_event=handle_load).path
    data: bytes = worker.load(URL, deliver="data").data
    print(path, data, worker.load(URL, deliver="pixels").pixels.stride)
    worker.load(URL, priority="urgent")  # type: ignore[call-overload]
    print(worker.load_row(URL, retries=0).byte_count)
    for url, outcome in worker.load_all([URL], deliver="data"):
        print(url.upper(), outcome.kind if isinstance(outcome, ImageWorkerError) else outcome.data)
    for number, outcome in worker.load_all([(1, {"url": URL, "retries": 0}), (2, URL)]):
        print(number + 1, outcome.kind if isinstance(outcome, ImageWorkerError) else outcome.path)
    print(worker.prefetch([URL]).total + worker.cancel(all=True) + worker.prioritize("low", slot="a") + worker.release(all=True))
    worker.pause()
    worker.resume()
    print(worker.query(key="k").fresh, worker.store(key="k", data=b"").path.name, worker.clear(expired=True).removed)
    worker.clear(expird=True)  # type: ignore[call-arg]
    print(worker.configure(retries=1)["retries"], worker.initialize().server.name, worker.stats().requests.failed)
    worker.call("stats")
    worker.notify("stats")
    worker.shutdown()
    worker.close()


async def errors(worker: ImageWorker) -> Optional[int]:
    try:
        await worker.load(URL)
    except HTTPStatusError as error:
        return error.status + (error.response.status if error.response else 0)
    except LoadTimeout as error:
        return 1 if error.phase == "deadline" else 0
    except ContentError as error:
        return error.attempts if error.kind == "corrupt" else 0
    except LoadError as error:
        return int(error.retry_after or 0) if error.retryable or error.origin_down else 0
    except InvalidParams as error:
        return len(error.member or "")
    except ProtocolMismatch as error:
        return error.exit_status
    except ImageWorkerError as error:
        error.kind == "purple"  # type: ignore[comparison-overlap]
        return error.code
    return None
