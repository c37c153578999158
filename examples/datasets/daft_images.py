#!/usr/bin/env python3
"""A list of URLs to Parquet files with images, by a batch function of Daft. See README.md.

    daft_images.py LIST OUT [--size 256]

LIST has one URL a line. OUT gets the files.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, List

from loading import arguments, lines, load_batch, summary

try:
    import daft  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ModuleNotFoundError as missing:
    sys.exit(f"daft_images.py: there is no package daft here ({missing}): pip install daft")

COLUMNS = daft.DataType.struct({"image": daft.DataType.binary(), "error": daft.DataType.string()})


@daft.func.batch(return_dtype=COLUMNS, unnest=True, batch_size=1000, use_process=False)  # type: ignore[misc, untyped-decorator, unused-ignore]
def load(urls: daft.Series, size: int) -> List[Dict[str, Any]]:
    return [{"image": image, "error": error} for image, error in zip(*load_batch(urls.to_pylist(), size))]


def with_images(urls: Any, size: int) -> Any:
    """The data frame `urls`, which has a column `url`, with the columns `image` and `error`."""
    return urls.select("*", load(urls["url"], size))


def main() -> None:
    given = arguments(__doc__, "out", size=256)
    out = str(given.out)
    with_images(daft.from_pydict({"url": lines(given.list)}), given.size).write_parquet(out)
    print(summary(daft.read_parquet(out).select("error").to_pydict()["error"]))


if __name__ == "__main__":
    main()
