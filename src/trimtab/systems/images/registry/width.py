"""How many requests run at once: as many as the registry bears.

A registry that refuses because of too many requests gets half as many at once; with each that goes well there is a little
more again, as TCP does. What was refused is asked again, and it waits for its turn as if it were new, so that a registry
that only wants to be asked slowly is listed slowly, and whole.
"""

from __future__ import annotations

import asyncio
from types import TracebackType


class Width:
    """`async with width:` around a request; then `narrow` or `widen`, as it went."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._allowed = float(most)
        self._running = 0
        self._changed = asyncio.Condition()

    @property
    def allowed(self) -> int:
        return int(self._allowed)

    def narrow(self) -> None:
        """Of many that are refused together each counts, so it is narrow soon."""
        self._allowed = max(1.0, self._allowed / 2)

    def widen(self) -> None:
        """Twice as wide takes at least that many good answers."""
        self._allowed = min(float(self._most), self._allowed + 1 / self._allowed)

    async def __aenter__(self) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._running < self.allowed)
            self._running += 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async with self._changed:
            self._running -= 1
            self._changed.notify(max(1, self.allowed - self._running))
