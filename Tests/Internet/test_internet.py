"""The small internet does what its habits say, as seen by a client in its namespace."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Optional

from habits import Habit
from internet_process import Internet, Unavailable

GET = """
import json, http.client, sys, threading
answers = {}
def get(url):
    host, path = url.split("/", 1)
    try:
        connection = http.client.HTTPConnection(host, timeout=TIMEOUT)
        connection.request("GET", "/" + path)
        response = connection.getresponse()
        answers[url] = [response.status, len(response.read())]
    except Exception as error:
        answers[url] = type(error).__name__
threads = [threading.Thread(target=get, args=(url,)) for url in sys.argv[1:]]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(answers))
"""
RESOLVE = """
import json, socket, struct, sys
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.settimeout(SILENCE)
for number in range(int(sys.argv[1])):
    name = b"".join(bytes((len(label),)) + label for label in (b"good-%d" % number, b"test"))
    query = struct.pack(">HHHHHH", number, 0x0100, 1, 0, 0, 0) + name + bytes((0, 0, 1, 0, 1))
    client.sendto(query, ("127.0.0.53", 53))
answered = 0
try:
    while True:
        client.recv(512)
        answered += 1
except socket.timeout:
    print(answered)
"""


class InternetTests(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def internet(self, *habits: Habit, names_at_once: Optional[int] = None, names_delay: float = 0.03) -> Internet:
        try:
            internet = Internet(self.folder, habits, names_at_once=names_at_once, names_delay=names_delay)
        except Unavailable as reason:
            self.skipTest(str(reason))
        self.addCleanup(internet.end)
        return internet

    def get(self, internet: Internet, *urls: str, timeout: float = 30) -> Any:
        script = GET.replace("TIMEOUT", str(timeout))
        command = [*internet.prefix, sys.executable, "-c", script, *urls]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    def test_each_kind_answers_by_its_habit(self) -> None:
        internet = self.internet(
            Habit("good", median=0.01, size=3000),
            Habit("missing", status=404),
            Habit("reset", does="reset"),
        )
        answers = self.get(
            internet, "good-7.test/1", "missing-0.test/1", "reset-0.test/1", "good-8.test:81/1", "gone-0.test/1"
        )
        self.assertEqual(
            answers,
            {
                "good-7.test/1": [200, 3000],
                "missing-0.test/1": [404, 0],
                "reset-0.test/1": "ConnectionResetError",
                "good-8.test:81/1": "ConnectionRefusedError",
                "gone-0.test/1": "gaierror",
            },
        )
        seen = internet.end()
        self.assertEqual((seen["web"]["requests"], len(seen["web"]["served"])), (3, 1))
        self.assertEqual(seen["names"]["names"], 5)

    def test_the_bodies_of_a_kind_can_be_files_and_a_path_always_has_the_same_one(self) -> None:
        (self.folder / "bodies").mkdir()
        sizes = {1000, 300_000}  # One is larger than the buffer of a socket.
        for size in sizes:
            (self.folder / "bodies" / f"{size}.jpeg").write_bytes(bytes(size))
        internet = self.internet(Habit("good", median=0.01, files=str(self.folder / "bodies")))
        urls = [f"good-{number % 3}.test/{number}" for number in range(20)]
        answers = self.get(internet, *urls)
        self.assertEqual({tuple(answer) for answer in answers.values()}, {(200, size) for size in sizes})
        self.assertEqual(self.get(internet, *urls), answers)

    def test_a_silent_host_answers_nothing(self) -> None:
        internet = self.internet(Habit("silent", does="ignore"))
        answers = self.get(internet, "silent-0.test/1", timeout=0.2)
        self.assertIn(answers["silent-0.test/1"], ("TimeoutError", "timeout"))  # The latter before Python 3.10.
        self.assertEqual(internet.end()["web"]["mostIgnored"], 1)

    def test_a_limited_host_refuses_what_is_above_its_limit_and_a_weak_one_lets_it_wait(self) -> None:
        internet = self.internet(Habit("limited", median=3, sigma=0, limit=2), Habit("weak", sigma=0, at_once=1))
        urls = [f"{kind}-0.test/{number}" for kind in ("limited", "weak") for number in range(5)]
        answers = self.get(internet, *urls)
        self.assertEqual(sorted(status for status, _ in answers.values()), [200] * 7 + [429] * 3)
        self.assertEqual(internet.end()["web"]["refused"], 3)

    def test_the_name_server_drops_queries_above_its_limit(self) -> None:
        internet = self.internet(Habit("good"), names_at_once=10, names_delay=0.5)
        command = [*internet.prefix, sys.executable, "-c", RESOLVE.replace("SILENCE", "1.5"), "25"]
        self.assertEqual(int(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout), 10)
        self.assertEqual(internet.end()["names"], {"queries": 25, "names": 25, "dropped": 15})


if __name__ == "__main__":
    unittest.main()
