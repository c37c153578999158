#!/usr/bin/env python3
"""Prints the URLs of all images that a sitemap, or the sitemaps of an index, name: <image:loc>, and each <loc> that looks like an image.

    sitemap.py URL

The worker fetches the sitemaps, so that proxy, time-outs and retries are those of the images. Exit status 3 if one could not be read.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from pathlib import Path
from typing import Iterator, NoReturn
from xml.parsers import expat

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from imageworker import BlockingImageWorker, ImageWorkerError  # noqa: E402

LARGEST = 50 << 20
"""Bytes of a sitemap once it is uncompressed, by sitemaps.org."""

IMAGES = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".avif")


def locations(sitemap: bytes) -> list[tuple[str, str]]:
    """Each <loc> with the name of the element that it is in. Prefixes do not count: not every sitemap declares them."""
    names: list[str] = []
    found: list[tuple[str, str]] = []
    text: list[str] = []

    def start(name: str, attributes: object) -> None:
        names.append(name.rpartition(":")[2])
        text.clear()

    def end(name: str) -> None:
        if names.pop() == "loc" and names:
            found.append((names[-1], "".join(text).strip().replace("\n", "")))

    def refuse(*_: object) -> NoReturn:
        raise ValueError("it has a DOCTYPE, and with it entities of its own")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text.append
    parser.StartDoctypeDeclHandler = refuse
    parser.Parse(sitemap, True)
    return found


def uncompressed(data: bytes) -> bytes:
    if data.startswith(b"\x1f\x8b"):
        data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ValueError(f"it has over {LARGEST} bytes")
    return data


class Sitemaps:
    def __init__(self, worker: BlockingImageWorker) -> None:
        self.worker = worker
        self.unread = 0

    def images(self, url: str, is_listed: bool = False) -> Iterator[str]:
        for parent, location in self.read(url):
            if parent == "sitemap":
                if not is_listed:  # An index lists no indexes.
                    yield from self.images(location, is_listed=True)
            elif parent != "url" or location.partition("#")[0].partition("?")[0].lower().endswith(IMAGES):
                yield location

    def read(self, url: str) -> list[tuple[str, str]]:
        try:
            loaded = self.worker.load(url, validate="none", deliver="data", store="none")
            return locations(uncompressed(loaded.data or b""))
        except (ImageWorkerError, ValueError, EOFError, OSError, zlib.error, expat.ExpatError) as error:
            print(f"sitemap.py: {url}: {error}", file=sys.stderr)
            self.unread += 1
            return []


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit("usage: sitemap.py URL")
    with BlockingImageWorker() as worker:
        sitemaps = Sitemaps(worker)
        for image in dict.fromkeys(sitemaps.images(sys.argv[1])):
            sys.stdout.buffer.write(f"{image}\n".encode())
    return 3 if sitemaps.unread else 0


if __name__ == "__main__":
    sys.exit(main())
