"""Puts the figures of a benchmark into the documentation.

    python bench/server.py --json figures.json && python scripts/benchmarks.py figures.json

The whole table goes into docs/benchmarks.md, a few rows into README.md, between `<!-- begin figures -->` and its end.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from server import FIGURES, Figure, digits  # noqa: E402 - bench/server.py

SHORT = ("start", "create_1", "create_32", "get_32", "list", "apply_32", "watch_1000_p99", "memory")
Sides = dict[str, dict[str, float]]


def main() -> None:
    measured: Sides = json.loads(Path(sys.argv[1]).read_text())
    put(ROOT / "docs" / "benchmarks.md", table(FIGURES, measured))
    put(ROOT / "README.md", table([figure for figure in FIGURES if figure.key in SHORT], measured))


def put(page: Path, text: str) -> None:
    marks = re.compile(r"(<!-- begin figures -->\n).*?(<!-- end figures -->)", re.DOTALL)
    made = marks.sub(lambda found: f"{found[1]}{text}\n{found[2]}", page.read_text())
    page.write_text(made)


def table(figures: "tuple[Figure, ...] | list[Figure]", measured: Sides) -> str:
    rows = ["| | kube-apiserver + etcd | Trimtab | ratio | goal |", "|-|-:|-:|-:|-:|"]
    for figure in figures:
        real, ours = measured["real"][figure.key], measured["ours"][figure.key]
        ratio = ours / real if figure.more_is_better else real / ours
        goal = "" if figure.goal is None else f"{figure.goal:g}x, {'reached' if ratio >= figure.goal else 'behind'}"
        rows.append(f"| {figure.title} | {shown(real, figure)} | {shown(ours, figure)} | {ratio:.1f}x | {goal} |")
    return "\n".join(rows)


def shown(value: float, figure: Figure) -> str:
    gap = "" if figure.unit.startswith("/") else " "
    return f"{value:,.{digits(value)}f}{gap}{figure.unit}"


if __name__ == "__main__":
    main()
