"""A kind of a user's own, defined on a server of its own while that runs: every form that a field can have.

Nobody reconciles it, so that a test can be its controller.
"""

from __future__ import annotations

import threading
from typing import Any

from tests.terraform.kinds.others import changed
from trimtab.terraform.kinds.api import Api

GROUP = "water.example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

QUANTITIES = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""What a generator of definitions writes for a quantity."""

_TEXT: dict[str, Any] = {"type": "string"}
_FIXED = [{"rule": "self == oldSelf", "message": "may not be changed"}]
_BERTH: dict[str, Any] = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": _TEXT, "note": _TEXT, "metres": {"type": "integer", "default": 80}},
}


def _by(key: str, items: dict[str, Any]) -> dict[str, Any]:
    """A list whose items are told apart by a key."""
    return {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [key],
        "items": items,
    }


_SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["depth"],
    "x-kubernetes-validations": [
        {"rule": "(has(self.rope) ? 1 : 0) + (has(self.chain) ? 1 : 0) <= 1", "message": "at most one of rope, chain"}
    ],
    "properties": {
        "depth": {"type": "integer"},
        "colour": {**_TEXT, "enum": ["red", "green"], "default": "red"},
        "tags": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
        "fooBar": _TEXT,
        "foo_bar": _TEXT,
        "lamps": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": _TEXT, "watts": {"type": "integer", "default": 5}, "note": _TEXT},
            },
        },
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["number"],
            "items": {
                "type": "object",
                "required": ["number"],
                "properties": {"number": {"type": "integer"}, "use": _TEXT},
            },
        },
        "rope": {"type": "object", "properties": {"length": {"type": "number"}}},
        "chain": {"type": "object", "properties": {"links": {"type": "integer"}}},
        "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "code": {**_TEXT, "format": "password", "pattern": "^[^ ]*$"},
        "serial": {**_TEXT, "x-kubernetes-validations": _FIXED, "maxLength": 64},
        "grid": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "depths": {"type": "object", "additionalProperties": {"type": "number"}},
        "charts": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": _TEXT}},
        "crew": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {"rank": _TEXT, "watch": {"type": "integer", "default": 4}},
            },
        },
        "gate": {"x-kubernetes-int-or-string": True},
        "power": {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": QUANTITIES,
        },
        "whatever": {"x-kubernetes-preserve-unknown-fields": True},
        "notes": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}},
        "berths": {"type": "object", "additionalProperties": {"type": "array", "items": _BERTH}},
        "watches": {"type": "object", "additionalProperties": _by("name", _BERTH)},
        "logs": {"type": "array", "items": {**_BERTH, "x-kubernetes-preserve-unknown-fields": True}},
        "cargo": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {
                "weight": {"type": "integer", "default": 1},
                "berths": {"type": "array", "items": _BERTH},
                "watches": _by("name", _BERTH),
                "marks": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
            },
        },
        "decks": {
            "type": "object",
            "additionalProperties": {
                "type": "array",
                "items": {"type": "object", "additionalProperties": {"type": "array", "items": _BERTH}},
            },
        },
    },
}
_CONDITION = {
    "type": "object",
    "required": ["type", "status"],
    "properties": dict.fromkeys(("type", "status", "reason", "message"), _TEXT)
    | {"observedGeneration": {"type": "integer"}},
}
_STATUS = {
    "type": "object",
    "properties": {
        "observedGeneration": {"type": "integer"},
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": _CONDITION,
        },
    },
}

BUOYS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"buoys.{GROUP}"},
    "spec": {
        "group": GROUP,
        "names": {"kind": "Buoy", "plural": "buoys"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": _SPEC, "status": _STATUS, "count": {"type": "integer"}},
                    }
                },
            }
        ],
    },
}


def definition(kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Of a kind of one version, with the schema of its objects."""
    plural = f"{kind.lower()}s"
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def define(api: Api, crd: dict[str, Any]) -> None:
    """Until its kind is served."""
    name = crd["metadata"]["name"]
    generation = api.apply(f"{DEFINITIONS}/{name}", crd, force=True).document["metadata"]["generation"]
    query = {"watch": "true", "fieldSelector": f"metadata.name={name}"}
    for event in api.watch(DEFINITIONS, query, within=30, cancelled=threading.Event()):
        conditions = event.object.get("status", {}).get("conditions", ())
        if event.object["metadata"]["generation"] >= generation and any(
            one["type"] == "Established" and one["status"] == "True" for one in conditions
        ):
            return
    raise AssertionError(f"{name} is not served")


def undefine(api: Api, name: str) -> None:
    """Until its kind is served no more."""
    api.delete(f"{DEFINITIONS}/{name}")
    left = api.find(f"{DEFINITIONS}/{name}")
    if left is not None:
        since = left["metadata"]["resourceVersion"]  # it may be gone before the watch begins
        query = {"watch": "true", "fieldSelector": f"metadata.name={name}", "resourceVersion": since}
        events = api.watch(DEFINITIONS, query, within=30, cancelled=threading.Event())
        assert any(event.type == "DELETED" for event in events)


def path(name: str, namespace: str = "default") -> str:
    return f"/apis/{GROUP}/v1/namespaces/{namespace}/buoys/{name}"


def seen(api: Api, name: str, within: float = 30) -> dict[str, Any]:
    """The buoy, as soon as it is there."""
    query = {"watch": "true", "fieldSelector": f"metadata.name={name}"}
    events = api.watch(f"/apis/{GROUP}/v1/namespaces/default/buoys", query, within=within, cancelled=threading.Event())
    return next(event.object for event in events if event.type == "ADDED")


def tell(api: Api, name: str, condition: str, status: str = "True", message: str = "") -> None:
    """As its controller would."""
    told = {"type": condition, "status": status, "reason": "Told", "message": message}
    changed(api, path(name), {"status": {"observedGeneration": 1, "conditions": [told]}}, status=True)
