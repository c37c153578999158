"""A worker for each process, and batches of URLs to batches of images. A module of its own, so that other processes can import it."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))

from imageworker import BlockingImageWorker, ImageWorkerError  # noqa: E402


@functools.lru_cache(maxsize=None)
def worker() -> BlockingImageWorker:
    """The worker of this process. It keeps its connections from batch to batch, and ends with the process."""
    return BlockingImageWorker(max_connections_per_host=6, robots="obey", deadline=60)  # They are strangers' servers.


def transform(size: int) -> Dict[str, Any]:
    """The parameter of `load` that scales an image down to lie within `size` x `size` pixels, as a JPEG."""
    return {"width": size, "height": size, "format": "jpeg", "quality": 90}


def load_batch(urls: Sequence[str], size: int) -> Tuple[List[Optional[bytes]], List[Optional[str]]]:
    """The JPEGs in the order of their URLs, and the kinds of errors. Each row has either an image or an error."""
    images: List[Optional[bytes]] = [None] * len(urls)
    errors: List[Optional[str]] = [None] * len(urls)
    made: Any = transform(size)
    for row, result in worker().load_all(enumerate(urls), deliver="data", store="none", transform=made):
        if isinstance(result, ImageWorkerError):
            errors[row] = result.kind
        else:
            images[row] = result.data
    return images, errors
