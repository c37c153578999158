"""examples/mcp line by line: versions, faults, cancellation, progress, pipelined calls, and the end of the server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

from mcp_process import InPublic, RawClient, text_of
from origin_process import PATIENCE
from processes import Watched, children

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
AT_ONCE = 8


class Versions(InPublic):
    def test_a_known_version_is_accepted_and_another_one_is_answered_with_the_latest(self) -> None:
        for wanted, expected in (*((version, version) for version in VERSIONS), ("1999-01-01", VERSIONS[0])):
            with self.subTest(wanted):
                client = self.raw()
                answer = client.initialize(wanted)
                self.assertEqual(answer["protocolVersion"], expected)
                self.assertEqual(answer["capabilities"], {"tools": {}})
                call = client.call("probe_image", url=f"{self.origin.url}/image/1.png")
                self.assertFalse(client.result(call)["isError"])

    def test_nothing_but_ping_comes_before_initialize_and_that_comes_once(self) -> None:
        client = self.raw()
        client.request("ping", "a")
        self.assertEqual(client.result("a"), {})
        for method in ("tools/list", "tools/call"):
            client.request(method, 1)
            self.assert_fault(client, -32600, 1, "must be initialize")
        client.request("initialize", 2)
        self.assert_fault(client, -32602, 2, "protocolVersion must be a string")
        client.initialize(VERSIONS[0])
        client.request("initialize", 3, protocolVersion=VERSIONS[0])
        self.assert_fault(client, -32600, 3, "already")

    def test_only_the_version_with_lists_of_messages_takes_them(self) -> None:
        url = f"{self.origin.url}/image/1.png"
        call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "probe_image", "arguments": {"url": url}}}
        ping = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
        batch = [{**call, "id": 1}, ping, {"jsonrpc": "2.0", "method": "notifications/initialized"}, 17, {**call, "id": 2}]
        for version in VERSIONS:
            client = self.session(version)
            client.send(batch)
            if version != "2025-03-26":
                self.assert_fault(client, -32600, None, "2025-03-26")
                continue
            answers = client.receive()
            self.assertEqual(sorted(str(answer["id"]) for answer in answers), ["1", "2", "None", "p"])
            client.send([])
            self.assert_fault(client, -32600, None, "1 to 256 messages")
            client.send([{"jsonrpc": "2.0", "method": "notifications/initialized"}])
            client.send(ping)
            self.assertEqual(client.result("p"), {}, "a list of notifications has no answer")

    def test_a_cancelled_call_of_a_list_has_no_answer_in_it(self) -> None:
        client = self.session("2025-03-26")
        params = {"name": "probe_image", "arguments": {"url": f"{self.origin.url}/image/1.png?hold=gate"}}
        client.send([{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params} for n in (1, 2)])
        self.origin.command({"do": "await", "gate": "gate", "held": 1})
        client.notify("notifications/cancelled", requestId=1)
        client.request("ping", "p")
        self.assertEqual(client.result("p"), {})
        self.origin.command({"do": "release", "gate": "gate"})
        self.assertEqual([answer["id"] for answer in client.receive()], [2])

    def test_a_list_with_one_id_twice_has_one_call_of_it(self) -> None:
        client = self.session("2025-03-26")
        params = {"name": "probe_image", "arguments": {"url": f"{self.origin.url}/image/1.png?hold=gate"}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        client.send([call, call, {"jsonrpc": "2.0", "id": 1, "method": "ping"}, {**call, "id": "1"}])
        self.origin.command({"do": "await", "gate": "gate", "held": 1})
        client.send([call])  # In another list, while the first one is under way.
        (refused,) = client.receive()
        self.assertIn("the id 1 belongs to a request that is under way", refused["error"]["message"])
        self.origin.command({"do": "release", "gate": "gate"})
        answers = client.receive()
        self.assertEqual(sorted(str(answer["id"]) for answer in answers if "result" in answer), ["1", "1"])
        self.assertEqual([answer["error"]["code"] for answer in answers if "error" in answer], [-32600, -32600])
        self.assertEqual(client.end(), 0)
        self.assertNotIn("Traceback", client.log.read_text())

    def test_lists_have_no_more_calls_under_way_than_single_ones(self) -> None:
        client = self.session("2025-03-26")
        params = {"name": "probe_image", "arguments": {"url": f"{self.origin.url}/image/1.png?hold=gate"}}
        client.send([{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params} for n in range(100)])
        client.send([{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params} for n in range(100, 356)])
        self.origin.command({"do": "await", "gate": "gate", "held": 1})
        self.origin.command({"do": "release", "gate": "gate"})
        answers = [*client.receive(), *client.receive()]
        self.assertEqual(len([answer for answer in answers if "error" in answer]), 100)

    def assert_fault(self, client: RawClient, code: int, identity: Any, words: str) -> None:
        answer = client.receive()
        self.assertEqual((answer["id"], answer["error"]["code"]), (identity, code))
        self.assertIn(words, answer["error"]["message"])


class Faults(InPublic):
    def test_each_faulty_line_has_its_code_and_the_next_line_is_read(self) -> None:
        client = self.session()
        request = b'{"jsonrpc":"2.0","id":%s,"method":%s}\n'
        lines = [
            (b"garbage\n", -32700, None),
            (b'{"jsonrpc":"2.0",\n', -32700, None),
            (b"\xff\xfe\n", -32700, None),
            (b"[" * 100_000 + b"\n", -32700, None),
            (b"17\n", -32600, None),
            (b"{}\n", -32600, None),
            (b'{"id":1,"method":"ping"}\n', -32600, 1),
            (request % (b"null", b'"ping"'), -32600, None),
            (request % (b"true", b'"ping"'), -32600, None),
            (request % (b"1.5", b'"ping"'), -32600, None),
            (request % (b"2", b"7"), -32600, 2),
            (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}\n', -32602, 3),
            (request % (b'"x"', b'"resources/list"'), -32601, "x"),
            (request % (b"4", b'"server/discover"'), -32601, 4),
            (request % (b"5", b'"tools/call"'), -32602, 5),
            (b'{"jsonrpc":"2.0","id":6,"method":"tools/list","params":{"cursor":"2"}}\n', -32602, 6),
            (b"x" * (5 << 20) + b"\n", -32600, None),
        ]
        for line, code, identity in lines:
            with self.subTest(line[:60]):
                client.write(line)
                answer = client.receive()
                self.assertEqual((answer["error"]["code"], answer["id"]), (code, identity))
                client.request("ping", 9)
                self.assertEqual(client.result(9), {})

    def test_members_that_are_null_are_as_if_left_out(self) -> None:
        client = self.raw()
        initialize = {"protocolVersion": "2025-06-18", "capabilities": None, "clientInfo": None, "_meta": None}
        client.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize})
        self.assertIn("serverInfo", client.result(1))
        client.send({"jsonrpc": "2.0", "method": "notifications/initialized", "params": None})
        requests: list[tuple[str, Any]] = [
            ("ping", None),
            ("tools/list", None),
            ("tools/list", {"cursor": None, "_meta": None}),
            ("tools/call", {"name": "probe_image", "arguments": None, "_meta": {"progressToken": None}}),
        ]
        for identity, (method, params) in enumerate(requests, 2):
            client.send({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})
            client.result(identity)

    def test_blank_lines_responses_and_unknown_notifications_have_no_answer(self) -> None:
        client = self.session()
        client.write(b"\n  \r\n")
        client.send({"jsonrpc": "2.0", "id": 77, "result": {}})
        client.send({"jsonrpc": "2.0", "id": 78, "error": {"code": 1, "message": "x"}})
        client.notify("notifications/unheard-of")
        identities: list[Any] = [1, 99, True, None, [], {}]
        for identity in identities:
            client.notify("notifications/cancelled", requestId=identity)
        client.request("ping", 1)
        self.assertEqual(client.result(1), {})

    def test_a_call_that_names_no_tool_is_a_fault(self) -> None:
        client = self.session()
        calls: list[tuple[dict[str, Any], str]] = [
            ({"name": "fetch_imag"}, "did you mean fetch_image?"),
            ({"name": "xyz"}, "the tools are fetch_image, probe_image, contact_sheet"),
            ({"name": 7}, "name must be"),
            ({"name": "fetch_image", "arguments": "x"}, "arguments must be an object"),
            ({"name": "fetch_image", "arguments": {}, "_meta": {"progressToken": 1.5}}, "progressToken must be"),
        ]
        for number, (params, words) in enumerate(calls):
            client.request("tools/call", number, **params)
            error = client.receive()["error"]
            self.assertEqual(error["code"], -32602)
            self.assertIn(words, error["message"])

    def test_an_id_that_is_in_use_is_refused_and_the_first_call_goes_on(self) -> None:
        client = self.session()
        url = f"{self.origin.url}/image/1.png?hold=gate"
        client.call("probe_image", 5, url=url)
        self.origin.command({"do": "await", "gate": "gate", "held": 1})
        client.call("probe_image", 5, url=url)
        answer = client.receive()
        self.assertEqual((answer["id"], answer["error"]["code"]), (None, -32600))
        self.origin.command({"do": "release", "gate": "gate"})
        self.assertFalse(client.result(5)["isError"])


class Cancellation(InPublic):
    def held(self, client: RawClient, count: int, gate: str = "gate") -> list[int]:
        urls = [f"{self.origin.url}/image/{n}.png?hold={gate}" for n in range(count)]
        return [client.call("probe_image", url=url) for url in urls]

    def test_a_cancelled_call_ends_its_transfer_and_has_no_answer(self) -> None:
        client = self.session()
        (call,) = self.held(client, 1)
        self.origin.command({"do": "await", "gate": "gate", "held": 1})
        client.notify("notifications/cancelled", requestId=call, reason="not needed")
        self.origin.command({"do": "await", "left": 1})
        client.request("ping", 1)
        self.assertEqual(client.result(1), {})
        self.assertEqual(client.end(), 0)
        self.assertIsNone(client.receive())

    def test_a_call_that_waits_for_its_turn_is_cancelled_too(self) -> None:
        client = self.session()
        calls = self.held(client, AT_ONCE + 2)
        self.origin.command({"do": "await", "gate": "gate", "held": 6})  # As many connections as one server gets.
        client.notify("notifications/cancelled", requestId=calls[-1])
        client.request("ping", "p")
        self.assertEqual(client.result("p"), {})
        self.origin.command({"do": "release", "gate": "gate"})
        answers = [client.receive()["id"] for _ in calls[:-1]]
        self.assertEqual(sorted(answers), calls[:-1])
        self.assertEqual(self.requests(), len(calls) - 1)

    def test_a_cancellation_is_read_while_nobody_reads_the_output(self) -> None:
        client = self.session()
        for number in range(200):
            client.request("tools/list", f"list {number}")  # 500 kB of output, of which the pipe takes 64.
        (call,) = self.held(client, 1)
        self.origin.command({"do": "await", "gate": "gate", "held": 1})
        client.notify("notifications/cancelled", requestId=call)
        self.origin.command({"do": "await", "left": 1})
        for number in range(200):
            self.assertIn("tools", client.result(f"list {number}"))
        client.request("ping", 1)
        self.assertEqual(client.result(1), {})

    def test_a_sheet_is_cancelled_with_all_of_its_images(self) -> None:
        client = self.session()
        urls = [f"{self.origin.url}/image/{n}.png?hold=gate" for n in range(10)]
        call = client.call("contact_sheet", urls=urls)
        self.origin.command({"do": "await", "gate": "gate", "held": 6})
        client.notify("notifications/cancelled", requestId=call)
        self.origin.command({"do": "await", "left": 6})
        client.request("ping", 1)
        self.assertEqual(client.result(1), {})


class Calls(InPublic):
    def test_calls_that_are_sent_at_once_are_answered_once_each(self) -> None:
        client = self.session()
        lines = []
        for number in range(100):
            url = f"{self.origin.url}/image/{number % 10}.png?" + ("status=404" if number % 10 == 9 else "cache-control=max-age=60")
            params = {"name": "fetch_image", "arguments": {"url": url}}
            lines.append({"jsonrpc": "2.0", "id": f"call {number}", "method": "tools/call", "params": params})
        for line in lines:
            client.send(line)
        answers = [client.receive() for _ in lines]
        self.assertEqual(sorted(answer["id"] for answer in answers), sorted(line["id"] for line in lines))
        failed = {answer["id"] for answer in answers if answer["result"]["isError"]}
        self.assertEqual(failed, {f"call {number}" for number in range(9, 100, 10)})
        self.assertLessEqual(self.requests(), 20, "each image is transferred once, and a failure is remembered")

    def test_too_many_calls_are_refused(self) -> None:
        client = self.session()
        for number in range(300):
            client.call("probe_image", number, url=f"{self.origin.url}/image/{number}.png?hold=gate")
        refused = [client.receive() for _ in range(300 - 256)]
        self.assertEqual([answer["id"] for answer in refused], list(range(256, 300)))
        self.assertIn("256 calls are under way", refused[0]["error"]["message"])
        self.origin.command({"do": "release", "gate": "gate"})
        self.assertEqual(sorted(client.receive()["id"] for _ in range(256)), list(range(256)))

    def test_progress_rises_and_ends_before_the_result(self) -> None:
        client = self.session()
        for token, version in (("t", "sheet"), (7, "sheet"), (None, "sheet")):
            urls = [f"{self.origin.url}/image/{n}.png?x-{token}" for n in range(5)]
            call = client.call("contact_sheet", token=token, urls=urls)
            received = [client.receive()]
            while "id" not in received[-1]:
                received.append(client.receive())
            *notifications, answer = received
            self.assertEqual(answer["id"], call)
            self.assertEqual({each["method"] for each in notifications} - {"notifications/progress"}, set())
            progress = [each["params"] for each in notifications]
            expected = [] if token is None else [(token, n, 5) for n in range(1, 6)]
            self.assertEqual([(each["progressToken"], each["progress"], each["total"]) for each in progress], expected)

    def test_a_download_reports_its_bytes(self) -> None:
        client = self.session()
        call = client.call("fetch_image", token="t", url=f"{self.origin.url}/image/1.jpg?bytes=900000&hold=gate@600000")
        first = client.receive()["params"]
        self.assertEqual((first["progressToken"], first["total"]), ("t", 900_000))
        self.assertGreater(first["progress"], 0)
        self.origin.command({"do": "release", "gate": "gate"})
        last = first["progress"]
        while "id" not in (message := client.receive()):
            self.assertGreater(message["params"]["progress"], last)
            last = message["params"]["progress"]
        self.assertEqual(message["id"], call)

    def test_a_worker_that_is_killed_fails_its_calls_and_the_next_call_has_another(self) -> None:
        client = self.session()
        call = client.call("probe_image", url=f"{self.origin.url}/image/1.png?hold=gate")
        self.origin.command({"do": "await", "gate": "gate", "held": 1})
        (worker,) = children(client.process.pid)
        os.kill(worker, signal.SIGKILL)
        result = client.result(call)
        self.assertTrue(result["isError"])
        self.assertRegex(text_of(result), r"^workerExited: .* It may succeed later\.$")
        call = client.call("probe_image", url=f"{self.origin.url}/image/2.png")
        self.assertFalse(client.result(call)["isError"])


class Ends(InPublic):
    def test_calls_that_came_before_the_end_of_the_input_are_answered(self) -> None:
        client = self.session()
        calls = [client.call("fetch_image", url=f"{self.origin.url}/image/{n}.jpg") for n in range(20)]
        self.assertEqual(client.end(), 0)
        self.assertEqual(sorted(client.receive()["id"] for _ in calls), calls)
        self.assertIsNone(client.receive())

    def test_a_last_line_needs_no_line_feed(self) -> None:
        client = self.session()
        client.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        self.assertEqual(client.end(), 0)
        self.assertEqual(client.result(1), {})

    def test_a_signal_or_a_closed_output_ends_the_server_and_its_worker(self) -> None:
        for name, status in (("signal", 0), ("signal after the end of the input", 0), ("closed output", 74)):
            with self.subTest(name):
                client = self.session()
                client.call("probe_image", url=f"{self.origin.url}/image/1.png?hold={name[:3]}&_{len(name)}")
                self.origin.command({"do": "await", "gate": name[:3], "held": 1})
                (worker,) = children(client.process.pid)
                with Watched(worker) as watched:
                    if name == "closed output":
                        client.output.close()
                        client.request("ping", 1)
                    elif name == "signal":
                        client.process.send_signal(signal.SIGTERM)
                    else:
                        client.input.close()
                        client.process.send_signal(signal.SIGTERM)
                    self.assertEqual(client.process.wait(PATIENCE), status)
                    self.assertTrue(watched.ends())
                self.origin.command({"do": "reset"})

    def test_a_server_that_cannot_start_says_why_in_a_line(self) -> None:
        server = Path(self.command()[-3])
        for options, environment, status, words in (
            ((), {"IMAGEWORKER": "/nonexistent"}, 69, "server.py: .*'/nonexistent'"),
            (("--max-bytes", "1"), {}, 2, "--max-bytes must be from 2000 to 5000000 .given: 1."),
            (("--network", "any"), {}, 2, "unrecognized arguments: --network any"),
            (("--worker-option=--network=any",), {}, 2, "unrecognized arguments"),
        ):
            command = [sys.executable, str(server), *options]
            run = subprocess.run(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stdout), (status, ""), run.stderr)
            self.assertRegex(run.stderr.splitlines()[-1], words)


if __name__ == "__main__":
    unittest.main()
