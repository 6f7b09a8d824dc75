"""One probe of one job, as far as TCP and UDP are alike: what waits to be sent, and what waits for an answer.

Flow: `fresh` → `send` → a burst with a deadline → an answer, or `expire` → `again` → `send` …, or silence. First tries go
before repeated ones, so that the last address does not wait behind the repetition of all others; how many may wait for
their repetition is bounded. All probes of a lane have one timeout, so bursts expire in the order in which they were
sent. There are as many objects as packets in flight or waiting; of what has been silent there are none.
"""

from __future__ import annotations

import abc
import errno
from collections import deque
from itertools import repeat
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.sweep.job import Probe

MOMENTARY = frozenset({errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL})
"""Our own machine is short of something, and that passes."""
PAUSE = 0.005
"""Seconds before a lane tries again to send after such an error."""
PATIENCE = 10.0
"""Seconds without a single send after which it has not passed."""

REFUSED = frozenset({errno.ECONNREFUSED, errno.ECONNRESET})
UNREACHABLE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EPROTO})
NO_ROUTE = errno.ENETUNREACH
"""When a send fails by it. Later it is what a router said."""

_FINAL = (Outcome.OPEN, Outcome.REFUSED)

Key = TypeVar("Key")


class Item(NamedTuple):
    """The address at one place of the order, which try it is, from 1, and what earlier ones told."""

    place: int
    attempt: int
    heard: Outcome = Outcome.SILENT


class Owner(Protocol):
    """The job that a lane works for."""

    def address(self, place: int) -> str: ...

    def settled(self, place: int, probe: int, outcome: Outcome, data: bytes = b"") -> None: ...


class Tally:
    """Counts of one job."""

    __slots__ = ("errors", "foreign", "late", "sent")

    def __init__(self) -> None:
        self.sent = self.errors = self.late = self.foreign = 0


class Burst(Generic[Key]):
    """What was sent at one moment and has not been answered."""

    __slots__ = ("deadline", "items")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.items: dict[Key, Item] = {}


class Lane(abc.ABC, Generic[Key]):
    """`Key` is how an answer finds what it answers: a socket, or the sender."""

    def __init__(self, number: int, probe: Probe, owner: Owner, tally: Tally) -> None:
        self.fresh: deque[Item] = deque()
        self.again: deque[Item] = deque()
        self.probe = probe
        self._number = number
        self.owner = owner
        self._tally = tally
        self._bursts: deque[Burst[Key]] = deque()
        self._pending: dict[Key, Burst[Key]] = {}
        self._paused_until = 0.0
        self._stuck_since: float | None = None

    @abc.abstractmethod
    def wants(self, now: float) -> int:
        """How many packets it could send now."""

    @abc.abstractmethod
    def send(self, packets: int, now: float) -> int:
        """Sends so many of those that wait. How many went out."""

    @abc.abstractmethod
    def ready(self, fd: int, events: int) -> bool:
        """Its socket has something to tell. False when there may be more than it took."""

    @abc.abstractmethod
    def _timed_out(self, key: Key) -> Outcome:
        """Its time is over: what is there to say of it now?"""

    @abc.abstractmethod
    def close(self) -> None: ...

    def line_up(self, first: int, end: int) -> None:
        """The addresses at these places of the order are next."""
        self.fresh.extend(map(Item, range(first, end), repeat(1)))

    @property
    def waiting(self) -> int:
        return len(self.fresh) + len(self.again)

    @property
    def deadline(self) -> float | None:
        return self._bursts[0].deadline if self._bursts else None

    def paused(self, now: float) -> float:
        """How long it must still wait before it may send."""
        return max(0.0, self._paused_until - now) if self.waiting else 0.0

    def expire(self, now: float) -> None:
        """Only after everything readable was read: `now` is a moment before that."""
        while self._bursts and self._bursts[0].deadline <= now:
            burst = self._bursts.popleft()
            for key, item in burst.items.items():
                if self._pending.get(key) is burst:
                    del self._pending[key]
                self._ended(key, item, self._timed_out(key))

    def _sent(self, burst: Burst[Key], key: Key, item: Item) -> None:
        burst.items[key] = item
        self._pending[key] = burst
        self._tally.sent += 1
        self._stuck_since = None

    def _take(self, key: Key) -> Item | None:
        burst = self._pending.pop(key, None)
        return None if burst is None else burst.items.pop(key)

    def _ended(self, key: Key, item: Item, outcome: Outcome, data: bytes = b"") -> None:
        """Open and refused are the device's own word; anything else is tried again."""
        told = item.heard if outcome is Outcome.SILENT else outcome
        if outcome not in _FINAL and item.attempt < self.probe.tries:
            self._repeat(key, Item(item.place, item.attempt + 1, told))
        else:
            self.owner.settled(item.place, self._number, told, data)

    def _repeat(self, key: Key, item: Item) -> None:
        self.again.append(item)

    def _next(self) -> Item:
        return self.fresh.popleft() if self.fresh else self.again.popleft()

    def _put_back(self, item: Item) -> None:
        (self.fresh if item.attempt == 1 else self.again).appendleft(item)

    def _clear(self) -> None:
        for each in (self.fresh, self.again, self._bursts, self._pending):
            each.clear()

    def _not_sent(self, item: Item, code: int, now: float) -> bool:
        """A send failed here. Whether that passes: then the item waits, and the lane pauses."""
        if code in MOMENTARY:
            self._stuck_since = now if self._stuck_since is None else self._stuck_since
            if now - self._stuck_since < PATIENCE:
                self._put_back(item)
                self._paused_until = now + PAUSE
                return True
        self._tally.errors += 1
        self.owner.settled(item.place, self._number, Outcome.NOT_SENT)
        return False


AnyLane = Lane[Any]
