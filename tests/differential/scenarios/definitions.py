"""CustomResourceDefinitions: what is filled in, which schemas are refused and how, and life with a changed one."""

import copy
from typing import Any

from ..exchange import Request
from ..kinds import DEFINITIONS
from ..verbs import apply, delete, get, json_patch, merge, post, put

GROUP = "$id.example.com"
NAME = f"things.{GROUP}"
D = f"{DEFINITIONS}/{NAME}"
THINGS, NEW_THINGS = f"/apis/{GROUP}/v1/things", f"/apis/{GROUP}/v2/things"
_SERVED = get(THINGS, until='ThingList"')


def definition(schema: Any = None, *, spec: Any = None, version: Any = None, names: Any = None) -> dict[str, Any]:
    root = {"type": "object"} if schema is None else {"type": "object", "properties": {"spec": schema}}
    first = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}} | (version or {})
    plain = {
        "group": GROUP,
        "scope": "Cluster",
        "names": {"plural": "things", "kind": "Thing"} | (names or {}),
        "versions": [first],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": plain | (spec or {}),
    }


def thing(**rest: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": "t"}} | rest


_OBJECT = {"type": "object"}
_TEXT = {"type": "string"}


def _ruled(schema: Any, rule: str, **rest: Any) -> dict[str, Any]:
    return schema | {"x-kubernetes-validations": [{"rule": rule} | rest]}


_SCHEMAS: dict[str, Any] = {
    "a plain object": {"type": "object", "properties": {"a": _TEXT}},
    "no type": {"properties": {"a": _TEXT}},
    "no type for a property": {"type": "object", "properties": {"a": {}}},
    "a type that is not known": {"type": "text"},
    "type null": {"type": "null"},
    "an array without items": {"type": "array"},
    "items that are a list": {"type": "array", "items": [_TEXT]},
    "additionalProperties beside properties": {
        "type": "object",
        "properties": {"a": _TEXT},
        "additionalProperties": _TEXT,
    },
    "additionalProperties false": {"type": "object", "additionalProperties": False},
    "additionalProperties true": {"type": "object", "additionalProperties": True},
    "uniqueItems": {"type": "array", "items": _TEXT, "uniqueItems": True},
    "patternProperties": {"type": "object", "patternProperties": {"a": _TEXT}},
    "a reference": {"type": "object", "$ref": "#/x"},
    "definitions": {"type": "object", "definitions": {"a": _TEXT}},
    "dependencies": {"type": "object", "dependencies": {"a": ["b"]}},
    "a bad pattern": {"type": "string", "pattern": "("},
    "a pattern with a look-ahead": {"type": "string", "pattern": "(?=a)b"},
    "a default": {"type": "string", "default": "x"},
    "a default of a wrong type": {"type": "string", "default": 5},
    "a default that is not valid": {"type": "string", "enum": ["a"], "default": "b"},
    "a default with unknown fields": {"type": "object", "default": {"odd": 1}, "properties": {"a": _TEXT}},
    "a default null": {"type": "string", "default": None},
    "a default null that is allowed": {"type": "string", "nullable": True, "default": None},
    "types in a value validation": {"type": "object", "anyOf": [{"type": "object"}]},
    "properties only in a value validation": {"type": "object", "anyOf": [{"properties": {"a": {"minLength": 1}}}]},
    "a default in a value validation": {
        "type": "object",
        "properties": {"a": _TEXT},
        "allOf": [{"properties": {"a": {"default": "x"}}}],
    },
    "a good value validation": {
        "type": "object",
        "properties": {"a": _TEXT},
        "not": {"properties": {"a": {"enum": ["x"]}}},
    },
    "int or string with a type": {"type": "integer", "x-kubernetes-int-or-string": True},
    "preserve-unknown false": {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
    "preserve-unknown on text": {"type": "string", "x-kubernetes-preserve-unknown-fields": True},
    "an embedded resource without fields": {"type": "object", "x-kubernetes-embedded-resource": True},
    "an embedded resource that is text": {"type": "string", "x-kubernetes-embedded-resource": True},
    "a list type that is not known": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "bag"},
    "a list type on an object": {"type": "object", "x-kubernetes-list-type": "atomic"},
    "a keyed list without keys": {"type": "array", "items": _OBJECT, "x-kubernetes-list-type": "map"},
    "a keyed list of text": {
        "type": "array",
        "items": _TEXT,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
    },
    "a keyed list whose key is not there": {
        "type": "array",
        "items": _OBJECT,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
    },
    "a keyed list whose key is optional": {
        "type": "array",
        "items": {"type": "object", "properties": {"a": _TEXT}},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
    },
    "a keyed list whose key is an object": {
        "type": "array",
        "items": {"type": "object", "required": ["a"], "properties": {"a": _OBJECT}},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
    },
    "keys without a keyed list": {"type": "array", "items": _TEXT, "x-kubernetes-list-map-keys": ["a"]},
    "keys twice": {
        "type": "array",
        "items": {"type": "object", "required": ["a"], "properties": {"a": _TEXT}},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a", "a"],
    },
    "a set of objects": {
        "type": "array",
        "items": {"type": "object", "properties": {"a": _TEXT}},
        "x-kubernetes-list-type": "set",
    },
    "a set of atomic objects": {
        "type": "array",
        "items": {"type": "object", "x-kubernetes-map-type": "atomic"},
        "x-kubernetes-list-type": "set",
    },
    "a map type that is not known": {"type": "object", "x-kubernetes-map-type": "odd"},
    "a map type on text": {"type": "string", "x-kubernetes-map-type": "atomic"},
    "a minimum over its maximum": {"type": "integer", "minimum": 5, "maximum": 1},
    "a negative length": {"type": "string", "minLength": -1},
    "a format that is not known": {"type": "string", "format": "odd"},
    "required what is not there": {"type": "object", "required": ["a"]},
    "a rule": _ruled({"type": "string", "maxLength": 5}, "self.startsWith('a')"),
    "a rule that is empty": _ruled(_TEXT, " "),
    "a rule that does not parse": _ruled(_TEXT, "self ==="),
    "a rule that is not a boolean": _ruled(_TEXT, "self + 'x'"),
    "a rule about what is not there": _ruled({"type": "object", "properties": {"a": _TEXT}}, "self.b == 'x'"),
    "a rule that compares two types": _ruled({"type": "object", "properties": {"a": _TEXT}}, "self.a == 1"),
    "a rule that costs too much": _ruled(
        {"type": "array", "items": {"type": "string"}},
        "self.all(x, self.all(y, self.all(z, x.contains(y) && y.contains(z))))",
    ),
    "a rule with a message of two lines": _ruled(_TEXT, "true", message="a\nb"),
    "a rule with a message expression that is no text": _ruled(_TEXT, "true", messageExpression="1"),
    "a rule with a reason that is not known": _ruled(_TEXT, "true", reason="Odd"),
    "a rule with a field path that is not there": _ruled(
        {"type": "object", "properties": {"a": _TEXT}}, "true", fieldPath=".b"
    ),
    "a rule with a good field path": _ruled(
        {"type": "object", "properties": {"a": _TEXT}}, "has(self.a)", fieldPath=".a"
    ),
    "a rule twice": {"type": "string", "x-kubernetes-validations": [{"rule": "true"}, {"rule": "true"}]},
    "a rule on old values under an atomic list": {"type": "array", "items": _ruled(_TEXT, "self == oldSelf")},
    "optionalOldSelf": _ruled(
        {"type": "string", "maxLength": 5}, "!oldSelf.hasValue() || oldSelf.value() == self", optionalOldSelf=True
    ),
    "optionalOldSelf without old values": _ruled(_TEXT, "self == 'a'", optionalOldSelf=True),
    "many things wrong": {"type": "object", "properties": {"a": {}, "b": {"type": "odd"}, "c": {"type": "array"}}},
    "unknown words": {"type": "object", "odd": 1, "properties": {"a": {"type": "string", "colour": "x"}}},
}
_VERSIONS: dict[str, Any] = {
    "no schema": {"schema": None},
    "an empty schema": {"schema": {}},
    "an empty root": {"schema": {"openAPIV3Schema": {}}},
    "a root that is text": {"schema": {"openAPIV3Schema": {"type": "string"}}},
    "metadata restricted by name": {
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}
                },
            }
        }
    },
    "metadata restricted by labels": {
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}},
            }
        }
    },
    "a nullable root": {"schema": {"openAPIV3Schema": {"type": "object", "nullable": True}}},
    "not stored": {"storage": False},
    "not served": {"served": False},
    "no name": {"name": ""},
    "a bad name": {"name": "One"},
    "odd but good name": {"name": "alpha"},
    "a warning without deprecation": {"deprecationWarning": "x"},
    "a deprecation": {"deprecated": True},
    "columns": {"additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}]},
    "a column without a path": {"additionalPrinterColumns": [{"name": "A", "type": "string"}]},
    "a column of an odd type": {"additionalPrinterColumns": [{"name": "A", "type": "text", "jsonPath": ".a"}]},
    "a column of an odd format": {
        "additionalPrinterColumns": [{"name": "A", "type": "string", "format": "odd", "jsonPath": ".a"}]
    },
    "a column with a bad path": {"additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": "a[]"}]},
    "a status door": {"subresources": {"status": {}}},
    "a scale door": {
        "subresources": {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}
    },
    "a scale door without paths": {"subresources": {"scale": {}}},
    "a scale door with bad paths": {
        "subresources": {
            "scale": {"specReplicasPath": ".status.a", "statusReplicasPath": ".spec.b[0]", "labelSelectorPath": "x"}
        }
    },
    "selectable fields": {
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"a": _TEXT}}},
            }
        },
        "selectableFields": [{"jsonPath": ".spec.a"}],
    },
    "a selectable field that is not there": {"selectableFields": [{"jsonPath": ".spec.a"}]},
    "a selectable field of metadata": {"selectableFields": [{"jsonPath": ".metadata.name"}]},
    "selectable fields twice": {
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": _TEXT}}},
        "selectableFields": [{"jsonPath": ".a"}, {"jsonPath": ".a"}],
    },
}
_SPECS: dict[str, Any] = {
    "no group": {"group": ""},
    "another group than its name": {"group": "other.example.com"},
    "a bad group": {"group": "Bad_Group"},
    "no scope": {"scope": None},
    "an odd scope": {"scope": "Odd"},
    "no versions": {"versions": []},
    "preserveUnknownFields": {"preserveUnknownFields": True},
    "a conversion that is not known": {"conversion": {"strategy": "Odd"}},
    "a webhook conversion without webhook": {"conversion": {"strategy": "Webhook"}},
    "a webhook conversion": {
        "conversion": {
            "strategy": "Webhook",
            "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/x"}},
        }
    },
    "a none conversion with a webhook": {
        "conversion": {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}
    },
}
_NAMES: dict[str, Any] = {
    "no plural": {"plural": ""},
    "another plural": {"plural": "others"},
    "no kind": {"kind": ""},
    "a bad kind": {"kind": "not ok"},
    "a bad short name": {"shortNames": ["Not Ok"]},
    "a bad singular": {"singular": "Thing"},
    "a list kind": {"listKind": "ThingCollection"},
    "a list kind that is its kind": {"listKind": "Thing"},
    "categories": {"categories": ["all", "x"]},
    "a bad category": {"categories": ["Not Ok"]},
}
_TWO = [
    {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": _OBJECT}},
    {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": _OBJECT}},
]


def _with(**changes: Any) -> dict[str, Any]:
    document = copy.deepcopy(
        definition({"type": "object", "properties": {"a": _TEXT, "n": {"type": "integer", "default": 1}}})
    )
    document["spec"] |= changes
    return document


def _version(name: str, field: str, *, stored: bool) -> dict[str, Any]:
    spec = {
        "type": "object",
        "properties": {"a": _TEXT, field: _TEXT, f"{field}er": {"type": "string", "default": name}},
    }
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"name": name, "served": True, "storage": stored, "schema": schema}


_TWO = [_version("v1", "old", stored=True), _version("v2", "new", stored=False)]


SCENARIOS: dict[str, list[Request]] = {
    **{f"schema: {name}": [post(f"{DEFINITIONS}?dryRun=All", definition(schema))] for name, schema in _SCHEMAS.items()},
    **{
        f"version: {name}": [post(f"{DEFINITIONS}?dryRun=All", definition(version=version))]
        for name, version in _VERSIONS.items()
    },
    **{f"spec: {name}": [post(f"{DEFINITIONS}?dryRun=All", definition(spec=spec))] for name, spec in _SPECS.items()},
    **{
        f"names: {name}": [post(f"{DEFINITIONS}?dryRun=All", definition(names=names))] for name, names in _NAMES.items()
    },
    "two stored versions": [post(f"{DEFINITIONS}?dryRun=All", definition(spec={"versions": _TWO}))],
    "one version twice": [post(f"{DEFINITIONS}?dryRun=All", definition(spec={"versions": [_TWO[0], _TWO[0]]}))],
    "unknown words, strictly": [
        post(f"{DEFINITIONS}?dryRun=All&fieldValidation=Strict", definition(_SCHEMAS["unknown words"]))
    ],
    "another name": [post(f"{DEFINITIONS}?dryRun=All", definition() | {"metadata": {"name": "others.x.example.com"}})],
    "a protected group": [
        post(
            f"{DEFINITIONS}?dryRun=All",
            definition(spec={"group": "x.k8s.io"}) | {"metadata": {"name": "things.x.k8s.io"}},
        )
    ],
    "life": [
        post(DEFINITIONS, _with()),
        get(D, until="InitialNamesAccepted"),
        _SERVED,
        post(THINGS, thing(spec={"a": "x", "odd": 1})),
        get(f"{THINGS}/t"),
        get(f"/apis/{GROUP}"),
        get(f"/apis/{GROUP}/v1"),
        delete(D),
        get(D, until="NotFound"),
        get(f"{THINGS}/t", until="404"),
    ],
    "read, list and apply": [
        post(DEFINITIONS, _with()),
        get(f"{DEFINITIONS}?fieldSelector=metadata.name={NAME}", until="InitialNamesAccepted"),
        apply(
            D,
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"labels": {"a": "b"}},
            },
        ),
        get(f"{D}/status"),
        delete(D),
    ],
    "a change of the schema": [
        post(DEFINITIONS, _with()),
        get(D, until="InitialNamesAccepted"),
        _SERVED,
        post(THINGS, thing(spec={"a": "x"})),
        json_patch(
            D,
            {
                "op": "add",
                "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/b",
                "value": {"type": "string", "default": "new"},
            },
        ),
        get(f"{THINGS}/t", until='"new"'),
        merge(f"{THINGS}/t", {"spec": {"a": "y"}}),
        json_patch(D, {"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a"}),
        delete(D),
    ],
    "what cannot change": [
        post(DEFINITIONS, _with()),
        get(D, until="InitialNamesAccepted"),
        merge(D, {"spec": {"scope": "Namespaced"}}),
        merge(D, {"spec": {"group": "other.example.com"}}),
        merge(D, {"spec": {"names": {"kind": "Other"}}}),
        merge(D, {"spec": {"names": {"plural": "others"}}}),
        json_patch(D, {"op": "replace", "path": "/spec/versions/0/name", "value": "v9"}),
        put(D, definition(spec={"versions": []})),
        delete(D),
    ],
    "the same names twice": [
        post(DEFINITIONS, _with()),
        get(D, until="InitialNamesAccepted"),
        post(DEFINITIONS, {**definition(names={"plural": "others"}), "metadata": {"name": f"others.{GROUP}"}}),
        get(f"{DEFINITIONS}/others.{GROUP}", until="NotAccepted"),
        delete(f"{DEFINITIONS}/others.{GROUP}"),
        delete(D),
    ],
    "what another version writes": [
        post(DEFINITIONS, definition(spec={"versions": _TWO})),
        _SERVED,
        post(NEW_THINGS, thing(apiVersion=f"{GROUP}/v2", spec={"a": "x", "new": "n"})),
        get(f"{THINGS}/t"),
        get(f"{NEW_THINGS}/t"),
        merge(f"{NEW_THINGS}/t", {"spec": {"a": "y", "new": "m"}}),
        get(f"{THINGS}/t"),
        get(NEW_THINGS),
        put(f"{THINGS}/t", thing(spec={"a": "z", "old": "o"})),
        get(f"{NEW_THINGS}/t"),
        delete(D),
    ],
    "while it ends": [
        post(DEFINITIONS, _with()),
        _SERVED,
        post(THINGS, thing(metadata={"name": "t", "finalizers": ["example.com/x"]})),
        delete(D),
        get(D, until="InstanceDeletionInProgress"),
        post(THINGS, thing(metadata={"name": "late"})),
        merge(D, {"metadata": {"labels": {"a": "b"}}}),
        post(DEFINITIONS, _with()),
        merge(f"{THINGS}/t", {"metadata": {"finalizers": None}}),
    ],
    "a read-only subresource": [
        post(f"{DEFINITIONS}?dryRun=All", definition() | {"status": {"storedVersions": ["v7"]}})
    ],
    "as tables": [
        get(f"{DEFINITIONS}?fieldSelector=metadata.name=widgets.differential.trimtab.dev", until="Established"),
        Request(
            method="GET",
            path=f"{DEFINITIONS}/widgets.differential.trimtab.dev",
            headers=(("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),),
        ),
    ],
}
