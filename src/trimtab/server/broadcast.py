"""One reading of the store for all who watch the same thing in the same form: an event is framed once and written to each.

Flow: a watcher that has caught up hands its sink over; from then on the broadcast's own task writes to it.

Guarantees: a sink gets every change after the revision it was handed over with, in order, once, or its end. A sink that
does not take what it is given is cut off by its owner; the others and the store never wait for it.

Assumptions: everything runs on one event loop; nothing is awaited between a watcher's last look at `revision` and `attach`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from typing import Protocol

from trimtab.model.errors import StatusError, expired, internal
from trimtab.model.logs import log
from trimtab.server.backend import Backend
from trimtab.store.contract import Batch, Change, Query, Revision, StoreError

MAX_UNREAD = 2 * 1024 * 1024
"""Bytes that a watcher may leave unread."""
TOO_SLOW = "the watcher did not keep up with the changes: list again, and watch from there"


class Sink(Protocol):
    """Where framed events go. Neither call waits."""

    def feed(self, framed: bytes) -> None: ...

    def end(self, framed: bytes) -> None: ...


class View(Protocol):
    """How a watcher sees changes."""

    def event(self, change: Change) -> bytes | None: ...

    def idle(self, revision: Revision) -> bytes: ...

    def failure(self, error: StatusError | StoreError) -> bytes: ...


class Broadcast:
    """All sinks of one view."""

    def __init__(
        self,
        backend: Backend,
        query: Query,
        view: View,
        heartbeat: float,
        done: Callable[[], None],
        cut: Callable[[], None] = lambda: None,
    ) -> None:
        self._view = view
        self._cut = cut
        self._sinks: dict[Sink, Revision] = {}
        self._done = done
        self.revision = backend.revision
        self._watch = backend.watch(query, self.revision, heartbeat=heartbeat)
        self._task = asyncio.create_task(self._run(), name=f"broadcast of {query.resource}")

    def attach(self, sink: Sink, since: Revision) -> None:
        """From now on `sink` gets what comes after `since`, which must not be before `revision`."""
        self._sinks[sink] = since

    def detach(self, sink: Sink) -> None:
        """The last to leave ends the broadcast."""
        self._sinks.pop(sink, None)
        if not self._sinks:
            self._done()
            self._task.cancel()

    def cut(self, sink: Sink) -> bytes:
        """Give a sink no more, since it does not keep up; what to tell it, when it has read what it was given."""
        self._cut()
        self.detach(sink)
        return self._view.failure(expired(TOO_SLOW))

    @property
    def size(self) -> int:
        return len(self._sinks)

    def end(self) -> None:
        """Let all go; who wants more asks anew, and does not find this one."""
        self._done()
        for sink in list(self._sinks):
            sink.end(b"")

    async def _run(self) -> None:
        try:
            async for batch in self._watch:
                self._hand_out(batch)
                self.revision = batch.revision
        except (StatusError, StoreError) as error:
            self._end_all(self._view.failure(error))
        except Exception as error:  # nobody may wait for events that do not come
            log.exception("a watch failed")
            self._end_all(self._view.failure(internal(type(error).__name__)))
        finally:
            self._done()
            self._end_all(b"")
            await self._watch.aclose()

    def _end_all(self, framed: bytes) -> None:
        sinks, self._sinks = list(self._sinks), {}
        for sink in sinks:
            sink.end(framed)

    def _hand_out(self, batch: Batch) -> None:
        if not batch.changes:
            framed = self._view.idle(batch.revision)
        else:
            framed = self._framed(batch, 0)
        first = batch.changes[0].revision if batch.changes else batch.revision
        for sink, since in list(self._sinks.items()):
            if since < first:
                if framed:
                    sink.feed(framed)
            elif since < batch.revision and (rest := self._framed(batch, since)):
                sink.feed(rest)  # it joined in the middle of this batch

    def _framed(self, batch: Batch, since: Revision) -> bytes:
        frames = [self._view.event(change) for change in batch.changes if change.revision > since]
        return b"".join([frame for frame in frames if frame])


class Handover:
    """A watcher that has caught up, at `since`: whoever carries its events attaches to the broadcast."""

    def __init__(self, broadcast: Broadcast, since: Revision, deadline: float, farewell: Callable[[], bytes]) -> None:
        self.broadcast = broadcast
        self.since = since
        self.deadline = deadline
        self.farewell = farewell  # the last frame, when the time is over

    async def follow(self) -> AsyncIterator[bytes]:
        """The broadcast as an iterator, for readers in this process."""
        queue = _Queue(self.broadcast)
        self.broadcast.attach(queue, self.since)
        try:
            while (framed := await self._next(queue)) is not None:
                yield framed
        finally:
            self.broadcast.detach(queue)

    async def _next(self, queue: _Queue) -> bytes | None:
        try:
            async with asyncio.timeout_at(self.deadline):
                return await queue.get()
        except TimeoutError:
            queue.end(self.farewell())
            return await queue.get()


class _Queue:
    """A sink that is read."""

    def __init__(self, broadcast: Broadcast) -> None:
        self._broadcast = broadcast
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._unread = 0

    async def get(self) -> bytes | None:
        framed = await self._queue.get()
        self._unread -= len(framed or b"")
        return framed

    def feed(self, framed: bytes) -> None:
        behind = self._unread > 0  # one that has read all is not slow, however much comes at once
        self._unread += len(framed)
        self._queue.put_nowait(framed)
        if behind and self._unread > MAX_UNREAD:
            self.end(self._broadcast.cut(self))

    def end(self, framed: bytes) -> None:
        if framed:
            self._queue.put_nowait(framed)
        self._queue.put_nowait(None)


Key = tuple[Hashable, ...]
"""What is watched (the resource, then the version) and how."""


class Reader(Protocol):
    """A watcher that reads for itself."""

    def end(self) -> None: ...


class Broadcasts:
    """The broadcasts that are running, by what and how they are watched; and who watches without one."""

    def __init__(self) -> None:
        self._running: dict[Key, Broadcast] = {}
        self._readers: dict[Key, set[Reader]] = {}  # by resource and version
        self.terminated: dict[str, int] = {}  # watches that were cut off, by resource

    def get(self, key: Key) -> Broadcast | None:
        return self._running.get(key)

    def start(self, key: Key, backend: Backend, query: Query, view: View, heartbeat: float) -> Broadcast:
        resource = str(key[0])
        made = Broadcast(
            backend, query, view, heartbeat, lambda: self._forget(key, made), lambda: self._count_cut(resource)
        )
        self._running[key] = made
        return made

    def end(self, path: tuple[str, str, str]) -> None:
        """End the watches of a kind, named by group, version and plural, that is no longer what it was."""
        group, version, plural = path
        kind = (f"{plural}.{group}" if group else plural, version)
        for key, running in list(self._running.items()):
            if key[:2] == kind:
                running.end()
        for reader in tuple(self._readers.get(kind, ())):
            reader.end()

    def add_reader(self, kind: Key, reader: Reader) -> None:
        self._readers.setdefault(kind, set()).add(reader)

    def remove_reader(self, kind: Key, reader: Reader) -> None:
        readers = self._readers[kind]
        readers.discard(reader)
        if not readers:
            del self._readers[kind]

    def watchers(self) -> dict[str, int]:
        """How many follow each resource."""
        counted: dict[str, int] = {}
        for key, running in self._running.items():
            counted[str(key[0])] = counted.get(str(key[0]), 0) + running.size
        return counted

    def _count_cut(self, resource: str) -> None:
        self.terminated[resource] = self.terminated.get(resource, 0) + 1

    def _forget(self, key: Key, broadcast: Broadcast) -> None:
        if self._running.get(key) is broadcast:
            del self._running[key]
