"""examples/bulk against the built worker: lists of every kind, shards, a run that is killed and goes on, rows that were never tried."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from bulk_runs import BULK, BulkRuns, allow_robots
from origin_process import Origin
from processes import Watched, children

from document import DOCUMENT

from bulk import lists, loads, progress
from imageworker import find_worker  # noqa: E402


class Bulk(BulkRuns):
    def test_a_text_list_becomes_a_folder_of_images_with_a_report_of_failures(self) -> None:
        good = [f"{self.origin.url}/image/{n}.png" for n in range(20)]
        bad = [f"{self.origin.url}/image/99.png?status=404", "not a url"]
        self.write("list.txt", *good, "", *bad)
        self.assertIn("20 loaded, 2 failed", self.run_bulk("list.txt", "--shard-size", "10"))
        images = sorted(self.out.glob("*/*.png"))
        self.assertEqual([path.stem for path in images], [f"{n:09}" for n in range(20)])
        self.assertTrue(all(path.read_bytes().startswith(b"\x89PNG") for path in images))
        facts = json.loads(images[3].with_suffix(".json").read_text())
        self.assertEqual((facts["url"], facts["width"]), (good[3], 32))
        failures = {(line["row"], line["url"], line["outcome"]) for line in self.ledger() if line["outcome"] != "loaded"}
        self.assertEqual(failures, {(21, bad[0], "http"), (22, bad[1], "invalidParams")})
        self.assertEqual([summary["succeeded"] for summary in self.summaries()], [10, 10, 0])

    def test_a_table_with_captions_becomes_shards_of_webdataset(self) -> None:
        lines = [f'{self.origin.url}/image/{n}.png,"picture {n}, quoted"' for n in range(5)]
        self.write("list.csv", "address,text", *lines)
        self.run_bulk("list.csv", "--format", "webdataset", "--url-column", "address", "--caption-column", "text")
        with tarfile.open(self.out / "00000.tar") as tar:
            names = sorted(tar.getnames())
            self.assertEqual(names, sorted(f"{n:09}.{e}" for n in range(5) for e in ("png", "json", "txt")))
            caption = tar.extractfile("000000002.txt")
            assert caption is not None
            self.assertEqual(caption.read(), b"picture 2, quoted")

    def test_a_column_that_is_not_there_is_named(self) -> None:
        self.write("list.csv", "address", "http://example.com/")
        run = subprocess.run(self.command("list.csv"), stderr=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("must have a column 'url'; it has address", run.stderr)

    def test_images_that_must_not_be_used_are_left_out(self) -> None:
        url = f"{self.origin.url}/image/1.png"
        headers = ["noai", "nofollow, noimageindex", "otherbot: noindex", "all"]
        self.write("list.txt", *(f"{url}?header=X-Robots-Tag:%20{header.replace(' ', '%20')}" for header in headers))
        self.assertIn("2 loaded, 2 failed", self.run_bulk("list.txt"))
        self.assertEqual(self.failures(), {(0, "robots"), (1, "robots")})
        kept = sorted(path.name for path in (self.out / "00000").iterdir())
        self.assertEqual(kept, [f"{n:09}.{extension}" for n in (2, 3) for extension in ("json", "png")])

    def test_a_run_that_is_killed_goes_on_where_it_was(self) -> None:
        first = [f"{self.origin.url}/image/{n}.png" for n in range(10)]
        held = [f"{self.origin.url}/image/{n}.png?hold=gate" for n in range(10, 20)]
        self.write("list.txt", *first, *held)
        options = ("--shard-size", "10", "--format", "webdataset")
        run = subprocess.Popen(self.command("list.txt", *options), stderr=subprocess.DEVNULL)
        self.origin.command({"do": "await", "gate": "gate", "held": 6})
        while not (self.out / "00000.json").exists() and run.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(0.01)
        run.send_signal(signal.SIGKILL)
        run.wait()
        self.assertFalse((self.out / "00001.tar").exists())
        self.origin.command({"do": "release", "gate": "gate"})
        self.assertRegex(self.run_bulk("list.txt", *options), r"^20 loaded, 0 failed, \d+/s, 10 done before$")
        self.assertEqual([summary["succeeded"] for summary in self.summaries()], [10, 10])
        self.assertEqual(list(self.out.glob("*.partial")), [])
        with tarfile.open(self.out / "00001.tar") as tar:
            self.assertEqual(len(tar.getnames()), 20)

    def test_what_the_worker_of_a_killed_run_still_saves_is_not_taken_for_this_runs(self) -> None:
        self.write("list.txt", f"{self.origin.url}/image/1.png?hold=gate")
        others = [self.out / "00000.partial", self.out / "00000.0f.partial"]
        for other in others:
            other.mkdir(parents=True)
        run = self.begin("list.txt")
        self.origin.command({"do": "await", "gate": "gate", "held": 1})
        for other in others:
            other.mkdir(exist_ok=True)
            (other / "000000007").touch()
        self.origin.command({"do": "release", "gate": "gate"})
        self.assertEqual(run.wait(), 0)
        self.assertEqual(sorted(path.name for path in (self.out / "00000").iterdir()), ["000000000.json", "000000000.png"])
        self.assertEqual(list(self.out.glob("*.partial")), [])

    def test_a_folder_that_the_worker_cannot_be_told_of_is_named(self) -> None:
        self.write("list.txt", f"{self.origin.url}/image/1.png")
        self.out = self.folder / os.fsdecode(b"m\xff")
        status, words = self.refused("list.txt")
        self.assertEqual((status, "must be UTF-8" in words, self.out.exists()), (1, True, False))

    def test_two_runs_on_one_folder_do_not_get_into_each_others_way(self) -> None:
        self.write("list.txt", f"{self.origin.url}/image/1.png?hold=gate")
        run = self.begin("list.txt")
        self.origin.command({"do": "await", "gate": "gate", "held": 1})
        self.assertEqual(self.refused("list.txt"), (1, f"bulk: another run uses the folder {self.out}"))
        self.origin.command({"do": "release", "gate": "gate"})
        self.assertEqual(run.wait(), 0)
        self.assertEqual([summary["succeeded"] for summary in self.summaries()], [1])

    def test_rows_that_were_lost_with_a_worker_are_tried_again(self) -> None:
        for name, end in (("killed", signal.SIGKILL), ("ended", signal.SIGTERM)):
            with self.subTest(worker=name):
                self.out = self.folder / name
                self.write("list.txt", *(f"{self.origin.url}/image/{n}.png?hold={name}" for n in range(10)))
                run = self.begin("list.txt")
                self.origin.command({"do": "await", "gate": name, "held": 6})
                (worker,) = children(run.pid)
                with Watched(worker) as watched:
                    os.kill(worker, end)
                    self.assertTrue(watched.ends())
                self.origin.command({"do": "release", "gate": name})
                self.assertEqual(run.wait(), 0)
                self.assertEqual([summary["succeeded"] for summary in self.summaries()], [10])

    def test_rows_that_wait_for_their_server_do_not_keep_the_others_from_being_begun(self) -> None:
        waiting = [f"{self.origin.url}/image/{n}.png?hold=gate" for n in range(1500)]
        with Origin() as other:
            allow_robots(other)
            self.write("list.txt", *waiting, f"{other.url}/image/1.png?hold=gate")
            run = self.begin("list.txt", "--shard-size", "500")
            other.command({"do": "await", "gate": "gate", "held": 1})
            for origin in other, self.origin:
                origin.command({"do": "release", "gate": "gate"})
            self.assertEqual(run.wait(), 0)
        self.assertEqual([summary["succeeded"] for summary in self.summaries()], [500, 500, 500, 1])

    def test_many_unfinished_shards_keep_the_run_from_reading_on_until_they_are_finished(self) -> None:
        urls = [f"/image/{n}.png?hold=gate" for n in range(loads.MOST_SHARDS + 20)]
        with Origin("--origins", "20") as other:
            allow_robots(other)
            self.write("list.txt", *(f"http://127.0.0.1:{other.ports[n % 20]}{url}" for n, url in enumerate(urls)))
            run = self.begin("list.txt", "--shard-size", "1", "--worker-option=--max-concurrent=500")
            other.command({"do": "await", "gate": "gate", "held": loads.MOST_SHARDS})
            self.assertEqual(len(list(self.out.glob("*.ledger.partial"))), loads.MOST_SHARDS)
            other.command({"do": "release", "gate": "gate"})
            self.assertEqual(run.wait(), 0)
        self.assertEqual([summary["succeeded"] for summary in self.summaries()], [1] * len(urls))

    def test_rows_are_begun_in_the_order_of_the_list(self) -> None:
        urls = [f"/image/{n}.png" for n in range(20)]
        self.write("list.txt", *(f"{self.origin.url}{url}" for url in urls))
        self.run_bulk("list.txt", "--shard-size", "4", "--at-once", "1")
        self.assertEqual(self.requests(), urls)

    def test_a_worker_that_does_not_start_leaves_no_shard_finished(self) -> None:
        self.write("list.txt", f"{self.origin.url}/image/1.png")
        status, words = self.refused("list.txt", "--worker-option=--bogus")
        self.assertEqual(status, 1)
        self.assertIn("--bogus is not an option", words)
        self.assertTrue(words.endswith("Mend that, and run it again"), words)
        self.assertEqual(list(self.out.glob("*.json")), [])
        self.assertIn("1 loaded, 0 failed", self.run_bulk("list.txt"))

    def test_a_folder_that_cannot_be_written_leaves_no_shard_finished(self) -> None:
        self.write("list.txt", f"{self.origin.url}/image/1.png?hold=gate")
        run = self.begin("list.txt")
        self.origin.command({"do": "await", "gate": "gate", "held": 1})
        (partial,) = self.out.glob("images.*.partial")
        shutil.rmtree(partial)
        self.origin.command({"do": "release", "gate": "gate"})
        self.assertEqual(run.wait(), 1)
        self.assertEqual(list(self.out.glob("*.json")), [])

    def test_what_is_not_there_is_named(self) -> None:
        self.assertEqual(self.refused("list.txt"), (1, f"bulk: cannot read the list {self.folder}/list.txt: No such file or directory"))
        self.write("list.txt", f"{self.origin.url}/image/1.png")
        missing = str(self.folder / "missing")
        with unittest.mock.patch.dict(os.environ, IMAGEWORKER=missing):
            run = subprocess.run(self.command("list.txt"), stderr=subprocess.PIPE, text=True)
        words = f"bulk: cannot run {missing} (No such file or directory): set IMAGEWORKER to the path of the worker\n"
        self.assertEqual((run.returncode, run.stderr), (1, words), "and no figures of a run that has not begun")

    def test_a_list_that_cannot_be_read_leaves_no_folder(self) -> None:
        self.write("list.csv", "url", "data:,")
        self.assertEqual(self.refused("missing.txt")[0], 1)
        self.assertEqual(self.refused("list.csv", "--url-column", "link")[0], 1)
        self.assertFalse(self.out.exists())

    def test_figures_that_are_out_of_range_are_named_before_anything_is_loaded(self) -> None:
        for option in ("--size", "--quality", "--at-once", "--shard-size"):
            status, words = self.refused("list.txt", option, "0")
            self.assertEqual(status, 2)
            self.assertIn(f"argument {option}: must be an integer from 1 to", words)

    def test_only_the_new_rows_of_a_list_that_has_grown_are_loaded(self) -> None:
        urls = [f"{self.origin.url}/image/{n}.png" for n in range(5)]
        for form in ("files", "webdataset"):
            with self.subTest(format=form):
                self.out = self.folder / form
                self.origin.command({"do": "reset"})
                allow_robots(self.origin)
                self.write("list.txt", *urls[:3])
                self.run_bulk("list.txt", "--shard-size", "2", "--format", form)
                self.write("list.txt", *urls)
                shown = self.run_bulk("list.txt", "--shard-size", "2", "--format", form)
                self.assertRegex(shown, r"^5 loaded, 0 failed, \d+/s, 3 done before$")
                self.assertEqual([summary["succeeded"] for summary in self.summaries()], [2, 2, 1])
                self.assertEqual([line["url"] for line in self.ledger()], urls)
                self.assertEqual(len(self.requests()), 5)

    def test_another_list_or_other_settings_do_not_pass_for_done_before(self) -> None:
        self.write("list.txt", f"{self.origin.url}/image/1.png")
        self.run_bulk("list.txt")
        before = self.summaries()
        for option, value in ("--size", "16"), ("--want", "minWidth=1"), ("--robots", "ignore"):
            status, words = self.refused("list.txt", option, value)
            self.assertEqual((status, "other settings" in words), (1, True), words)
        self.write("list.txt", f"{self.origin.url}/image/2.png")
        status, words = self.refused("list.txt")
        self.assertEqual((status, "for other rows" in words), (1, True), words)
        self.assertEqual(self.summaries(), before)

    def test_quotes_mean_nothing_in_a_tsv_and_must_be_closed_in_a_csv(self) -> None:
        url = f"{self.origin.url}/image/1.png"
        self.write("list.tsv", "text\turl", f'"Best of" the cat\t{url}', f'"5 inch\t{url}', f"a\t{url}")
        self.assertIn("3 loaded, 0 failed", self.run_bulk("list.tsv", "--caption-column", "text"))
        self.assertEqual((self.out / "00000" / "000000001.txt").read_text(), '"5 inch')
        self.out = self.folder / "of a csv"
        self.write("list.csv", "text,url", f"a,{url}", f'"5 inch,{url}', f"a,{url}")
        self.assertEqual(self.refused("list.csv"), (1, f"bulk: {self.folder}/list.csv, after line 2: unexpected end of data"))

    def test_lists_as_other_programs_write_them(self) -> None:
        url = f"{self.origin.url}/image/1.png"
        (self.folder / "LIST.CSV").write_bytes(f"\ufeffurl,text\r\n{url},é{'x' * 200_000}\r\n".encode())
        self.assertIn("1 loaded, 0 failed", self.run_bulk("LIST.CSV", "--caption-column", "text"))

    def test_values_that_are_no_text_are_taken_as_they_are_written(self) -> None:
        values = [[b"http://a/", 5], [float("nan"), None], [None, 1], ["http://b/", "c"]]
        with unittest.mock.patch.object(lists, "lines", lambda name, open_file, columns: iter(values)):
            read = list(lists.rows("list.parquet", "url", "text"))
        self.assertEqual(read, [(0, "http://a/", "5", ()), (3, "http://b/", "c", ())])

    def test_a_line_that_is_longer_than_the_worker_reads_is_one_failure(self) -> None:
        self.write("list.txt", f"{self.origin.url}/image/1.png", "x" * (33 << 20))
        self.assertIn("1 loaded, 1 failed", self.run_bulk("list.txt"))

    def test_with_keep_another_size_transfers_nothing(self) -> None:
        self.write("list.txt", f"{self.origin.url}/image/1.png?cache-control=no-cache", f"{self.origin.url}/image/2.png")
        self.run_bulk("list.txt", "--keep", "--size", "16")
        before = self.origin.command({"do": "counts"})["requests"]
        self.out = self.folder / "smaller"
        self.assertIn("2 loaded, 0 failed", self.run_bulk("list.txt", "--keep", "--size", "8"))
        self.assertEqual(self.origin.command({"do": "counts"})["requests"], before)

    def test_a_terminal_shows_one_line_that_changes(self) -> None:
        self.write("list.txt", *(f"{self.origin.url}/image/{n}.png" for n in range(20)), "")
        master, terminal = pty.openpty()
        with os.fdopen(master, "rb", buffering=0) as screen:
            run = subprocess.Popen(self.command("list.txt"), stderr=terminal)
            os.close(terminal)
            self.assertEqual(run.wait(), 0)
            *_, last = screen.read(1 << 16).decode().split("\r\x1b[K")
        self.assertRegex(last, r"^20 loaded, 0 failed, \d+/s\r\n$")

    def test_the_end_of_a_run_shows_the_kinds_of_failures_with_an_example_and_a_hint(self) -> None:
        missing = [f"{self.origin.url}/image/{n}.png?status=404&x-token=secret" for n in range(3)]
        self.write("list.txt", f"{self.origin.url}/image/1.png", *missing, f"{self.origin.url}/html?x-token=secret")
        shown = self.run_bulk("list.txt").splitlines()
        hint = {error["kind"]: error.get("hint") for error in DOCUMENT["x-errors"]}
        self.assertIn("1 loaded, 4 failed, ", shown[0])
        self.assertRegex(shown[1], rf"^  3 http        {self.origin.url}/image/\d.png: the server answered 404$")
        self.assertEqual(shown[2].strip(), hint["http"])
        self.assertRegex(shown[3], rf"^  1 notAnImage  {self.origin.url}/html: ")
        self.assertEqual(shown[4].strip(), hint["notAnImage"])
        self.assertEqual(len(shown), 5)

    def test_a_pipe_shows_the_kinds_of_failures_every_minute(self) -> None:
        stream, now = io.StringIO(), 1000.0
        with unittest.mock.patch("time.monotonic", lambda: now):
            run = progress.Progress(stream)
            run.note({"url": "http://a/1.png", "outcome": "connect", "error": "refused"})
            now += 59
            run.note({"url": "http://a/2.png", "outcome": "loaded"})
            self.assertEqual(stream.getvalue(), "")
            now += 2
            run.note({"url": "http://a/3.png", "outcome": "loaded"})
        self.assertEqual(stream.getvalue(), "2 loaded, 1 failed, 0/s\n  1 connect  http://a/1.png: refused\n")

    def test_examples_of_failures_have_no_secrets(self) -> None:
        for url, shown in (
            ("http://ann:secret@a/b.png?token=secret#secret", "http://a/b.png"),
            ("data:image/png;base64,secret", "data:image/png;base64"),
            ("http://[broken", "http://[broken"),
            ("no url at all", "no url at all"),
            ("http://a/" + "x" * 300, "http://a/" + "x" * 191 + "..."),
        ):
            self.assertEqual(progress.shown(url), shown)

    def test_kinds_of_failures_from_several_runs_add_up(self) -> None:
        one, other = progress.Failures(), progress.Failures()
        for kind in ("http", "tls", "tls"):
            one.note({"url": f"http://a/{kind}", "outcome": kind, "error": "one"})
        other.note({"url": "http://b/", "outcome": "http", "error": "two\nlines"})
        one.merge(other.kinds)
        self.assertEqual(
            list(one.lines({"http": "Look."})),
            ["  2 http  http://b/: two lines", "          Look.", "  2 tls   http://a/tls: one"],
        )

    def test_without_a_worker_there_are_no_hints(self) -> None:
        self.assertEqual(progress.hints(str(self.folder / "none")), {})

    def test_it_is_a_command_of_the_installed_package(self) -> None:
        package = self.folder / "site" / "imageworker"
        shutil.copytree(BULK.parent, package / "bulk")
        shutil.copy(BULK.parents[1] / "python" / "imageworker.py", package / "__init__.py")
        self.write("list.txt", f"{self.origin.url}/image/1.png")
        command = [sys.executable, "-m", "imageworker.bulk", *self.command("list.txt")[2:]]
        environment = {**os.environ, "IMAGEWORKER": find_worker(), "PYTHONPATH": str(package.parent)}
        run = subprocess.run(command, cwd=self.folder, env=environment, stderr=subprocess.PIPE, text=True)
        self.assertEqual((run.returncode, run.stderr[:18]), (0, "1 loaded, 0 failed"), run.stderr)
        self.assertEqual(subprocess.run([sys.executable, "-m", "bulk", "--help"], cwd=BULK.parents[1], stdout=subprocess.DEVNULL).returncode, 0)

    def test_standard_error_may_be_closed(self) -> None:
        self.write("list.txt", f"{self.origin.url}/image/1.png")
        self.assertEqual(subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", *self.command("list.txt")]).returncode, 0)
        self.assertEqual([summary["succeeded"] for summary in self.summaries()], [1])


if __name__ == "__main__":
    unittest.main()
