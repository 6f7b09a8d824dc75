"""The way from client-side to server-side apply: the annotation in which `kubectl apply` keeps its last configuration.

When the manager is kubectl's own, fields that the annotation names and that are still as it says are taken over without
a conflict, and the annotation, where an object has it, is kept in step.
"""

from __future__ import annotations

from typing import Any

import orjson

from trimtab.server.apply.compare import compare
from trimtab.server.apply.fieldset import FieldSet, difference
from trimtab.server.apply.typed import fields_of, problems
from trimtab.server.apply.types import Root

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"
_MAX_ANNOTATIONS_SIZE = 256 * 1024


def inherited(kind: Root, live: dict[str, Any], api_version: str) -> FieldSet:
    """The fields that kubectl applied from the client's side and that nobody changed since."""
    text = _annotations(live).get(ANNOTATION)
    if not text or not isinstance(text, str):
        return {}
    try:
        config = orjson.loads(text)
    except ValueError:
        return {}
    if not isinstance(config, dict) or config.get("apiVersion") != api_version or problems(kind, config):
        return {}
    fields = fields_of(kind, config)
    for changed in compare(kind, config, live):
        fields = difference(fields, changed)
    return fields


def in_step(applied: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """The applied object with the annotation, if it has one, saying what was applied now."""
    annotations = _annotations(applied)
    if not annotations.get(ANNOTATION):
        return applied
    annotations = annotations | {ANNOTATION: _last_applied(config)}
    if sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items()) > _MAX_ANNOTATIONS_SIZE:
        del annotations[ANNOTATION]
    return applied | {"metadata": applied["metadata"] | {"annotations": annotations}}


def _last_applied(config: dict[str, Any]) -> str:
    metadata = dict(config.get("metadata") or {})
    if metadata.get("annotations"):
        metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k != ANNOTATION}
    document = orjson.dumps(config | {"metadata": metadata}, option=orjson.OPT_SORT_KEYS).decode()
    for character in "<>&":
        document = document.replace(character, f"\\u{ord(character):04x}")
    return document + "\n"


def _annotations(document: dict[str, Any]) -> dict[str, Any]:
    return (document.get("metadata") or {}).get("annotations") or {}
