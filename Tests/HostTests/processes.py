"""Waiting for a process that is not one's own child."""

from __future__ import annotations

import os
import select
from types import TracebackType
from typing import Optional

from origin_process import PATIENCE


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
