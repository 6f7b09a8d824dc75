"""What a run has to look at, and from that the plan. Nothing that the inventory already tells is read again.

A document is looked at when Git changed it, when somebody said that its object changed, or when all are looked at (at each
interval, to find drift). All else counts as settled without a look; guards still count all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import Any

import msgspec

from trimtab.systems.gitops.elsewhere import Exports, exported
from trimtab.systems.gitops.inventory import Entry, Inventory
from trimtab.systems.gitops.layout import Folded, path_for
from trimtab.systems.gitops.parsing import Identity, Parsed, SourceDocument
from trimtab.systems.gitops.planning import Files, Names, Options, Plan, filed, plan
from trimtab.systems.gitops.planning.guarding import guarded

Document = dict[str, Any]


class Agenda(msgspec.Struct, frozen=True):
    """What a run looks at. `read` must be asked of the API; of the rest what we know is good enough."""

    documents: tuple[SourceDocument, ...]
    entries: dict[Identity, Entry]
    read: dict[Identity, str]


def agenda(
    parsed: Parsed,
    inventory: Inventory,
    *,
    everything: bool,
    both_ways: bool,
    changed: Iterable[Identity] = (),
    exports: Iterable[Entry] = (),
) -> Agenda:
    """`changed` are the objects that somebody said have changed in the system, `exports` what was written elsewhere."""
    told = set(changed)
    documents, entries, read = [], {}, {}
    named: set[Identity] = set()
    for document in parsed.documents:
        identity = document.identity
        named.add(identity)
        entry = inventory.get(identity)
        settled = (
            entry is not None
            and entry.uid
            and entry.digest == document.digest
            and _same_place(entry, document)
            and not entry.unowned
        )
        if settled and not everything and identity not in told:
            continue
        documents.append(document)
        if entry is not None:
            entries[identity] = entry
        if everything or both_ways or identity in told or entry is None or not entry.uid:
            read[identity] = str(document.document["apiVersion"])
    for entry in inventory:
        if entry.identity not in named:
            entries[entry.identity] = entry
            read[entry.identity] = entry.version
    for entry in exports if both_ways else ():
        if everything or entry.identity in told:
            read.setdefault(entry.identity, entry.version)
    return Agenda(tuple(documents), entries, read)


def planned(
    agenda: Agenda,
    parsed: Parsed,
    inventory: Inventory,
    live: Mapping[Identity, Document],
    options: Options,
    *,
    owners: Mapping[Identity, str] | None = None,
    refuse: Callable[[Identity], str] | None = None,
    taken: Iterable[str] = (),
    plural: Callable[[str, str], str | None] | None = None,
    held: Callable[[Identity], Collection[str]] = lambda identity: (),
    settled: Container[Identity] = frozenset(),
    touched: Container[Identity] = frozenset(),
    needed: Callable[[Identity], bool] | None = None,
    files: Files | None = None,
    names: Names = lambda document: (),
    exports: Exports | None = None,
) -> Plan:
    """The plan for what is on the agenda, guarded by the whole revision and the whole inventory. `files`: those of its
    documents, on both sides; `names`: which a document names; `exports`: what was written to a destination that is not
    where the documents come from."""
    known = dict(live)
    for identity, entry in agenda.entries.items():
        if identity not in agenda.read and entry.base.live is not None:
            known[identity] = entry.base.live  # as we left it; an apply puts right what we do not know

    def path(identity: Identity, used: Collection[str]) -> str:
        return path_for(identity, plural=plural, taken=used, files=held(identity))

    def uid(identity: Identity) -> str:
        entry = inventory.get(identity) or (exports.entries.get(identity) if exports else None)
        return entry.uid if entry is not None else ""

    reduced = Parsed(agenda.documents, (), parsed.artifacts, parsed.files)
    rest: dict[str, Any] = {"owners": owners, "refuse": refuse, "paths": path, "taken": taken, "needed": needed}
    made = plan(reduced, known, agenda.entries, options, settled=settled, touched=touched, **rest)
    whole = msgspec.structs.replace(
        made,
        prune=(*made.prune, *made.held),
        write_back=(*made.write_back, *made.held_edits),
        held=(),
        held_edits=(),
        guards=(),
    )
    if files:
        whole = filed(whole, agenda.documents, known, files, names, options)
    if exports is None:
        return guarded(whole, parsed, len(inventory), options, uid=uid)
    looked = {identity: e for identity, e in exports.entries.items() if identity in agenda.read or identity in live}
    folded = Folded(map(str.casefold, taken))
    whole = exported(
        whole,
        Exports(looked, exports.count),
        parsed,
        live,
        path=lambda identity: path(identity, folded),
        is_wanted=lambda identity: (
            options.selection.selects(identity) and identity not in (owners or {}) and not (refuse and refuse(identity))
        ),
    )
    return guarded(whole, parsed, len(inventory), options, uid=uid, written=exports.count)


def _same_place(entry: Entry, document: SourceDocument) -> bool:
    return (entry.path, entry.index, entry.item) == (document.path, document.index, document.item)
