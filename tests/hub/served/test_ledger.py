"""Kinds whose data are in a service that knows neither Kubernetes nor us."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.hub.served.conftest import Home
from trimtab.client.protocol import EventType, Named, Query, Ref
from trimtab.hub import ledger
from trimtab.hub.compose import Hub
from trimtab.hub.contract import (
    ApplyOptions,
    DeleteOptions,
    Down,
    GetOptions,
    HubList,
    ListOptions,
    Missing,
    Refused,
    Stale,
    StatusOptions,
)
from trimtab.hub.storage.contract import PROJECTS, Row, RowKey, RowWrite, StorageUnavailable
from trimtab.hub.storage.sqlite import SqliteStorage
from trimtab.model.errors import StatusError
from trimtab.model.hub import HubKind, HubResource
from trimtab.model.resource import Spec
from trimtab.server.core import Server
from trimtab.store.contract import Op
from trimtab.store.memory import MemoryStore

RACKS = "racks.example.com/v1"
RACK = Named(RACKS, "Rack")


class RackSpec(Spec):
    units: int = 42
    room: str = ""


class Rack(HubResource, group="racks.example.com", version="v1", plural="racks"):
    spec: RackSpec = RackSpec()


class Service:
    """A service of somebody else's: rows by number, told apart by project and name, with a feed of what changed."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], dict[str, Any]] = {}
        self.feed: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.down = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.applies = 0
        self.begun = asyncio.Event()

    def change(self, name: str, **row: Any) -> None:
        """As one of its other users does."""
        self.rows["default", name] = row
        self.feed.put_nowait(("default", name))

    def remove(self, name: str) -> None:
        del self.rows["default", name]
        self.feed.put_nowait(("default", name))

    def _shown(self, key: tuple[str, str]) -> dict[str, Any]:
        return {"metadata": {"project": key[0], "name": key[1]}, "spec": dict(self.rows[key])}

    async def get(self, name: str, options: GetOptions) -> dict[str, Any]:
        if self.down:
            raise Down("the rack service does not answer")
        if (options.project, name) not in self.rows:
            raise Missing(f"no rack {name}")
        return self._shown((options.project, name))

    async def list(self, options: ListOptions) -> HubList:
        if self.down:
            raise Down("the rack service does not answer")
        keys = [key for key in sorted(self.rows) if options.all_projects or key[0] == options.project]
        return HubList(items=[self._shown(key) for key in keys])

    async def apply(self, hub: dict[str, Any], options: ApplyOptions) -> dict[str, Any]:
        assert "uid" not in hub["metadata"], "a service gets no envelope"
        self.applies += 1
        self.begun.set()
        await self.gate.wait()
        self.rows[options.project, hub["metadata"]["name"]] = dict(hub["spec"])
        return self._shown((options.project, hub["metadata"]["name"]))

    async def delete(self, name: str, options: DeleteOptions) -> None:
        self.begun.set()
        await self.gate.wait()
        if self.rows.pop((options.project, name), None) is None:
            raise Missing(f"no rack {name}")

    async def status(self, name: str, options: StatusOptions) -> dict[str, Any]:
        return {}

    async def notifications(self) -> AsyncIterator[tuple[str, str]]:
        while True:
            yield await self.feed.get()


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
async def racks(tmp_path: Path, service: Service) -> AsyncIterator[Home]:
    server = Server(MemoryStore())
    await server.start()
    kinds = (HubKind(cls=Rack, accessor=lambda: service),)
    hub = Hub(server, kinds, SqliteStorage(tmp_path / "hub.db"))
    try:
        await hub.start()
        yield Home(server, hub)
    finally:
        await hub.stop()
        await server.stop()


def rack(name: str = "r1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": RACKS, "kind": "Rack", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


@pytest.mark.row(18)
@pytest.mark.row(20)
async def test_a_service_of_ones_own_is_read_and_written_as_a_kind(racks: Home, service: Service) -> None:
    made = await racks.apply(
        {**rack(units=10), "metadata": {"name": "r1", "namespace": "default", "labels": {"a": "b"}}}
    )
    assert service.rows == {("default", "r1"): {"units": 10, "room": ""}}
    read = (await racks.client.get(RACK, "r1", "default")).raw
    assert read == made
    assert read["metadata"]["labels"] == {"a": "b"}, "what the service cannot keep is kept beside it"
    assert read["metadata"]["generation"] == 1
    await racks.client.delete(Ref(RACK, "r1", "default"))
    assert service.rows == {}


async def test_a_change_made_elsewhere_is_an_event(racks: Home, service: Service) -> None:
    listing = await racks.client.list(RACK)
    watch = racks.client.watch(RACK, Query(), listing.revision)
    told: list[tuple[EventType, Any]] = []

    async def seen(count: int) -> None:
        while len(told) < count:
            event = await anext(watch)
            told.append((event.type, event.object.raw["spec"].get("units")))

    service.change("r9", units=1)
    await seen(1)
    service.change("r9", units=2)
    await seen(2)
    service.remove("r9")
    await seen(3)
    await watch.aclose()
    assert told == [(EventType.ADDED, 1), (EventType.MODIFIED, 2), (EventType.DELETED, 2)]


async def test_a_change_made_elsewhere_is_a_conflict_for_who_did_not_see_it(racks: Home, service: Service) -> None:
    made = await racks.client.create(_object(rack(units=10)))
    service.rows["default", "r1"] = {"units": 11, "room": "b"}
    changed = _object({**made.raw, "spec": {**made.raw["spec"], "units": 12}})
    with pytest.raises(StatusError) as refusal:
        await racks.client.patch(made, changed)
    assert refusal.value.code == 409
    assert service.rows["default", "r1"]["units"] == 11


async def test_of_two_writers_one_never_reaches_the_service(racks: Home, service: Service) -> None:
    made = await racks.client.create(_object(rack(units=10)))
    service.applies = 0
    service.begun.clear()
    service.gate.clear()
    writes = [
        asyncio.create_task(racks.client.patch(made, _object({**made.raw, "spec": {**made.raw["spec"], "units": n}})))
        for n in (1, 2)
    ]
    await service.begun.wait()
    service.gate.set()
    done = await asyncio.gather(*writes, return_exceptions=True)
    assert sorted(isinstance(result, StatusError) for result in done) == [False, True]
    assert service.applies == 1


async def test_readers_see_the_state_before_a_write_until_it_is_acknowledged(racks: Home, service: Service) -> None:
    made = await racks.apply(rack(units=10))
    service.begun.clear()
    service.gate.clear()
    write = asyncio.create_task(racks.apply(rack(units=20)))
    await service.begun.wait()
    assert (await racks.client.get(RACK, "r1", "default")).raw == made
    service.gate.set()
    assert (await write)["spec"]["units"] == 20
    assert (await racks.client.get(RACK, "r1", "default")).raw["spec"]["units"] == 20


async def test_a_service_that_is_down_is_told_and_nothing_is_taken_for_deleted(racks: Home, service: Service) -> None:
    made = await racks.apply(rack(units=10))
    service.down = True
    for ask in (racks.client.get(RACK, "r1", "default"), racks.client.list(RACK)):
        with pytest.raises(StatusError, match="the rack service does not answer") as refusal:
            await ask
        assert refusal.value.code == 503
    service.down = False
    assert (await racks.client.get(RACK, "r1", "default")).raw == made


async def test_a_project_made_anew_is_not_the_one_that_was(racks: Home, service: Service) -> None:
    """Its rows are new ones, and none of the old project's is touched."""
    inside = {**rack(units=10), "metadata": {"name": "r1", "namespace": "shop"}}
    uids = []
    for _ in range(2):
        await _shop(racks)
        uids.append((await racks.apply(inside))["metadata"]["uid"])
        await racks.client.delete(Ref(RACK, "r1", "shop"))
        row = await racks.hub.storage.get(RowKey("default", "projects.hub", "", "shop"))
        assert row is not None
        await racks.hub.storage.commit(RowWrite(row=row, op=Op.DELETE, expect=row.revision))
    assert uids[0] != uids[1]


async def _shop(racks: Home) -> None:
    row = Row(key=RowKey("default", "projects.hub", "", "shop"), body={}, envelope={})
    await racks.hub.storage.commit(RowWrite(row=row, expect=0))
    await racks.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})


async def test_what_a_service_has_for_projects_that_are_none_of_ours_is_left_alone(
    racks: Home, service: Service
) -> None:
    await racks.apply(rack(units=10))
    service.rows["nobody", "r7"] = {"units": 7}
    assert [item.name for item in (await racks.client.list(RACK)).items] == ["r1"]
    await racks.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nobody"}})
    assert not (await racks.client.list(RACK, Query(namespace="nobody"))).items
    with pytest.raises(StatusError) as refusal:
        await racks.client.get(RACK, "r7", "nobody")
    assert refusal.value.code == 404
    with pytest.raises(StatusError, match='there is no project "nobody"') as refusal:
        await racks.apply({**rack(), "metadata": {"name": "r7", "namespace": "nobody"}})
    assert refusal.value.code == 422


async def test_a_storage_service_that_is_down_is_told(
    racks: Home, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await racks.apply(rack(units=10))

    async def down(*_: Any) -> Any:
        raise StorageUnavailable("the database is away")

    monkeypatch.setattr(racks.hub.storage, "get", down)
    with pytest.raises(StatusError, match="the database is away") as refusal:
        await racks.client.get(RACK, "r1", "default")
    assert refusal.value.code == 503


async def test_a_list_while_a_resource_is_being_created_is_a_list_without_it(racks: Home, service: Service) -> None:
    await racks.apply(rack(units=10))
    service.begun.clear()
    service.gate.clear()
    write = asyncio.create_task(racks.apply(rack("r2", units=20)))
    await service.begun.wait()
    service.rows["default", "r2"] = {"units": 20, "room": ""}  # it is there, and its writer has no answer yet
    assert [item.name for item in (await racks.client.list(RACK)).items] == ["r1"]
    service.gate.set()
    await write
    assert [item.name for item in (await racks.client.list(RACK)).items] == ["r1", "r2"]


async def test_a_list_that_is_slow_undoes_no_write_made_meanwhile(racks: Home, service: Service) -> None:
    """The service is asked page by page, and a write that is begun and ended between two pages is newer than the first."""
    made = await racks.apply(rack(units=10))
    since = (await racks.client.list(RACK)).revision
    asked, go = asyncio.Event(), asyncio.Event()
    listed = service.list

    async def slow(options: ListOptions) -> HubList:
        page = await listed(options)
        asked.set()
        await go.wait()
        return page

    service.list = slow  # type: ignore[method-assign]
    listing = asyncio.create_task(racks.client.list(RACK))
    await asked.wait()
    changed = await racks.apply(rack(units=20))
    created = await racks.apply({**rack("r2"), "metadata": {**rack("r2")["metadata"], "labels": {"a": "b"}}})
    go.set()
    assert [item.raw for item in (await listing).items] == [changed, created]
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]
    watch = racks.client.watch(RACK, Query(), since)
    told = [(event.type, event.object.raw["spec"]["units"]) for event in [await anext(watch), await anext(watch)]]
    assert told == [(EventType.MODIFIED, 20), (EventType.ADDED, 42)]
    await watch.aclose()
    for name, one in (("r1", changed), ("r2", created)):
        assert (await racks.client.get(RACK, name, "default")).raw == one


@pytest.fixture
def held(racks: Home, monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """The first record of a reader waits: that it is begun, and that it may go on."""
    begun, go = asyncio.Event(), asyncio.Event()
    commit = racks.hub.storage.commit

    async def slow(write: RowWrite) -> Row:
        if write.row.key.type.startswith("racks") and not begun.is_set():
            begun.set()
            await go.wait()
        return await commit(write)

    monkeypatch.setattr(racks.hub.storage, "commit", slow)
    return begun, go


async def _reader_in_the_midst(racks: Home, service: Service, held: tuple[asyncio.Event, asyncio.Event]) -> Any:
    """Somebody reads what was changed elsewhere, and is about to record it. The service lets no writer go on."""
    begun, go = held
    go.set()
    await racks.apply(rack(units=1))
    begun.clear()
    go.clear()
    service.rows["default", "r1"] = {"units": 2, "room": ""}
    reader = asyncio.create_task(racks.client.get(RACK, "r1", "default"))
    await begun.wait()
    service.begun.clear()
    service.gate.clear()
    return reader


async def _write_meanwhile(service: Service, reader: Any, go: asyncio.Event, write: Coroutine[Any, Any, Any]) -> Any:
    """What comes of a write that begins before the reader has ended; it may be that it does not come to the service first."""
    writer = asyncio.create_task(write)
    await asyncio.wait({asyncio.create_task(service.begun.wait())}, timeout=0.3)
    go.set()
    await reader
    service.gate.set()
    return (await asyncio.gather(writer, return_exceptions=True))[0]


async def test_a_writer_whose_expectation_a_reader_undoes_has_not_reached_the_service(
    racks: Home, service: Service, held: tuple[asyncio.Event, asyncio.Event]
) -> None:
    reader = await _reader_in_the_midst(racks, service, held)
    [own] = racks.hub._ledgers
    where = (await racks.hub.storage.ids("default", PROJECTS, None, ["default"]))["default"]
    row = await racks.hub.storage.get(RowKey("default", "racks.racks.example.com", where, "r1"))
    assert row is not None
    options = ApplyOptions(project="default", expect=row.revision)
    outcome = await _write_meanwhile(service, reader, held[1], own.apply(rack(units=50), options))
    assert isinstance(outcome, Stale)
    assert service.rows["default", "r1"]["units"] == 2


async def test_a_reader_brings_nothing_back_that_is_deleted_meanwhile(
    racks: Home, service: Service, held: tuple[asyncio.Event, asyncio.Event]
) -> None:
    reader = await _reader_in_the_midst(racks, service, held)
    [own] = racks.hub._ledgers
    gone = own.delete("r1", DeleteOptions(project="default"))
    assert await _write_meanwhile(service, reader, held[1], gone) is None
    assert service.rows == {}
    where = (await racks.hub.storage.ids("default", PROJECTS, None, ["default"]))["default"]
    assert await racks.hub.storage.get(RowKey("default", "racks.racks.example.com", where, "r1")) is None


async def test_nothing_is_made_in_the_service_for_a_project_that_is_being_deleted(
    racks: Home, service: Service
) -> None:
    await _shop(racks)
    inside = {**rack(units=10), "metadata": {"name": "r1", "namespace": "shop"}}
    await racks.apply(inside)
    row = Row(key=RowKey("default", PROJECTS, "", "shop"), envelope={"deletionTimestamp": "2026-11-18T00:00:00Z"})
    await racks.hub.storage.commit(RowWrite(row=row))
    service.rows["shop", "r2"] = {"units": 2, "room": ""}  # others do as they like
    for tried in (True, False):
        with pytest.raises(StatusError, match="the project shop is being deleted: nothing new is made in it"):
            await racks.apply({**inside, "metadata": {"name": "r3", "namespace": "shop"}}, dry_run=tried)
    assert ("shop", "r3") not in service.rows
    assert [item.name for item in (await racks.client.list(RACK, Query(namespace="shop"))).items] == ["r1"]
    assert (await racks.apply({**inside, "spec": {"units": 11}}))["spec"]["units"] == 11
    await racks.client.delete(Ref(RACK, "r1", "shop"))
    assert ("shop", "r1") not in service.rows


async def test_the_accessor_lists_by_labels(racks: Home) -> None:
    for name, color in (("r1", "red"), ("r2", "blue"), ("r3", "red")):
        metadata = {**rack(name)["metadata"], "labels": {"color": color}}
        await racks.apply({**rack(name), "metadata": metadata})
    [ledger_of_racks] = racks.hub._ledgers
    for labels, names in (("color=red", ["r1", "r3"]), ("color!=red", ["r2"]), ("color in (red, blue),color", None)):
        found = await ledger_of_racks.list(ListOptions(project="default", labels=labels))
        assert [hub["metadata"]["name"] for hub in found.items] == (names or ["r1", "r2", "r3"])


async def test_a_write_goes_on_when_its_caller_leaves(racks: Home, service: Service) -> None:
    service.gate.clear()
    labelled = {**rack(units=10), "metadata": {**rack()["metadata"], "labels": {"a": "b"}}}
    write = asyncio.create_task(racks.apply(labelled))
    await service.begun.wait()
    write.cancel()
    await asyncio.gather(write, return_exceptions=True)
    service.gate.set()
    async with asyncio.timeout(10):
        made = (await racks.client.apply(_object(rack(room="b")), manager="another")).raw
    assert made["metadata"]["labels"] == {"a": "b"}, "it is the same one, with all that its maker said"
    assert [entry["manager"] for entry in made["metadata"]["managedFields"]] == ["another", "test"]


async def test_who_leaves_before_a_write_begins_keeps_nobody_away(
    racks: Home, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    taking = asyncio.Event()
    commit = racks.hub.storage.commit

    async def told(write: RowWrite) -> Row:
        taking.set()
        return await commit(write)

    monkeypatch.setattr(racks.hub.storage, "commit", told)
    write = asyncio.create_task(racks.apply(rack(units=10)))
    await taking.wait()
    await asyncio.sleep(0)
    write.cancel()
    await asyncio.gather(write, return_exceptions=True)
    async with asyncio.timeout(10):  # and not a lease
        await racks.apply(rack(units=11))


async def test_what_is_made_and_deleted_while_someone_reads_does_not_come_back(racks: Home, service: Service) -> None:
    read = service.get

    async def slow(name: str, options: GetOptions) -> dict[str, Any]:
        service.get = read  # type: ignore[method-assign]
        await racks.apply(rack(units=10))
        found = await read(name, options)
        await racks.client.delete(Ref(RACK, "r1", "default"))
        return found

    service.get = slow  # type: ignore[method-assign]
    with pytest.raises(StatusError) as refusal:
        await racks.client.get(RACK, "r1", "default")
    assert refusal.value.code == 404
    assert not await racks.hub.storage.ids("default", "racks.racks.example.com", await _default(racks), ["r1"])


async def test_a_service_that_does_not_answer_a_write_holds_nobody_for_ever(
    racks: Home, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "WRITE", 0.05)
    await racks.apply(rack(units=10))
    service.gate.clear()
    with pytest.raises(StatusError, match="racks did not answer within") as refusal:
        await racks.apply(rack(units=11))
    assert refusal.value.code == 503
    service.gate.set()
    async with asyncio.timeout(10):
        assert (await racks.apply(rack(units=12)))["spec"]["units"] == 12


async def test_a_deletion_that_is_only_tried_deletes_nothing(racks: Home, service: Service) -> None:
    await racks.apply(rack(units=10))
    accessor = racks.hub.registry.accessor("racks.racks.example.com").inner
    await accessor.delete("r1", DeleteOptions(project="default", dry_run=True))
    assert service.rows == {("default", "r1"): {"units": 10, "room": ""}}
    with pytest.raises(Missing):
        await accessor.delete("r2", DeleteOptions(project="default", dry_run=True))


async def test_what_a_writer_takes_away_for_a_moment_is_not_gone(racks: Home, service: Service) -> None:
    made = await racks.apply(rack(units=10))
    service.begun.clear()
    service.gate.clear()
    write = asyncio.create_task(racks.apply(rack(units=20)))
    await service.begun.wait()
    del service.rows["default", "r1"]  # some services replace so
    assert (await racks.client.get(RACK, "r1", "default")).raw == made
    assert [item.raw for item in (await racks.client.list(RACK)).items] == [made]
    service.gate.set()
    assert (await write)["metadata"]["uid"] == made["metadata"]["uid"]


async def test_looking_changes_nothing(racks: Home, service: Service) -> None:
    await racks.apply(rack(units=10))
    before = await racks.hub.storage.horizon()
    for _ in range(3):
        await racks.client.get(RACK, "r1", "default")
        await racks.client.list(RACK)
    assert await racks.hub.storage.horizon() == before


async def test_looking_at_one_touches_no_other(racks: Home, service: Service) -> None:
    for name in ("r1", "r2", "r3"):
        await racks.apply(rack(name, units=10))
    service.rows["default", "r3"]["units"] = 11
    before = await racks.hub.storage.horizon()
    listed = await racks.client.list(RACK, Query(namespace="default", fields="metadata.name=r1"))
    assert [item.name for item in listed.items] == ["r1"]
    assert await racks.hub.storage.horizon() == before


async def test_who_comes_when_the_project_has_just_gone_is_told_so(racks: Home, service: Service) -> None:
    """It goes after it was looked up, and before the resource is held."""
    [of_racks] = racks.hub._ledgers
    holds = of_racks._holds
    take, key = holds.take, RowKey("default", PROJECTS, "", "shop")

    async def late(held: RowKey) -> Row:
        await racks.hub.storage.commit(RowWrite(row=Row(key=key), op=Op.DELETE))
        return await take(held)

    holds.take = late  # type: ignore[method-assign]
    asked = ApplyOptions(project="shop")
    for act, refusal in (
        (lambda: of_racks.get("r1", GetOptions(project="shop")), Missing),
        (lambda: of_racks.apply({**rack(), "metadata": {"name": "r1"}}, asked), Refused),
        (lambda: of_racks.delete("r1", DeleteOptions(project="shop")), Missing),
    ):
        await racks.hub.storage.commit(RowWrite(row=Row(key=key)))
        service.rows["shop", "r1"] = {"units": 3}
        with pytest.raises(refusal):
            await act()


async def test_what_is_gone_in_the_service_is_gone_here_and_its_generation_counts_changes(
    racks: Home, service: Service
) -> None:
    await racks.apply(rack(units=10))
    service.rows["default", "r1"]["units"] = 11
    changed = (await racks.client.get(RACK, "r1", "default")).raw
    assert (changed["spec"]["units"], changed["metadata"]["generation"]) == (11, 2)
    del service.rows["default", "r1"]
    with pytest.raises(StatusError):
        await racks.client.get(RACK, "r1", "default")
    key = await racks.hub.storage.ids("default", "racks.racks.example.com", await _default(racks), ["r1"])
    assert not key


async def test_a_deletion_that_someone_else_did_first_is_done(racks: Home, service: Service) -> None:
    await racks.apply(rack(units=10))
    accessor = racks.hub.registry.accessor("racks.racks.example.com").inner
    del service.rows["default", "r1"]
    await accessor.delete("r1", DeleteOptions(project="default"))


async def test_a_watch_of_one_project_tells_of_no_other(racks: Home, service: Service) -> None:
    await _shop(racks)
    since = (await racks.client.list(RACK)).revision
    await racks.apply({**rack(units=1), "metadata": {"name": "r1", "namespace": "shop"}})
    await racks.apply(rack(units=2))
    watch = racks.client.watch(RACK, Query(namespace="default"), since)
    assert (await anext(watch)).object.raw["spec"]["units"] == 2
    await watch.aclose()


@pytest.mark.row(19)
async def test_labels_that_the_service_knows_nothing_of_select(racks: Home, service: Service) -> None:
    for name in ("r1", "r2"):
        await racks.apply({**rack(name), "metadata": {"name": name, "namespace": "default", "labels": {"is": name}}})
    listed = await racks.client.list(RACK, Query(labels="is=r2"))
    assert [item.name for item in listed.items] == ["r2"]


async def _default(racks: Home) -> str:
    return (await racks.hub.storage.ids("default", "projects.hub", None, ["default"]))["default"]


def _object(document: dict[str, Any]) -> Any:
    from trimtab.model.scheme import Untyped

    return Untyped(document)
