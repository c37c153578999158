#!/usr/bin/env python3
"""`python -m imageworker.bulk` from the checkout, where the package is not installed. See README.md."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from bulk.__main__ import command

    command()
