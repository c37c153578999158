#!/usr/bin/env python3
"""A list of URLs to Parquet files with images, by `map_batches` of Ray Data. See README.md.

    ray_data.py LIST OUT [--size 256] [--actors 1]

LIST has one URL a line. Use one actor for each machine. The same command goes on after a kill.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any, Dict

import loading

import imageworker

try:
    import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import ray.data  # type: ignore[import-not-found, unused-ignore]
except ModuleNotFoundError as missing:
    sys.exit(f"ray_data.py: there is no Ray Data here ({missing}): pip install 'ray[data]'")

BATCH = 1000


def environment() -> Dict[str, Any]:
    """The `runtime_env` for `ray.init`: these modules, and the path of the worker, for the actors."""
    modules = [str(Path(module).resolve()) for module in (__file__, loading.__file__, imageworker.__file__)]
    return {"py_modules": modules, "env_vars": {"IMAGEWORKER": imageworker.find_worker()}}


class AddImages:
    """An actor: it keeps its worker from batch to batch."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, batch: Any) -> Any:
        images, errors = loading.load_batch(batch["url"].to_pylist(), self.size)
        batch = batch.append_column("image", pyarrow.array(images, pyarrow.binary()))
        return batch.append_column("error", pyarrow.array(errors, pyarrow.string()))


def with_images(urls: Any, size: int, actors: int) -> Any:
    """The data set `urls`, which has a column `url`, with the columns `image` and `error`."""
    pool = ray.data.ActorPoolStrategy(size=actors)
    return urls.map_batches(AddImages, fn_constructor_args=[size], batch_size=BATCH, batch_format="pyarrow", compute=pool)


def main() -> None:
    given = loading.arguments(__doc__, "out", size=256, actors=1)
    out = given.out.resolve()
    done = set(loading.column(out.glob("*.parquet"), "row"))
    urls = loading.lines(given.list)
    rows = [row for row in range(len(urls)) if row not in done]
    if rows:
        ray.init(runtime_env=environment(), logging_level=logging.WARNING, include_dashboard=False)
        ray.data.DataContext.get_current().enable_progress_bars = False
        table = pyarrow.table({"row": rows, "url": [urls[row] for row in rows]})
        tables = [table.slice(begin, BATCH) for begin in range(0, len(rows), BATCH)]
        with_images(ray.data.from_arrow(tables), given.size, given.actors).write_parquet(str(out))
    print(loading.summary(loading.column(out.glob("*.parquet"), "error")))


if __name__ == "__main__":
    main()
