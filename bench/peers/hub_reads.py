"""Reads of the hub over PostgreSQL: with its cache and without, what conversion and names cost, and whether size matters."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from trimtab.hub.cache.caches import Caches
from trimtab.hub.contract import GetOptions, ListOptions
from trimtab.hub.proxies.cached import Cached
from trimtab.hub.proxies.hydrate import Hydrate
from trimtab.hub.proxies.names import Names
from trimtab.hub.references import references_of
from trimtab.hub.storage.contract import PROJECTS
from trimtab.hub.storage.filling import bench_fill
from trimtab.hub.storage.postgres import PostgresStorage
from trimtab.hub.storage_accessor import StorageAccessor
from trimtab.model.scheme import Scheme
from trimtab.systems.platform.hub_kinds import HUB_KINDS
from trimtab.systems.platform.kinds import Blueprint
from trimtab.testing.postgres import PostgresServer

CLIENTS = 32
PAGE = 500
TYPE = "blueprints.infra"
FIRST = ListOptions(all_projects=True, limit=PAGE)
LATE = ListOptions(all_projects=True, limit=PAGE, after=("p90", ""))


class Reads(NamedTuple):
    """Gets a second of the accessor, and what parts of a get cost, in microseconds."""

    uncached: float
    cached: float
    conversion: float
    hydration: float


class Size(NamedTuple):
    """Times in milliseconds with so many rows."""

    rows: int
    get: float
    first_page: float
    late_page: float


def measure(rows: int, seconds: float) -> Reads:
    with PostgresServer() as server:
        return asyncio.run(_reads(server.url, rows, seconds))


def sizes(counts: tuple[int, ...], say: Callable[[str], None]) -> list[Size]:
    with PostgresServer() as server:
        return asyncio.run(_sizes(server.url, counts, say))


async def _reads(url: str, rows: int, seconds: float) -> Reads:
    storage = PostgresStorage(url)
    await storage.ready()
    keys = await bench_fill(storage, rows, type=TYPE, projects=10)
    accessor, kind = _accessor(storage)
    wanted = [(key.name, GetOptions(project=key.project)) for key in keys]
    uncached = await _rate(lambda n: accessor.get(*wanted[n % rows]), seconds)
    cached = Cached(accessor, TYPE, Caches())
    for each in wanted:
        await cached.get(*each)
    fast = await _rate(lambda n: cached.get(*wanted[n % rows]), seconds)
    found = [await accessor._row(*each) for each in wanted[:500]]
    started = time.perf_counter()
    hubs = [accessor._rows.hub(row) for row in found]
    conversion = (time.perf_counter() - started) / len(found) * 1e6
    hydrate = Hydrate(cached, references_of(Blueprint, {"Project": PROJECTS, "Addon": "addons.infra"}), Names(storage))
    await hydrate._hydration.up(hubs)
    started = time.perf_counter()
    await hydrate._hydration.up(hubs)
    hydration = (time.perf_counter() - started) / len(hubs) * 1e6
    await storage.close()
    assert kind.kind == "Blueprint"
    return Reads(uncached, fast, conversion, hydration)


async def _sizes(url: str, counts: tuple[int, ...], say: Callable[[str], None]) -> list[Size]:
    storage = PostgresStorage(url)
    await storage.ready()
    accessor, _ = _accessor(storage)
    measured, keys, have = [], [], 0
    for count in counts:
        say(f"filling PostgreSQL up to {count:,} resources")
        keys += await bench_fill(storage, count - have, type=TYPE, projects=100, start=have)
        have = count
        stride = max(1, len(keys) // 200)
        some = keys[::stride][:200]
        gets = await _times([lambda k=key: accessor.get(k.name, GetOptions(project=k.project)) for key in some])
        first = await _times([lambda: accessor.list(FIRST)] * 20)
        last = await _times([lambda: accessor.list(LATE)] * 20)
        measured.append(Size(count, gets, first, last))
    await storage.close()
    return measured


def _accessor(storage: PostgresStorage) -> tuple[Any, Any]:
    kind = Scheme().kind_of(Blueprint)
    convertor = next(each.convertor for each in HUB_KINDS if each.cls is Blueprint)
    return StorageAccessor(storage, kind, Blueprint, convertor, type_=TYPE), kind


async def _rate(read: Callable[[int], Awaitable[Any]], seconds: float) -> float:
    """So many a second, by several clients at once."""
    done = 0
    until = time.perf_counter() + seconds

    async def client() -> None:
        nonlocal done
        while time.perf_counter() < until:
            done += 1
            await read(done)

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return done / (time.perf_counter() - started)


async def _times(reads: list[Callable[[], Awaitable[Any]]]) -> float:
    """The median, in milliseconds."""
    taken = []
    for read in reads:
        started = time.perf_counter()
        await read()
        taken.append((time.perf_counter() - started) * 1e3)
    return statistics.median(taken)
