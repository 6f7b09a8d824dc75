"""Snapshots of revisions: what ran can run again, exactly, whatever became of the spec and of its configs since.

Flow of `save`: the copies of the configs, then a ControllerRevision that names them. A crash in between leaves copies
that the next `save` finds, or that `prune` removes. A snapshot never changes once it is there.

Guarantees: an object of another owner, or with other content, is never touched: it is told (`SnapshotConflict`). One
that a CanaryDeployment of this name left behind, and that nobody controls, is taken again when its content is the same.
Data of Secrets is only in the Secrets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar

import msgspec

from trimtab.client.protocol import Client, Object, Preconditions, Query, Ref
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, ControllerRevision, Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Resource
from trimtab.runtime.objects import typed, uid_of
from trimtab.runtime.owners import NotOurs, controller_of, create_or_adopt, owned_by
from trimtab.systems.delivery.kinds import CanaryDeployment, TrackedConfig
from trimtab.systems.delivery.kinds.fields import OWNER
from trimtab.systems.delivery.revisions.configs import Tracked, checksum
from trimtab.systems.delivery.revisions.hashing import revision_of, short
from trimtab.systems.delivery.revisions.pinning import COPY_OF, copies, copy_name, pinned, unpinned

R = TypeVar("R", bound=Resource)
CONFIGS: dict[str, type[ConfigMap] | type[Secret]] = {"ConfigMap": ConfigMap, "Secret": Secret}


class SnapshotConflict(Exception):  # noqa: N818 - it reads as what is wrong
    """An object has the name that a snapshot needs, and is not ours or says something else."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """`template` refers to the copies of the configs. A higher number was made later."""

    revision: str
    template: dict[str, Any]
    configs: tuple[TrackedConfig, ...] = ()
    number: int = 0
    owner: str = ""

    @property
    def rehashed(self) -> str:
        """Its revision as this release computes it: another than `revision` only when the hash has changed."""
        return revision_of(unpinned(self.template, self.configs, self.owner), self.configs)

    @property
    def copies(self) -> tuple[tuple[str, str], ...]:
        """Kind and name of each."""
        return tuple((config.kind, copy_name(config, self.owner)) for config in self.configs)


class _Data(msgspec.Struct, frozen=True):
    revision: str
    template: dict[str, Any]
    configs: tuple[TrackedConfig, ...] = ()


def name_of(owner: str, revision: str) -> str:
    """Of the ControllerRevision."""
    return f"{owner}-{short(revision)}"


async def save(
    client: Client, owner: CanaryDeployment, revision: str, template: Mapping[str, Any], tracked: Tracked
) -> Snapshot:
    """The snapshot of this revision, made now or before. `template` is as the user wrote it. SnapshotConflict."""
    for copy in copies(tracked, owner.name):
        await _kept(client, copy, owner)
    known = await load(client, owner, revision)
    if known is not None:
        return known
    last = max((snapshot.number for snapshot in await listed(client, owner)), default=0)
    made = ControllerRevision(
        metadata=ObjectMeta(name=name_of(owner.name, revision), namespace=owner.namespace, labels={OWNER: owner.name}),
        data={
            "revision": revision,
            "template": pinned(template, tracked.configs, owner.name),
            "configs": msgspec.to_builtins(tracked.configs),
        },
        revision=last + 1,
    )
    snapshot = _read(await _kept(client, made, owner), owner)
    if snapshot is None:
        raise SnapshotConflict(f"ControllerRevision {made.namespace}/{made.name} is damaged: delete it")
    return snapshot


async def load(client: Client, owner: CanaryDeployment, revision: str) -> Snapshot | None:
    """None when this owner has none."""
    try:
        found = await client.get(ControllerRevision, name_of(owner.name, revision), owner.namespace)
    except StatusError as error:
        if error.code != 404:
            raise
        return None
    snapshot = _read(typed(found, ControllerRevision), owner)
    return snapshot if snapshot is not None and snapshot.revision == revision else None


async def listed(client: Client, owner: CanaryDeployment) -> tuple[Snapshot, ...]:
    """All of this owner, newest first."""
    return tuple(snapshot for _, snapshot in await _revisions(client, owner))


def known_as(revision: str, snapshots: Sequence[Snapshot]) -> str:
    """The name that this revision has: its own, or the older one of a snapshot that says the same, from before an upgrade
    that changed the hash."""
    if any(snapshot.revision == revision for snapshot in snapshots):
        return revision
    return next((snapshot.revision for snapshot in snapshots if snapshot.rehashed == revision), revision)


async def lost(client: Client, owner: CanaryDeployment, snapshot: Snapshot) -> tuple[tuple[str, str], ...]:
    """Copies of this snapshot that someone deleted: its pods could not start. Kind and name of each."""
    gone = []
    for kind, name in snapshot.copies:
        try:
            await client.get(CONFIGS[kind], name, owner.namespace)
        except StatusError as error:
            if error.code != 404:
                raise
            gone.append((kind, name))
    return tuple(gone)


async def prune(client: Client, owner: CanaryDeployment, keep: AbstractSet[str], limit: int) -> tuple[str, ...]:
    """Remove the oldest snapshots beyond `limit`, but none of `keep`, and copies that none of the others uses. The
    revisions that went."""
    stay: list[Snapshot] = []
    go: list[tuple[ControllerRevision, Snapshot]] = []
    for place, (found, snapshot) in enumerate(await _revisions(client, owner)):
        if place < limit or snapshot.revision in keep:
            stay.append(snapshot)
        else:
            go.append((found, snapshot))
    for found, _ in go:
        await _remove(client, ControllerRevision, found)
    used = {copy for snapshot in stay for copy in snapshot.copies}
    # Whether a copy goes is in its metadata: nobody needs to read Secrets for that.
    query = Query(namespace=owner.namespace, labels=f"{OWNER}={owner.name}", metadata_only=True)
    for kind, cls in CONFIGS.items():
        for copy in (await client.list(cls, query)).items:
            ours = owned_by(copy, owner) and COPY_OF in (copy.metadata.annotations or {})
            if ours and (kind, copy.name) not in used:
                await _remove(client, cls, copy)
    return tuple(snapshot.revision for _, snapshot in go)


async def _kept(client: Client, wanted: R, owner: CanaryDeployment) -> R:
    """The object as it is in the API: created, found, or taken back."""
    scheme = getattr(client, "scheme", None)
    try:
        found = typed(await create_or_adopt(client, wanted, owner, scheme=scheme), type(wanted))
    except NotOurs as refused:
        left = typed(refused.existing, type(wanted))
        if controller_of(left) is not None or (left.metadata.labels or {}).get(OWNER) != owner.name:
            raise SnapshotConflict(str(refused)) from None
        _check(left, wanted)
        found = typed(await create_or_adopt(client, wanted, owner, adopt=True, scheme=scheme), type(wanted))
    _check(found, wanted)
    return found


def _check(found: Resource, wanted: Resource) -> None:
    """The same name must mean the same content."""
    if _content(found) != _content(wanted):
        kind = type(wanted).__name__
        raise SnapshotConflict(f"{kind} {wanted.namespace}/{wanted.name} exists with other content: delete it")


def _content(obj: Resource) -> str:
    if isinstance(obj, ConfigMap | Secret):
        return checksum(obj) if obj.immutable is True else "mutable"  # it may say something else tomorrow
    return str((obj.data or {}).get("revision")) if isinstance(obj, ControllerRevision) else ""


async def _revisions(client: Client, owner: CanaryDeployment) -> list[tuple[ControllerRevision, Snapshot]]:
    """Newest first."""
    query = Query(namespace=owner.namespace, labels=f"{OWNER}={owner.name}")
    found = [typed(item, ControllerRevision) for item in (await client.list(ControllerRevision, query)).items]
    pairs = [(item, snapshot) for item in found if (snapshot := _read(item, owner)) is not None]
    return sorted(pairs, key=lambda pair: (pair[0].revision, pair[0].name), reverse=True)


def _read(found: ControllerRevision, owner: CanaryDeployment) -> Snapshot | None:
    """None when it is no snapshot of this owner."""
    if not owned_by(found, owner):
        return None
    try:
        data = msgspec.convert(found.data or {}, _Data)
    except msgspec.ValidationError:
        return None
    return Snapshot(
        revision=data.revision,
        template=data.template,
        configs=data.configs,
        number=found.revision,
        owner=owner.name,
    )


async def _remove(client: Client, kind: type[Resource], obj: Object) -> None:
    """This very object; one that is gone is gone."""
    try:
        await client.delete(Ref(kind, obj.name, obj.namespace), preconditions=Preconditions(uid=uid_of(obj)))
    except StatusError as error:
        if error.code not in (404, 409):
            raise
