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
            broken.append(f"{page.relative_to(ROOT)}: {target}")
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


if __name__ == "__main__":
    unittest.main()
