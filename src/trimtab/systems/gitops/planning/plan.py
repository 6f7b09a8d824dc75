"""What a sync would do, as data: it is shown, confirmed, and then done exactly so."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import Enum
from typing import Any

import msgspec

from trimtab.systems.gitops.merging import Base, FieldConflict, Policy
from trimtab.systems.gitops.parsing import Identity, Selection

PRUNE = "gitops.trimtab.dev/prune"
"""On a document: "false" keeps it in the system when it is gone from Git."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to sync. With one direction only, its source wins.

    Deletions are held when there are more than `max_deletes` of them *and* they are more than `max_delete_percent` of what
    is synced; 0 takes one of the two out of it. `confirmed` is the confirmation that a user echoed."""

    git_to_system: bool = True
    system_to_git: bool = False
    policy: Policy = "hold"
    prune: bool = True
    selection: Selection = Selection()
    max_deletes: int = 5
    max_delete_percent: float = 30.0
    confirmed: str = ""
    root: str = ""


class Action(Enum):
    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    ADOPT = "adopt"
    OWN = "own"
    PRUNE = "prune"
    KEEP = "keep"
    FORGET = "forget"


class Step(msgspec.Struct, frozen=True):
    """One document in the system. `document` is what to apply (as Git will have it); `live` what is there.

    ADOPT of what already says the same applies nothing but our ownership. OWN is what came from the system to Git: nothing of it
    is applied but that it is ours. KEEP is gone from Git and stays, with its entry;
    FORGET is gone everywhere, or no longer ours: only its entry goes."""

    identity: Identity
    action: Action
    path: str = ""
    index: int = 0
    item: int = -1
    digest: str = ""
    document: dict[str, Any] | None = None
    live: dict[str, Any] | None = None
    reason: str = ""
    resolved: tuple[FieldConflict, ...] = ()


class FileEdit(msgspec.Struct, frozen=True):
    """One document in Git. `before` and `document` are normalised; of a create `document` is in the shape it is written in.

    `files` are the names of its files that are written, or taken away, with it; of a create all are."""

    identity: Identity
    action: str  # create, update, delete
    path: str
    index: int = 0
    item: int = -1
    before: dict[str, Any] | None = None
    document: dict[str, Any] | None = None
    live: dict[str, Any] | None = None
    reason: str = ""
    resolved: tuple[FieldConflict, ...] = ()
    files: tuple[str, ...] = ()


class FileStep(msgspec.Struct, frozen=True):
    """One file of a document, whose bytes the system gets from Git: the blob `oid`. `digest`: what it has now. Without
    `send` it has those bytes already, and that is to be known from now on."""

    identity: Identity
    name: str
    path: str
    oid: str
    digest: str = ""
    reason: str = ""
    send: bool = True


class Conflict(msgspec.Struct, frozen=True):
    """One document that both sides changed, where nobody may decide: neither side is written."""

    identity: Identity
    path: str
    fields: tuple[FieldConflict, ...]
    base: Base = Base()
    git: dict[str, Any] | None = None
    live: dict[str, Any] | None = None


class Refusal(msgspec.Struct, frozen=True):
    """One document that this sync may not touch, and why."""

    identity: Identity
    path: str
    reason: str


class Guard(msgspec.Struct, frozen=True):
    """Deletions that are not done by themselves. Echoing `confirmation` lets exactly these pass; "" cannot be confirmed."""

    reason: str  # EmptySource, MassDelete, Problems
    message: str
    held: tuple[Identity, ...]
    confirmation: str = ""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All of a sync. What a guard holds is in `held` (steps) and `held_edits`, and not in `prune` and `write_back`."""

    create: tuple[Step, ...] = ()
    update: tuple[Step, ...] = ()
    unchanged: tuple[Step, ...] = ()
    adopt: tuple[Step, ...] = ()
    prune: tuple[Step, ...] = ()
    keep: tuple[Step, ...] = ()
    forget: tuple[Step, ...] = ()
    files: tuple[FileStep, ...] = ()
    write_back: tuple[FileEdit, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    refused: tuple[Refusal, ...] = ()
    guards: tuple[Guard, ...] = ()
    held: tuple[Step, ...] = ()
    held_edits: tuple[FileEdit, ...] = ()

    @property
    def applies(self) -> tuple[Step, ...]:
        """What is to be applied, of any action; the order is `ordering`'s business."""
        return self.create + self.update + self.adopt

    @property
    def uploads(self) -> tuple[FileStep, ...]:
        return tuple(step for step in self.files if step.send)

    @property
    def is_noop(self) -> bool:
        """Whether there is nothing to do, and nothing that waits for somebody."""
        return not (
            self.applies
            or self.uploads
            or self.prune
            or self.forget
            or self.write_back
            or self.conflicts
            or self.refused
            or self.guards
        )

    @property
    def digest(self) -> str:
        """The same for the same acts, whatever the order they were found in."""
        return digest_of_acts(
            [(step.action.value, step.identity.key, step.path, step.document) for step in (*self.applies, *self.prune)]
            + [(f"git-{e.action}", e.identity.key, e.path, [e.document, *e.files]) for e in self.write_back]
            + [("upload", step.identity.key, step.path, step.oid) for step in self.uploads]
            + [("conflict", c.identity.key, c.path, None) for c in self.conflicts]
            + [("refused", r.identity.key, r.path, None) for r in self.refused]
            + [("held", key.key, guard.reason, None) for guard in self.guards for key in guard.held]
        )


ACTS = ("create", "update", "unchanged", "adopt", "files", "write_back")
"""What a plan does with documents that are in Git, or come there: of one that is in conflict or refused, nothing."""


def digest_of_acts(acts: Iterable[tuple[str, str, str, Any]]) -> str:
    lines = sorted(msgspec.json.encode(act, order="deterministic") for act in acts)
    return hashlib.sha256(b"\n".join(lines)).hexdigest()
