"""The merge of documents: which of them changed, was deleted or appeared, and what both sides are to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from trimtab.model.document import same
from trimtab.systems.gitops.merging.fields import ABSENT, MISSING, FieldConflict, FieldMerge, Keys, Mode, Sides
from trimtab.systems.gitops.merging.normal import normal

Policy = Literal["git", "system", "hold"]


class Base(msgspec.Struct, frozen=True, omit_defaults=True):
    """Both sides after the last sync, normalised: the document in Git, and the live one with all that the server added.

    None on both sides: never synced."""

    git: dict[str, Any] | None = None
    live: dict[str, Any] | None = None

    @classmethod
    def of(cls, git: Mapping[str, Any] | None, live: Mapping[str, Any] | None) -> Base:
        return cls(normal(git) if git is not None else None, normal(live) if live is not None else None)


class Merged(msgspec.Struct, frozen=True):
    """What each side is to be, normalised; None: not there. `to_git` and `to_system` tell which side has to change.

    `git` is what a server-side apply sends, `system` what the object will say after it. With conflicts (policy hold only)
    both sides keep what they have in those fields. `resolved` are the conflicts that the policy decided."""

    git: dict[str, Any] | None
    system: dict[str, Any] | None
    conflicts: tuple[FieldConflict, ...] = ()
    resolved: tuple[FieldConflict, ...] = ()
    to_git: bool = False
    to_system: bool = False


def merge(
    base: Base | None,
    git: Mapping[str, Any] | None,
    live: Mapping[str, Any] | None,
    *,
    policy: Policy = "hold",
    keys: Keys | None = None,
    ignored: Callable[[str], bool] | None = None,
) -> Merged:
    """Bring both sides together. `ignored` tells fields (by path) that stay as they are on both sides.

    Without a base the two meet for the first time: what only one of them says is no conflict, and what only the live one
    says is the server's own and does not go to Git."""
    ours = normal(git) if git is not None else None
    theirs = normal(live) if live is not None else None
    if ours is None or theirs is None:
        return _whole(base or Base(), ours, theirs, policy)
    mode = Mode.MEET if base is None or (base.git is None and base.live is None) else Mode.BOTH
    merging = FieldMerge("" if policy == "hold" else policy, keys, ignored, mode)
    outcome = merging.merge(_sides(base, ours, theirs))
    found = tuple(merging.conflicts)
    return Merged(
        outcome.git,
        outcome.system,
        conflicts=found if policy == "hold" else (),
        resolved=() if policy == "hold" else found,
        to_git=not same(outcome.git, ours),
        to_system=not same(outcome.system, theirs),
    )


def impose(
    base: Base | None,
    git: Mapping[str, Any],
    live: Mapping[str, Any],
    *,
    keys: Keys | None = None,
    ignored: Callable[[str], bool] | None = None,
) -> Merged:
    """What a sync in one direction does: the system gets all that Git says, and loses what Git no longer says.

    What Git never said stays as it is there. What the server wrote differently (`1000m` as `1`) and nobody changed since is
    no difference."""
    ours, theirs = normal(git), normal(live)
    outcome = FieldMerge("git", keys, ignored, Mode.IMPOSE).merge(_sides(base, ours, theirs))
    return Merged(ours, outcome.system, to_system=not same(outcome.system, theirs))


def _sides(base: Base | None, git: dict[str, Any], live: dict[str, Any]) -> Sides:
    was = base or Base()
    return Sides(ABSENT if was.git is None else was.git, git, ABSENT if was.live is None else was.live, live)


def _whole(base: Base, git: dict[str, Any] | None, live: dict[str, Any] | None, policy: Policy) -> Merged:
    """At least one side does not have the document."""
    git_changed = not _same_document(git, base.git)
    live_changed = not _same_document(live, base.live)
    if git is None and live is None:
        return Merged(None, None)
    winner = "git" if not live_changed else "system" if not git_changed else policy
    conflict: tuple[FieldConflict, ...] = ()
    if git_changed and live_changed:
        conflict = (FieldConflict("", *(MISSING if v is None else v for v in (base.git, git, live))),)
        if policy == "hold":
            return Merged(git, live, conflicts=conflict)
    chosen = git if winner == "git" else live
    return Merged(
        chosen,
        chosen,
        resolved=conflict,
        to_git=not _same_document(chosen, git),
        to_system=not _same_document(chosen, live),
    )


def _same_document(one: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
    return same(ABSENT if one is None else one, ABSENT if other is None else other)
