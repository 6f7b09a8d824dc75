"""The order of a merged list: of what was there before, as the side has it that changed the order; of what was added, behind
what it stood behind. It does not depend on which side is which."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


class NotMergeable(Exception):  # noqa: N818
    """Both sides changed the order, and not to the same."""


def arrange(
    base_git: Sequence[Name],
    git: Sequence[Name],
    base_system: Sequence[Name],
    system: Sequence[Name],
    to_git: Collection[Name],
    to_system: Collection[Name],
    *,
    git_leads: bool = False,
) -> tuple[list[Name], list[Name]]:
    """The orders of `to_git` and of `to_system`. With `git_leads` the system follows Git's order in any case."""
    if git_leads:
        return list(git), _merged(base_system, system, git, True, to_system)
    git_moved, system_moved = _moved(base_git, git), _moved(base_system, system)
    if git_moved and system_moved:
        both = set(git) & set(system) & set(base_git) & set(base_system)
        if [n for n in git if n in both] != [n for n in system if n in both]:
            raise NotMergeable
    return (
        _merged(base_git, git, system, system_moved and not git_moved, to_git),
        _merged(base_system, system, git, git_moved and not system_moved, to_system),
    )


def _moved(base: Sequence[Name], now: Sequence[Name]) -> bool:
    was, is_now = set(base), set(now)
    return [n for n in base if n in is_now] != [n for n in now if n in was]


def _merged(
    base: Sequence[Name], own: Sequence[Name], other: Sequence[Name], follow: bool, wanted: Collection[Name]
) -> list[Name]:
    """Names in `wanted` that were in the base, in the order of `own` (of `other`, if that is to be followed), each followed by
    what was added behind it, one side's additions after the other's."""
    old = {n for n in base if n in wanted}
    frame = _frame(base, [n for n in (other if follow else own) if n in old], old)
    added: dict[Name | None, list[list[Name]]] = {}
    for names in (own, other):
        anchor: Name | None = None
        run: list[Name] = []
        for name in names:
            if name in old:
                if run:
                    added.setdefault(anchor, []).append(run)
                anchor, run = name, []
            elif name in wanted:
                run.append(name)
        if run:
            added.setdefault(anchor, []).append(run)
    found: dict[Name, None] = {}
    for place in (None, *frame):
        if place is not None:
            found[place] = None
        for run in sorted(added.get(place, ()), key=lambda run: [str(name) for name in run]):
            found.update(dict.fromkeys(run))
    return list(found)


def _frame(base: Sequence[Name], lead: list[Name], old: Collection[Name]) -> list[Name]:
    """Old names in the order of those that lead; others behind what they stood behind in the base."""
    known = set(lead)
    behind: dict[Name | None, list[Name]] = {}
    anchor: Name | None = None
    for name in base:
        if name in known:
            anchor = name
        elif name in old:
            behind.setdefault(anchor, []).append(name)
    return [*behind.get(None, ()), *(each for name in lead for each in (name, *behind.get(name, ())))]
