"""The documents: links lead somewhere, the reference is in step with openrpc.json, and lists are complete."""

from __future__ import annotations

import json
import os
import re
import unittest
from pathlib import Path
from urllib.parse import unquote

import reference
from package import ROOT

FENCE = re.compile(r"(?ms)^ *```.*?^ *```\n?")
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]+)\)")
HEADING = re.compile(r"(?m)^#+ (.+)$")


def documents() -> list[Path]:
    """The pages of the project, without those in hidden folders such as builds."""
    pages = []
    for folder, names, files in os.walk(ROOT):
        names[:] = [name for name in names if not name.startswith(".")]
        pages += [Path(folder) / name for name in files if name.endswith(".md")]
    return sorted(pages)


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    found: dict[str, int] = {}
    for heading in HEADING.findall(FENCE.sub("", page.read_text())):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number = found.get(anchor, 0)
        found[anchor] = number + 1
        if number:
            found[f"{anchor}-{number}"] = 1
    return set(found)


def broken_links(page: Path) -> list[str]:
    text = CODE.sub(lambda code: "`" * len(code[0]), FENCE.sub("", page.read_text()))
    broken = []
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = unquote(target).partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and (file.suffix != ".md" or anchor not in anchors(file))):
            broken.append(f"{os.path.relpath(page, ROOT)}: {target}")
    return broken


class Links(unittest.TestCase):
    def test_each_link_leads_to_a_file_and_a_heading(self) -> None:
        pages = documents()
        self.assertGreater(len(pages), 20)
        broken = [link for page in pages for link in broken_links(page)]
        self.assertEqual(broken, [])

    def test_each_page_is_linked_from_another(self) -> None:
        pages = set(documents())
        linked: set[Path] = set()
        for page in pages:
            targets = LINK.findall(FENCE.sub("", page.read_text()))
            linked |= {(page.parent / unquote(target).partition("#")[0]).resolve() for target in targets} - {page}
        self.assertEqual(sorted(str(page.relative_to(ROOT)) for page in pages - linked - {ROOT / "README.md"}), [])


class Reference(unittest.TestCase):
    def test_the_reference_is_in_step_with_the_document(self) -> None:
        document = json.loads((ROOT / "protocol" / "openrpc.json").read_text("ascii"))
        page = reference.PAGE.read_text()
        self.assertEqual(page, reference.generated(page, document), "run Tests/HostTests/reference.py --write")

    def test_the_reference_has_each_method_event_error_and_option(self) -> None:
        document = json.loads((ROOT / "protocol" / "openrpc.json").read_text("ascii"))
        parts = set(reference.PART.findall(reference.PAGE.read_text()))
        for method in document["methods"]:
            expected = {("errors", method["name"]), ("example", method["name"])}
            if method["params"]:
                expected.add(("params", method["name"]))
            self.assertLessEqual(expected, parts, method["name"])
        for event in document["x-events"]:
            self.assertIn(("event", event["name"]), parts)
        self.assertLessEqual({("methods", ""), ("events", ""), ("kinds", ""), ("options", "")}, parts)


class Transcripts(unittest.TestCase):
    def test_each_transcript_is_listed(self) -> None:
        folder = ROOT / "protocol" / "transcripts"
        listed = re.findall(r"(?m)^\| \[[\w-]+\]\(([\w-]+\.jsonl)\) \| .+ \|$", (folder / "README.md").read_text())
        self.assertEqual(sorted(listed), sorted(path.name for path in folder.glob("*.jsonl")))


def text(*parts: str) -> str:
    return ROOT.joinpath(*parts).read_text()


class FactsThatStandTwice(unittest.TestCase):
    """Facts of the sources, of the benchmarks and of openrpc.json on pages where people read them."""

    def test_the_version_of_the_index_is_that_of_the_source(self) -> None:
        version = int(re.findall(r"static let version = (\d+)", text("Sources", "ImageStore", "Index", "IndexSchema.swift"))[0])
        page = text("protocol", "versions.md")
        self.assertIn(f"| index version | {version} |", page)
        self.assertIn(f"Index versions 1 to\n  {version - 1} are supported", page)
        for name in ("versions.md", "CHANGES.md", "cache-failures.md"):
            numbers = re.findall(r"(?i)index version (?:\| )?(\d+)", text("protocol", name))
            self.assertLessEqual(set(numbers), {str(version)}, name)

    def test_the_versions_are_those_of_openrpc_json(self) -> None:
        document = json.loads(text("protocol", "openrpc.json"))
        release, protocol = document["info"]["version"], document["x-protocol-version"]
        rows = text("protocol", "versions.md")
        self.assertIn(f"| worker version | {release} |", rows)
        self.assertIn(f"| protocol version | {protocol} |", rows)
        for page in documents():
            for found in re.findall(r"imageworker[_-](\d+\.\d+\.\d+)", page.read_text()):
                self.assertEqual(found, release, page)

    def test_the_example_of_initialize_has_all_methods_and_events(self) -> None:
        document = json.loads(text("protocol", "openrpc.json"))
        (initialize,) = (method for method in document["methods"] if method["name"] == "initialize")
        for example in initialize["examples"]:
            answer = example["result"]["value"]
            self.assertEqual(answer["methods"], [method["name"] for method in document["methods"]])
            self.assertEqual(answer["events"], [event["name"] for event in document["x-events"]])
            self.assertEqual(answer["server"]["version"], document["info"]["version"])
            self.assertEqual(answer["protocolVersion"], document["x-protocol-version"])

    def test_the_figures_of_the_first_page_are_those_of_the_benchmarks(self) -> None:
        rows = re.findall(r"(?m)^\| ([^|\n]+) \| ([^|\n]+) \| [^|\n]* \|$", text("Tests", "Benchmarks", "README.md"))
        results = {name: re.findall(r"[\d,.]*\d", value) for name, value in rows}
        speed = text("README.md").partition("## Speed")[2].partition("\n## ")[0]
        for figure, measured in (
            ("cached images from memory", "warm: from memory / diskcache's `get`, without a pipe"),
            ("new images of 10 kB", "cold: worker / `curl -Z`"),
            ("thumbnails of JPEGs of 1600 x 1200", "decode: thumbnails, worker / 2 processes with pyvips"),
        ):
            worker, peer = re.findall(rf"\| {figure} \| ([\d,]+) \| .+: ([\d,]+) \|", speed)[0]
            self.assertEqual([worker, peer], [number for number in results[measured] if number != "2"][:2], figure)
        idle = results["memory: idle"][0]
        self.assertIn(f"takes {idle} MB of memory", text("README.md"))
        sizes = text("examples", "operating", "README.md")
        self.assertIn(f"| memory at rest | {idle} MB |", sizes)
        self.assertIn(f"100,000 waiting loads take {results['queue: 100,000 waiting loads'][0]} MB", sizes)
        bulk = text("examples", "bulk", "README.md")
        for name, row in (
            ("bulk: 600 x 450 as they come, `bulk.py` / img2dataset", r"\| .* 60 kB, not scaled \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|"),
            ("bulk: 600 x 450 to 256", r"\| 2,500 of them, to 256 pixels \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|"),
            ("bulk: 1600 x 1200 to 256", r"\| 625 of 1600 x 1200, to 256 pixels \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|"),
        ):
            (figures,) = re.findall(row, bulk)
            self.assertLessEqual(set(figures), set(results[name]), name)

    def test_the_defaults_of_the_clients_are_those_of_their_pages(self) -> None:
        node, page = text("examples", "node", "imageworker.mjs"), text("examples", "node", "README.md")
        for name, documented in (
            ("maxRestarts", r"\| `maxRestarts` \| ([\d,]+) \|"),
            ("longestPauseMs", r"\| `longestPauseMs` \| ([\d,]+) \|"),
            ("maxInFlight", r"`maxInFlight` \(default ([\d,]+)\)"),
        ):
            (default,) = set(re.findall(rf"\b{name} = ([\d_]+)", node))
            self.assertEqual(re.findall(documented, page)[0].replace(",", ""), default.replace("_", ""), name)
        python, page = text("examples", "python", "imageworker.py"), text("examples", "python", "README.md")
        (restarts,) = re.findall(r"_max_restarts = (\d+) if restarts is None", python)
        (pause,) = re.findall(r"_longest_pause = (\d+)\.0 if pause is None", python)
        (at_once,) = set(re.findall(r"at_once: int = ([\d_]+)", python))
        self.assertIn(f"| {restarts} deaths (`max_restarts`)", page)
        self.assertIn(f"{pause} s (`longest_pause`)", page)
        self.assertIn(f"`at_once` (default {int(at_once):,})", page)

    def test_the_options_of_bulk_py_are_those_of_its_page(self) -> None:
        source = text("examples", "bulk", "choices.py")
        page = text("examples", "bulk", "README.md").partition("| option | default | meaning |")[2].partition("\n## ")[0]
        rows = dict(re.findall(r"(?m)^\| `(--[a-z-]+)[^|`]*(?:\\\|[^|`]*)*` \| ([^|]*?) ?\|", page))
        self.assertEqual(set(rows), set(re.findall(r'add\("(--[a-z-]+)"', source)))
        for flag, default in re.findall(r'add\("(--[a-z-]+)".*default=("?[\w]+"?)', source):
            documented = rows[flag].strip("`").replace(",", "")
            if default != "unsaid":
                self.assertEqual(documented, default.strip('"').replace("_", ""), flag)

    def test_the_limits_among_the_sizes_are_the_defaults(self) -> None:
        document = json.loads(text("protocol", "openrpc.json"))
        defaults = {option["flag"]: option.get("default") for option in document["x-options"]}
        sizes = text("examples", "operating", "README.md").partition("\n## Sizes")[2].partition("\n## ")[0]
        limits = re.findall(r"`(--[a-z-]+)`, (\d+ ?[A-Z%]?)", sizes)
        self.assertGreaterEqual(len(limits), 3)
        for flag, value in limits:
            self.assertEqual(value.replace(" ", "").rstrip("%"), str(defaults[flag]).rstrip("%"), flag)

    def test_the_trees_of_errors_are_those_of_the_clients(self) -> None:
        python = dict(re.findall(r"(?m)^class (\w+)\((\w+)\):", text("examples", "python", "imageworker.py")))
        node = dict(re.findall(r"(?m)^export class (\w+) extends (\w+) ", text("examples", "node", "imageworker.mjs")))
        for folder, parents in (("python", python), ("node", node)):
            tree = re.findall(r"(?ms)^```\nImageWorkerError\n(.*?)^```", text("examples", folder, "README.md"))[0]
            documented, above = {}, ["ImageWorkerError"]
            for line in tree.splitlines():
                names = re.findall(r"[A-Z]\w+", line.partition(" .")[0])
                depth = re.search(r"[A-Z]", line)
                assert depth is not None
                level = depth.start() // 4
                for name in names:
                    documented[name] = above[level - 1]
                above[level:] = names[-1:]
            errors = {name for name in parents if is_error(name, parents)}
            self.assertEqual(documented, {name: parents[name] for name in errors}, folder)

    def test_the_recipes_have_the_names_of_the_table(self) -> None:
        listed = re.findall(r"(?m)^\| `([a-z-]+)[^`]*` \|", text("examples", "shell", "README.md").partition("| exit status")[0])
        files = [path.name for path in (ROOT / "examples" / "shell").iterdir() if path.suffix == "" and path.name not in ("begin", "find-worker", "clean-list")]
        self.assertEqual(sorted(listed), sorted(files))

    def test_the_paths_of_the_package_are_those_that_it_is_packed_with(self) -> None:
        packing = text("examples", "operating", "packaging", "debian.py")
        pages = text("examples", "operating", "README.md") + text("README.md")
        for path in set(re.findall(r"(?<![\w/.])/usr/(?:bin|lib|share)/[\w./-]*imageworker[\w/-]*", pages)):
            root = re.sub(r"/(examples|protocol)\b.*", "", path).lstrip("/")
            self.assertIn(root, packing, path)

    def test_exit_statuses_that_a_restart_would_repeat_are_documented(self) -> None:
        statuses = set(map(int, re.findall(r"(?m)^\| (\d+) \|", text("protocol", "reference.md").partition("## Exit statuses")[2])))
        python = re.findall(r"_HOPELESS = \(([\d, ]+)\)", text("examples", "python", "imageworker.py"))[0]
        node = re.findall(r"hopeless = new Set\(\[([\d, ]+)\]\)", text("examples", "node", "imageworker.mjs"))[0]
        self.assertEqual(python, node)
        self.assertLessEqual(set(map(int, python.split(", "))), statuses)


def is_error(name: str, parents: dict[str, str]) -> bool:
    while name in parents:
        name = parents[name]
        if name == "ImageWorkerError":
            return True
    return False


if __name__ == "__main__":
    unittest.main()
