#!/usr/bin/env python3
"""Draws flow.svg from the samples of the flow simulator.

    FLOW_TABLE=flow.json swift test --filter FlowTableTests
    Tests/Benchmarks/flow_plot.py flow.json Tests/Benchmarks/flow.svg

The upper plot has the time of each method in each scenario, divided by the time of the best fixed windows. The lower
plot has the window of the host in the scenario "step", beside what the host serves at once. Needs no packages.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from typing import Any, Dict, List, Sequence, Tuple
from xml.sax.saxutils import escape

METHODS: Dict[str, Tuple[str, str, str]] = {
    "plateau": ("plateau (the worker)", "#0b6e4f", "circle"),
    "gradient": ("gradient of latency", "#c8553d", "square"),
    "product": ("bandwidth-delay product", "#3d5a98", "diamond"),
    "fixed": ("6 of 32", "#8a8a8a", "cross"),
}
WIDTH = 860
LEFT, RIGHT = 150, 20
ROW = 24


class Drawing:
    def __init__(self) -> None:
        self.parts: List[str] = []

    def line(self, x1: float, y1: float, x2: float, y2: float, color: str = "#d8d8d8") -> None:
        self.parts.append(f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{color}"/>')

    def text(
        self, x: float, y: float, text: str, anchor: str = "start", color: str = "#333", bold: bool = False
    ) -> None:
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}"{weight}>{escape(text)}</text>')

    def rectangle(self, x: float, y: float, width: float, height: float, color: str) -> None:
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}"/>')

    def marker(self, x: float, y: float, method: str) -> None:
        _, color, shape = METHODS[method]
        if shape == "circle":
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{color}"/>')
        else:
            path = {
                "square": f"M{x - 4:.1f} {y - 4:.1f}h8v8h-8z",
                "diamond": f"M{x:.1f} {y - 5.5:.1f}l5.5 5.5l-5.5 5.5l-5.5 -5.5z",
                "cross": f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8",
            }[shape]
            style = f'fill="{color}" fill-opacity="0.85"'
            if shape == "cross":
                style = f'fill="none" stroke="{color}" stroke-width="2"'
            self.parts.append(f'<path d="{path}" {style}/>')

    def steps(self, points: Sequence[Tuple[float, float]], color: str, width: float) -> None:
        """Draws a line that keeps each value until the next one."""
        path: List[str] = []
        last = None
        for x, y in points:
            if last is None:
                path.append(f"M{x:.1f} {y:.1f}")
            elif y != last:
                path.append(f"H{x:.1f}V{y:.1f}")
            last = y
        path.append(f"H{points[-1][0]:.1f}")
        self.parts.append(f'<path d="{"".join(path)}" fill="none" stroke="{color}" stroke-width="{width}"/>')


def draw_ratios(drawing: Drawing, rows: List[Any], top: float) -> float:
    """Returns where it ends."""
    least, most = 0.95, 100
    bottom = top + ROW * len(rows)

    def place(ratio: float) -> float:
        part = math.log(min(max(ratio, least), most) / least) / math.log(most / least)
        return LEFT + (WIDTH - LEFT - RIGHT) * part

    drawing.rectangle(place(least), top, place(1.15) - place(least), bottom - top, "#e3f1eb")
    for tick in (1, 1.5, 2, 3, 5, 10, 20, 50, 100):
        drawing.line(place(tick), top, place(tick), bottom)
        drawing.text(place(tick), bottom + 16, f"{tick:g}", "middle", "#666")
    for index, row in enumerate(rows):
        y = top + ROW * (index + 0.5)
        drawing.text(LEFT - 10, y + 4, row["scenario"], "end")
        drawing.line(LEFT, y, WIDTH - RIGHT, y, "#eee")
        for method in reversed(METHODS):
            drawing.marker(place(statistics.median(row["methods"][method]["ratios"])), y, method)
    title = "time, divided by the time of the best fixed windows (shaded: up to 1.15)"
    drawing.text(LEFT, bottom + 34, title, color="#666")
    return bottom + 34


def draw_windows(drawing: Drawing, table: Any, top: float) -> float:
    """Returns where it ends."""
    height, end = 220, 50
    bottom = top + height

    def x(time: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * time / end

    def y(size: float) -> float:
        return bottom - height * math.log2(size) / 8

    for size in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        drawing.line(LEFT, y(size), WIDTH - RIGHT, y(size), "#eee")
        drawing.text(LEFT - 10, y(size) + 4, str(size), "end", "#666")
    for time in range(0, end + 1, 5):
        drawing.line(x(time), top, x(time), bottom, "#eee")
        drawing.text(x(time), bottom + 16, f"{time} s", "middle", "#666")
    capacities = [(x(time), y(size)) for time, size in table["capacities"]]
    drawing.steps([*capacities, (x(end), capacities[-1][1])], "#e2b93b", 6)
    for method in ("gradient", "product", "plateau"):
        sizes = table["windows"][method][:end * 10 + 1]
        points = [(x(index / 10), y(max(size, 1))) for index, size in enumerate(sizes)]
        drawing.steps(points, METHODS[method][1], 1.6)
    drawing.text(LEFT, bottom + 34, "transfers at once (yellow: what the host serves at once)", color="#666")
    return bottom + 34


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        table = json.load(file)
    drawing = Drawing()
    drawing.text(LEFT, 24, "Time in each scenario", bold=True)
    x = float(LEFT)
    for method, (title, color, _) in METHODS.items():
        drawing.marker(x + 5, 44, method)
        drawing.text(x + 16, 48, title, color=color)
        x += 50 + 6.6 * len(title)
    end = draw_ratios(drawing, table["rows"], 62)
    drawing.text(LEFT, end + 40, "The window of the host in the scenario \"step\"", bold=True)
    end = draw_windows(drawing, table, end + 56)
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {end + 16:.0f}" width="{WIDTH}" '
            'font-family="sans-serif" font-size="12.5">\n<rect width="100%" height="100%" fill="#fff"/>\n'
            + "\n".join(drawing.parts)
            + "\n</svg>\n")


if __name__ == "__main__":
    main()
