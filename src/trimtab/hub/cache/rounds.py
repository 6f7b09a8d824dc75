"""Changes on their way to all replicas: gathered into rounds, each waiting for its echo and then for everyone's word.

Changes that come while another round is being published go together in the next one, so a hundred writers at a moment cost
the bus little more than one.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

from trimtab.hub.cache.generations import Change
from trimtab.hub.cache.membership import Membership
from trimtab.hub.cache.messages import MAX_CHANGES


class Round:
    """`awaited`: who has not said it heard, and until when that matters; None before our own echo."""

    def __init__(self, changes: list[Change]) -> None:
        self.id = secrets.token_hex(8)
        self.changes = changes
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.heard: set[str] = set()
        self.awaited: dict[str, float] | None = None


class Rounds:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._waiting: list[Round] = []  # not published
        self._going: dict[str, Round] = {}
        self._more = asyncio.Event()
        self._moved = asyncio.Event()

    def add(self, change: Change) -> Round:
        """The round that the change goes with."""
        if not self._waiting or len(self._waiting[-1].changes) >= MAX_CHANGES:
            self._waiting.append(Round([]))
        self._waiting[-1].changes.append(change)
        self._more.set()
        return self._waiting[-1]

    async def next(self) -> Round:
        """The next round to publish."""
        while not self._waiting:
            self._more.clear()
            await self._more.wait()
        going = self._waiting.pop(0)
        self._going[going.id] = going
        return going

    def echoed(self, identity: str, membership: Membership) -> None:
        """We heard our own change: it has its place, and everybody before it in the order is known."""
        if (going := self._going.get(identity)) is not None and going.awaited is None:
            awaited = membership.awaited(self._now())
            going.awaited = {name: until for name, until in awaited.items() if name not in going.heard}
            self._moved.set()

    def heard(self, identity: str, replica: str) -> None:
        if (going := self._going.get(identity)) is not None:
            going.heard.add(replica)
            if going.awaited is not None:
                going.awaited.pop(replica, None)
                self._moved.set()

    def again(self) -> None:
        """The session is lost: what is not done is published again in the next. Hearing a change twice does no harm."""
        for going in self._going.values():
            going.id = secrets.token_hex(8)
            going.heard.clear()
            going.awaited = None
        self._waiting = [*self._going.values(), *self._waiting]
        self._going.clear()
        if self._waiting:
            self._more.set()

    async def settle(self, membership: Membership) -> None:
        """Ends rounds as soon as nobody is left who could answer with something older."""
        while True:
            self._moved.clear()
            now = self._now()
            nearest = float("inf")
            for going in list(self._going.values()):
                if going.awaited is None:
                    continue
                until = max((membership.complete(), *going.awaited.values()))
                if until <= now:
                    del self._going[going.id]
                    if not going.done.done():
                        going.done.set_result(None)
                else:
                    nearest = min(nearest, until)
            await self._pause(nearest - now)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(None if seconds == float("inf") else seconds):
                await self._moved.wait()
        except TimeoutError:
            pass
