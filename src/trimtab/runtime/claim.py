"""A claim: one of many workers works on an object, and a worker that lost its claim can write nothing more to it.

Flow: `acquire` writes holder and a new fence number into an annotation of the object, `renew` lets the others see that
the holder lives, `release` frees it. `async with claim.held(…)` does all three and cancels its body when the claim is
lost. Writes to the object go through `fence.patch`.

Guarantees:
- Fence numbers of an object only grow, also over releases.
- A write through a fence lands only while the object carries that fence. The claim is on the object itself, so whoever
  takes it over changes the object's revision, and the API server refuses what was computed from an older one. No clock
  takes part in this: a worker may sleep anywhere, for any time.
- A claim is taken from a holder only after it stood unchanged for its time to live, by the monotonic clock of the one
  who takes it. No wall clocks are compared.
- `sure` is true only while no other can have taken the claim, as far as clocks run equally fast: ask it before an act
  on the world outside, which no fence protects.

Assumptions: a holder's name belongs to one worker at a time; who acquires again under the same name takes over at once,
with a new fence. Every worker goes through `fence.patch`; other writers of the object are not fenced.

Caveats: a renewal is a write to the object and wakes those who watch it, so a time to live is better minutes than
seconds. Who deletes the annotation by hand starts the numbers anew. A new object of the same name has its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from trimtab.client.protocol import Client, Object, Ref
from trimtab.client.transport import FAILURES
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.runtime.deadline import within
from trimtab.runtime.fence import MAX_TTL, Event, Fence, Record, State, record_of, state, step, with_record
from trimtab.runtime.objects import uid_of

SURE = 2 / 3
"""The part of its time to live in which a holder may count on a claim. The rest is for clocks that differ."""

ATTEMPTS = 5
"""How often to meet a conflict with those who write other fields of the object."""

REMEMBERED = 10_000
"""Claims of others that are timed at once; of the ones beyond, the oldest are timed anew."""


class Held(Exception):  # noqa: N818 - it reads as what happened
    """Somebody else has the claim. Ask again in `wait` seconds: sooner it cannot lapse, though it may be released."""

    def __init__(self, by: str, wait: float) -> None:
        super().__init__(f"claimed by {by}; try again in {wait:.3g} s")
        self.by = by
        self.wait = wait


class Claim:
    """Claims of one process. It remembers since when it has seen each claim of others, so keep one and use it."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._seen: dict[str, tuple[Record, float]] = {}
        self._until: dict[tuple[str, int], float] = {}

    async def acquire(self, ref: Ref, holder: str, ttl: float) -> Fence:
        """The claim of the object, for `ttl` seconds or until renewed. Held when somebody else has it."""
        if not holder or not 0 < ttl <= MAX_TTL:
            raise ValueError(f"a claim needs a holder, and a time to live of up to {MAX_TTL:g} s")
        for last in _attempts():
            start = self._clock.monotonic()
            obj: Object = await self._client.get(ref.kind, ref.name, ref.namespace)
            record = record_of(obj)
            unchanged = self._unchanged(obj, record)
            if state(record, holder, unchanged) is State.HELD:
                raise Held(record.holder, record.ttl - unchanged)
            taken = step(record, Event.TAKE, holder, ttl)
            if await self._replaced(obj, taken, last):
                self._seen.pop(uid_of(obj), None)
                fence = Fence(ref, uid_of(obj), holder, taken.fence, ttl)
                self._count_on(fence, start)
                return fence
        raise AssertionError  # the last attempt returns or raises

    async def renew(self, fence: Fence) -> None:
        """Begin the time to live anew. Fenced when the claim is lost."""
        for last in _attempts():
            start = self._clock.monotonic()
            obj = await self._find(fence)
            if obj is None:
                self._until.pop(fence.key, None)
                raise fence.lost()
            renewed = step(record_of(obj), Event.RENEW, fence.holder, fence.ttl)
            if await self._replaced(obj, renewed, last):
                self._count_on(fence, start)
                return

    async def release(self, fence: Fence) -> None:
        """Free the object for others. Nothing is wrong when the claim was lost before."""
        self._until.pop(fence.key, None)
        for last in _attempts():
            obj = await self._find(fence)
            if obj is None or await self._replaced(
                obj, step(record_of(obj), Event.RELEASE, fence.holder, fence.ttl), last
            ):
                return

    def sure(self, fence: Fence) -> bool:
        """Whether nobody else can have taken the claim by now."""
        return self._left(fence) > 0

    @contextlib.asynccontextmanager
    async def held(self, ref: Ref, holder: str, ttl: float) -> AsyncIterator[Fence]:
        """Hold the claim while the body runs. The body is cancelled when the claim is lost; then Fenced is raised."""
        fence = await self.acquire(ref, holder, ttl)
        scope = asyncio.timeout(None)
        keeping = asyncio.create_task(self._keep(fence, scope))
        try:
            async with scope:
                try:
                    yield fence
                finally:
                    keeping.cancel()
        except TimeoutError:
            if not scope.expired():
                raise
            await keeping  # it ended, and says why
        finally:
            await asyncio.gather(keeping, return_exceptions=True)
            await self._let_go(fence)

    async def _keep(self, fence: Fence, scope: asyncio.Timeout) -> None:
        """Renew until the claim is lost; then cut off the scope, and say why."""
        try:
            pause = fence.ttl / 4
            while True:
                await self._clock.sleep(min(pause, self._left(fence)))
                if not self.sure(fence):
                    raise fence.lost()
                try:
                    await within(self._clock, min(fence.ttl / 4, self._left(fence)), self.renew(fence))
                    pause = fence.ttl / 4
                except FAILURES as error:
                    log.warning("claim not renewed", error=str(error), **_names(fence))
                    pause = fence.ttl / 16
        except Exception:
            scope.reschedule(0)
            raise

    async def _let_go(self, fence: Fence) -> None:
        try:
            await within(self._clock, fence.ttl, self.release(fence))
        except FAILURES as error:
            log.warning("claim not released, so others wait for its end", error=str(error), **_names(fence))

    async def _find(self, fence: Fence) -> Object | None:
        """The object, if it carries the fence."""
        try:
            obj: Object = await self._client.get(fence.ref.kind, fence.ref.name, fence.ref.namespace)
        except StatusError as error:
            if error.code == 404:
                return None
            raise
        return obj if fence.holds(obj) else None

    async def _replaced(self, obj: Object, record: Record, last: bool) -> bool:
        """Write the record; False when the object has changed meanwhile."""
        try:
            await self._client.patch(obj, with_record(obj, record))
        except StatusError as error:
            if last or error.code != 409:
                raise
            return False
        return True

    def _left(self, fence: Fence) -> float:
        return self._until.get(fence.key, 0.0) - self._clock.monotonic()

    def _count_on(self, fence: Fence, start: float) -> None:
        self._until[fence.key] = start + fence.ttl * SURE
        if len(self._until) > REMEMBERED:
            now = self._clock.monotonic()
            self._until = {key: until for key, until in self._until.items() if until > now}

    def _unchanged(self, obj: Object, record: Record) -> float:
        """For how long we have seen the claim like this."""
        now = self._clock.monotonic()
        seen = self._seen.get(uid_of(obj))
        if seen is not None and seen[0] == record:
            return now - seen[1]
        self._seen.pop(uid_of(obj), None)
        self._seen[uid_of(obj)] = (record, now)
        if len(self._seen) > REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return 0.0


def _names(fence: Fence) -> dict[str, str]:
    return {"object": f"{fence.ref.namespace}/{fence.ref.name}", "holder": fence.holder}


def _attempts() -> list[bool]:
    """For each attempt, whether it is the last."""
    return [False] * (ATTEMPTS - 1) + [True]
