"""The ledger of examples/bulk: its columns, the second pass, --retry-failed, several sizes, and the conditions of a load."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import signal
import tarfile
import unittest
import unittest.mock

from bulk_runs import BulkRuns, forbid

from bulk import choices
from origin_process import Origin
from imageworker import find_worker


class Ledger(BulkRuns):
    def fail_first(self, name: str, failures: int, then: str) -> str:
        """A URL that fails so many times, and then answers like `then`. Without retries of the worker, a pass asks once."""
        failing = ["/image/1.png?close=headers"] * failures
        self.origin.command({"do": "script", "target": f"/{name}", "answers": [*failing, then]})
        return f"{self.origin.url}/{name}"

    def run_once(self, *options: str) -> str:
        return self.run_bulk("list.txt", "--worker-option=--retries=0", *options)

    def test_each_row_has_a_line_with_its_outcome(self) -> None:
        urls = [f"{self.origin.url}/image/1.png", f"{self.origin.url}/image/2.png?status=410", "no URL"]
        self.write("list.txt", *urls[:2], "", urls[2])
        self.run_bulk("list.txt")
        image, gone, invalid = self.ledger()
        content = (self.out / "00000" / "000000000.png").read_bytes()
        expected = {
            **{"row": 0, "url": urls[0], "outcome": "loaded", "retryable": False, "attempts": 1, "passes": 1},
            **{"shard": "00000", "key": "000000000", "format": "png", "width": 32, "height": 24},
            **{"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()},
        }
        self.assertEqual({name: value for name, value in image.items() if not name.endswith("_ms")}, expected)
        self.assertLess({"total_ms", "request_ms", "body_ms"}, image.keys())
        self.assertEqual(gone["error"], "the server answered 410")
        self.assertEqual((gone["outcome"], gone["status"], gone["attempts"], gone["retryable"]), ("http", 410, 1, False))
        self.assertEqual((invalid["row"], invalid["url"], invalid["outcome"]), (3, "no URL", "invalidParams"))

    def test_rows_that_may_pass_are_tried_again_at_the_end(self) -> None:
        for form, shard in ("files", "00000"), ("webdataset", "00000.1.tar"):
            with self.subTest(format=form):
                self.out = self.folder / form
                flaky = self.fail_first(form, 1, "/image/2.png")
                self.write("list.txt", f"{self.origin.url}/image/1.png", flaky, f"{self.origin.url}/image/3.png?truncate=9")
                self.assertIn("2 loaded, 1 failed", self.run_once("--format", form))
                _, line, bad = self.ledger()
                self.assertEqual((line["outcome"], line["passes"], line["attempts"], line["shard"]), ("loaded", 2, 2, shard))
                self.assertEqual((bad["outcome"], bad["passes"], bad["attempts"], bad["retryable"]), ("truncated", 2, 2, True))
                before = len(self.requests())
                self.assertIn("2 loaded, 1 failed", self.run_once("--format", form))
                self.assertEqual(len(self.requests()), before, "it was tried in two passes")

    def test_retry_failed_tries_again_on_a_finished_output(self) -> None:
        self.write("list.txt", self.fail_first("a", 2, "/image/2.png"), self.fail_first("b", 3, "/image/3.png"))
        options = ("--format", "webdataset")
        self.assertIn("0 loaded, 2 failed", self.run_once(*options))
        self.assertRegex(self.run_once("--retry-failed", *options), r"^1 loaded, 1 failed, \d+/s, 2 done before\n  1 ")
        self.assertRegex(self.run_once("--retry-failed", *options), r"^2 loaded, 0 failed, \d+/s, 2 done before$")
        self.assertEqual([line["shard"] for line in self.ledger()], ["00000.2.tar", "00000.3.tar"])
        self.assertEqual(sorted(path.name for path in self.out.glob("*.tar")), ["00000.2.tar", "00000.3.tar"])

    def test_with_one_pass_the_second_one_is_left_to_a_later_run(self) -> None:
        self.write("list.txt", self.fail_first("a", 1, "/image/2.png"))
        self.assertIn("0 loaded, 1 failed", self.run_once("--passes", "1"))
        self.assertIn("1 loaded, 0 failed", self.run_once())

    def test_a_second_pass_that_is_killed_goes_on_where_it_was(self) -> None:
        for form in ("files", "webdataset"):
            with self.subTest(format=form):
                self.out = self.folder / form
                gate = f"gate-{form}"
                first = self.fail_first(f"1{form}", 1, "/image/1.png")
                held = self.fail_first(f"2{form}", 1, f"/image/2.png?hold={gate}")
                self.write("list.txt", f"{self.origin.url}/image/0.png", first, held)
                options = ("--format", form, "--worker-option=--retries=0", "--worker-option=--max-per-host=1")
                run = self.begin("list.txt", *options)
                self.origin.command({"do": "await", "gate": gate, "held": 1})
                (partial,) = self.out.glob("00000.1.ledger.partial")
                while partial.read_bytes().count(b"\n") < 2:  # The header, and the line of the row that has ended.
                    self.assertIsNone(run.poll())
                run.send_signal(signal.SIGKILL)
                run.wait()
                self.origin.command({"do": "release", "gate": gate})
                self.assertRegex(self.run_bulk("list.txt", *options), r"^3 loaded, 0 failed, \d+/s, 3 done before$")
                self.assertEqual([line["passes"] for line in self.ledger()], [1, 2, 2])
                self.assertEqual(self.requests().count(f"/1{form}"), 2)
                self.assertEqual(list(self.out.glob("*.partial")), [])

    def test_a_line_that_was_cut_short_and_an_image_without_a_line_do_not_count(self) -> None:
        urls = [f"{self.origin.url}/image/{n}.png" for n in range(3)]
        for form in ("files", "webdataset"):
            with self.subTest(format=form):
                self.out = self.folder / form
                gate = f"gate-{form}"
                self.write("list.txt", *urls, f"{self.origin.url}/image/3.png?hold={gate}")
                run = self.begin("list.txt", "--format", form)
                self.origin.command({"do": "await", "gate": gate, "held": 1})
                partial = self.out / "00000.0.ledger.partial"
                while partial.read_bytes().count(b"\n") < 4:
                    self.assertIsNone(run.poll())
                run.send_signal(signal.SIGKILL)
                run.wait()
                partial.write_bytes(partial.read_bytes()[:-9])
                self.origin.command({"do": "release", "gate": gate})
                self.assertRegex(self.run_bulk("list.txt", "--format", form), r"^4 loaded, 0 failed, \d+/s, 2 done before$")
                self.assertEqual([line["row"] for line in self.ledger()], [0, 1, 2, 3])
                keys = [f"{row:09}.{end}" for row in range(4) for end in ("json", "png")]
                self.assertEqual(sorted(self.names()), keys)

    def names(self) -> list[str]:
        if (self.out / "00000.tar").exists():
            with tarfile.open(self.out / "00000.tar") as tar:
                return tar.getnames()
        return [path.name for path in (self.out / "00000").iterdir()]

    def test_several_sizes_come_of_one_transfer(self) -> None:
        self.write("list.txt", *(f"{self.origin.url}/image/{n}.jpg?width=600&height=400" for n in range(9)))
        self.run_bulk("list.txt", "--format", "webdataset", "--size", "60", "--size", "30")
        self.assertEqual(len(self.requests()), 9)
        with tarfile.open(self.out / "00000.tar") as tar:
            names = [f"{row:09}.{end}" for row in range(9) for end in ("30.jpg", "60.jpg", "json")]
            self.assertEqual(sorted(tar.getnames()), names)
            small = tar.extractfile("000000003.30.jpg")
            assert small is not None
            line = self.ledger()[3]
            self.assertEqual(line["sha256_30"], hashlib.sha256(small.read()).hexdigest())
        self.assertEqual([line[name] for name in ("width", "height", "width_30", "height_30")], [60, 40, 30, 20])
        self.assertEqual([line[f"original_{name}"] for name in ("format", "width", "height")], ["jpeg", 600, 400])

    def test_with_enlarge_all_images_have_one_shape(self) -> None:
        sizes = ((600, 400), (100, 20), (16, 48))
        self.write("list.txt", *(f"{self.origin.url}/image/{n}.png?width={width}&height={height}" for n, (width, height) in enumerate(sizes)))
        self.run_bulk("list.txt", "--size", "64", "--fit", "cover", "--enlarge")
        self.assertEqual([(line["width"], line["height"], line["format"]) for line in self.ledger()], [(64, 64, "jpeg")] * 3)
        self.assertEqual(sorted({path.suffix for path in (self.out / "00000").iterdir()}), [".jpg", ".json"])
        self.assertIn("other settings", self.refused("list.txt", "--size", "64", "--fit", "cover")[1])

    def test_rows_with_the_url_of_a_failed_one_have_its_kind(self) -> None:
        pages = [f"{self.origin.url}/html?x-n=1", f"{self.origin.url}/image/1.png?status=404"]
        self.write("list.txt", *pages, *pages * 2)
        self.run_bulk("list.txt", "--at-once", "1")
        self.assertEqual([(line["outcome"], line["retryable"]) for line in self.ledger()], [("notAnImage", False), ("http", False)] * 3)
        self.assertEqual(len(self.requests()), 2)

    def test_servers_that_are_dead_do_not_count_as_those_that_forbid_it(self) -> None:
        with Origin() as dead:
            urls = [f"{dead.url}/image/{n}.png" for n in range(3)]
        self.write("list.txt", *urls, *(f"http://{n}.invalid/1.png" for n in range(3)))
        self.run_bulk("list.txt", "--worker-option=--retries=0")
        self.assertEqual([line["outcome"] for line in self.ledger()], ["connect"] * 3 + ["resolve"] * 3)

    def test_further_columns_are_kept_in_the_metadata(self) -> None:
        self.write("list.csv", "url,punsafe,licence", f"{self.origin.url}/image/1.png,0.25,", f"{self.origin.url}/image/2.png,0.5,CC0")
        self.run_bulk("list.csv", "--column", "punsafe", "--column", "licence")
        facts = [json.loads((self.out / "00000" / f"{row:09}.json").read_text()) for row in range(2)]
        self.assertEqual([(about["punsafe"], about["licence"]) for about in facts], [("0.25", ""), ("0.5", "CC0")])
        status, words = self.refused("list.csv", "--column", "sha256")
        self.assertEqual((status, "--column sha256: the metadata has a member of this name already" in words), (1, True), words)

    def test_a_size_or_column_that_is_given_twice_is_an_error(self) -> None:
        for option, value in ("--size", "8"), ("--column", "a"):
            words = f"bulk: {option} has the same value twice: {value}, {value}"
            self.assertEqual(self.refused("list.csv", option, value, option, value), (1, words))

    def test_columns_of_a_list_without_columns_are_an_error(self) -> None:
        self.write("list.txt", f"{self.origin.url}/image/1.png")
        self.assertIn("list.txt has one URL a line and no columns such as 'text'", self.refused("list.txt", "--column", "text")[1])

    def test_a_list_that_cannot_be_read_twice_is_an_error(self) -> None:
        os.mkfifo(self.folder / "list.txt")
        words = f"bulk: the list {self.folder}/list.txt must be a file, because it is read more than once"
        self.assertEqual(self.refused("list.txt"), (1, words))

    def test_an_image_that_is_not_wanted_is_a_failure(self) -> None:
        self.write("list.txt", *(f"{self.origin.url}/image/{name}" for name in ("1.png?width=99&height=99", "2.png", "3.gif")))
        self.run_bulk("list.txt", "--want", "minWidth=32", "--want", "minHeight=24", "--want", "formats=png,jpeg")
        self.assertEqual(self.failures(), {(2, "unwanted")})
        self.out = self.folder / "larger"
        self.run_bulk("list.txt", "--want", "minWidth=50")
        self.assertEqual(self.failures(), {(1, "unwanted"), (2, "unwanted")})

    def test_robots_txt_is_obeyed_unless_it_is_ignored(self) -> None:
        forbid(self.origin, "/image/private")
        self.write("list.txt", f"{self.origin.url}/image/private/1.png", f"{self.origin.url}/image/2.png")
        self.run_bulk("list.txt")
        self.assertEqual(self.failures(), {(0, "robots")})
        self.assertEqual(self.requests(), ["/image/2.png"])
        self.out = self.folder / "ignoring"
        self.assertIn("2 loaded, 0 failed", self.run_bulk("list.txt", "--robots", "ignore"))

    def test_a_robots_txt_that_cannot_be_loaded_may_pass(self) -> None:
        self.origin.command({"do": "script", "target": "/robots.txt", "answers": ["/text?status=503"]})
        self.write("list.txt", f"{self.origin.url}/image/1.png")
        self.run_bulk("list.txt")
        (line,) = self.ledger()
        self.assertEqual((line["outcome"], line["retryable"], line["passes"]), ("http", True, 2))

    def test_arguments_that_are_wrong_are_named(self) -> None:
        for option, value, words in (
            ("--want", "width=3", "must be one of minWidth, minHeight, maxWidth, maxHeight, maxPixels, maxFrames, maxAspectRatio, formats, = and its value (given: width=3)"),
            ("--want", "minWidth=x", "must be one of minWidth, minHeight, maxWidth, maxHeight, maxPixels, maxFrames, maxAspectRatio, formats, = and its value (given: minWidth=x)"),
        ):
            status, said = self.refused("list.txt", option, value)
            self.assertEqual((status, said), (2, f"bulk: error: argument {option}: {words}"))

    def test_rate_and_robots_go_to_the_worker(self) -> None:
        between = self.folder / "between"
        between.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {self.folder}/options\nexec {find_worker()} "$@"\n')
        between.chmod(0o755)
        self.write("list.txt", f"{self.origin.url}/image/1.png")
        for given, expected in (("--rate=800/s",), {"--rate=800/s", "--robots=obey"}), (("--robots=ignore",), {"--robots=ignore"}):
            self.out = self.folder / given[0]
            with unittest.mock.patch.dict(os.environ, IMAGEWORKER=str(between)):
                self.run_bulk("list.txt", *given)
            options = {line for line in (self.folder / "options").read_text().splitlines() if line.startswith(("--ra", "--ro"))}
            self.assertEqual(options, expected)

    def test_a_want_has_the_types_of_the_client(self) -> None:
        given = choices.arguments(["list.txt", "out", "--want", "maxAspectRatio=2.5", "--want", "formats=png,jpeg"])
        self.assertEqual(given.want, {"max_aspect_ratio": 2.5, "formats": ["png", "jpeg"]})

    @unittest.skipIf(importlib.util.find_spec("pyarrow") is None, "pyarrow is not installed")
    def test_columns_of_a_parquet_list_keep_their_types_as_far_as_json_has_them(self) -> None:
        import pyarrow.parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]

        columns = {"score": [0.5], "none": [float("nan")], "tags": [["a", "b"]], "raw": [b"\xff"]}
        table = pyarrow.table({"url": [f"{self.origin.url}/image/1.png"], **columns})
        pyarrow.parquet.write_table(table, self.folder / "list.parquet")
        self.run_bulk("list.parquet", *(f"--column={name}" for name in columns))
        about = json.loads((self.out / "00000" / "000000000.json").read_text())
        self.assertEqual([about[name] for name in ("score", "none", "tags", "raw")], [0.5, None, ["a", "b"], "b'\\xff'"])


if __name__ == "__main__":
    unittest.main()
