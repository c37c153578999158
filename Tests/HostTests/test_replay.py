"""Records sessions, and replays them without their servers.

    IMAGEWORKER=PATH REPLAYS=10 REPLAY_REQUESTS=2000 REPLAY_SEED=7 python -m unittest test_replay

The seed is printed. It fixes what is sent and what the origins do; the order in which things happen is the machine's,
and a replay must repeat it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path
from random import SystemRandom
from typing import Any, Callable

from chaos_session import default_worker
from origin_process import Origin
from replay_session import record, replay
from test_cache_disk import Disk

SEED = int(os.environ.get("REPLAY_SEED") or SystemRandom().randrange(1 << 32))
REQUESTS = int(os.environ.get("REPLAY_REQUESTS", "2000"))
REPLAYS = int(os.environ.get("REPLAYS", "2"))

HAPPENINGS = ["cancelled", "retrying", "finalURL", "source", "revalidated", "memory", "disk", "pixels", "placeholder"]
HAPPENINGS += ["completed", "started", "progress", "timeout", "http", "truncated", "notAnImage", "connect"]


class WithFolder(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.recording = self.folder / "recording"
        self.journal = self.recording / "journal.jsonl"

    def run_worker(self, lines: list[Any], *options: str) -> subprocess.CompletedProcess[bytes]:
        """Records a session of requests, given as values or as bytes."""
        text = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
        command = [default_worker(), "--record", str(self.recording), *options]
        return subprocess.run(command, input=text, capture_output=True)

    def assert_replays(self) -> str:
        """Replays with --check, which must find no difference. Returns its report."""
        done = replay(self.recording, "--check")
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""))
        return done.stdout.decode()


class MixedSession(WithFolder):
    def test_two_thousand_mixed_requests_replay_identically(self) -> None:
        print(f"REPLAY_SEED={SEED} REPLAY_REQUESTS={REQUESTS} REPLAYS={REPLAYS}", flush=True)
        listener = record(self.folder, SEED, REQUESTS)
        print(", ".join(f"{name} {count}" for name, count in sorted(listener.tally.items())), flush=True)
        if REQUESTS >= 2000:
            self.assertEqual([name for name in HAPPENINGS if not listener.tally[name]], [])
        for name in ("saved", "recording.cache"):
            shutil.rmtree(self.folder / name)
        for _ in range(REPLAYS):
            self.assertNotIn("the recording ends", self.assert_replays())
        left = sorted(path.name for path in self.folder.iterdir())
        self.assertEqual(left, ["recording", "scratch"], "a replay writes nothing outside")


class Answers(WithFolder):
    """The answers of a replay are those of the session, byte for byte."""

    def test_lines(self) -> None:
        with Origin() as origin:
            urls = [f"{origin.url}/image/{number}.png?bytes=2000" for number in range(30)]
            lines = [{"id": number, "method": "load", "params": {"url": url}} for number, url in enumerate(urls)]
            lines += [{"id": "again", "method": "load", "params": {"url": urls[3], "deliver": "data"}}]
            lines += [{"id": "small", "method": "load", "params": {"url": urls[4], "transform": {"width": 8}}}]
            recorded = self.run_worker(lines)
        folder = self.folder / "files"
        replayed = replay(self.recording, "--files", str(folder))
        self.assertEqual((replayed.returncode, replayed.stderr), (0, b""))
        cache = str(folder / "cache").encode()
        self.assertEqual(
            replayed.stdout.replace(cache, f"{self.recording}.cache".encode()), recorded.stdout)
        for line in map(json.loads, replayed.stdout.splitlines()):
            if "path" in line["result"]:
                self.assertEqual(len(Path(line["result"]["path"]).read_bytes()), line["result"]["bytes"])

    def test_a_line_without_a_session_and_lines_that_are_none(self) -> None:
        too_long = b'{"id":1,"method":"' + b"x" * 300 + b'"}\n'
        recorded = self.run_worker([b"{]\n", too_long, b"[]\n", {"id": 1, "method": "stats"}], "--max-line", "200")
        replayed = replay(self.recording)
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        self.assertEqual(recorded.stdout.splitlines()[:3], replayed.stdout.splitlines()[:3])

    def test_files_of_the_host(self) -> None:
        """They are part of the recording; those that a session saves are saved elsewhere in the replay."""
        picture = self.folder / "picture.gif"
        picture.write_bytes(bytes.fromhex("47494638396101000100000000 2c000000000100010000 0202440 1003b".replace(" ", "")))
        (self.folder / "saved").mkdir()
        saved = self.folder / "saved" / "copy.gif"
        lines = [
            {"id": 1, "method": "store", "params": {"key": "a", "path": str(picture)}},
            {"id": 2, "method": "store", "params": {"key": "b", "path": str(self.folder / "missing")}},
            {"id": 3, "method": "load", "params": {"url": "data:,", "key": "a", "saveTo": str(saved)}},
            {"id": 4, "method": "load", "params": {"url": "data:,", "key": "a", "saveTo": str(self.folder / "no/a")}},
            {"id": 5, "method": "load", "params": {"url": "data:,", "key": "a", "saveTo": str(self.folder / "saved")}},
        ]
        recorded = self.run_worker(lines)
        self.assertTrue(saved.exists(), recorded.stdout)
        picture.unlink()
        shutil.rmtree(saved.parent)
        self.assert_replays()
        self.assertFalse(saved.parent.exists())

    def test_traces_and_metrics(self) -> None:
        """The replay has no metrics file, and its traces are elsewhere."""
        trace, metrics = self.folder / "trace.json", self.folder / "metrics.prom"
        # With `--trace`, another one is refused; without, it is not open yet when it is to stop.
        for options in ["--trace", str(trace)], ["--metrics-file", str(metrics)]:
            with self.subTest(options), Origin() as origin:
                lines = [
                    {"id": 1, "method": "trace", "params": {"action": "start", "path": str(self.folder / "other.json")}},
                    {"id": 2, "method": "load", "params": {"url": f"{origin.url}/image/1.png"}},
                    {"id": 3, "method": "metrics"},
                    {"id": 4, "method": "trace", "params": {"action": "stop"}},
                    {"id": 5, "method": "shutdown"},
                ]
                done = self.run_worker(lines, *options)
                self.assertEqual(done.stdout.count(b'"result"'), 4, done.stdout)
                for path in self.folder.glob("*.*"):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                self.assert_replays()
                self.assertEqual([path.name for path in self.folder.iterdir()], ["recording"])
                shutil.rmtree(self.recording)

    def test_a_session_that_is_terminated(self) -> None:
        with Origin() as origin, self.running() as worker:
            assert worker.stdin and worker.stdout
            load = {"id": 1, "method": "load", "params": {"url": f"{origin.url}/image/1.png?hold=never"}}
            worker.stdin.write(json.dumps(load).encode() + b"\n")
            worker.stdin.flush()
            origin.command({"do": "await", "gate": "never", "held": 1})
            worker.send_signal(signal.SIGTERM)
            self.assertIn(b'"cancelled"', worker.stdout.readline())
            self.assertEqual(worker.wait(), 0)
        self.assertNotIn("the recording ends", self.assert_replays())

    def test_a_session_that_is_killed(self) -> None:
        with Origin() as origin, self.running() as worker:
            assert worker.stdin and worker.stdout
            urls = [f"{origin.url}/image/1.png", f"{origin.url}/image/2.png?bytes=90000&hold=never@50000"]
            for number, url in enumerate(urls):
                load = {"id": number, "method": "load", "params": {"url": url}}
                worker.stdin.write(json.dumps(load).encode() + b"\n")
            worker.stdin.flush()
            self.assertIn(b'"result"', worker.stdout.readline())
            origin.command({"do": "await", "gate": "never", "held": 1})
            worker.kill()
            worker.wait()
        self.assertIn("the recording ends before the session", self.assert_replays())

    @contextlib.contextmanager
    def running(self) -> Any:
        pipe = subprocess.PIPE
        with subprocess.Popen([default_worker(), "--record", str(self.recording)], stdin=pipe, stdout=pipe) as worker:
            try:
                yield worker
            finally:
                worker.kill()


class Secrets(WithFolder):
    """None is anywhere in the recording, and the session can be replayed all the same."""

    SECRETS = [f"s3cret{name}" for name in "OptionHeader Cookies Proxy Load Key Cookie Item User Query Response".split()]
    SECRETS += [f"s3cret{name}" for name in "Redirect Configured Misspelled Malformed Long Fragment Relative".split()]

    def test_no_file_contains_one(self) -> None:
        cookies = self.folder / "cookies.txt"
        cookies.write_text("127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\ts3cretCookies\n")
        with Origin() as origin:
            host = origin.url.removeprefix("http://")
            target = f"{origin.url}/image/9.png?x-token=s3cretRedirect"
            lines: list[Any] = [
                self.load(1, f"{origin.url}/image/1.png?by=authorization,cookie", authorization="Bearer s3cretLoad"),
                self.load(2, f"{origin.url}/image/2.png", **{"x-api-key": "s3cretKey", "Cookie": "a=s3cretCookie"}),
                self.load(3, f"http://user:s3cretUser@{host}/image/3.png"),
                self.load(4, f"{origin.url}/image/4.png?x-signature=s3cretQuery#s3cretFragment"),
                self.load(5, f"{origin.url}/image/5.png?cookie=s%3Ds3cretResponse&header=x-auth-token%3A+s3cretResponse"),
                self.load(6, f"{origin.url}/image/6.png?redirect={target.replace('?', '%3F').replace('=', '%3D')}"),
                self.load(7, f"{origin.url}/image/7.png?header=content-location%3A+/a%3Fs3cretRelative"),
                {"id": 8, "method": "prefetch", "params": {"urls": [
                    {"url": f"{origin.url}/image/8.png", "headers": {"authorization": "s3cretItem"}}]}},
                {"id": 9, "method": "load", "params": {"url": origin.url, "header": {"authorization": "s3cretMisspelled"}}},
                b'{"id":10,"method":"load","params":{"headers":{"authorization":"s3cretMalformed"}\n',
                b'{"id":11,"method":"load","params":{"url":"' + b"s3cretLong" * 500 + b'"}}\n',
                {"id": 12, "method": "configure", "params": {
                    "header": ["x-token: s3cretConfigured"], "proxy": f"http://u:s3cretConfigured@{host}"}},
                {"id": 13, "method": "query", "params": {"url": f"{origin.url}/image/4.png?x-signature=s3cretQuery"}},
            ]
            done = self.run_worker(
                lines, "--record-redact-query", "--header", "Authorization: s3cretOptionHeader", "--cookies",
                str(cookies), "--proxy", f"http://proxy:s3cretProxy@{host}", "--max-line", "4K")
        answers = done.stdout.decode()
        self.assertEqual(answers.count('"result"'), 10, answers)
        for path in self.recording.rglob("*"):
            content = path.read_bytes() if path.is_file() else b""
            for secret in self.SECRETS:
                self.assertNotIn(secret.encode(), content, f"{path} contains {secret}")
                self.assertNotIn(secret, str(path))
        self.assertIn("x-signature=redacted-", self.journal.read_text())
        self.assert_replays()

    def load(self, number: int, url: str, **headers: str) -> dict[str, Any]:
        events = ["started", "progress", "retrying"]
        return {
            "id": number, "method": "load",
            "params": {"url": url, "headers": headers, "response": True, "events": events},
        }

    def test_query_strings_stay_unless_asked(self) -> None:
        with Origin() as origin:
            self.run_worker([self.load(1, f"{origin.url}/image/1.png?x-a=visible")])
        self.assertIn("x-a=visible", self.journal.read_text())
        self.assert_replays()


class Refusals(WithFolder):
    def refusal(self, *options: str) -> str:
        done = self.run_worker([], *options)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr.decode()

    def test_options(self) -> None:
        self.recording.touch()
        self.assertIn("cannot be used: Not a directory", self.refusal())
        self.recording.unlink()
        self.assertIn("must not be used with --read-only-cache", self.refusal("--read-only-cache", str(self.folder)))
        done = subprocess.run([default_worker(), "--record-redact-query"], input=b"", capture_output=True)
        self.assertEqual(done.returncode, 64)
        self.assertIn(b"must be used with --record", done.stderr)

    def test_a_worker_that_is_started_again_records_beside_the_first(self) -> None:
        for number in range(3):
            (self.folder / "recording-3.cache").mkdir(exist_ok=True)
            self.assertEqual(self.run_worker([{"id": number, "method": "stats"}]).returncode, 0)
        found = sorted(path.name for path in self.folder.iterdir() if (path / "journal.jsonl").exists())
        self.assertEqual(found, ["recording", "recording-2", "recording-3"])
        for name in found:
            self.assertEqual(replay(self.folder / name, "--check").returncode, 0)

    def test_arguments_of_replay(self) -> None:
        for arguments, message in [
            ([], "name the directory"), (["a", "b"], "only one recording"), (["a", "--chekc"], "did you mean --check?"),
            (["a", "--files"], "--files must have a value"),
        ]:
            done = subprocess.run([default_worker(), "replay", *arguments], capture_output=True)
            self.assertEqual((done.returncode, message in done.stderr.decode()), (64, True), done.stderr)


class DamagedRecordings(WithFolder):
    def setUp(self) -> None:
        super().setUp()
        self.original = self.recording
        with Origin() as origin:
            load = {"id": 1, "method": "load", "params": {"url": f"{origin.url}/image/1.png?bytes=3000"}}
            self.run_worker([load])
        [self.body] = [path.name for path in (self.recording / "bodies").iterdir()]

    def damaged(self, change: Callable[[Path], object]) -> tuple[int, str, str]:
        """The exit status, standard output and standard error of a replay of a changed copy."""
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.original, copy)
        change(copy)
        done = replay(copy, "--check")
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def edited(self, edit: Callable[[list[str]], object]) -> Callable[[Path], object]:
        """A change of the journal's lines."""

        def change(copy: Path) -> None:
            lines = (copy / "journal.jsonl").read_text().splitlines(keepends=True)
            edit(lines)
            (copy / "journal.jsonl").write_text("".join(lines))

        return change

    def replaced(self, old: str, new: str) -> Callable[[Path], object]:
        def edit(lines: list[str]) -> None:
            changed = [line.replace(old, new, 1) for line in lines]
            self.assertNotEqual(changed, lines)
            lines[:] = changed

        return self.edited(edit)

    def test_each_damage_has_its_error(self) -> None:
        body = self.body
        for change, message in [
            (lambda copy: shutil.rmtree(copy), "journal.jsonl cannot be opened: No such file"),
            (lambda copy: (copy / "journal.jsonl").write_text(""), "has no complete line"),
            (self.edited(lambda lines: lines.__setitem__(0, "{}\n")), "line 1: must begin with the member recording"),
            (self.edited(lambda lines: lines.__delitem__(slice(1, None))), "has no session"),
            (self.edited(lambda lines: lines.__setitem__(3, "{\n")), "line 4: is not JSON"),
            (self.replaced('"recording":1', '"recording":2'), "the format 2 is not supported; this worker reads format 1"),
            (self.replaced('"seed":"', '"seed":"x'), "seed must be a hexadecimal number"),
            (self.replaced('"cause":"start"', '"cause":"begin"'), "unknown cause begin"),
            (self.replaced('"cause":"start"', '"cause":"advance"'), "the first cause must be start"),
            (self.edited(lambda lines: lines.insert(1, '{"sent":{}}\n')), "line 2: an effect must follow its cause"),
            (self.replaced('"at":', '"at":-'), "at must not be before"),
            (self.replaced('"transfer":1,"url"', '"transfer":7,"url"'), "transfer 1 has not started"),
            (self.replaced('"memoryLimit":', '"memorySize":'), "has no option memorySize"),
            (self.replaced('"order":"fifo"', '"order":"filo"'), "the recorded option order must be one of fifo, lifo"),
            (lambda copy: (copy / "bodies" / body).unlink(), f"{body} cannot be opened"),
            (lambda copy: (copy / "bodies" / body).write_bytes(b"x"), "has 1 bytes instead of 3000"),
            (lambda copy: (copy / "bodies" / body).write_bytes(b"x" * 3000), "is damaged"),
        ]:
            with self.subTest(message):
                status, _, errors = self.damaged(change)
                self.assertEqual((status, message in errors), (65, True), errors)

    def test_a_cut_journal_replays_as_far_as_it_goes(self) -> None:
        size = (self.original / "journal.jsonl").stat().st_size
        for cut in range(1, 12):

            def truncate(copy: Path, size: int = size - 30 * cut) -> None:
                os.truncate(copy / "journal.jsonl", size)

            status, output, errors = self.damaged(truncate)
            self.assertEqual((status, errors), (0, ""), f"cut by {30 * cut} bytes")
            self.assertIn("the recording ends before the session", output)

    def test_a_difference_is_shown(self) -> None:
        for change, message in [
            (self.replaced('"bytes":3000,"mediaType"', '"bytes":3001,"mediaType"'), "sent.result.bytes differs"),
            (self.replaced('"exit":0', '"exit":3'), "exit differs"),
            (self.edited(lambda lines: lines.append('{"sent":{}}\n')), "the replay does nothing more for this cause"),
            (self.edited(lambda lines: lines.__delitem__(-1)), "the recording ends"),
        ]:
            with self.subTest(message):
                status, output, errors = self.damaged(change)
                self.assertIn(message, output + errors)
                self.assertEqual(status, 0 if "the recording ends" in output else 1)

    def test_bodies_are_named_by_their_digest(self) -> None:
        content = (self.original / "bodies" / self.body).read_bytes()
        self.assertEqual(self.body, hashlib.sha256(content).hexdigest())


class FullDisk(WithFolder):
    def test_the_recording_ends_and_the_session_does_not(self) -> None:
        with Disk(self.folder / "disk", "1m"), Origin() as origin:
            self.recording = self.folder / "disk" / "recording"
            urls = [f"{origin.url}/image/{number}.png?bytes=50000" for number in range(60)]
            lines = [{"id": number, "method": "load", "params": {"url": url}} for number, url in enumerate(urls)]
            done = self.run_worker(lines, "--disk-limit", "0")
            self.assertEqual(done.stdout.count(b'"result"'), 60)
            self.assertEqual(done.returncode, 0)
            self.assertIn(b"the recording has ended before the session", done.stderr)
            self.assertIn(b"No space left on device", done.stderr)
            self.assertIn("the recording ends before the session", self.assert_replays())


if __name__ == "__main__":
    unittest.main()
