"""Informers: one list-watch for each kind and scope, however many controllers read it.

An informer runs while someone subscribes to it. Subscribers are told synchronously, in order, within the loop: a
handler only maps a change to requests and puts them in a queue. One that joins late is first told all that is there.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Any

from trimtab.client.api import ApiClient
from trimtab.client.entries import Snapshot
from trimtab.client.protocol import AnyKind, Named, Query
from trimtab.model.clock import Clock
from trimtab.model.kind import Kind
from trimtab.model.logs import log
from trimtab.model.resource import Resource
from trimtab.runtime.cache import Cache, Index
from trimtab.runtime.changes import Change
from trimtab.runtime.reflector import Phase, Reflector

Handler = Callable[[Change], None]


class Informer:
    """One kind within one scope."""

    def __init__(self, informers: Informers, kind: AnyKind, query: Query, *, streams: bool) -> None:
        self.kind = kind
        self.query = query
        self.problem: Exception | None = None  # why it is not up to date; None when it is
        names, cls = informers.named(kind)
        self.cache = Cache(informers, cls, names.api_version, names.kind, query)
        self.synced = asyncio.Event()
        self._name = names.kind
        self._handlers: list[Handler] = []
        self._reflector = Reflector(
            informers.client,
            kind,
            query,
            clock=informers.clock,
            chance=informers.chance,
            failed=self._failed,
            streams=streams,
        )

    @property
    def phase(self) -> Phase:
        return self._reflector.state.phase

    def subscribe(self, handler: Handler) -> None:
        """Tell `handler` what is there, then every change."""
        for entry in self.cache.entries_of_watch():
            self._tell(handler, Change(self.cache, None, entry, initial=True))
        self._handlers.append(handler)

    def unsubscribe(self, handler: Handler) -> None:
        self._handlers.remove(handler)

    @property
    def subscribed(self) -> bool:
        return bool(self._handlers)

    async def run(self) -> None:
        """Until cancelled."""
        told = self._reflector.told()
        try:
            async for item in told:
                self.problem = None
                if isinstance(item, Snapshot):
                    for change in self.cache.replace(item, initial=not self.synced.is_set()):
                        self._tell_all(change)
                    self.synced.set()
                    continue
                advanced = self.cache.advance(item)
                if advanced is not None:
                    self._tell_all(advanced)
        finally:
            await told.aclose()

    def _tell_all(self, change: Change) -> None:
        for handler in tuple(self._handlers):
            self._tell(handler, change)

    def _tell(self, handler: Handler, change: Change) -> None:
        try:
            handler(change)
        except Exception:  # a handler's mistake must stop neither the watch nor the other handlers
            log.exception("a handler failed on a change", kind=self._name, object=str(change.request))

    def _failed(self, error: Exception, pause: float) -> None:
        self.problem = error
        if pause >= 1.0:  # what passes at once is no news
            log.warning("the watch is interrupted", kind=self._name, error=str(error), again_in=round(pause, 1))


class Informers:
    """All informers of one manager."""

    def __init__(self, client: ApiClient, *, clock: Clock, chance: random.Random, streams: bool = True) -> None:
        self.client = client
        self.clock = clock
        self.chance = chance
        self._streams = streams
        self._informers: dict[tuple[Named, Query], Informer] = {}
        self._tasks: dict[Informer, asyncio.Task[None]] = {}
        self._broken = asyncio.Event()
        self._failure: BaseException | None = None

    def named(self, kind: AnyKind) -> tuple[Named, type[Resource] | None]:
        """A kind's names, and its class when there is one."""
        scheme = self.client.scheme
        if isinstance(kind, Named):
            return kind, scheme.class_of(kind.api_version, kind.kind)
        record = kind if isinstance(kind, Kind) else scheme.kind_of(kind)
        cls = kind if isinstance(kind, type) else scheme.class_of(record.api_version, record.kind)
        return Named(record.api_version, record.kind), cls

    def subscribe(self, kind: AnyKind, query: Query, handler: Handler, indexes: tuple[Index, ...] = ()) -> Informer:
        """Follow a kind; the informer is started when there is none yet."""
        key = (self.named(kind)[0], query)
        informer = self._informers.get(key)
        if informer is None:
            informer = self._informers[key] = Informer(self, kind, query, streams=self._streams)
            task = asyncio.get_running_loop().create_task(informer.run(), name=f"informer {key[0].kind}")
            task.add_done_callback(self._check)
            self._tasks[informer] = task
        for index in indexes:
            informer.cache.add_index(index)
        informer.subscribe(handler)
        return informer

    async def unsubscribe(self, informer: Informer, handler: Handler) -> None:
        """The informer ends with its last subscriber."""
        informer.unsubscribe(handler)
        if informer.subscribed:
            return
        self._informers = {key: other for key, other in self._informers.items() if other is not informer}
        await _ended(self._tasks.pop(informer))

    def of(self, kind: AnyKind) -> Iterator[Informer]:
        """The synced informers of a kind, those with the widest scope first."""
        names = self.named(kind)[0]
        found = [i for (k, _), i in self._informers.items() if k == names and i.synced.is_set()]
        return iter(sorted(found, key=lambda i: (bool(i.query.labels or i.query.fields), bool(i.query.namespace))))

    def __iter__(self) -> Iterator[Informer]:
        return iter(self._informers.values())

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        for task in self._tasks.values():
            await _ended(task)
        self._tasks.clear()
        self._informers.clear()

    async def supervise(self) -> None:
        """Wait for an informer to die of a mistake of ours, and raise it: it lives through all others."""
        await self._broken.wait()
        raise self._failure or RuntimeError("an informer ended")

    def _check(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and not self._broken.is_set():
            self._failure = task.exception()
            self._broken.set()


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
