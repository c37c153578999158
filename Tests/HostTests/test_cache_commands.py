"""`imageworker cache`: its command line, and `ls` and `du`."""

from __future__ import annotations

import os
import re
import subprocess
import unittest
from pathlib import Path

from cache_commands import PNG, CommandsTest, command, run, run_line, run_on_terminal
from test_cache_disk import Worker

COMMANDS = ["ls", "du", "why", "verify", "rm"]


class CommandLine(CommandsTest):
    def test_help_describes_every_command_and_option(self) -> None:
        overview = run_line("cache", "--help")
        self.assertEqual((overview.status, overview.errors), (0, ""))
        self.assertEqual(re.findall(r"(?m)^  (\w+)", overview.output), COMMANDS)
        self.assertLessEqual(max(map(len, overview.output.splitlines())), 100)
        for name in COMMANDS:
            for arguments in (["cache", name, "--help"], ["cache", name, "-h"], ["cache", "help", name]):
                result = run_line(*arguments)
                self.assertEqual((result.status, result.errors), (0, ""))
            self.assertTrue(result.output.startswith(f"usage: imageworker cache {name}"))
            paragraphs = [line for line in result.output.splitlines() if not line.startswith("  --")]
            self.assertLessEqual(max(map(len, paragraphs)), 100)
            for word in ("--cache-dir DIR", "--json", "Examples:", "Exit status: 0 ", "66 no such cache"):
                self.assertIn(word, result.output)
        self.assertIn("imageworker cache", run_line("--help").output)

    def test_wrong_arguments_are_named_with_what_would_be_right(self) -> None:
        for line, hint in {
            "": "a command must be given: ls, du",
            "sl": "sl is not a command (did you mean ls?)",
            "list": "list is not a command (known: ls, du",
            "--json ls": "--json is given before the command",
            "ls stray": "unexpected argument stray",
            "ls --sort": "--sort must have a value: ORDER",
            "ls --sort --json": '--sort must have a value: ORDER (given: "--json")',
            "ls --sort bytes": '--sort must be one of key, size, age, used, uses (given: "bytes")',
            "ls --limit 0": "--limit must be an integer from 1",
            "ls --revers": "--revers is not an option (did you mean --reverse?)",
            "ls -l": "-l is not an option",
            "ls --reverse=1": "--reverse must not have a value",
            "ls --json --text": "--json and --text must not be given together",
            "ls --host http://a": "--host must be a host name or name:port",
            "ls --older-than 5": "--older-than must be a duration",
            "ls --url x": "x is not a URL that can be loaded",
            "ls --prefix=": "--prefix must not be empty",
            "ls --cache-namespace a/b": "--cache-namespace must be a valid folder name",
            "why": "URL or --key must be given",
            "why http://a http://b": "unexpected argument http://b; it takes URL",
            "why http://a --cache never": "--cache must be one of default, no-store",
            "why http://a --transform {": "--transform is refused: transform must be a JSON object",
            'why http://a --transform {"with":1}': "transform.with (did you mean width?)",
            "rm": "a filter must be given, or --all",
            "rm --all --expired": "--all and a filter must not be given together",
        }.items():
            with self.subTest(line=line):
                result = run_line("cache", *line.split())
                self.assertEqual((result.status, result.output), (64, ""))
                self.assertIn(hint, result.errors)
                self.assertEqual(result.errors.count("\n"), 1)
        self.assertIn("did you mean imageworker cache?", run_line("cahce", "ls").errors)

    def test_a_cache_that_is_missing_is_named(self) -> None:
        self.store("http://a.example/1.png")
        url = ["http://a.example/1.png"]
        for name in COMMANDS:
            arguments = {"why": url, "rm": ["--all"]}.get(name, [])
            with self.subTest(command=name):
                result = run(name, self.folder / "nowhere", *arguments)
                self.assertEqual((result.status, result.output), (66, ""))
                self.assertIn("No such file or directory; name the directory of the worker with --cache-dir", result.errors)
                result = run(name, self.cache, "--cache-namespace", "other", *arguments)
                self.assertEqual((result.status, result.output), (66, ""))
                self.assertIn("has no namespace other", result.errors)
        self.assertFalse((self.folder / "nowhere").exists())
        self.assertFalse((self.cache / "other").exists())

    def test_a_closed_output_ends_a_command_without_a_message(self) -> None:
        self.store("http://a.example/1.png")
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "wb") as output:
            process = subprocess.run(command("ls", self.cache), stdout=output, stderr=subprocess.PIPE)
        self.assertEqual((process.returncode, process.stderr), (74, b""))
        with open("/dev/full", "wb") as output:
            process = subprocess.run(command("ls", self.cache), stdout=output, stderr=subprocess.PIPE)
        self.assertEqual(process.returncode, 74)
        self.assertIn(b"standard output cannot be written: No space left on device", process.stderr)

    def test_the_default_directory_is_that_of_the_worker(self) -> None:
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder)}
        self.cache = self.folder / "imageworker"
        self.store("http://a.example/1.png")
        process = subprocess.run(
            [command("ls", self.cache)[0], "cache", "ls"], env=environment, capture_output=True, check=True
        )
        self.assertIn(b"http://a.example/1.png", process.stdout)


class Listing(CommandsTest):
    URLS = [f"http://h{number % 2}.example/{number}.png" for number in range(5)]

    def test_orders_cuts_and_filters(self) -> None:
        self.store(*self.URLS)
        ordered = [url for url in sorted(self.URLS)]
        self.assertEqual(self.listed(), ordered)
        self.assertEqual(self.listed("--reverse", "--limit", "2"), ordered[:-3:-1])
        for order in ("size", "age", "used", "uses"):
            self.assertEqual(sorted(self.listed("--sort", order)), ordered)
            self.assertEqual(self.listed("--sort", order), self.listed("--sort", order, "--reverse")[::-1])
            self.assertEqual(self.listed("--sort", order, "--limit", "3"), self.listed("--sort", order)[:3])
        self.assertEqual(self.listed("--host", "h1.example"), [self.URLS[1], self.URLS[3]])
        self.assertEqual(self.listed("--host", "h1.example:81"), [])
        self.assertEqual(self.listed("--url", self.URLS[2] + "#fragment"), [self.URLS[2]])
        self.assertEqual(self.listed("--url", self.URLS[2] + "?utm=1", "--key-ignore-query", "utm"), [self.URLS[2]])
        self.assertEqual(self.listed("--prefix", "http://h0", "--key", self.URLS[1]), [])
        self.assertEqual(self.listed("--expired"), [])
        self.assertEqual(self.listed("--older-than", "0"), ordered)
        self.assertEqual(self.listed("--older-than", "1d"), [])

    def test_an_entry_is_what_query_reports(self) -> None:
        origin = self.origin()
        url = origin.url("kept-0S")
        with Worker(self.cache) as worker:
            for _ in range(3):
                worker.call("load", url=url)
        with Worker(self.cache) as worker:
            found = worker.call("query", url=url)["result"]
        [entry] = run("ls", self.cache).objects
        self.assertEqual(entry["uses"], found["uses"])
        self.assertEqual(entry["usedAt"], found["usedAt"])
        self.assertEqual(str(self.cache / "default" / entry["file"]), found["path"])
        for member in ("bytes", "storedAt", "expiresAt"):
            self.assertEqual(entry[member], found[member])
        self.assertEqual((entry["fresh"], entry["variants"], entry["format"]), (True, 0, "png"))
        self.assertEqual(Path(found["path"]).stat().st_size, entry["bytes"])

    def test_variants_belong_to_their_original(self) -> None:
        url = "http://a.example/1.png"
        self.store(url)
        with Worker(self.cache) as worker:
            made = worker.call("load", url=url, transform={"width": 1, "format": "webp"})
            self.assertIn("result", made)
        original, variant = run("ls", self.cache).objects
        self.assertEqual((original["variants"], "variant" in original), (1, False))
        self.assertEqual((variant["variants"], variant["format"]), (0, "webp"))
        self.assertIn("webp", variant["variant"])
        sums = {(each["group"], each["name"]): each for each in run("du", self.cache).objects}
        self.assertEqual(sums["kind", "variants"]["bytes"], variant["bytes"])
        self.assertEqual(sums["host", "a.example"]["images"], 2)
        self.assertEqual(sums["total", "images"]["allocated"], original["allocated"] + variant["allocated"])
        self.assertEqual(run("rm", self.cache, "--expired").status, 1)
        self.assertEqual(run("rm", self.cache, "--older-than", "0").objects[0]["removed"], 2)

    def test_text_on_a_terminal_and_lines_of_json_in_a_pipe(self) -> None:
        self.store(*self.URLS)
        status, shown = run_on_terminal("ls", self.cache)
        self.assertEqual(status, 0)
        self.assertEqual(len(shown.splitlines()), 7)
        self.assertRegex(shown, r"SIZE +AGE +FRESHNESS +USES +LAST USE +FORMAT +VARIANTS +KEY")
        self.assertRegex(shown, rf" 70 .* fresh for \d+d .* png .* {re.escape(self.URLS[0])}")
        self.assertIn("5 images, 350 (20K on disk)", shown)
        self.assertEqual(run("ls", self.cache, "--text").output.splitlines()[-1], shown.splitlines()[-1])
        status, shown = run_on_terminal("ls", self.cache, "--json")
        self.assertEqual(shown.count('{"key":'), 5)
        status, shown = run_on_terminal("verify", self.cache)
        self.assertRegex(shown, r"\r\d+ %, \d of 5 images")
        self.assertIn("5 images, 350 (20K on disk): all intact", shown)
        self.assertIn("total", run_on_terminal("du", self.cache)[1])

    def test_a_name_cannot_command_the_terminal(self) -> None:
        self.store("http://a.example/", key="a\x1b[2J\nb")
        output = run("ls", self.cache, "--text").output
        self.assertIn("a [2J b", output)
        self.assertNotIn("\x1b", output)
        self.assertEqual(self.listed(), ["a\x1b[2J\nb"])

    def test_reading_changes_nothing(self) -> None:
        self.store(*self.URLS)
        before = self.files()
        for name, *arguments in (["ls", "--sort", "size"], ["du"], ["why", self.URLS[0]], ["verify"]):
            self.assertEqual(run(name, self.cache, *arguments).status, 0)
            self.assertEqual(self.files(), before, name)


if __name__ == "__main__":
    unittest.main()
