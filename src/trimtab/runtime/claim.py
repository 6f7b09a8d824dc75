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
seconds. Who deletes the annotation, or the object, starts the numbers anew; old fences are refused nevertheless.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
from collections.abc import AsyncIterator
from typing import Any, TypeVar

import msgspec

from trimtab.client.protocol import Client, Object, Ref
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.model.resource import Resource
from trimtab.model.scheme import Untyped
from trimtab.runtime.deadline import within

ANNOTATION = "runtime.trimtab.dev/claim"
MAX_TTL = 24 * 3600.0
SURE = 2 / 3
"""The part of its time to live in which a holder may count on a claim. The rest is for clocks that differ."""

ATTEMPTS = 5
"""How often to meet a conflict with those who write other fields of the object."""

REMEMBERED = 10_000
"""Claims of others that are timed at once; of the ones beyond, the oldest are timed anew."""

FAILURES = (StatusError, OSError, TimeoutError)

O = TypeVar("O", bound=Object)  # noqa: E741 - an object


class Held(Exception):  # noqa: N818 - it reads as what happened
    """Somebody else has the claim. Ask again in `wait` seconds: sooner it cannot lapse, though it may be released."""

    def __init__(self, by: str, wait: float) -> None:
        super().__init__(f"claimed by {by}; try again in {wait:.3g} s")
        self.by = by
        self.wait = wait


class Fenced(Exception):  # noqa: N818
    """The claim is lost: nothing was written. Stop working on the object; `acquire` anew to go on."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """A claim as the object carries it. Each renewal has another beat, so that others see it."""

    holder: str = ""
    fence: int = 0
    ttl: float = 0.0
    beat: int = 0


class State(enum.Enum):
    """A claim, as one worker sees it."""

    FREE = "free"
    OURS = "ours"
    HELD = "held"
    LAPSED = "lapsed"


class Event(enum.Enum):
    TAKE = "take"
    RENEW = "renew"
    RELEASE = "release"


def state(record: Record, holder: str, unchanged: float) -> State:
    """What `record` is to `holder`, who has seen it like this for `unchanged` seconds."""
    if not record.holder:
        return State.FREE
    if record.holder == holder:
        return State.OURS
    return State.LAPSED if unchanged >= record.ttl else State.HELD


def step(record: Record, event: Event, holder: str, ttl: float) -> Record:
    """The next record. A taker gets a fence of its own; a release keeps the number, so that the next is greater."""
    match event:
        case Event.TAKE:
            return Record(holder, record.fence + 1, ttl)
        case Event.RENEW:
            return Record(holder, record.fence, ttl, record.beat + 1)
        case Event.RELEASE:
            return Record("", record.fence)


class Fence(msgspec.Struct, frozen=True):
    """The right to write to one object, until another takes it. Later fences of the object have greater numbers."""

    ref: Ref
    uid: str
    holder: str
    number: int
    ttl: float

    @property
    def key(self) -> tuple[str, int]:
        return self.uid, self.number

    def holds(self, obj: Object) -> bool:
        """Whether `obj` carries this fence."""
        record = record_of(obj)
        return obj.metadata.uid == self.uid and (record.fence, record.holder) == (self.number, self.holder)

    async def patch(self, client: Client, old: O, new: O, *, subresource: str = "") -> O:
        """`client.patch`, or Fenced when the claim is lost. A 409 means that others changed the object, not the claim:
        read it and try again."""
        if not self.holds(old):
            raise self.lost()
        if record_of(new) != record_of(old):
            raise ValueError(f"a write through a fence must leave the annotation {ANNOTATION} as it is")
        if not old.metadata.resource_version:
            raise ValueError("a write through a fence must start from an object that came from the API")
        try:
            written: O = await client.patch(old, new, subresource=subresource)
        except StatusError as error:
            if error.code not in (404, 409) or await self._stands(client):
                raise
            raise self.lost() from error
        return written

    def lost(self) -> Fenced:
        return Fenced(f"{self.holder} lost its claim {self.number} of {self.ref.namespace}/{self.ref.name}")

    async def _stands(self, client: Client) -> bool:
        try:
            return self.holds(await client.get(self.ref.kind, self.ref.name, self.ref.namespace))
        except StatusError as error:
            if error.code == 404:
                return False
            raise


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
                self._seen.pop(_uid(obj), None)
                fence = Fence(ref, _uid(obj), holder, taken.fence, ttl)
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
            await self._client.patch(obj, _with(obj, record))
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
        seen = self._seen.get(_uid(obj))
        if seen is not None and seen[0] == record:
            return now - seen[1]
        self._seen.pop(_uid(obj), None)
        self._seen[_uid(obj)] = (record, now)
        if len(self._seen) > REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return 0.0


def record_of(obj: Object) -> Record:
    """The claim that an object carries. One that cannot be read counts as none."""
    text = (obj.metadata.annotations or {}).get(ANNOTATION, "")
    try:
        record = msgspec.json.decode(text, type=Record) if text else Record()
    except msgspec.DecodeError:
        return Record()
    return msgspec.structs.replace(record, ttl=min(max(record.ttl, 0.0), MAX_TTL))


def _with(obj: Object, record: Record) -> Any:
    annotations = {**(obj.metadata.annotations or {}), ANNOTATION: msgspec.json.encode(record).decode()}
    if isinstance(obj, Resource):
        return obj.replace(metadata=msgspec.structs.replace(obj.metadata, annotations=annotations))
    return Untyped({**obj.raw, "metadata": {**obj.raw["metadata"], "annotations": annotations}})


def _names(fence: Fence) -> dict[str, str]:
    return {"object": f"{fence.ref.namespace}/{fence.ref.name}", "holder": fence.holder}


def _uid(obj: Object) -> str:
    return obj.metadata.uid or ""


def _attempts() -> list[bool]:
    """For each attempt, whether it is the last."""
    return [False] * (ATTEMPTS - 1) + [True]
