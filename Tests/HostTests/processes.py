"""Processes that are not one's own children: which there are, and waiting for one."""

from __future__ import annotations

import contextlib
import os
import select
from pathlib import Path
from types import TracebackType
from typing import Optional

from origin_process import PATIENCE


def children(pid: int) -> list[int]:
    """Those that a process has now (Linux)."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # the thread has ended, and others have its children
            found += map(int, (task / "children").read_text().split())
    return found


class Watched:
    """A process to be told of when it ends (Linux). Taken while it lives, so that its number cannot be another's."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)

    def __enter__(self) -> Watched:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        os.close(self._descriptor)

    def ends(self, patience: float = PATIENCE) -> bool:
        readable, _, _ = select.select([self._descriptor], [], [], patience)
        return bool(readable)
