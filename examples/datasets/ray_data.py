#!/usr/bin/env python3
"""A list of URLs to Parquet files with images, by `map_batches` of Ray Data. The same command goes on after a kill. See README.md.

    ray_data.py LIST OUT [--size 256] [--actors 1]
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import Any, Dict, Iterator

import loading
from imageworker import find_worker

try:
    import pyarrow.parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import ray.data  # type: ignore[import-not-found, unused-ignore]
except ModuleNotFoundError as missing:
    sys.exit(f"ray_data.py: there is no Ray Data here ({missing}): pip install 'ray[data]'")

BATCH = 1000


def environment() -> Dict[str, Any]:
    """The `runtime_env` for `ray.init`: these modules, and the path of the worker, for the actors."""
    modules = [__file__, loading.__file__, sys.modules["imageworker"].__file__]
    caches = {name: os.environ[name] for name in ("XDG_CACHE_HOME",) if name in os.environ}
    return {"py_modules": [str(Path(str(module)).resolve()) for module in modules], "env_vars": {"IMAGEWORKER": find_worker(), **caches}}


class AddImages:
    """An actor: it keeps its worker from batch to batch."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, batch: Any) -> Any:
        images, errors = loading.load_batch(batch["url"].to_pylist(), self.size)
        batch = batch.append_column("image", pyarrow.array(images, pyarrow.binary()))
        return batch.append_column("error", pyarrow.array(errors, pyarrow.string()))


def with_images(urls: Any, size: int, actors: int) -> Any:
    """The data set `urls`, which has a column `url`, with the columns `image` and `error`. One actor keeps all cores of a machine busy."""
    pool = ray.data.ActorPoolStrategy(size=actors)
    return urls.map_batches(AddImages, fn_constructor_kwargs={"size": size}, batch_size=BATCH, batch_format="pyarrow", compute=pool)


def column(out: Path, name: str) -> Iterator[Any]:
    """The values of a column in the files of `out`. Removes a file that a kill has cut short."""
    for path in out.glob("*.parquet"):
        try:
            yield from pyarrow.parquet.read_table(path, columns=[name])[name].to_pylist()
        except pyarrow.ArrowInvalid:
            path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description="A list of URLs to Parquet files with images.")
    parser.add_argument("list", help="one URL a line")
    parser.add_argument("out", type=Path, help="a folder for the files")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--actors", type=int, default=1, help="one for each machine")
    given = parser.parse_args()
    out, done = given.out.resolve(), set(column(given.out, "row"))
    rows = [(row, url) for row, url in enumerate(loading.lines(given.list)) if row not in done]
    if rows:
        ray.init(runtime_env=environment(), logging_level=logging.WARNING, include_dashboard=False)
        ray.data.DataContext.get_current().enable_progress_bars = False
        parts = [rows[begin : begin + BATCH] for begin in range(0, len(rows), BATCH)]
        tables = [pyarrow.table(dict(zip(("row", "url"), map(list, zip(*part))))) for part in parts]
        with_images(ray.data.from_arrow(tables), given.size, given.actors).write_parquet(str(out))
    print(loading.summary(column(out, "error")))


if __name__ == "__main__":
    main()
