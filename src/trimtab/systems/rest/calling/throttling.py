"""How much is asked of a service: a budget for each credential, scope and class of verb, fed by what the service says.

A `Throttle` belongs to one credential of one service. A scope is what shares a limit on the other side: the subscription
in an ARM path, else the host. Reads, writes and deletes have rates of their own. Whoever is over its rate waits, which
holds back the worker that asks; whoever meets a pause that the service asked for is told at once, so that the worker is
free for others. A 429 pauses the scope as a whole: everybody would meet the same.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

from trimtab.model.clock import Clock
from trimtab.runtime.limits import TokenBucket
from trimtab.systems.rest.calling.contract import CallError, ErrorClass, Request
from trimtab.systems.rest.calling.errors import described

BRIEF = 2.0  # seconds that are waited out
LONGEST_TURN = 30.0
LONGEST_PAUSE = 3600.0
FIRST_PAUSE = 10.0  # after a 429 that does not say how long
LOW = 20  # requests left, from which on a class slows down
MOST_SCOPES = 1024


class Throttle:
    """The budgets of one credential."""

    def __init__(
        self,
        *,
        reads_per_second: float = 20.0,
        writes_per_second: float = 5.0,
        clock: Clock,
        chance: random.Random,
    ) -> None:
        self._rates = {"read": reads_per_second, "write": writes_per_second, "delete": writes_per_second}
        self._clock, self._chance = clock, chance
        self._scopes: dict[str, _Scope] = {}

    async def enter(self, request: Request, scope: str) -> None:
        """Wait for a turn. CallError (THROTTLED) when that takes too long."""
        there = self._of(scope)
        kind = class_of(request)
        bucket = there.buckets[kind]
        wait = there.wait(kind, self._clock.monotonic())
        if wait >= BRIEF:
            raise self._late(request, scope, wait, "the service asked for a pause")
        turn = bucket.reserve()
        if turn > LONGEST_TURN:
            bucket.put_back()
            raise self._late(request, scope, turn, "there are too many requests")
        try:
            while (wait := max(turn, there.wait(kind, self._clock.monotonic()))) > 0:
                if turn <= 0 and wait >= BRIEF:
                    raise self._late(request, scope, wait, "the service asked for a pause")
                await self._clock.sleep(wait)
                turn = 0.0
        except BaseException:
            bucket.put_back()
            raise

    def learn(
        self, request: Request, scope: str, headers: Mapping[str, str], *, refused: bool, wish: float | None
    ) -> None:
        """From an answer; the names of headers are in lower case. `refused`: it said that there are too many requests,
        which a 429 alone does not: ARM also has it for a resource that waits for another."""
        there, kind, now = self._of(scope), class_of(request), self._clock.monotonic()
        if refused:
            there.refusals += 1
            asked = wish if wish is not None else FIRST_PAUSE * 2.0 ** min(there.refusals - 1, 5)
            there.paused = max(there.paused, now + min(max(asked, 1.0), LONGEST_PAUSE))
            return
        there.refusals = 0
        left, reset = remaining(headers)
        if left is None:
            return
        if left <= 0:
            there.slowed[kind] = now + min(max(reset, 1.0), LONGEST_PAUSE)
        elif left < LOW:
            there.slowed[kind] = now + (LOW - left) / LOW

    def _of(self, scope: str) -> _Scope:
        there = self._scopes.get(scope)
        if there is None:
            if len(self._scopes) >= MOST_SCOPES:
                self._forget()
            there = self._scopes[scope] = _Scope(self._rates, self._clock)
        return there

    def _forget(self) -> None:
        now = self._clock.monotonic()
        idle = [name for name, there in self._scopes.items() if there.idle(now)]
        for name in idle or list(self._scopes)[: MOST_SCOPES // 4]:
            del self._scopes[name]

    def _late(self, request: Request, scope: str, wait: float, why: str) -> CallError:
        return CallError(
            ErrorClass.THROTTLED,
            described(request, f"not sent: {why}; {scope} is free again in {wait:.0f} s"),
            code="Throttled",
            retry_after=wait,
            request=request,
        )


class _Scope:
    def __init__(self, rates: Mapping[str, float], clock: Clock) -> None:
        self.buckets = {kind: TokenBucket(rate, max(1, int(rate)), clock) for kind, rate in rates.items()}
        self.paused = 0.0
        self.slowed: dict[str, float] = {}
        self.refusals = 0

    def wait(self, kind: str, now: float) -> float:
        return max(self.paused, self.slowed.get(kind, 0.0)) - now

    def idle(self, now: float) -> bool:
        """Whether a new one would be the same."""
        return all(self.wait(kind, now) <= 0 and bucket.full for kind, bucket in self.buckets.items())


def class_of(request: Request) -> str:
    """read, write or delete. A POST that only asks (listKeys) is a write to whoever counts."""
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return "read"
    return "delete" if request.method == "DELETE" else "write"


def scope_of(url: str) -> str:
    """The subscription in the URL of an ARM resource, else the host."""
    found = _SUBSCRIPTION.match(url)
    if found:
        return f"subscription {found.group(1).lower()}"
    return url.split("//", 1)[-1].partition("/")[0]


def remaining(headers: Mapping[str, str]) -> tuple[int | None, float]:
    """How many requests are left, by the scarcest of the limits that are told, and the seconds until there are more."""
    counts = [
        int(value)
        for name, value in headers.items()
        if name.startswith(_REMAINING) and value.isascii() and value.strip().isdigit() and len(value) < 12
    ]
    reset = headers.get("ratelimit-reset") or headers.get("x-ratelimit-reset") or ""
    seconds = float(reset) if reset.isascii() and reset.isdigit() and len(reset) < 6 else _REFILL
    return (min(counts) if counts else None), seconds


_REMAINING = ("x-ms-ratelimit-remaining-", "ratelimit-remaining", "x-ratelimit-remaining")
_REFILL = 5.0
_SUBSCRIPTION = re.compile(r"https?://[^/]+/subscriptions/([^/?#]+)", re.IGNORECASE)
