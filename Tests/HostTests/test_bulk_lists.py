"""Lists of examples/bulk that other programs have damaged, compressed or written in another way, and outcomes of their rows."""

from __future__ import annotations

import bz2
import gzip
import importlib.util
import json
import lzma
import tarfile
import unittest
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bulk_runs import BulkRuns, allow_robots
from origin_process import Origin

from bulk import lists, progress

HAS_ARROW = importlib.util.find_spec("pyarrow") is not None


class Lists(BulkRuns):
    def write_parquet(self, columns: dict[str, Any]) -> None:
        import pyarrow.parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]

        pyarrow.parquet.write_table(pyarrow.table(columns), self.folder / "list.parquet")

    def loaded(self) -> list[int]:
        return [line["row"] for line in self.ledger() if line["outcome"] == "loaded"]

    def test_a_byte_that_is_not_utf_8_costs_its_row_only_if_it_is_in_the_url(self) -> None:
        urls = [f"{self.origin.url}/image/{n}.png".encode() for n in range(4)]
        for name, lines in {
            "list.txt": [urls[0], urls[1] + b"/caf\xe9", urls[2]],
            "list.csv": [b"url,text,more", urls[0] + b",a,b", urls[1] + b"/caf\xe9,a,b", urls[2] + b",a,b"],
            "list.tsv": [b"url\ttext\tmore", urls[0] + b"\ta\tb", urls[1] + b"\tcaf\xe9\tb", urls[2] + b"\ta\tb"],
            "LIST.JSONL": [
                b'{"url": "%s", "text": "a", "more": []}' % urls[0],
                b'{"url": "%s", "text": "a", "more": [{"deep": "caf\xe9"}]}' % urls[1],
                b'{"url": "%s", "text": "a", "more": "b"}' % urls[2],
            ],
            "half.jsonl": [
                b'{"url": "%s", "text": "a", "more": []}' % urls[0],
                b'{"url": "%s", "text": "half of \\ud83d", "more": ""}' % urls[1],
                b'{"url": "%s", "text": "a", "more": "b"}' % urls[2],
            ],
        }.items():
            with self.subTest(name):
                self.out = self.folder / f"out of {name}"
                (self.folder / name).write_bytes(b"\n".join(lines) + b"\n")
                columns = () if name == "list.txt" else ("--caption-column", "text", "--column", "more")
                is_in_url = name in ("list.txt", "list.csv")
                for form in ("webdataset", "files"):
                    self.out = self.folder / f"{form} of {name}"
                    loaded = "2 loaded, 1 failed" if is_in_url else "3 loaded, 0 failed"
                    self.assertIn(loaded, self.run_bulk(name, "--format", form, *columns))
                    line = self.ledger()[1]
                    expected = (1, "invalidParams", "the URL must be UTF-8") if is_in_url else (1, "loaded", None)
                    self.assertEqual((line["row"], line["outcome"], line.get("error")), expected)
                    json.dumps(line, ensure_ascii=False).encode()
                self.assertIn(loaded, self.run_bulk(name, *columns, "--format", "files"), "it goes on")
                if not is_in_url:
                    texts = [(self.out / "00000" / f"000000001.{end}").read_text() for end in ("json", "txt")]
                    self.assertIn("\ufffd", "".join(json.loads(texts[0])["more"][0].values() if "LIST" in name else texts[1]))
        self.assertEqual(progress.shown("http://a/caf\udce9"), "http://a/caf\udce9")
        self.assertEqual(progress.printable("http://a/caf\udce9"), "http://a/caf\\xe9")

    @unittest.skipUnless(HAS_ARROW, "pyarrow is not installed")
    def test_text_of_parquet_that_is_not_utf_8_costs_its_row_only(self) -> None:
        import pyarrow

        def damaged(values: list[bytes]) -> Any:
            binary = pyarrow.array(values, pyarrow.binary())
            return pyarrow.Array.from_buffers(pyarrow.string(), len(values), binary.buffers())

        urls = [f"{self.origin.url}/image/{n}.png".encode() for n in range(4)]
        self.write_parquet({"url": damaged([urls[0], urls[1] + b"\xe9", urls[2], urls[3]]), "text": damaged([b"a", b"a", b"caf\xe9", b"a"])})
        self.assertIn("3 loaded, 1 failed", self.run_bulk("list.parquet", "--caption-column", "text"))
        self.assertEqual((self.out / "00000" / "000000002.txt").read_text(), "caf\ufffd")

    @unittest.skipUnless(HAS_ARROW, "pyarrow is not installed")
    def test_nothing_that_is_not_a_number_gets_into_the_metadata(self) -> None:
        import pyarrow

        nan, url = float("nan"), f"{self.origin.url}/image/1.png".encode()
        self.write_parquet({
            "url": pyarrow.array([url, None, b""], pyarrow.binary()),
            "text": pyarrow.array([nan, 1.0, 2.0]),
            "struct": [{"a": nan, "b": [1.5, float("inf")]}] * 3,
            "list": [[[nan], []]] * 3,
            "map": pyarrow.array([[("a", nan)]] * 3, pyarrow.map_(pyarrow.string(), pyarrow.float64())),
            "half": pyarrow.array([nan] * 3, pyarrow.float64()).cast(pyarrow.float32()),
        })  # fmt: skip
        names = ("struct", "list", "map", "half")
        self.assertIn("1 loaded, 0 failed", self.run_bulk("list.parquet", "--caption-column", "text", *(f"--column={name}" for name in names)))

        def refuse(constant: str) -> None:
            raise AssertionError(constant)

        text = (self.out / "00000" / "000000000.json").read_text()
        about = json.loads(text, parse_constant=refuse)
        self.assertEqual([about[name] for name in names], [{"a": None, "b": [1.5, None]}, [[None], []], [["a", None]], None])
        self.assertNotIn("caption", about)
        self.assertFalse((self.out / "00000" / "000000000.txt").exists(), "a caption of NaN is left out")
        self.assertEqual(lists.plain({"a": (1, {"b": -float("inf")}), 5: True}), {"a": [1, {"b": None}], "5": True})

    @unittest.skipUnless(HAS_ARROW, "pyarrow is not installed")
    def test_a_list_may_be_parts_in_a_folder_or_of_a_pattern(self) -> None:
        import pyarrow.parquet

        parts = self.folder / "parts"
        parts.mkdir()
        urls = [f"{self.origin.url}/image/{n}.png" for n in range(6)]
        for part in range(3):
            pyarrow.parquet.write_table(pyarrow.table({"url": urls[part * 2 : part * 2 + 2]}), parts / f"part-{part:05}.snappy.parquet")
        for name in ("_SUCCESS", ".part-00000.snappy.parquet.crc"):
            (parts / name).touch()
        lists_given = ["parts", "parts/*.parquet"]
        if importlib.util.find_spec("fsspec"):
            lists_given += [f"file://{parts}/", f"file://{parts}/*.parquet"]
        for number, given in enumerate(lists_given):
            with self.subTest(given):
                self.out = self.folder / f"out{number}"
                self.assertIn("6 loaded, 0 failed", self.run_bulk(given, "--shard-size", "4"))
                self.assertEqual([(line["row"], line["url"]) for line in self.ledger()], list(enumerate(urls)))
        self.assertEqual(self.refused("parts/*.csv"), (1, f"bulk: cannot read the list {parts}/*.csv: it has no files"))

    @unittest.skipUnless(importlib.util.find_spec("fsspec"), "fsspec is not installed")
    def test_a_list_may_be_at_a_url(self) -> None:
        self.write("list.csv", "url", f"{self.origin.url}/image/1.png")
        self.assertIn("1 loaded, 0 failed", self.run_bulk(f"file://{self.folder}/list.csv"))
        status, words = self.refused("nothing://a/list.csv")
        self.assertEqual((status, words), (1, "bulk: fsspec cannot use nothing://a/list.csv: Protocol not known: nothing"))
        self.assertIn("cannot read the list", self.refused(f"file://{self.folder}/none.csv")[1])

    def test_json_lines_are_a_table(self) -> None:
        urls = [f"{self.origin.url}/image/{n}.png" for n in range(4)]
        lines = [
            json.dumps({"url": urls[0], "text": "a cat", "score": 1}),
            json.dumps({"url": urls[1], "score": float("nan")}),
            "",
            json.dumps({"url": None, "text": "no image"}),
            '{"url": broken',
            json.dumps({"text": None, "url": urls[2], "score": [float("nan")]}),
            urls[3],
        ]
        text = "\ufeff" + "\n".join(lines)
        for name, packed in {
            "list.jsonl": text.encode(),
            "LIST.NDJSON": text.encode(),
            "list.jsonl.gz": gzip.compress(text.encode()),
            "list.ndjson.xz": lzma.compress(text.encode()),
            "list.jsonl.bz2": bz2.compress(text.encode()),
        }.items():
            with self.subTest(name):
                (self.folder / name).write_bytes(packed)
                self.out = self.folder / f"out of {name}"
                said = self.run_bulk(name, "--caption-column", "text", "--column", "score", "--format", "webdataset")
                self.assertIn("4 loaded, 1 failed", said)
                self.assertEqual(self.loaded(), [0, 1, 5, 6])
                self.assertEqual(self.failures(), {(4, "invalidParams")})
                with tarfile.open(self.out / "00000.tar") as tar:
                    self.assertEqual([name for name in tar.getnames() if name.endswith(".txt")], ["000000000.txt"])
        status, words = self.refused("list.jsonl", "--url-column", "link")
        self.assertEqual((status, words), (1, f"bulk: {self.folder}/list.jsonl must have a column 'link'; it has url, text, score"))

    def test_compressed_tables_are_read_and_other_formats_are_refused(self) -> None:
        url = f"{self.origin.url}/image/1.png"
        (self.folder / "list.csv.gz").write_bytes(gzip.compress(f"url,text\n{url},a\n".encode()))
        self.assertIn("1 loaded, 0 failed", self.run_bulk("list.csv.gz", "--caption-column", "text"))
        content = f"{url}\n".encode()
        for name, packed, words in (
            ("list.parquet.gz", gzip.compress(content), "a format that is not read: use .parquet, .csv, .tsv, .jsonl"),
            ("list.json", b"[]", "a format that is not read"),
            ("list.txt.zst", content, "a format that is not read"),
            ("list.xlsx", content, "a format that is not read"),
            ("list.txt", gzip.compress(content), "is not text in UTF-8"),
            ("list.csv", "url\n".encode("utf-16"), "is not text in UTF-8"),
            ("cut.csv.gz", gzip.compress(b"url\n" + content * 9)[:-12], "ended before the end-of-stream marker was reached"),
            ("none.jsonl.gz", content, "Not a gzipped file"),
        ):
            with self.subTest(name):
                self.out = self.folder / f"out of {name}"
                (self.folder / name).write_bytes(packed)
                status, said = self.refused(name)
                self.assertEqual((status, words in said), (1, True), said)
                self.assertFalse(self.out.exists())

    def test_a_redirect_to_a_server_with_a_long_crawl_delay_is_a_fault_of_its_row(self) -> None:
        rules = "User-agent: *\nCrawl-delay: 100"
        answer = f"HTTP/1.1 200 OK\r\nContent-Length: {len(rules)}\r\n\r\n{rules}".encode().hex("%")
        with Origin() as slow:
            slow.command({"do": "script", "target": "/robots.txt", "answers": [f"/text?raw=%{answer}"]})
            allow_robots(self.origin)
            targets = [f"{self.origin.url}/image/{n}.png?redirect={quote(f'{slow.url}/image/{n}.png')}" for n in range(3)]
            self.write("list.txt", *targets, f"{self.origin.url}/image/9.png")
            said = self.run_bulk("list.txt", "--passes", "1")
        self.assertIn("2 loaded, 2 failed", said)
        failed = [line for line in self.ledger() if line["outcome"] != "loaded"]
        self.assertEqual([(line["outcome"], line["retryable"]) for line in failed], [("overloaded", True)] * 2)

    def test_rows_wait_while_the_queue_of_the_worker_is_full(self) -> None:
        self.write("list.txt", *(f"{self.origin.url}/image/{n}.png" for n in range(8)))
        said = self.run_bulk("list.txt", "--worker-option=--max-queued=1", "--worker-option=--max-concurrent=1")
        self.assertIn("8 loaded, 0 failed", said)

    def test_a_terminal_gets_no_control_characters_of_urls(self) -> None:
        hostile = "http://a/\x1b]0;title\x07\x9b2J\u202e\u2066\u200f\u2028\x7f\0x"
        escaped = r"http://a/\x1b]0;title\x07\x9b2J\u202e\u2066\u200f\u2028\x7f\x00x"
        of_run = progress.Failures()
        of_run.note({"url": hostile, "outcome": "http", "error": f"cannot load {hostile}"})
        (line,) = of_run.lines()
        self.assertTrue(line.isprintable(), ascii(line))
        self.assertIn(escaped, line)
        self.assertEqual(progress.printable("http://a/caf\xe9/\U0001f600 b"), "http://a/caf\xe9/\U0001f600 b")
        (self.folder / "list.txt").write_bytes(f"{self.origin.url}/\x1b[31m\x07\u202e.png?status=404\n".encode())
        said = self.run_bulk("list.txt")
        self.assertTrue(said.replace("\n", "").isprintable(), ascii(said))
        self.write("list.csv", "\x1b[31mlink", "data:,")
        status, words = self.refused("list.csv")
        self.assertEqual((status, words), (1, f"bulk: {self.folder}/list.csv must have a column 'url'; it has \\x1b[31mlink"))


if __name__ == "__main__":
    unittest.main()
