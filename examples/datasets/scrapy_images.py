"""An item pipeline for Scrapy in place of its ImagesPipeline, and a spider that shows it. See README.md."""

import asyncio
from pathlib import Path
from typing import Any

import scrapy  # type: ignore[import-not-found, unused-ignore]
from itemadapter import ItemAdapter  # type: ignore[import-not-found, unused-ignore]
from saving import Ended, Saver
from scrapy.exceptions import DontCloseSpider, DropItem  # type: ignore[import-not-found, unused-ignore]
from scrapy.pipelines.images import ImagesPipeline  # type: ignore[import-not-found, unused-ignore]


class ImageWorkerPipeline(ImagesPipeline):  # type: ignore[misc, unused-ignore]
    async def open_spider(self) -> None:  # type: ignore[override, unused-ignore]
        self.again: Any = []  # The items of the second pass, until it begins.
        self.crawler.signals.connect(self.begin_second_pass, signal=scrapy.signals.spider_idle)
        folder, settings = self.store.basedir, self.crawler.settings  # type: ignore[attr-defined, unused-ignore]
        thumbs, per_host = settings.getdict("IMAGES_THUMBS"), settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        self.saver = Saver(folder, thumbs, lambda: self.crawler.crawling, max_connections_per_host=per_host)
        await self.saver.start()

    async def close_spider(self) -> None:
        await self.saver.worker.close()

    def begin_second_pass(self) -> None:
        items, self.again = self.again, None
        if items:  # A response gives back pressure: see README.md.
            self.crawler.engine.crawl(scrapy.Request("data:,", callback=lambda _: iter(items), dont_filter=True))
            raise DontCloseSpider

    async def process_item(self, item: Any) -> Any:  # type: ignore[override, unused-ignore]
        adapter = ItemAdapter(item)
        try:
            images, errors = await self.saver.save_all(adapter.get(self.images_urls_field, []))
        except Ended as end:
            asyncio.ensure_future(self.crawler.stop_async())
            raise DropItem(f"the crawl ends: {end}", log_level="ERROR" if self.crawler.crawling else "DEBUG") from end
        if self.again is not None and any(error.may_pass for error in errors):
            self.again.append(item)
            raise DropItem("it is tried again when all others are done", log_level="DEBUG")
        adapter[self.images_result_field] = images
        self.crawler.stats.inc_value("imageworker/loaded", len(images))
        for error in errors:
            self.crawler.stats.inc_value(f"imageworker/{error.kind}")
            self.crawler.spider.logger.warning("%s: %s", error.url, error)  # type: ignore[union-attr, unused-ignore]
        return item


class ImagesSpider(scrapy.Spider):  # type: ignore[misc, unused-ignore]
    """Yields an item for each line of the file `urls`. A spider of yours yields what it finds on pages."""

    name = "images"
    custom_settings = {"ITEM_PIPELINES": {ImageWorkerPipeline: 1}, "LOG_LEVEL": "WARNING", "CONCURRENT_ITEMS": 1000}

    def __init__(self, urls: str) -> None:
        super().__init__(start_urls=[Path(urls).resolve().as_uri()])

    def parse(self, response: Any) -> Any:
        for line in response.text.splitlines():
            if self.crawler.crawling:  # Not after Ctrl-C.
                yield {"image_urls": [line.strip()]}
