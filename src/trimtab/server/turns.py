"""Writers of one object one after the other, once they have met.

A write is a read and a compare-and-swap. Where those two are far apart, as over a service, many writers of one object would
keep each other from ever getting through: whoever has lost once waits for a turn, and whoever comes meanwhile does, too.

Caveat: it is patience and not a guarantee. A turn is not waited for any longer than `PATIENCE`, so that a writer which waits
for itself (an admission webhook that writes the object it is asked about) gets on; and other processes do not wait at all.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Hashable

PATIENCE = 10.0


class Turns:
    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._queues: dict[Hashable, _Queue] = {}

    @contextlib.asynccontextmanager
    async def take(self, key: Hashable, *, again: bool) -> AsyncIterator[None]:
        """`again`: a try after one that failed. The first is free while nobody waits."""
        queue = self._queues.get(key)
        if queue is None:
            if not again:
                yield
                return
            queue = self._queues[key] = _Queue()
        queue.users += 1
        taken = False
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._patience):
                    taken = await queue.lock.acquire()
            yield
        finally:
            if taken:
                queue.lock.release()
            queue.users -= 1
            if not queue.users:
                del self._queues[key]


class _Queue:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
