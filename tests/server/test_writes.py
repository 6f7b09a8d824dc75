"""Create, update, patch, apply and delete of built-in kinds."""

import re

import pytest

from tests.server.api import Api, config_map

MAPS = "/api/v1/namespaces/default/configmaps"


async def test_a_created_object_has_what_the_server_gives(api: Api) -> None:
    made = await api.post(MAPS, config_map("a"))
    metadata = made.doc["metadata"]
    assert made.code == 201
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", metadata["uid"])
    assert metadata["resourceVersion"].isdigit()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])


async def test_a_name_is_generated(api: Api) -> None:
    made = await api.post(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "gen-"}})
    assert re.fullmatch(r"gen-[bcdfghjklmnpqrstvwxz2456789]{5}", made.doc["metadata"]["name"])


async def test_what_exists_cannot_be_created(api: Api) -> None:
    await api.post(MAPS, config_map("a"))
    again = await api.post(MAPS, config_map("a"))
    assert (again.code, again.doc["reason"]) == (409, "AlreadyExists")


async def test_an_update_at_an_old_revision_is_a_conflict(api: Api) -> None:
    old = (await api.post(MAPS, config_map("a"))).doc
    await api.merge(f"{MAPS}/a", {"data": {"x": "1"}})
    answer = await api.put(f"{MAPS}/a", old)
    assert (answer.code, answer.doc["reason"]) == (409, "Conflict")


async def test_a_write_that_changes_nothing_keeps_the_revision(api: Api) -> None:
    made = (await api.post(MAPS, config_map("a"))).doc
    again = await api.put(f"{MAPS}/a", made)
    assert again.doc["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    patched = await api.merge(f"{MAPS}/a", {})
    assert patched.doc["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_a_dry_run_says_what_would_be_and_does_nothing(api: Api) -> None:
    assert (await api.post(f"{MAPS}?dryRun=All", config_map("a"))).code == 201
    assert (await api.get(f"{MAPS}/a")).code == 404
    await api.post(MAPS, config_map("b"))
    await api.merge(f"{MAPS}/b?dryRun=All", {"data": {"x": "1"}})
    assert "data" not in (await api.get(f"{MAPS}/b")).doc
    await api.delete(f"{MAPS}/b", {"dryRun": ["All"]})
    assert (await api.get(f"{MAPS}/b")).code == 200


async def test_a_failed_test_of_a_json_patch_is_invalid(api: Api) -> None:
    await api.post(MAPS, config_map("a"))
    body = [{"op": "test", "path": "/metadata/name", "value": "b"}]
    answer = await api.send("PATCH", f"{MAPS}/a", body, "application/json-patch+json")
    assert (answer.code, answer.doc["reason"]) == (422, "Invalid")


async def test_two_appliers_conflict_until_one_forces(api: Api) -> None:
    await api.apply(f"{MAPS}/a", {**config_map("a"), "data": {"x": "1"}}, "one")
    refused = await api.apply(f"{MAPS}/a", {**config_map("a"), "data": {"x": "2"}}, "two")
    assert refused.doc["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.x'
    assert refused.doc["details"]["causes"][0]["reason"] == "FieldManagerConflict"
    forced = await api.apply(f"{MAPS}/a", {**config_map("a"), "data": {"x": "2"}}, "two", force=True)
    assert [entry["manager"] for entry in forced.doc["metadata"]["managedFields"]] == ["two"]


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "never"])
async def test_managed_fields_of_times_that_cannot_be_are_a_clients_mistake(api: Api, time: str) -> None:
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1"}
    made = config_map("a")
    made["metadata"] = {**made["metadata"], "managedFields": [{**entry, "fieldsV1": {"f:data": {}}}]}
    assert (await api.post(MAPS, made)).code < 500


async def test_what_an_applier_no_longer_says_goes(api: Api) -> None:
    await api.apply(f"{MAPS}/a", {**config_map("a"), "data": {"x": "1", "y": "2"}})
    answer = await api.apply(f"{MAPS}/a", {**config_map("a"), "data": {"y": "2"}})
    assert answer.doc["data"] == {"y": "2"}


async def test_a_finalizer_holds_a_deleted_object(api: Api) -> None:
    await api.post(MAPS, config_map("a", finalizers=["example.com/hold"]))
    marked = await api.delete(f"{MAPS}/a")
    assert "deletionTimestamp" in marked.doc["metadata"]
    more = await api.merge(f"{MAPS}/a", {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}})
    assert more.code == 422
    await api.merge(f"{MAPS}/a", {"metadata": {"finalizers": None}})
    assert (await api.get(f"{MAPS}/a")).code == 404


@pytest.mark.parametrize("preconditions", [{"uid": "other"}, {"resourceVersion": "1"}])
async def test_a_delete_with_a_precondition_that_fails_is_a_conflict(api: Api, preconditions: dict[str, str]) -> None:
    await api.post(MAPS, config_map("a"))
    assert (await api.delete(f"{MAPS}/a", {"preconditions": preconditions})).code == 409
    assert (await api.get(f"{MAPS}/a")).code == 200


async def test_a_collection_is_deleted_by_selector(api: Api) -> None:
    await api.post(MAPS, config_map("a", labels={"go": "yes"}))
    await api.post(MAPS, config_map("b"))
    await api.delete(f"{MAPS}?labelSelector=go%3Dyes")
    assert ((await api.get(f"{MAPS}/a")).code, (await api.get(f"{MAPS}/b")).code) == (404, 200)


async def test_an_object_over_the_limit_is_refused(api: Api) -> None:
    big = {**config_map("a"), "data": {"x": "y" * 1_100_000}}
    assert (await api.post(MAPS, big)).code == 422
    crd_free = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "a"}, "revision": 1}
    answer = await api.post(
        "/apis/apps/v1/namespaces/default/controllerrevisions", {**crd_free, "data": {"x": "y" * 1_600_000}}
    )
    assert (answer.code, answer.doc["reason"]) == (413, "RequestEntityTooLarge")
