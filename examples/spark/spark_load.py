#!/usr/bin/env python3
"""Loads a list of URLs into WebDataset shards of images, on a Spark cluster. See README.md.

    spark-submit spark_load.py LIST OUT [--partitions 200] [options of bulk]

The rows of one origin are all in one partition. A partition is a run of bulk into OUT/NNNNN, so it continues where it was stopped.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import Any, Sequence

from partitions import by_origin, load_partition, ship

from bulk.choices import arguments, within
from bulk.progress import Failures, hints
from imageworker import find_worker


def main() -> int:
    parser = argparse.ArgumentParser(usage="spark_load.py LIST OUT [--partitions 200] [options of bulk]")
    parser.add_argument("list")
    parser.add_argument("out")
    parser.add_argument("--partitions", type=within(1, 100_000), default=200)
    given, options = parser.parse_known_args()
    arguments([given.list, given.out, *options])  # Ends the program if one is wrong.
    try:
        from py4j.protocol import Py4JJavaError  # type: ignore[import-not-found, import-untyped, unused-ignore]
        from pyspark import SparkConf  # type: ignore[import-not-found, unused-ignore]
        from pyspark.errors import AnalysisException  # type: ignore[import-not-found, unused-ignore]
        from pyspark.sql import SparkSession  # type: ignore[import-not-found, unused-ignore]
    except ModuleNotFoundError as error:
        sys.exit(f"spark_load.py: there is no PySpark here ({error}): pip install 'pyspark<4'")
    worker = SparkConf().get("spark.executorEnv.IMAGEWORKER") or find_worker()
    builder = SparkSession.builder.appName("imageworker").config("spark.speculation", "false")
    spark = builder.config("spark.executorEnv.IMAGEWORKER", worker).getOrCreate()
    try:
        return load_list(spark, given, options, worker)
    except AnalysisException as error:
        sys.exit(f"spark_load.py: cannot read the list {given.list}: {str(error).splitlines()[0]}")
    except Py4JJavaError as error:  # Pages of Java's and Python's stacks, in which one line says what it was.
        cause = re.search(r"^[\w.]+: .+", str(error), re.MULTILINE)
        sys.exit(f"spark_load.py: a partition could not be loaded, {cause[0] if cause else error}")
    finally:
        spark.stop()  # Before the message, which is to stand below what Spark says.


def load_list(spark: Any, given: argparse.Namespace, options: Sequence[str], worker: str) -> int:
    from pyspark.sql import functions  # type: ignore[import-not-found, unused-ignore]

    ship(spark)
    of_bulk = arguments([given.list, given.out, *options])
    columns = [of_bulk.url_column, *([of_bulk.caption_column] if of_bulk.caption_column else []), *of_bulk.column]
    readers = {"csv": spark.read.option("header", True).csv, "jsonl": spark.read.json, "ndjson": spark.read.json}
    kind = re.search(r"\.(parquet|csv|jsonl|ndjson)\b[^/]*$|/$", given.list)
    if kind:
        table = readers.get(kind[1], spark.read.parquet)(given.list)
    else:
        table = spark.read.text(given.list).withColumnRenamed("value", of_bulk.url_column)
    line = functions.to_json(functions.struct(*(table[column] for column in columns)), {"ignoreNullFields": "false"})
    rows = by_origin(table.select(table[of_bulk.url_column], line.alias("line")), of_bulk.url_column, given.partitions)
    lines = rows.select("line").sortWithinPartitions("line").rdd.map(lambda row: row[0])  # Bulk counts the rows in an order that stays.
    out = given.out if "://" in given.out else os.path.abspath(given.out)
    done = lines.mapPartitionsWithIndex(lambda number, some: load_partition(number, some, out, options)).collect()
    loaded, failed, before = (sum(figures[name] for figures in done) for name in ("loaded", "failed", "before"))
    print(f"{loaded} loaded, {failed} failed, {before} done before")
    failures = Failures()
    for figures in done:
        failures.merge(figures["failures"])
    for text in failures.lines(hints(worker) if failed else {}):
        print(text)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as problem:  # No worker, or no folder to write to.
        sys.exit(f"spark_load.py: {problem}")
