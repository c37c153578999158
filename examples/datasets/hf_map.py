#!/usr/bin/env python3
"""Adds the images to a data set of URLs, by `map` of Hugging Face `datasets`. See README.md.

    hf_map.py LIST OUT [--size 256] [--processes 1]
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, Dict, List

from loading import lines, load_batch, summary

try:
    from datasets import Dataset, Features, Image, Value  # type: ignore[attr-defined, import-not-found, import-untyped, unused-ignore]
except ModuleNotFoundError as missing:
    sys.exit(f"hf_map.py: there is no package datasets here ({missing}): pip install datasets Pillow")


def add_images(batch: Dict[str, List[Any]], size: int, processes: int) -> Dict[str, List[Any]]:
    images, errors = load_batch(batch["url"], size, processes)
    return {"image": [data and {"bytes": data, "path": None} for data in images], "error": errors}


def with_images(urls: Any, size: int, processes: int) -> Any:
    """The data set `urls`, which has a column `url`, with the columns `image` and `error`."""
    features = Features({**urls.features, "image": Image(), "error": Value("string")})
    own = {"size": size, "processes": processes}
    workers = processes if processes > 1 else None  # One process is this one.
    return urls.map(add_images, batched=True, batch_size=1000, fn_kwargs=own, features=features, num_proc=workers)


def main() -> None:
    parser = argparse.ArgumentParser(description="A list of URLs to a data set of images.")
    parser.add_argument("list", help="one URL a line")
    parser.add_argument("out", help="a folder for the data set")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    images = with_images(Dataset.from_dict({"url": lines(given.list)}), given.size, given.processes)
    images.save_to_disk(given.out)
    print(summary(images["error"]))


if __name__ == "__main__":
    main()
