"""What comes too late to be kept, and where what is kept is kept."""

from __future__ import annotations

import asyncio

import pytest

from tests.hub.cache.service import Service, document
from trimtab.hub.cache.caches import Caches
from trimtab.hub.cache.group import Group
from trimtab.hub.contract import ApplyOptions, DeleteOptions, GetOptions, ListOptions, Missing
from trimtab.hub.proxies.cached import Cached

TYPE = "blueprints.infra"
GET, LIST = GetOptions(project="p"), ListOptions(project="p")
APPLY, DELETE = ApplyOptions(project="p"), DeleteOptions(project="p")


async def begun(service: Service, cached: Cached) -> tuple[asyncio.Task[object], asyncio.Event]:
    """A get that has seen what the service has, and has not come back with it."""
    at, go = asyncio.Event(), asyncio.Event()

    async def pause(where: str) -> None:
        if where == "get":
            at.set()
            await go.wait()

    service.pause = pause
    slow: asyncio.Task[object] = asyncio.create_task(cached.get("a", GET))
    await at.wait()
    return slow, go


@pytest.mark.row(38)
async def test_a_get_that_comes_back_last_does_not_leave_what_was_before_an_apply() -> None:
    service = Service()
    cached = Cached(service, TYPE, Caches())
    await cached.apply(document("a", "old"), APPLY)
    slow, go = await begun(service, cached)
    await cached.apply(document("a", "new"), APPLY)
    go.set()
    await slow
    assert (await cached.get("a", GET))["spec"]["v"] == "new"
    assert cached._gets.metrics.dropped_fills == 1


@pytest.mark.row(38)
async def test_a_get_that_comes_back_last_does_not_bring_back_what_was_deleted() -> None:
    service = Service()
    cached = Cached(service, TYPE, Caches())
    await cached.apply(document("a", "old"), APPLY)
    slow, go = await begun(service, cached)
    await cached.delete("a", DELETE)
    go.set()
    await slow
    with pytest.raises(Missing):
        await cached.get("a", GET)


@pytest.mark.row(31)
async def test_gets_and_lists_are_each_in_a_group_of_their_own() -> None:
    caches = Caches()
    cached = Cached(Service(), TYPE, caches)
    await cached.apply(document("a"), APPLY)
    for _ in range(3):
        await cached.get("a", GET)
    for _ in range(2):
        await cached.list(LIST)
    kind = caches.kinds[TYPE]
    assert (kind.get.name, kind.list.name) == (f"{TYPE}/get", f"{TYPE}/list")
    assert (kind.get.metrics.hits, kind.get.metrics.entries) == (2, 1)
    assert (kind.list.metrics.hits, kind.list.metrics.entries) == (1, 1)


@pytest.mark.row(39)
async def test_what_goes_for_want_of_room_is_counted() -> None:
    caches = Caches()
    cached = Cached(Service(), TYPE, caches, gets=Group("small", kind="get", max_bytes=1000))
    for name in "abcdefgh":
        await cached.apply(document(name), APPLY)
        await cached.get(name, GET)
    kept = caches.kinds[TYPE].get.metrics.entries
    samples = {
        (sample.name, sample.labels["group"]): sample.value for family in caches.collect() for sample in family.samples
    }
    assert samples["trimtab_hub_cache_evictions_total", "small"] == 8 - kept > 0
