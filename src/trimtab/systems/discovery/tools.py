"""What all loops of a process share: the door to the API, the clock, the thread that probes, the writers' turns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from random import Random

import msgspec

from trimtab.model.clock import Clock
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.events import Recorder
from trimtab.storage.blobs import Blobs
from trimtab.systems.discovery.findings import Identifier
from trimtab.systems.discovery.ledger.books import Books
from trimtab.systems.discovery.measures import Measures
from trimtab.systems.discovery.scope.plan import Shared
from trimtab.systems.discovery.scope.sources import Resolve
from trimtab.systems.discovery.sweep import Sweeper
from trimtab.systems.discovery.vendors.choice import Vendors

Identifiers = Mapping[str, Identifier]


class Turns:
    """One lock a namespace: two rules that find the same device settle one after the other."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}

    def of(self, namespace: str) -> asyncio.Lock:
        return self._locks.setdefault(namespace, asyncio.Lock())


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    client: CachedClient
    clock: Clock
    blobs: Blobs
    events: Recorder
    sweeper: Sweeper
    shared: Shared
    identifiers: Callable[[Iterable[str], Vendors], Awaitable[Identifiers]]
    resolve: Resolve
    turns: Turns
    books: Books
    measures: Measures
    chance: Random
