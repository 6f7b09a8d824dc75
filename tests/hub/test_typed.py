"""A hub kind over a service of one's own: the class, a convertor, four calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trimtab.hub.contract import (
    ORGANIZATION,
    ApplyOptions,
    DeleteOptions,
    GetOptions,
    ListOptions,
    Missing,
    Refused,
    StatusOptions,
)
from trimtab.hub.ledger import Ledger
from trimtab.hub.storage.contract import PROJECTS, Row, RowKey, RowWrite
from trimtab.hub.storage.sqlite import SqliteStorage
from trimtab.hub.typed import Service, Typed
from trimtab.model.clock import SystemClock
from trimtab.model.hub import HubMeta, HubResource
from trimtab.model.resource import Spec
from trimtab.model.scheme import Scheme


class TicketSpec(Spec):
    title: str
    weight: int = 3


class Ticket(HubResource, group="desk", version="v3"):
    """A wish that somebody has."""

    spec: TicketSpec


class Record(msgspec.Struct):
    """As the desk keeps it."""

    board: str
    key: str
    summary: str
    points: int


class Between:
    def convert_to(self, spoke: Record) -> Ticket:
        spec = TicketSpec(title=spoke.summary, weight=spoke.points)
        return Ticket(metadata=HubMeta(name=spoke.key, project=spoke.board), spec=spec)

    def convert_from(self, hub: Ticket) -> Record:
        return Record(str(hub.metadata.project), hub.name, hub.spec.title, hub.spec.weight)


class Desk(Service[Ticket, Record]):
    convertor = Between()

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], Record] = {}

    async def read(self, project: str, name: str) -> Record | None:
        return self.records.get((project, name))

    async def read_all(self, project: str) -> Iterable[Record]:
        return [record for (board, _), record in self.records.items() if project in ("", board)]

    async def write(self, project: str, name: str, spoke: Record) -> Record:
        self.records[project, name] = spoke
        return spoke

    async def remove(self, project: str, name: str) -> bool:
        return self.records.pop((project, name), None) is not None


def ticket(name: str = "a", project: str = "red", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "project": project}, "spec": {"title": "t", **spec}}


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def accessor(desk: Desk) -> Typed[Ticket]:
    return Typed(desk, Ticket)


@pytest.mark.row(14)
@pytest.mark.row(18)
async def test_documents_become_records_and_come_back(accessor: Typed[Ticket], desk: Desk) -> None:
    made = await accessor.apply(ticket(weight=3), ApplyOptions(project="red"))
    assert desk.records["red", "a"] == Record("red", "a", "t", 3)
    assert made == {
        "apiVersion": "desk.trimtab.dev/v3",
        "kind": "Ticket",
        "metadata": {"name": "a", "project": "red"},
        "spec": {"title": "t", "weight": 3},
    }
    assert await accessor.get("a", GetOptions(project="red")) == made
    assert await accessor.status("a", StatusOptions(project="red")) == {}
    await accessor.delete("a", DeleteOptions(project="red"))
    with pytest.raises(Missing):
        await accessor.get("a", GetOptions(project="red"))


@pytest.mark.row(18)
async def test_a_delete_may_be_sent_again_and_is_told_that_there_was_nothing(accessor: Typed[Ticket]) -> None:
    for name in "ab":
        await accessor.apply(ticket(name), ApplyOptions(project="red"))
    await accessor.delete("a", DeleteOptions(project="red"))
    with pytest.raises(Missing):
        await accessor.delete("a", DeleteOptions(project="red"))
    assert [hub["metadata"]["name"] for hub in (await accessor.list(ListOptions(project="red"))).items] == ["b"]


async def test_a_dry_run_does_not_reach_the_service(accessor: Typed[Ticket], desk: Desk) -> None:
    await accessor.apply(ticket(), ApplyOptions(project="red", dry_run=True))
    assert desk.records == {}
    with pytest.raises(Missing):
        await accessor.delete("a", DeleteOptions(project="red", dry_run=True))


async def test_lists_are_sorted_and_cut_here(accessor: Typed[Ticket]) -> None:
    for project, name in (("red", "b"), ("blue", "z"), ("red", "a")):
        await accessor.apply(ticket(name, project), ApplyOptions(project=project))
    first = await accessor.list(ListOptions(all_projects=True, limit=2))
    assert [hub["metadata"]["name"] for hub in first.items] == ["z", "a"]
    assert first.after == ("red", "a")
    rest = await accessor.list(ListOptions(all_projects=True, limit=2, after=first.after))
    assert ([hub["metadata"]["name"] for hub in rest.items], rest.after) == (["b"], None)
    assert [hub["metadata"]["name"] for hub in (await accessor.list(ListOptions(project="red", name="b"))).items] == [
        "b"
    ]


async def test_a_document_of_another_shape_is_refused_by_field(accessor: Typed[Ticket]) -> None:
    with pytest.raises(Refused, match=r"spec\.weight"):
        await accessor.apply(ticket(weight="heavy"), ApplyOptions(project="red"))


@pytest.fixture
async def ledger(accessor: Typed[Ticket], tmp_path: Path) -> AsyncIterator[Ledger]:
    storage = SqliteStorage(tmp_path / "hub.db")
    await storage.ready()
    if ORGANIZATION not in await storage.organizations():
        await storage.add_organization(ORGANIZATION)
    await storage.commit(RowWrite(row=Row(key=RowKey(ORGANIZATION, PROJECTS, "", "red"))))
    yield Ledger(accessor, storage, Scheme().kind_of(Ticket), "tickets.desk", SystemClock())
    await storage.close()


@pytest.mark.row(18)
async def test_behind_the_ledger_it_has_revisions_like_any_kind(ledger: Ledger, desk: Desk) -> None:
    made = await ledger.apply(ticket(), ApplyOptions(project="red", expect=0))
    assert int(made["metadata"]["resourceVersion"]) > 0
    desk.records["red", "a"].points = 8
    seen = await ledger.get("a", GetOptions(project="red"))
    assert seen["spec"]["weight"] == 8
    assert int(seen["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
