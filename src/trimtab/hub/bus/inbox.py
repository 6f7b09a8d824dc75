"""What came and was not yet looked at. Bounded: who does not keep up has lost the session, as one that was cut off."""

from __future__ import annotations

import asyncio
from collections import deque

from trimtab.hub.bus.contract import Lost

MAX_WAITING = 100_000
"""Messages; the processes of a hub that stood still for a minute do not come near."""


class Inbox:
    """Filled by callbacks, emptied by one task."""

    def __init__(self, limit: int = MAX_WAITING) -> None:
        self._limit = limit
        self._waiting: deque[bytes] = deque()
        self._lost: str | None = None
        self._woken = asyncio.Event()

    def put(self, message: bytes) -> None:
        if self._lost is not None:
            return
        if len(self._waiting) >= self._limit:
            self.end("too many messages wait: this replica does not keep up")
            return
        self._waiting.append(message)
        self._woken.set()

    def end(self, why: str) -> None:
        """The first reason stays. What waits is not looked at any more: after it something is missing."""
        if self._lost is None:
            self._lost = why
            self._waiting.clear()
            self._woken.set()

    def check(self) -> None:
        if self._lost is not None:
            raise Lost(self._lost)

    async def get(self) -> bytes:
        while not self._waiting:
            self.check()
            self._woken.clear()
            await self._woken.wait()
        return self._waiting.popleft()
