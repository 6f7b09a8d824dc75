"""The table of a benchmark: what there is, beside it ours, and whether the goal is reached. Printed, and put into the docs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"


class Row(NamedTuple):
    """One figure. `ratio` says how many times better ours is; without one it is a bound, or has no peer."""

    title: str
    theirs: str
    ours: str
    ratio: float | None = None
    goal: str = ""
    reached: bool | None = None

    @property
    def verdict(self) -> str:
        return "" if self.reached is None else f"{self.goal}, {'reached' if self.reached else 'behind'}"

    def times(self, digits: int) -> str:
        return "" if self.ratio is None else f"{self.ratio:.{digits}f}x"


def asked(parser: argparse.ArgumentParser, parts: Sequence[str]) -> argparse.Namespace:
    """What to measure, and where to put it. The table in the docs is of one run: some parts alone do not replace it."""
    parser.add_argument("--only", nargs="+", choices=parts, default=parts, help="some parts")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    if options.docs and {*options.only} != {*parts}:
        parser.error("--docs replaces the whole table, so it goes not with --only")
    return options


def show(title: str, rows: Sequence[Row], *, digits: int = 1, width: int = 130) -> None:
    table = Table(title=title)
    for head in ("", "beside", "trimtab", "ratio", "goal"):
        table.add_column(head, justify="right" if head else "left")
    for row in rows:
        table.add_row(row.title, row.theirs, row.ours, row.times(digits), row.verdict)
    Console(width=width).print(table)


def markdown(rows: Sequence[Row], *, digits: int = 1) -> str:
    lines = ["| | beside | Trimtab | ratio | goal |", "|-|-:|-:|-:|-:|"]
    lines += [f"| {row.title} | {row.theirs} | {row.ours} | {row.times(digits)} | {row.verdict} |" for row in rows]
    return "\n".join(lines)


def renew(name: str, rows: Sequence[Row], *, digits: int = 1, page: Path = PAGE) -> None:
    """Put the table between its marks in docs/benchmarks.md."""
    marks = re.compile(rf"(<!-- begin {name} figures -->\n).*?(<!-- end {name} figures -->)", re.DOTALL)
    page.write_text(marks.sub(lambda found: f"{found[1]}{markdown(rows, digits=digits)}\n{found[2]}", page.read_text()))


def megabytes(size: float) -> str:
    return f"{size / 1e6:.0f} MB"
