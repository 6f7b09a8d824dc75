"""Built-in kinds: null is absent, unknown fields go, wrong types name the Go type."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.model.errors import FieldProblem
from trimtab.model.schema import Schema


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/definitions/io.k8s.{name}"}


TEXT = {"type": "string"}
DEFINITIONS: dict[str, Any] = {
    "io.k8s.api.apps.v1.Thing": {
        "type": "object",
        "properties": {
            "apiVersion": TEXT,
            "kind": TEXT,
            "metadata": {"type": "object"},
            "spec": ref("api.apps.v1.ThingSpec"),
        },
    },
    "io.k8s.api.apps.v1.ThingSpec": {
        "type": "object",
        "required": ["replicas"],
        "properties": {
            "replicas": {"type": "integer", "format": "int32", "default": 1},
            "paused": {"type": "boolean"},
            "labels": {"type": "object", "additionalProperties": TEXT},
            "names": {"type": "array", "items": TEXT},
            "parts": {"type": "array", "items": {"allOf": [ref("api.apps.v1.Part")], "default": {}}},
            "port": ref("apimachinery.pkg.util.intstr.IntOrString"),
            "limits": {"type": "object", "additionalProperties": ref("apimachinery.pkg.api.resource.Quantity")},
            "at": ref("apimachinery.pkg.apis.meta.v1.Time"),
            "data": {"type": "string", "format": "byte"},
            "raw": {"type": "object"},
            "any": ref("api.apps.v1.JSON"),
            "ratio": {"type": "number"},
        },
    },
    "io.k8s.api.apps.v1.Part": {
        "type": "object",
        "properties": {"name": TEXT, "parts": {"type": "array", "items": ref("api.apps.v1.Part")}},
    },
    "io.k8s.api.apps.v1.JSON": {"description": "anything"},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": "string", "format": "int-or-string"},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": TEXT,
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": {"type": "string", "format": "date-time"},
}
SCHEMA = Schema(ref("api.apps.v1.Thing"), native=True, definitions=lambda: DEFINITIONS)


def test_nulls_are_dropped_and_nothing_is_required_or_defaulted() -> None:
    obj = {"kind": "Thing", "metadata": {"x": None}, "spec": {"replicas": None, "labels": {}}}
    assert SCHEMA.walk(obj).errors == []
    assert obj == {"kind": "Thing", "metadata": {"x": None}, "spec": {"labels": {}}}


def test_nulls_in_lists_and_maps_become_zero_values() -> None:
    obj = {"spec": {"names": ["a", None], "labels": {"a": None}, "parts": [None]}}
    SCHEMA.walk(obj)
    assert obj == {"spec": {"names": ["a", ""], "labels": {"a": ""}, "parts": [{}]}}


def test_unknown_fields_are_pruned_at_every_depth_of_a_recursive_type() -> None:
    obj = {"spec": {"parts": [{"name": "a", "parts": [{"x": 1, "parts": [{"y": 2}]}]}], "z": 1}}
    assert SCHEMA.walk(obj).unknown == ["spec.parts[0].parts[0].parts[0].y", "spec.parts[0].parts[0].x", "spec.z"]
    assert obj == {"spec": {"parts": [{"name": "a", "parts": [{"parts": [{}]}]}]}}


def test_fields_of_free_form_are_kept() -> None:
    obj = {"spec": {"raw": {"a": {"b": None}}, "any": [1, {"c": None}]}}
    assert SCHEMA.walk(obj).unknown == []
    assert obj == {"spec": {"raw": {"a": {"b": None}}, "any": [1, {"c": None}]}}


@pytest.mark.parametrize(
    "spec",
    [
        {"replicas": 3, "paused": True, "ratio": 1, "port": "http", "limits": {"cpu": "500m", "memory": 1}},
        {"port": 80, "at": "2026-01-01T00:00:00Z", "data": "YQ==", "limits": {"cpu": "1.5e3", "x": "1Ki", "y": 0.5}},
    ],
)
def test_values_of_the_right_types_pass(spec: dict[str, Any]) -> None:
    assert SCHEMA.walk({"spec": spec}).errors == []


@pytest.mark.parametrize(
    ("spec", "path", "go_type", "message"),
    [
        ("x", "spec", "v1.ThingSpec", "string into Go struct field Thing.spec of type v1.ThingSpec"),
        (
            {"replicas": "x"},
            "spec.replicas",
            "int32",
            "string into Go struct field ThingSpec.spec.replicas of type int32",
        ),
        (
            {"replicas": 1.5},
            "spec.replicas",
            "int32",
            "number 1.5 into Go struct field ThingSpec.spec.replicas of type int32",
        ),
        (
            {"replicas": 2**31},
            "spec.replicas",
            "int32",
            "number 2147483648 into Go struct field ThingSpec.spec.replicas of type int32",
        ),
        (
            {"replicas": True},
            "spec.replicas",
            "int32",
            "bool into Go struct field ThingSpec.spec.replicas of type int32",
        ),
        ({"paused": "x"}, "spec.paused", "bool", "string into Go struct field ThingSpec.spec.paused of type bool"),
        (
            {"labels": "x"},
            "spec.labels",
            "map[string]string",
            "string into Go struct field ThingSpec.spec.labels of type map[string]string",
        ),
        (
            {"labels": {"k": 1}},
            "spec.labels.k",
            "string",
            "number into Go struct field ThingSpec.spec.labels of type string",
        ),
        ({"names": "x"}, "spec.names", "[]string", "string into Go struct field ThingSpec.spec.names of type []string"),
        ({"names": [1]}, "spec.names[0]", "string", "number into Go struct field ThingSpec.spec.names of type string"),
        (
            {"parts": ["x"]},
            "spec.parts[0]",
            "v1.Part",
            "string into Go struct field ThingSpec.spec.parts of type v1.Part",
        ),
        (
            {"parts": {}},
            "spec.parts",
            "[]v1.Part",
            "object into Go struct field ThingSpec.spec.parts of type []v1.Part",
        ),
        (
            {"parts": [{"parts": [{"name": 1}]}]},
            "spec.parts[0].parts[0].name",
            "string",
            "number into Go struct field Part.spec.parts.parts.name of type string",
        ),
        ({"port": True}, "spec.port", "int32", "bool into Go struct field ThingSpec.spec.port of type int32"),
        ({"at": 1}, "spec.at", "string", "number into Go struct field ThingSpec.spec.at of type string"),
        ({"ratio": "x"}, "spec.ratio", "float64", "string into Go struct field ThingSpec.spec.ratio of type float64"),
        ({"data": 1}, "spec.data", "[]uint8", "number into Go struct field ThingSpec.spec.data of type []uint8"),
    ],
)
def test_a_wrong_type_is_told_as_go_tells_it(spec: Any, path: str, go_type: str, message: str) -> None:
    (error,) = SCHEMA.walk({"spec": spec}).errors
    assert (error.path, error.problem, error.detail) == (path, FieldProblem.TYPE_INVALID, go_type)
    assert error.message == f"json: cannot unmarshal {message}"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"at": "x"}, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ({"data": "a*b"}, "illegal base64 data at input byte 1"),
        (
            {"limits": {"cpu": "x"}},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ],
)
def test_text_that_does_not_parse_is_told_as_its_go_type_tells_it(spec: Any, message: str) -> None:
    (error,) = SCHEMA.walk({"spec": spec}).errors
    assert error.message == message


def test_a_recursive_type_that_is_too_deep_is_an_error() -> None:
    part: dict[str, Any] = {}
    for _ in range(100_000):
        part = {"parts": [part]}
    assert [str(error) for error in SCHEMA.walk({"spec": {"parts": [part]}}).errors] == [
        '<nil>: Invalid value: "": exceeded max depth'
    ]
