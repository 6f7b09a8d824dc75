"""Informers: one list-watch for each kind and scope, however many controllers read it.

An informer runs while someone subscribes to it. Subscribers are told synchronously, in order, within the loop: a
handler only maps a change to requests and puts them in a queue. One that joins late is first told all that is there.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Iterator, Sequence

from trimtab.client.api import ApiClient
from trimtab.client.entries import Snapshot
from trimtab.client.protocol import AnyKind, Named, Query
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.model.kind import Kind
from trimtab.model.logs import log
from trimtab.model.resource import Resource
from trimtab.runtime.cache import Cache
from trimtab.runtime.changes import Change, Request
from trimtab.runtime.index import Index
from trimtab.runtime.reflector import Phase, Reflector
from trimtab.runtime.tasks import ended

Handler = Callable[[Change], None]

STALE = 30.0  # seconds that a watch may fail before its cache counts as old
FORGIVEN = 75.0  # seconds after the last failure


class Informer:
    """One kind within one scope."""

    def __init__(self, informers: Informers, kind: AnyKind, query: Query, *, streams: bool) -> None:
        self.kind = kind
        self.query = query
        self.problem: Exception | None = None  # why it is not up to date; None when it is
        self._failing_since = self._failed_at = -math.inf
        self._clock = informers.clock
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

    @property
    def stale(self) -> str:
        """Why what is cached may be old: the watch has failed for a while, and failed again lately. "" when all is well.
        A watch that is up again says so by a bookmark, within a minute or two."""
        now = self._clock.monotonic()
        failing = self.problem is not None and now - self._failing_since > STALE and now - self._failed_at < FORGIVEN
        return self.trouble if failing else ""

    @property
    def trouble(self) -> str:
        """What went wrong last, in words; "" for nothing."""
        if isinstance(self.problem, StatusError) and self.problem.code == 404:
            return f"{self._name}, which is not served here: define its CRD"
        return f"{self._name}: {self.problem}" if self.problem else ""

    def _failed(self, error: Exception, pause: float) -> None:
        self._failed_at = self._clock.monotonic()
        if self.problem is None:
            self._failing_since = self._failed_at
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
        self._by_kind: dict[Named, list[Informer]] = {}  # those with the widest scope first
        self._tasks: dict[Informer, asyncio.Task[None]] = {}
        self._names: dict[type[Resource] | Kind, Named] = {}
        self._broken = asyncio.Event()
        self._failure: BaseException | None = None

    def named(self, kind: AnyKind) -> tuple[Named, type[Resource] | None]:
        """A kind's names, and its class when there is one."""
        scheme = self.client.scheme
        if isinstance(kind, Named):
            return kind, scheme.class_of(kind.api_version, kind.kind)
        known = self._names.get(kind)
        if known is None:
            record = kind if isinstance(kind, Kind) else scheme.kind_of(kind)
            known = self._names[kind] = Named(record.api_version, record.kind)
        return known, kind if isinstance(kind, type) else scheme.class_of(known.api_version, known.kind)

    def subscribe(self, kind: AnyKind, query: Query, handler: Handler, indexes: tuple[Index, ...] = ()) -> Informer:
        """Follow a kind; the informer is started when there is none yet. ValueError for an index that is another one."""
        followed = self._by_kind.get(self.named(kind)[0], [])
        informer = next((i for i in followed if i.query == query), None) or Informer(
            self, kind, query, streams=self._streams
        )
        for index in indexes:
            informer.cache.add_index(index)
        if informer not in self._tasks:
            self._start(informer)
        informer.subscribe(handler)
        return informer

    def _start(self, informer: Informer) -> None:
        names = self.named(informer.kind)[0]
        followed = self._by_kind.setdefault(names, [])
        followed.append(informer)
        followed.sort(key=lambda i: (bool(i.query.labels or i.query.fields), bool(i.query.namespace)))
        task = asyncio.get_running_loop().create_task(informer.run(), name=f"informer {names.kind}")
        task.add_done_callback(self._check)
        self._tasks[informer] = task

    async def unsubscribe(self, informer: Informer, handler: Handler) -> None:
        """The informer ends with its last subscriber."""
        informer.unsubscribe(handler)
        if informer.subscribed or informer not in self._tasks:
            return
        names = self.named(informer.kind)[0]
        self._by_kind[names].remove(informer)
        if not self._by_kind[names]:
            del self._by_kind[names]
        await ended(self._tasks.pop(informer))

    def of(self, kind: AnyKind) -> Iterator[Informer]:
        """The informers of a kind that are synced, those with the widest scope first."""
        return (informer for informer in self.following(kind) if informer.synced.is_set())

    def following(self, kind: AnyKind) -> Sequence[Informer]:
        """All informers of a kind, those too that still fill."""
        return self._by_kind.get(self.named(kind)[0], ())

    def indexed(self, kind: AnyKind, index: str, value: str) -> list[Request]:
        """Which objects an index has under a value, for the mapping of a Watch. None while the kind is not synced: the
        first list brings them all."""
        for informer in self.following(kind):
            if informer.cache.has_index(index):
                return informer.cache.indexed(index, value)
        raise LookupError(f'{self.named(kind)[0].kind} has no index "{index}"; a controller declares it in `indexes`')

    def __iter__(self) -> Iterator[Informer]:
        return iter(self._tasks)

    async def close(self) -> None:
        """End them all."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        self._by_kind.clear()
        await ended(*tasks)
        self._broken.clear()

    async def supervise(self) -> None:
        """Wait for an informer to die of a mistake of ours, and raise it: it lives through all others."""
        await self._broken.wait()
        raise self._failure or RuntimeError("an informer ended")

    def _check(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and not self._broken.is_set():
            self._failure = task.exception()
            self._broken.set()
