"""How much this client may ask of a scope: a host, a subscription, whatever shares a limit on the other side.

Flow: a request takes a slot (at most `concurrent` at once), then a token (`rate` a second, `burst` at once), then waits
out the pause of the scope, if a server asked for one. Each request puts a fifth of a retry aside; a retry takes a whole
one, so that retries stay below a fifth of the requests however long a storm lasts, as Finagle's budget does.

Guarantees: nobody waits who could not be served before its deadline: it gets `Late` at once. A cancelled waiter gives
back what it took. Caveat: slots are waited for in real time, as the network is; all else in that of the clock.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import OrderedDict

import msgspec

from trimtab.model.clock import Clock
from trimtab.runtime.limits import TokenBucket

MOST_SCOPES = 1024


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What each scope gets."""

    concurrent: int = 16  # requests at once, until their bodies are read
    rate: float = 50.0  # requests a second
    burst: int = 50
    attempts: int = 4  # of one request, in all
    again: tuple[int, ...] = (429, 502, 503, 504)  # answers that are asked for again; what is left out is the caller's
    retry_ratio: float = 0.2  # retries for each request
    retry_reserve: float = 10.0  # retries that a quiet scope has saved
    first_pause: float = 0.2  # seconds before the first retry, twice as many before the next
    longest_pause: float = 20.0
    longest_wish: float = 300.0  # of a server that asks for a pause


class Late(Exception):  # noqa: N818 - it reads as what happened
    """The deadline is before the turn."""


class Scope:
    """The state of one scope."""

    def __init__(self, budget: Budget, clock: Clock, chance: random.Random) -> None:
        self._budget, self._clock, self._chance = budget, clock, chance
        self._slots = asyncio.Semaphore(budget.concurrent)
        self._bucket = TokenBucket(budget.rate, budget.burst, clock)
        self._paused_until = -math.inf
        self._retries = budget.retry_reserve
        self.users = 0

    async def enter(self, deadline: float) -> None:
        """Wait for a slot, one of the concurrent requests."""
        left = deadline - self._clock.monotonic()
        self.users += 1
        try:
            async with asyncio.timeout(None if left == math.inf else left):
                await self._slots.acquire()
        except BaseException as error:
            self.users -= 1
            if isinstance(error, TimeoutError):
                raise Late(f"all {self._budget.concurrent} slots of its scope were taken for {left:.1f} s") from None
            raise

    def leave(self) -> None:
        self._slots.release()
        self.users -= 1

    async def turn(self, deadline: float) -> None:
        """Wait for a token and for the end of a pause."""
        wait = self._bucket.reserve()
        try:
            await self._wait("its scope is at its rate limit", wait, deadline)
            while (wait := self._paused_until - self._clock.monotonic()) > 0:
                spread = wait * 0.1 * self._chance.random()  # not all at the same moment
                await self._wait("the server asked its scope to pause", wait, deadline, spread)
        except BaseException:
            self._bucket.put_back()
            raise

    async def _wait(self, why: str, seconds: float, deadline: float, spread: float = 0.0) -> None:
        if seconds <= 0:
            return
        if self._clock.monotonic() + seconds > deadline:
            raise Late(f"{why} for another {seconds:.1f} s, which is longer than this request may take")
        await self._clock.sleep(seconds + spread)

    def pause(self, seconds: float) -> None:
        """All requests of the scope wait, within reason."""
        until = self._clock.monotonic() + min(seconds, self._budget.longest_wish)
        self._paused_until = max(self._paused_until, until)

    def earn(self) -> None:
        """A request goes out that is no retry."""
        self._retries = min(self._budget.retry_reserve, self._retries + self._budget.retry_ratio)

    def spend(self) -> bool:
        """Whether there is a retry left; then it is taken."""
        if self._retries < 1:
            return False
        self._retries -= 1
        return True

    @property
    def idle(self) -> bool:
        """Whether a new one would be the same."""
        saved = self._retries >= self._budget.retry_reserve
        return not self.users and saved and self._clock.monotonic() >= self._paused_until and self._bucket.full


class Scopes:
    """All scopes by name. Those that are like new are forgotten when there are many."""

    def __init__(self, budget: Budget, clock: Clock, chance: random.Random) -> None:
        self._budget, self._clock, self._chance = budget, clock, chance
        self._scopes: OrderedDict[str, Scope] = OrderedDict()

    def __len__(self) -> int:
        return len(self._scopes)

    def of(self, name: str) -> Scope:
        scope = self._scopes.get(name)
        if scope is None:
            if len(self._scopes) >= MOST_SCOPES:
                self._forget()
            scope = self._scopes[name] = Scope(self._budget, self._clock, self._chance)
        self._scopes.move_to_end(name)
        return scope

    def _forget(self) -> None:
        idle = [name for name, scope in self._scopes.items() if scope.idle]
        unused = [name for name, scope in self._scopes.items() if not scope.users]
        for name in idle or unused[: MOST_SCOPES // 4]:
            del self._scopes[name]
