"""Which tags a Registry selects: its filters, compiled once. Used by admission, by preview and by workers.

A condition is CEL over `tag` and `repository`. Conditions of a filter, and the filters of a repository, are joined as CEL
joins: an error counts only where nothing else decides. What a tag may cost is bounded, so that no expression stops a worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

import msgspec

from trimtab.model import cel
from trimtab.systems.images.kinds.registry import Filter
from trimtab.systems.images.registry.outcomes import FilterFailed

COST_OF_CONDITION = 10_000
COST_OF_TAG = 20_000
VARIABLES = {"tag": cel.STRING, "repository": cel.STRING}


class InvalidFilter(ValueError):  # noqa: N818 - it reads as what happened
    """An expression that cannot be used. `path` is that of its field."""

    def __init__(self, path: str, message: str) -> None:
        self.path, self.message = path, message
        super().__init__(f"{path}: {message}")


class Filters:
    """`filters(repository, tag)` tells whether the tag is selected. Without filters all are."""

    def __init__(self, filters: Sequence[_Filter]) -> None:
        self._filters = filters

    @classmethod
    def compile(cls, filters: Sequence[Filter]) -> Self:
        """InvalidFilter for the first expression that does not compile, or is no bool."""
        return cls([_compiled(each, f"spec.filters[{number}]") for number, each in enumerate(filters)])

    def __call__(self, repository: str, tag: str) -> bool:
        """FilterFailed when nothing decides, with the name of the condition that could not."""
        fitting = [each for each in self._filters if each.fits(repository)]
        if not fitting:
            return True
        values, budget = {"tag": tag, "repository": repository}, cel.Budget(COST_OF_TAG, COST_OF_CONDITION)
        return _joined((each.takes(values, budget) for each in fitting), unless=False)


class _Condition(msgspec.Struct, frozen=True):
    name: str
    program: cel.Program

    def holds(self, values: dict[str, str], budget: cel.Budget) -> bool | FilterFailed:
        if budget.remaining <= 0:
            return FilterFailed(f"condition {self.name}: the filters of one tag cost too much")
        try:
            return self.program.evaluate(values, budget) is True
        except (cel.EvaluationError, cel.CostExceeded) as error:
            return FilterFailed(f"condition {self.name}: {error}")


class _Filter(msgspec.Struct, frozen=True):
    repository: str
    any_of: bool
    conditions: tuple[_Condition, ...]

    def fits(self, repository: str) -> bool:
        if self.repository.endswith("*"):
            return repository.startswith(self.repository[:-1])
        return repository == self.repository

    def takes(self, values: dict[str, str], budget: cel.Budget) -> bool | FilterFailed:
        try:
            return _joined((each.holds(values, budget) for each in self.conditions), unless=self.any_of)
        except FilterFailed as failed:
            return failed


def _joined(answers: Iterable[bool | FilterFailed], *, unless: bool) -> bool:
    """`unless` as soon as one says so; else the first error; else the other. So CEL reads || (True) and && (False)."""
    failed: FilterFailed | None = None
    for answer in answers:
        if isinstance(answer, FilterFailed):
            failed = failed or answer
        elif answer is unless:
            return unless
    if failed is not None:
        raise failed
    return not unless


def _compiled(written: Filter, path: str) -> _Filter:
    pattern = written.repository
    if "*" in pattern[:-1] or (pattern.endswith("*") and pattern != "*" and not pattern.endswith("/*")):
        raise InvalidFilter(f"{path}.repository", "a star is for every repository, or stands at the end: team/*")
    conditions = []
    for number, condition in enumerate(written.match_conditions):
        try:
            program = cel.compile(condition.expression, VARIABLES, result=cel.BOOL)
        except cel.CelError as error:
            raise InvalidFilter(f"{path}.matchConditions[{number}].expression", error.message) from None
        except cel.WrongResult as error:
            raise InvalidFilter(f"{path}.matchConditions[{number}].expression", str(error)) from None
        conditions.append(_Condition(condition.name, program))
    return _Filter(pattern, written.match_operator == "Or", tuple(conditions))
