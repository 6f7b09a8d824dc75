"""Named expressions that others may use: `variables.name` is evaluated when it is first read, and then remembered.

As in kube-apiserver each is compiled after those before it, whose types it knows; an object type is not one that a variable
can have, so its value is dynamic. What evaluating a variable costs is taken from the same budget as what reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.model.cel import types as t
from trimtab.model.cel.errors import CostExceeded, EvaluationError
from trimtab.model.cel.program import Budget, Program
from trimtab.model.cel.values import ABSENT
from trimtab.model.cel.values import Mapping as MappingValue

NAME = "variables"


class VariablesType(t.ObjectType):
    """The type of `variables`: its fields are those that were composed so far. A value may be null."""

    __slots__ = ()
    walked = False

    def __init__(self, composed: Mapping[str, t.Type] | None = None) -> None:
        super().__init__("kubernetes.variables", {name: _shown(kind) for name, kind in (composed or {}).items()})

    def compose(self, name: str, kind: t.Type) -> None:
        """One more, for what is compiled from now on."""
        self._fields[name] = t.Field(name, _shown(kind))


def _shown(kind: t.Type) -> t.Type:
    """The type of a variable whose expression has this one."""
    if kind.kind in (t.SCALAR, t.NULL_KIND):
        return t.Type(kind.kind, kind.name)
    if kind.kind == t.LIST:
        return t.list_of(_shown(kind.params[0]))
    if kind.kind == t.MAP:
        return t.map_of(*map(_shown, kind.params))
    return t.DYN


class Variables(MappingValue):
    """The value of `variables` for one input. Where an expression did not compile there is the reason."""

    __slots__ = ("_bindings", "_budget", "_known", "_programs")

    def __init__(self, programs: Mapping[str, Program | str], bindings: Mapping[str, Any], budget: Budget) -> None:
        self._programs = programs
        self._bindings = {**bindings, NAME: self}
        self._budget = budget
        self._known: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._programs)

    def __iter__(self) -> Iterator[str]:
        return iter(self._programs)

    def find(self, key: Any) -> Any:
        if key not in self._known:
            program = self._programs.get(key)
            if program is None:
                return ABSENT
            self._known[key] = EvaluationError(f'composited variable "{key}" refers to itself')  # until it is known
            self._known[key] = self._evaluated(key, program)
        value = self._known[key]
        if isinstance(value, EvaluationError):
            raise value
        return value

    def _evaluated(self, name: str, program: Program | str) -> Any:
        if isinstance(program, str):
            return EvaluationError(f'composited variable "{name}" fails to compile: {program}')
        try:
            return program.evaluate(self._bindings, self._budget)
        except (EvaluationError, CostExceeded) as error:
            return EvaluationError(f'composited variable "{name}" fails to evaluate: {error}')

    def equals(self, other: Any) -> bool:
        return self is other
