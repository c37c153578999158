#!/usr/bin/env python3
"""Prints the URLs of all images that a sitemap, or the sitemaps of an index, name: <image:loc>, and each <loc> that looks like an image.

    sitemap.py URL

The worker fetches the sitemaps, so that proxy, time-outs and retries are those of the images. Exit status 3 if one could not be read,
69 if there is no worker, or the worker's own, such as 73 if it cannot use its cache.
"""

from __future__ import annotations

import gzip
import io
import signal
import sys
import zlib
from pathlib import Path
from typing import Iterator, NoReturn
from xml.parsers import expat

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from imageworker import BlockingImageWorker, ImageWorkerError, WorkerExited  # noqa: E402

LARGEST = 50 << 20
"""Maximum size of an uncompressed sitemap in bytes, by sitemaps.org."""

IMAGES = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".avif")


def locations(sitemap: bytes) -> list[tuple[str, str]]:
    """Each <loc> with the name of the element that it is in. Prefixes do not count: not every sitemap declares them."""
    names: list[str] = []
    found: list[tuple[str, str]] = []
    text: list[str] = []

    def start(name: str, attributes: object) -> None:
        name = name.rpartition(":")[2]
        if not names and name not in ("urlset", "sitemapindex"):
            raise ValueError(f"its root must be <urlset> or <sitemapindex>, not <{name}>")
        names.append(name)
        text.clear()

    def end(name: str) -> None:
        if names.pop() == "loc" and names:
            found.append((names[-1], "".join(text).strip().replace("\n", "")))

    def refuse(*_: object) -> NoReturn:
        raise ValueError("it must not have a DOCTYPE")

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
        raise ValueError(f"it must not have more than {LARGEST} bytes")
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
            data = self.worker.load(url, validate="none", deliver="data", store="none").data
        except WorkerExited:
            raise  # Not the sitemap's fault.
        except ImageWorkerError as error:
            return self.unreadable(url, error)
        try:
            return locations(uncompressed(data))
        except (ValueError, EOFError, OSError, zlib.error, expat.ExpatError) as error:
            return self.unreadable(url, error)

    def unreadable(self, url: str, error: Exception) -> list[tuple[str, str]]:
        print(f"sitemap.py: {url}: {error}", file=sys.stderr)
        self.unread += 1
        return []


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # As any program of the shell. The worker ends with it.
    asked_for_help = sys.argv[1:2] in (["-h"], ["--help"])
    if asked_for_help or len(sys.argv) != 2:
        print(__doc__, end="", file=sys.stdout if asked_for_help else sys.stderr)
        return 0 if asked_for_help else 64
    try:
        with BlockingImageWorker() as worker:
            sitemaps = Sitemaps(worker)
            images = dict.fromkeys(sitemaps.images(sys.argv[1]))
    except WorkerExited as error:  # The client's log has told why.
        return error.exit_status if error.exit_status is not None and error.exit_status > 0 else 69
    except OSError as error:
        print(f"sitemap.py: the worker cannot be started: {error}", file=sys.stderr)
        return 69
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Not before: while there is a worker, a broken pipe may be the one to it.
    sys.stdout.buffer.writelines(f"{image}\n".encode() for image in images)
    return 3 if sitemaps.unread else 0


if __name__ == "__main__":
    sys.exit(main())
