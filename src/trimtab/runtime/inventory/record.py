"""Where an inventory is kept: in ConfigMaps of the owner, written before the objects in it are touched.

Why not in the owner's status: there it would share 256 KiB with all else, every kind would need a field for it, and a
restore from files, which have no status, would lose it.

A ConfigMap holds about a thousand objects; more go into a further one. An entry never moves from one to another, so all
of them together never miss anything, whichever write was the last. They carry a finalizer: when the owner is deleted in
the foreground, the garbage collector must not take the list before we have worked it off.

Others can make ConfigMaps there too. Ours are those that are named `inventory-<uid of the owner>-<two digits>` and refer
to that owner; what only has the label, or only the name, is passed over with a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from trimtab.client.protocol import Client, Object, Preconditions, Query, Ref
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.logs import log
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.inventory.plan import Entry, Identity
from trimtab.runtime.objects import typed, uid_of, uncached, with_metadata
from trimtab.runtime.owners import owned_by, owner_reference

RECORD = "runtime.trimtab.dev/inventory-record"
FINALIZER = "runtime.trimtab.dev/inventory"
OBJECTS = "objects"
SHARD_BYTES, SHARDS = 200 * 1024, 16
NUMBERS = 100
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
        shards = [typed(shard, ConfigMap) for shard in found.items]
        strange = [shard.name for shard in shards if not _is_ours(shard, owner)]
        if strange:
            log.warning(
                "ConfigMaps have the label of an inventory and are not part of it: find out who made them",
                owner=owner.name,
                namespace=namespace,
                count=len(strange),
                configmaps=strange[:5],
            )
        return cls(client, owner, namespace, [shard for shard in shards if _is_ours(shard, owner)])

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
                await self._create(held)
        if empty:
            self._shards = []

    async def _write(self, place: int, held: dict[Identity, Entry], empty: bool) -> None:
        shard, before = self._shards[place]
        if empty:
            await self._remove(shard)
        elif held != before:
            written = await self._client.patch(shard, shard.replace(data={**(shard.data or {}), OBJECTS: _text(held)}))
            self._shards[place] = (typed(written, ConfigMap), held)

    async def _create(self, held: dict[Identity, Entry]) -> None:
        """Under the next number. One that a stranger has taken is left to it; one of ours is a conflict."""
        number = max((int(shard.name[-2:]) for shard, _ in self._shards), default=-1) + 1
        while True:
            try:
                made = await self._client.create(self._shard(number, held))
            except StatusError as error:
                if error.reason != "AlreadyExists" or number == NUMBERS - 1 or not await self._is_taken(number):
                    raise
                number += 1
                continue
            self._shards.append((typed(made, ConfigMap), held))
            return

    def _shard(self, number: int, held: dict[Identity, Entry]) -> ConfigMap:
        owner = self._owner
        metadata = ObjectMeta(
            name=_name(owner, number),
            namespace=self._namespace,
            labels={RECORD: uid_of(owner)},
            finalizers=(FINALIZER,),
            owner_references=(owner_reference(owner, controller=False),),
        )
        return ConfigMap(metadata=metadata, data={OBJECTS: _text(held)})

    async def _is_taken(self, number: int) -> bool:
        """Whether the ConfigMap of this number is a stranger's."""
        name = _name(self._owner, number)
        try:
            found = await uncached(self._client).get(ConfigMap, name, self._namespace)
        except StatusError as error:
            if error.code != 404:
                raise
            return False
        if _is_ours(found, self._owner):
            return False
        log.warning(
            "the ConfigMap of an inventory is not ours: find out who made it", namespace=self._namespace, name=name
        )
        return True

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


def _name(owner: Object, number: int) -> str:
    return f"inventory-{uid_of(owner)}-{number:02}"


def _is_ours(shard: ConfigMap, owner: Object) -> bool:
    named = re.fullmatch(rf"inventory-{re.escape(uid_of(owner))}-[0-9]{{2}}", shard.name)
    return named is not None and owned_by(shard, owner)


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
