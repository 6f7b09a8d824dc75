"""The merge of a file that belongs to a document: which side has other bytes than after the last sync, and which is to get
those of the other. Pure; bytes are known by their digests in the system, and by their blobs in Git."""

from __future__ import annotations

from enum import Enum

import msgspec

from trimtab.systems.gitops.merging.documents import Policy
from trimtab.systems.gitops.merging.fields import FieldConflict

NOT_SHOWN = "(not shown)"


class FileSides(msgspec.Struct, frozen=True, kw_only=True):
    """One file, now and after the last sync; "" is none. `git_digest` is known where it has to be: when neither side is as
    it was. `in_git` and `in_system` tell whether the document of that side names it."""

    name: str
    path: str = ""
    git: str = ""
    system: str = ""
    was_git: str = ""
    was_system: str = ""
    git_digest: str = ""
    in_git: bool = True
    in_system: bool = True
    sensitive: bool = False

    @property
    def git_changed(self) -> bool:
        """A file that Git does not have says nothing: the object may have it from somebody else."""
        return bool(self.git) and self.git != self.was_git

    @property
    def system_changed(self) -> bool:
        return self.system != self.was_system

    @property
    def conflict(self) -> FieldConflict:
        """As people see it: the three digests."""
        values = (self.was_system, self.git_digest, self.system)
        shown = (msgspec.UNSET if not value else NOT_SHOWN if self.sensitive else value for value in values)
        return FieldConflict(f"artifacts/{self.name}"[:1024], *shown)


class Fate(Enum):
    """What becomes of a file. AGREED: both sides came to the same by themselves."""

    NOTHING = "nothing"
    AGREED = "agreed"
    TO_GIT = "to git"
    TO_SYSTEM = "to system"
    CONFLICT = "conflict"


def fate(sides: FileSides, policy: Policy, *, to_git: bool, to_system: bool, named: bool = True) -> Fate:
    """`to_git`, `to_system`: where the sync writes. `named`: the document names it still, when it is merged itself."""
    if to_git and not to_system:
        policy = "system"
    if not named:
        return _dropped(sides, policy, to_git=to_git)
    if not sides.in_system:  # it is new there, so nobody deleted it
        sides = msgspec.structs.replace(sides, was_git="", was_system="")
    if _agree(sides):
        return Fate.AGREED
    if not to_git:
        return Fate.TO_SYSTEM if sides.git and (sides.git_changed or sides.system_changed) else Fate.NOTHING
    if sides.git_changed and sides.system_changed:
        return _decided(sides, policy)
    if sides.git_changed:
        return Fate.TO_SYSTEM if to_system else Fate.NOTHING
    return _to_git(sides) if sides.system_changed else Fate.NOTHING


def _agree(sides: FileSides) -> bool:
    if not sides.git and not sides.system:
        return bool(sides.was_git or sides.was_system)
    return bool(sides.git_digest) and sides.git_digest == sides.system


def _decided(sides: FileSides, policy: Policy) -> Fate:
    if policy == "hold":
        return Fate.CONFLICT
    return Fate.TO_SYSTEM if policy == "git" else _to_git(sides)


def _to_git(sides: FileSides) -> Fate:
    return Fate.NOTHING if sides.sensitive else Fate.TO_GIT


def _dropped(sides: FileSides, policy: Policy, *, to_git: bool) -> Fate:
    """One side names it no more. Its bytes go from Git with its name; what the other side made of them meanwhile does not
    go unseen."""
    other_changed = sides.git_changed if sides.in_git else sides.system_changed and bool(sides.system)
    if to_git and other_changed and policy == "hold":
        return Fate.CONFLICT
    return Fate.TO_GIT if to_git and sides.in_git and sides.git and not sides.in_system else Fate.NOTHING
