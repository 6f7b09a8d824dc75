"""SyncConflicts: made when both sides changed the same, taken away when they agree again, and obeyed when a person decided.

A decision counts for what the person saw: when a side changed since, the object shows the new values, and asks anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.client.protocol import Query, Ref
from trimtab.model.errors import StatusError
from trimtab.model.hub import HubMeta
from trimtab.runtime.owners import owner_reference
from trimtab.systems.gitops.deciding import Agenda, planned
from trimtab.systems.gitops.kinds import FieldConflict, GitSync, ObjectRef, SyncConflict, SyncConflictSpec
from trimtab.systems.gitops.merging import FieldConflict as MergeConflict
from trimtab.systems.gitops.parsing import Identity
from trimtab.systems.gitops.planning import EMPTY, Conflict, Options, Plan

if TYPE_CHECKING:
    from trimtab.systems.gitops.knowing import Knowledge
    from trimtab.systems.gitops.reading import Snapshot
    from trimtab.systems.gitops.run.tools import Tools

MOST = 500
"""Conflicts of one sync that become objects."""
MOST_FIELDS = 200
LONGEST, LONGEST_PATH = 4096, 1024
ROOM = 160 << 10
"""Characters of one value, and of all values of a conflict: an object has an end. A longer one is cut, and has its digest."""
JOINED = (
    *("create", "update", "unchanged", "adopt", "prune", "keep", "forget"),
    *("files", "write_back", "refused", "guards", "held", "held_edits"),
)
"""What two plans have together, but for their conflicts."""


class Conflicts:
    """Those of one GitSync."""

    def __init__(self, tools: Tools, sync: GitSync, found: Mapping[str, SyncConflict]) -> None:
        self._tools, self._sync, self._found = tools, sync, dict(found)

    @classmethod
    async def of(cls, tools: Tools, sync: GitSync) -> Conflicts:
        listing = await tools.client.list(SyncConflict, Query(namespace=sync.namespace))
        ours = [item for item in listing.items if isinstance(item, SyncConflict) and item.spec.git_sync == sync.name]
        return cls(tools, sync, {item.name: item for item in ours})

    def decided(
        self,
        plan: Plan,
        todo: Agenda,
        live: Mapping[Identity, dict[str, Any]],
        snapshot: Snapshot,
        options: Options,
        inventory: Any,
        **rest: Any,
    ) -> Plan:
        """The plan, with the conflicts solved that a person decided. Nothing is written to a source without documents before
        its deletions are confirmed."""
        empty = rest.get("exports") is None and any(guard.reason == EMPTY for guard in plan.guards)
        sides: tuple[Literal["git", "system"], ...] = ("git",) if empty else ("git", "system")
        for side in sides:
            solved = {conflict.identity for conflict in plan.conflicts if self._resolution(conflict) == side}
            if solved:
                plan = self._solved(plan, solved, side, todo, live, snapshot, options, inventory, rest)
        return plan

    def _solved(
        self,
        plan: Plan,
        solved: set[Identity],
        side: Literal["git", "system"],
        todo: Agenda,
        live: Mapping[Identity, dict[str, Any]],
        snapshot: Snapshot,
        options: Options,
        inventory: Any,
        rest: dict[str, Any],
    ) -> Plan:
        part = Agenda(
            tuple(document for document in todo.documents if document.identity in solved),
            {identity: entry for identity, entry in todo.entries.items() if identity in solved},
            {identity: version for identity, version in todo.read.items() if identity in solved},
        )
        seen = {identity: document for identity, document in live.items() if identity in solved}
        taking = msgspec.structs.replace(options, policy=side)
        made = planned(part, snapshot.parsed, inventory, seen, taking, **rest)
        joined = {name: (*getattr(plan, name), *getattr(made, name)) for name in JOINED}
        left = tuple(conflict for conflict in plan.conflicts if conflict.identity not in solved)
        return msgspec.structs.replace(plan, **joined, conflicts=(*left, *made.conflicts))

    async def keep(self, plan: Plan, revision: str) -> int:
        """Let there be an object for each conflict, and none without one. How many there are."""
        wanted = {name_of(self._sync, conflict.identity): conflict for conflict in plan.conflicts[:MOST]}
        for name, conflict in wanted.items():
            spec = spec_of(self._sync, shown(conflict, self._tools.knowledge), revision)
            held = self._found.get(name)
            if held is None:
                await self._create(name, spec)
            elif _told(held.spec) != _told(spec):
                await self._tools.client.patch(held, held.replace(spec=spec))
        for name, held in self._found.items():
            if name not in wanted:
                await self._delete(held)
        return len(plan.conflicts)

    def _resolution(self, conflict: Conflict) -> str:
        held = self._found.get(name_of(self._sync, conflict.identity))
        if held is None or isinstance(held.spec.resolution, UnsetType):
            return ""
        seen = _told(held.spec) == _told(spec_of(self._sync, shown(conflict, self._tools.knowledge), ""))
        return held.spec.resolution if seen else ""

    async def _create(self, name: str, spec: SyncConflictSpec) -> None:
        metadata = HubMeta(
            name=name, namespace=self._sync.namespace, owner_references=(owner_reference(self._sync, controller=False),)
        )
        try:
            await self._tools.client.create(SyncConflict(metadata=metadata, spec=spec))
        except StatusError as error:
            if error.code != 409:
                raise
            return
        note = f"{spec.object.kind} {spec.object.name} was changed in Git and in the system: see SyncConflict {name}"
        self._tools.events.warning(self._sync, "Conflict", note)

    async def _delete(self, held: SyncConflict) -> None:
        try:
            await self._tools.client.delete(Ref(SyncConflict, held.name, held.namespace))
        except StatusError as error:
            if error.code != 404:
                raise


def shown(conflict: Conflict, knowledge: Knowledge) -> Conflict:
    """Without the values of sensitive fields."""
    document = conflict.git or conflict.live or {}
    names = str(document.get("apiVersion", "")), str(document.get("kind", ""))
    hidden = [".".join(path).split(".*")[0] for path in knowledge.sensitive(*names)]
    fields = tuple(
        hide(field) if any(field.path.startswith(path) or path.startswith(field.path) for path in hidden) else field
        for field in conflict.fields
    )
    return msgspec.structs.replace(conflict, fields=fields)


def hide(field: MergeConflict) -> MergeConflict:
    sides = (UNSET if side is UNSET else "(not shown)" for side in (field.base, field.git, field.system))
    return MergeConflict(field.path, *sides)


def name_of(sync: GitSync, identity: Identity) -> str:
    digest = hashlib.sha256(identity.key.encode()).hexdigest()[:10]
    return f"{sync.name[:200]}-{digest}"


def spec_of(sync: GitSync, conflict: Conflict, revision: str) -> SyncConflictSpec:
    document = conflict.git or conflict.live or conflict.base.git or {}
    identity, fields = conflict.identity, conflict.fields[:MOST_FIELDS]
    room = min(LONGEST, ROOM // (3 * max(len(fields), 1)))
    return SyncConflictSpec(
        git_sync=sync.name,
        object=ObjectRef(
            api_version=str(document.get("apiVersion") or identity.group or "v1"),
            kind=identity.kind,
            name=identity.name,
            namespace=identity.namespace,
        ),
        path=_within(conflict.path, LONGEST_PATH),
        revision=revision,
        fields=tuple(
            FieldConflict(
                path=_within(field.path or ".", LONGEST_PATH),
                base=_json(field.base, room),
                git=_json(field.git, room),
                system=_json(field.system, room),
            )
            for field in fields
        ),
    )


def _told(spec: SyncConflictSpec) -> SyncConflictSpec:
    """What a person judges by: not at which commit, nor what was decided."""
    return spec.replace(revision="", resolution=UNSET)


def _json(value: object, room: int) -> str | UnsetType:
    return UNSET if value is UNSET else _within(msgspec.json.encode(value, order="deterministic").decode(), room)


def _within(text: str, room: int) -> str:
    """The digest of one that is cut tells it from others that begin so: a decision is of the whole value."""
    if len(text) <= room:
        return text
    end = f"… (sha256:{hashlib.sha256(text.encode()).hexdigest()[:16]})"
    return text[: room - len(end)] + end
