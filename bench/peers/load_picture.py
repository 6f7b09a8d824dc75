"""Lines over time as an SVG, drawn by hand: what is measured, in panels under each other, and since when readers were slow."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH, PANEL, LEFT, RIGHT, TOP, GAP = 960, 150, 70, 20, 54, 44
FONT = "font-family='system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif'"
INK, SOFT, GRID, SHADE = "#1f2937", "#5b6676", "#e2e8f0", "#fdf3d7"
COLOURS = ("#2b6cb0", "#c05621", "#2f855a")

Points = Sequence[tuple[float, float]]


class Panel(NamedTuple):
    title: str
    unit: str
    lines: tuple[tuple[str, Points], ...]


def picture(title: str, panels: Sequence[Panel], seconds: float, slow_from: float) -> str:
    height = TOP + len(panels) * (PANEL + GAP)
    drawn = [f"<rect width='{WIDTH}' height='{height}' fill='#ffffff'/>", _text(LEFT, 28, title, size=16, bold=True)]
    for number, panel in enumerate(panels):
        drawn += _panel(panel, TOP + number * (PANEL + GAP), seconds, slow_from)
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' role='img' {FONT}>"
    return "\n".join([head, f"<title>{escape(title)}</title>", *drawn, "</svg>", ""])


def _panel(panel: Panel, top: int, seconds: float, slow_from: float) -> list[str]:
    highest = _rounded(max((value for _, points in panel.lines for _, value in points), default=1.0))
    bottom, width = top + PANEL, WIDTH - LEFT - RIGHT

    def x(at: float) -> float:
        return LEFT + width * min(max(at / seconds, 0.0), 1.0)

    def y(value: float) -> float:
        return bottom - (PANEL - 20) * value / highest

    left, right = x(slow_from), x(seconds)
    place = f"x='{left:.1f}' y='{top + 20}' width='{right - left:.1f}' height='{PANEL - 20}'"
    drawn = [f"<rect {place} fill='{SHADE}'/>", _text(LEFT, top + 10, f"{panel.title}, {panel.unit}", bold=True)]
    for share in (0.0, 0.5, 1.0):
        level = y(highest * share)
        drawn.append(f"<path d='M{LEFT},{level:.1f} H{WIDTH - RIGHT}' stroke='{GRID}'/>")
        drawn.append(_text(LEFT - 8, level + 4, f"{highest * share:g}", colour=SOFT, anchor="end"))
    for number, (name, points) in enumerate(panel.lines):
        path = " ".join(
            f"{'L' if index else 'M'}{x(at):.1f},{y(value):.1f}" for index, (at, value) in enumerate(points)
        )
        drawn.append(f"<path d='{path}' fill='none' stroke='{COLOURS[number]}' stroke-width='1.5'/>")
        drawn.append(
            _text(WIDTH - RIGHT - 90 * (len(panel.lines) - 1 - number), top + 10, name, COLOURS[number], "end")
        )
    ticks = [seconds * share for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    return drawn + [_text(x(tick), bottom + 16, f"{tick:.0f} s", SOFT, "middle") for tick in ticks]


def _rounded(value: float) -> float:
    """A little above, in a figure that reads well."""
    step = 1.0
    while step * 10 < value:
        step *= 10
    while step > value:
        step /= 10
    return next(step * times for times in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15) if step * times >= value)


def _text(
    x: float, y: float, text: str, colour: str = INK, anchor: str = "start", size: int = 12, bold: bool = False
) -> str:
    look = f"font-size='{size}' fill='{colour}' text-anchor='{anchor}'" + (" font-weight='600'" if bold else "")
    return f"<text x='{x:.1f}' y='{y:.1f}' {look}>{escape(text)}</text>"
