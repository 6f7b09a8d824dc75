"""A process that stands still while it has the counter's lock: all who write wait for it.

The server ends such a session itself when it is idle (`idle_in_transaction_session_timeout`). It knows no limit for one that
stopped in the midst of a statement: the driver has prepared it and not yet sent its values, or its answer is more than the
network holds and nobody takes it. So whoever waits for the lock looks who has it. Ending a session does no harm: its process,
once it goes on, does the transaction again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from trimtab.hub.storage import postgres_sql as sql
from trimtab.hub.storage.contract import StorageUnavailable
from trimtab.hub.storage.postgres_link import Link
from trimtab.model.logs import log

LOOK = 1.0
"""Seconds that a write waits for the lock between looks at who has it."""


class Stalled:
    """The sessions of others, as one that waits sees them. It may end those of its own role only, as replicas have."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._timer: asyncio.TimerHandle
        self._looking: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def ended(self) -> Iterator[None]:
        """While the block waits for the lock. One waits at a time: a storage has one transaction under way."""
        self._timer = asyncio.get_running_loop().call_later(LOOK, self._due)
        try:
            yield
        finally:
            self._timer.cancel()  # a look that is under way is not waited for: the lock may be ours by now

    async def close(self) -> None:
        if self._looking is not None:
            await asyncio.wait([self._looking])

    def _due(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(LOOK, self._due)
        if self._looking is None or self._looking.done():
            self._looking = loop.create_task(self._look(), name="hub-storage-stalled")

    async def _look(self) -> None:
        try:
            found = await self._link.run(lambda connection: connection.fetch(sql.END_STALLED, self._link.stalled))
        except StorageUnavailable as error:
            log.info("who holds up the hub's writes cannot be told", error=str(error))
            return
        if found:
            log.warning(
                "a process stood still in the midst of a write: its session was ended",
                place=self._link.place,
                sessions=[row["pid"] for row in found],
            )
