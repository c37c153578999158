"""The command `imageworker` of the wheel, also `python -m imageworker`. The worker takes the place of Python."""

import os
import sys
from pathlib import Path


def main() -> None:
    # find_worker could return this command, which would then start itself again and again.
    worker = str(Path(__file__).with_name("bin") / "imageworker")
    os.execv(worker, [worker, *sys.argv[1:]])


if __name__ == "__main__":
    main()
