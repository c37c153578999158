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
    # Not by /proc/PID/task/*/children: a thread that ends hands its children to one that may have been read before.
    return [int(each) for each in os.listdir("/proc") if each.isdecimal() and parent(each) == pid]


def descendants(pid: int) -> list[int]:
    """Those of a process, and theirs (Linux)."""
    parents = {int(each): parent(each) for each in os.listdir("/proc") if each.isdecimal()}
    found = [pid]
    for process in found:
        found += [each for each, its in parents.items() if its == process]
    return found[1:]


def parent(process: str) -> Optional[int]:
    with contextlib.suppress(OSError):  # it has ended
        # After the name, which stands in brackets and may have any character.
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return None


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
