"""Changes for whoever follows them: the newest ones from memory, older ones from the log.

Flow: whoever commits, or reads the log behind others, pushes changes in their order. A follower has a position only. While
its position is within what memory holds it reads there; else it reads the log. So nobody is too slow for memory, a lost
wake-up costs time and nothing else, and all followers of one process share one reading.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from trimtab.hub.storage.codec import encoded
from trimtab.hub.storage.contract import RowBatch, RowChange, StorageUnavailable
from trimtab.store.contract import Gone

HELD = 2048
"""Changes in memory."""
HELD_BYTES = 16 << 20
"""And as JSON: in memory it is several times as much."""
BATCH = 500
"""Changes of a batch."""
HEARTBEAT = 30.0
"""Seconds after which an idle follower hears how far it is."""

ReadLog = Callable[[int, int], Awaitable[tuple[Sequence[RowChange], int]]]
"""(after, limit) → changes in order, and the revision up to which they are complete. Gone."""


class Feed:
    """The tail of the log. `revision` is the newest that was pushed."""

    def __init__(self, read: ReadLog, *, heartbeat: float = HEARTBEAT) -> None:
        self._read = read
        self._heartbeat = heartbeat
        self._changes: list[RowChange] = []
        self._revisions: list[int] = []
        self._sizes: list[int] = []
        self._bytes = 0
        self._since = 0  # memory is complete after this one
        self.revision = 0
        self._moved = asyncio.Event()
        self._closed = False

    def begin(self, revision: int) -> None:
        """Everything up to here is in the log only."""
        self._changes.clear()
        self._revisions.clear()
        self._sizes.clear()
        self._bytes = 0
        self._since = self.revision = revision
        self._wake()

    def push(self, after: int, changes: Sequence[RowChange], revision: int) -> bool:
        """Changes that are complete from `after` to `revision`; False when there is a gap before them."""
        if after > self.revision:
            return False
        new = [change for change in changes if change.row.revision > self.revision]
        self._changes += new
        self._revisions += [change.row.revision for change in new]
        sizes = [len(encoded(change.row)) for change in new]
        self._sizes += sizes
        self._bytes += sum(sizes)
        if revision > self.revision:
            self.revision = revision
            self._wake()
        if len(self._changes) > 2 * HELD or self._bytes > 2 * HELD_BYTES:
            self._trim()
        return True

    def _trim(self) -> None:
        """What is too much is in the log only."""
        excess = max(len(self._changes) - HELD, 0)
        left = self._bytes - sum(self._sizes[:excess])
        while left > HELD_BYTES:
            left -= self._sizes[excess]
            excess += 1
        self._since, self._bytes = self._revisions[excess - 1], left
        del self._changes[:excess], self._revisions[:excess], self._sizes[:excess]

    def close(self) -> None:
        """Every follower is told that it ended."""
        self._closed = True
        self._wake()

    async def follow(self, organization: str, types: Sequence[str], since: int) -> AsyncIterator[RowBatch]:
        wanted = frozenset(types)
        position = since
        loop = asyncio.get_running_loop()
        told = loop.time()
        while True:
            moved = self._moved
            if self._closed:
                raise StorageUnavailable("the storage is closed")
            if position < self.revision or position < self._since:
                changes, position = await self._after(position)
                mine = tuple(
                    change
                    for change in changes
                    if change.row.key.organization == organization and (not wanted or change.row.key.type in wanted)
                )
                if mine:
                    yield RowBatch(revision=position, changes=mine)
                    told = loop.time()
                continue
            left = told + self._heartbeat - loop.time()
            try:
                async with asyncio.timeout(max(left, 0)):
                    await moved.wait()
            except TimeoutError:
                yield RowBatch(revision=position)
                told = loop.time()

    async def _after(self, position: int) -> tuple[Sequence[RowChange], int]:
        if position < self._since:
            return await self._read(position, BATCH)
        start = bisect_right(self._revisions, position)
        changes = self._changes[start : start + BATCH]
        whole = start + len(changes) == len(self._changes)
        return changes, self.revision if whole else changes[-1].row.revision

    def _wake(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()


def check_since(since: int, newest: int, oldest: int) -> None:
    """Whoever has seen what is still to come follows another database, a restored one perhaps: he must list again."""
    if since < oldest or since > newest:
        raise Gone(since, oldest)
