"""Runs a command, and prints the wall time of it, and the processor time of all processes that it starts, in seconds (Linux).

    tree_cost.py COMMAND...

The processor time is that of a control group, if this process may make one (cgroup v2: root may); `nan` otherwise.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator, Optional

PR_SET_CHILD_SUBREAPER = 36  # prctl(2): orphans become children of this process.


@contextlib.contextmanager
def control_group() -> Iterator[Optional[Path]]:
    """A control group that this process is in."""
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    parent = next((Path(folder) for _, folder, kind, *_ in mounts if kind == "cgroup2"), None)
    group = parent and parent / f"tree-cost-{os.getpid()}"
    try:
        if group:
            group.mkdir()
            (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError:
        group = None
    try:
        yield group
    finally:
        if parent and group:
            (parent / "cgroup.procs").write_text(str(os.getpid()))
            group.rmdir()


def used(group: Optional[Path]) -> float:
    if not group:
        return float("nan")
    return int(dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())["usage_usec"]) / 1e6


def wait_for_orphans() -> None:
    deadline = time.monotonic() + 30
    with contextlib.suppress(ChildProcessError):
        while True:  # Daemons, as of Ray, end a little later, or are ended.
            if os.waitpid(-1, os.WNOHANG) != (0, 0):
                continue
            if time.monotonic() > deadline:
                for task in os.listdir("/proc/self/task"):
                    for child in Path(f"/proc/self/task/{task}/children").read_text().split():
                        os.kill(int(child), signal.SIGKILL)
            time.sleep(0.05)


def main() -> int:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with control_group() as group:
        before, begun = used(group), time.perf_counter()
        status = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode
        took = time.perf_counter() - begun
        wait_for_orphans()
        print(took, used(group) - before)
    return status


if __name__ == "__main__":
    sys.exit(main())
