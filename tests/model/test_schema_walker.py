"""The walker beyond single values: what it leaves alone, when it compiles, how deep it goes, what it forgives."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from trimtab.model.errors import StatusError
from trimtab.model.schema import Schema

TEXT = {"type": "string"}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def told(schema: Schema, obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [str(error) for error in schema.walk(obj, old).errors]


def test_a_document_is_made_and_compiled_at_first_use_only() -> None:
    made = []

    def document() -> dict[str, Any]:
        made.append(1)
        return of(spec=TEXT)

    schema = Schema(document)
    assert made == []
    schema.walk({"spec": "x"})
    schema.walk({"spec": "y"})
    assert made == [1]


def test_api_version_kind_and_metadata_of_the_root_stay() -> None:
    obj = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a", "anything": 1}, "extra": 1}
    walk = Schema(of()).walk(obj)
    assert obj == {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a", "anything": 1}}
    assert walk.unknown == ["extra"]


def test_rules_for_the_name_in_metadata_are_checked() -> None:
    schema = Schema(of(metadata=of(name={"type": "string", "maxLength": 3})))
    obj = {"metadata": {"name": "long", "labels": {"a": "b"}}}
    assert told(schema, obj) == ["metadata.name: Too long: may not be more than 3 bytes"]
    assert obj == {"metadata": {"name": "long", "labels": {"a": "b"}}}


def test_unknown_fields_are_named_by_their_path_in_order() -> None:
    schema = Schema(
        of(spec=of(items={"type": "array", "items": of(a=TEXT)}, map={"type": "object", "additionalProperties": of()}))
    )
    obj = {"zoo": 1, "spec": {"items": [{"a": "x"}, {"b": 1}], "map": {"k": {"c": 1}}, "d": {}}}
    assert schema.walk(obj).unknown == ["spec.d", "spec.items[1].b", "spec.map.k.c", "zoo"]
    assert obj == {"spec": {"items": [{"a": "x"}, {}], "map": {"k": {}}}}


def test_defaults_are_filled_inside_of_defaults() -> None:
    schema = Schema(
        of(
            spec={
                **of(a={"type": "integer", "default": 1}, b={**of(c={**TEXT, "default": "x"}), "default": {}}),
                "default": {},
            }
        )
    )
    obj: dict[str, Any] = {}
    schema.walk(obj)
    assert obj == {"spec": {"a": 1, "b": {"c": "x"}}}


def test_objects_do_not_share_their_defaults() -> None:
    schema = Schema(of(a={"type": "array", "items": TEXT, "default": ["x"]}, b={**of(c=of()), "default": {"c": {}}}))
    one: dict[str, Any] = {}
    other: dict[str, Any] = {}
    schema.walk(one)
    schema.walk(other)
    one["a"].append("y")
    one["b"]["c"]["d"] = 1
    assert other == {"a": ["x"], "b": {"c": {}}}


def test_a_default_that_is_not_valid_is_reported() -> None:
    schema = Schema(of(a={"type": "integer", "default": "x"}))
    assert told(schema, {}) == ['a: Invalid value: "string": a in body must be of type integer: "string"']


def test_a_default_satisfies_required() -> None:
    schema = Schema({**of(a={**TEXT, "default": "x"}, b=TEXT), "required": ["a", "b"]})
    assert told(schema, {}) == ["b: Required value"]


def test_whole_floats_become_integers() -> None:
    obj = {"a": 3.0, "b": [1.0, 2.5], "c": 1e300}
    Schema(of(a={"type": "integer"}, b={"type": "array", "items": {"type": "number"}}, c={"type": "number"})).walk(obj)
    assert [type(value) for value in (obj["a"], *obj["b"], obj["c"])] == [int, int, float, float]


def test_errors_of_lists_that_are_sets_come_after_all_others() -> None:
    schema = Schema(of(a={"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}, b={"type": "integer"}))
    assert [error.path for error in schema.walk({"a": ["x", "x"], "b": "y"}).errors] == ["b", "a[1]"]


def test_lengths_are_counted_in_characters() -> None:
    assert told(Schema(of(a={**TEXT, "maxLength": 2})), {"a": "日本"}) == []


def test_a_pattern_that_cannot_be_compiled_matches_nothing() -> None:
    errors = told(Schema(of(a={**TEXT, "pattern": "(?=x)"})), {"a": "x"})
    assert errors[0].startswith("""a: Invalid value: "x": a in body should match '(?=x), but pattern is invalid:""")


def test_a_pattern_that_explodes_elsewhere_takes_linear_time() -> None:
    assert told(Schema(of(a={**TEXT, "pattern": "^(a+)+$"})), {"a": "a" * 50_000 + "b"}) != []


def test_nesting_that_is_too_deep_is_an_error() -> None:
    part: dict[str, Any] = {"type": "object", "additionalProperties": True}
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert told(Schema(of(spec=part)), {"spec": {"a": deep}}) == ['<nil>: Invalid value: "": exceeded max depth']


def test_defaulting_alone_neither_prunes_nor_validates() -> None:
    schema = Schema(
        of(spec=of(a={"type": "integer", "default": 1}, b={"type": "array", "items": of(c={**TEXT, "default": "x"})}))
    )
    obj = {"spec": {"b": [{}, {"c": "y"}], "unknown": 1}}
    schema.default(obj)
    assert obj == {"spec": {"a": 1, "b": [{"c": "x"}, {"c": "y"}], "unknown": 1}}


def test_pruning_alone_puts_no_defaults() -> None:
    obj = {"kind": "X", "spec": {"a": 1, "b": 2}}
    assert Schema(of(spec=of(a={"type": "integer"}, c={**TEXT, "default": "x"}))).prune(obj) == ["spec.b"]
    assert obj == {"kind": "X", "spec": {"a": 1}}


def test_a_schema_without_rules_has_nothing_to_say_of_transitions() -> None:
    assert Schema(of(spec=TEXT)).rules({"spec": "a"}, {"spec": "b"}) == []


def test_rules_are_not_checked_on_an_object_that_is_not_what_they_expect() -> None:
    schema = Schema(of(a={**TEXT, "x-kubernetes-validations": [{"rule": "self == 'x'"}]}, b=TEXT))
    obj = {"a": 1, "b": "c"}
    errors = schema.walk(obj).errors
    (error,) = schema.rules(obj, None, errors)
    assert error.detail.startswith("some validation rules were not checked because the object was invalid")


def test_many_unknown_fields_take_linear_time() -> None:
    obj = {f"field{number}": number for number in range(100_000)}
    assert len(Schema(of()).walk(obj).unknown) == 100_000
    assert obj == {}


RATCHETED = of(
    a={**TEXT, "maxLength": 2},
    keyed={
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {**of(k=TEXT, v={"type": "integer", "maximum": 5}), "required": ["k"]},
    },
    atomic={"type": "array", "items": {**TEXT, "maxLength": 2}},
    unique={"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
)
OLD = {
    "a": "long",
    "keyed": [{"k": "x", "v": 9}, {"k": "y", "v": 9}],
    "atomic": ["long", "q"],
    "unique": ["a", "a"],
}


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        ({}, []),
        ({"a": "longer"}, ["a"]),
        ({"a": "ok"}, []),
        ({"keyed": [{"k": "y", "v": 9}, {"k": "x", "v": 9}]}, []),
        ({"keyed": [{"k": "x", "v": 8}]}, ["keyed[0].v"]),
        ({"keyed": [{"k": "z", "v": 9}]}, ["keyed[0].v"]),
        ({"atomic": ["long", "q", "r"]}, ["atomic[0]"]),
        ({"unique": ["a", "a", "b"]}, []),
    ],
)
def test_what_was_wrong_before_and_did_not_change_is_forgiven(change: dict[str, Any], paths: list[str]) -> None:
    new = {"metadata": {"generation": 2}, **copy.deepcopy(OLD), **change}
    assert [error.path for error in Schema(RATCHETED).walk(new, copy.deepcopy(OLD)).errors] == paths


LONG = {"type": "object", "properties": {"text": {"type": "string", "default": "x" * 5000}}}


@pytest.mark.parametrize("defaults", [Schema.walk, Schema.default])
@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({"type": "array", "items": LONG}, [{} for _ in range(2000)]),
        ({"type": "array", "items": {"type": "string", "default": "x" * 5000}}, [None] * 2000),
        ({"type": "object", "additionalProperties": LONG}, {str(n): {} for n in range(2000)}),
        (
            {"type": "object", "additionalProperties": {"type": "string", "default": "x" * 5000}},
            {str(n): None for n in range(2000)},
        ),
    ],
)
def test_defaults_that_are_larger_than_any_object_are_refused(part: Any, value: Any, defaults: Any) -> None:
    schema = Schema({"type": "object", "properties": {"spec": part}})
    with pytest.raises(StatusError) as refused:
        defaults(schema, {"spec": copy.deepcopy(value)})
    assert refused.value.code == 413


def test_each_object_may_have_its_own_defaults() -> None:
    schema = Schema({"type": "object", "properties": {"spec": {"type": "array", "items": LONG}}})
    for _ in range(3):
        found = {"spec": [{} for _ in range(500)]}
        assert not schema.walk(found).errors
        assert all(len(item["text"]) == 5000 for item in found["spec"])
