"""The decoders of the built worker: hostile images by the thousand, bombs, and processes that are killed.

    IMAGEWORKER=PATH DECODER_SEED=17 DECODER_IMAGES=20000 python -m unittest test_decoders

The seed is printed, and plays the same images again.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest
import unittest.mock
import zlib
from collections import Counter
from pathlib import Path
from random import Random, SystemRandom
from typing import Any, Optional

from bomb_files import SMALL, bombs, giants, harmless, png
from chaos_session import default_worker
from origin_process import PATIENCE, Origin
from processes import Watched, children, descendants
from wire import Wire

SEED = int(os.environ.get("DECODER_SEED") or SystemRandom().randrange(1 << 32))
IMAGES = int(os.environ.get("DECODER_IMAGES", "4000"))
AT_ONCE = 50
NOWHERE = "http://127.0.0.1:1/"
MEGABYTE = 1 << 20


class Worker(contextlib.AbstractContextManager["Worker"]):
    """A worker and what /proc tells of it. `descriptors` is its RLIMIT_NOFILE."""

    def __init__(self, folder: Path, *options: str, descriptors: Optional[int] = None) -> None:
        command = [default_worker(), "--cache-dir", str(folder), "--min-free", "0%", *options]
        if descriptors is not None:
            command = ["sh", "-c", f'ulimit -n {descriptors} && exec "$@"', "sh", *command]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe)
        self._numbers = itertools.count()

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin and self.process.stdout
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def send(self, method: str, **params: Any) -> int:
        assert self.process.stdin
        number = next(self._numbers)
        self.process.stdin.write(json.dumps({"id": number, "method": method, "params": params}).encode() + b"\n")
        self.process.stdin.flush()
        return number

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, "the worker has ended"
        response: dict[str, Any] = json.loads(line)
        return response

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = self.send(method, **params)
        response = self.receive()
        assert response["id"] == number, response
        return response

    def load(self, key: str, **params: Any) -> str:
        """`result`, or the kind of the error."""
        return outcome(self.call("load", url=NOWHERE, key=key, **params))

    def parents(self) -> list[int]:
        return children(self.process.pid)

    def decoders(self) -> list[int]:
        """The parents, and the processes that decode."""
        return descendants(self.process.pid)

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def memory(self, which: str = "VmRSS") -> int:
        """Bytes of it and its decoders."""
        return sum(memory(process, which) for process in [self.process.pid, *self.decoders()])


def memory(process: int, which: str) -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(which):
            return int(line.split()[1]) << 10
    return 0


def processor_ticks(process: int) -> int:
    # After the name, which stands in brackets and may have any character.
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11])


def outcome(response: dict[str, Any]) -> str:
    return "result" if "result" in response else str(response["error"]["data"]["kind"])


# Text of a size that FreeType refuses when the image is enlarged. librsvg then refuses other text as well.
POISON = "<svg xmlns='http://www.w3.org/2000/svg' width='24' height='24'><text y='20' font-size='12'>Ag</text></svg>"


def file_of(response: dict[str, Any]) -> Optional[str]:
    return response["result"]["data"] if "result" in response else None


def broken(random: Random, image: bytes) -> bytes:
    content = bytearray(image)
    for _ in range(random.randint(1, 6)):
        place = random.randrange(min(len(content), random.choice([64, 1 << 30])))
        how = random.randrange(5)
        if how == 0:
            content[place] ^= 1 << random.randrange(8)
        elif how == 1:
            content[place] = random.choice([0, 127, 128, 255])
        elif how == 2:
            content[place : place + random.randint(1, 4)] = random.randbytes(random.randint(1, 8))
        elif how == 3 and len(content) > 64:
            del content[place : place + random.randint(1, 16)]
        elif len(content) > 64 and random.random() < 0.2:
            del content[random.randrange(32, len(content)) :]
    return bytes(content)


@unittest.skipUnless(os.path.isdir("/proc/self/fd"), "what is looked at is in Linux's /proc")
class Decoders(unittest.TestCase):
    def setUp(self) -> None:
        exits = contextlib.ExitStack()
        self.addCleanup(exits.close)
        self.exits = exits
        self.folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))

    def worker(self, *options: str) -> Worker:
        return self.exits.enter_context(Worker(self.folder / "cache", *options))

    def store(self, worker: Worker, key: str, content: bytes) -> None:
        path = self.folder / key
        path.write_bytes(content)
        self.assertIn("result", worker.call("store", key=key, path=str(path)))

    def seeds(self) -> list[bytes]:
        """A small image of each format that there is."""
        with Origin() as origin, Worker(self.folder / "seeds") as worker:
            formats = worker.call("initialize", formats=True)["result"]["formats"]
            wanted: list[dict[str, Any]] = [{"url": f"{origin.url}/image/1.gif?frames=3"}]
            wanted += [{"url": f"{origin.url}/image/1.{suffix}"} for suffix in ("png", "jpg", "tiff", "webp", "avif")]
            source = f"{origin.url}/image/2.png?width=60&height=40"
            wanted += [{"url": source, "transform": {"format": made}} for made in formats["encode"]]
            answers = [worker.call("load", deliver="data", **params) for params in wanted]
        drawing = "<svg xmlns='http://www.w3.org/2000/svg' width='60' height='40'><text y='30' font-size='30'>Ag</text></svg>"
        return [base64.b64decode(answer["result"]["data"]) for answer in answers] + [drawing.encode()]

    def test_a_format_that_libvips_lacks_is_refused_with_those_that_are_written(self) -> None:
        codec = Path(default_worker()).with_name("imageworker-codec")
        linked = subprocess.run(["ldd", str(codec)], capture_output=True, text=True).stdout
        found = re.search(r"(libvips\.so\.\S+) => (\S+)", linked)
        if not found:
            self.skipTest("the decoder does not load libvips as a shared library")
        # libvips looks for its modules, such as that of JPEG XL, beside itself.
        (self.folder / "lib").mkdir()
        (self.folder / "lib" / found[1]).symlink_to(found[2])
        with unittest.mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": str(self.folder / "lib")}):
            worker = self.worker()
        written = worker.call("initialize", formats=True)["result"]["formats"]["encode"]
        if "jxl" in written:
            self.skipTest("this libvips has JPEG XL without a module")
        image = base64.b64encode(png(1, zlib.compress(bytes(2)))).decode()
        answer = worker.call("load", url=f"data:;base64,{image}", transform={"format": "jxl"})
        self.assertEqual(answer["error"]["data"]["kind"], "unsupportedFormat")
        self.assertIn(f"does not write jxl; it writes {', '.join(written)}", answer["error"]["message"])
        self.assertIn("result", worker.call("load", url=f"data:;base64,{image}", transform={"format": "webp"}))

    def test_thousands_of_broken_images_leave_the_worker_as_it_was(self) -> None:
        print(f"DECODER_SEED={SEED} DECODER_IMAGES={IMAGES}", flush=True)
        random = Random(SEED)
        seeds = self.seeds()
        options = ["--memory-limit", "1M", "--disk-limit", "4M", "--failed-ttl", "0", "--decoders", "2"]
        worker = self.worker(*options, "--max-pixels", "4M")
        ways: list[dict[str, Any]] = [
            {"validate": "decode"},
            {"deliver": "pixels"},
            {"transform": {"width": 16}, "placeholder": True},
            {"transform": {"width": 16, "format": "webp", "frames": "all"}, "store": "none"},
        ]
        small = {"width": 16, "frames": "all"}
        intact: list[dict[str, Any]] = [
            {"url": f"data:;base64,{base64.b64encode(seed).decode()}", "deliver": "data", **way}
            for seed in seeds
            for way in ({"transform": {**small, "format": "webp"}}, {"transform": {"width": 99, "format": "png"}})
        ]
        # As they are alone, before any other image. The file of one format is only a header.
        alone = [(params, file_of(worker.call("load", store="none", **params))) for params in intact]
        alone = [(params, image) for params, image in alone if image]
        self.assertGreater(len(alone), len(intact) - 3)
        poison = f"data:;base64,{base64.b64encode(POISON.encode()).decode()}"
        outcomes: Counter[str] = Counter()
        before: tuple[int, int] | None = None
        for batch in range(IMAGES // AT_ONCE):
            among: dict[int, int] = {}
            for _ in range(AT_ONCE):
                if random.random() < 0.1:
                    choice = random.randrange(len(alone))
                    among[worker.send("load", store="none", **alone[choice][0])] = choice
                    continue
                if random.random() < 0.01:
                    worker.send("load", url=poison, transform={"width": 1800, "enlarge": True, "blur": random.random()})
                    continue
                image = base64.b64encode(broken(random, random.choice(seeds))).decode()
                worker.send("load", url=f"data:;base64,{image}", **random.choice(ways))
            answers = [worker.receive() for _ in range(AT_ONCE)]
            for answer in answers:
                if answer["id"] in among:
                    self.assertEqual(file_of(answer), alone[among[answer["id"]]][1])
                    outcomes["intact"] += 1
            # None twice, and so none missing.
            self.assertEqual(len({answer["id"] for answer in answers}), AT_ONCE)
            outcomes.update(outcome(answer) for answer in answers if answer["id"] not in among)
            worker.call("release", all=True)
            self.assertLessEqual(len(worker.parents()), 2 * 2 + 2)  # one that was killed may take a moment
            if batch == IMAGES // AT_ONCE // 3:
                before = worker.descriptors(), memory(worker.process.pid, "VmRSS")
        assert before
        print(dict(outcomes), flush=True)
        # Files that are being delivered may be open, and some have just been.
        self.assertLess(worker.descriptors(), before[0] + 20)
        self.assertLess(memory(worker.process.pid, "VmRSS"), before[1] + 12 * MEGABYTE)
        self.assertLessEqual(
            set(outcomes),
            {"intact", "result", "corrupt", "notAnImage", "unsupportedFormat", "tooManyPixels", "decoderCrashed", "decodeTimeout"},
        )
        self.assertGreater(min(outcomes["result"], outcomes["corrupt"], outcomes["notAnImage"]), 0)
        stats = worker.call("stats")["result"]
        self.assertEqual(stats["pixels"], {"regions": 0, "bytes": 0})
        decoders = [self.exits.enter_context(Watched(process)) for process in worker.decoders()]
        self.assertTrue(decoders)
        worker.__exit__()
        self.assertTrue(all(decoder.ends() for decoder in decoders))

    def test_bombs_are_refused_before_they_take_memory(self) -> None:
        everything = [*bombs(), *giants()]  # This takes a while, after which the decoder would have ended as idle.
        # The process that decodes stays, so that its memory can be read.
        worker = self.worker("--decoders", "1", "--decoder-lifetime", "1000")
        self.store(worker, "harmless", harmless())
        self.assertEqual(worker.load("harmless", **SMALL), "result")
        for number, bomb in enumerate(everything):
            with self.subTest(bomb.name):
                self.store(worker, f"bomb-{number}", bomb.file)
                before = worker.memory()
                self.assertEqual(worker.load(f"bomb-{number}", **bomb.params), bomb.outcome)
                self.assertLess(worker.memory("VmHWM") - before, 20 * MEGABYTE)
        decoders = worker.call("stats")["result"]["decoders"]
        self.assertEqual((decoders["crashed"], decoders["timedOut"]), (0, 0))

    def test_nothing_that_a_child_changes_reaches_the_next(self) -> None:
        worker = self.worker("--decoders", "1")
        self.store(worker, "harmless", harmless())
        self.assertEqual(worker.load("harmless", **SMALL), "result")
        drawing = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><text y='9'>A</text></svg>"
        self.store(worker, "drawing", drawing.encode())
        self.assertEqual(worker.load("drawing", transform={"width": 3, "format": "png"}), "result")
        self.assertTrue(worker.parents())
        for parent in worker.parents():
            try:
                maps = Path(f"/proc/{parent}/maps").read_text().splitlines()
            except PermissionError:
                self.skipTest("only root reads the maps of a process that is not dumpable")
            # Libraries open read-only files as shared.
            self.assertEqual([line for line in maps if re.match(r"\S+ \Sw\Ss", line)], [])
            self.assertEqual(sorted(os.listdir(f"/proc/{parent}/fd")), ["0", "1", "2"])
            # A thread does not exist in a child, and may hold a lock at the fork. That of the fonts waits then, and each
            # child that draws starts it again.
            names = [path.read_text().strip() for path in Path(f"/proc/{parent}/task").glob("*/comm")]
            self.assertEqual(len([name for name in names if name != "[pango] fontcon"]), 1, names)

    def begin_long_decode(self, worker: Worker, others: list[int], width: int = 7000) -> tuple[int, int]:
        """The request, and the decoder that is in the middle of it and not one of the others."""
        request = worker.send("load", url=NOWHERE, key="long", transform={"width": width, "blur": 20, "format": "webp"})
        return request, self.busy(worker, others)

    def busy(self, worker: Worker, others: list[int]) -> int:
        """Waits for a decoder that decodes: it has used half a second, of which its start takes a tenth."""
        begun = time.monotonic()
        ticks: dict[int, int] = {}
        while time.monotonic() - begun < PATIENCE:
            for decoder in set(worker.decoders()) - set(others):
                with contextlib.suppress(OSError):
                    if processor_ticks(decoder) >= ticks.setdefault(decoder, processor_ticks(decoder)) + 50:
                        return decoder
            time.sleep(0.01)
        raise AssertionError("no decoder works")

    def store_long(self, worker: Worker, side: int = 9000) -> None:
        rows = zlib.compress(bytes((side // 8 + 1) * side))
        self.store(worker, "long", png(side, rows))
        self.store(worker, "harmless", harmless())
        self.assertEqual(worker.load("harmless", **SMALL), "result")

    def test_a_killed_worker_leaves_no_decoder_and_no_pixels(self) -> None:
        worker = self.worker("--decoders", "2", "--decode-timeout", "10m")
        self.store_long(worker)
        pixels = worker.call("load", url=NOWHERE, key="harmless", deliver="pixels")["result"]["pixels"]["path"]
        _, busy = self.begin_long_decode(worker, [])
        decoders = [self.exits.enter_context(Watched(process)) for process in worker.decoders()]
        self.assertIn(busy, [decoder.pid for decoder in decoders])
        self.assertTrue(os.path.exists(pixels))
        worker.process.kill()
        worker.process.wait()
        self.assertTrue(all(decoder.ends() for decoder in decoders))
        self.worker().call("stats")  # Any worker that starts removes them, one of another test's as well.
        begun = time.monotonic()
        while os.path.exists(pixels) and time.monotonic() - begun < PATIENCE:
            time.sleep(0.01)
        self.assertFalse(os.path.exists(pixels))

    def test_a_decoder_that_is_killed_costs_its_own_decode_only(self) -> None:
        worker = self.worker("--decoders", "2", "--decode-timeout", "10m")
        self.store_long(worker)
        request, first = self.begin_long_decode(worker, [])
        others = worker.decoders()
        os.kill(first, 9)
        # It is tried again, once.
        second = self.busy(worker, others)
        waiting = [worker.send("load", url=NOWHERE, key="harmless", transform={"width": 8 - n}) for n in range(4)]
        os.kill(second, 9)
        answers = {answer["id"]: outcome(answer) for answer in [worker.receive() for _ in range(5)]}
        self.assertEqual(answers, {request: "decoderCrashed", **{number: "result" for number in waiting}})
        self.assertEqual(worker.call("stats")["result"]["decoders"]["crashed"], 2)
        self.assertEqual(worker.load("harmless", transform={"width": 3}), "result")

    def test_a_decode_that_computes_too_long_is_refused_with_its_times(self) -> None:
        worker = self.worker("--decoders", "1", "--decode-timeout", "500ms")
        self.store_long(worker)
        answer = worker.call("load", url=NOWHERE, key="long", transform={"width": 7000, "blur": 20, "format": "webp"})
        self.assertEqual(outcome(answer), "decodeTimeout")
        Wire().check_error(answer["error"])
        data = answer["error"]["data"]
        self.assertFalse(data["retryable"])
        self.assertGreaterEqual(data["cpuMs"], 500)
        self.assertIn("wallMs", data)
        self.assertEqual(worker.call("stats")["result"]["decoders"]["timedOut"], 1)
        self.assertEqual(worker.load("harmless", transform={"width": 3}), "result")

    def test_an_image_that_needs_more_memory_than_a_decoder_may_have_is_refused(self) -> None:
        transform = {"width": 8000, "blur": 20, "format": "png"}
        for memory, expected in (("128M", "tooManyPixels"), ("1G", "result")):
            with self.subTest(memory):
                worker = self.worker("--decoders", "1", "--decode-timeout", "10m", "--decode-memory", memory)
                self.store_long(worker)
                self.assertEqual(worker.load("long", transform=transform), expected)

    def test_workers_share_the_number_of_decoders(self) -> None:
        busy, other = [self.worker("--decoders", "2", "--decode-timeout", "10m") for _ in range(2)]
        self.store_long(busy, 6000)  # so that the limit of pixels in decoding allows two
        self.assertEqual(other.load("harmless", transform={"width": 5}), "result")
        decoders: list[int] = []
        for width in (5900, 5800):
            decoders.append(self.begin_long_decode(busy, decoders, width)[1])
            os.kill(decoders[-1], signal.SIGSTOP)
        # The first decode of a worker never waits.
        request, third = self.begin_long_decode(other, [], 5700)
        os.kill(third, signal.SIGSTOP)
        waiting = other.send("load", url=NOWHERE, key="harmless", transform={"width": 4})
        # If it were answered, this would fail.
        while "imageworker_decodes_waiting 1\n" not in other.call("metrics")["result"]["text"]:
            time.sleep(0.01)
        # A worker that is killed holds no decoder, as soon as its peers look: they do when they work.
        busy.process.kill()
        busy.process.wait()
        begun = time.monotonic()
        answers: list[int] = []
        while waiting not in answers and time.monotonic() - begun < PATIENCE:
            path = self.folder / "harmless"
            number = other.send("store", key=f"other-{time.monotonic()}", path=str(path))
            while number not in answers:
                answers.append(other.receive()["id"])
        self.assertIn(waiting, answers)
        self.assertNotIn(request, answers)

    def test_many_workers_that_decode_at_once_refuse_no_image(self) -> None:
        # A decode takes a fraction of this, but waits for those of the other workers.
        workers = [self.worker("--decode-timeout", "3s") for _ in range(8)]
        self.store_long(workers[0], 6000)
        loads = 2
        for number, worker in enumerate(workers):
            for load in range(loads):
                # No two of the results are the same variant.
                transform = {"width": 2000 + number * loads + load, "blur": 8, "format": "webp"}
                worker.send("load", url=NOWHERE, key="long", transform=transform)
        outcomes = Counter(outcome(worker.receive()) for worker in workers for _ in range(loads))
        self.assertEqual(outcomes, {"result": len(workers) * loads})

    def test_decoders_that_are_behind_hold_back_only_what_is_for_them(self) -> None:
        origin = self.exits.enter_context(Origin())
        small = {"store": "none", "transform": {"width": 8}}
        worker = self.worker("--decoders", "1", "--max-concurrent", "4", "--max-per-host", "4", "--decode-timeout", "10m")
        self.assertEqual(outcome(worker.call("load", url=f"{origin.url}/image/0.png", **small)), "result")
        (decoder,) = worker.parents()
        os.kill(decoder, signal.SIGSTOP)
        self.exits.callback(os.kill, decoder, signal.SIGCONT)  # If this fails. Its worker, which ends later, waits for it.
        held = {worker.send("load", url=f"{origin.url}/image/held/{number}.png", **small) for number in range(1, 101)}
        origin.command({"do": "await", "requests": 1 + 2 * (4 + 1)})
        # Another origin, by its name: in the turns of the first, a load waits for those before it.
        elsewhere = origin.url.replace("127.0.0.1", "localhost")
        for number in range(20):
            answer = worker.call("load", url=f"{elsewhere}/image/{number}.png", store="none")
            self.assertEqual(outcome(answer), "result")
        came = origin.command({"do": "log", "path": "/held/"})["exchanges"]
        self.assertLess(len(came), 50, "the rest waits")
        states = {state["origin"]: state for state in worker.call("stats")["result"]["origins"]}
        self.assertEqual(states[origin.url]["reason"], "concurrencyLimit")
        held.add(worker.send("load", url=f"{origin.url}/image/held/101.png", priority="high", **small))
        origin.command({"do": "await", "requests": 1, "target": "/image/held/101.png"})
        os.kill(decoder, signal.SIGCONT)
        answers = [worker.receive() for _ in held]
        self.assertEqual({answer["id"] for answer in answers}, held)
        self.assertEqual({outcome(answer) for answer in answers}, {"result"})


if __name__ == "__main__":
    unittest.main()
