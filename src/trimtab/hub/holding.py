"""One writer of a resource at a time, over all replicas: an intent in the storage service, with a lease.

A writer that dies keeps others away until its lease ends, and no longer.
"""

from __future__ import annotations

import asyncio
import uuid

from trimtab.hub.storage.contract import INTENTS, Row, RowConflict, RowKey, RowQuery, RowWrite, Storage
from trimtab.model.clock import Clock
from trimtab.store.contract import Op

LEASE = 60.0
AGAIN = 0.05


class Holds:
    """The intent of a resource is a row of type `intents.<type>` with its name."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock

    async def take(self, key: RowKey) -> Row:
        """Nobody else writes this resource until `release`. Waits for another writer as long as its lease lasts."""
        held = _intent(key)
        while True:
            current = await self._storage.get(held)
            if current is None or self._ended(current):
                until = self._clock.now().timestamp() + LEASE
                write = RowWrite(
                    row=Row(key=held, body={"until": until, "by": uuid.uuid4().hex}),
                    expect=0 if current is None else current.revision,
                )
                try:
                    return await self._storage.commit(write)
                except RowConflict:
                    continue
            await self._clock.sleep(AGAIN)  # another replica writes it; its end is told nowhere nearer

    async def release(self, intent: Row) -> None:
        try:
            await asyncio.shield(self._storage.commit(RowWrite(row=intent, op=Op.DELETE, expect=intent.revision)))
        except RowConflict:
            return  # our lease had ended

    async def taken(self, key: RowKey) -> bool:
        current = await self._storage.get(_intent(key))
        return current is not None and not self._ended(current)

    async def sweep(self, organization: str, project: str, type_: str) -> None:
        """Take back what dead writers left in a project: where they never came to write, nobody else does."""
        for intent in await self._intents(organization, project, type_):
            if self._ended(intent):
                await self.release(intent)

    async def count(self, organization: str, project: str, type_: str) -> int:
        """Of what is being written in a project."""
        return sum(not self._ended(intent) for intent in await self._intents(organization, project, type_))

    async def _intents(self, organization: str, project: str, type_: str) -> list[Row]:
        held = RowQuery(organization=organization, type=f"{INTENTS}{type_}", project=project)
        return (await self._storage.list(held)).rows

    def _ended(self, intent: Row) -> bool:
        return bool(intent.body["until"] < self._clock.now().timestamp())


def _intent(key: RowKey) -> RowKey:
    return key._replace(type=f"{INTENTS}{key.type}")
