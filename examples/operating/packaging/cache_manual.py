"""The manual page imageworker-cache.1: what `imageworker cache --help` and the help of each command print."""

from __future__ import annotations

import re
import time

from manual import escaped
from release_files import Release, Stop, said


def cache_manual(release: Release) -> str:
    worker = release.build / "imageworker"
    overview = said(worker, "cache", "--help")
    commands = re.findall(r"(?m)^  (\w+)(?: [A-Z]+)?  +\S", overview)
    if not commands:
        raise Stop("the help of imageworker cache must list its commands")
    date = time.strftime("%Y-%m-%d", time.gmtime(release.time))
    page = [
        f'.TH IMAGEWORKER\\-CACHE 1 {date} "imageworker {release.version}" "User Commands"',
        ".SH NAME",
        "imageworker\\-cache \\- show and change the image cache of a directory",
        ".SH SYNOPSIS",
        ".B imageworker cache",
        ".I COMMAND",
        ".RI [ options ]",
        ".SH DESCRIPTION",
        *blocks(overview),
        ".SH COMMANDS",
    ]
    for command in commands:
        page += blocks(said(worker, "cache", command, "--help"))
    page += [".SH SEE ALSO", ".BR imageworker (1)"]
    return "\n".join(page) + "\n"


def blocks(text: str) -> list[str]:
    """The requests of groff for a help text, whose blocks are separated by empty lines."""
    page: list[str] = []
    for block in text.rstrip().split("\n\n"):
        if block.startswith("usage: "):
            # That of the overview is in the synopsis.
            usage = block.removeprefix("usage: ")
            page += [f'.SS "{escaped(usage)}"'] if "COMMAND" not in usage else []
        elif block.startswith("  "):
            page += table(block)
        else:
            page += [".PP", escaped(" ".join(block.split()))]
    return page


def table(block: str) -> list[str]:
    """A table of options or commands, or examples with their meanings on lines of their own."""
    if block.startswith("    "):
        lines = block.splitlines()
        pairs = list(zip(lines[::2], lines[1::2]))
    else:
        pairs = re.findall(r"(?ms)^  (\S.*?)  +(\S.*?)(?=^  \S|\Z)", block)
    page: list[str] = []
    for name, meaning in pairs:
        page += [".TP", f".B {escaped(name.strip())}", escaped(" ".join(meaning.split()))]
    return page
