"""Changes in the system that go to Git: watches of the kinds in scope, one a kind and namespace, shared by all syncs there.

A watch only says that something may have changed; what it comes to is the merge's business. So what the sync itself wrote may
wake it, and finds nothing to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from trimtab.client.discovery import ApiResource
from trimtab.client.protocol import Named, Query
from trimtab.runtime.changes import Change, Request
from trimtab.runtime.informers import Informer, Informers
from trimtab.systems.gitops.parsing import Identity
from trimtab.systems.gitops.scope import Scope

Told = Callable[[Request, Identity], None]
Place = tuple[Named, str]

PATIENCE = 30.0
"""Seconds for the first lists."""


class Followers:
    """Who follows what. `told` is called for each sync whose scope has the object."""

    def __init__(self, informers: Informers, told: Told) -> None:
        self._informers, self._told = informers, told
        self._wanted: dict[Request, dict[Place, ApiResource]] = {}
        self._followed: dict[Place, tuple[Informer, Callable[[Change], None]]] = {}

    async def follow(self, sync: Request, scope: Scope | None) -> None:
        """From now on a sync is told of changes of these kinds; None: of no changes. TimeoutError when the watches do not
        come about: then the sync has to look by itself."""
        wanted = {(Named(kind.api_version, kind.kind), scope.namespace): kind for kind in scope.kinds} if scope else {}
        if wanted:
            self._wanted[sync] = wanted
        else:
            self._wanted.pop(sync, None)
        for place, kind in wanted.items():
            if place not in self._followed:
                handler = self._handler(place, kind)
                query = Query(namespace=place[1], metadata_only=True)
                self._followed[place] = (self._informers.subscribe(place[0], query, handler), handler)
        async with asyncio.timeout(PATIENCE):  # who looks after this misses nothing in between
            for place in wanted:
                await self._followed[place][0].synced.wait()
        await self._let_go()

    async def close(self) -> None:
        self._wanted.clear()
        await self._let_go()

    async def _let_go(self) -> None:
        """Of what nobody wants now: others begin to follow while we wait."""
        while (place := self._needless()) is not None:
            await self._informers.unsubscribe(*self._followed.pop(place))

    def _needless(self) -> Place | None:
        return next((p for p in self._followed if not any(p in places for places in self._wanted.values())), None)

    def _handler(self, place: Place, kind: ApiResource) -> Callable[[Change], None]:
        def handle(change: Change) -> None:
            if change.initial or not _matters(change):
                return
            request = change.request
            identity = Identity(kind.group, kind.kind, request.namespace, request.name)
            for sync, places in self._wanted.items():
                if place in places:
                    self._told(sync, identity)

        return handle


def _matters(change: Change) -> bool:
    """Not when only the status moved, for kinds that count generations."""
    old, new = change.heads
    if old is None or new is None:
        return True
    if not (old.generation and new.generation):
        return True
    return _words(old) != _words(new)


def _words(head: Any) -> tuple[Any, ...]:
    return head.uid, head.generation, dict(head.labels or {}), dict(head.annotations or {}), head.deletion_timestamp
