#!/usr/bin/env python3
"""A list of URLs to Parquet files with images, by `map_batches` of Ray Data. See README.md.

    ray_data.py LIST OUT [--size 256] [--actors 1]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any, Dict

try:
    import numpy
    import ray.data  # type: ignore[import-not-found, unused-ignore]
    from ray.data.expressions import col  # type: ignore[import-not-found, unused-ignore]
except ModuleNotFoundError as missing:
    sys.exit(f"ray_data.py: there is no Ray Data here ({missing}): pip install 'ray[data]'")

HERE = Path(__file__).resolve().parent
MODULES = [str(HERE / "loading.py"), str(HERE.parent / "python" / "imageworker.py")]
"""Files that Ray copies to the machines of a cluster."""


class AddImages:
    """An actor: it keeps its worker from batch to batch."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, batch: Dict[str, Any]) -> Dict[str, Any]:
        from loading import load_batch

        images, errors = load_batch(list(batch["url"]), self.size)
        return {**batch, "image": numpy.array(images, object), "error": numpy.array(errors, object)}


def with_images(urls: Any, size: int, actors: int) -> Any:
    """The data set `urls`, which has a column `url`, with the columns `image` and `error`. One actor keeps all cores of a machine busy."""
    return urls.map_batches(
        AddImages, fn_constructor_kwargs={"size": size}, batch_size=1000, compute=ray.data.ActorPoolStrategy(size=actors)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="A list of URLs to Parquet files with images.")
    parser.add_argument("list", help="one URL a line")
    parser.add_argument("out", help="a folder for the files")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--actors", type=int, default=1, help="one for each machine")
    given = parser.parse_args()
    environment = {name: os.environ[name] for name in ("IMAGEWORKER", "XDG_CACHE_HOME") if name in os.environ}
    ray.init(runtime_env={"py_modules": MODULES, "env_vars": environment}, logging_level="warning", include_dashboard=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    urls = ray.data.read_text(str(Path(given.list).resolve())).rename_columns({"text": "url"})
    images = with_images(urls, given.size, given.actors).materialize()
    images.write_parquet(str(Path(given.out).resolve()))
    failed = images.filter(expr=col("error").is_not_null()).count()
    print(f"{images.count() - failed} loaded, {failed} failed")


if __name__ == "__main__":
    main()
