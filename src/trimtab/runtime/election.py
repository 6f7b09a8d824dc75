"""Leader election by a coordination.k8s.io/v1 Lease: of many candidates one acts, the others stand by, warm.

Flow: a candidate tries every `retry` seconds until the lease is free, then `run` calls `lead()` and renews beside it.
When the lease is lost, `lead()` is cancelled, and when it has ended the candidate stands by again. When `lead()`
returns, or `run` is cancelled, the lease is released and the next candidate has it at its next try.

Guarantees:
- `leading()` is true only while no other candidate can hold the lease. It asks the monotonic clock each time, so a
  process that wakes from a stop, or a loop that was blocked, does not believe an old answer.
- A reign ends `renew_deadline` after the start of the last renewal that succeeded. Another may begin one only when it
  has seen the lease unchanged for its duration, which is longer.
- The times in the lease are for people. Nobody compares them with a clock, so clocks may jump and differ.
- A lease that someone deletes is not free before it would have lapsed, for candidates that saw it.

Assumptions: an identity belongs to one process; monotonic clocks run equally fast, within the difference of `duration`
and `renew_deadline`, and do not stand still, as some do while a machine is suspended; other candidates follow the same
rules, as client-go does: fields and meanings are the same.

Caveats: a write that was sent while leading may arrive later. Those who cannot bear that write with a precondition
(`patch` always has one); see `runtime.claim` for fencing of single objects.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import math
import random as randomness
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec

from trimtab.client import transport
from trimtab.client.protocol import Client
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Lease, LeaseSpec
from trimtab.model.logs import log
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.deadline import within
from trimtab.runtime.lease import is_free, released, taken, typed

JITTER = 0.5
"""Candidates try again after `retry` and up to this much of it more, so that they do not march in step."""

FAILURES = (*transport.FAILURES, msgspec.ValidationError)
"""How an attempt may fail and be tried again."""


class NotLeading(Exception):  # noqa: N818 - it reads as what happened
    """The lease is not surely held, so nothing may be written. The next reconcile of the leader does the work."""


class State(enum.Enum):
    """Where a candidate is."""

    FOLLOWER = "follower"  # stands by and tries to get the lease
    LEADER = "leader"
    LOST = "lost"  # was leader; what acted is being stopped
    CLOSED = "closed"  # takes no part any more


class Event(enum.Enum):
    """What happens to a candidate."""

    ACQUIRED = "acquired"
    EXPIRED = "expired"  # not renewed in time
    TAKEN = "taken"  # somebody else holds the lease
    SETTLED = "settled"  # what acted has ended
    CLOSED = "closed"


def step(state: State, event: Event) -> State:
    """The next state. An event that means nothing in a state leaves it as it is."""
    return _STEPS.get((state, event), state)


_STEPS = {
    (State.FOLLOWER, Event.ACQUIRED): State.LEADER,
    (State.LEADER, Event.EXPIRED): State.LOST,
    (State.LEADER, Event.TAKEN): State.LOST,
    (State.LOST, Event.SETTLED): State.FOLLOWER,
    (State.FOLLOWER, Event.CLOSED): State.CLOSED,
    (State.LEADER, Event.CLOSED): State.CLOSED,
    (State.LOST, Event.CLOSED): State.CLOSED,
}


class Election:
    """One candidate. `elected` and `lost` are events to wait for; the callbacks are called at once and must not block.

    `on_lost` hears of a lease that was lost, not of one that was released; `status` hears of both (it sets the gauge
    `leader_election_master_status`).
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        name: str,
        namespace: str,
        identity: str,
        duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry: float = 2.0,
        random: randomness.Random | None = None,
        on_elected: Callable[[], None] | None = None,
        on_lost: Callable[[], None] | None = None,
        status: Callable[[bool], None] | None = None,
    ) -> None:
        if not duration > renew_deadline > retry > 0:
            raise ValueError("a lease needs duration > renew_deadline > retry > 0")
        if not identity:
            raise ValueError("a candidate needs an identity of its own, such as its host's name and a random part")
        self.identity = identity
        self.state = State.FOLLOWER
        self.elected = asyncio.Event()
        self.lost = asyncio.Event()
        self._client = client
        self._clock = clock
        self._name, self._namespace = name, namespace
        self._duration, self._renew_deadline, self._retry = duration, renew_deadline, retry
        self._random = random or randomness.Random()  # noqa: S311 - spreads retries
        self._on_elected, self._on_lost, self._status = on_elected, on_lost, status
        self._own: Lease | None = None  # as we wrote it last, while we hold it
        self._held_until = -math.inf
        self._seen = LeaseSpec()
        self._seen_at = -math.inf
        self._acting: asyncio.Task[None] | None = None  # until it has ended
        self._guards: set[asyncio.Timeout] = set()
        self._failing = False

    def leading(self) -> bool:
        """Whether the lease is surely held, now."""
        return self.state is State.LEADER and self._clock.monotonic() < self._held_until

    @property
    def term(self) -> int:
        """How often the lease has changed hands, as last seen. It grows from leader to leader."""
        return self._seen.lease_transitions or 0

    @property
    def holder(self) -> str:
        """Who held the lease when it was last seen; "" for nobody."""
        return self._seen.holder_identity or ""

    @contextlib.asynccontextmanager
    async def guard(self) -> AsyncIterator[None]:
        """For one write: refuses to begin, and cuts off, when the lease is not held. Then NotLeading is raised, and
        whether a write that had begun took place is unknown."""
        if not self.leading():
            raise NotLeading(f"{self.identity} does not hold the lease {self._namespace}/{self._name}")
        scope = asyncio.timeout(self._held_until - self._clock.monotonic())
        try:
            async with scope:
                self._guards.add(scope)
                try:
                    yield
                finally:
                    self._guards.discard(scope)
        except TimeoutError:
            if not scope.expired():
                raise
            raise NotLeading(f"{self.identity} lost the lease {self._namespace}/{self._name} during a write") from None

    async def run(self, lead: Callable[[], Awaitable[object]], stop: asyncio.Event | None = None) -> None:
        """Stand by, and call `lead` whenever elected. Returns when `lead` does; raises what it raises. `stop` ends the
        standing by; `lead` looks at it for itself, to end in its own time."""
        stop = stop or asyncio.Event()
        try:
            while not stop.is_set():
                if not await self.attempt():
                    with contextlib.suppress(TimeoutError):
                        pause = self._retry * (1 + JITTER * self._random.random())
                        await within(self._clock, pause, stop.wait())
                elif await self._reign(lead):
                    return
                else:
                    self._happens(Event.SETTLED)
        finally:
            await self.close()

    async def attempt(self) -> bool:
        """Try once to get the lease, or to renew it. Whether it is held. Failures are logged: the next try is near."""
        if self.state in (State.FOLLOWER, State.LEADER):
            try:
                await within(self._clock, self._renew_deadline / 2, self._acquire_or_renew())
                self._failing = False
            except FAILURES as error:
                self._report(error)
        return self.leading()

    async def close(self) -> None:
        """Take no part any more, and release the lease when it is held and nothing acts under it."""
        held = self._own if self.leading() and self._acting is None else None
        self._happens(Event.CLOSED)
        if held is not None:
            try:
                await within(self._clock, self._renew_deadline / 2, self._release(held))
            except FAILURES as error:
                log.warning("lease not released, so the next leader waits for its end", error=str(error), **self._names)

    async def _reign(self, lead: Callable[[], Awaitable[object]]) -> bool:
        """Act until that ends (True) or the lease is lost (False). Nothing acts any more when this returns."""

        async def act() -> None:
            await lead()

        acting = self._acting = asyncio.create_task(act())
        beside = (asyncio.create_task(self._keep()), asyncio.create_task(self._expire()))
        try:
            await asyncio.wait({acting, *beside}, return_when=asyncio.FIRST_COMPLETED)
            ended = acting.done() and self.state is State.LEADER
            for task in beside:
                if task.done():
                    task.result()
        finally:
            if not acting.cancelling():  # a second time would disturb it in cleaning up
                acting.cancel()
            try:
                await asyncio.wait({acting})  # the lease is renewed meanwhile
                self._acting = None
            finally:
                for task in beside:
                    task.cancel()
        if not acting.cancelled():
            acting.result()
        return ended

    async def _keep(self) -> None:
        while self.state is State.LEADER:
            await self._clock.sleep(self._retry)
            await self.attempt()

    async def _expire(self) -> None:
        while self.leading():
            await self._clock.sleep(self._held_until - self._clock.monotonic())
        self._happens(Event.EXPIRED)

    async def _acquire_or_renew(self) -> None:
        lease = self._own
        for last in (False, True):
            if lease is None:
                lease = await self._look()
                unchanged = self._clock.monotonic() - self._seen_at
                free = is_free(self._seen, self.identity, unchanged, self._duration)
                if not free or (self.state is State.LEADER and self.holder != self.identity):
                    self._happens(Event.TAKEN)
                    return
            try:
                await self._write(lease)
                return
            except StatusError as error:
                if last or error.code not in (404, 409):
                    raise
                lease = None  # it is no longer as we knew it: deleted, or written by somebody

    async def _look(self) -> Lease | None:
        """The lease as it is; remembers since when it has looked so. None when there is none: what the last holder
        was promised is then still remembered."""
        try:
            lease = typed(await self._client.get(Lease, self._name, self._namespace))
        except StatusError as error:
            if error.code != 404:
                raise
            return None
        spec = lease.spec or LeaseSpec()
        if spec != self._seen:
            self._seen, self._seen_at = spec, self._clock.monotonic()
        return lease

    async def _write(self, lease: Lease | None) -> None:
        """Write ourselves into the lease, if it is still as given."""
        spec = taken(self._seen, self.identity, self._duration, self._clock.now())
        start = self._clock.monotonic()
        if lease is None:
            metadata = ObjectMeta(name=self._name, namespace=self._namespace)
            self._own = typed(await self._client.create(Lease(metadata=metadata, spec=spec)))
        else:
            self._own = typed(await self._client.patch(lease, lease.replace(spec=spec)))
        self._seen, self._seen_at = spec, self._clock.monotonic()
        self._held_until = start + self._renew_deadline
        if self._held_until > self._seen_at:  # else the answer came too late to be of use
            self._happens(Event.ACQUIRED)
        self._reach_guards()

    async def _release(self, lease: Lease | None) -> None:
        for last in (False, True):
            if lease is None:
                lease = await self._look()
            if lease is None or self.holder != self.identity:
                return
            try:
                await self._client.patch(lease, lease.replace(spec=released(self._seen, self._clock.now())))
                return
            except StatusError as error:
                if last or error.code != 409:
                    raise
                lease = None

    def _happens(self, event: Event) -> None:
        before, self.state = self.state, step(self.state, event)
        if self.state is before:
            return
        if self.state is State.LEADER:
            log.info("elected", term=self.term, **self._names)
            self.lost.clear()
            self.elected.set()
            _call(self._on_elected)
        if before is State.LEADER:
            self._own, self._held_until = None, -math.inf
            self.elected.clear()
            self._reach_guards()
            if self.state is State.LOST:
                log.warning("leadership lost", why=event.value, holder=self.holder, **self._names)
                if self._acting is not None:
                    self._acting.cancel()
                self.lost.set()
                _call(self._on_lost)
        if self._status is not None and State.LEADER in (before, self.state):
            self._status(self.state is State.LEADER)

    def _reach_guards(self) -> None:
        """Writes that are under way may last as long as the lease."""
        left = max(self._held_until - self._clock.monotonic(), 0)
        until = asyncio.get_running_loop().time() + left
        for scope in self._guards:
            if not scope.expired():
                scope.reschedule(until)

    def _report(self, error: Exception) -> None:
        """Say once that the API does not let us; a conflict only means that another was faster."""
        if self._failing or (isinstance(error, StatusError) and error.code == 409):
            return
        self._failing = True
        log.warning("the lease cannot be read or written", error=str(error), state=self.state.value, **self._names)

    @property
    def _names(self) -> dict[str, str]:
        return {"lease": f"{self._namespace}/{self._name}", "identity": self.identity}


def _call(callback: Callable[[], None] | None) -> None:
    if callback is not None:
        callback()
