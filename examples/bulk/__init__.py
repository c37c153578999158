"""A list of URLs to a folder or to shards of images: `imageworker.bulk` in the installed package, `bulk` in the checkout."""

import sys
from pathlib import Path

if __name__ == "bulk":  # In the checkout, the client is in another folder.
    sys.path.append(str(Path(__file__).resolve().parents[1] / "python"))
