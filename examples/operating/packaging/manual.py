"""The manual page: the options as `imageworker --help` prints them, in the sections of imageworker.1."""

from __future__ import annotations

import re
import string
import time
from pathlib import Path

from release_files import Release, Stop, said


def manual(release: Release) -> str:
    usage = said(release.build / "imageworker", "--help")
    options = re.findall(r"^  (-\S+(?: \S+)*)  +(\S.*)$", usage, re.MULTILINE)
    lines = re.findall(r"^ *-", usage, re.MULTILINE)
    if len(options) != len(lines):
        raise Stop(f"the help has {len(lines)} lines that begin with an option, of which {len(options)} can be read")
    # After the options come the paragraphs about values and exit status.
    values, separator, statuses = usage[usage.rindex("\n\n") + 2 :].partition("Exit status: ")
    if not separator:
        raise Stop("the last paragraph of the help must contain the exit status")
    template = string.Template((Path(__file__).parent / "imageworker.1").read_text("utf-8"))
    return template.substitute(
        date=time.strftime("%Y-%m-%d", time.gmtime(release.time)),
        version=release.version,
        options="\n".join(f".TP\n.B {escaped(flag)}\n{escaped(meaning)}" for flag, meaning in options),
        values=escaped(" ".join(values.split())),
        statuses=escaped(" ".join(statuses.split())),
    )


def escaped(text: str) -> str:
    """Text for groff: with hyphens that can be copied, and without a request at the beginning of a line."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text
