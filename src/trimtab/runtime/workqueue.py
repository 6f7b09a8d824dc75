"""The keys that wait to be reconciled: each once, the urgent first, none at two workers at a time.

Flow: sources `add` keys, now, later or rate-limited; a worker takes one by `get`, works, and says `done`.

Guarantees:
- A key waits at most once, however often it was added, and is never with two workers. Added while a worker has it, it is
  due again at `done`.
- A higher priority goes first; within one, who became due first. One get in `FAIR_TURN` takes the key that has been due
  longest instead, whatever its priority, so that nothing starves.
- Adds of one key merge: the highest priority and the earliest time win. So a delayed add never postpones a key that is due.
  A key that is raised goes to the end of its new priority.
- Given the same clock and chance, the same calls give the same order.

Closing is client-go's ShutDownWithDrain: adds are ignored from then on, delayed keys are dropped, due keys are still handed
out (and those added again while a worker had them), then `get` raises `QueueClosed`. `close(drain=False)` drops due keys too.

Assumptions: one event loop, no threads; each worker says `done` for each key it got and gets again until `QueueClosed`.

Caveats: `get` does not yield to the loop while keys are due, so a worker that never waits for anything keeps the loop.
Retries are not bounded here: who gives a key up forgets it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from trimtab.model.clock import Clock
from trimtab.runtime.limits import Backoff, TokenBucket
from trimtab.runtime.metrics import QueueMetrics, QueueState
from trimtab.runtime.workitem import ABSENT, ADD, DELAY, DONE, GET, HELD, HELD_DIRTY, READY, Delays, Item, after

K = TypeVar("K", bound=Hashable)

LOW = -100
"""The priority of what the initial list brings: after fresh events, which have 0."""

FAIR_TURN = 16
"""One get in so many, while several priorities wait, goes to who has been due longest."""


class QueueClosed(Exception):  # noqa: N818 - an end, not a failure
    """The queue was closed and is empty: the worker ends."""


class WorkQueue(Generic[K]):
    """See the module. `name` is the controller's; `backoff` and `bucket` make the delays of `add_rate_limited`."""

    def __init__(
        self,
        clock: Clock,
        *,
        name: str,
        backoff: Backoff[K],
        bucket: TokenBucket | None = None,
        metrics: QueueMetrics | None = None,
    ) -> None:
        self.name = name
        self._clock = clock
        self._backoff = backoff
        self._bucket = bucket
        self._metrics = metrics or QueueMetrics()
        self._metrics.observe = self._observe
        self._items: dict[K, Item[K]] = {}
        self._lanes: dict[int, OrderedDict[Item[K], None]] = {}  # by priority; none is empty
        self._turns = 0
        self._held = 0
        self._delayed = Delays[K]()
        self._timer: asyncio.Task[None] | None = None
        self._timer_due = math.inf
        self._getters: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self._drained = asyncio.Event()

    def add(self, key: K, priority: int = 0) -> None:
        """The key is due now."""
        if self._closed:
            return
        item = self._items.get(key)
        if item is None:
            item = self._items[key] = Item(key, priority)
        elif item.state is READY:
            if priority > item.priority:
                self._leave(item)
                item.priority = priority
                self._enter(item)
            return
        else:
            item.merge(priority)
        self._become_due(item)

    def add_after(self, key: K, seconds: float, priority: int = 0) -> None:
        """The key is due in so many seconds, unless it already is or will be sooner."""
        if self._closed:
            return
        if seconds <= 0:
            self.add(key, priority)
            return
        if math.isnan(seconds):
            raise ValueError(f"{key!r} cannot be due in {seconds} seconds: give a number")
        self._metrics.retries += 1
        item = self._items.get(key)
        if item is None:
            item = self._items[key] = Item(key, priority)
        elif item.state is READY:
            self.add(key, priority)
            return
        else:
            item.merge(priority)
        item.state = after(item.state, DELAY)
        if item.state is not HELD_DIRTY:
            due = self._clock.monotonic() + seconds
            if self._delayed.put(item, due):
                self._set_timer(due)

    def add_rate_limited(self, key: K, priority: int = 0) -> None:
        """The key failed: due after its back-off, or when the bucket has a token, whichever is later."""
        delay = self._backoff.next(key)
        if self._bucket is not None:
            delay = max(delay, self._bucket.reserve())
        self.add_after(key, delay, priority)

    def forget(self, key: K) -> None:
        """The key succeeded or is given up; its next back-off is the first one again."""
        self._backoff.forget(key)

    async def get(self) -> K:
        """The next key, when there is one; it is the caller's until `done`. Raises QueueClosed."""
        while not self._lanes:
            if self._closed:
                raise QueueClosed(f"the work queue {self.name} is closed")
            await self._wait_for_a_key()
        return self._take().key

    def priority(self, key: K) -> int:
        """That at which a key in work was handed out: a retry keeps it."""
        return self._in_work(key).taken_at

    def done(self, key: K) -> None:
        """The worker is through with the key."""
        item = self._in_work(key)
        self._metrics.worked.observe(self._clock.monotonic() - item.taken)
        self._held -= 1
        state = item.state = after(item.state, DONE)
        if state is READY:
            self._enter(item)
        elif state is ABSENT:
            del self._items[key]
        if self._closed:
            self._notice_drained()

    def __len__(self) -> int:
        """The keys that a worker could get at this moment."""
        return sum(map(len, self._lanes.values()))

    def close(self, *, drain: bool = True) -> None:
        """Take no more; hand out what is due, or without `drain` nothing. May be called again to stop a drain."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for item in self._delayed.take(math.inf):
            self._drop(item)
        if not drain:
            for item in list(self._items.values()):
                self._drop(item)
            self._lanes.clear()
        while self._getters:
            self._wake_a_getter()
        self._notice_drained()

    async def drained(self) -> None:
        """Wait until the queue is closed, nothing is due and no worker has a key."""
        await self._drained.wait()

    def _in_work(self, key: K) -> Item[K]:
        item = self._items.get(key)
        if item is None or item.state < HELD:
            raise ValueError(f"{key!r} is not in work: call done once for each key that get gave")
        return item

    def _become_due(self, item: Item[K]) -> None:
        if item.delay is not None:
            self._delayed.remove(item)
        before = item.state
        state = item.state = after(before, ADD)
        if state is not before:
            item.since = self._clock.monotonic()
            self._metrics.adds += 1
            if state is READY:
                self._enter(item)

    def _enter(self, item: Item[K]) -> None:
        lane = self._lanes.get(item.priority)
        if lane is None:
            lane = self._lanes[item.priority] = OrderedDict()
        lane[item] = None
        if self._getters:
            self._wake_a_getter()

    def _leave(self, item: Item[K]) -> None:
        lane = self._lanes[item.priority]
        del lane[item]
        if not lane:
            del self._lanes[item.priority]

    def _take(self) -> Item[K]:
        lanes = self._lanes
        priority = max(lanes)
        if len(lanes) > 1:
            self._turns += 1
            if self._turns % FAIR_TURN == 0:
                priority = min(lanes, key=lambda lane: (next(iter(lanes[lane])).since, lane))
        lane = lanes[priority]
        item, _ = lane.popitem(last=False)
        if not lane:
            del lanes[priority]
        item.state = after(item.state, GET)
        item.taken_at = priority
        item.taken = self._clock.monotonic()
        self._held += 1
        self._metrics.waited.observe(item.taken - item.since)
        return item

    async def _wait_for_a_key(self) -> None:
        getter = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        try:
            await getter
        except asyncio.CancelledError:
            with contextlib.suppress(ValueError):
                self._getters.remove(getter)
            if self._lanes and not getter.cancelled():
                self._wake_a_getter()  # it was woken for a key that it will not take now
            raise

    def _wake_a_getter(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _set_timer(self, due: float) -> None:
        if self._timer is not None:
            if self._timer_due <= due:
                return
            self._timer.cancel()
        self._timer_due = due
        self._timer = asyncio.get_running_loop().create_task(self._run_timer(), name=f"workqueue {self.name}")

    async def _run_timer(self) -> None:
        while (due := self._delayed.first()) is not None:
            self._timer_due = due
            await self._clock.sleep(due - self._clock.monotonic())
            # A loop's timers may be coarser than the clock (uvloop's: 1 ms). To sleep again for the rest would be to spin.
            for item in self._delayed.take(max(due, self._clock.monotonic())):
                self._become_due(item)
        self._timer = None

    def _drop(self, item: Item[K]) -> None:
        if item.state < HELD:
            del self._items[item.key]
        else:
            item.state = HELD

    def _notice_drained(self) -> None:
        if not self._lanes and not self._held:
            self._drained.set()

    def _observe(self) -> QueueState:
        now = self._clock.monotonic()
        depth = {priority: len(lane) for priority, lane in self._lanes.items()}
        working = []
        for item in self._items.values():
            if item.state >= HELD:
                working.append(now - item.taken)
                if item.state is HELD_DIRTY:
                    depth[item.priority] = depth.get(item.priority, 0) + 1
        return QueueState(depth, working)
