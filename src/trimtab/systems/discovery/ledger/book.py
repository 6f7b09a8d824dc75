"""The ledger of one rule, kept: in memory while its loop works, in a blob when it matters.

`commit` returns when everything noted before it is in a blob that the rule's status names. Many who commit at a time
share one write, so that a note before each login costs little. What a crash may lose is what nobody has committed.
"""

from __future__ import annotations

import asyncio

import msgspec

from trimtab.model.logs import log
from trimtab.storage.blobs import BlobError, Blobs, BlobsUnavailable, Digest, read
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.systems.discovery.ledger.faces import Faces
from trimtab.systems.discovery.ledger.records import Ledger, LedgerDamaged, decode, encode, woken
from trimtab.systems.discovery.telling import Teller

MEDIA_TYPE = "application/vnd.trimtab.discovery-ledger"
MAX_BYTES = 64 << 20


class Book:
    """Of one rule. `ledger` is replaced by whoever notes something; only the loop's own task tree does. `faces` is as each
    sweep begins."""

    def __init__(self, blobs: Blobs, teller: Teller, rule: DiscoveryRule) -> None:
        self.ledger, self.faces = Ledger(), Faces(Ledger())
        self.owner = owner_of(rule)
        self._blobs, self._teller = blobs, teller
        self._digest = ""
        self._known = False
        self._pinned: set[str] = set()
        self._wanted = self._written = 0
        self._writing: asyncio.Task[None] | None = None

    async def load(self, rule: DiscoveryRule) -> str:
        """Read what is known, as the rule says now. Returns why it could not be read, if so: then nothing is known."""
        self._digest = rule.status.ledger if rule.status and rule.status.ledger else ""
        self._known = True
        try:
            self.ledger = await ledger_of(self._blobs, rule)
            self.faces = await asyncio.to_thread(Faces, self.ledger)
        except BlobsUnavailable:
            raise  # it is there, and comes back
        except (BlobError, LedgerDamaged) as error:
            return str(error)
        return ""

    @property
    def closed_until(self) -> float:
        """Where logins that were counted against us are forgotten, none is tried before this time."""
        return self.ledger.closed_until

    @closed_until.setter
    def closed_until(self, moment: float) -> None:
        self.ledger = msgspec.structs.replace(self.ledger, closed_until=moment)

    async def wake(self, now: float) -> None:
        """Before anything is tried: what a process that is gone may have sent counts as sent."""
        awake = await asyncio.to_thread(woken, self.ledger, now)
        if awake is not self.ledger:
            self.ledger = awake
            await self.commit()

    async def commit(self) -> None:
        self._wanted += 1
        mine = self._wanted
        while self._written < mine:
            if self._writing is None or self._writing.done():
                self._writing = asyncio.create_task(self._write())
            await asyncio.shield(self._writing)

    async def close(self) -> None:
        """When nothing is tried any more: what is known, for whoever comes next. It raises nothing: without this, a
        sweep that was cut off counts every login that it may have sent."""
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)
        if self._known and self.ledger.run:
            self.ledger = msgspec.structs.replace(self.ledger, orderly=True)
            try:
                await self.commit()
            except Exception as error:  # the rule may be gone, or the server
                log.warning("a ledger is not written at its end", error=str(error))

    async def _write(self) -> None:
        covers = self._wanted
        held = msgspec.structs.replace(self.ledger, records=dict(self.ledger.records), misses=dict(self.ledger.misses))
        data = await asyncio.to_thread(encode, held)
        digest = await self._blobs.put(data, media_type=MEDIA_TYPE)
        if digest != self._digest:
            await self._blobs.pin(digest, self.owner)
            before = (self._pinned | {self._digest}) - {digest, ""}
            self._pinned, self._digest = before | {digest}, ""  # while nobody tells whether the status was written
            await self._teller.tell(lambda status: status.replace(ledger=digest))
            self._digest = digest
            for old in before:
                await self._let_go(Digest(old))
            self._pinned = {digest}
        self._written = covers

    async def _let_go(self, digest: Digest) -> None:
        try:
            await self._blobs.unpin(self.owner, digest)
        except BlobError as error:
            log.warning("a ledger is kept too long", error=str(error))


def owner_of(rule: DiscoveryRule) -> str:
    """Whose the blobs are."""
    return f"discoveryrules/{rule.metadata.uid}"


async def ledger_of(blobs: Blobs, rule: DiscoveryRule) -> Ledger:
    """What the rule's status names; an empty one where it names none. BlobError, LedgerDamaged."""
    digest = rule.status.ledger if rule.status and rule.status.ledger else ""
    if not digest:
        return Ledger()
    return await asyncio.to_thread(decode, await read(blobs, Digest(digest), max_bytes=MAX_BYTES))
