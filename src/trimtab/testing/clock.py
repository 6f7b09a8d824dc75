"""A clock that moves only when a test says so, on an ordinary event loop.

    clock = FakeClock()
    task = asyncio.create_task(retry_every_minute(clock))
    await clock.advance(60)          # the retry has run, and waits again

It knows only those who wait by `clock.sleep`; `asyncio.sleep` and `asyncio.timeout` still take real time. Work in other
threads or processes is not waited for either. For a loop whose every timer is virtual, see `trimtab.testing.loop`.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import Any

TOO_MANY_ROUNDS = 100_000
ROUNDS_WITHOUT_SIGHT = 200
START = datetime(2026, 1, 1, tzinfo=UTC)


class FakeClock:
    """Fulfils `trimtab.model.clock.Clock`."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start
        self._elapsed = 0.0
        self._jumped = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self._settling = 0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed + self._jumped)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._numbers), woken))
        await woken

    async def advance(self, seconds: float) -> None:
        """Let time pass. Sleepers wake in the order of their deadlines, and each runs until it waits again before the
        next one wakes; who sleeps anew within the span wakes within it.
        """
        if seconds < 0:
            raise ValueError("time does not go back; `jump` moves the wall clock alone")
        target = self._elapsed + seconds
        await self.settle()
        while self._next_deadline() is not None and self._sleepers[0][0] <= target:
            deadline, _, woken = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, deadline)
            woken.set_result(None)
            await self.settle()
        self._elapsed = max(self._elapsed, target)

    def jump(self, seconds: float) -> None:
        """Move the wall clock alone, forward or back, as an administrator or NTP does. Nobody wakes."""
        self._jumped += seconds

    async def settle(self) -> None:
        """Let the loop run until nothing is ready: every task waits for something."""
        ready: deque[Any] | None = getattr(asyncio.get_running_loop(), "_ready", None)
        self._settling += 1
        try:
            if ready is None:  # uvloop does not show what is ready
                for _ in range(ROUNDS_WITHOUT_SIGHT):
                    await asyncio.sleep(0)
                return
            quiet = 0
            for _ in range(TOO_MANY_ROUNDS):
                await asyncio.sleep(0)
                # Others who settle are always ready. One quiet round more lets the loop look at its sockets.
                quiet = quiet + 1 if len(ready) < self._settling else 0
                if quiet == 2:
                    return
            raise RuntimeError("the loop never settles: some task runs on and on without waiting for anything")
        finally:
            self._settling -= 1

    @property
    def pending(self) -> tuple[float, ...]:
        """The deadlines that somebody sleeps for, in `monotonic` seconds, soonest first."""
        return tuple(deadline for deadline, _, woken in sorted(self._sleepers) if not woken.done())

    def _next_deadline(self) -> float | None:
        while self._sleepers and self._sleepers[0][2].done():  # cancelled
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None
