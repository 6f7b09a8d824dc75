"""Hub kinds through the API: what kubectl and every other client meets."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from tests.hub.served.conftest import HUB, INFRA, KINDS, Home, addon, blueprint, project
from trimtab.client.protocol import EventType, Named, Query, Ref
from trimtab.client.transport import Call
from trimtab.hub.compose import Hub
from trimtab.hub.contract import GetOptions
from trimtab.hub.storage.sqlite import SqliteStorage
from trimtab.model.document import convert
from trimtab.model.errors import StatusError
from trimtab.model.hub import HubResource
from trimtab.model.resource import Spec
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.http import Request, Response
from trimtab.server.metrics import exposition
from trimtab.store.memory import MemoryStore
from trimtab.systems.platform.kinds import Addon, AddonSpec
from trimtab.systems.platform.kinds.artifact import Artifact
from trimtab.systems.platform.resolving import published

ADDON, BLUEPRINT, PROJECT = Named(INFRA, "Addon"), Named(INFRA, "Blueprint"), Named(HUB, "Project")
LINEAGE, OLD = "hub.trimtab.dev/lineage", "infra.trimtab.dev/v2"
ID = re.compile(r"(?<![0-9a-f:])[0-9a-f]{32}(?![0-9a-f])")


async def answer(
    home: Home,
    path: str,
    method: str = "GET",
    body: Any = None,
    user: User | None = None,
    media: str = "application/json",
    **query: str,
) -> Any:
    request = Request(
        method=method,
        path=path,
        query=query,
        headers={b"content-type": media.encode(), b"accept": b"application/json", b"user-agent": b"test/1"},
        body=b"" if body is None else orjson.dumps(body),
        user=user or User("ada", groups=(MASTERS, "system:authenticated")),
        warnings=[],
    )
    response = await home.server.handle(request)
    assert isinstance(response, Response)
    return response.code, orjson.loads(response.body)


def with_lineage(shown: dict[str, Any], lineage: str = "default/sync@1") -> dict[str, Any]:
    return {**shown, "metadata": {**shown["metadata"], "annotations": {LINEAGE: lineage}}}


@pytest.mark.row(19)
async def test_a_list_of_one_name_asks_the_service_for_that_alone(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `kubectl wait` does, and whoever watches one resource: among a million it must not be looked for."""
    for name in ("a", "b", "c"):
        await answer(home, f"/apis/{INFRA}/namespaces/default/addons", "POST", addon(name))
    asked, right = [], home.hub.storage.list

    async def list_(query: Any) -> Any:
        page = await right(query)
        asked.append((query.name, len(page.rows)))
        return page

    monkeypatch.setattr(home.hub.storage, "list", list_)
    path = f"/apis/{INFRA}/namespaces/default/addons"
    code, found = await answer(home, path, fieldSelector="metadata.name=b", limit="500")
    assert (code, [item["metadata"]["name"] for item in found["items"]]) == (200, ["b"])
    assert asked == [("b", 1)]


@pytest.mark.row(1)
@pytest.mark.row(3)
async def test_a_resource_has_one_shape_with_its_project_and_description(home: Home) -> None:
    wanted = addon()
    wanted["metadata"]["description"] = "The front door."
    applied = await home.apply(wanted)
    assert list(applied) == ["kind", "apiVersion", "metadata", "spec"]
    assert applied["metadata"]["project"] == applied["metadata"]["namespace"] == "default"
    assert applied["metadata"]["description"] == "The front door."
    read = (await home.client.get(ADDON, "nginx", "default")).raw
    assert read == applied


@pytest.mark.row(3)
async def test_a_project_that_is_not_the_namespace_is_refused_by_its_field(home: Home) -> None:
    wanted = addon()
    wanted["metadata"]["project"] = "other"
    with pytest.raises(StatusError, match=r'metadata.project.*must be "default"') as refusal:
        await home.apply(wanted)
    assert refusal.value.code == 422


@pytest.mark.row(22)
async def test_a_project_that_nobody_made_is_told(home: Home) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "stray"}}
    await home.apply(namespace)
    wanted = addon()
    wanted["metadata"]["namespace"] = "stray"
    with pytest.raises(StatusError, match="stray"):
        await home.apply(wanted)


@pytest.mark.row(4)
async def test_no_id_of_the_service_ever_leaves(home: Home) -> None:
    await home.apply(project("shop"))
    await home.apply(addon())
    await home.apply(blueprint(sharing={"enabled": True, "projects": [{"name": "shop"}]}))
    seen = []
    for plural in ("addons", "blueprints"):
        for path in (f"namespaces/default/{plural}", plural):
            queries: tuple[dict[str, str], ...] = ({}, {"includeLineage": "true"})
            seen += [await answer(home, f"/apis/{INFRA}/{path}", **query) for query in queries]
    seen.append(await answer(home, f"/apis/{INFRA}/namespaces/default/blueprints/base", version="v1"))
    seen.append(await answer(home, f"/apis/{INFRA}/namespaces/default/blueprints/base/versions"))
    seen.append(await answer(home, f"/apis/{HUB}/projects"))
    since = "0"
    async for event in home.client.watch(BLUEPRINT, Query(), since):
        seen.append((200, event.object.raw))
        break
    refused = blueprint("other", sharing={"enabled": True, "projects": [{"name": "nobody"}]})
    seen.append(await answer(home, f"/apis/{INFRA}/namespaces/default/blueprints", "POST", refused))
    text = orjson.dumps(seen).decode()
    rows = (await home.hub.storage.ids("default", "projects.hub", None, ["default", "shop"])).values()
    assert all(re.fullmatch(r"[0-9a-f]{32}", row) for row in rows)
    assert not ID.findall(text)


@pytest.mark.row(10)
async def test_a_white_label_is_another_view_of_the_same_resource(home: Home) -> None:
    ours = await home.apply(addon())
    theirs = (await home.client.get(Named("infra.acme.io/v3", "Addon"), "nginx", "default")).raw
    assert theirs["apiVersion"] == "infra.acme.io/v3"
    assert theirs["spec"] == ours["spec"]
    assert theirs["metadata"]["uid"] == ours["metadata"]["uid"]
    changed = {**addon(namespace="edge"), "apiVersion": "infra.acme.io/v3"}
    await home.apply(changed)
    assert (await home.client.get(ADDON, "nginx", "default")).raw["spec"]["namespace"] == "edge"


@pytest.mark.row(30)
async def test_paths_may_say_projects(home: Home) -> None:
    code, made = await answer(home, f"/apis/{INFRA}/projects/default/addons", "POST", addon())
    assert code == 201
    assert await answer(home, f"/apis/{INFRA}/projects/default/addons/nginx") == (200, made)
    code, listed = await answer(home, f"/apis/{INFRA}/projects/default/addons")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["nginx"]
    code, shown = await answer(home, f"/apis/{HUB}/projects/default")
    assert (code, shown["kind"]) == (200, "Project")


@pytest.mark.row(28)
async def test_a_published_version_is_read_and_never_changes(home: Home) -> None:
    await home.apply(blueprint(version="v1", addons=("a",)))
    await home.apply(blueprint(version="v2", addons=("a", "b")))
    path = f"/apis/{INFRA}/namespaces/default/blueprints/base"
    for version, addons in (("v1", 1), ("v2", 2), ("latest", 2)):
        code, shown = await answer(home, path, version=version)
        assert (code, len(shown["spec"]["addons"])) == (200, addons)
    code, refused = await answer(home, path, version="v3")
    assert code == 404
    assert "v1, v2" in refused["message"]
    await home.apply(blueprint(version="v1", addons=("a",)))
    await home.apply(blueprint(version="", addons=()))
    code, shown = await answer(home, path, version="latest")
    assert [each["name"] for each in shown["spec"]["addons"]] == ["a"], (
        "a draft after a way back follows no other version"
    )
    with pytest.raises(StatusError, match=r"spec.version.*\"v2\".*published"):
        await home.apply(blueprint(version="v2", addons=()))
    with pytest.raises(StatusError, match="published"):
        await home.apply(blueprint(version="v2", addons=()), dry_run=True)


@pytest.mark.row(28)
async def test_a_version_whose_files_are_to_come_is_no_version_yet(home: Home) -> None:
    """So it can be applied before they are uploaded; who follows the newest stays with the one before."""
    path = f"/apis/{INFRA}/namespaces/default/addons/nginx"

    async def latest() -> str:
        current = convert((await home.client.get(ADDON, "nginx", "default")).raw, Addon)
        return (await published(home.client, current, "latest")).spec.artifact.files()[-1].name

    await home.apply(addon(version="v1"))
    assert (await answer(home, f"{path}/versions"))[1]["items"] == []
    assert (await answer(home, path, version="v1"))[0] == 404
    assert (await answer(home, f"{path}/artifacts/manifests/nginx.yaml", "PUT", "one"))[0] == 200
    assert (await answer(home, path, version="v1"))[0] == 200
    files = {"uploadedYAML": {"paths": [{"name": "manifests/nginx.yaml"}, {"name": "more.yaml"}]}}
    with pytest.raises(StatusError, match="published"):
        await home.apply(addon(version="v1", artifact=files))
    await home.apply(addon(version="v2", artifact=files))
    assert await latest() == "manifests/nginx.yaml"
    assert (await answer(home, f"{path}/artifacts/more.yaml", "PUT", "two"))[0] == 200
    assert await latest() == "more.yaml"


@pytest.mark.row(41)
@pytest.mark.row(42)
@pytest.mark.row(43)
@pytest.mark.row(45)
async def test_lineage_is_seen_and_set_only_by_those_who_ask_and_may(home: Home) -> None:
    forged = addon()
    forged["metadata"]["annotations"] = {LINEAGE: "forged", "own": "kept"}
    path = f"/apis/{INFRA}/namespaces/default/addons"
    code, made = await answer(home, path, "POST", forged)
    assert (code, made["metadata"]["annotations"].get(LINEAGE)) == (201, None)
    real = with_lineage(made)
    code, _ = await answer(home, f"{path}/nginx", "PUT", real, includeLineage="true")
    assert code == 200
    for query, seen in (({}, None), ({"includeLineage": "true"}, "default/sync@1")):
        _, one = await answer(home, f"{path}/nginx", **query)
        _, several = await answer(home, path, **query)
        for shown in (one, *several["items"]):
            assert (shown["metadata"].get("annotations") or {}).get(LINEAGE) == seen
    _, now = await answer(home, f"{path}/nginx")
    assert (await answer(home, f"{path}/nginx", "PUT", with_lineage(now, "forged")))[0] == 200
    _, kept = await answer(home, f"{path}/nginx", includeLineage="true")
    assert kept["metadata"]["annotations"][LINEAGE] == "default/sync@1"


@pytest.mark.row(41)
@pytest.mark.row(42)
@pytest.mark.row(46)
@pytest.mark.parametrize(("query", "seen"), [({}, None), ({"includeLineage": "true"}, "default/sync@1")])
async def test_a_watch_tells_lineage_to_those_who_ask_and_to_nobody_else(
    home: Home, query: dict[str, str], seen: str | None
) -> None:
    path = f"/apis/{INFRA}/namespaces/default/addons"
    made = await home.apply(addon())
    assert (await answer(home, f"{path}/nginx", "PUT", with_lineage(made), includeLineage="true"))[0] == 200
    since = {"watch": "true", "resourceVersion": made["metadata"]["resourceVersion"]}
    call = Call(method="GET", path=path, query={**since, **query})
    async with contextlib.aclosing(home.client.transport.stream(call, 10)) as lines:
        event = orjson.loads(await anext(lines))
    assert (event["type"], event["object"]["metadata"]["annotations"].get(LINEAGE)) == ("MODIFIED", seen)


@pytest.mark.row(46)
async def test_lineage_has_a_verb_of_its_own(home: Home) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": ["infra.trimtab.dev"], "resources": ["addons"], "verbs": ["get", "list", "watch"]}],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    await home.apply(role)
    await home.apply(binding)
    await home.apply(addon())
    path, bob = f"/apis/{INFRA}/namespaces/default/addons/nginx", User("bob", groups=("system:authenticated",))
    assert (await answer(home, path, user=bob))[0] == 200
    code, refused = await answer(home, path, user=bob, includeLineage="true")
    assert code == 403
    assert "lineage" in refused["message"]


async def test_a_watch_tells_what_happens_to_a_resource_once_each(home: Home) -> None:
    listing = await home.client.list(ADDON)
    await home.apply(addon())
    await home.apply(addon(namespace="edge"))
    await home.client.delete(Ref(ADDON, "nginx", "default"))
    told = []
    async for event in home.client.watch(ADDON, Query(namespace="default"), listing.revision):
        told.append((event.type, event.object.raw["spec"]["namespace"]))
        if len(told) == 3:
            break
    assert told == [(EventType.ADDED, "web"), (EventType.MODIFIED, "edge"), (EventType.DELETED, "edge")]


@pytest.mark.row(18)
async def test_a_second_delete_is_told_that_it_is_gone_and_changes_nothing(home: Home) -> None:
    path = f"/apis/{INFRA}/namespaces/default/addons/nginx"
    await home.apply(addon())
    assert (await answer(home, path, "DELETE"))[0] == 200
    gone = await home.hub.storage.horizon()
    code, refused = await answer(home, path, "DELETE")
    assert (code, refused["reason"]) == (404, "NotFound")
    assert await home.hub.storage.horizon() == gone


async def test_two_writers_of_one_revision_meet_a_conflict(home: Home) -> None:
    made = await home.apply(addon())
    path = f"/apis/{INFRA}/namespaces/default/addons/nginx"
    first = {**made, "spec": {**made["spec"], "namespace": "one"}}
    second = {**made, "spec": {**made["spec"], "namespace": "two"}}
    assert (await answer(home, path, "PUT", first))[0] == 200
    code, refused = await answer(home, path, "PUT", second)
    assert (code, refused["reason"]) == (409, "Conflict")


async def test_a_list_goes_on_at_its_revision(home: Home) -> None:
    for number in range(5):
        await home.apply(addon(f"a{number}"))
    code, page = await answer(home, f"/apis/{INFRA}/addons", limit="2")
    await home.client.delete(Ref(ADDON, "a3", "default"))
    names = [item["metadata"]["name"] for item in page["items"]]
    while page["metadata"].get("continue"):
        code, page = await answer(
            home, f"/apis/{INFRA}/addons", limit="2", **{"continue": page["metadata"]["continue"]}
        )
        assert code == 200
        names += [item["metadata"]["name"] for item in page["items"]]
    assert names == ["a0", "a1", "a2", "a3", "a4"]


@pytest.mark.row(29)
async def test_a_spec_write_cannot_change_the_status_and_the_other_way_round(home: Home) -> None:
    made = await home.apply({**addon(), "status": {"observedGeneration": 7}})
    assert "status" not in made
    path = f"/apis/{INFRA}/namespaces/default/addons/nginx"
    wanted = {**made, "spec": {**made["spec"], "namespace": "forged"}, "status": {"observedGeneration": 1}}
    code, shown = await answer(home, f"{path}/status", "PUT", wanted)
    assert (code, shown["spec"]["namespace"]) == (200, "web")
    assert shown["metadata"]["generation"] == 1


@pytest.mark.row(2)
@pytest.mark.parametrize(
    ("said", "told"),
    [({"kind": "Adon"}, "expected kind (Addon)"), ({"apiVersion": "infra.trimtab.dev/v9"}, f"version ({INFRA})")],
)
async def test_an_unknown_kind_or_version_is_refused_with_the_known_one(
    home: Home, said: dict[str, str], told: str
) -> None:
    code, refused = await answer(home, f"/apis/{INFRA}/namespaces/default/addons", "POST", {**addon(), **said})
    assert (code, told in refused["message"]) == (400, True)


@pytest.mark.row(2)
async def test_an_unknown_field_is_named(home: Home) -> None:
    path = f"/apis/{INFRA}/namespaces/default/addons"
    code, refused = await answer(home, path, "POST", addon(colour="red"), fieldValidation="Strict")
    assert (code, 'unknown field "spec.colour"' in refused["message"]) == (400, True)


async def test_a_project_has_its_namespace_when_its_maker_hears_of_it(home: Home) -> None:
    made = await home.apply(project("shop"))
    namespace = (await home.client.get(Named("v1", "Namespace"), "shop")).raw
    assert namespace["metadata"]["annotations"]["hub.trimtab.dev/made-for"] == made["metadata"]["uid"]
    await home.apply({**addon(), "metadata": {"name": "nginx", "namespace": "shop"}})


@pytest.mark.row(39)
async def test_the_servers_metrics_count_what_the_cache_does(home: Home) -> None:
    await home.apply(addon())
    for _ in range(3):
        await home.client.get(ADDON, "nginx", "default")
    text = exposition(home.server).decode()
    [hits] = re.findall(r'^trimtab_hub_cache_hits_total\{group="addons.infra/get"\} (\d+)', text, re.MULTILINE)
    assert int(hits) >= 2


@pytest.mark.row(20)
@pytest.mark.row(21)
async def test_whoever_takes_an_accessor_in_this_process_is_asked_too(home: Home) -> None:
    await home.apply(addon())
    accessor = home.hub.registry.accessor("addons.infra.trimtab.dev")
    with pytest.raises(StatusError) as refusal:
        await accessor.as_user("bob").get("nginx", GetOptions(project="default"))
    assert refusal.value.code == 403


class OldAddonSpec(Spec):
    target: str = ""


class OldAddon(HubResource, group="infra", version="v2", kind="Addon", plural="addons"):
    spec: OldAddonSpec = OldAddonSpec()


class OldAddons:
    """v2 knew the namespace by another name, and nothing else."""

    def convert_to(self, spoke: OldAddon) -> Addon:
        return Addon(spec=AddonSpec(namespace=spoke.spec.target, artifact=FILES))

    def convert_from(self, hub: Addon) -> OldAddon:
        return OldAddon(spec=OldAddonSpec(target=hub.spec.namespace or ""))


FILES = convert({"uploadedYAML": {"paths": [{"name": "a.yaml"}]}}, Artifact)


@pytest.fixture
async def older(tmp_path: Path) -> AsyncIterator[Home]:
    """A hub that has addons in v2 too."""
    server = Server(MemoryStore())
    await server.start()
    kinds = [msgspec.structs.replace(kind, spokes=((OldAddon, OldAddons()),)) for kind in KINDS if kind.cls is Addon]
    hub = Hub(server, kinds, SqliteStorage(tmp_path / "hub.db"))
    try:
        await hub.start()
        yield Home(server, hub)
    finally:
        await hub.stop()
        await server.stop()


@pytest.mark.row(46)
@pytest.mark.parametrize(("query", "seen"), [({}, None), ({"includeLineage": "true"}, "default/sync@1")])
async def test_an_older_version_shows_lineage_to_those_who_ask_and_to_nobody_else(
    older: Home, query: dict[str, str], seen: str | None
) -> None:
    made, places = await older.apply(addon()), "namespaces/default/addons"
    real = with_lineage(made)
    assert (await answer(older, f"/apis/{INFRA}/{places}/nginx", "PUT", real, includeLineage="true"))[0] == 200
    _, one = await answer(older, f"/apis/{OLD}/{places}/nginx", **query)
    _, several = await answer(older, f"/apis/{OLD}/{places}", **query)
    for shown in (one, *several["items"]):
        assert (shown["apiVersion"], shown["metadata"]["annotations"].get(LINEAGE)) == (OLD, seen)


@pytest.mark.row(45)
@pytest.mark.row(46)
async def test_who_writes_in_an_older_version_does_not_touch_lineage_unasked(older: Home) -> None:
    path = f"/apis/{OLD}/namespaces/default/addons"
    kept = with_lineage(await older.apply(addon()))
    current = f"/apis/{INFRA}/namespaces/default/addons/nginx"
    assert (await answer(older, current, "PUT", kept, includeLineage="true"))[0] == 200
    _, plain = await answer(older, f"{path}/nginx")
    assert (await answer(older, f"{path}/nginx", "PUT", with_lineage(plain, "forged")))[0] == 200
    _, shown = await answer(older, current, includeLineage="true")
    assert shown["metadata"]["annotations"][LINEAGE] == "default/sync@1"


@pytest.mark.row(17)
async def test_another_version_of_the_api_is_a_spoke_of_the_one_that_is_kept(older: Home) -> None:
    home, old = older, OLD
    made = await home.apply(
        {
            "apiVersion": old,
            "kind": "Addon",
            "metadata": {"name": "a", "namespace": "default"},
            "spec": {"target": "web"},
        }
    )
    assert (made["apiVersion"], made["spec"]) == (old, {"target": "web"})
    assert made["metadata"]["annotations"] == {"hub.trimtab.dev/changed-by": "ada"}, "whichever version was written"
    assert made["metadata"]["project"] == "default"
    with pytest.raises(StatusError, match=r"metadata\.project") as refusal:
        await home.apply({**made, "metadata": {"name": "b", "namespace": "default", "project": "other"}})
    assert refusal.value.code == 422
    wordy = {**made, "metadata": {"name": "b", "namespace": "default", "description": "x" * 5000}}
    with pytest.raises(StatusError, match=r"metadata\.description"):
        await home.apply(wordy)
    forged = {**made, "metadata": {**made["metadata"], "annotations": {"hub.trimtab.dev/changed-by": "eve"}}}
    _, shown = await answer(home, f"/apis/{old}/namespaces/default/addons/a", "PUT", forged)
    assert shown["metadata"]["annotations"] == {"hub.trimtab.dev/changed-by": "ada"}
    kept = (await home.client.get(ADDON, "a", "default")).raw
    assert kept["spec"]["namespace"] == "web"
    await home.apply(addon("a", namespace="edge"))
    assert (await home.client.get(Named(old, "Addon"), "a", "default")).raw["spec"] == {"target": "edge"}


@pytest.mark.row(8)
async def test_a_put_that_says_the_same_in_fewer_words_changes_nothing(home: Home) -> None:
    path = f"/apis/{INFRA}/namespaces/default/addons"
    _, made = await answer(home, path, "POST", addon())
    for _ in range(2):
        said = {**addon(), "metadata": {**addon()["metadata"], "resourceVersion": made["metadata"]["resourceVersion"]}}
        code, shown = await answer(home, f"{path}/nginx", "PUT", said)
        assert (code, shown["metadata"]["generation"]) == (200, 1)
        made = shown
