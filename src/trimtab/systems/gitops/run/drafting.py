"""What there is, and so what is to be done. Reads, and writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Mapping
from typing import Any

import msgspec
from msgspec import UnsetType

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query
from trimtab.model.hub import lineage_key
from trimtab.runtime.tasks import ended
from trimtab.systems.gitops import artifacts
from trimtab.systems.gitops.acting import HINT, MANAGER, account_of, forbidden, relied_on
from trimtab.systems.gitops.conflicts import Conflicts
from trimtab.systems.gitops.deciding import Agenda, agenda, planned
from trimtab.systems.gitops.elsewhere import Exports, with_files
from trimtab.systems.gitops.inventory import Entry, Inventory
from trimtab.systems.gitops.keeping import Kept
from trimtab.systems.gitops.kinds import GitSync, Repository
from trimtab.systems.gitops.looking import look
from trimtab.systems.gitops.merging import FileSides
from trimtab.systems.gitops.parsing import Identity, Selection
from trimtab.systems.gitops.planning import Options, Plan, blamed
from trimtab.systems.gitops.planning.judging import is_the_servers
from trimtab.systems.gitops.reading import Contents, Snapshot
from trimtab.systems.gitops.run.checking import check_claims
from trimtab.systems.gitops.run.owners import lineage_of, living
from trimtab.systems.gitops.run.tools import Memory, Tools
from trimtab.systems.gitops.scope import in_scope
from trimtab.systems.gitops.served import Served
from trimtab.systems.gitops.views import other_views

Document = dict[str, Any]


class Draft(msgspec.Struct, frozen=True):
    """The plan, the conflicts that there were before it, and the live objects that were read, as the server has them."""

    plan: Plan
    conflicts: Conflicts
    raw: dict[Identity, Document]


class Drafter:
    """Plans for one GitSync."""

    def __init__(self, tools: Tools, sync: GitSync, options: Options, memory: Memory) -> None:
        self._tools, self._sync, self._options, self._memory = tools, sync, options, memory
        self._ahead: tuple[Snapshot, dict[Identity, str], asyncio.Task[dict[Identity, Document]]] | None = None

    def ahead(self, snapshot: Snapshot, kept: Kept) -> None:
        """Begin to look while Git is asked: mostly it says what it said before. Then `aclose`."""
        both = self._options.system_to_git
        todo = agenda(snapshot.parsed, kept.inventory, everything=True, both_ways=both, exports=kept.exports)
        wanted = self._served(todo)
        self._ahead = snapshot, wanted, asyncio.create_task(look(self._tools.actors.of(self._sync), wanted))

    async def aclose(self) -> None:
        """What was looked at for nothing."""
        if self._ahead is not None:
            await ended(self._ahead[2])
            self._ahead = None

    async def _looked(
        self, client: ApiClient, snapshot: Snapshot, wanted: dict[Identity, str]
    ) -> dict[Identity, Document]:
        """What was looked at ahead is too old for what is new in Git: an edit since then would be overwritten unseen."""
        if self._ahead is not None and self._ahead[0] is snapshot and self._ahead[1] == wanted:
            looking, self._ahead = self._ahead[2], None
            return await looking
        await self.aclose()
        return await look(client, wanted)

    async def draft(
        self,
        snapshot: Snapshot,
        kept: Kept,
        contents: Contents,
        *,
        everything: bool,
        changed: frozenset[Identity] = frozenset(),
    ) -> Draft:
        """Of `everything`, or only of what Git or `changed` tells; `contents` has the bytes of Git. NotServed; StatusError."""
        tools, options = self._tools, self._options
        client, both = tools.actors.of(self._sync), options.system_to_git
        await _renew(kept.inventory, tools.served)
        if options.prune and options.git_to_system:
            check_claims(snapshot, kept.inventory)
        told = changed if everything else changed | artifacts.moved(snapshot, kept.inventory, tools.knowledge)
        rest: dict[str, Any] = {"everything": everything, "changed": told, "exports": kept.exports}
        todo = self._known(agenda(snapshot.parsed, kept.inventory, both_ways=both, **rest))
        wanted = self._served(todo)
        raw = await self._looked(client, snapshot, wanted)
        if both:
            scope = in_scope(tools.served, tools.knowledge, options.selection, self._sync)
            raw |= await scope.new_objects(client, todo, raw, everything=everything, changed=changed)
        named = {document.identity for document in snapshot.parsed.documents}
        aside = other_views(raw, named, kept.inventory, tools.suffix)
        raw = {identity: document for identity, document in raw.items() if identity not in aside}
        settled = self._settled(raw, todo)
        same = settled if snapshot is self._memory.settled_in and not kept.destination else frozenset()
        live = {i: document if i in same else tools.knowledge.clean(document) for i, document in raw.items()}
        conflicts = await Conflicts.of(tools, self._sync)
        todo = _without(_disowned(todo, live, kept), aside, kept)
        rest = {
            "owners": await self._owners(live, todo),
            "refuse": await self._refusal(live),
            "taken": {*snapshot.files, *(entry.path for entry in kept.exports)} if kept.destination else snapshot.files,
            "exports": _exports(kept, {*wanted, *raw} - {*aside}) if both and kept.destination else None,
            "plural": tools.served.plural,
            "held": lambda identity: [file.name for file in tools.knowledge.files(raw.get(identity, {}))],
            "files": await self._files(todo, raw, snapshot, kept, contents, same),
            "touched": self._touched(todo, raw),
            "needed": self._needed,
            "names": lambda document: (file.name for file in tools.knowledge.files(document)),
        }
        plan = planned(todo, snapshot.parsed, kept.inventory, live, options, settled=settled, **rest)
        self._remember(plan, todo, snapshot if everything else None)
        plan = conflicts.decided(plan, todo, live, snapshot, options, kept.inventory, **rest)
        if snapshot.lacks_folder:
            plan = blamed(plan, snapshot.root, snapshot.commit)
        if both and kept.destination:
            plan = with_files(plan, kept.exports, raw, live, tools.knowledge)
        large = await artifacts.too_large(client, plan.write_back, raw, tools.knowledge)
        return Draft(artifacts.readable(plan, tools.knowledge, large), conflicts, raw)

    def _settled(self, raw: Mapping[Identity, Document], todo: Agenda) -> frozenset[Identity]:
        """There was nothing to do with them before, and nothing is another since: they need not be compared again."""
        known, generation = self._memory.settled, int(self._sync.metadata.generation or 0)
        found = set()
        for identity, document in raw.items():
            seen = known.get(identity)
            if seen is not None and seen == (_revision(document), todo.entries.get(identity), generation):
                found.add(identity)
        return frozenset(found)

    def _remember(self, plan: Plan, todo: Agenda, snapshot: Snapshot | None) -> None:
        """`snapshot`: all of it was looked at. Who comes with the same one finds nothing new in Git either."""
        self._memory.settled_in = snapshot
        if snapshot is not None:
            self._memory.settled = {}
        with_files = {step.identity for step in plan.files}
        known, generation = self._memory.settled, int(self._sync.metadata.generation or 0)
        for step in plan.unchanged:
            entry, revision = todo.entries.get(step.identity), _revision(step.live or {})
            if entry is not None and not entry.unowned and revision and step.identity not in with_files:
                known[step.identity] = revision, entry, generation

    def _known(self, todo: Agenda) -> Agenda:
        """Without what Git has no more and whose kind is not served: nobody can tell whether it is there, so it is neither
        pruned nor forgotten."""
        named, served = {document.identity for document in todo.documents}, self._tools.served
        lost = {
            identity
            for identity, entry in todo.entries.items()
            if identity not in named and not served.is_served(entry.version, identity.kind)
        }
        if not lost:
            return todo
        entries = {identity: entry for identity, entry in todo.entries.items() if identity not in lost}
        return Agenda(todo.documents, entries, {each: todo.read[each] for each in todo.read if each not in lost})

    def _served(self, todo: Agenda) -> dict[Identity, str]:
        """What is to be read, but for new objects of kinds that are yet to come. Where a version is yet to come, an object is
        read in the one that it was synced in."""
        served, found = self._tools.served, {}
        for identity, version in todo.read.items():
            entry = todo.entries.get(identity)
            if served.is_served(version, identity.kind):
                found[identity] = version
            elif entry is not None:
                found[identity] = entry.version if served.is_served(entry.version, identity.kind) else version
        return found

    async def _files(
        self,
        todo: Agenda,
        raw: Mapping[Identity, Document],
        snapshot: Snapshot,
        kept: Kept,
        contents: Contents,
        same: Container[Identity],
    ) -> dict[Identity, tuple[FileSides, ...]]:
        """Files of documents on the agenda, where a side is not as it was. Those of the `same` are."""
        documents, chosen = [each for each in todo.documents if each.identity not in same], self._options.selection
        if chosen != Selection():
            documents = [document for document in documents if chosen.selects(document.identity)]
        return await artifacts.compared(
            documents, raw, todo.read, kept.inventory, snapshot, self._tools.knowledge, contents
        )

    def _touched(self, todo: Agenda, raw: Mapping[Identity, Document]) -> frozenset[Identity]:
        """Of the objects that Git has no more, those whose files changed."""
        named = {document.identity for document in todo.documents}
        gone = (entry for identity, entry in todo.entries.items() if identity not in named)
        return artifacts.touched(gone, raw, self._tools.knowledge)

    async def _owners(self, live: Mapping[Identity, Document], todo: Agenda) -> dict[Identity, str]:
        """Objects that keep the lineage of another sync that lives, or are in its inventory. What is nobody's, and may be
        made ours now, is claimed."""
        named = {document.identity for document in todo.documents}
        new = [identity for identity in (*named, *live) if identity not in todo.entries]  # none, mostly
        meant = {each for each in new if each in named or not is_the_servers(each, live[each])}
        chosen = self._options.selection
        wanted = meant if chosen == Selection() else {each for each in meant if chosen.selects(each)}
        had = await self._tools.claims.owners(self._sync, wanted, todo.entries.keys() - named)
        found = {identity: f"the sync {owner}" for identity, owner in had.items()}
        given = {identity: self._lineage(document) for identity, document in live.items()}
        own = lineage_of(self._sync)
        others = {identity: lineage for identity, lineage in given.items() if lineage not in ("", own)}
        alive = await living(self._tools.actors.own, others.values())
        return found | {identity: f"the sync {alive[each]}" for identity, each in others.items() if each in alive}

    def _lineage(self, document: Document) -> str:
        """What it tells, also of a kind that is not known here."""
        key = self._tools.knowledge.lineage_key(str(document.get("apiVersion")), str(document.get("kind")))
        return _annotation(document, key or lineage_key(self._tools.suffix))

    def _needed(self, identity: Identity) -> bool:
        """What this sync works with. Whoever really means to delete that does it by hand."""
        sync, to = self._sync, self._sync.spec.destination
        repositories = {sync.spec.repository, "" if isinstance(to, UnsetType) else to.repository}
        at = (identity.kind, identity.namespace, identity.name)
        if identity.group.startswith("hub."):  # of any suffix
            own = {("GitSync", sync.namespace, sync.name), ("Project", "", sync.namespace)}
            return at in own | {("Repository", sync.namespace, name) for name in repositories}
        return not identity.group and at == ("Namespace", "", sync.namespace)

    async def _refusal(self, live: Mapping[Identity, Document]) -> Callable[[Identity], str]:
        namespace = self._sync.namespace
        if account_of(self._sync):
            return lambda identity: ""
        listing = await self._tools.client.list(GitSync, Query(namespace=namespace))
        repositories = await self._tools.client.list(Repository, Query(namespace=namespace))
        relied = relied_on(listing.items, repositories.items)

        def refusal(identity: Identity) -> str:
            kind, name = identity.kind, identity.name
            sync = relied.get((kind, name.rpartition("-")[0] if kind == "SyncConflict" else name), "")
            if sync and (not identity.group or identity.group.startswith("hub.")):
                return f"the GitSync {sync}, which acts as another account, goes by it{HINT}"
            return forbidden(identity, live.get(identity, {}), namespace)

        return refusal


async def _renew(inventory: Inventory, served: Served) -> None:
    """What was synced in a version that is served no more is known by one that is: the objects are the same."""

    def unserved() -> list[Entry]:
        return [entry for entry in inventory if not served.is_served(entry.version, entry.identity.kind)]

    if not unserved():
        return
    await served.refresh()  # kinds that came with a revision are among them
    for entry in unserved():
        resource = served.of_group(entry.identity.group, entry.identity.kind)
        if resource is not None and served.is_served(resource.api_version, resource.kind):
            inventory.put(entry.renewed(resource.api_version))


def _annotation(document: Document, key: str) -> str:
    return str((document.get("metadata", {}).get("annotations") or {}).get(key) or "")


def _exports(kept: Kept, looked: Container[Identity]) -> Exports:
    """What is not looked at is not gone."""
    found = {entry.identity: entry for entry in kept.exports if entry.identity in looked}
    return Exports(found, len(kept.exports))


def _revision(document: Document) -> str:
    return str(document.get("metadata", {}).get("resourceVersion", ""))


def _disowned(todo: Agenda, live: Mapping[Identity, Document], kept: Kept) -> Agenda:
    """What we were about to make and never did is not ours, even if somebody else has made it since."""
    gone = {
        identity
        for identity, entry in todo.entries.items()
        if not entry.uid and (identity not in live or not _applied_by_us(live[identity]))
    }
    return _without(todo, gone, kept)


def _without(todo: Agenda, gone: set[Identity], kept: Kept) -> Agenda:
    """What we do not have, or have by another name, is in no inventory."""
    if not gone:
        return todo
    for identity in gone:
        kept.inventory.remove(identity)
    entries = {identity: entry for identity, entry in todo.entries.items() if identity not in gone}
    return Agenda(todo.documents, entries, todo.read)


def _applied_by_us(live: Mapping[str, Any]) -> bool:
    entries = live.get("metadata", {}).get("managedFields") or ()
    return any(e.get("manager") == MANAGER and e.get("operation") == "Apply" for e in entries if isinstance(e, dict))
