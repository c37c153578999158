#!/usr/bin/env python3
"""The bytes that examples/mcp puts into a model's context, beside those of the same files in base64.

    Tests/Benchmarks/agents.py

It needs numpy, Pillow, and what Tests/Internet needs. The server runs in a network namespace with a public address.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

sys.dont_write_bytecode = True

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "HostTests"))

from mcp_files import Files  # noqa: E402
from mcp_process import SERVER, RawClient  # noqa: E402
from painting import encoded, photograph  # noqa: E402
from PIL import Image  # noqa: E402
from public_network import PublicNetwork  # noqa: E402

ROUNDS = 5
SHEET = 64


def files() -> Dict[str, bytes]:
    screenshot = Image.open(TESTS.parent / "protocol" / "images" / "gallery.webp").convert("RGB")
    single = {
        "photograph of 12 megapixels, JPEG": encoded(photograph(4032, 3024, 1), "JPEG", quality=90),
        "photograph of 1600 x 1200, JPEG": encoded(photograph(1600, 1200, 2), "JPEG", quality=90),
        "photograph of 1200 x 900, PNG": encoded(photograph(1200, 900, 3), "PNG"),
        f"screenshot of {screenshot.width} x {screenshot.height}, PNG": encoded(screenshot, "PNG", optimize=True),
    }
    many = {f"{number}.jpg": encoded(photograph(600, 450, 10 + number), "JPEG", quality=90) for number in range(SHEET)}
    return {**single, **many}


def base64_size(size: int) -> int:
    return (size + 2) // 3 * 4


def timed(call: Callable[[], Any]) -> Tuple[float, int, str]:
    """Milliseconds, bytes of the result as a line, and its text."""
    begun = time.perf_counter()
    result = call()
    took = (time.perf_counter() - begun) * 1000
    assert not result["isError"], result
    return took, len(json.dumps(result)), str(result["content"][1]["text"])


def measure(folder: Path, network: PublicNetwork, contents: Dict[str, bytes]) -> None:
    names: List[str] = list(contents)
    served = folder / "files"
    served.mkdir()
    for number, name in enumerate(names):
        (served / str(number)).write_bytes(contents[name])
    print(f"{'image':40} {'in base64':>11} {'in the result':>13} {'ratio':>6} {'new':>8} {'cached':>8}")
    with Files(network.prefix, served) as server:
        urls = [f"{server.url}/{number}" for number in range(len(names))]
        cases: List[Tuple[str, int, str, Dict[str, Any]]] = [
            (name, base64_size(len(contents[name])), "fetch_image", {"url": urls[number]})
            for number, name in enumerate(names[:-SHEET])
        ]
        many = sum(base64_size(len(contents[name])) for name in names[-SHEET:])
        cases.append((f"{SHEET} photographs of 600 x 450, as a sheet", many, "contact_sheet", {"urls": urls[-SHEET:]}))
        for name, before, tool, arguments in cases:
            new, cached, size, text = [], [], 0, ""
            for turn in range(ROUNDS):
                cache = folder / f"{tool} {name[:12]} {turn}"
                with RawClient([*network.prefix, sys.executable, str(SERVER), "--cache-dir", str(cache)], folder) as client:
                    client.initialize("2025-06-18")
                    client.result(client.call("probe_image", url=urls[-1]))  # The worker and a decoder have started then.
                    for times in (new, cached):
                        took, size, text = timed(lambda: client.result(client.call(tool, **arguments)))
                        times.append(took)
            ratio = before / size
            print(f"{name:40} {before:11,} {size:13,} {ratio:5.1f}x {statistics.median(new):5.0f} ms {statistics.median(cached):5.0f} ms")
            print("    " + text.split("Sent as ")[1].splitlines()[0])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, PublicNetwork() as network:
        measure(Path(folder), network, files())


if __name__ == "__main__":
    main()
