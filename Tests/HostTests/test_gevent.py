"""examples/python/imageworker.py in programs that gevent has changed, before or after the client was imported."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import unittest
from typing import Any

from package import ROOT

BEFORE = "from gevent import monkey; monkey.patch_all()\nfrom imageworker import *"
AFTER = "import threading, subprocess\nfrom imageworker import *\nfrom gevent import monkey; monkey.patch_all()"
"""As gunicorn with --preload."""

PROGRAM = """
import asyncio, base64, json, os, signal, sys, time
sys.path.insert(0, sys.argv[1])
IMPORTS
import gevent

IMAGE = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")

def new(**settings):
    return BlockingImageWorker(cache_dir=sys.argv[2], **settings)

def all_of(functions):
    tasks = [gevent.spawn(function) for function in functions]
    return [task.get(timeout=60) for task in tasks]

"""


@unittest.skipIf(importlib.util.find_spec("gevent") is None, "there is no gevent here")
class Gevent(unittest.TestCase):
    def outcomes(self, program: str) -> list[Any]:
        """What the program prints as JSON, with gevent's changes before and after the import of the client."""
        found = []
        for imports in (BEFORE, AFTER):
            with tempfile.TemporaryDirectory() as folder:
                text = PROGRAM.replace("IMPORTS", imports) + program
                arguments = [sys.executable, "-c", text, str(ROOT / "examples" / "python"), folder]
                run = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
            self.assertEqual((run.returncode, run.stderr), (0, ""), imports)
            found.append(json.loads(run.stdout.splitlines()[-1]))
        return found

    def test_greenlets_share_a_worker_and_others_run_meanwhile(self) -> None:
        for sizes, turns in self.outcomes(
            """
turns = 0
def tick():
    global turns
    while True:
        turns += 1
        gevent.sleep(0)
ticking = gevent.spawn(tick)
with new() as worker:
    sizes = all_of([lambda: [worker.process(IMAGE, validate="decode").width for _ in range(20)]] * 16)
ticking.kill()
print(json.dumps([sum(map(sum, sizes)), turns]))
"""
        ):
            self.assertEqual(sizes, 16 * 20)
            self.assertGreater(turns, 320)

    def test_two_workers_and_asyncio_of_the_program_do_not_meet(self) -> None:
        program = """
async def own():
    await asyncio.sleep(0.01)
    return 1
with new() as one, new() as other:
    all_of([one.stats, other.stats])
    print(json.dumps([asyncio.run(own()), one.process(IMAGE).width, other.process(IMAGE).width, one.pid != other.pid]))
"""
        self.assertEqual(self.outcomes(program), [[1, 1, 1, True]] * 2)

    def test_a_forked_child_has_a_worker_of_its_own(self) -> None:
        program = """
worker = new()
worker.process(IMAGE)
pid = worker.pid
child = os.fork()
if child == 0:
    os._exit(0 if worker.process(IMAGE).width == 1 and worker.pid != pid else 1)
status = os.waitpid(child, 0)[1]
print(json.dumps([status, worker.process(IMAGE).width, worker.pid == pid]))
"""
        self.assertEqual(self.outcomes(program), [[0, 1, True]] * 2)

    def test_a_time_out_of_a_greenlet_cancels_its_call(self) -> None:
        program = """
import socket
server = socket.create_server(("127.0.0.1", 0))  # It never answers.
with new(proxy="") as worker:
    caught = False
    try:
        with gevent.Timeout(0.5):
            worker.load("http://127.0.0.1:%d/" % server.getsockname()[1])
    except gevent.Timeout:
        caught = True
    while worker.stats().requests.cancelled == 0:
        gevent.sleep(0.01)
    print(json.dumps([caught, worker.process(IMAGE).width]))
"""
        self.assertEqual(self.outcomes(program), [[True, 1]] * 2)

    def test_the_death_of_a_worker_and_a_missing_one_are_told(self) -> None:
        program = """
import logging; logging.disable()
worker = new()
worker.stats()
waiting = gevent.spawn(lambda: list(worker.load_all(["data:,%d" % n for n in range(5)], validate="none")))
kinds = sorted(getattr(outcome, "kind", "image") for _, outcome in waiting.get())
pid = worker.pid
statuses = []
def call():
    try:
        worker.stats()
    except WorkerExited as error:
        statuses.append(error.exit_status)
os.kill(pid, signal.SIGSTOP)
calling = gevent.spawn(call)
gevent.sleep(0.1)
os.kill(pid, signal.SIGKILL)
calling.join()
missing = None
try:
    new(binary="/nonexistent").stats()
except OSError as error:
    missing = type(error).__name__
print(json.dumps([kinds, statuses, worker.process(IMAGE).width, missing]))
worker.close()
"""
        self.assertEqual(self.outcomes(program), [[["image"] * 5, [-9], 1, "FileNotFoundError"]] * 2)

    def test_closed_workers_leave_no_descriptor_and_no_process(self) -> None:
        program = """
def use():
    with new() as worker:
        worker.stats()
        return worker.pid
pids = [use()]
before = len(os.listdir("/proc/self/fd"))
pids += [use() for _ in range(10)]
print(json.dumps([len(os.listdir("/proc/self/fd")) - before, [pid for pid in pids if os.path.exists("/proc/%d" % pid)]]))
"""
        self.assertEqual(self.outcomes(program), [[0, []]] * 2)


if __name__ == "__main__":
    unittest.main()
