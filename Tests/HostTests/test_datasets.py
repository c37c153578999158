"""examples/datasets with the libraries that they are for, if these are installed: in .build-tests/datasets, or for this Python.

    python3 -m venv .build-tests/datasets
    .build-tests/datasets/bin/python -m pip install torch numpy Pillow datasets 'ray[data]' scrapy daft webdataset
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

from bulk_runs import allow_robots, forbid
from imageworker import find_worker
from origin_process import PATIENCE, Origin
from package import ROOT
from processes import Watched

EXAMPLES = ROOT / "examples" / "datasets"
VENV = ROOT / ".build-tests" / "datasets" / "bin" / "python"
PYTHON = str(VENV) if VENV.exists() else sys.executable
IMAGES = 12


def counts_of(said: str) -> dict[str, int]:
    """The numbers by kind in the last line of a program."""
    return {kind: int(count) for count, kind in (each.split() for each in said.splitlines()[-1].split(", "))}


Case = TypeVar("Case", bound=Callable[..., Any])


def lacks(*modules: str) -> Optional[str]:
    """The reason for a skip, if PYTHON does not have all of them."""
    find = "import importlib.util, sys; sys.exit(any(importlib.util.find_spec(name) is None for name in sys.argv[1:]))"
    is_missing = subprocess.run([PYTHON, "-c", find, *modules]).returncode != 0
    return f"not all of {', '.join(modules)} are installed for {PYTHON}" if is_missing else None


def needs(*modules: str) -> Callable[[Case], Case]:
    reason = lacks(*modules)
    return unittest.skipIf(reason is not None, reason or "")


class Datasets(unittest.TestCase):
    def setUp(self) -> None:
        exits = contextlib.ExitStack()
        self.addCleanup(exits.close)
        self.folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        self.origin = exits.enter_context(Origin())
        allow_robots(self.origin)
        kinds = ["png?", "jpg?", "gif?", "png?", "webp?", "bmp?"] * (IMAGES // 6)
        self.urls = [f"{self.origin.url}/image/{n}.{kind}width=120&height=90" for n, kind in enumerate(kinds)]
        self.urls += [f"{self.origin.url}/image/1.png?status=404", "not a url"]
        (self.folder / "urls.txt").write_text("".join(f"{url}\n" for url in self.urls))

    def run_python(self, *arguments: str) -> str:
        """Runs Python in another directory, with homes and caches of its own. Returns its output."""
        own = {name: str(self.folder / name) for name in ("XDG_CACHE_HOME", "HF_HOME", "RAY_TMPDIR")}
        for name in own.values():
            os.makedirs(name, exist_ok=True)
        environment = {**os.environ, **own, "HF_HUB_OFFLINE": "1", "RAY_USAGE_STATS_ENABLED": "0"}
        run = subprocess.run(
            [PYTHON, *arguments], cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.assertEqual(run.returncode, 0, run.stderr[-5000:])
        return run.stdout

    def begin(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Starts Python in the same way, with its output as text."""
        own = {"XDG_CACHE_HOME": str(self.folder), "HF_HOME": str(self.folder), "HF_HUB_OFFLINE": "1", "RAY_USAGE_STATS_ENABLED": "0"}
        log = open(self.folder / "log", "w")
        self.addCleanup(log.close)
        run = subprocess.Popen(
            [PYTHON, *arguments],
            cwd=self.folder,
            env={**os.environ, **own, **variables},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )

        def end() -> None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            assert run.stdout
            run.stdout.close()

        self.addCleanup(end)
        return run

    def evaluated(self, code: str) -> Any:
        """The value that a program in the examples' folder prints as JSON."""
        return json.loads(self.run_python("-c", f"import json, sys; sys.path[:0] = [{str(EXAMPLES)!r}]\n{code}").splitlines()[-1])

    @needs("datasets", "PIL")
    def test_a_column_of_urls_becomes_a_column_of_images_by_map(self) -> None:
        for processes in (1, 2):
            with self.subTest(processes=processes):
                out = f"out{processes}"
                said = self.run_python(str(EXAMPLES / "hf_map.py"), "urls.txt", out, "--size", "60", "--processes", str(processes))
                self.assertIn(f"{IMAGES} loaded, 1 http, 1 invalidParams", said)
                rows = self.evaluated(
                    f"import datasets; rows = datasets.load_dataset('parquet', data_dir={out!r}, split='train')\n"
                    "print(json.dumps([[row['url'], row['image'] and [row['image'].format, *row['image'].size], row['error']] for row in rows]))"
                )
                expected = [[url, ["JPEG", 60, 45], None] for url in self.urls[:IMAGES]]
                expected += [[self.urls[-2], None, "http"], [self.urls[-1], None, "invalidParams"]]
                self.assertEqual(rows, expected)

    @needs("datasets", "PIL")
    def test_a_run_of_map_goes_on_after_a_kill_and_each_row_is_there_once(self) -> None:
        urls = [f"{self.origin.url}/image/{n}.png" + "?hold=gate" * (n == 11) for n in range(20)]
        (self.folder / "urls.txt").write_text("".join(f"{url}\n" for url in urls[:18]))
        command = [str(EXAMPLES / "hf_map.py"), "urls.txt", "out", "--size", "16", "--file-rows", "5"]
        run = self.begin(*command)
        self.origin.command({"do": "await", "gate": "gate", "held": 1})
        run.kill()
        run.communicate()
        self.assertEqual(sorted(path.name for path in (self.folder / "out").glob("*.parquet")), ["000000000-16.parquet", "000000005-16.parquet"])
        self.origin.command({"do": "release", "gate": "gate"})
        (self.folder / "out" / "000000010-16.partial").write_bytes(b"PAR1")
        self.assertEqual(self.run_python(*command).splitlines()[-1], "18 loaded")
        (self.folder / "urls.txt").write_text("".join(f"{url}\n" for url in urls))
        self.assertEqual(self.run_python(*command).splitlines()[-1], "20 loaded", "the list has grown")
        rows = self.evaluated(
            "import datasets; rows = datasets.load_dataset('parquet', data_dir='out', split='train')\n"
            "print(json.dumps([[row['url'], row['image'].format, row['error']] for row in rows]))"
        )
        self.assertEqual(rows, [[url, "JPEG", None] for url in urls])
        asked = [entry["target"] for entry in self.origin.command({"do": "log", "path": "/image"})["exchanges"]]
        self.assertEqual([asked.count(url[len(self.origin.url) :]) for url in urls[:10]], [1] * 10)
        (self.folder / "urls.txt").write_text("".join(f"{url}\n" for url in urls[1:]))
        for others in (command, [*command[:-3], "8", *command[-2:]], [*command[:-1], "4"]):
            run = self.begin(*others)
            run.communicate()
            said = (self.folder / "log").read_text().splitlines()[-1]
            self.assertRegex(said, r"^hf_map.py: out/0000000\d\d-16.parquet is of another list, --size or --file-rows: use another folder$")
            (self.folder / "urls.txt").write_text("".join(f"{url}\n" for url in urls))

    @needs("datasets", "PIL")
    def test_two_processes_of_map_share_the_connections_to_a_server_and_end_with_the_program(self) -> None:
        (self.folder / "urls.txt").write_text("".join(f"{self.origin.url}/image/{n}.png?hold=gate\n" for n in range(40)))
        run = self.begin(str(EXAMPLES / "hf_map.py"), "urls.txt", "out", "--processes", "2")
        self.origin.command({"do": "await", "gate": "gate", "held": 6}, patience=4 * PATIENCE)
        with contextlib.ExitStack() as exits:
            watched = [exits.enter_context(Watched(pid)) for pid in self.workers()]
            self.assertEqual((len(watched), self.origin.command({"do": "counts"})["mostActive"]), (2, 6))
            run.kill()
            self.assertEqual([each.ends() for each in watched], [True, True])

    @needs("torch", "numpy")
    def test_each_url_becomes_a_tensor_that_may_be_written_or_the_kind_of_its_error(self) -> None:
        for processes in ("0", "2"):
            said = self.run_python(str(EXAMPLES / "torch_images.py"), "urls.txt", "--size", "32", "--batch", "5", "--processes", processes)
            self.assertIn("(5, 3, 32, 32) torch.uint8", said)
            self.assertEqual(set(said.splitlines()[-1].split(", ")), {f"{IMAGES} loaded", "1 http", "1 invalidParams"})
        indices, errors, has_colours, written = self.evaluated(
            """if True:
            import torch_images, loading, warnings
            warnings.simplefilter("error")
            urls = open("urls.txt").read().splitlines()
            items = sorted(torch_images.URLImages(urls, 32), key=lambda item: item["index"])
            same = []
            for item in items[:12]:
                box = {"width": 32, "height": 32, "fit": "cover", "enlarge": True}
                pixels = loading.worker().load(urls[item["index"]], deliver="pixels", transform=box).pixels
                array = pixels.numpy()
                array = array.repeat(3, 2) if pixels.channels == 1 else array[..., :3]
                same.append(item["image"].numpy().tolist() == array.tolist())
            written = [int(item["image"].fill_(7).sum()) for item in torch_images.URLImages(urls[:2], 700)]
            print(json.dumps([[item["index"] for item in items], [item["error"] for item in items], same, written]))"""
        )
        self.assertEqual(indices, list(range(IMAGES + 2)))
        self.assertEqual(errors, [""] * IMAGES + ["http", "invalidParams"])
        self.assertEqual(has_colours, [True] * IMAGES)
        self.assertEqual(written, [7 * 3 * 700 * 700] * 2, "images of more than 1 MB")

    @needs("ray", "pyarrow")
    def test_a_list_becomes_files_of_parquet_by_an_actor(self) -> None:
        said = self.run_python(str(EXAMPLES / "ray_data.py"), "urls.txt", "out", "--size", "60")
        self.assertIn(f"{IMAGES} loaded, 1 http, 1 invalidParams", said)
        rows = self.evaluated(
            "import pyarrow.parquet; rows = pyarrow.parquet.read_table('out').to_pylist()\n"
            "print(json.dumps([[row['url'], row['image'] and row['image'][:2].hex(), row['error']] for row in rows]))"
        )
        expected = [[url, "ffd8", None] for url in self.urls[:IMAGES]]
        expected += [[self.urls[-2], None, "http"], [self.urls[-1], None, "invalidParams"]]
        self.assertEqual(sorted(rows, key=str), sorted(expected, key=str))

    @needs("ray", "pyarrow")
    def test_a_run_of_ray_goes_on_with_the_rows_that_have_no_outcome(self) -> None:
        (self.folder / "all.txt").write_text((self.folder / "urls.txt").read_text())
        (self.folder / "urls.txt").write_text("".join(f"{url}\n" for url in self.urls[:5]))
        self.assertEqual(self.run_python(str(EXAMPLES / "ray_data.py"), "urls.txt", "out", "--size", "60"), "5 loaded\n")
        (self.folder / "out" / "cut.parquet").write_bytes(b"PAR1")
        asked = self.origin.command({"do": "counts"})["requests"]
        said = self.run_python(str(EXAMPLES / "ray_data.py"), "all.txt", "out", "--size", "60")
        self.assertEqual(said, f"{IMAGES} loaded, 1 http, 1 invalidParams\n")
        self.assertLessEqual(self.origin.command({"do": "counts"})["requests"] - asked, IMAGES + 1 - 5 + 1, "robots.txt once more")

    @needs("scrapy", "PIL")
    def test_a_spiders_items_get_their_images_as_by_scrapys_own_pipeline(self) -> None:
        files: dict[str, Any] = {}
        (self.folder / "urls.txt").write_text("".join(f"{url}\n" for url in self.urls[:-1]))  # Scrapy's ends at the text that is no URL.
        for name, pipeline in (("ours", "scrapy_images.ImageWorkerPipeline"), ("scrapys", "scrapy.pipelines.images.ImagesPipeline")):
            (self.folder / "settings.json").write_text(json.dumps(self.scrapy_settings(name, pipeline)))
            items = self.evaluated(
                """if True:
                import os, scrapy_images
                from scrapy.crawler import CrawlerProcess
                settings = json.load(open("settings.json"))
                scrapy_images.ImagesSpider.custom_settings = {}
                process = CrawlerProcess(settings, install_root_handler=False)
                process.crawl(scrapy_images.ImagesSpider, urls="urls.txt")
                process.start()
                print(json.dumps([json.loads(line) for line in open(settings["name"] + ".jsonl")]))"""
            )
            self.assertEqual(len(items), len(self.urls) - 1)
            results = [item["images"][0] for item in items if item["images"]]
            self.assertEqual({result["url"] for result in results}, set(self.urls[:IMAGES]))
            files[name] = {
                (result["url"], result["path"].split(".")[0], result["status"], *sorted(result.keys())) for result in results
            }
            store = self.folder / name
            thumbs = sorted(path.name for path in (store / "thumbs" / "small").iterdir())
            self.assertEqual(len(thumbs), IMAGES)
            self.assertTrue(all((store / result["path"]).stat().st_size for result in results))
            files[f"{name} thumbs"] = set(thumbs)
        self.assertEqual(files["ours"], files["scrapys"])
        self.assertEqual(files["ours thumbs"], files["scrapys thumbs"])

    def scrapy_settings(self, name: str, pipeline: str) -> Any:
        return {
            "name": name,
            "IMAGES_STORE": str(self.folder / name),
            "IMAGES_THUMBS": {"small": [40, 40]},
            "ITEM_PIPELINES": {pipeline: 1},
            "FEEDS": {f"{name}.jsonl": {"format": "jsonlines"}},
            "LOG_LEVEL": "ERROR",
            "TELNETCONSOLE_ENABLED": False,
        }

    def test_robots_txt_is_obeyed(self) -> None:
        forbid(self.origin, "/image/1.")
        images, errors = self.evaluated(
            f"import loading; images, errors = loading.load_batch({self.urls[:3]!r}, 60)\n"
            "print(json.dumps([[image is not None for image in images], errors]))"
        )
        self.assertEqual((images, errors), ([True, False, True], [None, "robots", None]))

    @needs("scrapy", "PIL")
    def test_the_pipeline_of_scrapy_obeys_robots_txt(self) -> None:
        forbid(self.origin, "/image/")
        self.run_python("-m", "scrapy", "runspider", str(EXAMPLES / "scrapy_images.py"), "-a", "urls=urls.txt", "-s", "IMAGES_STORE=out")
        self.assertEqual(list((self.folder / "out" / "full").iterdir()), [])

    @needs("scrapy", "PIL")
    def test_the_spider_runs_by_scrapys_command(self) -> None:
        self.run_python("-m", "scrapy", "runspider", str(EXAMPLES / "scrapy_images.py"), "-a", "urls=urls.txt", "-s", "IMAGES_STORE=out")
        self.assertEqual(len(list((self.folder / "out" / "full").iterdir())), IMAGES)

    def survives_kills(self, count: Callable[[str], dict[str, int]], *command: str) -> None:
        """Three kills of the worker: each row has the outcome that it has without. Some rows are on a slow host."""
        with Origin() as slow:
            allow_robots(slow)
            urls = [f"{self.origin.url}/image/{n}.png" + "?status=404" * (n % 10 == 0) for n in range(600)]
            urls += [f"{slow.url}/image/{n}.png?delay=100" for n in range(60)]
            random.Random(0).shuffle(urls)
            (self.folder / "urls.txt").write_text("".join(f"{url}\n" for url in urls))
            run = self.begin(*command)
            for requests in (150, 300, 450):
                self.origin.command({"do": "await", "requests": requests}, patience=10 * PATIENCE)  # Ray has to start.
                for pid in self.workers():
                    os.kill(pid, signal.SIGKILL)
            said, _ = run.communicate()
            self.assertEqual(run.returncode, 0, (self.folder / "log").read_text()[-5000:])
            self.assertEqual(count(said), {"loaded": 600, "http": 60})

    def originals(self) -> set[str]:
        """The files of Scrapy, as its results name them."""
        return {f"full/{path.name}" for path in (self.folder / "out" / "full").iterdir()}

    def workers(self) -> list[int]:
        """The processes of this test's workers, whoever is their parent."""
        own = f"XDG_CACHE_HOME={self.folder}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (folder / "comm").read_text() == "imageworker\n" and own in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
        self.assertTrue(found)
        return found

    @needs("datasets", "PIL")
    def test_map_survives_kills(self) -> None:
        self.survives_kills(counts_of, str(EXAMPLES / "hf_map.py"), "urls.txt", "out", "--size", "16")

    @needs("torch", "numpy")
    def test_the_loader_of_pytorch_survives_kills(self) -> None:
        self.survives_kills(counts_of, str(EXAMPLES / "torch_images.py"), "urls.txt", "--size", "16")

    @needs("ray", "pyarrow")
    def test_an_actor_survives_kills(self) -> None:
        self.survives_kills(counts_of, str(EXAMPLES / "ray_data.py"), "urls.txt", "out", "--size", "16")

    @needs("daft")
    def test_daft_survives_kills(self) -> None:
        self.survives_kills(counts_of, str(EXAMPLES / "daft_images.py"), "urls.txt", "out", "--size", "16")

    @needs("scrapy", "PIL")
    def test_a_spider_survives_kills(self) -> None:
        def count(_: str) -> dict[str, int]:
            items = [json.loads(line) for line in (self.folder / "items.jsonl").read_text().splitlines()]
            self.assertEqual(len({item["image_urls"][0] for item in items}), len(items))
            images = [item for item in items if item["images"]]
            self.assertEqual(self.originals(), {item["images"][0]["path"] for item in images})
            return {"loaded": len(images), "http": len(items) - len(images)}

        spider = ["-m", "scrapy", "runspider", str(EXAMPLES / "scrapy_images.py"), "-a", "urls=urls.txt", "-s", "IMAGES_STORE=out"]
        self.survives_kills(count, *spider, "-O", "items.jsonl", "-s", 'IMAGES_THUMBS={"small": [16, 16]}')

    def test_a_fault_of_the_run_is_no_failed_row(self) -> None:
        (self.folder / "file").touch()
        code = f"import sys; sys.path.insert(0, {str(EXAMPLES)!r}); import loading; loading.load_batch({self.urls!r}, 60)"
        programs = {
            "": ["-c", code],
            "torch": [str(EXAMPLES / "torch_images.py"), "urls.txt"],
            "datasets": [str(EXAMPLES / "hf_map.py"), "urls.txt", "out"],
            "daft": [str(EXAMPLES / "daft_images.py"), "urls.txt", "out"],
            "scrapy": ["-m", "scrapy", "runspider", str(EXAMPLES / "scrapy_images.py"), "-a", "urls=urls.txt", "-s", "IMAGES_STORE=out"],
        }
        for module, program in programs.items():
            with self.subTest(module):
                reason = module and lacks(module)
                if reason:
                    self.skipTest(reason)
                own = {"XDG_CACHE_HOME": str(self.folder / "file"), "HF_HOME": str(self.folder), "HF_HUB_OFFLINE": "1"}
                run = subprocess.run([PYTHON, *program], cwd=self.folder, env={**os.environ, **own}, capture_output=True, text=True)
                self.assertIn("WorkerExited", run.stderr)
                self.assertNotEqual(run.returncode, 0)
                self.assertNotIn("loaded", run.stdout)

    @needs("scrapy", "PIL")
    def test_an_item_whose_image_may_pass_comes_again_at_the_end_and_once(self) -> None:
        dead = f"{self.origin.url}/image/2.png?status=503"
        flaky = f"{self.origin.url}/image/1.png?fail=3&close=headers"
        urls = [flaky, dead, *(f"{self.origin.url}/image/{n}.png" for n in range(3, 9)), f"{self.origin.url}/image/9.png?status=404"]
        (self.folder / "urls.txt").write_text("".join(f"{url}\n" for url in urls))
        spider = ["-m", "scrapy", "runspider", str(EXAMPLES / "scrapy_images.py"), "-a", "urls=urls.txt", "-s", "IMAGES_STORE=out"]
        self.run_python(*spider, "-O", "items.jsonl")
        items = [json.loads(line) for line in (self.folder / "items.jsonl").read_text().splitlines()]
        images = {item["image_urls"][0]: len(item["images"]) for item in items}
        self.assertEqual((len(items), images), (len(urls), {url: int("status=" not in url) for url in urls}))
        self.assertEqual({item["image_urls"][0] for item in items[-2:]}, {flaky, dead}, "they come last")
        self.assertEqual(self.originals(), {item["images"][0]["path"] for item in items if item["images"]})

    @needs("scrapy", "PIL")
    def test_back_pressure_keeps_a_long_list_from_being_under_way_at_once(self) -> None:
        (self.folder / "urls.txt").write_text("".join(f"{self.origin.url}/image/{n}.png?hold=gate\n" for n in range(500)))
        spider = ["-m", "scrapy", "runspider", str(EXAMPLES / "scrapy_images.py"), "-a", "urls=urls.txt", "-s", "IMAGES_STORE=out"]
        run = self.begin(*spider, "-s", "CONCURRENT_ITEMS=6", "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=100", "-O", "items.jsonl")
        self.origin.command({"do": "await", "gate": "gate", "held": 6})
        for _ in range(50):
            self.origin.command({"do": "release", "gate": "gate", "count": 6})
            self.origin.command({"do": "await", "gate": "gate", "held": 6})
        self.assertLessEqual(len(self.origin.command({"do": "log", "path": "/image"})["exchanges"]), 50 * 6 + 6)
        self.origin.command({"do": "release", "gate": "gate"})
        run.communicate()
        self.assertEqual((run.returncode, len((self.folder / "items.jsonl").read_text().splitlines())), (0, 500))

    @needs("scrapy", "PIL")
    def test_a_corrupt_image_leaves_no_files(self) -> None:
        (self.folder / "urls.txt").write_text(f"{self.origin.url}/image/1.png?truncate=300&length=none&bytes=4000\n")
        spider = ["-m", "scrapy", "runspider", str(EXAMPLES / "scrapy_images.py"), "-a", "urls=urls.txt", "-s", "IMAGES_STORE=out"]
        self.run_python(*spider, "-s", 'IMAGES_THUMBS={"small": [16, 16]}')
        self.assertEqual([path for path in (self.folder / "out").rglob("*") if path.is_file()], [])

    @needs("scrapy", "PIL")
    def test_ctrl_c_ends_a_crawl_at_once_and_leaves_what_is_complete(self) -> None:
        (self.folder / "urls.txt").write_text("".join(f"{self.origin.url}/image/{n}.png?hold=gate\n" for n in range(3000)))
        spider = ["-m", "scrapy", "runspider", str(EXAMPLES / "scrapy_images.py"), "-a", "urls=urls.txt", "-s", "IMAGES_STORE=out"]
        run = subprocess.Popen(
            [PYTHON, *spider, "-O", "items.jsonl"],
            cwd=self.folder,
            env={**os.environ, "XDG_CACHE_HOME": str(self.folder)},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.origin.command({"do": "await", "gate": "gate", "held": 4})
        self.origin.command({"do": "release", "gate": "gate", "count": 4})
        self.origin.command({"do": "await", "complete": 5})
        run.send_signal(signal.SIGINT)
        _, log = run.communicate(timeout=PATIENCE)
        self.assertNotIn("Traceback", log)
        items = [json.loads(line) for line in (self.folder / "items.jsonl").read_text().splitlines()]
        self.assertEqual(self.originals(), {item["images"][0]["path"] for item in items})

    @needs("scrapy", "PIL")
    def test_a_fault_in_a_crawl_ends_it_and_fails_no_item(self) -> None:
        (self.folder / "urls.txt").write_text("".join(f"{self.origin.url}/image/{n}.png?hold=gate\n" for n in range(300)))
        worker = self.folder / "bin" / "imageworker"
        worker.parent.mkdir()
        worker.symlink_to(find_worker())
        spider = ["-m", "scrapy", "runspider", str(EXAMPLES / "scrapy_images.py"), "-a", "urls=urls.txt", "-s", "IMAGES_STORE=out"]
        run = self.begin(*spider, "-O", "items.jsonl", IMAGEWORKER=str(worker))
        self.origin.command({"do": "await", "gate": "gate", "held": 4})
        worker.unlink()
        for pid in self.workers():
            os.kill(pid, signal.SIGKILL)
        run.communicate()
        said = (self.folder / "log").read_text()
        self.assertIn("the crawl ends: ", said)
        self.assertEqual((self.folder / "items.jsonl").read_text(), "", said)

    def test_each_example_has_at_most_50_lines(self) -> None:
        lengths = {path.name: sum(map(bool, path.read_text().splitlines())) for path in EXAMPLES.glob("*_*.py")}
        self.assertEqual(len(lengths), 5)
        self.assertEqual({name for name, lines in lengths.items() if lines > 50}, set(), lengths)

    def test_a_missing_library_is_named_in_a_line(self) -> None:
        for example, package in (("hf_map.py", "datasets"), ("ray_data.py", "ray"), ("torch_images.py", "torch"), ("daft_images.py", "daft")):
            blocked = f"import runpy, sys; sys.modules[{package!r}] = None; sys.path.insert(0, {str(EXAMPLES)!r})\n"
            code = blocked + f"runpy.run_path({str(EXAMPLES / example)!r}, run_name='__main__')"
            run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            self.assertRegex(run.stderr, rf"^{example}: there is no .* here .*: pip install .*\n$")
            self.assertEqual(run.returncode, 1)


if __name__ == "__main__":
    unittest.main()
