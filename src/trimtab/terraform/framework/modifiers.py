"""Plan modifiers: what a planned value becomes, and whether its change needs a new resource.

They work at any depth. An object within is compared with the one that was there before, in a list at the same index, in a
map at the same key; one that comes or goes replaces nothing by what is in it. What a provider computes anew is never a
reason to replace.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trimtab.terraform.framework.paths import Path
from trimtab.terraform.framework.values import UNKNOWN


@dataclass(frozen=True, slots=True)
class Change:
    """One attribute in a plan: what the user wrote, what is in the state, what is planned so far."""

    path: Path
    config: Any
    prior: Any
    planned: Any
    existed: bool
    """Whether the object that the attribute belongs to is in the prior state."""


class Modifier(ABC):  # noqa: B024 - both have a meaning when they are left out
    def plan(self, change: Change) -> Any:
        """The planned value."""
        return change.planned

    def replaces(self, change: Change) -> bool:
        """Whether this change needs a new resource; asked only when planned differs from prior."""
        return False


@dataclass(frozen=True, slots=True)
class KeepState(Modifier):
    """Plan what is in the state where the value would otherwise be unknown: for what never changes after creation.

    Null is not kept, since what is null may yet be filled in; `null=True` keeps it for what the server never sets itself.
    """

    null: bool = False

    def plan(self, change: Change) -> Any:
        if not change.existed or change.planned is not UNKNOWN or change.config is not None:
            return change.planned
        return UNKNOWN if change.prior is None and not self.null else change.prior


@dataclass(frozen=True, slots=True)
class RequiresReplace(Modifier):
    """A change needs a new resource."""

    def replaces(self, change: Change) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class RequiresReplaceIf(Modifier):
    """A change needs a new resource if the function of it says so."""

    condition: Callable[[Change], bool]

    def replaces(self, change: Change) -> bool:
        return self.condition(change)
