"""The trickier things the origin promises. Run: python3 -m unittest -v (in this folder)."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
import sys
import unittest
import zlib
from http.client import BadStatusLine, HTTPConnection, HTTPResponse, HTTPSConnection, IncompleteRead
from pathlib import Path
from typing import Any, Dict, List
from urllib.request import urlopen

from body import Body
from images import MAKERS, Picture, image

FOLDER = Path(__file__).parent


class Origin:
    """The origin as a process, and clients of it that give up after 30 s."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, str(FOLDER / "origin.py"), *options]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ready: Dict[str, Any] = self._line()

    def _line(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def do(self, command: str, **members: Any) -> Dict[str, Any]:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"do": command, **members}) + "\n")
        self.process.stdin.flush()
        answer: Dict[str, Any] = self._line()
        return answer

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.ready["port"], timeout=30)

    def get(self, target: str, **headers: str) -> HTTPResponse:
        connection = self.connect()
        connection.request("GET", target, headers={name.replace("_", "-"): value for name, value in headers.items()})
        return connection.getresponse()

    def end(self) -> int:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        status = self.process.wait(30)
        self.process.stdout.close()
        return status


class OriginTest(unittest.TestCase):
    origin: Origin

    @classmethod
    def setUpClass(cls) -> None:
        cls.origin = Origin()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.origin.end()

    def setUp(self) -> None:
        self.origin.do("reset")

    def body(self, target: str, **headers: str) -> bytes:
        return self.origin.get(target, **headers).read()


class Images(unittest.TestCase):
    def test_every_format_has_exactly_the_size_asked_for(self) -> None:
        for extension in MAKERS:
            for size in (10_000, 10_002, 70_000, 1_000_000):
                for frames in (1, 3):
                    _, body = image(extension, Picture(7, size=size, frames=frames, progressive=frames == 3))
                    self.assertEqual(len(body.read(0, size)), size, extension)

    def test_jpeg_and_gif_padding_fits_whatever_is_missing(self) -> None:
        for extension in ("jpg", "gif", "png"):
            for size in range(66_000, 66_600):
                self.assertEqual(image(extension, Picture(7, size=size))[1].length, size)

    def test_images_differ_by_number_and_not_by_time(self) -> None:
        for extension in MAKERS:
            seen = {image(extension, Picture(number))[1].read(0, 1 << 20) for number in range(50)}
            self.assertEqual(len(seen), 50, extension)
        # Not a PNG: zlib's bytes may differ from one build of it to the next.
        self.assertEqual(zlib.crc32(image("gif", Picture(1))[1].read(0, 10_000)), 0xDED3F7E5)

    def test_a_body_of_patterns_reads_and_cuts_like_the_bytes_it_stands_for(self) -> None:
        body = Body([b"head", (b"abc", 5), b"", (b"\0", 7), b"tail"])
        plain = b"head" + b"abc" * 5 + b"\0" * 7 + b"tail"
        for start in range(len(plain) + 1):
            for stop in range(start, len(plain) + 2):
                self.assertEqual(body.read(start, stop), plain[start:stop])
                self.assertEqual(body.cut(start, stop).read(0, 99), plain[start:stop])


class Gates(OriginTest):
    def test_a_held_exchange_is_counted_and_goes_on_when_released(self) -> None:
        connection = self.origin.connect()
        connection.request("GET", "/image/1.png?hold=a")
        counts = self.origin.do("await", gate="a", held=1)
        self.assertEqual((counts["held"]["a"], counts["active"]), (1, 1))
        self.origin.do("release", gate="a")
        self.assertEqual(connection.getresponse().status, 200)

    def test_a_hold_in_the_body_lets_exactly_the_bytes_before_it_through(self) -> None:
        response = self.origin.get("/image/1.png?bytes=1000&hold=a@headers&hold=b@600")
        self.origin.do("await", gate="a", held=1)
        self.origin.do("release", gate="a", count=1)
        self.assertEqual(len(response.read(600)), 600)
        self.origin.do("await", gate="b", held=1)
        self.assertEqual(self.origin.do("log")["exchanges"][0]["sent"], 600)
        self.origin.do("release", gate="b")
        self.assertEqual(len(response.read()), 400)

    def test_a_drip_waits_for_a_permit_a_piece(self) -> None:
        response = self.origin.get("/zeros?bytes=300&drip=100&drip-gate=d")
        for piece in range(3):
            self.origin.do("await", gate="d", held=1)
            self.origin.do("release", gate="d", count=1)
            self.assertEqual(len(response.read(100)), 100, piece)

    def test_a_client_that_leaves_while_it_is_held_is_noticed(self) -> None:
        connection = self.origin.connect()
        connection.request("GET", "/image/1.png?hold=a")
        self.origin.do("await", gate="a", held=1)
        connection.close()
        self.assertEqual(self.origin.do("await", left=1)["held"]["a"], 0)
        self.assertEqual(self.origin.do("log")["exchanges"][0]["ended"], "left")

    def test_permits_given_beforehand_are_used_up(self) -> None:
        self.origin.do("release", gate="a", count=1)
        self.assertEqual(self.origin.get("/image/1.png?hold=a").status, 200)
        connection = self.origin.connect()
        connection.request("GET", "/image/1.png?hold=a")
        self.assertEqual(self.origin.do("await", gate="a", held=1)["held"]["a"], 1)
        connection.close()


class Breakage(OriginTest):
    def test_a_truncated_body_is_shorter_than_its_length(self) -> None:
        for framing in ("", "&chunked"):
            with self.assertRaises(IncompleteRead) as caught:
                self.body("/image/1.png?bytes=1000&truncate=300" + framing)
            if not framing:
                self.assertEqual(len(caught.exception.partial), 300)

    def test_a_reset_is_a_reset(self) -> None:
        for place in ("start", "mid-headers"):
            with self.assertRaises(ConnectionResetError):
                self.origin.get(f"/image/1.png?reset={place}")

    def test_a_close_before_the_answer_is_no_answer(self) -> None:
        with self.assertRaises(BadStatusLine):
            self.origin.get("/image/1.png?close=start")

    def test_a_length_that_lies(self) -> None:
        self.assertEqual(len(self.body("/zeros?bytes=100&length=60")), 60)
        with self.assertRaises(IncompleteRead):
            self.body("/zeros?bytes=100&length=600")
        response = self.origin.get("/zeros?bytes=100&length=none")
        self.assertIsNone(response.getheader("Content-Length"))
        self.assertEqual(len(response.read()), 100)

    def test_endless_means_endless(self) -> None:
        response = self.origin.get("/image/1.png?endless")
        self.assertEqual(len(response.read(5_000_000)), 5_000_000)
        response.close()
        self.origin.do("await", left=1)

    def test_the_first_ones_fail(self) -> None:
        target = "/image/1.png?fail=2&status=429&retry-after=7"
        answers = [self.origin.get(target) for _ in range(3)]
        self.assertEqual([answer.status for answer in answers], [429, 429, 200])
        self.assertEqual([answer.getheader("Retry-After") for answer in answers], ["7", "7", None])

    def test_what_is_not_on_the_menu_is_said_aloud(self) -> None:
        answer = self.origin.get("/image/1.png?trunkate=1")
        self.assertEqual((answer.status, answer.reason), (500, "Not On The Menu"))


class Validators(OriginTest):
    target = "/image/1.png?bytes=1000&etag=v1"

    def test_a_matching_validator_is_answered_304_without_a_body(self) -> None:
        for tag in ('"v1"', 'W/"v1"', '"v0", "v1"', "*"):
            answer = self.origin.get(self.target, If_None_Match=tag)
            self.assertEqual((answer.status, answer.read(), answer.getheader("ETag")), (304, b"", '"v1"'))
        self.assertEqual(self.origin.get(self.target, If_None_Match='"v2"').status, 200)

    def test_modified_since_counts_only_without_an_entity_tag(self) -> None:
        target = "/image/1.png?last-modified=Sat,%2001%20Jan%202022%2000:00:00%20GMT&etag=v1"
        later = "Sun, 02 Jan 2022 00:00:00 GMT"
        self.assertEqual(self.origin.get(target, If_Modified_Since=later).status, 304)
        self.assertEqual(self.origin.get(target, If_Modified_Since=later, If_None_Match='"x"').status, 200)

    def test_a_range_is_part_of_the_whole(self) -> None:
        whole = self.body(self.target)
        for text, part in (("10-19", whole[10:20]), ("990-", whole[990:]), ("-10", whole[-10:])):
            answer = self.origin.get(self.target, Range=f"bytes={text}")
            self.assertEqual((answer.status, answer.read()), (206, part))
        self.assertEqual(self.origin.get(self.target, Range="bytes=1000-").status, 416)

    def test_if_range_needs_the_very_strong_validator(self) -> None:
        self.assertEqual(self.origin.get(self.target, Range="bytes=5-", If_Range='"v1"').status, 206)
        self.assertEqual(self.origin.get(self.target, Range="bytes=5-", If_Range='"v2"').status, 200)
        weak = self.target.replace("v1", "W/v1")
        self.assertEqual(self.origin.get(weak, Range="bytes=5-", If_Range='W/"v1"').status, 200)
        blind = self.target + "&ranges=blind"
        self.assertEqual(self.origin.get(blind, Range="bytes=5-", If_Range='"v2"').status, 206)

    def test_a_script_gives_one_answer_after_the_other(self) -> None:
        self.origin.do("script", target="/s", answers=["/image/1.png?etag=a", "/image/2.png?etag=b"])
        tags = [self.origin.get("/s").getheader("ETag") for _ in range(3)]
        self.assertEqual(tags, ['"a"', '"b"', '"b"'])


class Connections(OriginTest):
    def test_a_connection_is_used_again_and_counted_once(self) -> None:
        before = self.origin.do("counts")["connections"]
        connection = self.origin.connect()
        for target in ("/image/1.png", "/image/1.png?chunked=10", "/image/1.png?status=404", "/zeros"):
            connection.request("GET", target)
            connection.getresponse().read()
        self.assertEqual(self.origin.do("counts")["connections"], before + 1)
        connection.close()
        self.assertEqual(self.origin.do("await", open=0)["open"], 0)

    def test_who_has_left_does_not_count_whatever_is_heard_first(self) -> None:
        leaving, staying = self.origin.connect(), self.origin.connect()
        staying.request("GET", "/image/1.png")
        staying.getresponse().read()
        leaving.request("GET", "/image/1.png?endless")
        leaving.getresponse()
        self.origin.process.send_signal(signal.SIGSTOP)
        leaving.close()  # with bytes unread, which is a reset
        staying.request("GET", "/image/1.png")
        self.origin.process.send_signal(signal.SIGCONT)
        staying.getresponse().read()
        counts = self.origin.do("counts")
        self.assertEqual((counts["mostActive"], counts["mostActiveAt"]), (1, {str(self.origin.ready["port"]): 1}))

    def test_the_echo_tells_what_was_sent_and_to_whom(self) -> None:
        told = json.loads(self.body("/echo", Authorization="Basic x"))
        self.assertEqual((told["method"], told["headers"]["authorization"]), ("GET", "Basic x"))

    def test_another_user_gets_another_picture(self) -> None:
        target = "/image/1.png?by=authorization"
        bodies = {self.body(target), self.body(target, Authorization="a"), self.body(target, Authorization="b")}
        self.assertEqual(len(bodies), 3)

    def test_redirects_in_a_chain_and_in_a_circle(self) -> None:
        with urlopen(f"http://127.0.0.1:{self.origin.ready['port']}/image/1.png?hops=3&etag=a") as answer:
            self.assertTrue(answer.url.endswith("hops=0&etag=a"))
        circle = "/image/1.png?circle&status=307"
        self.assertEqual(self.origin.get(circle).getheader("Location"), circle)

    def test_compressed_bodies_unpack_to_the_image(self) -> None:
        for coding, window in (("gzip", 31), ("deflate", 15), ("raw-deflate", -15)):
            packed = self.body(f"/image/1.png?bytes=5000&encoding={coding}")
            self.assertEqual(zlib.decompress(packed, window), self.body("/image/1.png?bytes=5000"))

    def test_a_large_body_is_complete(self) -> None:
        response = self.origin.get("/image/1.png?bytes=200000000")
        length = 0
        while piece := response.read(1 << 20):
            length += len(piece)
        self.assertEqual(length, 200_000_000)

    def test_raw_bytes_go_out_as_they_are(self) -> None:
        with socket.create_connection(("127.0.0.1", self.origin.ready["port"]), 30) as client:
            client.sendall(b"GET /text?raw=HTTP/1.1%20299%20Odd%0D%0A%0D%0A%FF HTTP/1.1\r\n\r\n")
            received = b"".join(iter(lambda: client.recv(100), b""))
        self.assertEqual(received, b"HTTP/1.1 299 Odd\r\n\r\n\xff")

    def test_the_control_port_does_the_same_as_standard_input(self) -> None:
        self.body("/text?x-one")
        with urlopen(f"http://127.0.0.1:{self.origin.ready['control']}/log?path=/text") as answer:
            exchanges: List[Dict[str, Any]] = json.load(answer)["exchanges"]
        self.assertEqual([exchange["target"] for exchange in exchanges], ["/text?x-one"])


class Life(unittest.TestCase):
    def test_it_ends_with_its_input_even_while_it_holds(self) -> None:
        origin = Origin("--origins", "3")
        self.assertEqual(len(set(origin.ready["ports"])), 3)
        connection = origin.connect()
        connection.request("GET", "/image/1.png?hold=a")
        origin.do("await", gate="a", held=1)
        self.assertEqual(origin.end(), 0)
        connection.close()

    def test_tls_is_trusted_through_the_printed_authority_only(self) -> None:
        origin = Origin("--tls")
        port = origin.ready["port"]
        trust = ssl.create_default_context(cafile=origin.ready["ca"])
        trusting = HTTPSConnection("127.0.0.1", port, timeout=30, context=trust)
        trusting.request("GET", "/image/1.png")
        self.assertEqual(trusting.getresponse().status, 200)
        trusting.close()
        with self.assertRaises(ssl.SSLCertVerificationError):
            HTTPSConnection("127.0.0.1", port, timeout=30, context=ssl.create_default_context()).request("GET", "/")
        origin.end()
        self.assertFalse(Path(origin.ready["ca"]).exists())


if __name__ == "__main__":
    unittest.main()
