"""What of a document counts in a merge: what people say, not what the server adds to every object."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

_PARTS = frozenset({dict, list, type(None)})

SERVER_METADATA = frozenset(
    {
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "finalizers",
        "generateName",
        "managedFields",
        "ownerReferences",
        "selfLink",
    }
)
SERVER_ANNOTATIONS = frozenset(
    {
        "deployment.kubernetes.io/revision",
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)


def normal(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document without status, the server's metadata, and nulls in mappings (a null is a field that is not set).

    The project is the namespace, in both shapes, and the text of a Secret is its data."""
    found: dict[str, Any] = {}
    for name, value in document.items():
        if name == "metadata" and (type(value) is dict or isinstance(value, Mapping)):
            found[name] = _metadata(value)
        elif name != "status" and value is not None:
            found[name] = value if type(value) is str else without_nulls(value)
    if "stringData" in found and (found.get("apiVersion"), found.get("kind")) == ("v1", "Secret"):
        _encode_text(found)
    return found


def _encode_text(secret: dict[str, Any]) -> None:
    """What a Secret says as text is in its `data` when it is read again: it is one field, on both sides. In place."""
    text, data = secret["stringData"], secret.get("data", {})
    if isinstance(text, dict) and isinstance(data, dict) and all(isinstance(value, str) for value in text.values()):
        del secret["stringData"]
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in text.items()}
        if data or encoded:
            secret["data"] = {**data, **encoded}


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        if _PARTS.isdisjoint(map(type, value.values())):
            return dict(value)
        return {
            name: without_nulls(inner) if type(inner) in _PARTS else inner
            for name, inner in value.items()
            if inner is not None
        }
    if isinstance(value, list):
        return [without_nulls(inner) if type(inner) in _PARTS else inner for inner in value]
    return value


def _metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in metadata.items():
        if name in SERVER_METADATA or value is None:
            continue
        if name == "project":
            name = "namespace"
        if name == "namespace" and not value:
            continue
        if name == "annotations" and (type(value) is dict or isinstance(value, Mapping)):
            value = {k: v for k, v in value.items() if v is not None and not _is_servers(k)}
            if not value:
                continue
        found[name] = value if type(value) is str else without_nulls(value)
    return found


def _is_servers(annotation: str) -> bool:
    return annotation in SERVER_ANNOTATIONS or (annotation.startswith("hub.") and annotation.endswith("/lineage"))
