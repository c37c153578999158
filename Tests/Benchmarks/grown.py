"""A cache directory with very many entries, grown out of a small one that a worker has filled."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

NAMESPACE = "default"


def index(cache: Path) -> sqlite3.Connection:
    """The index of a cache directory that no worker uses now."""
    return sqlite3.connect(cache / NAMESPACE / "index.sqlite", isolation_level=None)


def grow(small: Path, grown: Path, factor: int) -> None:
    """Copy a cache directory and give each entry `factor - 1` neighbours, in the order of keys and in that of ids.

    The neighbours have no files: nobody asks for them. The entries themselves get ids, and so their files names, that are
    `factor` apart, as if each had been stored among others.
    """
    shutil.copytree(small, grown)
    database = index(grown)
    database.execute("PRAGMA journal_mode = MEMORY")
    database.execute("PRAGMA synchronous = OFF")
    database.execute("PRAGMA cache_size = -1000000")
    database.execute("BEGIN")
    names = [row[1] for row in database.execute("PRAGMA table_info(responses)")]
    for (number,) in database.execute("SELECT id FROM responses ORDER BY id DESC").fetchall():
        moved = number >> 32 << 32 | (number & 0xFFFFFFFF) * factor
        database.execute("UPDATE responses SET id = ? WHERE id = ?", (moved, number))
        rename(grown / NAMESPACE, number, moved)
    columns = {name: name for name in names}
    columns |= {"id": "id + n", "key": "key || '?' || n", "url_hash": "random()", "url": "NULL"}
    database.execute(
        f"""
        WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {factor - 1})
        INSERT INTO responses SELECT {", ".join(columns.values())} FROM responses, numbers
        """
    )
    database.execute("COMMIT")
    database.execute("PRAGMA journal_mode = WAL")
    database.close()


def rename(folder: Path, old: int, new: int) -> None:
    """Files lie in a folder for the last two digits of their id, by which their names begin."""
    [path] = (folder / f"{old & 0xFF:02x}").glob(f"{old:016x}-*")
    shard = folder / f"{new & 0xFF:02x}"
    shard.mkdir(exist_ok=True)
    os.rename(path, shard / path.name.replace(f"{old:016x}", f"{new:016x}"))


def age(cache: Path, seconds: int) -> int:
    """Make all entries used and delivered so long ago; returns how many bytes they take."""
    database = index(cache)
    database.execute("UPDATE responses SET used_at = used_at - ?, delivered_at = delivered_at - ?", (seconds, seconds))
    [held] = database.execute("SELECT bytes FROM totals").fetchone()
    database.close()
    return int(held)
