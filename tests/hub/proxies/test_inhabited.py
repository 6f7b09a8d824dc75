"""What a project that is being deleted tells of those in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.hub.served.conftest import HUB, KINDS, Home, addon, project
from tests.hub.served.test_ledger import RACK, Rack, Service, rack
from trimtab.client.protocol import Named, Ref
from trimtab.client.transport import Call
from trimtab.hub.compose import Hub
from trimtab.hub.holding import Holds
from trimtab.hub.storage.contract import PROJECTS, RowKey
from trimtab.hub.storage.sqlite import SqliteStorage
from trimtab.model.clock import SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.hub import HubKind
from trimtab.server.core import Server
from trimtab.store.memory import MemoryStore
from trimtab.testing.clock import FakeClock

PROJECT = Named(HUB, "Project")


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    server = Server(MemoryStore())
    await server.start()
    hub = Hub(server, (*KINDS, HubKind(cls=Rack, accessor=Service)), SqliteStorage(tmp_path / "hub.db"))
    try:
        await hub.start()
        yield Home(server, hub)
    finally:
        await hub.stop()
        await server.stop()


async def _going(home: Home, name: str) -> dict[str, Any]:
    made = project(name)
    made["metadata"]["finalizers"] = ["tests.trimtab.dev/hold"]
    return await home.apply(made)


async def _resources(home: Home, name: str) -> int | None:
    found = (await home.client.get(PROJECT, name)).raw
    count: int | None = (found.get("status") or {}).get("resources")
    return count


def _inside(document: dict[str, Any], name: str) -> dict[str, Any]:
    return {**document, "metadata": {**document["metadata"], "namespace": name}}


async def test_a_project_that_goes_tells_how_many_of_all_kinds_are_in_it(home: Home) -> None:
    for name in ("shop", "other"):
        await _going(home, name)
        await home.apply(_inside(rack(units=1), name))
    await home.apply(_inside(addon(), "shop"))
    assert await _resources(home, "shop") is None
    await home.client.delete(Ref(PROJECT, "shop"))
    assert await _resources(home, "shop") == 2
    await home.client.delete(Ref(RACK, "r1", "shop"))
    assert await _resources(home, "shop") == 1


async def test_what_is_told_is_not_stored(home: Home) -> None:
    await _going(home, "shop")
    await home.apply(_inside(rack(units=1), "shop"))
    await home.client.delete(Ref(PROJECT, "shop"))
    written = await home.apply({**project("shop"), "status": {"namespace": "shop"}}, subresource="status")
    assert written["status"] == {"namespace": "shop", "resources": 1}
    row = await home.hub.storage.get(RowKey("default", PROJECTS, "", "shop"))
    assert row is not None
    assert row.status == {"namespace": "shop"}


async def test_who_died_in_the_midst_of_a_write_does_not_hold_a_project(home: Home) -> None:
    """It had said that it would write, and never did; so there is nothing whose deletion would take that back."""
    await home.apply(project("shop"))
    where = (await home.hub.storage.ids("default", PROJECTS, None, ["shop"]))["shop"]
    key = RowKey("default", "racks.racks.example.com", where, "r1")
    dead = await Holds(home.hub.storage, FakeClock(datetime(2000, 1, 1, tzinfo=UTC))).take(key)
    busy = await Holds(home.hub.storage, SystemClock()).take(key._replace(name="r2"))
    with pytest.raises(StatusError, match="has resources"):
        await home.client.delete(Ref(PROJECT, "shop"))
    assert await home.hub.storage.get(dead.key) is None
    await Holds(home.hub.storage, SystemClock()).release(busy)
    await home.client.delete(Ref(PROJECT, "shop"))
    assert await home.hub.storage.get(RowKey("default", PROJECTS, "", "shop")) is None


async def test_a_rehearsed_deletion_of_a_project_says_what_the_real_one_would(home: Home) -> None:
    await home.apply(project("shop"))
    await home.apply(_inside(addon(), "shop"))
    path = "/apis/hub.trimtab.dev/v3/projects/shop"
    for query in ({"dryRun": "All"}, {}):
        with pytest.raises(StatusError, match="the project shop has resources: delete them first") as refusal:
            await home.client.transport.call(Call(method="DELETE", path=path, query=query))
        assert refusal.value.code == 409


async def test_what_is_being_written_in_a_project_that_goes_counts(home: Home) -> None:
    await _going(home, "shop")
    where = (await home.hub.storage.ids("default", PROJECTS, None, ["shop"]))["shop"]
    key = RowKey("default", "racks.racks.example.com", where, "r1")
    await home.client.delete(Ref(PROJECT, "shop"))
    await Holds(home.hub.storage, FakeClock(datetime(2000, 1, 1, tzinfo=UTC))).take(key._replace(name="dead"))
    assert await _resources(home, "shop") is None
    await Holds(home.hub.storage, SystemClock()).take(key)
    assert await _resources(home, "shop") == 1
