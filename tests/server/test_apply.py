from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.model.errors import StatusError
from trimtab.model.schema import Schema
from trimtab.server.apply import apply, update_managed_fields
from trimtab.server.apply.fieldset import paths, shown
from trimtab.server.apply.merge import merge
from trimtab.server.apply.prune import prune, prune_here
from trimtab.server.apply.typed import fields_of
from trimtab.server.apply.types import root_type

NOW = "2024-05-01T10:00:00Z"
LATER = "2024-06-01T10:00:00Z"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def keyed(*keys: str, **properties: Any) -> dict[str, Any]:
    items = {"type": "object", "properties": properties}
    return {"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [*keys]}


STRING, INTEGER = {"type": "string"}, {"type": "integer"}
SCHEMA = Schema(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": INTEGER,
                    "text": STRING,
                    "flag": {"type": "boolean"},
                    "list": {"type": "array", "items": STRING},
                    "set": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
                    "map": keyed(
                        "name",
                        name=STRING,
                        value=INTEGER,
                        tags={"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
                        inner=keyed("id", id=INTEGER, value=STRING),
                    ),
                    "ports": keyed("port", "protocol", port=INTEGER, protocol=STRING | {"default": "TCP"}, name=STRING),
                    "labels": {"type": "object", "additionalProperties": STRING},
                    "nest": {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}},
                    "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": STRING},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "any": {"x-kubernetes-preserve-unknown-fields": True},
                },
            },
            "status": {"type": "object", "properties": {"phase": STRING}},
        },
    }
)


class Thing:
    """An object on a server that does nothing but apply and update."""

    def __init__(self, schema: Schema = SCHEMA) -> None:
        self.schema = schema
        self.live: dict[str, Any] | None = None

    def apply(self, manager: str, spec: Any, *, force: bool = False, now: str = NOW, **more: Any) -> Any:
        before = copy.deepcopy((self.live, spec))
        given = (self.live, spec)
        self.live = apply(
            self.live,
            config(spec, **more),
            manager=manager,
            force=force,
            api_version="test.dev/v1",
            schema=self.schema,
            now=now,
        )
        assert given == before, "an apply changed what it was given"
        return self.spec

    def update(self, manager: str, spec: Any, now: str = NOW) -> None:
        new = config(spec) | {"metadata": {"name": "a", "uid": "1"}}
        live = None if self.live is None else self.live | {"metadata": self.live["metadata"] | {"uid": "1"}}
        entries = update_managed_fields(
            live, new, manager=manager, api_version="test.dev/v1", schema=self.schema, now=now
        )
        new["metadata"]["managedFields"] = entries
        self.live = new

    @property
    def spec(self) -> Any:
        assert self.live is not None
        return self.live.get("spec")

    def owned(self, manager: str) -> set[str]:
        """The paths below `.spec` that a manager owns."""
        assert self.live is not None
        entries = [e for e in self.live["metadata"].get("managedFields", []) if e["manager"] == manager]
        return {shown(path).removeprefix(".spec") for entry in entries for path in paths(entry["fieldsV1"])}

    def time(self, manager: str) -> str | None:
        assert self.live is not None
        found: str | None = next(
            e.get("time") for e in self.live["metadata"]["managedFields"] if e["manager"] == manager
        )
        return found


def config(spec: Any, **more: Any) -> dict[str, Any]:
    document = {"apiVersion": "test.dev/v1", "kind": "Thing", "metadata": {"name": "a"}, **more}
    return document if spec is None else document | {"spec": spec}


def test_an_apply_creates_the_object_and_owns_what_it_says() -> None:
    thing = Thing()
    assert thing.apply("one", {"size": 1, "map": [{"name": "a"}]}) == {"size": 1, "map": [{"name": "a"}]}
    assert thing.live is not None
    assert thing.live["metadata"]["managedFields"] == [
        {
            "manager": "one",
            "operation": "Apply",
            "apiVersion": "test.dev/v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:map": {'k:{"name":"a"}': {".": {}, "f:name": {}}}, "f:size": {}}},
        }
    ]


MERGES: list[tuple[str, Any, Any, Any]] = [
    ("scalars side by side", {"size": 1}, {"text": "a"}, {"size": 1, "text": "a"}),
    ("objects", {"nest": {"a": 1}}, {"nest": {"b": 2}}, {"nest": {"a": 1, "b": 2}}),
    ("sets", {"set": ["a", "b"]}, {"set": ["c"]}, {"set": ["a", "b", "c"]}),
    ("sets with common elements", {"set": ["a", "b"]}, {"set": ["c", "b"]}, {"set": ["a", "c", "b"]}),
    (
        "lists by key",
        {"map": [{"name": "a", "value": 1}, {"name": "b"}]},
        {"map": [{"name": "b", "value": 2}, {"name": "c"}]},
        {"map": [{"name": "a", "value": 1}, {"name": "b", "value": 2}, {"name": "c"}]},
    ),
    (
        "elements by a key that is defaulted",
        {"ports": [{"port": 1, "name": "x"}]},
        {"ports": [{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}]},
        {"ports": [{"port": 1, "name": "x", "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}]},
    ),
    (
        "lists in lists",
        {"map": [{"name": "a", "inner": [{"id": 1, "value": "x"}], "tags": ["t"]}]},
        {"map": [{"name": "a", "inner": [{"id": 2}], "tags": ["s"]}]},
        {"map": [{"name": "a", "inner": [{"id": 1, "value": "x"}, {"id": 2}], "tags": ["t", "s"]}]},
    ),
    ("maps", {"labels": {"a": "1"}}, {"labels": {"b": "2"}}, {"labels": {"a": "1", "b": "2"}}),
    (
        "maps without a type",
        {"free": {"a": {"b": 1}}},
        {"free": {"a": {"c": [1]}}},
        {"free": {"a": {"b": 1, "c": [1]}}},
    ),
    ("a place without a type", {"any": {"a": 1}}, {"any": {"b": 2}}, {"any": {"a": 1, "b": 2}}),
]


@pytest.mark.parametrize(("first", "second", "merged"), [c[1:] for c in MERGES], ids=[c[0] for c in MERGES])
def test_what_two_managers_say_is_merged(first: Any, second: Any, merged: Any) -> None:
    thing = Thing()
    thing.apply("one", first)
    assert thing.apply("two", second) == merged


@pytest.mark.parametrize(("first", "second", "merged"), [c[1:] for c in MERGES], ids=[c[0] for c in MERGES])
def test_what_one_manager_no_longer_says_goes_and_the_others_word_stays(first: Any, second: Any, merged: Any) -> None:
    thing = Thing()
    thing.apply("one", first)
    thing.apply("two", second)
    thing.apply("one", None)
    assert thing.spec == second


PRUNES: list[tuple[str, Any, Any, Any]] = [
    ("a scalar", {"size": 1, "text": "a"}, {"size": 1}, {"size": 1}),
    ("an object", {"nest": {"a": 1}, "size": 1}, {"size": 1}, {"size": 1}),
    ("a field of an object", {"nest": {"a": 1, "b": 2}}, {"nest": {"b": 2}}, {"nest": {"b": 2}}),
    ("an element of a set", {"set": ["a", "b"]}, {"set": ["b"]}, {"set": ["b"]}),
    ("an element", {"map": [{"name": "a"}, {"name": "b"}]}, {"map": [{"name": "b"}]}, {"map": [{"name": "b"}]}),
    ("a field of an element", {"map": [{"name": "a", "value": 1}]}, {"map": [{"name": "a"}]}, {"map": [{"name": "a"}]}),
    ("a key of a map", {"labels": {"a": "1", "b": "2"}}, {"labels": {"b": "2"}}, {"labels": {"b": "2"}}),
    ("an element of an atomic list", {"list": ["a", "b"]}, {"list": ["b"]}, {"list": ["b"]}),
    ("the last key of a map", {"labels": {"a": "1"}}, {"labels": {}}, {"labels": None}),
]


@pytest.mark.parametrize(("before", "after", "left"), [c[1:] for c in PRUNES], ids=[c[0] for c in PRUNES])
def test_what_its_only_manager_no_longer_says_is_removed(before: Any, after: Any, left: Any) -> None:
    thing = Thing()
    thing.apply("one", before)
    assert thing.apply("one", after) == left


def test_a_field_that_nobody_owns_stays_in_what_remains() -> None:
    thing = Thing()
    thing.apply("one", {"map": [{"name": "a"}], "nest": {"a": 1}})
    assert thing.live is not None
    thing.live["spec"] = {"map": [{"name": "a", "value": 5}], "nest": {"a": 1, "b": 9}}  # as defaulting would
    assert thing.apply("one", {"map": [{"name": "a"}], "size": 1}) == {"map": [{"name": "a", "value": 5}], "size": 1}


def test_a_field_that_an_updater_changed_stays_when_its_applier_gives_it_up() -> None:
    thing = Thing()
    thing.apply("one", {"size": 1, "text": "a"})
    thing.update("two", {"size": 2, "text": "a"})
    assert thing.apply("one", {"text": "a"}) == {"size": 2, "text": "a"}


def test_a_shared_field_can_be_given_up_without_a_loss() -> None:
    thing = Thing()
    thing.apply("one", {"size": 1})
    thing.apply("two", {"size": 1})
    thing.apply("one", {})
    assert thing.spec == {"size": 1}
    assert (thing.owned("one"), thing.owned("two")) == ({""}, {".size"})


def conflict(thing: Thing, manager: str, spec: Any) -> StatusError:
    with pytest.raises(StatusError) as failure:
        thing.apply(manager, spec)
    return failure.value


def test_a_conflict_names_the_field_and_its_manager() -> None:
    thing = Thing()
    thing.update("kubectl-client-side-apply", {"size": 1})
    cause = 'conflict with "kubectl-client-side-apply" using test.dev/v1'
    assert conflict(thing, "me", {"size": 2}).status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"Apply failed with 1 conflict: {cause}: .spec.size",
        "reason": "Conflict",
        "details": {
            "causes": [
                {
                    "reason": "FieldManagerConflict",
                    "message": cause,
                    "field": ".spec.size",
                }
            ]
        },
        "code": 409,
    }


def test_several_conflicts_are_listed_by_manager() -> None:
    thing = Thing()
    thing.apply("zed", {"map": [{"name": "a", "value": 1}], "size": 1})
    thing.apply("abe", {"text": "a"})
    message = conflict(thing, "me", {"text": "b", "size": 2, "map": [{"name": "a", "value": 2}]}).message
    assert message == (
        'Apply failed with 3 conflicts: conflicts with "abe":\n- .spec.text\n'
        'conflicts with "zed":\n- .spec.size\n- .spec.map[name="a"].value'
    )


CONFLICTS: list[tuple[str, Any, Any, str]] = [
    ("an atomic list", {"list": ["a"]}, {"list": ["a", "b"]}, ".spec.list"),
    ("an atomic map", {"whole": {"a": "1"}}, {"whole": {"b": "1"}}, ".spec.whole"),
    ("a list without a type", {"free": {"l": [1]}}, {"free": {"l": [2]}}, ".spec.free.l"),
    ("a field of an element", {"ports": [{"port": 1, "name": "a"}]}, {"ports": [{"port": 1, "name": "b"}]}, ".name"),
    ("a key of a map", {"labels": {"a": "1"}}, {"labels": {"a": "2"}}, ".spec.labels.a"),
    ("a scalar where a map was", {"free": {"x": {"y": 1}}}, {"free": {"x": 1}}, ".spec.free.x"),
]


@pytest.mark.parametrize(("first", "second", "field"), [c[1:] for c in CONFLICTS], ids=[c[0] for c in CONFLICTS])
def test_a_change_of_what_another_owns_is_a_conflict(first: Any, second: Any, field: str) -> None:
    thing = Thing()
    thing.apply("one", first)
    details = conflict(thing, "two", second).details
    assert details is not None
    assert [cause["field"].endswith(field) for cause in details["causes"]] == [True]


def test_force_moves_ownership() -> None:
    thing = Thing()
    thing.apply("one", {"size": 1, "text": "a"})
    assert thing.apply("two", {"size": 2}, force=True) == {"size": 2, "text": "a"}
    assert (thing.owned("one"), thing.owned("two")) == ({".text"}, {".size"})


def test_a_manager_that_lost_all_its_fields_is_forgotten() -> None:
    thing = Thing()
    thing.apply("one", {"size": 1})
    thing.apply("two", {"size": 2}, force=True)
    assert thing.owned("one") == set()


def test_an_apply_without_a_change_leaves_the_object_and_its_times() -> None:
    thing = Thing()
    thing.apply("one", {"size": 1})
    before = copy.deepcopy(thing.live)
    thing.apply("one", {"size": 1}, now=LATER)
    assert thing.live == before


def test_a_change_renews_the_appliers_time_alone() -> None:
    thing = Thing()
    thing.apply("one", {"size": 1})
    thing.apply("two", {"text": "a"})
    thing.apply("two", {"text": "b"}, now=LATER)
    assert (thing.time("one"), thing.time("two")) == (NOW, LATER)


def test_what_was_there_before_the_first_apply_is_owned_by_nobody_in_particular() -> None:
    thing = Thing()
    thing.live = config({"size": 1}) | {"metadata": {"name": "a", "uid": "1"}}
    assert 'conflict with "before-first-apply" using test.dev/v1' in conflict(thing, "me", {"size": 2}).message
    thing.apply("me", {"text": "a"})
    assert thing.owned("before-first-apply") == {"", ".size"}


def test_status_is_not_applied_to_the_object() -> None:
    thing = Thing()
    thing.apply("one", {"size": 1}, status={"phase": "New"})
    assert thing.owned("one") == {".size"}


def test_a_field_that_became_atomic_is_owned_as_a_whole() -> None:
    thing = Thing()
    thing.apply("one", {"labels": {"a": "1"}})
    document = json.loads(json.dumps(SCHEMA.document))
    document["properties"]["spec"]["properties"]["labels"]["x-kubernetes-map-type"] = "atomic"
    thing.schema = Schema(document)
    assert conflict(thing, "two", {"labels": {"b": "1"}}).message.endswith('conflict with "one": .spec.labels')


OMITTED = (
    '.spec.map: element 0: associative list with keys has an element that omits key field "name" '
    "(and doesn't have default value)"
)
UNSOUND: list[tuple[str, Any, str]] = [
    ("an unknown field", {"odd": 1}, ".spec.odd: field not declared in schema"),
    ("a duplicate in a set", {"set": ["a", "a"]}, '.spec.set: duplicate entries for key [="a"]'),
    ("a duplicate key", {"map": [{"name": "a"}] * 2}, '.spec.map: duplicate entries for key [name="a"]'),
    (
        "a missing key",
        {"map": [{"value": 1}]},
        OMITTED,
    ),
    (
        "a null element",
        {"map": [None]},
        ".spec.map: element 0: associative list with keys may not have a null element",
    ),
    (
        "an element that is no object",
        {"map": ["a"]},
        ".spec.map: element 0: associative list with keys may not have non-map elements",
    ),
    (
        "an object in a set",
        {"set": [{}]},
        ".spec.set: element 0: associative list without keys has an element that's a map type",
    ),
    ("a string for a number", {"size": "1"}, ".spec.size: expected numeric (int or float), got string"),
    ("a number for a string", {"text": 1}, ".spec.text: expected string, got &value.valueUnstructured{Value:1}"),
    ("a string for a boolean", {"flag": "yes"}, ".spec.flag: expected boolean, got &{yes}"),
    ("a scalar for an object", {"nest": 1}, ".spec.nest: expected map, got &{1}"),
    ("an object for a list", {"list": {"a": 1}}, ".spec.list: expected list, got &{map[a:1]}"),
    (
        "two things at once",
        {"size": "1", "flag": 0},
        "errors:\n  .spec.size: expected numeric (int or float), got string\n  .spec.flag: expected boolean, got &{0}",
    ),
]


@pytest.mark.parametrize(("spec", "text"), [c[1:] for c in UNSOUND], ids=[c[0] for c in UNSOUND])
def test_an_unsound_configuration_is_refused_with_the_words_of_the_api(spec: Any, text: str) -> None:
    failure = conflict(Thing(), "me", spec)
    assert (failure.code, failure.message) == (
        500,
        f"failed to create typed patch object (/a; test.dev/v1, Kind=Thing): {text}",
    )


def test_a_configuration_may_not_carry_managed_fields() -> None:
    with pytest.raises(StatusError, match=r"metadata\.managedFields must be nil"):
        Thing().apply("me", {}, metadata={"name": "a", "managedFields": []})


def test_a_configuration_of_another_version_is_refused() -> None:
    with pytest.raises(StatusError, match=r"invalid object type: test\.dev/v2, Kind=Thing"):
        Thing().apply("me", {}, apiVersion="test.dev/v2")


def client_side(thing: Thing, spec: Any) -> None:
    """What `kubectl apply` without server-side leaves."""
    annotations = {ANNOTATION: json.dumps(config(spec))}
    new = config(spec) | {"metadata": {"name": "a", "annotations": annotations}}
    entries = update_managed_fields(
        None, new, manager="kubectl-client-side-apply", api_version="test.dev/v1", schema=thing.schema, now=NOW
    )
    new["metadata"]["managedFields"] = entries
    thing.live = new


def test_kubectl_takes_over_what_it_applied_from_the_clients_side() -> None:
    thing = Thing()
    client_side(thing, {"size": 1, "text": "a"})
    assert thing.apply("kubectl", {"size": 2, "text": "a"}) == {"size": 2, "text": "a"}
    assert thing.live is not None
    last = json.loads(thing.live["metadata"]["annotations"][ANNOTATION])
    assert last["spec"] == {"size": 2, "text": "a"}


def test_kubectl_does_not_take_over_what_changed_since() -> None:
    thing = Thing()
    client_side(thing, {"size": 1, "text": "a"})
    assert thing.live is not None
    thing.live["spec"]["size"] = 7
    message = conflict(thing, "kubectl", {"size": 2, "text": "b"}).message
    assert message.endswith('conflict with "kubectl-client-side-apply" using test.dev/v1: .spec.size')


def test_another_manager_inherits_nothing_from_kubectl() -> None:
    thing = Thing()
    client_side(thing, {"size": 1})
    assert conflict(thing, "me", {"size": 2}).code == 409


NAMES = st.sampled_from(["a", "b", "c"])
NUMBERS = st.integers(0, 2)
FREE = st.recursive(
    NUMBERS | NAMES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, min_size=1, max_size=2),
    max_leaves=4,
)
ELEMENTS = st.fixed_dictionaries(
    {"name": NAMES}, optional={"value": NUMBERS, "tags": st.lists(NAMES, unique=True, min_size=1, max_size=3)}
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": NUMBERS,
        "list": st.lists(NAMES, max_size=2),
        "set": st.lists(NAMES, unique=True, min_size=1, max_size=3),
        "map": st.lists(ELEMENTS, unique_by=lambda e: e["name"], min_size=1, max_size=3),
        "labels": st.dictionaries(NAMES, NAMES, min_size=1, max_size=2),
        "nest": st.fixed_dictionaries({"a": NUMBERS}, optional={"b": NUMBERS}),
        "free": st.dictionaries(NAMES, FREE, min_size=1, max_size=2),
    },
)

LOOSE = SPECS | st.fixed_dictionaries(  # with empty containers, which no set of fields holds
    {},
    optional={
        "size": NUMBERS,
        "set": st.lists(NAMES, unique=True, max_size=2),
        "map": st.lists(ELEMENTS, unique_by=lambda e: e["name"], max_size=2),
        "labels": st.dictionaries(NAMES, NAMES, max_size=2),
        "nest": st.fixed_dictionaries({}, optional={"a": NUMBERS}),
    },
)


@settings(max_examples=150)
@given(SPECS)
def test_a_merge_with_itself_is_itself(spec: Any) -> None:
    assert merge(root_type(SCHEMA), config(spec), config(spec)) == config(spec)


@settings(max_examples=150)
@given(SPECS, SPECS)
def test_applying_twice_is_applying_once(first: Any, second: Any) -> None:
    thing = Thing()
    thing.apply("one", first)
    thing.apply("two", second, force=True)
    once = copy.deepcopy(thing.live)
    thing.apply("two", second, force=True, now=LATER)
    assert thing.live == once


@settings(max_examples=150)
@given(SPECS, SPECS)
def test_after_an_apply_its_manager_owns_exactly_what_it_said(first: Any, second: Any) -> None:
    alone, thing = Thing(), Thing()
    alone.apply("me", second)
    thing.update("other", first)
    thing.apply("me", first, force=True)
    thing.apply("me", second, force=True)
    assert thing.owned("me") == alone.owned("me")


@settings(max_examples=200)
@given(LOOSE, LOOSE, LOOSE)
def test_pruning_where_something_was_given_up_is_pruning_everywhere(last: Any, new: Any, other: Any) -> None:
    kind = root_type(SCHEMA)
    merged = merge(kind, merge(kind, config(last), config(other)), config(new))
    sets = [fields_of(kind, config(spec)) for spec in (last, new, other)]
    assert prune(kind, merged, *sets[:2], sets[1:]) == prune_here(kind, merged, sets[0], sets[1:])


@settings(max_examples=150)
@given(SPECS, SPECS)
def test_what_was_said_is_so_and_in_one_hand_nothing_else_is(first: Any, second: Any) -> None:
    thing = Thing()
    thing.apply("me", first)
    thing.apply("me", second)
    assert without_nulls(thing.spec or {}) == second


def without_nulls(value: Any) -> Any:
    """What an apply emptied left out."""
    if isinstance(value, dict):
        return {name: without_nulls(below) for name, below in value.items() if below is not None}
    return value


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.0, "1"), (0.5, "0.5"), (1e20, "100000000000000000000"), (1e21, "1e+21"), (2.5e-07, "2.5e-07")],
)
def test_a_number_in_a_refusal_is_written_as_the_api_writes_it(number: float, text: str) -> None:
    with pytest.raises(StatusError, match=re.escape(f"expected boolean, got &{{{text}}}")):
        Thing().apply("me", {"flag": number})
