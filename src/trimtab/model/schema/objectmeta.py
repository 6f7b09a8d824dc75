"""ObjectMeta as a Go struct: the types of its fields."""

from __future__ import annotations

from functools import cache
from typing import Any

from trimtab.model.schema.finding import Check


@cache
def check() -> Check:
    """Drops nulls and unknown fields of an ObjectMeta; finds values of the wrong types."""
    from trimtab.model.schema.native import compile_struct

    return compile_struct("v1.ObjectMeta", _DEFINITIONS)


_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_TIME = {"$ref": "#/definitions/v1.Time"}
_NUMBER = {"type": "integer", "format": "int64"}

_DEFINITIONS: dict[str, Any] = {
    "v1.Time": {"type": "string", "format": "date-time"},
    "v1.FieldsV1": {"type": "object"},
    "v1.OwnerReference": {
        "type": "object",
        "properties": {
            "apiVersion": _TEXT,
            "blockOwnerDeletion": {"type": "boolean"},
            "controller": {"type": "boolean"},
            "kind": _TEXT,
            "name": _TEXT,
            "uid": {"$ref": "#/definitions/types.UID"},
        },
    },
    "types.UID": _TEXT,
    "v1.ManagedFieldsOperationType": _TEXT,
    "v1.ManagedFieldsEntry": {
        "type": "object",
        "properties": {
            "apiVersion": _TEXT,
            "fieldsType": _TEXT,
            "fieldsV1": {"$ref": "#/definitions/v1.FieldsV1"},
            "manager": _TEXT,
            "operation": {"$ref": "#/definitions/v1.ManagedFieldsOperationType"},
            "subresource": _TEXT,
            "time": _TIME,
        },
    },
    "v1.ObjectMeta": {
        "type": "object",
        "properties": {
            "annotations": _TEXTS,
            "creationTimestamp": _TIME,
            "deletionGracePeriodSeconds": _NUMBER,
            "deletionTimestamp": _TIME,
            "finalizers": {"type": "array", "items": _TEXT},
            "generateName": _TEXT,
            "generation": _NUMBER,
            "labels": _TEXTS,
            "managedFields": {"type": "array", "items": {"$ref": "#/definitions/v1.ManagedFieldsEntry"}},
            "name": _TEXT,
            "namespace": _TEXT,
            "ownerReferences": {"type": "array", "items": {"$ref": "#/definitions/v1.OwnerReference"}},
            "resourceVersion": _TEXT,
            "selfLink": _TEXT,
            "uid": {"$ref": "#/definitions/types.UID"},
        },
    },
}
