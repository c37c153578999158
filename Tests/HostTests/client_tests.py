"""What each client in one file must do: the tests of the clients for Ruby, PHP and Go.

For each language, Tests/HostTests/clients has a program that speaks the protocol on its standard input and output, with the
client and a worker behind it. Its arguments are options of the worker. It takes these requests, too:

- `{"id": 1, "giveUpAfter": 0.5, ...}`: a call that waits so many seconds at most
- `{"id": 1, "program": "pid"}`: the process id of the worker; `ready`, `close`: as of the client; `queryBinary` queries
  the `key` in hexadecimal; `open` opens the file
  `path` and returns its descriptor; `loadAll` loads `urls`, three at once, and returns for each its index and its width or
  the kind of its error; `takePixels` returns the number of bytes

With `--names`, it prints the names that the client has: `params` of each method; members of the `results`; for each kind of
error the names of its `classes`, the innermost first; and, if it has types for objects in parameters, their members as
`structs`. WORKER_OF_CLIENT is the worker that it starts.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import queue
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, Optional

from document import SCHEMAS
from origin_process import PATIENCE, Origin
from package import ROOT
from processes import Watched

try:
    from play_transcripts import Mismatch, Player
    from wire import Wire
except ModuleNotFoundError as missing:
    raise unittest.SkipTest(f"there is no {missing.name} here") from None

CLIENTS = Path(__file__).parent / "clients"
WORKER = os.environ.get("IMAGEWORKER", str(ROOT / ".build" / "release" / "imageworker"))
TRANSCRIPTS = ROOT / "protocol" / "transcripts"

WITHOUT_CLIENT = {
    "bad-lines": "lines that no client sends",
    "bad-params": "parameters that a client cannot send",
    "batch": "no client sends batches",
    "notification": "no client sends notifications",
    "shutdown": "a client sends nothing after shutdown",
    "shutdown-cancel": "a client sends nothing after shutdown",
    "end-of-input": "no client sends notifications",
    "end-of-input-cancel": "a client ends the worker by shutdown",
    "failures": "the exit status of the worker",
}
"""Transcripts that cannot be played through a client, with the reason."""


class AnyOrderPlayer(Player):
    """Lines of different requests may come in any order: a client has a thread for each. Those of one request may not."""

    def play(self) -> None:
        self._early: list[Any] = []
        super().play()

    def _expect(self, expected: list[Any]) -> None:
        for each in expected:
            found = next((line for line in self._early if self._matches(each, line)), None)
            while found is None:
                line = self._conversation.next()
                if line is None:
                    raise Mismatch(f"\nexpected {json.dumps(each)}\n     got {json.dumps(self._early)}")
                self._early.append(line)
                found = line if self._matches(each, line) else None
            self._early.remove(found)

    def _take(self, step: dict[str, Any]) -> None:
        super()._take(step)
        if "exit" in step and self._early:
            raise Mismatch(f"more lines than expected: {json.dumps(self._early)}")


class Program:
    """A program with a client, and what it wrote."""

    def __init__(self, command: list[str], *options: str, worker: str = WORKER) -> None:
        pipe = subprocess.PIPE
        environment = {**os.environ, "WORKER_OF_CLIENT": worker, "LC_ALL": "C"}
        self.process = subprocess.Popen([*command, *options], stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
        self._lines: queue.Queue[Optional[dict[str, Any]]] = queue.Queue()
        self.log: list[str] = []
        self._last = 0
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read, self._read_log)]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line.decode(errors="replace"))

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            for reader, pipe in zip(self._readers, (self.process.stdout, self.process.stderr)):
                reader.join(PATIENCE)
                assert pipe is not None
                pipe.close()

    def send(self, **request: Any) -> int:
        assert self.process.stdin is not None
        self._last += 1
        self.process.stdin.write(json.dumps({"id": self._last, **request}).encode() + b"\n")
        self.process.stdin.flush()
        return self._last

    def start(self, method: str, **params: Any) -> int:
        return self.send(method=method, params=params)

    def next(self) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise AssertionError(f"no line came; the log: {self.log[-5:]}") from None
        assert line is not None, f"the program ended: {''.join(self.log)[-2000:]}"
        return line

    def answers(self, count: int) -> dict[int, dict[str, Any]]:
        lines = [self.next() for _ in range(count)]
        return {line["id"]: line for line in lines}

    def answer(self) -> Any:
        """The next line's result, or its error."""
        line = self.next()
        return line["result"] if "result" in line else line["error"]

    def call(self, method: str, **params: Any) -> Any:
        self.start(method, **params)
        return self.answer()

    def do(self, what: str, **params: Any) -> Any:
        self.send(program=what, params=params)
        return self.answer()


def kind(line: dict[str, Any]) -> str:
    """`result`, or the kind of the error."""
    return str(line["error"]["data"]["kind"]) if "error" in line else "result"


def stop(pid: int) -> None:
    """Stops a process, and waits until none of its threads runs."""
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + PATIENCE
    while any(path.read_text().rpartition(")")[2].split()[0] != "T" for path in Path(f"/proc/{pid}/task").glob("*/stat")):
        assert time.monotonic() < deadline, "the process does not stop"
        time.sleep(0.01)


def resume(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def members(schema: Any) -> dict[str, Any]:
    """The members of a schema, with those of its members."""
    for part in schema.get("allOf", ()):
        if "properties" in part:
            schema = part
    found = {}
    for name, value in schema.get("properties", {}).items():
        values = value.get("additionalProperties")
        inner = value if "properties" in value else value.get("items", values if isinstance(values, dict) else {})
        found[name] = members(inner)
    return found


def result_schema(method: dict[str, Any]) -> Any:
    name = method["result"]["schema"]["$ref"].rpartition("/")[2]
    return SCHEMAS["Image"] if name == "LoadResult" else SCHEMAS[name]


FREE = ("limits", "libraries", "headers")
"""Members that a client hands out as they are."""


def without_free(value: Any) -> Any:
    return {name: {} if name in FREE else without_free(each) for name, each in value.items()}


class ClientTests:
    """The tests of one client. A subclass has `command`, which starts its program, and is a TestCase."""

    command: ClassVar[list[str]]
    demo: ClassVar[list[str]]
    source: ClassVar[Path]
    without: ClassVar[dict[str, str]] = {}
    """Further transcripts that cannot be played through this client, with the reason."""
    origin: ClassVar[Origin]
    _names: ClassVar[Any]

    @classmethod
    def setUpClass(cls) -> None:
        assert issubclass(cls, unittest.TestCase)
        cls.origin = Origin().__enter__()
        cls.addClassCleanup(cls.origin.__exit__)
        cls._names = None

    def setUp(self) -> None:
        assert isinstance(self, unittest.TestCase)
        self.test: unittest.TestCase = self
        self.exits = contextlib.ExitStack()
        self.addCleanup(self.exits.close)
        self.folder = Path(self.exits.enter_context(tempfile.TemporaryDirectory()))
        self.origin.command({"do": "reset"})

    @classmethod
    def names(cls) -> Any:
        cls._names = cls._names or json.loads(subprocess.run([*cls.command, "--names"], stdout=subprocess.PIPE, check=True).stdout)
        return cls._names

    def program(self, *options: str, worker: str = WORKER) -> Program:
        # With a cache of its own: another worker may still be ending.
        cache = tempfile.mkdtemp(dir=self.folder)
        return self.exits.enter_context(Program(self.command, "--cache-dir", cache, *options, worker=worker))

    def fake_worker(self, text: str) -> str:
        path = self.folder / f"worker-{len(list(self.folder.iterdir()))}"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    def image(self, name: str, query: str = "") -> Path:
        path = self.folder / name
        subprocess.run(["curl", "-s", "-o", str(path), f"{self.origin.url}/image/1.png{query}"], check=True)
        return path

    def check(self, *command: str, cwd: Optional[Path] = None) -> None:
        """Runs a program that prints a line for each check; one that begins with `not ok` has failed."""
        urls = {"ORIGIN": self.origin.url, "ORIGIN_CONTROL": self.origin.control}
        environment = {**os.environ, **urls, "IMAGEWORKER": WORKER}
        run = subprocess.run(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=10 * PATIENCE)
        output = run.stdout.decode(errors="replace")
        self.test.assertEqual(run.returncode, 0, output)
        self.test.assertNotRegex(output, "(?m)^not ok")
        self.test.assertRegex(output, "(?m)^ok")

    # Names and transcripts

    def test_the_names_are_those_of_openrpc_json(self) -> None:
        document = Wire().document
        names = self.names()
        methods = {method["name"]: method for method in document["methods"]}
        self.test.assertEqual(set(names["params"]), set(methods))
        self.test.assertEqual(set(names["results"]), set(methods))
        for name, method in methods.items():
            params = SCHEMAS[method["x-params"]["$ref"].rpartition("/")[2]].get("properties", {})
            self.test.assertEqual(set(names["params"][name]), set(params), f"params of {name}")
            expected = without_free(members(result_schema(method)))
            self.test.assertEqual(without_free(names["results"][name]), expected, f"result of {name}")
        for name, found in names.get("structs", {}).items():
            self.test.assertEqual(set(found), set(SCHEMAS[name]["properties"]), name)
        self.test.assertEqual(set(names["classes"]), {error["kind"] for error in document["x-errors"]})

    def test_the_classes_of_errors_are_those_of_the_node_client(self) -> None:
        node = (ROOT / "examples" / "node" / "imageworker.mjs").read_text()
        table = re.findall(r"\[\s*(\w+),\s*\[([^\]]*)\],?\s*\]", node.partition("const kindsOf")[2].partition("]);")[0])
        expected = {each: family for family, kinds in table for each in re.findall(r"\w+", kinds)}
        names = self.names()
        self.test.assertGreater(len(expected), 25)
        self.test.assertEqual({each: re.split(r"\W+", names["classes"][each][0])[-1] for each in expected}, expected)

    def test_transcripts(self) -> None:
        wire = Wire()
        wrapper = self.folder / "program"
        wrapper.write_text(f'#!/bin/sh\nexport WORKER_OF_CLIENT="{WORKER}"\nexec {" ".join(self.command)} "$@"\n')
        wrapper.chmod(0o755)
        transcripts = [each for each in sorted(TRANSCRIPTS.glob("*.jsonl")) if each.stem not in {**WITHOUT_CLIENT, **self.without}]
        with ThreadPoolExecutor(3) as several:  # They wait more than they compute.
            plays = [several.submit(AnyOrderPlayer(str(wrapper), each, wire).play) for each in transcripts]
        for transcript, play in zip(transcripts, plays):
            with self.test.subTest(transcript=transcript.stem):
                play.result()
        self.test.assertGreater(len(plays), 15)

    # Requests

    def test_a_load_a_probe_and_the_cache(self) -> None:
        url = f"{self.origin.url}/image/1.png?bytes=4000&cache-control=max-age%3D60"
        program = self.program()
        probe = program.call("probe", url=f"{self.origin.url}/image/2.jpg?bytes=90000&etag=a")
        self.test.assertEqual((probe["width"], probe["height"], probe["format"]), (32, 24, "jpeg"))
        image = program.call("load", url=url)
        self.test.assertEqual((image["cache"], image["width"], image["height"], image["bytes"]), ("miss", 32, 24, 4000))
        self.test.assertEqual(Path(image["path"]).stat().st_size, 4000)
        self.test.assertEqual(program.call("load", url=url)["cache"], "memory")
        inline = program.call("load", url=url, deliver="data")
        self.test.assertEqual(base64.b64decode(inline["data"]), Path(image["path"]).read_bytes())
        self.test.assertEqual(program.do("takePixels", url=url), 32 * 24 * 3)
        self.test.assertEqual(program.call("release", all=True), {"released": 0})
        self.test.assertEqual(program.do("ready")["server"]["name"], "imageworker")

    def test_process_makes_outputs_from_a_path_a_descriptor_and_data(self) -> None:
        file = self.image("upload ü 画像.png", "?width=400&height=300")
        content = file.read_bytes()
        program = self.program()
        descriptor = program.do("open", path=str(file))
        binary = os.fsencode(self.folder) + b"/binary-\xff\xfe.png"
        os.link(file, binary)
        unnamed = program.do("open", path=str(file))
        for source in (
            {"file": {"path": str(file)}},
            {"file": {"root": str(self.folder), "path": file.name}},
            {"file": {"fd": descriptor}},
            {"file": {"path": f"/proc/{program.process.pid}/fd/{unnamed}"}},
            {"data": base64.b64encode(content).decode()},
        ):
            saved = self.folder / "large ü.webp"
            outputs = {
                "large_one": {"transform": {"width": 200, "format": "webp"}, "saveTo": str(saved), "mode": "640"},
                "Thumb-ü": {"transform": {"width": 40, "height": 40, "fit": "cover", "cornerRadius": 3, "metadata": ["iso", "gps"]}, "deliver": "data"},
            }
            answer = program.call("process", **source, outputs=outputs, facts=["digest"], placeholder=True)
            self.test.assertEqual((answer["width"], answer["format"]), (400, "png"), source)
            self.test.assertEqual(answer["digest"], f"sha256-{hashlib.sha256(content).hexdigest()}")
            self.test.assertEqual(set(answer["outputs"]), set(outputs))
            thumb = answer["outputs"]["Thumb-ü"]
            self.test.assertEqual((thumb["width"], thumb["height"]), (40, 40))
            self.test.assertEqual(len(base64.b64decode(thumb["data"])), thumb["bytes"])
            self.test.assertEqual(saved.stat().st_mode & 0o777, 0o640)
            saved.unlink()
            if source == {"file": {"fd": descriptor}}:
                file.unlink()  # The open files remain.
        missing = program.call("process", file={"path": str(file)})
        self.test.assertEqual(missing["data"]["kind"], "io")

    def test_texts_that_are_not_unicode_are_refused_by_the_client(self) -> None:
        program = self.program()
        for text in ("ü 画像 🎨", "a\\ufffd\ufffd", '"\\'):
            self.test.assertEqual(program.call("query", key=text)["disk"], False)
        for hexadecimal in ("ff", "c3", "eda080"):
            error = program.do("queryBinary", key=hexadecimal)
            self.test.assertEqual((error["data"]["kind"], error["code"]), ("invalidParams", -32602), hexadecimal)
        self.test.assertIn("uptimeMs", program.call("stats"))

    def test_errors_have_kinds_and_figures(self) -> None:
        program = self.program("--retries", "0")
        url = self.origin.url

        def figures(method: str, *names: str, **params: Any) -> list[Any]:
            error = program.call(method, **params)
            return [error["code"], error["data"]["kind"], error["data"]["retryable"], *(error["data"].get(name) for name in names)]

        missing = f"{url}/image/1.png?status=404"
        self.test.assertEqual(figures("load", "status", "url", url=missing), [2005, "http", False, 404, missing])
        self.test.assertEqual(figures("load", "status", url=missing), [2010, "recentlyFailed", False, 404])
        self.test.assertEqual(figures("load", url=f"{url}/image/3.png?bytes=5000&truncate=1000"), [2007, "truncated", True])
        slow = f"{url}/image/4.png?hold=never"
        self.test.assertEqual(figures("load", "phase", url=slow, deadlineMs=200), [2004, "timeout", False, "deadline"])
        self.test.assertEqual(figures("load", url=f"{url}/html"), [4001, "notAnImage", False])
        self.test.assertEqual(figures("load", "member", url="ftp://a/b"), [-32602, "invalidParams", False, "url"])
        wrong = {"width": 70_000}
        self.test.assertEqual(
            figures("load", "member", url=f"{url}/image/1.png", transform=wrong), [-32602, "invalidParams", False, "transform.width"]
        )
        self.test.assertEqual(figures("load", url=f"{url}/image/5.png", cache="only-if-cached"), [3001, "notCached", False])
        file = self.image("image.png")
        content = {"data": base64.b64encode(file.read_bytes()).decode()}
        self.test.assertEqual(
            figures("process", "wanted", "width", "height", "limit", **content, want={"maxWidth": 20}),
            [4008, "unwanted", False, "maxWidth", 32, 24, 20],
        )
        self.test.assertEqual(
            figures("process", "output", "limit", **content, outputs={"a": {"maxBytes": 10}}), [2008, "tooLarge", False, "a", 10]
        )
        text = base64.b64encode(b"<html>").decode()
        self.test.assertEqual(figures("process", "detected", data=text), [4001, "notAnImage", False, "text/html"])
        busy = f"{url}/image/2.png?status=503&retry-after=7"  # The last: afterwards, the origin is not asked for so long.
        self.test.assertEqual(figures("load", "status", "retryAfterMs", url=busy), [2005, "http", True, 503, 7000])

    def test_cancel_by_id_and_by_group(self) -> None:
        program = self.program()
        held = f"{self.origin.url}/image/1.png?hold=never"
        one = program.start("load", url=held)
        two = program.start("load", url=f"{held}&x-2", group="page")
        self.origin.command({"do": "await", "gate": "never", "held": 2})
        program.start("cancel", id=one)
        program.start("cancel", group="page")
        answers = program.answers(4)
        self.test.assertEqual([kind(answers[each]) for each in (one, two)], ["cancelled", "cancelled"])
        self.test.assertEqual([answers[each]["result"] for each in (two + 1, two + 2)], [{"cancelled": 1}] * 2)

    def test_a_call_that_is_given_up_is_cancelled(self) -> None:
        program = self.program()
        program.do("ready")
        url = f"{self.origin.url}/image/1.png?hold=never"
        program.send(method="load", params={"url": url}, giveUpAfter=2)
        error = program.answer()
        self.test.assertEqual((error["data"]["kind"], error["data"]["phase"]), ("timeout", "client"))
        self.origin.command({"do": "await", "left": 1})
        self.test.assertEqual(program.call("stats")["requests"]["cancelled"], 1)

    def test_events_come_before_the_result(self) -> None:
        program = self.program()
        url = f"{self.origin.url}/image/1.png?bytes=100000&hold=gate@50000"
        number = program.start("load", url=url, events=["started", "progress"])
        first = program.next()
        self.test.assertEqual((first["method"], first["params"]["id"], first["params"]["attempt"]), ("started", number, 1))
        self.origin.command({"do": "release", "gate": "gate"})
        names = []
        while "method" in (line := program.next()):
            names.append(line["method"])
            self.test.assertLessEqual(line["params"]["received"], 100_000)
        self.test.assertEqual((set(names), kind(line)), ({"progress"}, "result"))

    def test_prefetch_counts_items(self) -> None:
        program = self.program("--retries", "0")
        urls: list[Any] = [f"{self.origin.url}/image/{number}.png" for number in range(20)]
        urls += [{"url": f"{self.origin.url}/image/99.png", "key": "k"}, f"{self.origin.url}/image/1.png?status=404"]
        program.start("prefetch", urls=urls, events=["progress", "failed"])
        while "method" in (line := program.next()):
            self.test.assertIn(line["method"], ("progress", "failed"))
        result = line["result"]
        self.test.assertEqual((result["total"], result["downloaded"], result["failed"]), (22, 21, 1))
        self.test.assertEqual(result["errors"][0]["kind"], "http")

    def test_hundreds_of_loads_at_once(self) -> None:
        program = self.program()
        numbers = {program.start("load", url=f"{self.origin.url}/image/{number}.png"): number for number in range(300)}
        answers = program.answers(300)
        self.test.assertEqual({kind(line) for line in answers.values()}, {"result"})
        for number, line in answers.items():
            self.test.assertTrue(line["result"]["url"].endswith(f"/{numbers[number]}.png"))

    def test_load_all_has_an_outcome_for_each_url(self) -> None:
        program = self.program("--retries", "0")
        urls = [f"{self.origin.url}/image/{number}.png" for number in range(30)] + [f"{self.origin.url}/html", "ftp://a/b"]
        outcomes = program.do("loadAll", urls=urls)
        self.test.assertEqual(dict(map(tuple, outcomes)), {**dict.fromkeys(range(30), 32), 30: "notAnImage", 31: "invalidParams"})
        self.test.assertLessEqual(self.origin.command({"do": "counts"})["mostActive"], 3)

    def test_long_lines(self) -> None:
        program = self.program("--max-line", "100000")
        self.test.assertEqual(kind({"error": program.call("query", key="k" * 100_000)}), "invalidRequest")
        content = base64.b64encode(bytes(80_000)).decode()
        self.test.assertEqual(kind({"error": program.call("process", data=content)}), "invalidRequest")
        self.test.assertEqual(program.call("query", key="k" * 7_000)["disk"], False)
        self.test.assertEqual(program.call("stats")["requests"]["received"], 0)
        self.test.assertFalse([line for line in program.log if "refused a line" in line])

    def test_requests_and_answers_longer_than_pipes(self) -> None:
        file = self.image("large.png", "?bytes=2000000")
        program = self.program()
        content = base64.b64encode(file.read_bytes()).decode()
        numbers = [program.start("store", key=f"k{number}", data=content) for number in range(3)]
        self.test.assertEqual({kind(line) for line in program.answers(len(numbers)).values()}, {"result"})
        answer = program.call("load", url=f"{self.origin.url}/image/1.png?bytes=2000000", deliver="data")
        self.test.assertEqual(answer["data"], content)

    # Faults

    def test_a_killed_worker_fails_its_calls_and_another_one_starts(self) -> None:
        program = self.program()
        held = f"{self.origin.url}/image/1.png?hold=never"
        numbers = [program.start("load", url=f"{held}&x-{number}") for number in range(20)]
        self.origin.command({"do": "await", "gate": "never", "held": 1})
        before = program.do("pid")
        os.kill(before, signal.SIGKILL)
        answers = program.answers(len(numbers))
        for number in numbers:
            error = answers[number]["error"]
            self.test.assertEqual((kind(answers[number]), error["data"]["retryable"]), ("workerExited", True))
            self.test.assertEqual(len(error["data"]["lost"]), 20)
        self.test.assertRegex(error["message"], "SIGKILL|signal 9|killed")
        self.test.assertEqual(program.call("load", url=f"{self.origin.url}/image/2.png")["width"], 32)
        self.test.assertNotEqual(program.do("pid"), before)

    def test_options_of_configure_survive_the_worker(self) -> None:
        program = self.program()
        self.test.assertEqual(program.call("configure", maxPerHost=3, retries=0)["maxPerHost"], 3)
        os.kill(program.do("pid"), signal.SIGKILL)
        answer = program.call("configure")
        if "code" in answer:  # The client had not noticed the end.
            answer = program.call("configure")
        self.test.assertEqual((answer["maxPerHost"], answer["retries"]), (3, 0))

    def test_a_worker_that_dies_again_and_again_is_not_restarted_at_once(self) -> None:
        starts = self.folder / "starts"
        program = self.program(worker=self.fake_worker(f'echo start >>"{starts}"; echo "no luck" >&2; exit 1'))
        for _ in range(12):
            error = program.call("stats")
            self.test.assertEqual((error["data"]["kind"], error["data"]["retryable"]), ("workerExited", True))
            self.test.assertIn("no luck", error["message"])
        self.test.assertLessEqual(starts.read_text().count("start"), 6)
        deadline = time.monotonic() + PATIENCE
        before = starts.read_text().count("start")
        while starts.read_text().count("start") == before and time.monotonic() < deadline:
            program.call("stats")
            time.sleep(0.1)
        self.test.assertEqual(starts.read_text().count("start"), before + 1, "one call tries again after the longest pause")

    def test_a_worker_that_cannot_start_is_not_retryable(self) -> None:
        for program, word in (
            (self.program(worker="/missing/imageworker"), "missing"),
            (self.program("--colour", "red"), "--colour"),
            (self.program(worker=self.fake_worker('echo "cannot use the cache" >&2; exit 73')), "cache"),
        ):
            for _ in range(2):
                error = program.call("stats")
                self.test.assertEqual((error["data"]["kind"], error["data"]["retryable"]), ("workerExited", False))
                self.test.assertIn(word, error["message"])

    def test_lines_that_are_no_messages_are_logged(self) -> None:
        lines = ["[1,2]", "", "{", '"text"', "null", "7", '{"id":7}', '{"id":99,"result":{}}', '{"id":98,"result":5}']
        lines += ['{"id":97,"error":7}', '{"id":{},"result":1}', '{"id":"a","result":1}', '{"method":"started"}', '{"method":"started","params":[]}']
        quoted = " ".join(f"'{line}'" for line in lines)
        garbage = f"printf '\\377\\376garbage\\n'; printf '%s\\n' {quoted}"
        program = self.program(worker=self.fake_worker(f'{garbage}; exec "{WORKER}" "$@"'))
        self.test.assertEqual(program.call("load", url=f"{self.origin.url}/image/1.png")["width"], 32)
        self.test.assertTrue([line for line in program.log if "garbage" in line], program.log)

    def test_a_worker_that_has_closed_a_pipe_is_killed(self) -> None:
        answer = '{"id":1,"result":{"protocolVersion":1,"limits":{"maxLine":9999}}}'
        for steps in (f"exec 0<&-; echo '{answer}'", f"echo '{answer}'; exec 1>&-"):
            program = self.program(worker=self.fake_worker(f"read line; {steps}; sleep 100 & wait"))
            self.test.assertEqual(kind({"error": program.call("query", key="k" * 5000)}), "workerExited", steps)

    def test_a_worker_of_another_protocol_is_not_used(self) -> None:
        for answer in ('{"id":1,"result":{"protocolVersion":2,"limits":{"maxLine":1}}}', '{"id":1,"error":{"message":"no","code":1}}'):
            program = self.program(worker=self.fake_worker(f"read line; printf '%s\\n' '{answer}'; sleep 100 & wait"))
            for _ in range(2):
                error = program.call("stats")
                self.test.assertEqual((error["data"]["kind"], error["data"]["retryable"]), ("incompatible", False))

    def test_a_worker_that_does_not_answer_can_be_given_up_and_closed(self) -> None:
        program = self.program()
        pid = program.do("pid") or (program.call("stats") and program.do("pid"))
        stop(pid)
        self.exits.callback(resume, pid)  # Otherwise the program would wait for it.
        program.send(method="stats", giveUpAfter=0.3)
        self.test.assertEqual(program.answer()["data"]["kind"], "timeout")
        resume(pid)
        self.test.assertIn("uptimeMs", program.call("stats"))

    def test_no_worker_is_left_when_the_program_is_killed(self) -> None:
        program = self.program()
        program.call("load", url=f"{self.origin.url}/image/1.png", transform={"width": 8})
        program.start("load", url=f"{self.origin.url}/image/1.png?hold=never")
        self.origin.command({"do": "await", "gate": "never", "held": 1})
        with Watched(program.do("pid")) as worker:
            program.process.kill()
            self.test.assertTrue(worker.ends())

    def test_close_cancels_pending_calls(self) -> None:
        program = self.program()
        number = program.start("load", url=f"{self.origin.url}/image/1.png?hold=never")
        self.origin.command({"do": "await", "gate": "never", "held": 1})
        closing = program.send(program="close")
        answers = program.answers(2)
        self.test.assertEqual((kind(answers[number]), kind(answers[closing])), ("cancelled", "result"))
        self.test.assertEqual(kind({"error": program.call("stats")}), "closed")

    def test_the_demo(self) -> None:
        urls = [f"{self.origin.url}/image/1.png", f"{self.origin.url}/html"]
        environment = {**os.environ, "IMAGEWORKER": WORKER, "XDG_CACHE_HOME": str(self.folder)}
        run = subprocess.run([*self.demo, *urls], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.test.assertEqual(run.returncode, 1, run.stderr)
        self.test.assertRegex(run.stdout, r"^miss  png 32 x 24  /\S+\n$")
        self.test.assertIn("not an image", run.stderr)

    def test_the_lines_of_the_client_are_short(self) -> None:
        self.test.assertLessEqual(max(map(len, self.source.read_text().splitlines())), 130)
