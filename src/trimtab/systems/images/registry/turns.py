"""Whose tag is next: each open repository has one in turn, so that a large one does not hold up the small ones.

Only so many repositories are open at once, and a new one is opened when the tags of another are all given out: this bounds
what is held in memory, and keeps the lists that are read ahead few.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable


class Turns:
    """Repositories are added with their tags; `next` gives one tag of one of them; `close` when there will be no more."""

    def __init__(self, most_open: int) -> None:
        self._room = asyncio.Semaphore(most_open)
        self._open: deque[tuple[str, deque[str]]] = deque()
        self._changed = asyncio.Condition()
        self._closed = False

    async def enter(self) -> None:
        """Wait until another repository may be opened."""
        await self._room.acquire()

    def leave(self) -> None:
        """One that was entered and has nothing to add."""
        self._room.release()

    async def add(self, repository: str, tags: Iterable[str]) -> None:
        waiting = deque(tags)
        if not waiting:
            self.leave()
            return
        async with self._changed:
            self._open.append((repository, waiting))
            self._changed.notify_all()

    async def next(self) -> tuple[str, str] | None:
        """A repository and one of its tags; None when all are given out and no more will come."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._open or self._closed)
            if not self._open:
                return None
            repository, tags = self._open.popleft()
            tag = tags.popleft()
            if tags:
                self._open.append((repository, tags))
            else:
                self._room.release()
            return repository, tag

    async def close(self) -> None:
        async with self._changed:
            self._closed = True
            self._changed.notify_all()
