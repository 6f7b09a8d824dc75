"""Where an inventory is kept: its shards in blobs, and a blob that lists them, of which the GitSync's status has the digest.

Flow: `intend` writes down what is going to be made, before it is, and `expect` what a push will make of the inventory, before
it is pushed; `save` tells of what was done. Each puts what changed, and gives a summary; whoever called writes it to the
status; then `settle` pins what the status names and lets go of what it named before. Blobs that were just put are safe for
the time in between. `load` pins again, for a process that was ended between the two; `read` is for those who only look.

Many shards that change at once are one blob, in which each has its place: a disk takes one blob sooner than sixty.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from trimtab.storage.blobs import Blobs, Digest, parse_digest, read
from trimtab.systems.gitops.inventory import MAX_SHARD, Delta, Entry, Inventory, pack_delta, unpack_delta
from trimtab.systems.gitops.kinds import GitSync, InventorySummary
from trimtab.systems.gitops.parsing import Identity

MEDIA_TYPE = "application/vnd.trimtab.gitops.inventory"
MAX_LIST = 64 << 20
EXPORTED = "exported "
MANY = 8
"""So many shards go into one blob."""


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Where a shard is: all of a blob, or a part of it."""

    digest: str
    start: int = 0
    size: int = -1


class Intent(msgspec.Struct, frozen=True, array_like=True):
    """Something that we were about to make."""

    key: str
    version: str
    path: str = ""
    index: int = 0
    item: int = -1

    @property
    def entry(self) -> Entry:
        identity = Identity.of_key(self.key)
        return Entry(identity, version=self.version, path=self.path, index=self.index, item=self.item)


class Pushing(msgspec.Struct, frozen=True, array_like=True):
    """A commit that we were about to push, and the blob of what the inventory is once it is there."""

    commit: str
    digest: str


class Listed(msgspec.Struct, frozen=True, omit_defaults=True):
    """The blob that the status names."""

    shards: dict[str, Place]  # by number; those of `exports` with a word before it
    revision: str = ""  # the commit that all of it was applied of; "" while a run goes on
    destination: str = ""
    intents: tuple[Intent, ...] = ()
    pushing: Pushing | None = None


class Kept:
    """The inventory of one GitSync, as it is kept. `exports` are what it wrote to a `destination` that is not its source:
    none of that is what it applied."""

    def __init__(self, blobs: Blobs, owner: str) -> None:
        self.inventory, self.exports = Inventory(), Inventory()
        self.destination = ""
        self.digest = ""
        self.revision = ""
        self.pushing: Pushing | None = None
        self._intents: tuple[Intent, ...] = ()
        self._blobs, self._owner = blobs, owner
        self._shards: dict[str, Place] = {}
        self._pinned: set[str] = set()

    @classmethod
    async def load(cls, blobs: Blobs, sync: GitSync) -> Kept:
        """Raises BlobError when it is gone: then nothing may be pruned, for nobody knows what is ours."""
        kept = await cls.read(blobs, sync)
        await kept.settle()
        return kept

    @classmethod
    async def read(cls, blobs: Blobs, sync: GitSync) -> Kept:
        """The same, for who writes nothing."""
        kept = cls(blobs, owner_of(sync))
        summary = sync.status.inventory if sync.status else None
        if not summary:
            return kept
        listed = msgspec.json.decode(await read(blobs, parse_digest(summary.digest), max_bytes=MAX_LIST), type=Listed)
        digests = sorted({place.digest for place in listed.shards.values()})
        found = await asyncio.gather(*(read(blobs, parse_digest(each), max_bytes=MAX_SHARD) for each in digests))
        content = dict(zip(digests, found, strict=True))
        parts = {name: _part(content, place) for name, place in listed.shards.items()}
        kept.inventory = Inventory.load({int(name): data for name, data in parts.items() if name.isdigit()})
        kept.exports = Inventory.load(
            {int(name.removeprefix(EXPORTED)): data for name, data in parts.items() if name.startswith(EXPORTED)}
        )
        kept.destination, kept.pushing = listed.destination, listed.pushing
        for intent in listed.intents:
            if intent.entry.identity not in kept.inventory:
                kept.inventory.put(intent.entry)
        kept.digest, kept.revision, kept._shards = summary.digest, listed.revision, dict(listed.shards)
        return kept

    @property
    def is_changed(self) -> bool:
        """Whether there is something to `save`."""
        return bool(self.inventory.changed_shards or self.exports.changed_shards)

    def export_to(self, destination: str) -> None:
        """What was written to another place says nothing of this one. "" is the source."""
        if destination != self.destination:
            self.pushing = None
            self.exports, self.destination = Inventory(), destination
            self._shards = {name: place for name, place in self._shards.items() if not name.startswith(EXPORTED)}

    async def intend(self, entries: Sequence[Entry]) -> InventorySummary:
        """Write down what is going to be made. Write the answer to the status, then `settle`."""
        self._intents = tuple(Intent(e.identity.key, e.version, e.path, e.index, e.item) for e in entries)
        return await self._listed("")

    async def expect(self, commit: str, after: Inventory) -> InventorySummary:
        """Write down what the inventory is when this commit is pushed. Write the answer to the status, then `settle`; then
        push, and `pushed` or, when nobody came to that, `arrived` or `lost`."""
        digest = await self._blobs.put(pack_delta(after.since(self.inventory)), media_type=MEDIA_TYPE)
        self.pushing = Pushing(commit, digest)
        return await self._listed("")

    def pushed(self, after: Inventory) -> None:
        """The commit is where it was expected."""
        self.inventory, self.pushing = after, None

    async def arrived(self) -> None:
        """The same, for who finds it there. Raises BlobError, InventoryError."""
        if self.pushing is not None:
            delta = unpack_delta(await read(self._blobs, parse_digest(self.pushing.digest), max_bytes=MAX_SHARD))
            self._take(delta)
        self.pushing = None

    def lost(self) -> None:
        """It is not there, and nothing came of it."""
        self.pushing = None

    def _take(self, delta: Delta) -> None:
        for entry in delta.put:
            self.inventory.put(entry)
        for identity in delta.removed:
            self.inventory.remove(identity)

    async def save(self, revision: str) -> InventorySummary:
        """Put what changed. Write the answer to the status, then `settle`."""
        self._intents = ()
        return await self._listed(revision)

    async def settle(self) -> None:
        """Pin what the status names, and let go of what it named before."""
        named = {place.digest for place in self._shards.values()} | ({self.digest} if self.digest else set())
        named |= {self.pushing.digest} if self.pushing is not None else set()
        await asyncio.gather(*(self._blobs.pin(Digest(each), self._owner) for each in named - self._pinned))
        await asyncio.gather(*(self._blobs.unpin(self._owner, Digest(each)) for each in self._pinned - named))
        self._pinned = named

    async def _put_changed(self) -> None:
        changed, exported = self.inventory.changed_shards, self.exports.changed_shards
        packed = await _packed(self.inventory, changed)
        packed |= {f"{EXPORTED}{name}": data for name, data in (await _packed(self.exports, exported)).items()}
        if len(packed) < MANY or sum(map(len, packed.values())) > MAX_SHARD:  # more is not read of a blob
            for name, data in packed.items():
                if data:
                    self._shards[name] = Place(await self._blobs.put(data, media_type=MEDIA_TYPE))
        else:
            digest = await self._blobs.put(b"".join(packed.values()), media_type=MEDIA_TYPE)
            start = 0
            for name, data in packed.items():
                self._shards[name] = Place(digest, start, len(data))
                start += len(data)
        for name, data in packed.items():
            if not data:
                self._shards.pop(name, None)
        self.inventory.saved(changed)
        self.exports.saved(exported)

    async def forget(self) -> None:
        """Let go of everything: the GitSync is going."""
        await self._blobs.unpin(self._owner)

    async def _listed(self, revision: str) -> InventorySummary:
        """With all that is known by now: what was meant before, or came with a push, is told by nobody else."""
        await self._put_changed()
        listed = Listed(
            shards=dict(sorted(self._shards.items())),
            revision=revision,
            destination=self.destination,
            intents=self._intents,
            pushing=self.pushing,
        )
        self.digest = await self._blobs.put(msgspec.json.encode(listed), media_type=MEDIA_TYPE)
        self.revision = revision
        return InventorySummary(digest=self.digest, count=len(self.inventory) + len(self._intents))


def owner_of(sync: GitSync) -> str:
    return f"gitops/GitSync/{sync.namespace}/{sync.name}/{sync.metadata.uid}"


async def _packed(inventory: Inventory, numbers: Sequence[int]) -> dict[str, bytes]:
    """Many shards in two threads: compressing lets others run."""

    def pack(part: Sequence[int]) -> dict[str, bytes]:
        return {str(number): inventory.pack(number) for number in part}

    if len(numbers) < MANY:
        return pack(numbers)
    one, other = await asyncio.gather(*(asyncio.to_thread(pack, part) for part in (numbers[::2], numbers[1::2])))
    return one | other


def _part(content: dict[str, bytes], place: Place) -> bytes:
    whole = content[place.digest]
    return whole if place.size < 0 else whole[place.start : place.start + place.size]
