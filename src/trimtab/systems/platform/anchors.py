"""Who owns what Trimtab has put on a cluster: an anchor, a ConfigMap on the cluster itself.

The inventory of a set of objects needs an owner in the same API, and must outlive the hub. The anchor is that owner: its
uid labels the objects, and the record of them hangs on it. Its name is derived from who wants the set (hub, kind,
project, name, part), so whoever comes back after a crash, or from a backup of the hub, finds its own again; another
Trimtab has other anchors, and what those own is refused. A finalizer keeps it while it owns anything.
"""

from __future__ import annotations

import hashlib

import msgspec

from trimtab.client.protocol import Client, Preconditions, Query, Ref
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, Namespace
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.objects import typed, uid_of, uncached, with_metadata
from trimtab.runtime.system import NAMESPACE
from trimtab.systems.platform.faults import Fault

OWNER = "hub.trimtab.dev/anchor-of"
FINALIZER = "hub.trimtab.dev/anchor"


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants a set of objects on a cluster. `part`: which of several sets of the same resource."""

    hub: str
    kind: str
    project: str
    name: str
    part: str = ""

    @property
    def owner(self) -> str:
        """The same for all parts; fits a label."""
        return _hashed(self.hub, self.kind, self.project, self.name)

    @property
    def anchor(self) -> str:
        return f"trimtab-{self.kind.lower()}-{_hashed(self.owner, self.part)}"

    def data(self) -> dict[str, str]:
        return {field: value for field, value in msgspec.structs.asdict(self).items() if value}


async def hub_identity(client: Client) -> str:
    """What tells this hub from all others: the uid of a namespace that every API has and nobody can delete."""
    for name in ("kube-system", NAMESPACE):
        try:
            return uid_of(await uncached(client).get(Namespace, name))
        except StatusError as error:
            if error.code != 404:
                raise
    raise Fault("NoIdentity", "the hub's API has no namespace kube-system, by which clusters would know it")


async def ensure(target: Client, holder: Holder) -> tuple[ConfigMap, bool]:
    """The anchor, and whether it was made just now: then nothing of ours can be there."""
    found = await find(target, holder)
    if found is not None:
        return found, False
    await ensure_namespace(target, NAMESPACE)
    metadata = ObjectMeta(
        name=holder.anchor, namespace=NAMESPACE, labels={OWNER: holder.owner}, finalizers=(FINALIZER,)
    )
    try:
        return typed(await target.create(ConfigMap(metadata=metadata, data=holder.data())), ConfigMap), True
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise
    found = await find(target, holder)
    if found is None:
        raise Fault("AnchorBusy", "the record of what is on the cluster came and went: it is tried again")
    return found, False


async def find(target: Client, holder: Holder) -> ConfigMap | None:
    try:
        found = typed(await uncached(target).get(ConfigMap, holder.anchor, NAMESPACE), ConfigMap)
    except StatusError as error:
        if error.code != 404:
            raise
        return None
    if (found.data or {}) != holder.data():
        raise Fault(
            "AnchorForeign", f"ConfigMap {NAMESPACE}/{holder.anchor} on the cluster is not ours: find out who wrote it"
        )
    return found


async def parts(target: Client, holder: Holder) -> dict[str, ConfigMap]:
    """Every anchor of a resource, by part."""
    listed = await uncached(target).list(ConfigMap, Query(namespace=NAMESPACE, labels=f"{OWNER}={holder.owner}"))
    found: dict[str, ConfigMap] = {}
    for item in listed.items:
        anchor = typed(item, ConfigMap)
        part = (anchor.data or {}).get("part", "")
        named = msgspec.structs.replace(holder, part=part)
        if anchor.name == named.anchor and (anchor.data or {}) == named.data():
            found[part] = anchor
    return found


async def release(target: Client, anchor: ConfigMap) -> None:
    """Remove an anchor that owns nothing any more."""
    left = tuple(name for name in anchor.metadata.finalizers or () if name != FINALIZER)
    try:
        freed = typed(await target.patch(anchor, with_metadata(anchor, finalizers=left)), ConfigMap)
        at = Preconditions(uid=uid_of(freed))
        await target.delete(Ref(ConfigMap, freed.name, NAMESPACE), preconditions=at)
    except StatusError as error:
        if error.code != 404:
            raise


async def ensure_namespace(target: Client, name: str) -> None:
    """It belongs to nobody, and stays: others may have put things there."""
    try:
        await uncached(target).get(Namespace, name)
    except StatusError as error:
        if error.code != 404:
            raise
        try:
            await target.create(Namespace(metadata=ObjectMeta(name=name)))
        except StatusError as raced:
            if raced.reason != "AlreadyExists":
                raise


def _hashed(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:32]
