"""What stands between a mistake in Git (or an answer of the server that is empty) and the deletion of everything."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

import msgspec

from trimtab.systems.gitops.parsing import Identity, Parsed
from trimtab.systems.gitops.planning.plan import FileEdit, Guard, Options, Plan

Uid = Callable[[Identity], str]
"""Of the object that was synced."""

EMPTY = "EmptySource"


def guarded(plan: Plan, parsed: Parsed, synced: int, options: Options, *, uid: Uid, written: int | None = None) -> Plan:
    """The plan without the deletions that need a confirmation that was not given; nothing new is written to a source without
    documents meanwhile. `synced`: the size of the inventory; `written`: so many documents are in the destination, where that
    is not the source."""
    deletes = tuple(edit for edit in plan.write_back if edit.action == "delete")
    guards: list[Guard] = []
    pruned = tuple(step.identity for step in plan.prune)
    removed = tuple(edit.identity for edit in deletes)
    if parsed.problems and (pruned or removed):
        count = len(parsed.problems)
        message = (
            f"nothing is deleted while {count} {'problem stands' if count == 1 else 'problems stand'} in the source"
        )
        guards.append(Guard("Problems", message, (*pruned, *removed)))
    else:
        in_git = synced if written is None else written
        for held, where, count in ((pruned, "system", synced), (removed, "Git", in_git)):
            word = confirmation(held, where, uid)
            guard = _guard(held, where, word, where == "system" and not parsed.documents, count, options)
            if guard is not None:
                guards.append(guard)
    names = {identity for guard in guards for identity in guard.held}
    if not names:
        return plan
    still = written is None and any(guard.reason == EMPTY for guard in guards)  # what we wrote would make it look meant

    def is_held(edit: FileEdit) -> bool:
        return still or (edit.action == "delete" and edit.identity in names)

    return msgspec.structs.replace(
        plan,
        guards=tuple(guards),
        prune=tuple(step for step in plan.prune if step.identity not in names),
        held=tuple(step for step in plan.prune if step.identity in names),
        write_back=tuple(edit for edit in plan.write_back if not is_held(edit)),
        held_edits=tuple(edit for edit in plan.write_back if is_held(edit)),
    )


def blamed(plan: Plan, folder: str, revision: str) -> Plan:
    """The plan of a revision that has no such folder: that comes before all that it would mean."""
    said = f'spec.path: there is no folder "{folder}" in {revision[:12]}: name the right one, or push it'

    def words(guard: Guard) -> Guard:
        count = "1 document" if len(guard.held) == 1 else f"{len(guard.held)} documents"
        return msgspec.structs.replace(guard, message=f"{said}; if it is meant, {count} would be deleted")

    guards = tuple(words(guard) if guard.reason == EMPTY else guard for guard in plan.guards)
    return msgspec.structs.replace(plan, guards=guards)


def confirmation(held: Iterable[Identity], where: str, uid: Uid) -> str:
    """What a user echoes. It is of what would be deleted: another deletion needs another one, also one of objects that came
    again under these names."""
    text = "\n".join((where, *sorted(f"{identity.key} {uid(identity)}" for identity in held)))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _guard(
    held: tuple[Identity, ...], where: str, word: str, empty: bool, synced: int, options: Options
) -> Guard | None:
    if not held:
        return None
    if word in options.confirmed.split(","):
        return None
    percent = 100 * len(held) / max(synced, len(held))
    documents = "1 document" if len(held) == 1 else f"{len(held)} documents"
    if empty:
        message = f"the source has no documents: {documents} would be deleted"
        return Guard(EMPTY, message, held, word)
    if len(held) > options.max_deletes and percent > options.max_delete_percent:
        message = f"{documents} of {synced} ({percent:.0f} %) would be deleted from {_told(where)}"
        return Guard("MassDelete", message, held, word)
    return None


def _told(where: str) -> str:
    return "the system" if where == "system" else where
