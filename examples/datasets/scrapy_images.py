#!/usr/bin/env python3
"""An item pipeline for Scrapy in place of its ImagesPipeline, and a spider that shows it. See README.md.

    scrapy runspider scrapy_images.py -a urls=LIST -s IMAGES_STORE=OUT
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Union

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))

import scrapy  # type: ignore[import-not-found, unused-ignore]  # noqa: E402
from itemadapter import ItemAdapter  # type: ignore[import-not-found, unused-ignore]  # noqa: E402
from scrapy.exceptions import DontCloseSpider, DropItem  # type: ignore[import-not-found, unused-ignore]  # noqa: E402

from imageworker import ImageWorker, ImageWorkerError  # noqa: E402


class ImageWorkerPipeline:
    """Takes the settings IMAGES_STORE (a folder), IMAGES_THUMBS, IMAGES_URLS_FIELD and IMAGES_RESULT_FIELD, and names files as Scrapy does.

    The originals in `full` are the bytes of the server. The result of an image has the members that Scrapy's has. An image that fails is
    left out and counted. An item with an image that may pass comes again when all others are done. A fault of the worker ends the crawl.
    """

    def __init__(self, crawler: Any) -> None:
        settings = crawler.settings
        self.crawler = crawler
        self.store = Path(settings["IMAGES_STORE"]).resolve()
        self.thumbs: Dict[str, Any] = settings.getdict("IMAGES_THUMBS")
        self.urls_field = settings.get("IMAGES_URLS_FIELD", "image_urls")
        self.result_field = settings.get("IMAGES_RESULT_FIELD", "images")
        self.again: Optional[List[Any]] = []
        """The items of the second pass, until it begins."""
        crawler.signals.connect(self.begin_second_pass, signal=scrapy.signals.spider_idle)
        per_host = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        self.worker = ImageWorker(max_connections_per_host=per_host, robots="obey", deadline=60)

    @classmethod
    def from_crawler(cls, crawler: Any) -> ImageWorkerPipeline:
        return cls(crawler)

    async def open_spider(self) -> None:
        for folder in ("full", *(f"thumbs/{name}" for name in self.thumbs)):
            (self.store / folder).mkdir(parents=True, exist_ok=True)
        await self.worker.start()
        await self.worker.stats()  # Raises if the worker cannot run.
        self.end = asyncio.ensure_future(self.end_loads())

    async def end_loads(self) -> None:
        """Ends the loads after Ctrl-C: Scrapy has no signal for it, and waits for the items under way."""
        while self.crawler.crawling:
            await asyncio.sleep(0.5)
        await self.worker.close()

    async def close_spider(self) -> None:
        self.end.cancel()
        await self.worker.close()

    def begin_second_pass(self) -> None:
        items, self.again = self.again, None
        if items:  # A response gives back pressure: see `parse` below.
            self.crawler.engine.crawl(scrapy.Request("data:,", callback=lambda _: iter(items), dont_filter=True))
            raise DontCloseSpider

    async def process_item(self, item: Any) -> Any:
        adapter = ItemAdapter(item)
        urls = adapter.get(self.urls_field, [])
        results = await asyncio.gather(*map(self.save, urls))
        errors = [(url, result) for url, result in zip(urls, results) if isinstance(result, ImageWorkerError)]
        if self.again is not None and any(error.may_pass for _, error in errors):
            self.again.append(item)
            raise DropItem("it is tried again when all others are done", log_level="DEBUG")
        adapter[self.result_field] = [result for result in results if not isinstance(result, ImageWorkerError)]
        self.crawler.stats.inc_value("imageworker/loaded", len(results) - len(errors))
        for url, error in errors:
            self.crawler.stats.inc_value(f"imageworker/{error.kind}")
            self.crawler.spider.logger.warning("%s: %s", url, error)
        return item

    async def save(self, url: str) -> Union[Dict[str, Any], ImageWorkerError]:
        name = hashlib.sha1(url.encode()).hexdigest()
        thumbs: Any = {}
        for thumb, (width, height) in self.thumbs.items():  # Without enlarging, as Scrapy's.
            box = {"width": width, "height": height, "format": "jpeg"}
            thumbs[thumb] = {"transform": box, "save_to": self.store / f"thumbs/{thumb}/{name}.jpg"}
        try:
            image = await self.worker.load_row(url, outputs=thumbs or None)
            path = self.store / f"full/{name}.{'jpg' if image.format == 'jpeg' else image.format}"
            # The original comes last, so that no image is kept whose thumbnails cannot be made.
            await self.worker.load_row(url, cache="force-cache", deliver="none", save_to=path)
        except (ImageWorkerError, RuntimeError) as error:
            if not isinstance(error, ImageWorkerError) or not error.is_about_row:  # A fault of the run, or Ctrl-C has closed the worker.
                if self.crawler.crawling:
                    self.crawler.spider.logger.error("the crawl ends: %s", error)
                    asyncio.ensure_future(self.crawler.stop_async())
                raise DropItem("the crawl has ended", log_level="DEBUG") from error
            return error
        checksum = hashlib.md5(path.read_bytes()).hexdigest()
        status = "downloaded" if image.cache == "miss" else "cached"
        return {"url": url, "path": str(path.relative_to(self.store)), "checksum": checksum, "status": status}


class ImagesSpider(scrapy.Spider):  # type: ignore[misc, unused-ignore]
    """Yields an item for each line of the file `urls`. A spider of yours yields what it finds on pages."""

    name = "images"
    custom_settings = {"ITEM_PIPELINES": {ImageWorkerPipeline: 1}, "LOG_LEVEL": "WARNING", "CONCURRENT_ITEMS": 1000}

    def __init__(self, urls: str) -> None:
        super().__init__(start_urls=[Path(urls).resolve().as_uri()])

    def parse(self, response: Any) -> Iterator[Dict[str, Any]]:
        """Scrapy takes CONCURRENT_ITEMS at a time from a response, but any number from `start`."""
        for line in response.text.splitlines():
            if not self.crawler.crawling:  # Ctrl-C.
                return
            yield {"image_urls": [line.strip()]}
