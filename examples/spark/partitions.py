"""The code that runs on the executors, and the way to get it there."""

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Iterable, Iterator, Sequence
from urllib.parse import urlsplit

EXAMPLES = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(EXAMPLES))
from bulk.__main__ import main  # noqa: E402

sys.path.pop(0)  # Its other folders have names of libraries.

PORTS = {"http": 80, "https": 443}


def ship(spark: Any) -> None:
    """Gives the executors these modules, the client and bulk."""
    path = Path(tempfile.mkdtemp()) / "imageworker_spark.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for folder, inside in (("python", ""), ("bulk", "bulk/"), ("spark", "")):
            for module in sorted((EXAMPLES / folder).glob("*.py")):
                packed.write(module, inside + module.name)
    spark.sparkContext.addPyFile(str(path))


def origin(url: Any) -> str:
    """Scheme, host and port, in one spelling for all URLs of an origin."""
    try:
        parts = urlsplit(str(url))
        host = (parts.hostname or "").rstrip(".").encode("idna").decode()
        return f"{parts.scheme}://{host}:{parts.port or PORTS.get(parts.scheme)}"
    except ValueError:
        return ""


def by_origin(table: Any, url_column: str, partitions: int) -> Any:
    """The table with all rows of an origin in one partition: what one worker grants an origin is what the cluster grants it."""
    from pyspark.sql.functions import udf  # type: ignore[import-not-found, unused-ignore]

    return table.repartition(partitions, udf(origin)(table[url_column]))


def load_partition(number: int, lines: Iterable[str], out: str, options: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Loads the rows of a partition, which are lines of JSON, into OUT/NNNNN by bulk, and yields the figures.

    Raises what prevents rows from being tried, for Spark to run the task again: it continues where it was. If another attempt still runs,
    this one waits for its end, and has then nothing to do.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        if path.stat().st_size:
            own = [f"{option}/{number:05}" if option.startswith("--staging=") else option for option in options]
            done = main([str(path), f"{out}/{number:05}", "--format=webdataset", *own], waits=True)
            yield {"loaded": done.loaded, "failed": done.failed, "before": done.before, "failures": done.failures.kinds}
