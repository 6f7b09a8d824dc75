"""Changes that were not made through this process: the storage service's log, followed by every replica for itself.

Most of what comes was written by a replica of ours and is known by its revision. After a gap (`Gone`) nothing is known: all
that is kept is dropped, and the log is read from where it begins now. While it cannot be read what is kept is believed for
its expiry at most.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import cast

from trimtab.hub.cache.caches import Caches
from trimtab.hub.cache.generations import Change
from trimtab.hub.contract import HubError
from trimtab.hub.storage.contract import RowBatch, Storage, StorageUnavailable
from trimtab.model.clock import Clock
from trimtab.model.logs import log
from trimtab.store.contract import Gone, StoreError

PAUSE = 1.0

Heard = Callable[[int, tuple[Change, ...] | None], None]
"""Everything up to this revision is known, with these changes; None: some were missed, and nobody knows which."""


class Follower:
    """Of one organization. The caches hear of changes first, then `heard`."""

    def __init__(self, storage: Storage, organization: str, caches: Caches, heard: Heard, *, clock: Clock) -> None:
        self._storage, self._organization = storage, organization
        self._caches, self._heard, self._clock = caches, heard, clock

    async def run(self, since: int) -> None:
        """From a revision on, until cancelled. Nothing after it is missed."""
        while True:
            try:
                changes = self._storage.changes(self._organization, (), since)
                async with aclosing(cast(AsyncGenerator[RowBatch, None], changes)):
                    async for batch in changes:
                        self._take(batch)
                        since = batch.revision
            except Gone as gone:
                log.info("changes of the hub were missed", since=since, oldest=gone.oldest)
                since = gone.oldest
                self._caches.flush()
                self._heard(since, None)
                continue
            except (StorageUnavailable, StoreError, HubError, OSError) as error:
                log.warning("the storage service cannot be followed", error=str(error))
            await self._clock.sleep(PAUSE)  # also when it ended, as it does when its database is closed

    def _take(self, batch: RowBatch) -> None:
        rows = [change.row for change in batch.changes]
        changes = tuple(Change(r.key.type, r.key.organization, r.key.project, r.key.name, r.revision) for r in rows)
        for change in changes:
            self._caches.news(change)
        self._heard(batch.revision, changes)
