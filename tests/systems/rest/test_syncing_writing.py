"""The body of a write: by which verb, and what is in it."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from tests.systems.rest.syncing_kit import KEY, PLAIN, kind
from trimtab.systems.rest.model import Call, FieldClass, Identity, Model, Node, Overlay, Writer
from trimtab.systems.rest.syncing.difference import difference
from trimtab.systems.rest.syncing.leaves import walk
from trimtab.systems.rest.syncing.paths import MISSING, get, parse, put
from trimtab.systems.rest.syncing.removing import next_removal
from trimtab.systems.rest.syncing.secrets import sealed
from trimtab.systems.rest.syncing.writing import Unwritable, Write, create_body, write_for

Body = dict[str, Any]

PUT = kind(patch=Writer.NONE)
PATCH = kind(tags_patch=False)
PATCH_TAGS = kind(tags_patch=True)
PLAIN_PATCH = kind(path=PLAIN, tags_patch=False)


def written(model: Model, desired: Body, applied: Body, live: Body, **options: Any) -> Write | None:
    before = sealed(model, applied, KEY)
    found = difference(model, desired=sealed(model, desired, KEY), applied=before, live=live)
    options = {"correct": True, **options}
    return write_for(model, found, live=live, desired=desired, applied=before, **options)


def sent(model: Model, desired: Body, applied: Body, live: Body, **options: Any) -> tuple[str, Body]:
    write = written(model, desired, applied, live, **options)
    assert write is not None
    return write.verb, write.body


def test_a_field_that_patch_takes_is_patched_alone() -> None:
    live = {"properties": {"size": 1, "note": "theirs"}}
    assert sent(PATCH, {"properties": {"size": 2}}, {"properties": {"size": 1}}, live) == (
        "patch",
        {"properties": {"size": 2}},
    )


def test_one_field_that_patch_does_not_take_makes_it_a_put_of_the_whole() -> None:
    live = {"id": "x", "etag": "1", "tags": {"a": "1", "t": "x"}, "properties": {"size": 1, "note": "theirs"}}
    desired = {"tags": {"a": "2"}, "properties": {"size": 2}}
    applied = {"tags": {"a": "1"}, "properties": {"size": 1}}
    assert sent(PATCH_TAGS, desired, applied, live) == (
        "update",
        {"tags": {"a": "2", "t": "x"}, "properties": {"size": 2, "note": "theirs"}},
    )
    assert sent(PATCH_TAGS, {**desired, "properties": {"size": 1}}, applied, live)[0] == "patch"


def test_a_forbidden_patch_is_a_put() -> None:
    model = msgspec.structs.replace(PATCH, overlay=Overlay(forbidden_patch=("properties.rules[].port", "tags")))
    live = {"tags": {"a": "1"}, "properties": {"size": 1}}
    assert sent(model, {"properties": {"size": 2}}, {"properties": {"size": 1}}, live)[0] == "patch"
    assert sent(model, {"tags": {"a": "2"}}, {"tags": {"a": "1"}}, live)[0] == "update"


def test_a_patch_that_is_a_list_of_operations_is_not_used() -> None:
    calls = msgspec.structs.replace(
        PATCH.calls, patch=Call(method="PATCH", path=PLAIN, content_type="application/json-patch+json")
    )
    model = msgspec.structs.replace(PATCH, calls=calls)
    assert sent(model, {"tags": {"a": "1"}}, {}, {})[0] == "update"


def test_the_tags_of_arm_are_patched_whole() -> None:
    live = {"tags": {"a": "1", "b": "1", "theirs": "x"}}
    desired, applied = {"tags": {"a": "2"}}, {"tags": {"a": "1", "b": "1"}}
    assert sent(PATCH, desired, applied, live) == ("patch", {"tags": {"a": "2", "theirs": "x"}})
    assert sent(PLAIN_PATCH, desired, applied, live) == ("patch", {"tags": {"a": "2", "b": None}})


def test_a_touched_list_is_patched_whole_with_what_is_others_in_it_and_without_what_is_read_only() -> None:
    live = {
        "properties": {
            "rules": [{"name": "web", "port": 80, "state": "ok"}, {"name": "theirs", "port": 9, "state": "ok"}],
            "hosts": ["x"],
        }
    }
    desired = {"properties": {"rules": [{"name": "web", "port": 81}]}}
    applied = {"properties": {"rules": [{"name": "web", "port": 80}]}}
    assert sent(PLAIN_PATCH, desired, applied, live) == (
        "patch",
        {"properties": {"rules": [{"name": "web", "port": 81}, {"name": "theirs", "port": 9}]}},
    )


def test_a_removed_object_goes_as_a_whole_when_nothing_in_it_is_anyone_elses() -> None:
    applied = {"properties": {"mode": "on", "net": {"a": "x", "deep": {"c": "y"}}}}
    desired = {"properties": {"mode": "on"}}
    assert sent(PLAIN_PATCH, desired, applied, applied) == ("patch", {"properties": {"net": None}})
    assert sent(PUT, desired, applied, applied) == ("update", {"properties": {"mode": "on"}})
    live = {"properties": {"mode": "on", "net": {"a": "x", "b": "theirs", "deep": {"c": "y"}}}}
    assert sent(PLAIN_PATCH, desired, applied, live) == ("patch", {"properties": {"net": {"a": None, "deep": None}}})
    assert sent(PUT, desired, applied, live) == ("update", {"properties": {"mode": "on", "net": {"b": "theirs"}}})


def test_an_object_goes_with_the_field_that_it_cannot_be_without() -> None:
    net = Node(type="object", required=("a",), properties={"a": Node(type="string"), "b": Node(type="string")})
    model = kind(path=PLAIN, tags_patch=False, properties={"net": net})
    live = {"properties": {"mode": "on", "net": {"a": "x", "b": "default"}}}
    applied = {"properties": {"mode": "on", "net": {"a": "x"}}}
    assert sent(model, {"properties": {"mode": "on"}}, applied, live) == ("patch", {"properties": {"net": None}})


def test_an_item_that_is_removed_takes_what_the_service_added_to_it_along() -> None:
    applied = {"properties": {"rules": [{"name": "a"}, {"name": "b"}]}}
    live = {"properties": {"rules": [{"name": "a"}, {"name": "b", "port": 5}, {"name": "theirs"}]}}
    desired = {"properties": {"rules": [{"name": "a"}]}}
    assert sent(PUT, desired, applied, live) == (
        "update",
        {"properties": {"rules": [{"name": "a"}, {"name": "theirs"}]}},
    )


def test_read_only_fields_masks_and_nulls_are_not_sent_back() -> None:
    live = {
        "id": "x",
        "name": "one",
        "etag": "1",
        "properties": {
            "provisioningState": "Succeeded",
            "secret": "***",
            "note": None,
            "mode": "<redacted>",
            "size": 1,
            "rules": [{"name": "a", "state": "ok", "password": ""}],
        },
    }
    assert sent(PUT, {"properties": {"size": 2}}, {"properties": {"size": 1}}, live) == (
        "update",
        {"properties": {"size": 2, "rules": [{"name": "a"}]}},
    )


def identities(value: Node) -> Model:
    """A kind whose map has what the service adds in each value."""
    model = kind(patch=Writer.NONE, properties={"identities": Node(type="map", items=value)})
    return msgspec.structs.replace(
        model, read_only={**model.read_only, "properties.identities.*.principalId": "readOnly"}
    )


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(Node(type="object"), id="of which nothing may be written"),
        pytest.param(Node(type="object", additional=True), id="which may have anything else"),
        pytest.param(Node(type="map", items=Node(type="string")), id="a map"),
    ],
)
def test_nor_is_what_is_read_only_in_the_values_of_a_map(value: Node) -> None:
    body = {"properties": {"size": 1, "identities": {"/a.b": {}}}}
    live = {"properties": {"size": 1, "identities": {"/a.b": {"principalId": "1"}}}}
    desired = {"properties": {"size": 2, "identities": {"/a.b": {}}}}
    assert sent(identities(value), desired, body, live) == ("update", desired)


def test_but_what_is_ignored_in_them_goes_back() -> None:
    model = identities(Node(type="object"))
    model = msgspec.structs.replace(model, overlay=Overlay(ignored=("properties.identities.*.note",)))
    live = {"properties": {"size": 1, "identities": {"a": {"principalId": "1", "note": "x"}}}}
    assert sent(model, {"properties": {"size": 2}}, {"properties": {"size": 1}}, live)[1] == {
        "properties": {"size": 2, "identities": {"a": {"note": "x"}}}
    }


def test_what_a_read_does_not_give_is_sent_again_with_every_put() -> None:
    body = {
        "properties": {
            "secret": "hunter2",
            "create": "x",
            "rules": [{"name": "a", "password": "swordfish"}],
            "steps": [{"x": 1, "key": "sesame"}],
        }
    }
    live = {"properties": {"rules": [{"name": "a", "password": "***"}], "steps": [{"x": 1}]}}
    desired = copy.deepcopy(body)
    desired["properties"]["size"] = 2
    verb, found = sent(PUT, desired, body, live)
    assert verb == "update"
    assert found == desired


def test_a_patch_sends_no_secret_that_did_not_change() -> None:
    desired = {"properties": {"secret": "hunter2", "size": 2}}
    applied = {"properties": {"secret": "hunter2", "size": 1}}
    assert sent(PLAIN_PATCH, desired, applied, {"properties": {"size": 1}})[1] == {"properties": {"size": 2}}
    changed = {"properties": {"secret": "swordfish", "size": 1}}
    assert sent(PLAIN_PATCH, changed, applied, {"properties": {"size": 1}})[1] == {
        "properties": {"secret": "swordfish"}
    }


def test_a_changed_secret_in_a_list_without_keys_is_written() -> None:
    applied = {"properties": {"steps": [{"x": 1, "key": "hunter2"}]}}
    desired = {"properties": {"steps": [{"x": 1, "key": "swordfish"}]}}
    live = {"properties": {"steps": [{"x": 1, "key": "***", "state": "ok"}]}}
    assert sent(PLAIN_PATCH, desired, applied, live) == ("patch", desired)
    assert sent(PUT, desired, applied, live) == ("update", desired)


def test_a_removed_secret_is_removed_unseen() -> None:
    applied = {"properties": {"secret": "hunter2", "size": 1}}
    desired, live = {"properties": {"size": 1}}, {"properties": {"size": 1}}
    assert sent(PLAIN_PATCH, desired, applied, live) == ("patch", {"properties": {"secret": None}})
    assert sent(PUT, desired, applied, live) == ("update", {"properties": {"size": 1}})


def test_embedded_children_survive_a_put() -> None:
    live = {"properties": {"size": 1, "rules": [{"name": "child", "port": 1, "state": "ok"}]}}
    body = sent(PUT, {"properties": {"size": 2}}, {"properties": {"size": 1}}, live)[1]
    assert body["properties"]["rules"] == [{"name": "child", "port": 1}]


def test_a_replacing_put_keeps_the_lists_that_are_kinds_of_their_own() -> None:
    live = {"properties": {"size": 1, "note": "theirs", "rules": [{"name": "child", "state": "ok"}]}}
    desired, applied = {"properties": {"size": 2}}, {"properties": {"size": 1}}
    replacing = msgspec.structs.replace(PUT, overlay=Overlay(update="replace"))
    assert sent(replacing, desired, applied, live) == ("update", {"properties": {"size": 2}})
    keeping = msgspec.structs.replace(PUT, overlay=Overlay(update="replace", keep=("properties.rules",)))
    assert sent(keeping, desired, applied, live)[1] == {"properties": {"size": 2, "rules": [{"name": "child"}]}}
    named = {"properties": {"size": 2, "rules": []}}
    assert sent(keeping, named, applied, live)[1] == named


def test_a_replacing_put_leaves_the_autoscalers_capacity_alone() -> None:
    replacing = kind(overlay=Overlay(update="replace"))
    live = {"sku": {"name": "A", "capacity": 9}}
    desired, applied = {"sku": {"name": "B", "capacity": 1}}, {"sku": {"name": "A", "capacity": 1}}
    assert sent(replacing, desired, applied, live) == ("update", {"sku": {"name": "B", "capacity": 9}})
    assert sent(PUT, desired, applied, live) == ("update", {"sku": {"name": "B", "capacity": 9}})


def test_ignored_fields_go_back_as_they_came() -> None:
    model = kind(patch=Writer.NONE, overlay=Overlay(ignored=("properties.theirs",)))
    live = {"properties": {"size": 1, "theirs": {"x": [1]}, "unheard": 1}}
    assert sent(model, {"properties": {"size": 2}}, {"properties": {"size": 1}}, live)[1] == {
        "properties": {"size": 2, "theirs": {"x": [1]}}
    }


def test_what_the_update_does_not_take_is_left_out_of_it_and_in_the_creation() -> None:
    first = Node(type="string", writers=Writer.CREATE, field=FieldClass.CREATE_ONLY)
    model = kind(patch=Writer.NONE, properties={"first": first})
    body = {"properties": {"first": "x", "size": 1}, "sku": {"capacity": 3}}
    assert create_body(model, body) == body
    changed = {"properties": {"first": "x", "size": 2}, "sku": {"capacity": 3}}
    live = {"properties": {"first": "x", "size": 1}, "sku": {"capacity": 5}}
    assert sent(model, changed, body, live)[1] == {"properties": {"size": 2}, "sku": {"capacity": 5}}


def test_constants_and_the_name_are_in_every_body() -> None:
    model = msgspec.structs.replace(
        PUT,
        overlay=Overlay(body={"kind": "Widget", "properties.source": "API"}),
        identity=Identity(parameter="widgetName", field="widgetName"),
    )
    desired = {"widgetName": "one", "properties": {"size": 1}}
    whole = {"widgetName": "one", "kind": "Widget", "properties": {"size": 1, "source": "API"}}
    assert create_body(model, desired) == whole
    live = {"widgetName": "one", "properties": {"size": 2}}
    assert sent(model, desired, desired, live)[1] == whole


@pytest.mark.parametrize("update", ["merge", "replace"])
@pytest.mark.parametrize("field", ["name", "meta.name"])
def test_the_name_is_only_in_bodies_that_take_it(update: str, field: str) -> None:
    model = msgspec.structs.replace(
        kind(path=PLAIN, patch=Writer.NONE, overlay=Overlay(update=update)),
        identity=Identity(parameter="widgetName", field=field, writers=Writer.CREATE),
    )
    desired = put({"tags": {"a": "2"}}, parse(field), "one")
    assert create_body(model, desired) == desired
    before = put({"tags": {"a": "1"}}, parse(field), "one")
    verb, body = sent(model, desired, before, {**before, "id": "x"})
    assert (verb, body["tags"], get(body, parse(field))) == ("update", {"a": "2"}, MISSING)


def test_a_name_that_only_creation_takes_is_not_compared_afterwards() -> None:
    model = msgspec.structs.replace(
        PLAIN_PATCH, identity=Identity(parameter="widgetName", field="name", writers=Writer.CREATE)
    )
    desired = {"name": "one", "tags": {"a": "1"}}
    for live in ({"name": "ONE.", "tags": {"a": "1"}}, {"tags": {"a": "1"}}):
        assert written(model, desired, {"tags": {"a": "1"}}, live) is None


def test_a_name_that_patch_does_not_take_is_put() -> None:
    model = msgspec.structs.replace(
        PLAIN_PATCH, identity=Identity(parameter="widgetName", field="name", writers=Writer.CREATE | Writer.UPDATE)
    )
    before, desired = {"name": "one", "tags": {"a": "1"}}, {"name": "one", "tags": {"a": "2"}}
    assert sent(model, desired, before, before) == ("patch", {"tags": {"a": "2"}})
    assert sent(model, desired, before, {**before, "name": "two"}) == ("update", desired)


def test_drift_is_written_only_when_it_is_to_be_corrected() -> None:
    body, live = {"tags": {"a": "1"}}, {"tags": {"a": "2"}}
    assert written(PATCH, body, body, live, correct=False) is None
    write = written(PATCH, body, body, live)
    assert write is not None
    assert write.reasons == (("tags.a", "drifted"),)


def test_drift_of_what_only_creation_takes_is_not_written() -> None:
    assert written(PATCH, {"location": "westus"}, {"location": "westus"}, {"location": "eastus"}) is None


def test_what_is_there_already_is_not_written() -> None:
    desired, applied = {"tags": {"a": "2"}}, {"tags": {"a": "1", "b": "1"}}
    assert written(PATCH, desired, applied, {"tags": {"a": "2"}}) is None


def test_each_path_has_its_reason() -> None:
    write = written(
        PATCH,
        {"tags": {"new": "1", "other": "2", "drifting": "1"}},
        {"tags": {"old": "1", "other": "1", "drifting": "1"}},
        {"tags": {"old": "1", "other": "1", "drifting": "9"}},
    )
    assert write is not None
    assert dict(write.reasons) == {
        "tags.drifting": "drifted",
        "tags.new": "set",
        "tags.old": "removed",
        "tags.other": "changed",
    }


def test_a_write_does_not_show_its_secrets() -> None:
    write = written(PUT, {"properties": {"secret": "hunter2"}}, {}, {})
    assert "hunter2" not in repr(write)


@pytest.mark.parametrize(
    ("model", "desired", "path"),
    [
        (msgspec.structs.replace(PATCH, overlay=Overlay(update="none")), {"tags": {"a": "1"}}, "tags.a"),
        (
            msgspec.structs.replace(PATCH_TAGS, overlay=Overlay(update="patch")),
            {"tags": {"a": "1"}, "properties": {"size": 1}},
            "properties.size",
        ),
        (kind(tags_patch=True, update=False), {"properties": {"size": 1}}, "properties.size"),
        (kind(patch=Writer.NONE, update=False), {"tags": {"a": "1"}}, "tags.a"),
        (
            kind(patch=Writer.NONE, properties={"first": Node(type="string", writers=Writer.CREATE)}),
            {"properties": {"first": "x"}},
            "properties.first",
        ),
        (PATCH, {"location": "eastus"}, "location"),
    ],
)
def test_what_no_call_takes_is_said_by_its_path(model: Model, desired: Body, path: str) -> None:
    with pytest.raises(Unwritable, match=path.replace(".", r"\.")) as caught:
        written(model, desired, {}, {"location": "westus"})
    assert caught.value.paths == (path,)


def test_a_creation_that_changes_what_exists_is_an_update() -> None:
    model = kind(patch=Writer.NONE, update=False, overlay=Overlay(upsert=True))
    assert sent(model, {"tags": {"a": "1"}}, {}, {})[0] == "update"


@pytest.mark.parametrize(
    ("attempt", "patched", "put"),
    [(0, None, {"mode": "on"}), (1, None, {"mode": "on", "hosts": None}), (2, [], {"mode": "on", "hosts": []})],
)
def test_each_attempt_removes_in_another_way(attempt: int, patched: Any, put: Body) -> None:
    applied = {"properties": {"mode": "on", "hosts": ["x"]}}
    desired, removals = {"properties": {"mode": "on"}}, {"properties.hosts": attempt}
    assert sent(PLAIN_PATCH, desired, applied, applied, removals=removals)[1] == {"properties": {"hosts": patched}}
    assert sent(PUT, desired, applied, applied, removals=removals)[1] == {"properties": put}


def test_the_last_attempt_is_the_default() -> None:
    applied: Body = {"properties": {"mode": "on", "size": 3}}
    desired: Body = {"properties": {"mode": "on"}}
    body = sent(PUT, desired, applied, applied, removals={"properties.size": 3})[1]
    assert body == {"properties": {"mode": "on", "size": 10}}


@pytest.mark.parametrize(("way", "put"), [("null", None), ("empty", []), ("omit", ...)])
def test_the_overlay_says_how_a_field_is_removed(way: str, put: Any) -> None:
    model = msgspec.structs.replace(PUT, overlay=Overlay(removal={"properties.hosts": way}))
    applied = {"properties": {"mode": "on", "hosts": ["x"]}}
    body = sent(model, {"properties": {"mode": "on"}}, applied, applied)[1]
    assert body["properties"].get("hosts", ...) == put
    leaf = walk(model, applied)["properties.hosts"]
    assert next_removal(model, leaf, 0) is None


@pytest.mark.parametrize(
    ("body", "path", "verb", "rungs"),
    [
        ({"hosts": ["x"]}, "properties.hosts", "update", [1, 2]),
        ({"hosts": ["x"]}, "properties.hosts", "patch", [2]),
        ({"size": 1}, "properties.size", "update", [1, 3]),
        ({"note": "x"}, "properties.note", "update", [1, 2]),
        ({"rules": [{"name": "a", "port": 1}]}, "properties.rules[name=a].port", "update", [1, 2]),
    ],
)
def test_there_is_a_next_way_until_there_is_none(body: Body, path: str, verb: str, rungs: list[int]) -> None:
    leaf, tried, found = walk(PUT, {"properties": body})[path], 0, []
    while (rung := next_removal(PUT, leaf, tried, desired={}, verb=verb)) is not None:
        found.append(rung)
        tried = rung
    assert found == rungs


def test_there_is_one_way_to_leave_an_item_out_of_a_list() -> None:
    leaf = walk(PUT, {"properties": {"rules": [{"name": "a"}, {"name": "b"}]}})["properties.rules[name=b].name"]
    assert next_removal(PUT, leaf, 0, desired={"properties": {"rules": [{"name": "a"}]}}) is None


POOL = Node(
    type="object",
    required=("name",),
    properties={
        "name": Node(type="string"),
        "disk": Node(type="string", field=FieldClass.CREATE_ONLY),
        "count": Node(type="integer", field=FieldClass.INITIAL),
    },
)
POOLS = {
    "pools": Node(type="array", keys=("name",), items=POOL),
    "poolsByName": Node(type="map", items=POOL),
}


@pytest.mark.parametrize("overlay", [Overlay(), Overlay(update="replace")])
def test_a_new_item_is_given_what_only_a_creation_takes_and_an_old_one_keeps_it(overlay: Overlay) -> None:
    model = kind(patch=Writer.NONE, properties=POOLS, overlay=overlay)
    applied = {"properties": {"pools": [{"name": "a", "disk": "ssd", "count": 1}]}}
    live = {"properties": {"pools": [{"name": "a", "disk": "ssd", "count": 7}]}}
    new = {"name": "b", "disk": "hdd", "count": 2}
    desired = {"properties": {"pools": [{"name": "a", "disk": "ssd", "count": 3}, new]}}
    assert sent(model, desired, applied, live)[1] == {
        "properties": {"pools": [{"name": "a", "disk": "ssd", "count": 7}, new]}
    }
    # And an item that another hand removed is made again, as a whole.
    assert sent(model, applied, applied, {"properties": {"pools": []}})[1] == applied
    # And one that is no longer wanted goes, whatever it was made with.
    both = {"properties": {"pools": [*applied["properties"]["pools"], new]}}
    assert sent(model, applied, both, both)[1] == applied


def test_a_new_value_of_a_map_is_given_what_only_a_creation_takes() -> None:
    model = kind(patch=Writer.NONE, properties=POOLS)
    desired = {"properties": {"poolsByName": {"a": {"name": "a", "disk": "ssd", "count": 1}}}}
    assert sent(model, desired, {}, {"properties": {"poolsByName": {}}})[1] == desired


def test_what_only_a_creation_takes_is_not_changed_in_an_item_that_is_there() -> None:
    model = kind(patch=Writer.NONE, properties=POOLS)
    old = {"properties": {"pools": [{"name": "a", "disk": "ssd"}]}}
    with pytest.raises(Unwritable, match="disk"):
        written(model, {"properties": {"pools": [{"name": "a", "disk": "hdd"}]}}, old, old)


def test_a_list_that_only_a_creation_takes_gets_no_items_later() -> None:
    fixed = Node(type="array", keys=("name",), field=FieldClass.CREATE_ONLY, items=POOL)
    model = kind(patch=Writer.NONE, properties={"pools": fixed})
    old = {"properties": {"pools": [{"name": "a"}]}}
    with pytest.raises(Unwritable, match="name=b"):
        written(model, {"properties": {"pools": [{"name": "a"}, {"name": "b"}]}}, old, old)


def test_nothing_is_left_of_the_variant_that_it_was() -> None:
    shape = Node(
        type="object",
        discriminator="kind",
        variants={"round": "Round", "square": "Square"},
        properties={"kind": Node(type="string")},
    )
    both = {"kind": Node(type="string")}
    model = msgspec.structs.replace(
        kind(patch=Writer.NONE, properties={"shape": shape}),
        types={
            "Round": Node(type="object", properties={**both, "radius": Node(), "precision": Node()}),
            "Square": Node(type="object", properties={**both, "side": Node()}),
        },
    )
    applied = {"properties": {"shape": {"kind": "round", "radius": 1}}}
    live = {"properties": {"shape": {"kind": "round", "radius": 1, "precision": 2}}}
    desired = {"properties": {"shape": {"kind": "square", "side": 3}}}
    assert sent(model, desired, applied, live)[1] == desired


def test_the_last_tag_of_arm_goes_by_no_tags_at_all() -> None:
    applied = {"tags": {"a": "1"}}
    assert sent(PATCH, {}, applied, applied) == ("patch", {"tags": {}})
    assert sent(PLAIN_PATCH, {}, applied, applied) == ("patch", {"tags": None})


def test_the_overlay_may_say_how_an_object_is_removed_as_a_whole() -> None:
    model = msgspec.structs.replace(PUT, overlay=Overlay(removal={"properties.net": "null"}))
    applied = {"properties": {"mode": "on", "net": {"a": "x"}}}
    assert sent(model, {"properties": {"mode": "on"}}, applied, applied)[1] == {
        "properties": {"mode": "on", "net": None}
    }
    assert next_removal(model, walk(model, applied)["properties.net.a"], 0) is None


def test_nothing_that_is_given_is_changed() -> None:
    desired = {"tags": {"a": "1"}, "properties": {"rules": [{"name": "a", "port": 1}], "secret": "x"}}
    applied = {"tags": {"b": "1"}, "properties": {"rules": [{"name": "b"}], "net": {"a": "x"}}}
    live = {"id": "x", "properties": {"rules": [{"name": "b"}, {"name": "c"}], "net": {"a": "x"}}}
    before = copy.deepcopy((desired, applied, live))
    written(PUT, desired, applied, live)
    written(PATCH, desired, applied, live)
    assert (desired, applied, live) == before
