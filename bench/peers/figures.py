"""What is measured of operators, and how it is shown: one table for each server, Trimtab beside its peers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from server import digits

KOPF, KOPF_IN_STATUS, RUNTIME, OURS = "kopf", "kopf, notes in status", "controller-runtime", "trimtab"
SOCKET, IN_PROCESS = "unix socket", "in process"
Figures = dict[str, float]
Sides = dict[str, dict[str, Figures]]


class Goal(NamedTuple):
    """To be so many times better than a peer."""

    peer: str
    times: float


class Figure(NamedTuple):
    """One line of a table."""

    key: str
    title: str
    unit: str
    more_is_better: bool = False
    goal: Goal | None = None
    compared: bool = True
    """Not what is the server's doing."""


FIGURES = (
    Figure("cold_cpu", "CPU of a reconcile, all at start", "µs", goal=Goal(KOPF, 10)),
    Figure("steady_cpu", "CPU of a reconcile, steady", "µs", goal=Goal(KOPF, 10)),
    Figure("cold_rate", "reconciles, all at start", "/s", more_is_better=True),
    Figure("p50", "change to reconcile, p50", "ms"),
    Figure("p99", "change to reconcile, p99", "ms"),
    Figure("answer_p99", "the server's answer to the change, p99", "ms", compared=False),
    Figure("memory", "memory, nothing cached", "MB"),
    Figure("memory_10000", "memory of a cached object, 10,000 of them", "kB"),
    Figure("collected_10000", "the same after a collection", "kB", goal=Goal(RUNTIME, 1)),
    Figure("memory_100000", "memory of a cached object, 100,000 of them", "kB"),
    Figure("collected_100000", "the same after a collection", "kB", goal=Goal(RUNTIME, 1)),
    Figure("both_memory", "memory of server and operator, all reconciled", "MB"),
)
TITLES = {
    "ours": "on Trimtab's server",
    "real": "on kube-apiserver",
    "apart": "Trimtab nearer to its server: by a unix socket; in its process, CPU and memory of both",
}


def rows(operators: dict[str, Figures]) -> Iterator[list[str]]:
    """A figure, and what each operator has: for a peer also how many times better ours is."""
    for figure in FIGURES:
        if not any(figure.key in figures for figures in operators.values()):
            continue
        row = [figure.title]
        for name, figures in operators.items():
            cell = shown(figures[figure.key], figure.unit) if figure.key in figures else ""
            if cell and figure.compared and name != OURS and OURS in operators:
                cell += f" ({ratio(figure, operators, name):.1f}x)"
            row.append(cell)
        yield [*row, verdict(figure, operators)]


def heads(operators: dict[str, Figures]) -> list[str]:
    return ["", *operators, "goal"]


def ratio(figure: Figure, operators: dict[str, Figures], peer: str) -> float:
    """How many times better ours is."""
    ours, theirs = operators[OURS][figure.key], operators[peer][figure.key]
    return ours / theirs if figure.more_is_better else theirs / ours


def verdict(figure: Figure, operators: dict[str, Figures]) -> str:
    if figure.goal is None or not {OURS, figure.goal.peer} <= operators.keys():
        return ""
    reached = ratio(figure, operators, figure.goal.peer) >= figure.goal.times
    return f"{figure.goal.times:g}x {figure.goal.peer}, {'reached' if reached else 'missed'}"


def shown(value: float, unit: str) -> str:
    gap = "" if unit.startswith("/") else " "
    return f"{value:,.{digits(value)}f}{gap}{unit}"


def show(title: str, operators: dict[str, Figures]) -> None:
    table = Table(*heads(operators), title=title, caption="(…x): how many times better Trimtab is")
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows(operators):
        table.add_row(*row)
    Console(width=160).print(table)


def markdown(title: str, operators: dict[str, Figures]) -> str:
    names = heads(operators)
    lines = [f"### {title[0].upper()}{title[1:]}", "", f"| {' | '.join(names)} |", "|-|" + "-:|" * (len(names) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows(operators))])
