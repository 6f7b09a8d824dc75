"""How a schema looks in Terraform."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from trimtab.terraform.framework.attributes import Nested
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.kinds.attributes import resource_schema, single_schema
from trimtab.terraform.kinds.definition import Choice, Definition, Field, Shape
from trimtab.terraform.kinds.hints import READ_ONLY, WRITE_ONLY, Hints
from trimtab.terraform.kinds.shaping import Shaper, metadata
from trimtab.terraform.kinds.snapshot import Snapshot
from trimtab.terraform.kinds.telling import located

TEXT: dict[str, Any] = {"type": "string"}


def shaped(schema: dict[str, Any], hints: Hints | None = None, **definitions: Any) -> Field:
    """The one field `x` of a kind."""
    root = {"type": "object", "properties": {"x": schema}}
    shape = Shaper(definitions).root(root, kind="Any", native=False, hints=hints or Hints())
    (field,) = shape.fields
    return field


@pytest.mark.parametrize(
    ("schema", "form"),
    [
        (TEXT, "string"),
        ({**TEXT, "format": "date-time"}, "time"),
        ({**TEXT, "pattern": r"^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$"}, "duration"),
        ({"x-kubernetes-int-or-string": True}, "int_or_string"),
        ({"oneOf": [{"type": "string"}, {"type": "number"}]}, "quantity"),
        ({"type": "integer"}, "integer"),
        ({"type": "object"}, "json"),
        ({}, "json"),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "json"),
        ({"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"a": TEXT}}, "json"),
        ({"type": "object", "additionalProperties": TEXT}, "map"),
        ({"type": "array", "items": TEXT}, "list"),
        ({"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}, "set"),
    ],
)
def test_a_schema_has_one_form(schema: dict[str, Any], form: str) -> None:
    assert shaped(schema).shape.form == form


def items(*keys: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
        "items": {"type": "object", "properties": properties},
    }


@pytest.mark.row(64)
def test_one_key_makes_a_map_and_several_make_a_list() -> None:
    assert shaped(items("a", a=TEXT, b=TEXT)).shape.form == "keyed"
    assert shaped(items("a", "b", a=TEXT, b=TEXT)).shape.form == "list"
    assert shaped(items("a", a={"type": "boolean"}, b=TEXT)).shape.form == "list"


def test_a_definition_that_contains_itself_ends_as_json() -> None:
    node = {
        "type": "object",
        "properties": {"name": TEXT, "next": {"$ref": "#/components/schemas/node"}},
    }
    field = shaped({"$ref": "#/components/schemas/node"}, node=node)
    inner = field.shape.field("next")
    assert inner is not None
    assert inner.shape == Shape("json")


@pytest.mark.row(63)
@pytest.mark.parametrize(
    ("rules", "choice"),
    [
        ({"x-kubernetes-validations": [{"rule": "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) == 1"}]}, True),
        ({"x-kubernetes-validations": [{"rule": "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) <= 1"}]}, False),
        ({"x-kubernetes-validations": [{"rule": "has(self.a) != has(self.b)"}]}, True),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, True),
    ],
)
def test_rules_over_fields_are_choices(rules: dict[str, Any], choice: bool) -> None:
    field = shaped({"type": "object", "properties": {"a": TEXT, "b": TEXT}, **rules})
    assert field.shape.choices == (Choice(("a", "b"), required=choice),)


def test_what_classes_tell_of_a_field_is_heard() -> None:
    schema = {"type": "array", "items": {"type": "object", "properties": {"digest": TEXT, "word": TEXT}}}
    hints = Hints({("x", "*", "digest"): frozenset({READ_ONLY}), ("x", "*", "word"): frozenset({WRITE_ONLY})})
    inner = shaped(schema, hints).shape.items
    assert inner is not None
    assert [(one.name, one.computed, one.write_only) for one in inner.fields] == [
        ("digest", True, False),
        ("word", False, True),
    ]


def test_status_is_the_systems_own_through_and_through(snapshot: Snapshot) -> None:
    for name in snapshot.heads:
        status = snapshot.definition(name).root.field("status")
        assert status is None or _is_computed(status)


def _is_computed(field: Field) -> bool:
    inner = (field.shape.items or field.shape).fields
    return field.computed and not field.required and all(map(_is_computed, inner))


def test_the_order_of_init_containers_is_kept(snapshot: Snapshot) -> None:
    spec = snapshot.definition("core_pod").root.field("spec")
    assert spec is not None
    forms = {one.wire: one.shape.form for one in spec.shape.fields}
    assert (forms["containers"], forms["initContainers"]) == ("keyed", "list")


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("spec.a", "spec.a"),
        (".spec.camelCase", "spec.camel_case"),
        ("spec.list[1].a", "spec.list[1].a"),
        ("spec.keyed[1].a", 'spec.keyed["two"].a'),
        ('.spec.keyed[name="two"].a', 'spec.keyed["two"].a'),
        ("spec.map[b]", 'spec.map["b"]'),
        (".spec.map.app.kubernetes.io/name", 'spec.map["app.kubernetes.io/name"]'),
        (".spec.map.app", 'spec.map["app"]'),
        ("spec.list[7].a", "spec.list"),
        ("spec.nonsense", "spec"),
        ("metadata.labels", "metadata.labels"),
        ("", None),
    ],
)
def test_a_field_of_the_api_is_found_in_the_configuration(field: str, path: str | None) -> None:
    inner = {"type": "object", "properties": {"a": TEXT}}
    spec = {
        "type": "object",
        "properties": {
            "a": TEXT,
            "camelCase": TEXT,
            "list": {"type": "array", "items": inner},
            "keyed": items("name", name=TEXT, a=TEXT),
            "map": {"type": "object", "additionalProperties": TEXT},
        },
    }
    root = Shaper({}).root({"type": "object", "properties": {"spec": spec}}, kind="Any", native=False)
    fields = (*root.fields, metadata(place="namespace", hub=False, versioned=False))
    definition = Definition("a_any", "a_anys", "a", "v1", "Any", "anys", True, False, Shape("object", fields=fields))
    body = {
        "spec": {
            "list": [{}, {}],
            "keyed": [{"name": "one"}, {"name": "two"}],
            "map": {"b": "1", "app.kubernetes.io/name": "x", "app": "y"},
        }
    }
    found = located(definition, field, body)
    assert (None if found is None else str(found)) == path


@pytest.mark.parametrize("schema", [resource_schema, single_schema])
def test_what_the_api_calls_a_field_is_said_where_its_name_does_not_tell(
    schema: Callable[[Definition], Schema],
) -> None:
    wires = ("fooBar", "FooBar", "$$", "x-y-z", "count", "clusterIPs")
    whole = {"type": "object", "properties": {key: {**TEXT, "description": "A word"} for key in wires}}
    root = Shaper({}).root(whole, kind="Any", native=False)
    root = replace(root, fields=(*root.fields, metadata(place="namespace", hub=False, versioned=False)))
    any_ = Definition("a_any", "a_anys", "a.example.com", "v1", "Any", "anys", True, False, root)
    assert {name: said.description for name, said in schema(any_).attributes.items() if "word" in said.description} == {
        "foo_bar": "A word.",
        "foo_bar_2": "A word. `FooBar` in the API.",
        "field": "A word. `$$` in the API.",
        "x_y_z": "A word. `x-y-z` in the API.",
        "count_": "A word. `count` in the API.",
        "cluster_ips": "A word. `clusterIPs` in the API.",
    }


def test_every_schema_is_one_that_the_framework_takes(snapshot: Snapshot) -> None:
    for name in snapshot.heads:
        schema = resource_schema(snapshot.definition(name))
        assert isinstance(schema.attributes["metadata"].type, Nested)
        assert schema.attributes["metadata"].required
