#!/usr/bin/env python3
"""Tensors straight from URLs: an IterableDataset for PyTorch's DataLoader. See README.md.

    torch_images.py LIST [--size 256] [--batch 64] [--processes 0]

LIST has one URL a line. The program prints the shape of each batch.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, Iterator, List, Sequence

from loading import arguments, lines, summary, worker

from imageworker import ImageWorkerError

try:
    import torch  # type: ignore[import-not-found, unused-ignore]
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info  # type: ignore[import-not-found, unused-ignore]
except ModuleNotFoundError as missing:
    sys.exit(f"torch_images.py: there is no PyTorch here ({missing}): pip install torch numpy")


class URLImages(IterableDataset):  # type: ignore[misc, type-arg, unused-ignore]
    """An item for each URL, in the order in which the loads end.

    `index` is the place in `urls`, `image` is size x size x 3, uint8, and `error` is empty. If a load fails, `error` is the kind of its error,
    and the image is black.
    """

    def __init__(self, urls: Sequence[str], size: int) -> None:
        self.urls, self.size = urls, size

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        part = get_worker_info()  # With `num_workers`, each process has a part of the URLs, and a worker of its own.
        begin, step = (part.id, part.num_workers) if part else (0, 1)
        urls = ((index, self.urls[index]) for index in range(begin, len(self.urls), step))
        box: Any = {"width": self.size, "height": self.size, "fit": "cover", "enlarge": True}
        at_once = max(min(128, (128 << 20) // self.size**2 // step), 1)  # Their pixels are in shared memory, of which there is 1 GiB.
        for index, outcome in worker(step).load_all(urls, deliver="pixels", store="none", at_once=at_once, transform=box):
            if isinstance(outcome, ImageWorkerError):
                yield {"index": index, "image": torch.zeros(self.size, self.size, 3, dtype=torch.uint8), "error": outcome.kind}
            else:
                with outcome.pixels as pixels:  # type: ignore[union-attr]
                    image = torch.from_numpy(pixels.numpy().copy())  # A copy may be written.
                yield {"index": index, "image": image.repeat(1, 1, 3) if image.shape[2] == 1 else image[..., :3], "error": ""}


def main() -> None:
    given = arguments(__doc__, size=256, batch=64, processes=0)
    errors: List[str] = []
    for batch in DataLoader(URLImages(lines(given.list), given.size), given.batch, num_workers=given.processes):
        pictures = batch["image"].permute(0, 3, 1, 2)  # N x 3 x size x size, in the memory format channels_last: no copy.
        print(f"{tuple(pictures.shape)} {pictures.dtype}")
        errors += batch["error"]
    print(summary(errors))


if __name__ == "__main__":
    main()
