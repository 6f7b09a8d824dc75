"""One group of a cache: the gets or the lists of a type. It reads through, and never keeps what is no longer true.

Flow: `look` answers from memory. Where it cannot, `fetch` joins a load that is under way or starts one, and keeps the result
if the scope's mark did not move meanwhile. `drop` and `news` say what changed.

Guarantees, while the gate is open
  - An answer contains every change that the group was told of before the question.
  - A load that began before a change is neither kept nor joined after it.
  - Who waits for a load and gives up does not take it from the others.
  - An older revision never takes the place of a newer one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from trimtab.hub.cache.generations import Change, Generations, Mark, Scope
from trimtab.hub.cache.keys import get_key
from trimtab.hub.cache.lru import Entry, Lru
from trimtab.hub.cache.metrics import GroupMetrics
from trimtab.model.clock import Clock, SystemClock

MAX_BYTES = 64 * 1024 * 1024
EXPIRY = 300.0
NEGATIVE_EXPIRY = 5.0
JITTER = 0.1
HOT_SHARE = 8
"""Of the group's bytes, one in this many is for what other replicas own."""
PATIENCE = 30.0
"""Seconds after which nobody joins a load any more: the service may have forgotten it."""

Load = Callable[[], Awaitable[Entry]]
"""Reads the service. Of an entry the value, the revision and `missing` count."""
Ask = Callable[[], Awaitable[Entry | None]]
"""Asks the key's owner; None when it has no answer."""


class Group:
    """`expiry` in seconds; what is not there is believed for `negative_expiry` only."""

    def __init__(
        self,
        name: str,
        *,
        kind: Literal["get", "list"],
        max_bytes: int = MAX_BYTES,
        expiry: float = EXPIRY,
        negative_expiry: float = NEGATIVE_EXPIRY,
        jitter: float = JITTER,
        clock: Clock | None = None,
        chance: random.Random | None = None,
    ) -> None:
        self.name = name
        self.lists = kind == "list"
        self.generations = Generations()
        self._expiry = expiry
        self._negative_expiry = negative_expiry
        self._jitter = jitter
        self._now = (clock or SystemClock()).monotonic
        self._chance = chance or random.Random()  # noqa: S311 - it spreads expiries
        self._own = Lru(max_bytes)
        self._hot = Lru(max_bytes // HOT_SHARE)
        self._flights: dict[bytes, _Flight] = {}
        self._metrics = GroupMetrics()

    @property
    def metrics(self) -> GroupMetrics:
        numbers = self._metrics
        numbers.bytes = self._own.bytes + self._hot.bytes
        numbers.entries = len(self._own) + len(self._hot)
        numbers.evictions = self._own.evictions + self._hot.evictions
        return numbers

    def look(self, key: bytes, scope: Scope, at_least: int = 0) -> Entry | None:
        """From memory, or None. A list of a revision below `at_least` is no answer."""
        now = self._now()
        entry = self._own.get(key, now) or self._hot.get(key, now)
        self._metrics.gets += 1
        if entry is None:
            return None
        if self.lists and (entry.mark != self.generations.mark(scope) or entry.revision < at_least):
            self._forget(key)
            return None
        self._metrics.hits += 1
        if entry.missing:
            self._metrics.negative_hits += 1
        return entry

    async def fetch(self, key: bytes, scope: Scope, load: Load, ask: Ask | None = None) -> Entry:
        """From a load, ours or another's. `ask` is given when another replica owns the key."""
        mark = self.generations.mark(scope)
        flight = self._flights.get(key)
        if flight is not None and flight.mark == mark and self._now() - flight.began < PATIENCE:
            self._metrics.deduplicated += 1
        else:
            flight = _Flight(mark, self._now(), asyncio.create_task(self._fly(key, scope, mark, load, ask)))
            self._flights[key] = flight
            flight.task.add_done_callback(lambda _: self._landed(key, flight))
        return await asyncio.shield(flight.task)

    async def past(self, load: Load) -> Entry:
        """Without the cache: nothing is looked up, joined or kept."""
        self._metrics.gets += 1
        self._metrics.bypassed += 1
        self._metrics.loads += 1
        return await load()

    def drop(self, change: Change) -> None:
        """Not to be believed any more. The generations move by the caller, once for all groups."""
        self._metrics.invalidations += 1
        if not change.name:
            self._own.clear()
            self._hot.clear()
        elif not self.lists:
            self._forget(get_key(change.type, change.organization, change.project, change.name))

    def news(self, change: Change) -> None:
        """A change that may have been heard of already: what is at its revision, or a newer one, stays."""
        if change.name and change.revision and not self.lists:
            key = get_key(change.type, change.organization, change.project, change.name)
            if all(e is None or e.revision >= change.revision for e in (self._own.peek(key), self._hot.peek(key))):
                return
        self.drop(change)

    def clear(self) -> None:
        self._own.clear()
        self._hot.clear()

    def served(self) -> None:
        """Another replica was answered."""
        self._metrics.peer_served += 1

    async def _fly(self, key: bytes, scope: Scope, mark: Mark, load: Load, ask: Ask | None) -> Entry:
        floor = self.generations.floor(scope)
        entry = None
        if ask is not None:
            entry = await ask()
            if entry is None:
                self._metrics.peer_errors += 1
            else:
                self._metrics.peer_loads += 1
        if entry is None:
            self._metrics.loads += 1
            entry = await load()
        if self.generations.mark(scope) != mark or (self.lists and 0 < entry.revision < floor):
            self._metrics.dropped_fills += 1
            return entry
        self._fill(key, mark, entry, floor, self._own if ask is None else self._hot)
        return entry

    def _fill(self, key: bytes, mark: Mark, entry: Entry, floor: int, into: Lru) -> None:
        before = self._own.peek(key) or self._hot.peek(key)
        if before is not None and before.expires > self._now() and before.revision > entry.revision > 0:
            self._metrics.dropped_fills += 1
            return
        self._forget(key)
        lasts = self._negative_expiry if entry.missing else self._expiry
        lasts *= 1 - self._jitter * self._chance.random()
        revision = floor if entry.missing else entry.revision
        into.put(key, msgspec.structs.replace(entry, mark=mark, revision=revision, expires=self._now() + lasts))

    def _forget(self, key: bytes) -> None:
        self._own.remove(key)
        self._hot.remove(key)

    def _landed(self, key: bytes, flight: _Flight) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        if not flight.task.cancelled():
            flight.task.exception()  # looked at: those who waited may all have gone


class _Flight:
    """A load under way."""

    __slots__ = ("began", "mark", "task")

    def __init__(self, mark: Mark, began: float, task: asyncio.Task[Entry]) -> None:
        self.mark = mark
        self.began = began
        self.task = task
