"""Changes that others made in the service: heard from its log, and what happens where the log has a gap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from tests.hub.cache.service import Service, document
from trimtab.hub.cache.caches import Caches
from trimtab.hub.cache.follow import Follower
from trimtab.hub.cache.generations import Change
from trimtab.hub.contract import ApplyOptions, GetOptions, ListOptions
from trimtab.hub.proxies.cached import Cached
from trimtab.hub.storage.contract import Row, RowBatch, RowChange, RowKey, StorageUnavailable
from trimtab.runtime.tasks import ended
from trimtab.store.contract import Gone, Op, StoreError
from trimtab.testing.clock import FakeClock

TYPE = "blueprints.infra"
GET = GetOptions(project="p")
LIST = ListOptions(project="p")
EVERYWHERE = ListOptions(all_projects=True)
APPLY = ApplyOptions(project="p")


class Log:
    """The storage service's log, as a queue of what it is to say."""

    def __init__(self) -> None:
        self.says: asyncio.Queue[RowBatch | Exception] = asyncio.Queue()
        self.asked: list[int] = []

    async def changes(self, organization: str, types: Sequence[str], since: int) -> AsyncIterator[RowBatch]:
        self.asked.append(since)
        while True:
            said = await self.says.get()
            if isinstance(said, Exception):
                raise said
            yield said

    def changed(self, name: str, revision: int, type_: str = TYPE) -> None:
        row = Row(key=RowKey("default", type_, "p", name), revision=revision)
        self.says.put_nowait(RowBatch(revision=revision, changes=(RowChange(op=Op.PUT, row=row, before=None),)))


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.service = Service()
        self.caches = Caches()
        self.cached = Cached(self.service, TYPE, self.caches)
        self.log = Log()
        self.heard: list[tuple[int, int | None]] = []
        self.follower = Follower(self.log, "default", self.caches, self._heard, clock=self.clock)  # type: ignore[arg-type]

    def _heard(self, revision: int, changes: tuple[Change, ...] | None) -> None:
        self.heard.append((revision, None if changes is None else len(changes)))

    async def values(self) -> tuple[object, object, object]:
        got = (await self.cached.get("a", GET))["spec"]["v"]
        here, everywhere = await self.cached.list(LIST), await self.cached.list(EVERYWHERE)
        return got, here.items[0]["spec"]["v"], everywhere.items[0]["spec"]["v"]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    following = asyncio.create_task(world.follower.run(0))
    yield world
    await ended(following)


@pytest.mark.row(37)
async def test_what_another_changed_in_the_service_is_seen(world: World) -> None:
    await world.cached.apply(document("a", "old"), APPLY)
    assert await world.values() == ("old",) * 3
    world.service.put(("p", "a"), document("a", "new"))
    assert await world.values() == ("old",) * 3
    world.log.changed("a", world.service.revision)
    await world.clock.settle()
    assert await world.values() == ("new",) * 3


@pytest.mark.row(37)
async def test_a_change_clears_the_groups_of_its_type_and_no_other(world: World) -> None:
    addons = Service()
    others = Cached(addons, "addons.infra", world.caches)
    for service, cached in ((world.service, world.cached), (addons, others)):
        service.put(("p", "a"), document("a"))
        await cached.get("a", GET)
        await cached.list(LIST)
    assert (world.service.gets, world.service.lists, addons.gets, addons.lists) == (1, 1, 1, 1)
    world.log.changed("a", 2, "addons.infra")
    world.log.changed("a", 3, "workloads.apps")  # nobody here keeps those
    await world.clock.settle()
    for cached in (world.cached, others):
        await cached.get("a", GET)
        await cached.list(LIST)
    assert (world.service.gets, world.service.lists, addons.gets, addons.lists) == (1, 1, 2, 2)
    with pytest.raises(ValueError, match="already"):
        Cached(addons, "addons.infra", world.caches)


@pytest.mark.row(37)
async def test_our_own_writes_clear_nothing_when_they_come_back_in_the_log(world: World) -> None:
    await world.cached.apply(document("a"), APPLY)
    await world.values()
    world.log.changed("a", 1)
    await world.clock.settle()
    await world.values()
    assert (world.service.gets, world.service.lists) == (1, 2)


@pytest.mark.row(37)
async def test_an_older_change_that_comes_late_clears_what_was_read_before_it(world: World) -> None:
    await world.cached.apply(document("a", "old"), APPLY)
    await world.values()
    world.service.put(("p", "a"), document("a", "new"))  # revision 2, by another
    await world.cached.apply(document("b"), APPLY)  # revision 3, ours, told first
    world.log.changed("a", 2)
    await world.clock.settle()
    assert await world.values() == ("new",) * 3


@pytest.mark.row(37)
async def test_a_gap_in_the_log_clears_the_groups(world: World) -> None:
    await world.cached.apply(document("a", "old"), APPLY)
    await world.values()
    world.service.put(("p", "a"), document("a", "new"))
    world.log.says.put_nowait(Gone(1, 9))
    await world.clock.settle()
    assert await world.values() == ("new",) * 3
    assert world.log.asked == [0, 9]
    assert world.heard == [(9, None)]


@pytest.mark.row(37)
async def test_a_load_under_way_at_a_gap_is_not_kept(world: World) -> None:
    await world.cached.apply(document("a", "old"), APPLY)
    at, go = asyncio.Event(), asyncio.Event()

    async def pause(where: str) -> None:
        if where == "get":
            at.set()
            await go.wait()

    world.service.pause = pause
    slow = asyncio.create_task(world.cached.get("a", GET))
    await at.wait()
    world.service.put(("p", "a"), document("a", "new"))
    world.log.says.put_nowait(Gone(1, 9))
    await world.clock.settle()
    go.set()
    await slow
    assert (await world.cached.get("a", GET))["spec"]["v"] == "new"


@pytest.mark.row(37)
async def test_a_log_that_cannot_be_read_for_a_while_goes_on_where_it_was(world: World) -> None:
    for number, error in enumerate((StorageUnavailable("away"), OSError("cut"), StoreError("odd")), 1):
        world.log.changed("x", number)
        world.log.says.put_nowait(error)
        await world.clock.settle()
        await world.clock.advance(1)
    assert world.log.asked == [0, 1, 2, 3]
    assert world.heard == [(1, 1), (2, 1), (3, 1)]
