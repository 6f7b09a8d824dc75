"""What the work queue knows of a key: the states of its life, and the heap of those that wait for their time.

A key lives from its first add until the last done. `after` is the whole of its life, pure; the work queue acts on it. An item
is in the heap exactly while its state is DELAYED or HELD_DELAYED, and its `delay` is its one valid entry there.
"""

from __future__ import annotations

import enum
import heapq
import itertools
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

FEW_STALE = 64
"""So many stale entries are not worth a sweep of the heap."""


class State(enum.IntEnum):
    """What the queue knows of a key."""

    ABSENT = 0
    READY = 1  # due, in its lane
    DELAYED = 2  # in the heap until its time
    HELD = 3  # with a worker
    HELD_DIRTY = 4  # with a worker, and due again as soon as it is done
    HELD_DELAYED = 5  # with a worker, and in the heap


class Event(enum.IntEnum):
    """What happens to a key."""

    ADD = 0  # now, or its time has come
    DELAY = 1
    GET = 2
    DONE = 3


# Names of the module, for the hot path: to look a member up in its class costs several times as much.
ABSENT, READY, DELAYED, HELD, HELD_DIRTY, HELD_DELAYED = State
ADD, DELAY, GET, DONE = Event


def after(state: State, event: Event) -> State:
    """The state of a key after an event. A pure table; what cannot happen is a KeyError."""
    return _AFTER[event][state]


_AFTER: dict[Event, dict[State, State]] = {
    ADD: {
        ABSENT: READY,
        READY: READY,
        DELAYED: READY,
        HELD: HELD_DIRTY,
        HELD_DIRTY: HELD_DIRTY,
        HELD_DELAYED: HELD_DIRTY,
    },
    DELAY: {
        ABSENT: DELAYED,
        READY: READY,
        DELAYED: DELAYED,
        HELD: HELD_DELAYED,
        HELD_DIRTY: HELD_DIRTY,
        HELD_DELAYED: HELD_DELAYED,
    },
    GET: {READY: HELD},
    DONE: {
        HELD: ABSENT,
        HELD_DIRTY: READY,
        HELD_DELAYED: DELAYED,
    },
}


class Item(Generic[K]):
    """A key and what is known of it, from its first add until the last done."""

    __slots__ = ("delay", "key", "priority", "since", "state", "taken", "taken_at")

    def __init__(self, key: K, priority: int) -> None:
        self.key = key
        self.priority = priority  # of the wait, not of the work
        self.state = ABSENT
        self.delay: Delay[K] | None = None  # its entry in the heap
        self.since = 0.0  # due since
        self.taken = 0.0  # when a worker got it
        self.taken_at = 0  # and at which priority

    def merge(self, priority: int) -> None:
        """Another add: the higher priority counts, and what a worker has got by an earlier one does not."""
        if self.state is HELD or priority > self.priority:
            self.priority = priority


Delay = tuple[float, int, Item[K]]
"""When an item becomes due, the number of the add, and the item."""


class Delays(Generic[K]):
    """Items by the time when they become due. Who leaves early stays in the heap as a stale entry until most are stale."""

    def __init__(self) -> None:
        self._heap: list[Delay[K]] = []
        self._numbers = itertools.count()
        self._stale = 0

    def put(self, item: Item[K], due: float) -> bool:
        """Enter the item, or bring it forward. False when it is already due sooner."""
        if item.delay is not None:
            if item.delay[0] <= due:
                return False
            self.remove(item)
        item.delay = (due, next(self._numbers), item)
        heapq.heappush(self._heap, item.delay)
        return True

    def remove(self, item: Item[K]) -> None:
        item.delay = None
        self._stale += 1
        if self._stale > FEW_STALE and self._stale * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].delay is entry]
            heapq.heapify(self._heap)
            self._stale = 0

    def first(self) -> float | None:
        """The earliest time; it may be a stale one."""
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> list[Item[K]]:
        """Those whose time has come, in the order of their times."""
        taken = []
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            item = entry[2]
            if item.delay is entry:
                item.delay = None
                taken.append(item)
            else:
                self._stale -= 1
        return taken
