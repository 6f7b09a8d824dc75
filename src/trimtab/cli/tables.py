"""Aligned columns, as `kubectl get` prints them; in colour on a terminal, where words for good and bad states stand
out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from trimtab.cli.codes import plain

GAP = "   "
_STATES = {
    "32": (
        "True",
        "Ready",
        "Current",
        "Running",
        "Active",
        "Bound",
        "Succeeded",
        "Complete",
        "Completed",
        "Normal",
        "Pass",
        "Stable",
    ),
    "33": (
        "Unknown",
        "Pending",
        "InProgress",
        "Progressing",
        "Terminating",
        "Waiting",
        "Warning",
        "Medium",
        "Inconclusive",
    ),
    "31": (
        "False",
        "Failed",
        "Fail",
        "Error",
        "Lost",
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "Degraded",
        "High",
    ),
    "1;31": ("Critical",),
    "36": ("Low",),
}
_COLOURS = {word: colour for colour, words in _STATES.items() for word in words}


def coloured() -> bool:
    """Whether standard output is a terminal that wants colours (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Printer:
    """Prints rows as they come. Columns keep the widths of the first rows, and grow when they must."""

    def __init__(self, headers: Sequence[str], *, header: bool = True) -> None:
        self._headers = [name.upper() for name in headers]
        self._widths = [len(name) for name in self._headers] if header else [0] * len(headers)
        self._header_due = header
        self._colours = coloured()

    def add(self, rows: Sequence[Sequence[str]]) -> None:
        for row in rows:
            self._widths = [max(width, len(cell)) for width, cell in zip(self._widths, row, strict=True)]
        if self._header_due:
            self._header_due = False
            line = self._line(self._headers)
            print(f"\033[1m{line}\033[0m" if self._colours else line)
        for row in rows:
            print(self._line(row))
        sys.stdout.flush()

    def _line(self, cells: Sequence[str]) -> str:
        padded = [cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True)]
        if self._colours:
            padded = [stained(text, cell) for text, cell in zip(padded, cells, strict=True)]
        return GAP.join(padded).rstrip()


def stained(text: str, word: str) -> str:
    """`text` in the colour of the state that `word` is."""
    colour = _COLOURS.get(word)
    return f"\033[{colour}m{text}\033[0m" if colour else text


def shown(cell: object) -> str:
    """A cell of a server's Table as text on one line: terminals obey control characters, so none is let through."""
    if cell is None:
        return "<none>"
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return plain(str(cell))
