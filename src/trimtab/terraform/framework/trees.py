"""Config, Plan and State: three trees of values that look alike and are not to be confused.

An operation is given those that exist for it and no others, so that reading a plan where there is none does not pass the
type checker, and does not run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.terraform.framework import paths
from trimtab.terraform.framework.paths import Path


class Tree:
    """A value of a whole schema: an object by attribute names."""

    __slots__ = ("value",)

    def __init__(self, value: Mapping[str, Any]) -> None:
        self.value: dict[str, Any] = dict(value)

    def __getitem__(self, name: str) -> Any:
        return self.value[name]

    def __contains__(self, name: object) -> bool:
        return name in self.value

    def __iter__(self) -> Iterator[str]:
        return iter(self.value)

    def get(self, path: str | Path) -> Any:
        """None where a parent is null, UNKNOWN where one is unknown."""
        return paths.find(self.value, paths.path(path))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Tree) and other.value == self.value

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.value)})"  # values may be secrets


class Config(Tree):
    """What the user wrote. Null where he wrote nothing; unknown, in a plan, where it hangs on another resource."""

    __slots__ = ()


class Plan(Tree):
    """What the resource shall be. Unknown only where the provider computes the value."""

    __slots__ = ()


class State(Tree):
    """What the resource is. Nothing in it is unknown."""

    __slots__ = ()
