"""Watches: from the log while behind, then live, without gap or repetition. Shared by all stores.

Flow: a watcher that is behind reads the log in bounded steps. When it has reached the newest revision it joins the
fan-out; nothing is awaited between the two, and publishing happens on the same event loop, so no change falls between.

Guarantees: `publish` never waits for a watcher. One that does not keep up loses its buffer and gets `Gone` on its next
read. Each watcher holds references to changes that all share, never copies.

Assumptions: everything here runs on one event loop. `Log.revision` is raised before `publish` is called.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Sequence
from typing import Protocol

import msgspec

from trimtab.store.contract import Batch, Change, Gone, Query, Revision


class Log(Protocol):
    """What a watch needs of a store."""

    @property
    def revision(self) -> Revision: ...

    @property
    def compacted(self) -> Revision: ...

    def changes(self, query: Query, after: Revision) -> Batch:
        """A bounded number of changes after a revision that is not compacted; complete up to the batch's revision."""


class Buffer(msgspec.Struct, frozen=True, kw_only=True):
    """How far a watcher may lag behind the newest change before it gets `Gone`."""

    changes: int = 4096
    bytes: int = 32 * 1024 * 1024


class State(enum.Enum):
    """BEHIND reads the log → LIVE gets what is published → LAGGED has overflowed, says so once → CLOSED."""

    BEHIND = enum.auto()
    LIVE = enum.auto()
    LAGGED = enum.auto()
    CLOSED = enum.auto()


class Fanout:
    """Hands each change to the watchers of its resource."""

    def __init__(self, log: Log, buffer: Buffer) -> None:
        self.log = log
        self.buffer = buffer
        self._live: dict[str, set[Watcher]] = {}
        self._closed = False

    def watch(self, query: Query, since: Revision, heartbeat: float) -> Watcher:
        return Watcher(self, query, since, heartbeat)

    def publish(self, changes: Sequence[Change]) -> None:
        by_resource: dict[str, list[Change]] = {}
        for change in changes:
            resource = change.entry.key.resource
            if resource in self._live:
                by_resource.setdefault(resource, []).append(change)
        for resource, group in by_resource.items():
            size = sum(len(change.entry.value) for change in group)
            for watcher in tuple(self._live[resource]):
                watcher.offer(group, size)

    def close(self) -> None:
        self._closed = True
        for watcher in [watcher for group in self._live.values() for watcher in group]:
            watcher.end(State.CLOSED)

    @property
    def closed(self) -> bool:
        return self._closed

    def join(self, watcher: Watcher) -> None:
        self._live.setdefault(watcher.query.resource, set()).add(watcher)

    def leave(self, watcher: Watcher) -> None:
        group = self._live.get(watcher.query.resource)
        if group is not None:
            group.discard(watcher)
            if not group:
                del self._live[watcher.query.resource]

    def __len__(self) -> int:
        """How many watchers are live."""
        return sum(map(len, self._live.values()))


class Watcher:
    """One watch; the iterator that a caller reads. Read by one task at a time."""

    __slots__ = (
        "_bytes",
        "_fanout",
        "_heartbeat",
        "_narrow",
        "_pending",
        "_position",
        "_since",
        "_state",
        "_timer",
        "_waiter",
        "_yielded",
        "query",
    )

    def __init__(self, fanout: Fanout, query: Query, since: Revision, heartbeat: float) -> None:
        self.query = query
        self._fanout = fanout
        self._since = since
        self._position = since  # complete up to here while behind
        self._heartbeat = heartbeat
        self._narrow = query.namespace is not None or query.name is not None
        self._state = State.BEHIND
        self._pending: list[Change] = []
        self._bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._yielded = 0.0  # when the caller was last given something, in the loop's time

    def __aiter__(self) -> Watcher:
        return self

    async def __anext__(self) -> Batch:
        while self._state is State.BEHIND:
            if self._position != self._since:
                await asyncio.sleep(0)  # between two steps, so that a long catch-up shares the loop
            batch = self._read_log()
            if batch.changes:
                return batch
        beat = False
        while not self._pending and not beat and self._state is State.LIVE:
            beat = await self._idle()
        if self._state is State.LIVE:
            return self._drain()
        if self._state is State.LAGGED:
            self._state = State.CLOSED
            raise Gone(self._position, self._fanout.log.compacted)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.end(State.CLOSED)

    def offer(self, changes: list[Change], size: int) -> None:
        """Called by the fan-out, for every watcher and change: keep it short."""
        if self._narrow or self._position < self._since:
            changes = [change for change in changes if self._wants(change)]
            if not changes:
                return
            size = sum(len(change.entry.value) for change in changes)
        behind = bool(self._pending)  # one that has read all is not slow, however much comes at once
        self._pending += changes
        self._bytes += size
        buffer = self._fanout.buffer
        if behind and (len(self._pending) > buffer.changes or self._bytes > buffer.bytes):
            self.end(State.LAGGED)
            return
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def end(self, state: State) -> None:
        """Free everything. The caller learns of it on its next read, or now if it is waiting."""
        self._fanout.leave(self)
        self._state = state
        self._pending = []
        self._bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _read_log(self) -> Batch:
        log = self._fanout.log
        if self._fanout.closed or self._state is not State.BEHIND:
            self.end(State.CLOSED)
        elif self._position < log.compacted:
            self.end(State.CLOSED)
            raise Gone(self._position, log.compacted)
        elif self._position < log.revision:
            batch = log.changes(self.query, self._position)
            self._position = batch.revision
            return batch
        else:
            self._go_live(log.revision)
        return Batch(self._position, ())

    def _go_live(self, revision: Revision) -> None:
        self._state = State.LIVE
        self._position = revision
        self._fanout.join(self)
        loop = asyncio.get_running_loop()
        self._yielded = loop.time()
        self._timer = loop.call_later(self._heartbeat, self._beat)

    def _drain(self) -> Batch:
        # What was published is in the buffer, so the batch is complete up to the newest revision.
        self._position = self._fanout.log.revision
        changes = tuple(self._pending)
        self._pending = []
        self._bytes = 0
        self._yielded = asyncio.get_running_loop().time()
        return Batch(max(self._position, self._since), changes)

    async def _idle(self) -> bool:
        """Wait for a change (False), or for as long as the heartbeat (True)."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        return not self._pending and self._due(loop.time()) <= 0

    def _due(self, now: float) -> float:
        return self._yielded + self._heartbeat - now

    def _beat(self) -> None:
        # One timer a watcher that puts itself off, instead of one for each read.
        loop = asyncio.get_running_loop()
        due = self._due(loop.time())
        if due <= 0 and self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        self._timer = loop.call_later(due if due > 0 else self._heartbeat, self._beat)

    def _wants(self, change: Change) -> bool:
        query, key = self.query, change.entry.key
        return (
            change.revision > self._since
            and (query.namespace is None or query.namespace == key.namespace)
            and (query.name is None or query.name == key.name)
        )
