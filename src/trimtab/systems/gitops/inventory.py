"""What a sync has applied, and what both sides were then: the base of every merge, and all that it may ever prune.

Kept in shards by a hash of the identity, so that one changed document rewrites one small blob of many.
A shard that nobody needs is not even decoded.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec

from trimtab.systems.gitops.merging import Base
from trimtab.systems.gitops.parsing import Identity

T = TypeVar("T")

SHARDS = 64
MAX_SHARD = 256 * 1024 * 1024


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One document that we applied or wrote. An entry with an empty `uid` is an intent: we were about to create it."""

    identity: Identity
    version: str = ""  # apiVersion
    uid: str = ""
    path: str = ""
    index: int = 0
    digest: str = ""  # of the document in Git
    base: Base = Base()
    artifacts: dict[str, str] = {}  # name in the document → digest of its bytes
    item: int = -1
    unowned: bool = False  # we wrote it to Git, and have not given it our lineage yet

    def renewed(self, version: str) -> Entry:
        """The same in another version of its kind."""
        git, live = (
            None if side is None else {**side, "apiVersion": version} for side in (self.base.git, self.base.live)
        )
        return msgspec.structs.replace(self, version=version, base=Base(git, live))


class Delta(msgspec.Struct, frozen=True):
    """What makes one inventory of another."""

    put: tuple[Entry, ...] = ()
    removed: tuple[Identity, ...] = ()


class InventoryError(ValueError):
    """A shard cannot be read."""


class Inventory:
    """Entries by identity. `changed_shards` are those that differ from what was loaded, until `saved`."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._shards: list[dict[Identity, Entry]] = [{} for _ in range(SHARDS)]
        self._entries: dict[Identity, Entry] = {}  # the same, of the shards that are decoded
        self._changed: set[int] = set()
        self._packed: dict[int, bytes] = {}  # not decoded yet
        for entry in entries:
            self.put(entry)

    @classmethod
    def load(cls, shards: Mapping[int, bytes]) -> Inventory:
        """Of what `pack` gave. Shards that are not there are empty. Raises InventoryError when a shard is first needed."""
        inventory = cls()
        inventory._packed = {number: data for number, data in shards.items() if data}
        return inventory

    def get(self, identity: Identity) -> Entry | None:
        if self._packed and identity not in self._entries:
            self._shard(shard_of(identity))
        return self._entries.get(identity)

    def put(self, entry: Entry) -> None:
        number = shard_of(entry.identity)
        shard = self._shard(number)
        if shard.get(entry.identity) != entry:
            shard[entry.identity] = self._entries[entry.identity] = entry
            self._changed.add(number)

    def remove(self, identity: Identity) -> None:
        number = shard_of(identity)
        if self._shard(number).pop(identity, None) is not None:
            del self._entries[identity]
            self._changed.add(number)

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._all().values()))

    def __len__(self) -> int:
        return len(self._all())

    def __contains__(self, identity: object) -> bool:
        return isinstance(identity, Identity) and self.get(identity) is not None

    def copy(self) -> Inventory:
        """Another with the same entries and changes; what is put into the one is not in the other."""
        other = Inventory()
        other._shards = [dict(shard) for shard in self._shards]
        other._entries, other._changed, other._packed = dict(self._entries), set(self._changed), dict(self._packed)
        return other

    def since(self, before: Inventory) -> Delta:
        """What was put and removed since `before` was copied to make this one."""
        changed = {each for number in self._changed for each in (*self._shards[number], *before._shard(number))}
        ours, theirs = self._entries, before._entries
        put = tuple(ours[each] for each in sorted(changed & ours.keys()) if theirs.get(each) is not ours[each])
        return Delta(put, tuple(sorted(changed - ours.keys())))

    def mapping(self) -> dict[Identity, Entry]:
        return dict(self._all())

    @property
    def changed_shards(self) -> tuple[int, ...]:
        return tuple(sorted(self._changed))

    def pack(self, number: int) -> bytes:
        """A shard as it is kept; b"" when it is empty. The same entries are the same bytes."""
        packed = self._packed.get(number)
        if packed is not None:
            return packed
        shard = self._shards[number]
        if not shard:
            return b""
        from isal import isal_zlib  # several times as fast; who only reads needs it not

        return bytes(isal_zlib.compress(_encoder.encode([shard[identity] for identity in sorted(shard)]), 1))

    def saved(self, numbers: Iterable[int] | None = None) -> None:
        """These shards (all of them) are kept now."""
        self._changed -= set(self._changed if numbers is None else numbers)

    def _all(self) -> dict[Identity, Entry]:
        for number in list(self._packed):
            self._shard(number)
        return self._entries

    def _shard(self, number: int) -> dict[Identity, Entry]:
        packed = self._packed.get(number)
        if packed is not None:
            self._shards[number] = {entry.identity: entry for entry in _decoded(packed, _decoder)}
            del self._packed[number]  # not before: one that cannot be read must not look empty the next time
            self._entries |= self._shards[number]
        return self._shards[number]


def pack_delta(delta: Delta) -> bytes:
    from isal import isal_zlib

    return bytes(isal_zlib.compress(_encoder.encode(delta), 1))


def unpack_delta(data: bytes) -> Delta:
    """Of what `pack_delta` gave. Raises InventoryError."""
    return _decoded(data, _delta_decoder)


def shard_of(identity: Identity) -> int:
    return hashlib.blake2b(identity.key.encode(), digest_size=2).digest()[0] % SHARDS


def _decoded(data: bytes, decoder: msgspec.msgpack.Decoder[T]) -> T:
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(data, MAX_SHARD)
        if unpacker.unconsumed_tail or not unpacker.eof:
            raise InventoryError("a shard of the inventory is cut off or too large")
        return decoder.decode(plain)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise InventoryError(f"a shard of the inventory cannot be read: {error}") from None


_encoder = msgspec.msgpack.Encoder(order="deterministic")
_decoder = msgspec.msgpack.Decoder(list[Entry])
_delta_decoder = msgspec.msgpack.Decoder(Delta)
