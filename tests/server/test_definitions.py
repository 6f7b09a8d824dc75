"""Custom resource definitions, from their creation to their end."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.server.api import Api, running
from trimtab.store.memory import MemoryStore

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BOATS = "/apis/sea.example.com/v1/namespaces/default/boats"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def definition(name: str = "boats.sea.example.com", **names: Any) -> dict[str, Any]:
    plural, _, group = name.partition(".")
    spec = {
        "type": "object",
        "properties": {
            "sails": {"type": "integer", "default": 2, "minimum": 0},
            "port": {"type": "string"},
        },
        "x-kubernetes-validations": [{"rule": "!has(oldSelf.port) || has(self.port)", "message": "a port stays"}],
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.sails", "statusReplicasPath": ".status.sails"},
        },
        "selectableFields": [{"jsonPath": ".spec.port"}],
        "additionalPrinterColumns": [{"name": "Port", "type": "string", "jsonPath": ".spec.port"}],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": spec,
                    "status": {"type": "object", "properties": {"sails": {"type": "integer"}}},
                },
            }
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": "Boat", **names},
            "versions": [version],
        },
    }


def boat(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "sea.example.com/v1", "kind": "Boat", "metadata": {"name": name}, "spec": spec}


async def launch(api: Api) -> None:
    assert (await api.post(DEFINITIONS, definition())).code == 201
    await api.until(BOATS, lambda answer: answer.code == 200)


async def test_a_definition_is_established_and_served(api: Api) -> None:
    await launch(api)
    made = (await api.get(f"{DEFINITIONS}/boats.sea.example.com")).doc
    conditions = {condition["type"]: condition["status"] for condition in made["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert made["status"]["storedVersions"] == ["v1"]


async def test_when_a_definition_was_made_its_conditions_are_there(api: Api) -> None:
    """`kubectl wait` takes a status without conditions for an error, and asks at once."""
    assert (await api.post(DEFINITIONS, definition())).code == 201
    made = (await api.get(f"{DEFINITIONS}/boats.sea.example.com")).doc
    assert {condition["type"] for condition in made["status"]["conditions"]} == {"NamesAccepted", "Established"}


async def test_objects_are_defaulted_pruned_and_told_of_unknown_fields(api: Api) -> None:
    await launch(api)
    made = await api.post(BOATS, boat("a", wheels=4))
    assert made.doc["spec"] == {"sails": 2}
    assert made.warnings == ['unknown field "spec.wheels"']


async def test_strict_validation_refuses_unknown_and_duplicate_fields_in_one_message(api: Api) -> None:
    await launch(api)
    raw = b'{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"name":"a"},"spec":{"port":"x","port":"y","w":1}}'
    answer = await api.post(f"{BOATS}?fieldValidation=Strict", raw)
    assert answer.code == 400
    assert 'duplicate field "spec.port", unknown field "spec.w"' in answer.doc["message"]


async def test_the_schema_and_rules_refuse(api: Api) -> None:
    await launch(api)
    assert "should be greater than or equal to 0" in (await api.post(BOATS, boat("a", sails=-1))).doc["message"]
    await api.post(BOATS, boat("b", port="Hull"))
    answer = await api.merge(f"{BOATS}/b", {"spec": {"port": None}})
    assert (answer.code, answer.doc["details"]["causes"][0]["message"]) == (
        422,
        'Invalid value: "object": a port stays',
    )


async def test_generation_counts_changes_of_the_spec_only(api: Api) -> None:
    await launch(api)
    await api.post(BOATS, boat("a"))
    await api.merge(f"{BOATS}/a/status", {"status": {"sails": 2}})
    await api.merge(f"{BOATS}/a", {"metadata": {"labels": {"x": "y"}}})
    assert (await api.get(f"{BOATS}/a")).doc["metadata"]["generation"] == 1
    assert (await api.merge(f"{BOATS}/a", {"spec": {"sails": 3}})).doc["metadata"]["generation"] == 2


async def test_status_is_written_at_its_own_door_only(api: Api) -> None:
    await launch(api)
    made = await api.post(BOATS, {**boat("a"), "status": {"sails": 9}})
    assert "status" not in made.doc
    answer = await api.merge(f"{BOATS}/a/status", {"status": {"sails": 1}, "spec": {"sails": 7}})
    assert (answer.doc["status"], answer.doc["spec"]) == ({"sails": 1}, {"sails": 2})
    assert (await api.merge(f"{BOATS}/a", {"status": {"sails": 5}})).doc["status"] == {"sails": 1}


async def test_the_scale_shows_and_sets_the_replicas(api: Api) -> None:
    await launch(api)
    await api.post(BOATS, boat("a"))
    scale = await api.merge(f"{BOATS}/a/scale", {"spec": {"replicas": 5}})
    assert (scale.doc["kind"], scale.doc["spec"]) == ("Scale", {"replicas": 5})
    assert (await api.get(f"{BOATS}/a")).doc["spec"]["sails"] == 5


async def test_selectable_fields_select(api: Api) -> None:
    await launch(api)
    await api.post(BOATS, boat("a", port="Hull"))
    await api.post(BOATS, boat("b", port="Kiel"))
    found = (await api.get(f"{BOATS}?fieldSelector=spec.port%3DKiel")).doc
    assert [item["metadata"]["name"] for item in found["items"]] == ["b"]


async def test_a_change_of_the_schema_shows_in_old_objects_and_ends_open_watches(api: Api) -> None:
    await launch(api)
    await api.post(BOATS, boat("a"))
    revision = (await api.get(BOATS)).doc["metadata"]["resourceVersion"]
    async with api.watch(f"{BOATS}?watch=true&resourceVersion={revision}") as event:
        await api.merge(f"{BOATS}/a", {"metadata": {"labels": {"seen": "yes"}}})
        assert (await event())["type"] == "MODIFIED"
        changed = (await api.get(f"{DEFINITIONS}/boats.sea.example.com")).doc
        spec = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["colour"] = {"type": "string", "default": "white"}
        assert (await api.put(f"{DEFINITIONS}/boats.sea.example.com", changed)).code == 200
        with pytest.raises(StopAsyncIteration):
            await event()
    await api.until(f"{BOATS}/a", lambda answer: answer.doc["spec"].get("colour") == "white")


async def test_a_label_on_a_definition_ends_no_watch(api: Api) -> None:
    await launch(api)
    revision = (await api.get(BOATS)).doc["metadata"]["resourceVersion"]
    async with api.watch(f"{BOATS}?watch=true&resourceVersion={revision}") as event:
        await api.merge(f"{DEFINITIONS}/boats.sea.example.com", {"metadata": {"labels": {"x": "y"}}})
        await api.post(BOATS, boat("a"))
        assert (await event())["type"] == "ADDED"


async def test_names_that_are_taken_are_refused_until_they_are_free(api: Api) -> None:
    await launch(api)
    other = definition("ships.sea.example.com")
    await api.post(DEFINITIONS, other)
    said = await api.until(
        f"{DEFINITIONS}/ships.sea.example.com", lambda answer: bool(answer.doc.get("status", {}).get("conditions"))
    )
    assert said.doc["status"]["conditions"][0]["status"] == "False"
    await api.delete(f"{DEFINITIONS}/boats.sea.example.com")
    await api.until("/apis/sea.example.com/v1/namespaces/default/ships", lambda answer: answer.code == 200)


async def test_a_deleted_definition_takes_its_objects_along(api: Api) -> None:
    await launch(api)
    await api.post(BOATS, {**boat("a"), "metadata": {"name": "a", "finalizers": ["example.com/hold"]}})
    answer = await api.delete(f"{DEFINITIONS}/boats.sea.example.com")
    assert answer.doc["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    await api.until(f"{BOATS}/a", lambda answer: "deletionTimestamp" in answer.doc["metadata"])
    assert (await api.get(f"{DEFINITIONS}/boats.sea.example.com")).code == 200
    refused = await api.post(BOATS, boat("late"))
    assert (refused.code, refused.doc["message"]) == (
        405,
        "create not allowed while custom resource definition is terminating",
    )
    await api.merge(f"{BOATS}/a", {"metadata": {"finalizers": None}})
    await api.gone(f"{DEFINITIONS}/boats.sea.example.com")
    await api.gone(BOATS)


@pytest.mark.parametrize("accept", ["application/json", TABLE])
@pytest.mark.parametrize("names", [(), ("a",), ("a", "b", "c")])
async def test_a_watch_tells_what_goes_with_a_definition_and_ends_with_it(
    api: Api, accept: str, names: tuple[str, ...]
) -> None:
    await launch(api)
    for name in names:
        await api.post(BOATS, boat(name))
    revision = (await api.get(BOATS)).doc["metadata"]["resourceVersion"]
    async with api.watch(f"{BOATS}?watch=true&resourceVersion={revision}", accept=accept) as event:
        following = asyncio.create_task(_until_it_ends(event))
        await api.delete(f"{DEFINITIONS}/boats.sea.example.com")
        assert await following == ["DELETED"] * len(names)
    assert (await api.get(BOATS)).code == 404


async def test_a_watch_goes_on_while_an_object_holds_the_definition(api: Api) -> None:
    await launch(api)
    await api.post(BOATS, {**boat("a"), "metadata": {"name": "a", "finalizers": ["example.com/hold"]}})
    revision = (await api.get(BOATS)).doc["metadata"]["resourceVersion"]
    async with api.watch(f"{BOATS}?watch=true&resourceVersion={revision}") as event:
        await api.delete(f"{DEFINITIONS}/boats.sea.example.com")
        assert "deletionTimestamp" in (await event())["object"]["metadata"]
        await api.merge(f"{BOATS}/a", {"metadata": {"finalizers": None}})
        assert await _until_it_ends(event) == ["DELETED"]


async def test_a_watch_that_begins_while_its_kind_goes_ends(api: Api) -> None:
    """It lists first, and finds the kind gone when it would go on to follow."""
    await launch(api)
    served = api.server.registry.find("sea.example.com", "v1", "boats")
    assert served is not None
    async with api.watch(f"{BOATS}?watch=true") as event:
        api.server.registry.remove("sea.example.com", "v1", "boats")
        assert await _until_it_ends(event) == []
    api.server.registry.add(served)


async def _until_it_ends(event: Callable[[], Any]) -> list[str]:
    """The types of the events until the watch ends."""
    seen = []
    with contextlib.suppress(StopAsyncIteration):
        while True:
            seen.append((await event())["type"])
    return seen


async def test_a_definition_that_is_ending_can_still_be_written(api: Api) -> None:
    """Its own finalizer has no domain, which other built-in kinds may not have."""
    await launch(api)
    await api.post(BOATS, {**boat("a"), "metadata": {"name": "a", "finalizers": ["example.com/hold"]}})
    await api.delete(f"{DEFINITIONS}/boats.sea.example.com")
    changed = await api.merge(f"{DEFINITIONS}/boats.sea.example.com", {"metadata": {"labels": {"a": "b"}}})
    assert (changed.code, changed.doc["metadata"]["labels"]) == (200, {"a": "b"})
    await api.merge(f"{DEFINITIONS}/boats.sea.example.com", {"metadata": {"finalizers": None}})
    await api.gone(f"{DEFINITIONS}/boats.sea.example.com")


async def test_definitions_and_objects_are_there_after_a_restart() -> None:
    store = MemoryStore()
    async with running(store=store, keep_store=True) as api:
        await launch(api)
        await api.post(BOATS, boat("a", port="Hull"))
    async with running(store=store) as api:
        assert (await api.get(f"{BOATS}/a")).doc["spec"] == {"port": "Hull", "sails": 2}


async def test_what_a_rule_forgives_because_it_did_not_change_is_warned_of(api: Api) -> None:
    await api.post(DEFINITIONS, definition())
    await api.until(BOATS, lambda answer: answer.code == 200)
    assert (await api.post(BOATS, boat("a", sails=1, port="x"))).code == 201
    live = (await api.get(f"{DEFINITIONS}/boats.sea.example.com")).doc
    sails = live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["sails"]
    sails["x-kubernetes-validations"] = [{"rule": "self > 1", "message": "too few"}]
    assert (await api.put(f"{DEFINITIONS}/boats.sea.example.com", live)).code == 200

    def knows(_: Any) -> bool:
        served = api.server.registry.find("sea.example.com", "v1", "boats")
        return served is not None and "too few" in str(served.kind.schema.document)

    await api.until(BOATS, knows)
    refused = await api.post(BOATS, boat("b", sails=1))
    why = 'spec.sails: Invalid value: "integer": too few'
    assert refused.doc["message"] == f'Boat.sea.example.com "b" is invalid: {why}'
    answer = await api.merge(f"{BOATS}/a", {"spec": {"port": "y"}})
    assert (answer.code, answer.warnings) == (200, [why])


async def test_a_truth_in_place_of_a_number_is_a_change_where_there_is_no_type(api: Api) -> None:
    made = definition()
    schema = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"] = True
    await api.post(DEFINITIONS, made)
    boat = {"apiVersion": "sea.example.com/v1", "kind": "Boat", "metadata": {"name": "b"}}
    await api.apply(f"{BOATS}/b", {**boat, "spec": {"free": {"flag": 1, "list": [0, {"x": 1}]}}}, "one")
    before = (await api.get(f"{BOATS}/b")).doc
    after = (await api.merge(f"{BOATS}/b", {"spec": {"free": {"flag": True}}})).doc
    assert after["spec"]["free"]["flag"] is True
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    assert after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
    owners = {e["manager"]: e["fieldsV1"]["f:spec"]["f:free"] for e in after["metadata"]["managedFields"]}
    assert "f:flag" not in owners.pop("one")
    assert ["f:flag" in fields for fields in owners.values()] == [True]
    wanted = {**boat, "spec": {"free": {"flag": 1, "list": [0, {"x": 1}]}}}
    refused = await api.apply(f"{BOATS}/b", wanted, "one")
    assert refused.code == 409
    assert ".spec.free.flag" in refused.doc["message"]
    back = (await api.apply(f"{BOATS}/b", wanted, "one", force=True)).doc
    assert back["spec"]["free"]["flag"] is not True
    lists = [{"op": "replace", "path": "/spec/free/list", "value": [False, {"x": True}]}]
    listed = (await api.send("PATCH", f"{BOATS}/b", lists, "application/json-patch+json")).doc
    assert listed["spec"]["free"]["list"] == [False, {"x": True}]
    assert listed["spec"]["free"]["list"][0] is False
    assert listed["metadata"]["generation"] == back["metadata"]["generation"] + 1
    same = (await api.merge(f"{BOATS}/b", {"spec": {"free": {"flag": 1.0}}})).doc
    assert same["metadata"]["resourceVersion"] == listed["metadata"]["resourceVersion"]
