#!/usr/bin/env python3
"""A small internet for tests and benchmarks, in a network namespace of its own. README.md tells how to start it.

    unshare -m -n Tests/Internet/internet.py FOLDER PLAN

PLAN is JSON: {"habits": [...], "names": {"delay": 0.03, "mostAtOnce": null}, "seed": 1}. The program prints a line when
it is ready. When its input ends, it prints a report in JSON and exits.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True

from habits import Habit  # noqa: E402
from loop import Loop  # noqa: E402
from names import NameServer  # noqa: E402
from web import WebServer  # noqa: E402

NAME_SERVER = "127.0.0.53"
ADDRESSES = ("192.0.2.1/32", "2001:db8::1/128")
"""Addresses for documentation (RFC 5737, RFC 3849)."""


def set_up_namespace(folder: Path) -> None:
    """Bring up the loopback interface, and make the name server the one that all in the namespace ask.

    A client may take a machine that has only loopback addresses for one without a network: aria2 then resolves nothing.
    """
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for own in ADDRESSES:
        subprocess.run(["ip", "address", "add", own, "dev", "lo"], check=True)
    configuration = folder / "resolv.conf"
    configuration.write_text(f"nameserver {NAME_SERVER}\n")
    subprocess.run(["mount", "--bind", str(configuration), "/etc/resolv.conf"], check=True)


def main() -> None:
    folder, plan = Path(sys.argv[1]), json.loads(sys.argv[2])
    set_up_namespace(folder)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    loop = Loop()
    habits = [Habit(**habit) for habit in plan["habits"]]
    names = plan["names"]
    kinds = [habit.kind for habit in habits]
    server = NameServer(loop, NAME_SERVER, kinds, names["delay"], names["mostAtOnce"])
    web = WebServer(loop, habits, plan["seed"])
    loop.watch(sys.stdin.fileno(), lambda: None if os.read(sys.stdin.fileno(), 4096) else loop.stop())
    gc.disable()  # Nothing here makes cycles that matter, and a collection delays all hosts.
    print("ready", flush=True)
    loop.run()
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"names": server.report(), "web": web.report(), "processorTime": used.ru_utime + used.ru_stime}))


if __name__ == "__main__":
    main()
