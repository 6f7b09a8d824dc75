"""Which kinds go from the system to Git: those whose changes trigger it, and those that the GitSync names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.client.api import ApiClient
from trimtab.client.discovery import ApiResource
from trimtab.systems.gitops.acting import FORBIDDEN_GROUPS, FORBIDDEN_KINDS, account_of
from trimtab.systems.gitops.deciding import Agenda
from trimtab.systems.gitops.kinds import GitSync
from trimtab.systems.gitops.knowing import SECRET_KINDS, Knowledge
from trimtab.systems.gitops.looking import NotServed, listed_of, look
from trimtab.systems.gitops.parsing import Identity, Selection
from trimtab.systems.gitops.served import Served

NEEDED = frozenset({"list", "watch", "patch"})
NEVER = frozenset(
    {"Event", "Lease", "EndpointSlice", "Endpoints", "Pod", "ReplicaSet", "ControllerRevision", "SyncConflict"}
)
"""What the system makes by itself all the time."""

Document = dict[str, Any]


class Scope(msgspec.Struct, frozen=True):
    """The kinds, in one namespace."""

    kinds: tuple[ApiResource, ...]
    namespace: str

    async def new_objects(
        self,
        client: ApiClient,
        todo: Agenda,
        live: Mapping[Identity, Document],
        *,
        everything: bool,
        changed: frozenset[Identity],
    ) -> dict[Identity, Document]:
        """Objects that neither Git nor the inventory names."""
        if not everything:
            versions = {(kind.group, kind.kind): kind.api_version for kind in self.kinds}
            wanted = {
                identity: versions[identity.group, identity.kind]
                for identity in changed
                if identity not in todo.read
                and (identity.group, identity.kind) in versions
                and identity.namespace == self.namespace
            }
            return await look(client, wanted)
        found: dict[Identity, Document] = {}
        for kind in self.kinds:
            try:
                listed = await listed_of(client, kind.api_version, kind.kind, self.namespace)
            except NotServed:
                continue  # it went since we looked which kinds there are
            found.update((identity, document) for identity, document in listed.items() if identity not in live)
        return found


def in_scope(served: Served, knowledge: Knowledge, selection: Selection, sync: GitSync) -> Scope:
    """A kind of the system goes to Git when it triggers by itself, or is named: `*` alone names none."""
    named = Selection(tuple(entry for entry in selection.included if entry.kind != "*"), selection.excluded)
    known = [resource for resource in served.resources() if _may_go(resource, sync)]
    names = [(resource.group, resource.kind) for resource in known]
    chosen = set(named.kinds(names)) if named.included else set()
    for resource in known:
        if knowledge.is_triggering(resource.api_version, resource.kind, resource.categories):
            chosen |= set(selection.kinds([(resource.group, resource.kind)]))
    return Scope(tuple(resource for resource in known if (resource.group, resource.kind) in chosen), sync.namespace)


def _may_go(resource: ApiResource, sync: GitSync) -> bool:
    name = (resource.group, resource.kind)
    if not resource.namespaced or not resource.verbs >= NEEDED or name in SECRET_KINDS or resource.kind in NEVER:
        return False
    return bool(account_of(sync)) or not (resource.group in FORBIDDEN_GROUPS or name in FORBIDDEN_KINDS)
