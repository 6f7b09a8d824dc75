"""Our verdicts beside those of another validator: a Model's tree and the JSON Schema of it agree on every value."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
from hypothesis import given
from hypothesis import strategies as st

from tests.systems.rest.generating_kit import machine
from trimtab.systems.rest.model import Node
from trimtab.systems.rest.validating.finding import Found
from trimtab.systems.rest.validating.shape import Walk

Schema = dict[str, Any]
NAMES = ("a", "b", "c")
BOUND = st.none() | st.integers(-3, 3)
COUNT = st.none() | st.integers(0, 3)
SCALARS = (
    st.builds(
        Node,
        type=st.just("string"),
        min_length=COUNT,
        max_length=COUNT,
        pattern=st.sampled_from(["", "^a", "b$", "^[ab]*$"]),
        enum=st.sampled_from([(), ("a", "ab"), ("b",)]),
        nullable=st.booleans(),
    )
    | st.builds(
        Node,
        type=st.sampled_from(["integer", "number"]),
        minimum=BOUND,
        maximum=BOUND,
        enum=st.sampled_from([(), (1, 2), (0,)]),
        nullable=st.booleans(),
    )
    | st.builds(Node, type=st.sampled_from(["boolean", "any"]))
)


def _containers(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    properties = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    return (
        st.builds(
            lambda properties, required, additional, nullable: Node(
                type="object",
                properties=properties,
                required=tuple(name for name in required if name in properties),
                additional=additional,
                nullable=nullable,
            ),
            properties,
            st.sets(st.sampled_from(NAMES)).map(sorted),
            st.booleans(),
            st.booleans(),
        )
        | st.builds(Node, type=st.just("map"), items=inner, nullable=st.booleans())
        | st.builds(Node, type=st.just("array"), items=inner, min_items=COUNT, max_items=COUNT)
    )


NODES = st.recursive(SCALARS, _containers, max_leaves=6)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-4, 4)
    | st.sampled_from([0.5, 1.0, -2.5])
    | st.text(alphabet="abc", max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from((*NAMES, "d")), inner, max_size=4),
    max_leaves=8,
)


def schema_of(node: Node) -> Schema:
    """Written apart from the validator, so that both must be wrong to agree."""
    if node.ref:
        return {"$ref": f"#/$defs/{node.ref}"}
    if node.type == "any":
        return {}
    words = {
        "minLength": node.min_length,
        "maxLength": node.max_length,
        "minimum": node.minimum,
        "maximum": node.maximum,
        "minItems": node.min_items,
        "maxItems": node.max_items,
        "pattern": node.pattern or None,
    }
    schema: Schema = {word: value for word, value in words.items() if value is not None}
    schema["type"] = "object" if node.type == "map" else node.type
    if node.enum:
        schema["enum"] = list(node.enum)
    if node.type == "map" and node.items is not None:
        schema["additionalProperties"] = schema_of(node.items)
    if node.type == "array" and node.items is not None:
        schema["items"] = schema_of(node.items)
    if node.type == "object":
        schema["properties"] = {name: schema_of(inner) for name, inner in node.properties.items()}
        schema["required"] = list(node.required)
        schema["additionalProperties"] = node.additional
    return {"anyOf": [schema, {"type": "null"}]} if node.nullable else schema


def takes(node: Node, value: Any, **types: Node) -> bool:
    found = Found()
    Walk(machine(types=types), found).value(node, value, ("spec",), ())
    return not found.errors


@given(NODES, VALUES)
def test_any_value_gets_the_verdict_of_its_json_schema(node: Node, value: Any) -> None:
    assert takes(node, value) == jsonschema_rs.validator_for(schema_of(node)).is_valid(value)


@given(st.data())
def test_so_does_one_that_was_made_to_fit(data: st.DataObject) -> None:
    """A value at random seldom fits."""
    node = data.draw(NODES)
    value = data.draw(_fitting(node))
    assert takes(node, value) == jsonschema_rs.validator_for(schema_of(node)).is_valid(value)


def _fitting(node: Node) -> st.SearchStrategy[Any]:
    match node.type:
        case "string":
            return st.sampled_from(node.enum) if node.enum else st.text(alphabet="ab", max_size=3)
        case "integer" | "number":
            return st.sampled_from(node.enum) if node.enum else st.integers(-3, 3)
        case "boolean":
            return st.booleans()
        case "object":
            optional = {name: _fitting(inner) for name, inner in node.properties.items()}
            required = {name: optional.pop(name) for name in node.required}
            return st.fixed_dictionaries(required, optional=optional)
        case "map":
            return st.dictionaries(st.sampled_from(NAMES), _fitting(node.items or Node()), max_size=2)
        case "array":
            return st.lists(_fitting(node.items or Node()), min_size=node.min_items or 0, max_size=4)
    return VALUES


TREE = Node(
    type="object",
    properties={"a": Node(type="integer"), "b": Node(type="array", items=Node(ref="Tree")), "c": Node(ref="Tree")},
    required=("a",),
)
TREES = st.recursive(
    st.fixed_dictionaries({}, optional={"a": st.integers() | st.text(max_size=1)}),
    lambda inner: st.fixed_dictionaries({"a": st.integers()}, optional={"b": st.lists(inner, max_size=2), "c": inner}),
    max_leaves=6,
)


@given(TREES)
def test_a_type_that_contains_itself_is_followed_as_deep_as_the_value_goes(value: Any) -> None:
    schema = {"$ref": "#/$defs/Tree", "$defs": {"Tree": schema_of(TREE)}}
    assert takes(Node(ref="Tree"), value, Tree=TREE) == jsonschema_rs.validator_for(schema).is_valid(value)
