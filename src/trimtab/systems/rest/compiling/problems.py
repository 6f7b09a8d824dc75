"""What is wrong with a definition: all of it at once, each by the field of the RestDefinition that has to change."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """`path` is in the RestDefinition: `spec.operations.read.path`."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


class CompileError(Exception):
    """A definition that does not fit its document."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


def nearest(given: str, known: Iterable[str], count: int = 3) -> str:
    """For a message: the known names most like the given one, or nothing at all."""
    close = difflib.get_close_matches(given, sorted(set(known)), n=count, cutoff=0.5)
    return f"; nearest: {', '.join(close)}" if close else ""
