#!/usr/bin/env python3
"""An item pipeline for Scrapy in place of its ImagesPipeline, and a spider that shows it. See README.md.

    scrapy runspider scrapy_images.py -a urls=LIST -s IMAGES_STORE=OUT
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
from pathlib import Path
from typing import Any, AsyncIterator, Dict, Optional

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))

import scrapy  # type: ignore[import-not-found, unused-ignore]  # noqa: E402
from itemadapter import ItemAdapter  # type: ignore[import-not-found, unused-ignore]  # noqa: E402

from imageworker import FileImage, ImageWorker, ImageWorkerError  # noqa: E402


class ImageWorkerPipeline:
    """Takes the settings IMAGES_STORE (a folder), IMAGES_THUMBS, IMAGES_URLS_FIELD and IMAGES_RESULT_FIELD, and names files as Scrapy does.

    The originals in `full` are the bytes of the server. The result of an image has the members that Scrapy's has. An image that fails is
    left out and logged.
    """

    def __init__(self, crawler: Any) -> None:
        settings = crawler.settings
        self.crawler = crawler
        self.store = Path(settings["IMAGES_STORE"]).resolve()
        self.thumbs: Dict[str, Any] = settings.getdict("IMAGES_THUMBS")
        self.urls_field = settings.get("IMAGES_URLS_FIELD", "image_urls")
        self.result_field = settings.get("IMAGES_RESULT_FIELD", "images")
        per_host = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        self.worker = ImageWorker(max_connections_per_host=per_host, robots="obey", deadline=60)

    @classmethod
    def from_crawler(cls, crawler: Any) -> ImageWorkerPipeline:
        return cls(crawler)

    async def open_spider(self) -> None:
        for folder in ("full", *(f"thumbs/{name}" for name in self.thumbs)):
            (self.store / folder).mkdir(parents=True, exist_ok=True)
        await self.worker.start()

    async def close_spider(self) -> None:
        await self.worker.close()

    async def process_item(self, item: Any) -> Any:
        adapter = ItemAdapter(item)
        results = await asyncio.gather(*(self.save(url) for url in adapter.get(self.urls_field, [])))
        adapter[self.result_field] = [result for result in results if result is not None]
        return item

    async def save(self, url: str) -> Optional[Dict[str, Any]]:
        name = hashlib.sha1(url.encode()).hexdigest()
        try:
            image = await self.worker.load(url)
            path = f"full/{name}.{'jpg' if image.format == 'jpeg' else image.format}"
            keep(image, self.store / path)
            await asyncio.gather(*(self.save_thumb(url, name, thumb) for thumb in self.thumbs))
        except ImageWorkerError as error:
            self.crawler.spider.logger.warning("%s: %s", url, error)
            self.crawler.stats.inc_value(f"imageworker/failed/{error.kind}")
            return None
        self.crawler.stats.inc_value(f"imageworker/loaded/{image.cache}")
        checksum = hashlib.md5((self.store / path).read_bytes()).hexdigest()
        status = "downloaded" if image.cache == "miss" else "cached"
        return {"url": url, "path": path, "checksum": checksum, "status": status}

    async def save_thumb(self, url: str, name: str, thumb: str) -> None:
        """A load from the cache, in a box without enlarging, as Scrapy's."""
        width, height = self.thumbs[thumb]
        box: Any = {"width": width, "height": height, "format": "jpeg"}
        await self.worker.load(
            url, cache="force-cache", store="none", deliver="none", transform=box, save_to=self.store / f"thumbs/{thumb}/{name}.jpg"
        )


def keep(image: FileImage, target: Path) -> None:
    """Links a file of the cache, which never changes, or copies it to another file system."""
    target.unlink(missing_ok=True)
    try:
        os.link(image.path, target)
    except OSError:
        shutil.copyfile(image.path, target)


class ImagesSpider(scrapy.Spider):  # type: ignore[misc, unused-ignore]
    """Yields an item for each line of the file `urls`. A spider of yours yields what it finds on pages."""

    name = "images"
    custom_settings = {"ITEM_PIPELINES": {ImageWorkerPipeline: 1}, "LOG_LEVEL": "WARNING"}

    async def start(self) -> AsyncIterator[Dict[str, Any]]:
        for line in Path(self.urls).read_text().splitlines():
            yield {"image_urls": [line.strip()]}
