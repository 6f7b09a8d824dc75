"""Where an inventory is kept: in ConfigMaps of the owner, written before the objects in it are touched.

Why not in the owner's status: there it would share 256 KiB with all else, every kind would need a field for it, and a
restore from files, which have no status, would lose it.

A ConfigMap holds about a thousand objects; more go into a further one. An entry never moves from one to another, so all
of them together never miss anything, whichever write was the last. They carry a finalizer: when the owner is deleted in
the foreground, the garbage collector must not take the list before we have worked it off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from trimtab.client.protocol import Client, Object, Preconditions, Query, Ref
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.inventory.plan import Entry, Identity
from trimtab.runtime.objects import typed, uid_of, uncached, with_metadata
from trimtab.runtime.owners import owner_reference

RECORD = "runtime.trimtab.dev/inventory-record"
FINALIZER = "runtime.trimtab.dev/inventory"
OBJECTS = "objects"
SHARD_BYTES, SHARDS = 200 * 1024, 16
UID_BYTES = 45


class InventoryTooLarge(ValueError):  # noqa: N818 - it reads as what is wrong
    """More objects than an inventory can hold."""


class Record:
    """The inventory of one owner as it was read. Every write fails with 409 when someone else wrote since."""

    def __init__(self, client: Client, owner: Object, namespace: str, shards: list[ConfigMap]) -> None:
        self._client, self._owner, self._namespace = client, owner, namespace
        self._shards = [(shard, _read(shard)) for shard in sorted(shards, key=lambda shard: shard.name)]

    @classmethod
    async def read(cls, client: Client, owner: Object, namespace: str) -> Record:
        query = Query(namespace=namespace, labels=f"{RECORD}={uid_of(owner)}")
        found = await uncached(client).list(ConfigMap, query)
        return cls(client, owner, namespace, [typed(shard, ConfigMap) for shard in found.items])

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple({e.identity: e for _, held in self._shards for e in held.values()}.values())

    async def update(self, put: Iterable[Entry], drop: Iterable[Entry] = ()) -> None:
        """Make it so; ConfigMaps in which nothing changes are not written. InventoryTooLarge before any write."""
        going = {entry.identity for entry in drop}
        wanted = {entry.identity: entry for entry in put}
        after: list[dict[Identity, Entry]] = []
        for _, held in self._shards:
            after.append({i: wanted.pop(i, entry) for i, entry in held.items() if i not in going})
        sizes = [sum(map(_size, held.values())) for held in after]
        for identity, entry in wanted.items():
            place = next((n for n, size in enumerate(sizes) if size + _size(entry) <= SHARD_BYTES), len(after))
            if place == len(after):
                after.append({})
                sizes.append(0)
            after[place][identity] = entry
            sizes[place] += _size(entry)
        if len(after) > SHARDS:
            raise InventoryTooLarge(
                f"{self._owner.kind} {self._owner.name} has {sum(map(len, after))} objects, more than fit into "
                f"{SHARDS} ConfigMaps: split the set between several owners"
            )
        empty = not any(after)
        for place, held in enumerate(after):
            if place < len(self._shards):
                await self._write(place, held, empty)
            else:
                await self._create(place, held)
        if empty:
            self._shards = []

    async def _write(self, place: int, held: dict[Identity, Entry], empty: bool) -> None:
        shard, before = self._shards[place]
        if empty:
            await self._remove(shard)
        elif held != before:
            written = await self._client.patch(shard, shard.replace(data={**(shard.data or {}), OBJECTS: _text(held)}))
            self._shards[place] = (typed(written, ConfigMap), held)

    async def _create(self, place: int, held: dict[Identity, Entry]) -> None:
        owner = self._owner
        metadata = ObjectMeta(
            name=f"inventory-{uid_of(owner)}-{place:02}",
            namespace=self._namespace,
            labels={RECORD: uid_of(owner)},
            finalizers=(FINALIZER,),
            owner_references=(owner_reference(owner, controller=False),),
        )
        made = await self._client.create(ConfigMap(metadata=metadata, data={OBJECTS: _text(held)}))
        self._shards.append((typed(made, ConfigMap), held))

    async def _remove(self, shard: ConfigMap) -> None:
        """What is written last is empty: whoever finds it after a crash removes it again."""
        try:
            left = tuple(name for name in shard.metadata.finalizers or () if name != FINALIZER)
            freed = shard.replace(data={OBJECTS: "[]"})
            shard = typed(await self._client.patch(shard, with_metadata(freed, finalizers=left)), ConfigMap)
            at = Preconditions(uid=uid_of(shard), resource_version=shard.metadata.resource_version or None)
            await self._client.delete(Ref(ConfigMap, shard.name, shard.namespace), preconditions=at)
        except StatusError as error:
            if error.code != 404:
                raise


def _read(shard: ConfigMap) -> dict[Identity, Entry]:
    text = (shard.data or {}).get(OBJECTS, "[]")
    try:
        return {entry.identity: entry for entry in msgspec.json.decode(text, type=list[Entry])}
    except msgspec.MsgspecError as error:
        raise ValueError(
            f"ConfigMap {shard.namespace}/{shard.name} is no inventory that we wrote ({error}): repair or restore it; "
            "until then nothing is pruned"
        ) from None


def _text(held: Mapping[Identity, Entry]) -> str:
    return "[\n" + ",\n".join(msgspec.json.encode(entry).decode() for entry in held.values()) + "\n]"


def _size(entry: Entry) -> int:
    """With room for the uid, which comes later."""
    return len(msgspec.json.encode(entry)) + 2 + (0 if entry.uid else UID_BYTES)
