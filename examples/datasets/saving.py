"""Images and their thumbnails as files, for a program that has the list itself, such as a crawler."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple, Union

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))

from imageworker import ImageWorker, ImageWorkerError  # noqa: E402


class Ended(Exception):
    """Nothing more can be saved: a fault of the run, or the end of the program."""


class Saver:
    """Saves in `folder`. `options` are those of the worker.

    When `is_running` has become false, the loads end. It is polled, because Scrapy has no signal for Ctrl-C.
    """

    def __init__(
        self, folder: str, thumbs: Mapping[str, Tuple[int, int]], is_running: Callable[[], bool], **options: Any
    ) -> None:
        self.folder, self.thumbs, self.is_running = Path(folder).resolve(), thumbs, is_running
        self.worker = ImageWorker(robots="obey", deadline=60, **options)

    async def start(self) -> None:
        for name in ("full", *(f"thumbs/{thumb}" for thumb in self.thumbs)):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        await self.worker.start()
        await self.worker.stats()  # Raises if the worker cannot run.

    async def save_all(self, urls: Sequence[str]) -> Tuple[List[Dict[str, str]], List[ImageWorkerError]]:
        """The images that are saved, and the errors of the others."""
        saves = asyncio.gather(*map(self.save, urls))
        while self.is_running() and not saves.done():
            await asyncio.wait([saves], timeout=1)
        saves.cancel()  # Does nothing if they are done.
        try:
            outcomes = await saves
        except (ImageWorkerError, asyncio.CancelledError) as error:
            raise Ended(str(error)) from error
        errors = [outcome for outcome in outcomes if isinstance(outcome, ImageWorkerError)]
        return [outcome for outcome in outcomes if not isinstance(outcome, ImageWorkerError)], errors

    async def save(self, url: str) -> Union[Dict[str, str], ImageWorkerError]:
        name = hashlib.sha1(url.encode()).hexdigest()
        thumbs: Any = {}
        for thumb, (width, height) in self.thumbs.items():  # Without enlarging.
            box = {"width": width, "height": height, "format": "jpeg"}
            thumbs[thumb] = {"transform": box, "save_to": self.folder / f"thumbs/{thumb}/{name}.jpg"}
        try:
            image = await self.worker.load_row(url, outputs=thumbs or None)
            path = f"full/{name}.{'jpg' if image.format == 'jpeg' else image.format}"
            # The original comes last, so that no image is kept whose thumbnails cannot be made.
            await self.worker.load_row(url, cache="force-cache", deliver="none", save_to=self.folder / path)
        except ImageWorkerError as error:
            if not error.is_about_row:
                raise
            return error
        checksum = hashlib.md5((self.folder / path).read_bytes()).hexdigest()
        status = "downloaded" if image.cache == "miss" else "cached"
        return {"url": url, "path": path, "checksum": checksum, "status": status}
