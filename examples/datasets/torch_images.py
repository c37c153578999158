#!/usr/bin/env python3
"""Tensors straight from URLs: an IterableDataset for PyTorch's DataLoader. See README.md.

    torch_images.py LIST [--size 256] [--batch 64]
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any, Dict, Iterator, List, Sequence

from loading import worker

from imageworker import ImageWorkerError

try:
    import torch  # type: ignore[import-not-found, unused-ignore]
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info  # type: ignore[import-not-found, unused-ignore]
except ModuleNotFoundError as missing:
    sys.exit(f"torch_images.py: there is no PyTorch here ({missing}): pip install torch numpy")

AT_ONCE = 128
"""Images under way: their pixels are in shared memory, of which there is 1 GiB."""


class URLImages(IterableDataset):  # type: ignore[misc, unused-ignore]
    """Images by their URLs, in the order in which they arrive: {"index": place in `urls`, "image": size x size x 3, uint8}.

    An image that fails is left out, and its kind of error is counted in `failures`. The tensors share memory with what the worker
    decoded, and must not be changed in place; the batches of a DataLoader are copies.
    """

    def __init__(self, urls: Sequence[str], size: int) -> None:
        self.urls = urls
        self.size = size
        self.failures: Dict[str, int] = {}

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        part = get_worker_info()  # With `num_workers`, each process has a part of the URLs, and a worker of its own.
        begin, step = (part.id, part.num_workers) if part else (0, 1)
        urls = ((index, self.urls[index]) for index in range(begin, len(self.urls), step))
        box: Any = {"width": self.size, "height": self.size, "fit": "cover", "enlarge": True}
        for index, result in worker().load_all(urls, deliver="pixels", store="none", at_once=AT_ONCE, transform=box):
            if isinstance(result, ImageWorkerError):
                self.failures[result.kind] = self.failures.get(result.kind, 0) + 1
                continue
            with result.pixels as pixels:  # type: ignore[union-attr]
                yield {"index": index, "image": tensor_of(pixels)}


def tensor_of(pixels: Any) -> Any:
    """A tensor of height x width x 3 over the memory of the pixels. Grey is repeated and alpha left out, without a copy."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given (NumPy array|buffer) is not writ")
        image = torch.from_numpy(pixels.numpy())
    return image.expand(-1, -1, 3) if pixels.channels == 1 else image[..., :3]


def main() -> None:
    parser = argparse.ArgumentParser(description="Loads a list of URLs as tensors, and prints the shape of each batch.")
    parser.add_argument("list", help="one URL a line")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    given = parser.parse_args()
    with open(given.list) as lines:
        urls: List[str] = [line.strip() for line in lines if line.strip()]
    images = URLImages(urls, given.size)
    loaded = 0
    for batch in DataLoader(images, batch_size=given.batch):
        pictures = batch["image"].permute(0, 3, 1, 2)  # N x 3 x size x size, in the memory format channels_last: no copy.
        print(f"{tuple(pictures.shape)} {pictures.dtype}")
        loaded += len(pictures)
    print(f"{loaded} loaded, {sum(images.failures.values())} failed")


if __name__ == "__main__":
    main()
