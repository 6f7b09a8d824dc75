from __future__ import annotations

import copy
from typing import Any

import pytest

from trimtab.model.schema import Schema
from trimtab.server.apply import update_managed_fields, with_old_times

NOW = "2024-05-01T10:00:00Z"
THEN = "2024-01-01T00:00:00Z"

SCHEMA = Schema(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"},
                    "list": {"type": "array", "items": {"type": "string"}},
                    "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                    "map": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "properties": {"name": {"type": "string"}, "value": {"type": "integer"}},
                        },
                    },
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "whole": {"type": "object", "x-kubernetes-map-type": "atomic"},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            },
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
        },
    }
)


def thing(**fields: Any) -> dict[str, Any]:
    metadata = {"name": "a", "uid": "1", "resourceVersion": "7", "generation": 1, **fields.pop("metadata", {})}
    return {"apiVersion": "test.dev/v1", "kind": "Thing", "metadata": metadata, **fields}


def entry(fields: Any, manager: str = "me", operation: str = "Update", time: str = THEN, **more: Any) -> dict[str, Any]:
    start = {"manager": manager, "operation": operation, "apiVersion": "test.dev/v1", "time": time}
    return {**start, "fieldsType": "FieldsV1", "fieldsV1": fields, **more}


def update(live: Any, new: Any, manager: str = "me", **options: Any) -> list[dict[str, Any]]:
    options = {"api_version": "test.dev/v1", "schema": SCHEMA, "now": NOW, **options}
    return update_managed_fields(live, new, manager=manager, **options)


def taken(old: dict[str, Any], new: dict[str, Any]) -> Any:
    """The fields of `spec` that a second writer owns after its change, and what is left to the first."""
    live = thing(spec=old)
    live["metadata"]["managedFields"] = update(None, live, "first", now=THEN)
    entries = update(live, thing(spec=new, metadata=live["metadata"]), "second")
    owned = {e["manager"]: e["fieldsV1"].get("f:spec", {}) for e in entries}
    return owned.get("second"), owned.get("first")


def test_a_create_owns_every_field_but_those_of_the_server() -> None:
    new = thing(
        spec={"size": 1, "list": ["a"], "map": [{"name": "x"}]},
        status={"phase": "New"},
        metadata={"labels": {"a": "b"}, "generateName": "a-", "creationTimestamp": THEN, "namespace": "default"},
    )
    fields = {
        "f:metadata": {"f:generateName": {}, "f:labels": {".": {}, "f:a": {}}},
        "f:spec": {
            ".": {},
            "f:list": {},
            "f:map": {".": {}, 'k:{"name":"x"}': {".": {}, "f:name": {}}},
            "f:size": {},
        },
    }
    assert update(None, new) == [entry(fields, time=NOW)]


def test_a_create_of_nothing_owns_nothing() -> None:
    assert update(None, thing()) == []


CHANGES: list[tuple[str, Any, Any, Any, Any]] = [
    ("a scalar", {"size": 1}, {"size": 2}, {"f:size": {}}, {}),
    ("an atomic list", {"list": ["a"]}, {"list": ["a", "b"]}, {"f:list": {}}, {}),
    ("an atomic map", {"whole": {"a": 1}}, {"whole": {"b": 1}}, {"f:whole": {}}, {}),
    (
        "an element of a set",
        {"set": ["a"]},
        {"set": ["b", "a"]},
        {"f:set": {'v:"b"': {}}},
        {".": {}, "f:set": {".": {}, 'v:"a"': {}}},
    ),
    (
        "a field of an element",
        {"map": [{"name": "a", "value": 1}]},
        {"map": [{"name": "b"}, {"name": "a", "value": 2}]},
        {"f:map": {'k:{"name":"a"}': {"f:value": {}}, 'k:{"name":"b"}': {".": {}, "f:name": {}}}},
        {".": {}, "f:map": {".": {}, 'k:{"name":"a"}': {".": {}, "f:name": {}}}},
    ),
    (
        "a removed element",
        {"map": [{"name": "a"}, {"name": "b"}]},
        {"map": [{"name": "b"}]},
        None,
        {".": {}, "f:map": {".": {}, 'k:{"name":"b"}': {".": {}, "f:name": {}}}},
    ),
    (
        "a key of a map",
        {"labels": {"a": "1"}},
        {"labels": {"a": "1", "b": "2"}},
        {"f:labels": {"f:b": {}}},
        {".": {}, "f:labels": {".": {}, "f:a": {}}},
    ),
    ("a removed map", {"labels": {"a": "1"}}, {}, None, {}),
    ("an emptied map", {"labels": {"a": "1"}}, {"labels": {}}, None, {".": {}, "f:labels": {}}),
    (
        "a list where a map was",
        {"free": {"x": {"y": 1}}},
        {"free": {"x": [1]}},
        {"f:free": {"f:x": {}}},
        {".": {}, "f:free": {}},
    ),
    (
        "a map where a scalar was",
        {"free": {"x": 1}},
        {"free": {"x": {"y": 1}}},
        {"f:free": {"f:x": {".": {}, "f:y": {}}}},
        {".": {}, "f:free": {}},
    ),
    (
        "a duplicate in a set",
        {"set": ["a"]},
        {"set": ["a", "a"]},
        {"f:set": {'v:"a"': {}}},
        {".": {}, "f:set": {}},
    ),
]


@pytest.mark.parametrize(("old", "new", "second", "first"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_the_writer_owns_what_it_changed_and_the_others_no_longer_do(
    old: Any, new: Any, second: Any, first: Any
) -> None:
    assert taken(old, new) == (second, first)


def test_a_write_without_a_change_leaves_the_time() -> None:
    entries = [entry({"f:spec": {"f:size": {}}})]
    live = thing(spec={"size": 1}, metadata={"managedFields": entries})
    assert update(live, copy.deepcopy(live)) == entries


def test_a_change_of_what_one_owns_renews_the_time_only() -> None:
    live = thing(spec={"size": 1}, metadata={"managedFields": [entry({"f:spec": {"f:size": {}}})]})
    new = thing(spec={"size": 2}, metadata=live["metadata"])
    assert update(live, new) == [entry({"f:spec": {"f:size": {}}}, time=NOW)]


def test_one_manager_in_two_versions_is_two() -> None:
    old = entry({"f:spec": {"f:list": {}, "f:size": {}}}) | {"apiVersion": "test.dev/v0"}
    live = thing(spec={"size": 1, "list": []}, metadata={"managedFields": [old]})
    new = thing(spec={"size": 2, "list": []}, metadata=live["metadata"])
    assert [e["apiVersion"] for e in update(live, new)] == ["test.dev/v0", "test.dev/v1"]


def test_entries_of_versions_that_are_gone_are_dropped() -> None:
    old = entry({"f:spec": {"f:list": {}}}) | {"apiVersion": "test.dev/v0"}
    live = thing(spec={"size": 1, "list": []}, metadata={"managedFields": [old]})
    new = thing(spec={"size": 2, "list": []}, metadata=live["metadata"])
    assert [e["apiVersion"] for e in update(live, new, served={"test.dev/v1"})] == ["test.dev/v1"]


def test_a_write_to_the_object_does_not_own_status() -> None:
    live = thing(spec={"size": 1}, metadata={"managedFields": [entry({"f:spec": {"f:size": {}}})]})
    new = thing(spec={"size": 1}, status={"phase": "New"}, metadata=live["metadata"])
    assert update(live, new) == live["metadata"]["managedFields"]


def test_a_write_to_status_owns_status_alone() -> None:
    live = thing(spec={"size": 1}, metadata={"managedFields": [entry({"f:spec": {"f:size": {}}})]})
    new = thing(spec={"size": 2}, status={"phase": "New"}, metadata=live["metadata"])
    status = entry({"f:status": {".": {}, "f:phase": {}}}, "me", time=NOW, subresource="status")
    assert update(live, new, subresource="status") == [*live["metadata"]["managedFields"], status]


def test_a_kind_without_a_status_subresource_lets_a_write_own_status() -> None:
    entries = update(None, thing(status={"phase": "New"}), reset={})
    assert entries == [entry({"f:status": {".": {}, "f:phase": {}}}, time=NOW)]


@pytest.mark.parametrize("sent", [[], [{}]])
def test_managed_fields_can_be_cleared(sent: Any) -> None:
    live = thing(spec={"size": 1}, metadata={"managedFields": [entry({"f:spec": {"f:size": {}}})]})
    assert update(live, thing(spec={"size": 2}, metadata={"managedFields": sent})) == []


def test_an_object_that_is_not_tracked_stays_so() -> None:
    assert update(thing(spec={"size": 1}), thing(spec={"size": 2})) == []


@pytest.mark.parametrize(
    "sent",
    [
        [{"manager": "x"}],
        [entry({}, operation="Frob")],
        [entry({"x": {}})],
        [entry({"f:a": 1})],
        [entry({}) | {"apiVersion": ""}],
        [entry({}) | {"fieldsType": ""}],
        [entry({}) | {"fieldsType": "FieldsV2"}],
        [entry({}, time="yesterday")],
        "nonsense",
        None,
    ],
)
def test_unsound_managed_fields_of_a_request_are_ignored(sent: Any) -> None:
    live = thing(spec={"size": 1}, metadata={"managedFields": [entry({"f:spec": {"f:size": {}}})]})
    new = thing(spec={"size": 1}, metadata={"managedFields": sent})
    assert update(live, new) == live["metadata"]["managedFields"]


def test_sound_managed_fields_of_a_request_count() -> None:
    live = thing(spec={"size": 1}, metadata={"managedFields": [entry({"f:spec": {"f:size": {}}})]})
    sent = [entry({"f:spec": {"f:size": {".": {}}}}, "other", time="2024-01-01T02:00:00+02:00")]
    new = thing(spec={"size": 1}, metadata={"managedFields": sent})
    assert update(live, new) == [entry({"f:spec": {"f:size": {}}}, "other")]


def test_managed_fields_are_not_taken_from_a_subresource() -> None:
    live = thing(spec={"size": 1}, metadata={"managedFields": [entry({"f:spec": {"f:size": {}}})]})
    new = thing(spec={"size": 1}, metadata={"managedFields": []})
    assert update(live, new, subresource="status") == live["metadata"]["managedFields"]


def test_entries_are_sorted_by_operation_time_and_manager() -> None:
    entries = [
        entry({"f:spec": {"f:size": {}}}, "z", "Apply"),
        entry({"f:spec": {"f:list": {}}}, "b"),
        entry({"f:spec": {"f:set": {}}}, "a", time="2024-02-01T00:00:00Z"),
    ]
    live = thing(spec={"size": 1, "list": [], "set": []}, metadata={"managedFields": entries})
    new = thing(spec={"size": 1, "list": [], "set": [], "free": {}}, metadata=live["metadata"])
    assert [e["manager"] for e in update(live, new, "0")] == ["z", "b", "a", "0"]


def test_the_eleventh_updater_sends_the_oldest_into_a_bucket() -> None:
    live: dict[str, Any] = thing(spec={"labels": {}})
    live["metadata"]["managedFields"] = update(None, live, "first", now=THEN)
    for number in range(10):
        labels = live["spec"]["labels"] | {str(number): "x"}
        new = thing(spec={"labels": labels}, metadata=live["metadata"])
        entries = update(live, new, f"updater-{number}", now=f"2024-02-{number + 1:02}T00:00:00Z")
        live = thing(spec={"labels": labels}, metadata=live["metadata"] | {"managedFields": entries})
    bucket, *others = live["metadata"]["managedFields"]
    assert bucket == entry(
        {"f:spec": {".": {}, "f:labels": {".": {}, "f:0": {}}}}, "ancient-changes", time="2024-02-01T00:00:00Z"
    )
    assert [e["manager"] for e in others] == [f"updater-{n}" for n in range(1, 10)]


def test_containers_that_a_built_in_kind_always_has_are_not_owned() -> None:
    new = {"kind": "Deployment", "metadata": {"name": "a"}, "spec": {"strategy": {"type": "Recreate"}}}
    schema = Schema({"type": "object", "properties": {"spec": {"type": "object"}}})
    entries = update(None, new, schema=schema, api_version="apps/v1")
    assert entries[0]["fieldsV1"] == {"f:spec": {"f:strategy": {"f:type": {}}}}


def test_a_change_that_was_undone_before_it_was_stored_leaves_the_times() -> None:
    old = thing(spec={"size": 1}, metadata={"managedFields": [entry({"f:spec": {"f:size": {}}})]})
    new = thing(spec={"size": 1}, metadata={"managedFields": [entry({"f:spec": {"f:size": {}}}, time=NOW)]})
    assert with_old_times(new, old) == old


@pytest.mark.parametrize(
    "new",
    [
        thing(spec={"size": 2}, metadata={"managedFields": [entry({"f:spec": {"f:size": {}}}, time=NOW)]}),
        thing(spec={"size": 1}, metadata={"managedFields": [entry({"f:spec": {}}, time=NOW)]}),
        thing(spec={"size": 1}, metadata={"managedFields": []}),
    ],
)
def test_a_change_of_more_than_times_is_one(new: Any) -> None:
    old = thing(spec={"size": 1}, metadata={"managedFields": [entry({"f:spec": {"f:size": {}}})]})
    assert with_old_times(new, old) is new


def test_nothing_given_is_changed() -> None:
    live = thing(spec={"size": 1, "set": ["a"]}, metadata={"managedFields": [entry({"f:spec": {"f:size": {}}})]})
    new = thing(spec={"size": 2, "set": ["b"]}, metadata=live["metadata"])
    before = copy.deepcopy((live, new))
    update(live, new, "other")
    assert (live, new) == before


def test_an_object_of_endless_depth_is_not_tracked() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert update(None, thing(spec={"free": deep})) == []
