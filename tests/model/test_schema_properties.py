"""What holds of every schema and value: jsonschema-rs agrees on what is valid; walking twice changes nothing more."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema_rs
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.model.schema import Schema
from trimtab.model.schema.shape import default, prune

names = st.sampled_from(["a", "b", "c"])
words = st.text(alphabet="abcxyz", max_size=6)
numbers = st.integers(-4, 4)

values = st.recursive(
    st.one_of(st.booleans(), numbers, st.sampled_from([0.5, 2.5, -1.5]), words),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


def merged(*parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(*parts).map(lambda given: {key: value for part in given for key, value in part.items()})


sizes = st.integers(0, 3)
text_rules = optional(
    minLength=sizes, maxLength=st.integers(2, 6), pattern=st.sampled_from(["^a", "b$", "x|y", "[a-c]+"])
)
number_rules = optional(minimum=numbers, maximum=numbers, multipleOf=st.integers(1, 5))
item_rules = optional(minItems=sizes, maxItems=sizes)
field_rules = optional(minProperties=sizes, maxProperties=sizes)


def combined(kind: str, rules: st.SearchStrategy[dict[str, Any]], **more: Any) -> st.SearchStrategy[dict[str, Any]]:
    """A type with rules, and sometimes with one combinator of such rules; too many would leave nothing valid."""
    some = st.lists(rules, min_size=1, max_size=3)
    combinators = [st.fixed_dictionaries({word: some}) for word in ("anyOf", "oneOf", "allOf")]
    negations = st.fixed_dictionaries({"not": rules.filter(bool)})
    beside = st.one_of(st.just({}), rules, *combinators, negations)
    return merged(st.fixed_dictionaries({"type": st.just(kind), **more}), beside)


leaves = st.one_of(
    combined("string", text_rules),
    combined("string", optional(enum=st.lists(words, min_size=1, max_size=3, unique=True))),
    combined("integer", number_rules),
    combined("number", optional(minimum=numbers, maximum=numbers)),
    st.just({"type": "boolean"}),
)


def containers(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    structs = merged(
        combined("object", field_rules, properties=st.dictionaries(names, inner, max_size=3)),
        optional(required=st.lists(names, max_size=2, unique=True)),
        st.just({"x-kubernetes-preserve-unknown-fields": True}),
    )
    maps = combined("object", field_rules, additionalProperties=inner)
    return st.one_of(combined("array", item_rules, items=inner), maps, structs)


schemas = st.recursive(leaves, containers, max_leaves=4)


def of_type(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values of the schema's types, which its other rules then judge."""
    if schema["type"] == "array":
        return st.lists(of_type(schema["items"]), max_size=3)
    if "additionalProperties" in schema:
        return st.dictionaries(names, of_type(schema["additionalProperties"]), max_size=3)
    if schema["type"] == "object":
        return st.fixed_dictionaries({}, optional={name: of_type(part) for name, part in schema["properties"].items()})
    if "enum" in schema:
        return st.one_of(st.sampled_from(schema["enum"]), words)
    kinds = {"string": words, "integer": numbers, "number": st.one_of(numbers, st.just(2.5)), "boolean": st.booleans()}
    return kinds[schema["type"]]


pairs = schemas.flatmap(lambda schema: st.tuples(st.just(schema), st.one_of(of_type(schema), of_type(schema), values)))


@settings(max_examples=1000, deadline=None)
@given(pair=pairs)
def test_what_is_valid_is_what_jsonschema_says(pair: tuple[dict[str, Any], Any]) -> None:
    schema, value = pair
    obj = {"spec": value}
    walk = Schema({"type": "object", "properties": {"spec": schema}}).walk(copy.deepcopy(obj))
    assert (not walk.errors) == jsonschema_rs.validator_for(schema).is_valid(value)


def with_defaults(schema: dict[str, Any], default_of: dict[str, Any]) -> dict[str, Any]:
    """The same schema, pruning, with a default for some fields."""
    schema = {key: part for key, part in schema.items() if key != "x-kubernetes-preserve-unknown-fields"}
    if "items" in schema:
        schema["items"] = with_defaults(schema["items"], default_of)
    properties = {name: with_defaults(part, default_of) for name, part in schema.get("properties", {}).items()}
    for name, part in properties.items():
        if name in default_of:
            part["default"] = default_of[name]
    return {**schema, "properties": properties} if properties else schema


objects = st.dictionaries(names, st.one_of(st.none(), values), max_size=3)


@settings(max_examples=200, deadline=None)
@given(schema=schemas, defaults=st.dictionaries(names, values, max_size=2), value=objects)
def test_a_second_walk_finds_the_same_errors_and_changes_nothing(
    schema: dict[str, Any], defaults: dict[str, Any], value: dict[str, Any]
) -> None:
    compiled = Schema({"type": "object", "properties": {"spec": with_defaults(schema, defaults)}})
    obj = {"spec": value}
    first = compiled.walk(obj)
    walked = copy.deepcopy(obj)
    second = compiled.walk(obj)
    assert obj == walked
    assert second.errors == first.errors
    assert second.unknown == []


@settings(max_examples=200, deadline=None)
@given(schema=schemas, defaults=st.dictionaries(names, values, max_size=2), value=objects)
def test_a_walk_prunes_and_defaults_as_the_separate_steps_do(
    schema: dict[str, Any], defaults: dict[str, Any], value: dict[str, Any]
) -> None:
    document = {"type": "object", "properties": {"spec": with_defaults(schema, defaults)}}
    walked, stepped = {"spec": without_nulls(value)}, {"spec": without_nulls(value)}
    walk = Schema(document).walk(walked)
    assert prune(stepped, document, resource=True) == walk.unknown
    default(stepped, document)
    prune(stepped, document, resource=True)  # defaults that do not fit the schema
    assert walked == stepped


def without_nulls(value: Any) -> Any:
    return {key: copy.deepcopy(item) for key, item in value.items() if item is not None}
