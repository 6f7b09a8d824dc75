"""Objects that go by themselves: events, an hour after their last write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.store.contract import Conflict, Op, StoreError

if TYPE_CHECKING:
    from trimtab.server.core import Server

PERIOD = 30.0


class Expiry:
    def __init__(self, server: Server) -> None:
        self._server = server

    async def run(self) -> None:
        while True:
            try:
                await self.sweep()
            except (StoreError, StatusError) as error:
                log.warning("what has expired stays for now", error=str(error))
            await self._server.clock.sleep(PERIOD)

    async def sweep(self) -> int:
        """Remove what has expired; returns how many."""
        removed = 0
        while entries := await self._server.store.expired(self._server.steady()):
            for entry in entries:
                served = self._server.registry.storages()[entry.key.resource]
                try:
                    await self._server.store.commit(served.write(served.decode(entry), entry.revision, Op.DELETE))
                    removed += 1
                except Conflict:
                    continue  # it was written again, and so lives on
        return removed
