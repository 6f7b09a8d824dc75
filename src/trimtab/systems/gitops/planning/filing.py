"""A plan, with the files that belong to documents: they go the way of their document, and what holds one of them holds it,
too. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.systems.gitops.merging import Base, Fate, FieldConflict, FileSides, fate, normal
from trimtab.systems.gitops.parsing import Identity, SourceDocument
from trimtab.systems.gitops.planning.plan import ACTS, Conflict, FileEdit, FileStep, Options, Plan

Files = Mapping[Identity, Sequence[FileSides]]
Names = Callable[[dict[str, Any]], Iterable[str]]
"""The files that a document names."""


def filed(
    plan: Plan,
    documents: Iterable[SourceDocument],
    live: Mapping[Identity, dict[str, Any]],
    files: Files,
    names: Names,
    options: Options,
) -> Plan:
    """`documents` are those that the plan is about; `files` has theirs."""
    steps: list[FileStep] = []
    edits = {edit.identity: edit for edit in plan.write_back}
    conflicts = {conflict.identity: conflict for conflict in plan.conflicts}
    applied = {step.identity for step in (*plan.applies, *plan.unchanged)}
    for document in documents:
        identity, edit = document.identity, edits.get(document.identity)
        sides = files.get(identity, ())
        is_update = edit is not None and edit.action == "update"
        if not sides or not (is_update or identity in applied or identity in conflicts):
            continue
        wanted = edit.document if is_update and edit is not None else document.document
        fates = _fates(sides, frozenset(names(wanted or {})), options)
        fields = tuple(each.conflict for each in fates.get(Fate.CONFLICT, ()))
        if fields or identity in conflicts:
            if fields:
                conflicts[identity] = _conflict(conflicts.get(identity), document, live.get(identity), fields)
            continue
        steps += [_step(identity, each, send=True) for each in fates.get(Fate.TO_SYSTEM, ())]
        steps += [_step(identity, each, send=False) for each in fates.get(Fate.AGREED, ())]
        written = tuple(each.name for each in fates.get(Fate.TO_GIT, ()))
        if written:
            edit = edit or _edit(document, live.get(identity))
            edits[identity] = msgspec.structs.replace(edit, files=written)
    return _held(plan, edits, conflicts, steps)


def _fates(sides: Sequence[FileSides], named: frozenset[str], options: Options) -> dict[Fate, list[FileSides]]:
    found: dict[Fate, list[FileSides]] = {}
    ways = {"to_git": options.system_to_git, "to_system": options.git_to_system}
    for each in sides:
        what = fate(each, options.policy, named=each.name in named, **ways)
        if what is Fate.NOTHING and not options.git_to_system and _is_put_back(each, named):
            what = Fate.TO_GIT
        found.setdefault(what, []).append(each)
    return found


def _is_put_back(sides: FileSides, named: frozenset[str]) -> bool:
    """Only Git changed it, where the system wins."""
    return sides.git_changed and bool(sides.system) and sides.name in named and not sides.sensitive


def _held(
    plan: Plan,
    edits: Mapping[Identity, FileEdit],
    conflicts: Mapping[Identity, Conflict],
    steps: Sequence[FileStep],
) -> Plan:
    whole = msgspec.structs.replace(
        plan, write_back=tuple(edits.values()), conflicts=tuple(conflicts.values()), files=tuple(steps)
    )
    if len(conflicts) == len(plan.conflicts):
        return whole
    left = {name: tuple(s for s in getattr(whole, name) if s.identity not in conflicts) for name in ACTS}
    return msgspec.structs.replace(whole, **left)


def _step(identity: Identity, sides: FileSides, *, send: bool) -> FileStep:
    if not sides.system:
        why = "is not in the system"
    else:
        why = "changed in Git" if sides.git_changed and sides.was_git else "differs from Git"
    return FileStep(identity, sides.name, sides.path, sides.git, sides.system, why if send else "", send)


def _edit(document: SourceDocument, live: dict[str, Any] | None) -> FileEdit:
    """Of a document of which only files changed."""
    said = normal(document.document)
    place = (document.path, document.index, document.item)
    return FileEdit(document.identity, "update", *place, said, said, live, "its files changed in the system")


def _conflict(
    held: Conflict | None, document: SourceDocument, live: dict[str, Any] | None, fields: tuple[FieldConflict, ...]
) -> Conflict:
    if held is None:
        return Conflict(document.identity, document.path, fields, Base(), document.document, live)
    return msgspec.structs.replace(held, fields=(*held.fields, *fields))
