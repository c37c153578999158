#!/usr/bin/env python3
"""Adds the images to a data set of URLs, by `map` of Hugging Face `datasets`. See README.md.

    hf_map.py LIST OUT [--size 256] [--processes 1] [--file-rows 10000]

LIST has one URL a line. OUT gets files of Parquet, of --file-rows rows. The same command goes on after a kill.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, List

from loading import arguments, column, lines, load_batch, summary

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
    given = arguments(__doc__, "out", size=256, processes=1, file_rows=10_000)
    given.out.mkdir(parents=True, exist_ok=True)
    urls = lines(given.list)
    parts = {
        given.out / f"{begin:09}-{given.size}.parquet": urls[begin : begin + given.file_rows]
        for begin in range(0, len(urls), given.file_rows)
    }
    for path in given.out.glob("*.parquet"):
        done = list(column([path], "url")) if path in parts else None
        if done is None or done != parts[path][: len(done)]:
            sys.exit(f"hf_map.py: {path} is of another list, --size or --file-rows: use another folder")
    for path, part in parts.items():
        if not path.exists() or len(list(column([path], "url"))) < len(part):  # The last file, if the list has grown.
            partial = path.with_suffix(".partial")
            with_images(Dataset.from_dict({"url": part}), given.size, given.processes).to_parquet(str(partial))
            partial.rename(path)
    print(summary(column(parts, "error")))


if __name__ == "__main__":
    main()
