"""Keeps the status of ResourceQuotas right: counted when they are written, and when something that they limit has gone.

Flow: quotas are followed, and so are the kinds that they limit, no others; a namespace where the count may have changed is
put on a queue, once, and counted. What was charged before it was written is not counted again.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.server.quota.ledger import QUOTAS, Ledger
from trimtab.server.quota.usage import is_counted, is_pod, is_service, names_used, used_by
from trimtab.server.registry import Served
from trimtab.store.contract import Change, Entry, Gone, Op, Query, StoreError

if TYPE_CHECKING:
    from trimtab.server.core import Server

PAUSE = 1.0
"""Seconds before another try, when a kind cannot be listed or the store does not take a status."""


class QuotaStatus:
    def __init__(self, server: Server, ledger: Ledger) -> None:
        self._server = server
        self._ledger = ledger
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._queued: set[str] = set()
        self._watches: dict[str, asyncio.Task[None]] = {}
        ledger.recount = self._put

    async def load(self) -> None:
        """Know the quotas there are: they hold from the first request on."""
        for entry in (await self._server.store.list(Query(resource=QUOTAS))).entries:
            self._observe(entry)

    async def run(self) -> None:
        """Keep them so, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            tasks.create_task(self._work())
            tasks.create_task(self._follow_kinds())

    async def _follow(self) -> None:
        query = Query(resource=QUOTAS)
        while True:
            try:
                page = await self._server.store.list(query)
                self._ledger.quotas.clear()
                for entry in page.entries:
                    self._observe(entry)
                    self._put(entry.key.namespace)  # what went while nobody looked
                self._watch_limited()
                async with aclosing(self._server.store.watch(query, page.revision)) as batches:
                    async for batch in batches:
                        for change in batch.changes:
                            self._changed(change)
            except Gone:
                continue  # changes were missed: all of them are looked at again

    def _changed(self, change: Change) -> None:
        namespace, name = change.entry.key.namespace, change.entry.key.name
        if change.op is Op.PUT:
            before = self._ledger.quotas.get(namespace, {}).get(name)
            self._observe(change.entry)
            if self._ledger.quotas[namespace][name] != before:
                self._watch_limited()
        else:
            quotas = self._ledger.quotas.get(namespace, {})
            quotas.pop(name, None)
            if not quotas:
                self._ledger.quotas.pop(namespace, None)
                self._ledger.dropped(namespace)
            else:
                self._put(namespace)  # quotas are counted, too
            self._watch_limited()

    def _observe(self, entry: Entry) -> None:
        served = self._server.registry.find("", "v1", QUOTAS)
        assert served is not None  # noqa: S101 - a built-in kind
        quota = served.decode(entry)
        namespace, spec, status = entry.key.namespace, quota.get("spec") or {}, quota.get("status") or {}
        hard = spec.get("hard") or {}
        self._ledger.quotas.setdefault(namespace, {})[entry.key.name] = frozenset(hard)
        if hard != (status.get("hard") or {}):
            self._put(namespace)

    async def _follow_kinds(self) -> None:
        seen = -1
        while True:
            seen = await self._server.registry.news(seen)
            self._watch_limited()
            for namespace in self._ledger.quotas:
                self._put(namespace)  # a kind that is limited may have come

    def _watch_limited(self) -> None:
        """Watch each kind that some quota limits; let go of the others."""
        names = frozenset(n for quotas in self._ledger.quotas.values() for hard in quotas.values() for n in hard)
        wanted = {
            resource: served
            for resource, served in (self._server.registry.storages().items() if names else ())
            if is_counted(served.kind) and names_used(served.kind, names)
        }
        for resource in self._watches.keys() - wanted.keys():
            self._watches.pop(resource).cancel()
        for resource in wanted.keys() - self._watches.keys():
            watch = self._watch(wanted[resource], self._server.store.revision)
            self._watches[resource] = self._server.spawn(watch, f"quotas of {resource}")

    async def _watch(self, served: Served, since: int) -> None:
        query = Query(resource=served.strategy.storage)
        while True:
            try:
                async with aclosing(served.backend.watch(query, since)) as batches:
                    async for batch in batches:
                        for change in batch.changes:
                            if change.entry.key.namespace in self._ledger.quotas and self._matters(served, change):
                                self._put(change.entry.key.namespace)
            except Gone:
                self._ledger.forget()
                for namespace in self._ledger.quotas:
                    self._put(namespace)
            except StatusError as error:  # a service that holds the kind is down
                log.warning("quotas wait for a kind", kind=query.resource, error=error.message)
                await self._server.clock.sleep(PAUSE)
            since = served.backend.revision

    def _matters(self, served: Served, change: Change) -> bool:
        """Whether a change makes what was charged wrong."""
        if change.op is Op.DELETE:
            return True
        if change.before is None:
            return not self._ledger.was_charged(change.entry.key)
        if not is_pod(served.kind) and not is_service(served.kind):
            return False
        now = self._server.clock.now()
        old, new = (used_by(served.kind, served.decode(entry), now) for entry in (change.before, change.entry))
        return old != new

    def _put(self, namespace: str) -> None:
        if namespace not in self._queued:
            self._queued.add(namespace)
            self._queue.put_nowait(namespace)

    async def _work(self) -> None:
        while True:
            namespace = await self._queue.get()
            self._queued.discard(namespace)
            try:
                await self._ledger.count(namespace)
            except (StoreError, StatusError) as error:
                log.warning("a quota cannot be counted now", namespace=namespace, error=str(error))
                await self._server.clock.sleep(PAUSE)
                self._put(namespace)
