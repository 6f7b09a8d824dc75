"""Kinds that the storage service keeps, over a real SQLite file: through hydration and lineage as they are served."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub.kit import KEY, TYPES, Plan, plan
from trimtab.hub.contract import (
    ORGANIZATION,
    ApplyOptions,
    DeleteOptions,
    Down,
    GetOptions,
    HubError,
    ListOptions,
    Missing,
    Refused,
    Republished,
    Stale,
    StatusOptions,
    WatchOptions,
)
from trimtab.hub.proto.loading import load
from trimtab.hub.proxies.default import Default
from trimtab.hub.proxies.hydrate import Hydrate
from trimtab.hub.proxies.hydrating import ids_in
from trimtab.hub.proxies.lineage import Lineage
from trimtab.hub.proxies.names import Names
from trimtab.hub.proxies.version import Version
from trimtab.hub.proxies.view import View
from trimtab.hub.references import references_of
from trimtab.hub.scheme import HubScheme
from trimtab.hub.storage.contract import PROJECTS, Row, RowKey, RowWrite, Shared, Storage, StorageUnavailable
from trimtab.hub.storage.sqlite import SqliteStorage
from trimtab.hub.storage_accessor import StillUsed, StorageAccessor
from trimtab.model.clock import SystemClock
from trimtab.model.hub import HubResource, Stored
from trimtab.model.scheme import Scheme
from trimtab.store.contract import Op
from trimtab.systems.platform.convertors import StoredConvertor

KIND = Scheme().kind_of(Plan)
RED: dict[str, Any] = {"project": "red"}


class Place(HubResource, group="hub", version="v3", plural="projects", namespaced=False):
    """As projects are: without a project of its own."""

    spec: dict[str, Any] = {}  # noqa: RUF012 - msgspec copies it


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[Storage]:
    made = SqliteStorage(tmp_path / "hub.db", clock=SystemClock())
    await made.ready()
    if ORGANIZATION not in await made.organizations():
        await made.add_organization(ORGANIZATION)
    for name in ("red", "blue"):
        await made.commit(RowWrite(row=Row(key=RowKey(ORGANIZATION, PROJECTS, "", name)), expect=0))
    yield made
    await made.close()


@pytest.fixture
def accessor(storage: Storage) -> StorageAccessor:
    return StorageAccessor(storage, KIND, Plan, type_="plans.infra")


@pytest.fixture
def chain(accessor: StorageAccessor, storage: Storage) -> Any:
    hydrated = Hydrate(accessor, references_of(Plan, TYPES), Names(storage), kind="Plan")
    return Default(Version(Lineage(hydrated, KEY), "Plan"), KIND)


@pytest.mark.row(1)
@pytest.mark.row(5)
@pytest.mark.row(15)
async def test_a_resource_comes_back_whole_with_its_envelope(chain: Any) -> None:
    document = plan(spec={"replicas": 3, "parts": [{"name": "x"}]}, annotations={"note": "n"})
    document["metadata"] |= {"uid": "u-1", "generation": 4, "finalizers": ["a/b"], "description": "words"}
    document["metadata"]["labels"] = {"app": "web"}
    document["status"] = {"phase": "Ready"}
    made = await chain.apply(document, ApplyOptions(**RED, expect=0))
    assert int(made["metadata"].pop("resourceVersion")) > 0
    expected = {**document, "spec": {**made["spec"]}}
    assert made == expected
    assert made["spec"]["sharing"] == {"enabled": False}
    found = await chain.get("a", GetOptions(**RED))
    found["metadata"].pop("resourceVersion")
    assert found == made
    assert await chain.status("a", StatusOptions(**RED)) == {"phase": "Ready"}
    assert list(ids_in(found)) == []


async def test_writes_are_compared_and_swapped(chain: Any) -> None:
    first = await chain.apply(plan(), ApplyOptions(**RED, expect=0))
    at = int(first["metadata"]["resourceVersion"])
    with pytest.raises(Stale) as stale:
        await chain.apply(plan(), ApplyOptions(**RED, expect=0))
    assert stale.value.current is not None
    assert stale.value.current["metadata"]["project"] == "red"
    second = await chain.apply(plan(spec={"replicas": 2}), ApplyOptions(**RED, expect=at))
    with pytest.raises(Stale):
        await chain.delete("a", DeleteOptions(**RED, expect=at))
    await chain.delete("a", DeleteOptions(**RED, expect=int(second["metadata"]["resourceVersion"])))
    with pytest.raises(Missing):
        await chain.get("a", GetOptions(**RED))
    with pytest.raises(Missing):
        await chain.delete("a", DeleteOptions(**RED))


@pytest.mark.row(28)
async def test_a_published_version_never_changes_but_its_sharing_may(chain: Any) -> None:
    await chain.apply(plan(spec={"version": "v1", "replicas": 1}), ApplyOptions(**RED))
    for dry in (True, False):
        with pytest.raises(Republished) as refused:
            await chain.apply(plan(spec={"version": "v1", "replicas": 2}), ApplyOptions(**RED, dry_run=dry))
        assert refused.value.problems[0][0] == "spec.version"
    shared = {"enabled": True, "projects": [{"name": "blue"}]}
    again = await chain.apply(plan(spec={"version": "v1", "replicas": 1, "sharing": shared}), ApplyOptions(**RED))
    assert again["spec"]["sharing"] == shared
    await chain.apply(plan(spec={"version": "v2", "replicas": 2}), ApplyOptions(**RED))
    await chain.apply(plan(spec={"replicas": 7}), ApplyOptions(**RED))
    back = await chain.apply(plan(spec={"version": "v1", "replicas": 1}), ApplyOptions(**RED))
    assert back["spec"]["version"] == "v1"
    assert [each.version for each in await chain.published("a", GetOptions(**RED))] == ["v2", "v1"]
    for version, replicas in (("v1", 1), ("v2", 2), ("latest", 1)):
        assert (await chain.get("a", GetOptions(**RED, version=version)))["spec"]["replicas"] == replicas


@pytest.mark.row(28)
async def test_of_thousands_of_versions_only_the_one_that_is_asked_for_is_read(chain: Any) -> None:
    for number in range(4):
        await chain.apply(plan(spec={"version": f"v{number}", "replicas": number}), ApplyOptions(**RED))
    for version, found in (("v1", ["v1"]), ("latest", ["v3"]), ("none", []), ("", ["v0", "v1", "v2", "v3"])):
        snapshots = await chain.published("a", GetOptions(**RED, version=version))
        assert [snapshot.version for snapshot in snapshots] == found
    assert (await chain.get("a", GetOptions(**RED, version="v2")))["spec"]["replicas"] == 2
    with pytest.raises(Missing, match="it has v0, v1, v2, v3"):
        await chain.get("a", GetOptions(**RED, version="none"))


async def test_a_version_may_be_applied_again_after_what_it_names_was_made(chain: Any, storage: Storage) -> None:
    document = plan(spec={"version": "v1", "parts": [{"name": "later"}]})
    await chain.apply(document, ApplyOptions(**RED))
    project = (await storage.ids(ORGANIZATION, PROJECTS, None, ["red"]))["red"]
    await storage.commit(RowWrite(row=Row(key=RowKey(ORGANIZATION, "addons.infra", project, "later"))))
    again = await chain.apply(document, ApplyOptions(**RED))
    assert again["spec"]["parts"] == [{"name": "later", "enabled": True}]


async def test_lists_are_pages_of_one_revision_in_the_order_of_names(chain: Any) -> None:
    for project, name in (("red", "b"), ("blue", "z"), ("red", "a"), ("blue", "c")):
        await chain.apply(plan(name, project), ApplyOptions(project=project))
    found: list[tuple[str, str]] = []
    after, revision = None, 0
    while True:
        page = await chain.list(ListOptions(all_projects=True, limit=3, after=after, revision=revision))
        found += [(hub["metadata"]["project"], hub["metadata"]["name"]) for hub in page.items]
        await chain.apply(plan(f"new{len(found)}"), ApplyOptions(**RED))
        after, revision = page.after, page.revision
        if after is None:
            break
    assert found == [("blue", "c"), ("blue", "z"), ("red", "a"), ("red", "b")]


@pytest.mark.row(19)
async def test_selectors_are_asked_of_the_service_or_of_each(chain: Any) -> None:
    for name, tier in (("a", "web"), ("b", "db"), ("c", "web")):
        document = plan(name)
        document["metadata"]["labels"] = {"tier": tier}
        await chain.apply(document, ApplyOptions(**RED))

    async def names(**asked: Any) -> list[str]:
        return [hub["metadata"]["name"] for hub in (await chain.list(ListOptions(**RED, **asked))).items]

    assert await names(labels="tier=web") == ["a", "c"]
    assert await names(labels="tier notin (web)") == ["b"]
    assert await names(labels="tier=web", fields="metadata.name!=a") == ["c"]
    assert await names(name="b") == ["b"]
    assert await names(labels="tier!=db", limit=1) == ["a"]


async def test_a_rare_resource_is_found_in_few_pages(
    chain: Any, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in pages of as many as are still missing, which are thousands."""
    for project, count in (("blue", 10), ("red", 20)):
        for number in range(count):
            document = plan(f"p{number:02}", project)
            document["metadata"]["labels"] = {"tier": "web" if number % 9 else "db"}
            await chain.apply(document, ApplyOptions(project=project))
    asked: list[Any] = []
    listed = storage.list

    async def counted(query: Any) -> Any:
        asked.append(query)
        return await listed(query)

    monkeypatch.setattr(storage, "list", counted)
    page = await chain.list(ListOptions(all_projects=True, labels="tier notin (web)", limit=4))
    assert _places(page) == [("blue", "p00"), ("blue", "p09"), ("red", "p00"), ("red", "p09")]
    assert len(asked) == 2
    more = ListOptions(all_projects=True, labels="tier notin (web)", limit=4, after=page.after, revision=page.revision)
    page = await chain.list(more)
    assert (_places(page), page.after) == ([("red", "p18")], None)


def _places(page: Any) -> list[tuple[str, str]]:
    return [(hub["metadata"]["project"], hub["metadata"]["name"]) for hub in page.items]


async def test_a_watch_tells_every_change_in_order(chain: Any) -> None:
    newest, _ = await chain.horizon()
    watch = chain.watch(WatchOptions(), newest)
    await chain.apply(plan("a"), ApplyOptions(**RED))
    await chain.apply(plan("a", spec={"replicas": 2}), ApplyOptions(**RED))
    await chain.delete("a", DeleteOptions(**RED))
    seen: list[Any] = []
    while len(seen) < 3:
        seen += (await anext(watch)).changes
    await watch.aclose()
    assert [change.op for change in seen] == [Op.PUT, Op.PUT, Op.DELETE]
    assert [change.before is None for change in seen] == [True, False, False]
    assert seen[1].hub["spec"]["replicas"] == 2
    assert {change.hub["metadata"]["namespace"] for change in seen} == {"red"}
    revisions = [int(change.hub["metadata"]["resourceVersion"]) for change in seen]
    assert revisions == sorted(set(revisions))


class Counting(StoredConvertor[Plan]):
    made = 0

    def convert_to(self, spoke: Stored) -> Plan:
        self.made += 1
        return super().convert_to(spoke)


async def test_a_row_becomes_a_document_once_for_its_writer_and_all_who_watch(storage: Storage) -> None:
    convertor = Counting(Plan, versioned=True)
    accessor = StorageAccessor(storage, KIND, Plan, convertor, type_="plans.infra")
    chain = Lineage(View(Hydrate(accessor, references_of(Plan, TYPES), Names(storage), kind="Plan"), KIND), KEY)
    newest, _ = await chain.horizon()
    watches = [chain.watch(WatchOptions(include_lineage=asked), newest) for asked in (False, True, False)]
    document = plan("a", spec={"replicas": 3})
    document["metadata"]["annotations"] = {KEY: "git", "other": "kept"}
    applied = await chain.apply(document, ApplyOptions(**RED, include_lineage=True))
    told = []
    for watch in watches:
        [change] = (await anext(watch)).changes
        told.append(change.hub)
        await watch.aclose()  # type: ignore[attr-defined]
    assert convertor.made == 1
    assert told[1] == applied, "who takes lineage out takes it out of his own"
    assert told[0] == told[2]
    assert told[0]["metadata"]["annotations"] == {"other": "kept"}


async def test_a_dry_run_changes_nothing(chain: Any) -> None:
    would = await chain.apply(plan(), ApplyOptions(**RED, dry_run=True))
    assert would["metadata"]["namespace"] == "red"
    with pytest.raises(Missing):
        await chain.get("a", GetOptions(**RED))
    made = await chain.apply(plan(), ApplyOptions(**RED))
    await chain.delete("a", DeleteOptions(**RED, dry_run=True))
    with pytest.raises(Stale):
        await chain.delete("a", DeleteOptions(**RED, dry_run=True, expect=1))
    assert await chain.get("a", GetOptions(**RED)) == made


@pytest.mark.row(40)
@pytest.mark.row(45)
async def test_lineage_is_kept_in_the_row_and_seen_by_who_asks(chain: Any) -> None:
    await chain.apply(plan(annotations={KEY: "git"}), ApplyOptions(**RED, include_lineage=True))
    await chain.apply(plan(spec={"replicas": 2}, annotations={KEY: "forged"}), ApplyOptions(**RED))
    asked = await chain.get("a", GetOptions(**RED, include_lineage=True))
    assert asked["metadata"]["annotations"] == {KEY: "git"}
    assert "annotations" not in (await chain.get("a", GetOptions(**RED)))["metadata"]


async def test_a_project_with_anything_in_it_stays(chain: Any, storage: Storage) -> None:
    projects = StorageAccessor(storage, Scheme().kind_of(Place), Place, type_=PROJECTS)
    await chain.apply(plan(), ApplyOptions(**RED))
    with pytest.raises(StillUsed) as error:
        await projects.delete("red", DeleteOptions())
    assert error.value.code == 409
    await chain.delete("a", DeleteOptions(**RED))
    await projects.delete("red", DeleteOptions())
    with pytest.raises(Refused, match="there is no project"):
        await chain.apply(plan(), ApplyOptions(**RED))


@pytest.mark.row(15)
async def test_a_version_without_its_snapshot_is_an_error_of_the_service(
    accessor: StorageAccessor, storage: Storage
) -> None:
    project = (await storage.ids(ORGANIZATION, PROJECTS, None, ["red"]))["red"]
    key = RowKey(ORGANIZATION, "plans.infra", project, "half")
    await storage.commit(RowWrite(row=Row(key=key, body={"version": "v1"})))
    with pytest.raises(HubError, match="snapshot is missing"):
        await accessor.get("half", GetOptions(project=project))


async def test_a_service_that_is_down_is_told_as_such(accessor: StorageAccessor, storage: Storage) -> None:
    async def away(*_: Any) -> Any:
        raise StorageUnavailable("the database cannot be reached")

    storage.get = storage.commit = storage.list = away  # type: ignore[method-assign]
    for call in (
        accessor.get("a", GetOptions(**RED)),
        accessor.list(ListOptions(**RED)),
        accessor.apply(plan(), ApplyOptions(**RED)),
        accessor.delete("a", DeleteOptions(**RED)),
    ):
        with pytest.raises(Down, match="cannot be reached"):
            await call


@pytest.mark.row(6)
@pytest.mark.row(28)
async def test_a_kind_from_a_proto_file_is_kept_like_any_other(storage: Storage) -> None:
    text = """syntax = "proto3"; package a;
    message Note { common.Metadata metadata = 1; NoteSpec spec = 2; }
    message NoteSpec { string version = 1; string text = 2; common.Sharing sharing = 3; }"""
    scheme = HubScheme()
    scheme.add(load({"note.proto": text}, group="desk", version="v3", versioned=True).config)
    notes = scheme.by_plural("notes")
    accessor = StorageAccessor(storage, notes.kind, type_=notes.type, versioned=notes.versioned)
    chain = Default(Version(Hydrate(accessor, scheme.references(notes), Names(storage)), "Note"), notes.kind)
    document = {"metadata": {"name": "a"}, "spec": {"version": "v1", "text": "one"}}
    made = await chain.apply(document, ApplyOptions(**RED))
    assert made["spec"] == {"version": "v1", "text": "one", "sharing": {"enabled": False}}
    with pytest.raises(Republished):
        await chain.apply({**document, "spec": {"version": "v1", "text": "two"}}, ApplyOptions(**RED))


@pytest.mark.row(23)
async def test_a_shared_resource_is_named_in_the_projects_that_may_use_it(
    chain: Any, accessor: StorageAccessor, storage: Storage
) -> None:
    ids = await storage.ids(ORGANIZATION, PROJECTS, None, ["red", "blue"])
    shared = Row(
        key=RowKey(ORGANIZATION, "addons.infra", ids["blue"], "ingress"), shared=Shared(projects=(ids["red"],))
    )
    made = await storage.commit(RowWrite(row=shared))
    hidden = Row(key=RowKey(ORGANIZATION, "addons.infra", ids["blue"], "secret"))
    await storage.commit(RowWrite(row=hidden))
    shown = await chain.apply(plan(spec={"parts": [{"name": "ingress"}, {"name": "secret"}]}), ApplyOptions(**RED))
    below = await accessor.get("a", GetOptions(project=ids["red"]))
    assert [part["name"] for part in below["spec"]["parts"]] == [made.id, "name:secret"]
    assert [part["name"] for part in shown["spec"]["parts"]] == ["ingress", "secret"]
    await storage.commit(RowWrite(row=shared, op=Op.DELETE))
    again = await chain.get("a", GetOptions(**RED))
    assert [part["name"] for part in again["spec"]["parts"]] == ["ingress", "secret"], "what is gone keeps its name"


async def test_a_watch_of_one_name_or_project_tells_of_no_other(chain: Any) -> None:
    newest, _ = await chain.horizon()
    for name, project in (("a", "red"), ("b", "blue"), ("b", "red")):
        await chain.apply(plan(name, project), ApplyOptions(project=project))
    for options, expected in (
        (WatchOptions(name="b"), [("b", "blue"), ("b", "red")]),
        (WatchOptions(project="red", all_projects=False), [("a", "red"), ("b", "red")]),
    ):
        watch, seen = chain.watch(options, newest), []
        while len(seen) < 2:
            seen += (await anext(watch)).changes
        await watch.aclose()
        assert [(each.hub["metadata"]["name"], each.hub["metadata"]["project"]) for each in seen] == expected
