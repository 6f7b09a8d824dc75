"""What is true of every Model, whatever the document is like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.systems.rest.compiling_kit import arm, compiled, plain
from trimtab.systems.rest.compiling.fields import fields, model_digest
from trimtab.systems.rest.model import CONTROL, DECODER, ENCODER, FieldClass, Model, Node, Writer

TYPES = ("Disk", "Rule", "Group")
NAMES = st.sampled_from(("name", "id", "size", "policy", "properties", "password", "location", "a.b"))
MARKS = st.sampled_from(
    ({}, {}, {}, {"readOnly": True}, {"writeOnly": True}, {"x-ms-secret": True}, {"x-ms-mutability": ["create", "read"]},
     {"x-ms-mutability": ["read"]}, {"description": "One. Two."}, {"x-nullable": True}, {"x-ms-identifiers": ["/name"]})
)  # fmt: skip
LEAVES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    ({"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"}, {}, {"type": "object"},
     {"type": "string", "enum": ["a", "b"]}, *({"$ref": f"#/definitions/{name}"} for name in TYPES))
)  # fmt: skip


def marked(schemas: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda schema, marks: {**schema, **marks}, schemas, MARKS)


def objects(schemas: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda properties, required: {
            "type": "object",
            "properties": properties,
            "required": sorted(required & set(properties)),
        },
        st.dictionaries(NAMES, schemas, min_size=1, max_size=4),
        st.sets(NAMES, max_size=3),
    )


SCHEMAS = st.recursive(
    marked(LEAVES),
    lambda below: marked(
        objects(below)
        | st.builds(lambda items: {"type": "array", "items": items}, below)
        | st.builds(lambda values: {"type": "object", "additionalProperties": values}, below)
        | st.builds(lambda parts: {"oneOf": parts}, st.lists(below, min_size=1, max_size=2))
    ),
    max_leaves=6,
)
BODIES = objects(SCHEMAS)
DEFINITIONS = st.fixed_dictionaries(dict.fromkeys(TYPES, BODIES))


@st.composite
def models(draw: st.DrawFn) -> Model:
    create, definitions = draw(BODIES), draw(DEFINITIONS)
    if draw(st.booleans()):
        return compiled(arm(create, patch=draw(st.none() | BODIES), definitions=definitions))
    update, read, patch = (draw(st.none() | BODIES | st.just(create)) for _ in range(3))
    return compiled(plain(create, update, read, patch, definitions))


def nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.properties.values():
        yield from nodes(child)
    if node.items is not None:
        yield from nodes(node.items)


def all_nodes(model: Model) -> Iterator[Node]:
    yield from nodes(model.spec)
    for shared in model.types.values():
        yield from nodes(shared)


@settings(max_examples=150, deadline=None)
@given(models())
def test_a_model_holds_together(model: Model) -> None:
    assert DECODER.decode(ENCODER.encode(model)) == model
    assert not set(model.spec.properties) & set(CONTROL)
    for node in all_nodes(model):
        assert node.field is not FieldClass.READ_ONLY
        assert node.writers is not Writer.NONE
        assert not node.ref or node.ref in model.types
        assert set(node.required) <= set(node.properties)
        items = model.node(node.items) if node.items is not None else None
        assert not node.keys or (items is not None and set(node.keys) <= set(items.properties))


@settings(max_examples=80, deadline=None)
@given(models())
def test_a_field_is_written_or_read_only_and_never_both(model: Model) -> None:
    written = {row.path for row in fields(model) if row.cls is not FieldClass.READ_ONLY}
    back = {of_body: of_spec for of_spec, of_body in model.renamed.items()}
    assert not written & {back.get(path, path) for path in model.read_only}


@settings(max_examples=40, deadline=None)
@given(BODIES, DEFINITIONS)
def test_compiling_twice_gives_the_same(body: dict[str, Any], definitions: dict[str, Any]) -> None:
    assert model_digest(compiled(arm(body, definitions=definitions))) == model_digest(
        compiled(arm(body, definitions=definitions))
    )
