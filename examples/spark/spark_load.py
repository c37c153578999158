#!/usr/bin/env python3
"""Loads a list of URLs into WebDataset shards of images, on a Spark cluster. See README.md.

    spark-submit spark_load.py LIST OUT [--partitions 200] [--size 256]

The URLs of one origin are all in one partition, so that what one worker grants an origin is what the cluster grants it. A partition is finished
when its report OUT/NNNNN.json is there; a job that is started again skips those.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CLIENT = HERE.parent / "python" / "imageworker.py"
BULK = HERE.parent / "bulk"
OUTCOMES, FAILURES = BULK / "outcomes.py", BULK / "failures.py"
sys.path[:0] = [str(HERE), str(CLIENT.parent), str(BULK)]

from choices import within  # noqa: E402
from failures import Failures, hints  # noqa: E402
from imageworker import find_worker  # noqa: E402
from partitions import load_partition, origin, partition_of  # noqa: E402
from watch import Watch  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description="A list of URLs to WebDataset shards of images, on a Spark cluster.")
    parser.add_argument("list", help="one URL a line, or .parquet; anything that Spark can read")
    parser.add_argument("out", help="a folder that all executors have")
    parser.add_argument("--url-column", default="url")
    parser.add_argument("--partitions", type=within(1, 100_000), default=200)
    parser.add_argument("--size", type=within(1, 65535), help="scale to fit into SIZE x SIZE pixels, as JPEG")
    parser.add_argument(
        "--robots", choices=["obey", "ignore"], default="obey", help="obey loads what robots.txt and the headers of the site allow"
    )
    parser.add_argument("--binary", help="the worker's path on the executors; else where the driver has it")
    parser.add_argument("--worker-option", action="append", default=[], metavar="OPTION")
    given = parser.parse_args()

    try:
        from py4j.protocol import Py4JJavaError  # type: ignore[import-not-found, import-untyped, unused-ignore]
        from pyspark.errors import AnalysisException  # type: ignore[import-not-found, unused-ignore]
        from pyspark.sql import SparkSession  # type: ignore[import-not-found, unused-ignore]
    except ModuleNotFoundError as error:
        sys.exit(f"spark_load.py: there is no PySpark here ({error}): pip install 'pyspark<4'")
    Path(given.out).mkdir(parents=True, exist_ok=True)
    spark = SparkSession.builder.appName("imageworker").getOrCreate()
    try:
        return load_list(given, spark)
    except AnalysisException as error:
        sys.exit(f"spark_load.py: cannot read the list {given.list}: {str(error).splitlines()[0]}")
    except Py4JJavaError as error:  # Pages of Java's and Python's stacks, in which one line says what it was.
        cause = re.search(r"^[\w.]+: .+", str(error), re.MULTILINE)
        sys.exit(f"spark_load.py: a partition could not be loaded, {cause[0] if cause else error}")
    finally:
        spark.stop()  # Before the message, which is to stand below what Spark says.


def load_list(given: argparse.Namespace, spark: Any) -> int:
    load: dict[str, Any] = {"store": "none"}
    if given.size is not None:
        load["transform"] = {"width": given.size, "height": given.size, "format": "jpeg", "quality": 90}
    settings = {
        "out": str(Path(given.out).resolve()),
        "options": given.worker_option,
        "binary": given.binary or find_worker(),
        "load": load,
        "robots": given.robots,
    }
    context = spark.sparkContext
    for module in (CLIENT, OUTCOMES, FAILURES, HERE / "partitions.py"):
        context.addPyFile(str(module))
    table = spark.read.parquet(given.list).select(given.url_column) if given.list.endswith(".parquet") else spark.read.text(given.list)
    urls = table.rdd.map(lambda row: "" if row[0] is None else str(row[0]).lstrip("\ufeff").strip()).filter(bool).distinct()
    loaded = (
        urls.map(lambda url: (origin(url), url))
        .partitionBy(given.partitions, lambda key: partition_of(key, given.partitions))
        .mapPartitionsWithIndex(lambda number, pairs: load_partition(number, (url for _, url in pairs), settings))
    )
    with Watch(Path(given.out), given.partitions):
        reports = loaded.collect()
    others = [report["partition"] for report in reports if report["differs"]]
    if others:
        sys.exit(
            f"spark_load.py: {len(others)} partitions in {given.out} are of another list or other settings, as {others[0]:05}; "
            "they are as they were: choose another folder"
        )
    done = [report for report in reports if not report["skipped"]]
    print(
        f"{sum(report['succeeded'] for report in done)} loaded, {sum(report['failed'] for report in done)} failed, "
        f"{len(reports) - len(done)} partitions done before"
    )
    failures = Failures()
    for report in done:
        failures.merge(report.get("failures", {}))
    for line in failures.lines(hints(settings["binary"])):
        print(line)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as problem:  # No worker, or no folder to write to.
        sys.exit(f"spark_load.py: {problem}")
