"""Uses of examples/python/imageworker.py that mypy must accept or refuse: it reports an ignored error that does not exist."""

from __future__ import annotations

from imageworker import DecodingError, Event, Image, ImageWorker, ImageWorkerError


async def use(worker: ImageWorker) -> int:
    def handle(event: Event) -> None:
        if event.name == "progress":
            event.params["received"]
        if event.name == "progres":  # type: ignore[comparison-overlap]
            pass

    image: Image = await worker.load(
        "https://example.com/cat.jpg",
        priority="high",
        transform={"width": 256, "fit": "cover"},
        events=["started", "preview"],
        save_to="cat.jpg",
        on_event=handle,
    )
    await worker.load("https://example.com/cat.jpg", priority="urgent")  # type: ignore[arg-type]
    await worker.load("https://example.com/cat.jpg", colour="red")  # type: ignore[call-arg]
    await worker.load("https://example.com/cat.jpg", transform={"widht": 256})  # type: ignore[typeddict-unknown-key]
    result = await worker.prefetch(["https://example.com/1.jpg", {"url": "https://example.com/2.jpg", "key": "2"}])
    await worker.prefetch(["https://example.com/1.jpg"], slot="a")  # type: ignore[call-arg]
    await worker.call("statistics")  # type: ignore[arg-type]
    try:
        return result["downloaded"] + image.width  # type: ignore[operator]
    except DecodingError as error:
        return error.code if error.kind == "corrupt" else 0
    except ImageWorkerError as error:
        return error.kind == "purple"  # type: ignore[comparison-overlap]
