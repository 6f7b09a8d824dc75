"""Group commit: whatever waits while a transaction is under way goes into the next one. No timer: one alone does not wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from trimtab.hub.storage.codec import check, check_key
from trimtab.hub.storage.contract import Row, RowWrite, StorageUnavailable
from trimtab.model.logs import log
from trimtab.store.contract import Op

BATCH = 512
"""The most writes in one transaction."""
BATCH_BYTES = 8 << 20
"""The most bytes, give or take the last write."""

Outcome = Row | Exception
Act = Callable[[Sequence[RowWrite]], Awaitable[Sequence[Outcome]]]
"""One transaction: an outcome for each write. What it raises, all of them get."""

_Waiting = tuple[RowWrite, int, "asyncio.Future[Row]"]


class Grouping:
    """Writes in, transactions out, one at a time. A write that was begun is finished, also when its caller has left."""

    def __init__(self, act: Act) -> None:
        self._act = act
        self._queue: deque[_Waiting] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._closed = False

    async def commit(self, write: RowWrite) -> Row:
        if self._closed:
            raise StorageUnavailable("the storage is closed")
        if write.op is Op.DELETE:
            check_key(write.row.key)
            size = 0
        else:
            size = check(write.row)
        done: asyncio.Future[Row] = asyncio.get_running_loop().create_future()
        self._queue.append((write, size, done))
        if self._pump is None:
            self._pump = asyncio.create_task(self._run(), name="hub-storage-commits")
        return await done

    async def close(self) -> None:
        """Finishes what was asked for."""
        self._closed = True
        if self._pump is not None:
            await asyncio.wait([self._pump])

    async def _run(self) -> None:
        try:
            while self._queue:
                await self._transaction(self._take())
        finally:
            self._pump = None

    def _take(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        size = 0
        while self._queue and len(batch) < BATCH and size < BATCH_BYTES:
            waiting = self._queue.popleft()
            if not waiting[2].cancelled():
                batch.append(waiting)
                size += waiting[1]
        return batch

    async def _transaction(self, batch: list[_Waiting]) -> None:
        try:
            outcomes = await self._act([write for write, _, _ in batch]) if batch else ()
        except Exception as error:
            if not isinstance(error, StorageUnavailable):
                log.exception("a transaction failed by a mistake")
            for _, _, done in batch:
                if not done.done():
                    done.set_exception(_copied(error))
            return
        for (_, _, done), outcome in zip(batch, outcomes, strict=True):
            if done.cancelled():
                continue
            if isinstance(outcome, Exception):
                done.set_exception(outcome)
            else:
                done.set_result(outcome)


def _copied(error: Exception) -> Exception:
    """Each of those who wait gets an error of its own: a traceback grows with everyone who raises it."""
    if isinstance(error, StorageUnavailable):
        return type(error)(str(error))
    failure = StorageUnavailable(f"the write was not stored: {type(error).__name__}")
    failure.__cause__ = error
    return failure
