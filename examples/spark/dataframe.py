"""A column of URLs of a Spark DataFrame to columns of images:

    images = load_column(by_origin(table, "url", 200), "url", transform={"width": 256, "height": 256, "format": "jpeg"})
    images.write.parquet("images")
"""

from __future__ import annotations

import itertools
from typing import Any, Iterable, Iterator, Mapping

from partitions import by_origin, ship

from imageworker import BlockingImageWorker, ImageWorkerError

__all__ = ["by_origin", "load_column"]

COLUMNS = {"image": "binary", "width": "int32", "height": "int32", "format": "string", "error": "string"}
"""The columns that are added, with their Arrow types. A row has either an image or the kind of an error."""

_workers: list[BlockingImageWorker] = []
"""The worker of this Python process. Spark uses the process for one task after the other, so connections stay warm."""


def load_column(table: Any, url_column: str = "url", settings: Mapping[str, Any] = {}, **params: Any) -> Any:
    """The rows of a DataFrame with COLUMNS added. `params` are those of `load`, `settings` those of the worker."""
    ship(table.sparkSession)
    schema = table.selectExpr("*", *(f"cast(null as {kind.replace('int32', 'int')}) {name}" for name, kind in COLUMNS.items())).schema
    return table.mapInArrow(lambda batches: load_batches(batches, url_column, settings, params), schema)


def load_batches(batches: Iterable[Any], url_column: str, settings: Mapping[str, Any], params: Mapping[str, Any]) -> Iterator[Any]:
    """Adds COLUMNS to the rows of Arrow batches, in the order in which their loads end.

    Raises what prevents rows from being tried, for Spark to run the task again.
    """
    import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]

    if not _workers:  # They are strangers' servers: as many connections to each as a browser has.
        _workers.append(BlockingImageWorker(**{"max_connections_per_host": 6, "robots": "obey", **settings}))
    rows = ((batch.slice(n, 1), batch.column(url_column)[n].as_py() or "") for batch in batches for n in range(batch.num_rows))
    results = _workers[0].load_all(rows, deliver="data", **{"store": "none", **params})
    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in COLUMNS.items()])
    try:
        while some := list(itertools.islice(results, 100)):  # A batch is in memory as a whole: it must not be large.
            table = pyarrow.Table.from_batches([row for row, _ in some])
            for field, column in zip(schema, pyarrow.Table.from_pylist([columns_of(result) for _, result in some], schema=schema).columns):
                table = table.append_column(field, column)
            yield from table.combine_chunks().to_batches()
    except ImageWorkerError:
        _workers.pop().close()  # It may not start any more; the next attempt has one of its own.
        raise


def columns_of(result: Any) -> Mapping[str, Any]:
    if isinstance(result, ImageWorkerError):
        return {"error": result.kind}
    return {"image": result.data, "width": result.width, "height": result.height, "format": result.format}
