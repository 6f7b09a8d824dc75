"""Reads that wait together are one statement: with many readers at once, one round trip serves all of them.

A read joins only a statement that is still to be sent, so it sees every commit that was acknowledged before it was asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from trimtab.hub.storage.contract import StorageUnavailable

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST = 256


class Gathering(Generic[K, V]):
    """`load` answers for many keys; `lanes` are under way at most."""

    def __init__(self, load: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]], *, lanes: int) -> None:
        self._load = load
        self._lanes = lanes
        self._waiting: dict[K, asyncio.Future[V | None]] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def get(self, key: K) -> V | None:
        found = self._waiting.get(key)
        if found is None:
            found = self._waiting[key] = asyncio.get_running_loop().create_future()
            if len(self._running) < self._lanes:
                task = asyncio.create_task(self._run(), name="hub-storage-reads")
                self._running.add(task)
                task.add_done_callback(self._running.discard)
        return await asyncio.shield(found)  # one who leaves takes nobody along

    async def close(self) -> None:
        if self._running:
            await asyncio.wait(self._running)

    async def _run(self) -> None:
        while self._waiting:
            taken = [*self._waiting.items()][:MOST]
            for key, _ in taken:
                del self._waiting[key]
            try:
                loaded = await self._load([key for key, _ in taken])
            except Exception as error:
                text = str(error) if isinstance(error, StorageUnavailable) else f"{type(error).__name__}: {error}"
                for _, future in taken:
                    future.set_exception(StorageUnavailable(text))
                    future.exception()  # whoever asked may have left
                continue
            for key, future in taken:
                future.set_result(loaded.get(key))
