"""One writer of a resource at a time, and a dead one not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trimtab.hub.holding import LEASE, Holds
from trimtab.hub.storage.contract import Row, RowKey, RowWrite
from trimtab.hub.storage.sqlite import SqliteStorage
from trimtab.testing.clock import FakeClock

KEY = RowKey("default", "racks.example.com", "", "r1")


class Quick(FakeClock):
    """Time passes while someone sleeps, and only then."""

    async def sleep(self, seconds: float) -> None:
        self.jump(seconds)
        await asyncio.sleep(0)


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[SqliteStorage]:
    made = SqliteStorage(tmp_path / "hub.db")
    await made.ready()
    await made.add_organization("default")
    try:
        yield made
    finally:
        await made.close()


async def test_a_resource_is_taken_until_it_is_released(storage: SqliteStorage) -> None:
    holds = Holds(storage, Quick())
    assert not await holds.taken(KEY)
    intent = await holds.take(KEY)
    assert await holds.taken(KEY)
    await holds.release(intent)
    assert not await holds.taken(KEY)


async def test_others_wait_for_a_writer_but_for_a_dead_one_only_until_its_lease_ends(storage: SqliteStorage) -> None:
    clock = Quick()
    holds = Holds(storage, clock)
    dead = await holds.take(KEY)
    began = clock.now()
    mine = await holds.take(KEY)
    waited = (clock.now() - began).total_seconds()
    assert LEASE <= waited < LEASE + 1
    assert mine.body["by"] != dead.body["by"]
    await holds.release(dead)  # it was not dead, only slow
    assert await holds.taken(KEY), "who came too late takes nobody else's hold away"


async def test_a_hold_ends_by_itself(storage: SqliteStorage) -> None:
    clock = Quick()
    holds = Holds(storage, clock)
    await holds.take(KEY)
    clock.jump(LEASE + 1)
    assert not await holds.taken(KEY)


async def test_of_two_who_take_at_once_one_waits(storage: SqliteStorage) -> None:
    holds = Holds(storage, Quick())
    order: list[str] = []

    async def write(name: str) -> None:
        intent = await holds.take(KEY)
        order.append(name)
        await storage.commit(RowWrite(row=Row(key=KEY._replace(name=name)), expect=0))
        order.append(name)
        await holds.release(intent)

    await asyncio.gather(write("a"), write("b"))
    assert order in (["a", "a", "b", "b"], ["b", "b", "a", "a"])
