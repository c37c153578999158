"""The worker on a machine whose name server is silent, and whose own name nobody knows.

A library that looks up a name on the transport's thread, such as that of the machine, would hold all transfers until it
gives up; the loads would fail by their deadline.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from hostile_server import answer
from test_decoders import Worker
from test_robots import IMAGE, NONE, Server

DEADLINE = 5000
SET_UP = """
ip link set lo up && hostname nobody-knows &&
echo nameserver 127.0.0.1 >"$0/resolv.conf" && mount --bind "$0/resolv.conf" /etc/resolv.conf &&
echo 127.0.0.1 localhost >"$0/hosts" && mount --bind "$0/hosts" /etc/hosts && exec "$@"
"""


def inside(folder: Path) -> None:
    """Loads images in the namespace, and prints their outcomes and the number of questions to the name server."""
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind(("127.0.0.1", 53))
    names.setblocking(False)
    picture = answer(IMAGE, "200 OK", "Content-Type: image/png", "Set-Cookie: a=b; Domain=example.com")
    server = Server(NONE, images=[picture, picture, picture])
    outcomes = []
    with Worker(folder, "--connect-timeout", "4s") as worker:
        outcomes.append(worker.call("load", url=server.base + "/1.png", deadlineMs=DEADLINE))
        questions = 0
        while True:
            try:
                names.recv(512)
            except BlockingIOError:
                break
            questions += 1
        # A name that nobody answers for holds nobody else.
        pending = worker.send("load", url="http://silent.example/1.png", retries=0)
        outcomes.append(worker.call("load", url=server.base + "/2.png", deadlineMs=DEADLINE))
        while len(outcomes) < 3:
            reply = worker.receive()
            if reply["id"] == pending:
                outcomes.append(reply)
    server.close()
    print(json.dumps({"outcomes": outcomes, "questions": questions}))


class SilentNames(unittest.TestCase):
    def test_a_silent_name_server_holds_only_the_loads_of_its_names(self) -> None:
        isolation = ["unshare", "--mount", "--net", "--uts"]
        if subprocess.run([*isolation, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("namespaces are not permitted here")
        with tempfile.TemporaryDirectory() as folder:
            command = [*isolation, "sh", "-c", SET_UP, folder, sys.executable, __file__, folder]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        seen = json.loads(ended.stdout)
        first, second, silent = seen["outcomes"]
        self.assertIn("result", first)
        self.assertIn("result", second)
        self.assertEqual((silent["error"]["data"]["kind"], silent["error"]["data"]["retryable"]), ("resolve", True))
        self.assertEqual(seen["questions"], 0, "no name was needed for an address")


if __name__ == "__main__":
    inside(Path(sys.argv[1]))
