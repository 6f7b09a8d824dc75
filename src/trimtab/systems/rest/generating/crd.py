"""The CustomResourceDefinition of a generated kind, such as any API server takes it: structural, and without CEL.

It says what a schema can say of a body. What may be changed when, and which fields there are at all, is admission's
business: objects preserve unknown fields, so that admission sees a wrong one and can name it, where pruning would drop
it in silence. Defaults are left to the service.

A document of an API server has bounds. When a definition is too large it is made again with less in it: without
descriptions, then without the variants of unions, then less and less deep; what is cut off takes anything.
"""

from __future__ import annotations

import copy
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.model.conditions import Conditions
from trimtab.model.resource import Spec
from trimtab.model.structural import structural
from trimtab.systems.rest.generating.schema import PRESERVE, Detail, TooLarge, body_schema, matchable
from trimtab.systems.rest.model import Model
from trimtab.systems.rest.state import Parent, Policy

Document = dict[str, Any]

LARGEST = 700_000
"""Bytes of JSON. An etcd takes 1.5 MB, of which a definition may fill half: a server keeps its last state too."""

DETAILS = (
    Detail(),
    Detail(descriptions=False),
    Detail(descriptions=False, variants=False),
    *(Detail(descriptions=False, variants=False, depth=depth) for depth in (12, 9, 7, 6, 5, 4, 3, 2, 1)),
)


def crd(model: Model) -> Document:
    """The definition, as detailed as fits."""
    for detail in DETAILS:
        try:
            made = _definition(model, detail)
        except TooLarge:
            continue
        if len(msgspec.json.encode(made)) <= LARGEST:
            return copy.deepcopy(made)  # parts of it are the same in all
    raise TooLarge(f"the definition of {model.kind} is larger than {LARGEST} bytes even without what is in its fields")


def _definition(model: Model, detail: Detail) -> Document:
    names: Document = {
        "plural": model.plural,
        "singular": model.singular or model.kind.lower(),
        "kind": model.kind,
        "listKind": f"{model.kind}List",
        "categories": ["rest"],
    }
    if model.short_names:
        names["shortNames"] = list(model.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{model.plural}.{model.group}", "labels": labels(model.service)},
        "spec": {
            "group": model.group,
            "names": names,
            "scope": "Namespaced",
            "versions": [
                {
                    "name": model.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _schema(model, detail)},
                    "subresources": _subresources(model),
                    "additionalPrinterColumns": [*_scaled(model), *COLUMNS],
                }
            ],
        },
    }


def _scaled(model: Model) -> list[Document]:
    """What is wanted and what is there of a kind that can be scaled."""
    if not model.scale_spec:
        return []
    return [
        {"name": "Desired", "type": "integer", "jsonPath": model.scale_spec},
        {"name": "Current", "type": "integer", "jsonPath": model.scale_status},
    ]


def labels(service: str) -> dict[str, str]:
    """Of all that is generated for a service."""
    return {"app.kubernetes.io/part-of": "trimtab", "rest.trimtab.dev/service": service}


def _schema(model: Model, detail: Detail) -> Document:
    schema: Document = {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": _spec(model, detail),
            "status": _STATUS,
        },
        "required": ["spec"],
    }
    if detail.descriptions and model.description:
        schema["description"] = model.description
    return schema


def _spec(model: Model, detail: Detail) -> Document:
    schema = body_schema(model, detail)
    control = _control(model)
    schema["properties"] = {**control, **{k: v for k, v in schema["properties"].items() if k not in control}}
    return schema


def _control(model: Model) -> Document:
    """The fields that are ours."""
    own = next((p for p in model.parameters if p.name == model.identity.parameter), None)
    name: Document = {"type": "string", "description": "What the service calls it; metadata.name when left out."}
    name["minLength"], name["maxLength"] = 1, 1024
    if own is not None:
        if own.pattern and matchable(own.pattern):
            name["pattern"] = own.pattern
        name["minLength"] = max(own.min_length or 1, 1)
        name["maxLength"] = own.max_length or 1024
    asked = ", ".join(p.name for p in model.parameters if p.source == "object")
    return {
        "name": name,
        "parent": {**_OURS["parent"], PRESERVE: True},
        "parameters": {
            "type": "object",
            "description": f"Parameters of its path: {asked}."
            if asked
            else "Parameters of its path; this kind has none.",
            "additionalProperties": {"type": "string", "maxLength": 2048},
        },
        "resourceID": {
            "type": "string",
            "maxLength": 4096,
            "description": "Of what exists already, to take it over as it is. Only at creation.",
        },
        "policy": {**_OURS["policy"], PRESERVE: True},
    }


def _subresources(model: Model) -> Document:
    if not model.scale_spec:
        return {"status": {}}
    status = model.scale_status or model.scale_spec.replace(".spec.", ".status.observed.", 1)
    return {"status": {}, "scale": {"specReplicasPath": model.scale_spec, "statusReplicasPath": status}}


class _Ours(Spec):
    parent: Parent | UnsetType = UNSET
    policy: Policy | UnsetType = UNSET
    conditions: Conditions | UnsetType = UNSET


_OURS: Document = structural(_Ours)["properties"]
_STATUS: Document = {
    "type": "object",
    "description": "What is true of it.",
    "properties": {
        "conditions": _OURS["conditions"],
        "observedGeneration": {"type": "integer", "format": "int64", "description": "That the conditions speak of."},
        "resourceID": {"type": "string", "description": "Its path below the service's endpoint."},
        "observed": {PRESERVE: True, "description": "What the service said last, without secrets."},
        "joined": {"type": "object", PRESERVE: True, "description": "What further reads gave, by their names."},
        "plan": {"type": "object", PRESERVE: True, "description": "What would be done, with spec.policy.mode plan."},
        "sync": {"type": "object", PRESERVE: True, "description": "The reconciler's memory."},
    },
}
COLUMNS: list[Document] = [
    {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"},
    {"name": "Synced", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Synced')].status"},
    {
        "name": "Reason",
        "type": "string",
        "jsonPath": ".status.conditions[?(@.type=='Ready')].reason",
        "priority": 1,
    },
    {"name": "ID", "type": "string", "jsonPath": ".status.resourceID", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
