"""Time for a test of what takes minutes: it stands still while anyone is at work, and leaps to the next thing that is due
when all wait."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Iterator
from datetime import datetime, timedelta
from typing import Any

from tests.systems.images.station import LeapClock
from trimtab.client.api import ApiClient
from trimtab.client.transport import Call, Reply
from trimtab.server.local import LocalTransport

NAPS, NAP, LONG_NAP = 5, 0.002, 0.012
"""So many naps in a row without a call, and all are taken to wait. Each lets everybody else of this process have a turn; a
server outside needs longer ones."""
FAR = 10.0
"""Seconds that time leaps at most."""


class Busy:
    """Who is at work: calls of the API, and whatever else says so. `client` is the one that is counted."""

    def __init__(self, client: ApiClient) -> None:
        self._transport, self._going, self._calls = client.transport, 0, 0
        self.client = ApiClient(self, client.scheme, namespace=client.namespace)
        self._nap = NAP if isinstance(client.transport, LocalTransport) else LONG_NAP

    async def call(self, call: Call) -> Reply:
        with self.at_work():
            return await self._transport.call(call)

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        return self._heard(self._transport.stream(call, inactivity))

    async def _heard(self, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        async with contextlib.aclosing(pieces):
            async for piece in pieces:
                self._calls += 1
                yield piece

    async def close(self) -> None:
        await self._transport.close()

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        self._going, self._calls = self._going + 1, self._calls + 1
        try:
            yield
        finally:
            self._going -= 1

    async def over(self) -> None:
        """When nothing has happened for a while."""
        still = 0
        while still < NAPS:
            calls = self._calls
            await asyncio.sleep(self._nap)
            still = still + 1 if not self._going and self._calls == calls else 0


class IdleClock(LeapClock):
    def __init__(self, busy: Busy) -> None:
        super().__init__()
        self._busy = busy
        self._due: list[float] = []
        self._back = timedelta()

    async def sleep(self, seconds: float) -> None:
        due = self.monotonic() + seconds
        self._due.append(due)
        try:
            await super().sleep(seconds)
        finally:
            self._due.remove(due)

    def now(self) -> datetime:
        return super().now() - self._back

    def set_back(self, seconds: float) -> None:
        """Only what it shows: time itself goes on."""
        self._back += timedelta(seconds=seconds)

    async def passing(self, awaited: Awaitable[Any]) -> Any:
        """What comes of it; time passes as long as it takes."""
        task = asyncio.ensure_future(awaited)
        try:
            while not task.done():
                await self._busy.over()
                if not task.done():
                    self.leap(self._next())
        finally:
            task.cancel()
            await asyncio.wait({task})
        return task.result()

    def _next(self) -> float:
        far = min((due - self.monotonic() for due in self._due), default=FAR)
        return min(max(far, 0.0) + 0.001, FAR)
