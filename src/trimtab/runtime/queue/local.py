"""The queue in this process, in memory: what must survive is in a resource, and the queue is a hint to look there.

A message's life is `step`, pure: waiting → delivered → done, or dead after too many deliveries.
"""

from __future__ import annotations

import asyncio
import enum
import heapq
import itertools
from collections import OrderedDict, deque
from collections.abc import AsyncIterator

from trimtab.model.clock import Clock
from trimtab.runtime.queue.contract import (
    MAX_DEAD,
    MAX_DELIVERIES,
    MAX_DEPTH,
    MAX_PAYLOAD,
    WINDOW,
    DeadLetter,
    Message,
    PayloadTooLarge,
    QueueFull,
    QueueUnavailable,
    check_id,
    check_subject,
)


class State(enum.Enum):
    """Where a message is in its life."""

    READY = "ready"
    DELIVERED = "delivered"
    DELAYED = "delayed"
    DONE = "done"
    DEAD = "dead"


class Event(enum.Enum):
    """What happens to it."""

    DELIVER = "deliver"
    ACK = "ack"
    NAK = "nak"
    NAK_LATER = "nak later"
    TERM = "term"
    DUE = "due"  # the deadline of a delivery or the end of a delay


def step(state: State, event: Event, *, spent: bool) -> State:
    """The next state; the same one when the event means nothing now. `spent`: no delivery is left."""
    match state, event:
        case State.READY, Event.DELIVER:
            return State.DELIVERED
        case ((State.DELIVERED | State.DELAYED | State.READY), Event.ACK):  # a late one, too: the work is done
            return State.DONE
        case State.DELIVERED, Event.TERM:
            return State.DEAD
        case State.DELIVERED, (Event.NAK | Event.NAK_LATER | Event.DUE) if spent:
            return State.DEAD
        case State.DELIVERED, Event.NAK_LATER:
            return State.DELAYED
        case (State.DELIVERED, Event.NAK | Event.DUE) | (State.DELAYED, Event.DUE):
            return State.READY
    return state


class LocalQueue:
    """Fulfils `Queue` in this process, in memory."""

    def __init__(
        self,
        clock: Clock,
        *,
        max_depth: int = MAX_DEPTH,
        max_deliveries: int = MAX_DELIVERIES,
        max_payload: int = MAX_PAYLOAD,
        window: float = WINDOW,
    ) -> None:
        self._clock = clock
        self._max_depth = max_depth
        self._max_deliveries = max_deliveries
        self._max_payload = max_payload
        self._window = window
        self._lanes: dict[str, _Lane] = {}
        self._seen: OrderedDict[str, float] = OrderedDict()
        self._numbers = itertools.count(1)
        self._closed = False

    async def publish(self, subject: str, payload: bytes, *, id: str = "") -> bool:  # noqa: A002
        lane = self._lane(subject)
        if self._closed:
            raise QueueUnavailable("the queue is closed")
        if len(payload) > self._max_payload:
            raise PayloadTooLarge(len(payload), self._max_payload)
        self._forget_ids()
        if check_id(id) in self._seen:
            return False
        self._pass_time(lane)
        if lane.depth >= self._max_depth:
            raise QueueFull(subject, self._max_depth)
        if id:
            self._seen[id] = self._clock.monotonic() + self._window
        lane.ready.append(_Item(subject, payload, id or f"local-{next(self._numbers)}"))
        lane.depth += 1
        lane.notice()
        return True

    async def consume(self, subject: str, *, concurrency: int = 1, deadline: float = 60.0) -> AsyncIterator[Message]:
        lane = self._lane(subject)
        consumer = _Consumer(deadline)
        while not self._closed:
            self._pass_time(lane)
            if consumer.held < concurrency and (item := lane.next_ready()) is not None:
                yield self._deliver(lane, item, consumer)
            else:
                await self._change(lane)

    async def dead(self, subject: str, *, limit: int = 100) -> list[DeadLetter]:
        lane = self._lane(subject)
        self._pass_time(lane)
        return list(itertools.islice(lane.dead, limit))

    async def depth(self, subject: str) -> int:
        lane = self._lane(subject)
        self._pass_time(lane)
        return lane.depth

    async def ready(self) -> None:
        if self._closed:
            raise QueueUnavailable("the queue is closed")

    async def close(self) -> None:
        self._closed = True
        for lane in self._lanes.values():
            lane.notice()

    def _lane(self, subject: str) -> _Lane:
        return self._lanes.setdefault(check_subject(subject), _Lane())

    def _deliver(self, lane: _Lane, item: _Item, consumer: _Consumer) -> Message:
        item.state = step(item.state, Event.DELIVER, spent=False)
        item.deliveries += 1
        item.consumer = consumer
        consumer.held += 1
        lane.time(item, self._clock.monotonic() + consumer.deadline)
        return _Delivery(self, lane, item)

    def happen(self, lane: _Lane, item: _Item, event: Event, *, reason: str = "", delay: float = 0.0) -> None:
        """Moves a message on, and keeps the books that go with it."""
        before = item.state
        item.state = step(before, event, spent=item.deliveries >= self._max_deliveries)
        if item.state is before:
            return
        item.due = None
        if before is State.DELIVERED and item.consumer is not None:
            item.consumer.held -= 1
            item.consumer = None
        match item.state:
            case State.READY:
                lane.ready.appendleft(item)
            case State.DELAYED:
                lane.time(item, self._clock.monotonic() + delay)
            case State.DEAD:
                lane.dead.append(DeadLetter(item.subject, item.payload, item.id, item.deliveries, reason))
                lane.depth -= 1
            case State.DONE:
                lane.depth -= 1
        lane.notice()

    def extend(self, lane: _Lane, item: _Item) -> None:
        if item.consumer is not None:
            lane.time(item, self._clock.monotonic() + item.consumer.deadline)
            lane.notice()

    def _pass_time(self, lane: _Lane) -> None:
        """Nobody watches the clock in the background: whoever looks at a lane sees to what is due in it."""
        for item in lane.take_due(self._clock.monotonic()):
            self.happen(lane, item, Event.DUE, reason=f"not settled in time, {item.deliveries} times")

    async def _change(self, lane: _Lane) -> None:
        """Waits until something happens in the lane, or becomes due."""
        changed = asyncio.ensure_future(lane.changed.wait())
        waits: set[asyncio.Future[object]] = {changed}  # type: ignore[arg-type]
        if (due := lane.next_due()) is not None:
            waits.add(asyncio.ensure_future(self._clock.sleep(due - self._clock.monotonic())))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    def _forget_ids(self) -> None:
        now = self._clock.monotonic()
        while self._seen and next(iter(self._seen.values())) <= now:
            self._seen.popitem(last=False)


class _Consumer:
    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.held = 0


class _Item:
    """A message, from publish to its end."""

    def __init__(self, subject: str, payload: bytes, id: str) -> None:  # noqa: A002
        self.subject = subject
        self.payload = payload
        self.id = id
        self.state = State.READY
        self.deliveries = 0
        self.due: float | None = None
        self.consumer: _Consumer | None = None


class _Lane:
    """The messages of one subject."""

    def __init__(self) -> None:
        self.ready: deque[_Item] = deque()
        self.dead: deque[DeadLetter] = deque(maxlen=MAX_DEAD)
        self.depth = 0
        self.changed = asyncio.Event()
        self._timed: list[tuple[float, int, _Item]] = []
        self._numbers = itertools.count()

    def notice(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def next_ready(self) -> _Item | None:
        while self.ready:
            item = self.ready.popleft()
            if item.state is State.READY:  # not acknowledged late
                return item
        return None

    def time(self, item: _Item, due: float) -> None:
        item.due = due
        heapq.heappush(self._timed, (due, next(self._numbers), item))

    def next_due(self) -> float | None:
        while self._timed and self._timed[0][2].due != self._timed[0][0]:  # settled or extended since
            heapq.heappop(self._timed)
        return self._timed[0][0] if self._timed else None

    def take_due(self, now: float) -> list[_Item]:
        due = []
        while (first := self.next_due()) is not None and first <= now:
            due.append(heapq.heappop(self._timed)[2])
        return due


class _Delivery:
    """Fulfils `Message`. An old delivery may still acknowledge; everything else is for the one that is under way."""

    def __init__(self, queue: LocalQueue, lane: _Lane, item: _Item) -> None:
        self._queue = queue
        self._lane = lane
        self._item = item
        self.subject = item.subject
        self.payload = item.payload
        self.id = item.id
        self.deliveries = item.deliveries
        self._settled = False

    async def ack(self) -> None:
        if not self._settled:
            self._settle(Event.ACK)

    async def nak(self, delay: float | None = None) -> None:
        if self._current:
            event = Event.NAK_LATER if delay else Event.NAK
            self._settle(event, reason=f"refused {self.deliveries} times", delay=delay or 0.0)

    async def extend(self) -> None:
        if self._current:
            self._queue.extend(self._lane, self._item)

    async def term(self, reason: str = "") -> None:
        if self._current:
            self._settle(Event.TERM, reason=reason or "terminated")

    @property
    def _current(self) -> bool:
        self._queue._pass_time(self._lane)
        delivered = self._item.state is State.DELIVERED and self._item.deliveries == self.deliveries
        return delivered and not self._settled

    def _settle(self, event: Event, *, reason: str = "", delay: float = 0.0) -> None:
        self._settled = True
        self._queue.happen(self._lane, self._item, event, reason=reason, delay=delay)
