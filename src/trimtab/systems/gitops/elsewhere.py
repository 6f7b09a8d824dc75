"""A destination of its own: what of the system is written there. Pure.

What was written there has entries of its own (`Kept.exports`) and is none of what was applied: the source never had it, so
that it is not there says nothing. An entry's base is the document as it was written, and the object as it was then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from trimtab.systems.gitops.inventory import Entry, Inventory
from trimtab.systems.gitops.knowing import Knowledge
from trimtab.systems.gitops.merging import Base, merge, normal, same
from trimtab.systems.gitops.parsing import Identity, Parsed, SourceDocument
from trimtab.systems.gitops.planning import FileEdit, Plan, written
from trimtab.systems.gitops.planning.judging import is_going

Document = dict[str, Any]


class Exports(msgspec.Struct, frozen=True):
    """The entries of what a run looked at, and how many there are in all."""

    entries: Mapping[Identity, Entry]
    count: int


def exported(
    plan: Plan,
    exports: Exports,
    parsed: Parsed,
    live: Mapping[Identity, Document],
    *,
    path: Callable[[Identity], str],
    is_wanted: Callable[[Identity], bool],
) -> Plan:
    """The plan, with edits of the destination for those of the source. Nothing is deleted there but what we wrote."""
    known, shared = exports.entries, _shared(parsed)
    held = {conflict.identity for conflict in plan.conflicts} | {refusal.identity for refusal in plan.refused}
    edits = [
        _first(edit, path(edit.identity) if edit.path in shared else edit.path)
        for edit in plan.write_back
        if edit.action != "delete" and edit.identity not in known
    ]
    for identity in sorted(known):
        edit = _later(known[identity], live.get(identity))
        if edit is not None and identity not in held and is_wanted(identity):
            edits.append(edit)
    return msgspec.structs.replace(plan, write_back=tuple(edits))


def with_files(
    plan: Plan,
    exports: Inventory,
    raw: Mapping[Identity, Document],
    live: Mapping[Identity, Document],
    knowledge: Knowledge,
) -> Plan:
    """The plan, with the files that changed since they were written there, and edits of documents of which only files did."""
    edits = {edit.identity: edit for edit in plan.write_back}
    held = {conflict.identity for conflict in plan.conflicts} | {refusal.identity for refusal in plan.refused}
    for identity, document in raw.items():
        entry = exports.get(identity) if identity not in held else None
        names = _changed_files(entry, document, knowledge) if entry is not None else ()
        if entry is None or not names:
            continue
        said = entry.base.git
        edit = edits.get(identity) or FileEdit(
            identity, "update", entry.path, before=said, document=said, live=live[identity], reason="its files changed"
        )
        edits[identity] = msgspec.structs.replace(edit, files=names)
    return msgspec.structs.replace(plan, write_back=tuple(edits.values()))


def _changed_files(entry: Entry, document: Document, knowledge: Knowledge) -> tuple[str, ...]:
    now = {file.name: file.digest for file in knowledge.files(document) if file.digest and not file.sensitive}
    return tuple(name for name in sorted({*now, *entry.artifacts}) if now.get(name) != entry.artifacts.get(name))


def documents(exports: Inventory) -> Iterator[SourceDocument]:
    """What we wrote there, as it is to be found there."""
    for entry in exports:
        yield SourceDocument(entry.path, entry.index, 0, entry.base.git or {}, entry.identity, "", entry.item)


def remember(
    exports: Inventory, edits: tuple[FileEdit, ...], raw: Mapping[Identity, Document], files: Knowledge
) -> None:
    """What these edits wrote is there from now on."""
    for edit in edits:
        if edit.action == "delete":
            exports.remove(edit.identity)
            continue
        known = files.files(raw.get(edit.identity, {}))
        exports.put(
            Entry(
                edit.identity,
                version=str((edit.document or {}).get("apiVersion", "")),
                uid=str((edit.live or {}).get("metadata", {}).get("uid", "")),
                path=edit.path,
                base=Base.of(edit.document, edit.live),
                artifacts={file.name: file.digest for file in known if file.digest and not file.sensitive},
            )
        )


def _shared(parsed: Parsed) -> set[str]:
    """Files of several documents: in the destination each is in a file of its own."""
    return {path for path, count in Counter(each.path for each in parsed.documents).items() if count > 1}


def _first(edit: FileEdit, path: str) -> FileEdit:
    document = written(edit.live or {}, edit.document)
    return msgspec.structs.replace(edit, path=path, index=0, item=-1, before=None, document=document)


def _later(entry: Entry, live: Document | None) -> FileEdit | None:
    """What changed in the system since it was written."""
    base = entry.base
    if live is None:
        return FileEdit(entry.identity, "delete", entry.path, before=base.git, reason="was deleted in the system")
    if is_going(live) or same(base.live, normal(live)):
        return None
    found = merge(base, base.git, live, policy="system")
    if not found.to_git:
        return None
    document, reason = written(live, found.git), "changed in the system"
    return FileEdit(entry.identity, "update", entry.path, before=base.git, document=document, live=live, reason=reason)
