"""What a writer may not make others believe: who changed a resource, where it was synced from, whose it is."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import orjson
import pytest

from tests.hub.served.conftest import HUB, INFRA, Home, addon, blueprint, project
from tests.hub.served.test_served import answer
from trimtab.client.protocol import Named, Query
from trimtab.hub.storage.sqlite import SqliteStorage
from trimtab.model.errors import StatusError
from trimtab.server.auth.identity import User

ADDONS = f"/apis/{INFRA}/namespaces/default/addons"
BLUEPRINTS = f"/apis/{INFRA}/namespaces/default/blueprints"
BY, LINEAGE = "hub.trimtab.dev/changed-by", "hub.trimtab.dev/lineage"
ACME_BY, ACME_LINEAGE = "hub.acme.io/changed-by", "hub.acme.io/lineage"
EVERYBODY = ("system:masters", "system:authenticated")
BOB = User("bob", groups=EVERYBODY)


def said(document: dict[str, Any], **annotations: str | None) -> dict[str, Any]:
    """The document with other annotations; None takes one out."""
    given = {**(document["metadata"].get("annotations") or {}), **annotations}
    left = {key: value for key, value in given.items() if value is not None}
    return {**document, "metadata": {**document["metadata"], "annotations": left}}


def annotations(document: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = document["metadata"].get("annotations") or {}
    return found


@pytest.mark.row(45)
@pytest.mark.row(10)
async def test_lineage_cannot_be_forged_through_another_views_key(home: Home) -> None:
    theirs = ADDONS.replace("trimtab.dev", "acme.io")
    _, made = await answer(home, ADDONS, "POST", said(addon(), **{LINEAGE: "f", ACME_LINEAGE: "f"}))
    _, other = await answer(home, theirs, "POST", _of(theirs, said(addon("b"), **{LINEAGE: "f", ACME_LINEAGE: "f"})))
    for query in ({}, {"includeLineage": "true"}):
        for path in (ADDONS, theirs):
            _, listed = await answer(home, path, **query)
            for item in (*listed["items"], made, other):
                assert not {LINEAGE, ACME_LINEAGE} & annotations(item).keys()


def _of(path: str, document: dict[str, Any]) -> dict[str, Any]:
    group, version = path.split("/")[2:4]
    return {**document, "apiVersion": f"{group}/{version}"}


@pytest.mark.row(46)
@pytest.mark.parametrize("verb", ["GET", "PUT", "PATCH", "DELETE", "POST", "list", "watch", "status", "versions"])
async def test_no_verb_shows_lineage_to_those_who_may_not(home: Home, verb: str) -> None:
    rules = [{"apiGroups": ["infra.trimtab.dev"], "resources": ["*"], "verbs": [*VERBS]}]
    meta = {"name": "editor"}
    group = "rbac.authorization.k8s.io"
    await home.apply({"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules})
    subject = {"kind": "User", "name": "eve", "apiGroup": group}
    binding = {"roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "editor"}, "subjects": [subject]}
    await home.apply({"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": meta, **binding})
    await home.apply(blueprint())
    one = f"{BLUEPRINTS}/base"
    method, path, query = {
        "list": ("GET", BLUEPRINTS, {}),
        "watch": ("GET", BLUEPRINTS, {"watch": "true"}),
        "status": ("GET", f"{one}/status", {}),
        "versions": ("GET", f"{one}/versions", {}),
        "POST": ("POST", BLUEPRINTS, {}),
    }.get(verb, (verb, one, {}))
    eve = User("eve", groups=("system:authenticated",))
    code, refused = await answer(home, path, method, blueprint(), user=eve, includeLineage="true", **query)
    assert (code, "cannot lineage resource" in refused["message"]) == (403, True)


VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


@pytest.mark.row(4)
async def test_an_id_or_a_stored_spelling_given_as_a_name_is_only_a_name(home: Home) -> None:
    """IDs are the service's secret; someone who learned one must not reach another project's resource by it."""
    await home.apply(project("vault"))
    secret = {**addon("gem"), "metadata": {"name": "gem", "namespace": "vault"}}
    await home.apply(secret)
    vault = await home.hub.names.project("default", "vault")
    ids = await home.hub.storage.ids("default", "addons.infra", vault, ["gem"])
    for given in (ids["gem"], f"name:{ids['gem']}", "name:gem", f"name:name:{ids['gem']}"):
        wanted = {**blueprint("probe", "", ()), "spec": {"addons": [{"name": given, "version": "v1"}]}}
        code, shown = await answer(home, BLUEPRINTS, "POST", wanted)
        if code == 201:
            assert shown["spec"]["addons"][0]["name"] == given
            _, read = await answer(home, f"{BLUEPRINTS}/probe")
            assert read["spec"]["addons"][0]["name"] == given
            await answer(home, f"{BLUEPRINTS}/probe", "DELETE")
        else:
            assert code == 422
    assert (await answer(home, f"/apis/{INFRA}/namespaces/{vault}/addons/gem"))[0] == 404
    shared = blueprint("probe", "", (), sharing={"enabled": True, "projects": [{"name": vault}]})
    code, shown = await answer(home, BLUEPRINTS, "POST", shared)
    assert (code, "there is no project" in shown["message"]) == (422, True)


@pytest.mark.row(9)
async def test_sharing_lends_a_resource_and_never_shows_it_in_the_borrowers_project(home: Home) -> None:
    await home.apply(project("shop"))
    await home.apply(addon(sharing={"enabled": True, "projects": [{"name": "*"}]}))
    path = f"/apis/{INFRA}/namespaces/shop/addons"
    assert (await answer(home, f"{path}/nginx"))[0] == 404
    assert (await answer(home, path))[1]["items"] == []
    assert (await answer(home, f"{path}/nginx", "DELETE"))[0] == 404
    assert (await answer(home, f"{ADDONS}/nginx"))[0] == 200


async def test_the_uid_and_the_managers_of_a_resource_are_not_the_writers_to_choose(home: Home) -> None:
    wanted = addon()
    wanted["metadata"] |= {"uid": "mine", "generation": 9, "resourceVersion": "7", "creationTimestamp": None}
    code, refused = await answer(home, ADDONS, "POST", wanted)
    assert (code, "resourceVersion should not be set" in refused["message"]) == (400, True)
    wanted["metadata"].pop("resourceVersion")
    code, made = await answer(home, ADDONS, "POST", wanted)
    assert (code, made["metadata"]["generation"], made["metadata"]["uid"] != "mine") == (201, 1, True)
    other = {**made, "metadata": {**made["metadata"], "uid": "11111111-1111-1111-1111-111111111111"}}
    code, refused = await answer(home, f"{ADDONS}/nginx", "PUT", other)
    assert (code, refused["reason"]) in ((409, "Conflict"), (422, "Invalid"))


@pytest.mark.row(30)
async def test_many_who_patch_one_resource_at_once_all_get_through(home: Home) -> None:
    """A patch without a revision meets no conflict, as on any server; through whichever view it comes."""
    await home.apply(addon())
    theirs = ADDONS.replace("trimtab.dev", "acme.io")

    async def patch(number: int) -> int:
        path = f"{theirs if number % 2 else ADDONS}/nginx"
        body = {"metadata": {"labels": {f"l{number}": "x"}}}
        code, _ = await answer(home, path, "PATCH", body, media="application/merge-patch+json")
        return int(code)

    assert set(await asyncio.gather(*map(patch, range(60)))) == {200}
    _, shown = await answer(home, f"{ADDONS}/nginx")
    assert len(shown["metadata"]["labels"]) == 60


async def test_of_many_who_replace_one_revision_one_gets_through(home: Home) -> None:
    _, made = await answer(home, ADDONS, "POST", addon())

    async def put(number: int) -> int:
        wanted = {**made, "metadata": {**made["metadata"], "labels": {f"l{number}": "x"}}}
        return int((await answer(home, f"{ADDONS}/nginx", "PUT", wanted))[0])

    assert sorted(await asyncio.gather(*map(put, range(20)))) == [200, *[409] * 19]


async def test_a_project_made_anew_is_another_one(home: Home) -> None:
    """Nothing of the old one is in it, and its watchers see the new one's resources."""
    await home.apply(project("shop"))
    inside = {**addon(), "metadata": {"name": "nginx", "namespace": "shop"}}
    first = await home.apply(inside)
    revision = (await home.client.list(Named(INFRA, "Addon"), Query(namespace="shop"))).revision
    path = f"/apis/{INFRA}/namespaces/shop/addons/nginx"
    code, refused = await answer(home, f"/apis/{HUB}/projects/shop", "DELETE")
    assert (code, refused["reason"]) == (409, "Conflict")
    assert (await answer(home, path, "DELETE"))[0] == 200
    assert (await answer(home, f"/apis/{HUB}/projects/shop", "DELETE"))[0] == 200
    assert (await answer(home, path))[0] == 404
    await home.apply(project("shop"))
    assert (await answer(home, path))[0] == 404
    second = await home.apply(inside)
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    seen = []
    async for event in home.client.watch(Named(INFRA, "Addon"), Query(namespace="shop"), revision):
        seen.append((event.type.name, event.object.raw["metadata"]["uid"]))
        if len(seen) == 2:
            break
    assert seen == [("DELETED", first["metadata"]["uid"]), ("ADDED", second["metadata"]["uid"])]


@pytest.mark.row(25)
@pytest.mark.parametrize("revision", [10**6, 10**20, -7])
async def test_a_continue_token_that_was_tampered_with_is_refused(home: Home, revision: int) -> None:
    forged = base64.urlsafe_b64encode(
        orjson.dumps({"v": "meta.k8s.io/v1", "rv": min(revision, 2**63), "start": ["default", "a"]})
    ).decode()
    code, refused = await answer(home, ADDONS, limit="1", **{"continue": forged.rstrip("=")})
    assert (code in (400, 410), "InternalError" in str(refused)) == (True, False), refused


@pytest.mark.row(29)
async def test_a_status_may_be_written_by_a_document_that_says_no_project(home: Home) -> None:
    made = await home.apply(addon())
    bare = {
        "apiVersion": INFRA,
        "kind": "Addon",
        "metadata": {"name": "nginx", "resourceVersion": made["metadata"]["resourceVersion"]},
        "status": {"observedGeneration": 1},
    }
    code, shown = await answer(home, f"{ADDONS}/nginx/status", "PUT", bare)
    assert (code, shown["status"], shown["metadata"]["project"]) == (200, {"observedGeneration": 1}, "default")


@pytest.mark.row(3)
async def test_a_project_is_in_no_project(home: Home) -> None:
    wanted = project("shop")
    wanted["metadata"]["project"] = "default"
    code, refused = await answer(home, f"/apis/{HUB}/projects", "POST", wanted)
    assert (code, "metadata.project: Forbidden" in refused["message"]) == (422, True)


@pytest.mark.row(30)
async def test_a_watch_and_a_page_of_a_revision_that_is_gone_are_told_so(home: Home) -> None:
    for number in range(4):
        await home.apply(addon(f"a{number}"))
    _, page = await answer(home, ADDONS, limit="2")
    for number in range(4):
        await home.apply(addon(f"a{number}", namespace="edge"))
    newest, _ = await home.hub.storage.horizon()
    storage = home.hub.storage
    assert isinstance(storage, SqliteStorage)
    await storage.compact(newest)
    code, expired = await answer(home, ADDONS, limit="2", **{"continue": page["metadata"]["continue"]})
    assert (code, expired["reason"]) == (410, "Expired")
    with pytest.raises(StatusError) as gone:
        async for _event in home.client.watch(Named(INFRA, "Addon"), Query(), page["metadata"]["resourceVersion"]):
            pass
    assert gone.value.code == 410
    code, rest = await answer(home, ADDONS, limit="2", **{"continue": expired["metadata"]["continue"]})
    assert (code, len(rest["items"])) == (200, 2), "the token that comes with it goes on at the newest state"


@pytest.mark.row(3)
async def test_a_description_is_words_and_not_a_book(home: Home) -> None:
    for length, code in ((4096, 201), (4097, 422)):
        wanted = addon(f"a{length}")
        wanted["metadata"]["description"] = "x" * length
        answered, shown = await answer(home, ADDONS, "POST", wanted)
        assert answered == code
    assert "metadata.description" in shown["message"]


@pytest.mark.row(27)
async def test_a_digest_is_what_the_server_has_seen_and_never_what_a_writer_says(home: Home) -> None:
    forged = "sha256:" + 64 * "0"
    wanted = addon(artifact={"uploadedYAML": {"paths": [{"name": "m.yaml", "digest": forged}]}})
    _, made = await answer(home, ADDONS, "POST", wanted)
    assert forged not in str(made)
    made["spec"]["artifact"]["uploadedYAML"]["paths"][0]["digest"] = forged
    _, shown = await answer(home, f"{ADDONS}/nginx", "PUT", made)
    assert forged not in str(shown)


async def test_a_resource_that_is_too_large_is_refused_as_such(home: Home) -> None:
    wanted = {
        "apiVersion": INFRA,
        "kind": "Cluster",
        "metadata": {"name": "big", "namespace": "default"},
        "spec": {"config": {"eks": {"words": "x" * 1_600_000}}},
    }
    code, refused = await answer(home, f"/apis/{INFRA}/namespaces/default/clusters", "POST", wanted)
    assert (code, refused["reason"]) == (413, "RequestEntityTooLarge"), refused


@pytest.mark.row(19)
async def test_selectors_choose_among_resources(home: Home) -> None:
    for name, tier in (("a", "front"), ("b", "back"), ("c", "back")):
        labelled = addon(name)
        labelled["metadata"]["labels"] = {"tier": tier}
        await home.apply(labelled)
    for query, names in (
        ({"labelSelector": "tier=back"}, ["b", "c"]),
        ({"labelSelector": "tier!=back"}, ["a"]),
        ({"labelSelector": "tier in (front, back)", "fieldSelector": "metadata.name!=b"}, ["a", "c"]),
        ({"fieldSelector": "metadata.name=b"}, ["b"]),
        ({"labelSelector": "tier=back", "limit": "1"}, ["b"]),
    ):
        code, listed = await answer(home, ADDONS, **query)
        assert (code, [item["metadata"]["name"] for item in listed["items"]]) == (200, names)
    code, refused = await answer(home, ADDONS, fieldSelector="spec.version=v1")
    assert (code, "field label not supported: spec.version" in refused["message"]) == (400, True)


async def test_a_watch_of_one_name_and_a_selector_tells_of_nothing_else(home: Home) -> None:
    since = (await home.client.list(Named(INFRA, "Addon"))).revision
    for name in ("a", "b", "c"):
        await home.apply(addon(name))
    named = home.client.watch(Named(INFRA, "Addon"), Query(namespace="default", fields="metadata.name=c"), since)
    assert (await anext(named)).object.raw["metadata"]["name"] == "c"
    await named.aclose()
