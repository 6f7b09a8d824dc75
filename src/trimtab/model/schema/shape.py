"""Defaulting alone, for objects that were stored before their schema had the defaults; and pruning alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.model.schema import budget
from trimtab.model.schema.embedded import EMBEDDED_FIELDS

Document = Mapping[str, Any]


def default(value: Any, document: Document) -> None:
    """Put the defaults of absent fields, and of nulls where null is not allowed."""
    if isinstance(value, dict):
        properties: Document = document.get("properties") or {}
        others = document.get("additionalProperties")
        for name, part in properties.items():
            given = part.get("default")
            if given is not None and (name not in value or _misplaced_null(value[name], part)):
                value[name] = _made(given)
        for name, item in value.items():
            schema = properties.get(name, others)
            if not isinstance(schema, Mapping):
                continue
            if name not in properties and _misplaced_null(item, schema):
                value[name] = item = _made(schema.get("default"))
            default(item, schema)
    elif isinstance(value, list):
        schema = document.get("items")
        if isinstance(schema, Mapping):
            for index, item in enumerate(value):
                if _misplaced_null(item, schema):
                    value[index] = item = _made(schema.get("default"))
                default(item, schema)


def _made(given: Any) -> Any:
    budget.spend(budget.size_of(given))
    return copied(given)


def _misplaced_null(value: Any, document: Document) -> bool:
    return value is None and not document.get("nullable")


def prune(value: Any, document: Document | None, *, resource: bool = False, keep: bool = False) -> list[str]:
    """Remove the fields that the schema does not know; their paths. `resource`: apiVersion, kind and metadata stay.
    `keep`: an array above preserves unknown fields."""
    removed: list[str] = []
    document = document or {}
    keep = keep or bool(document.get("x-kubernetes-preserve-unknown-fields"))
    resource = resource or bool(document.get("x-kubernetes-embedded-resource"))
    if isinstance(value, dict):
        properties: Document = document.get("properties") or {}
        others = document.get("additionalProperties")
        for name in list(value):
            if resource and name in EMBEDDED_FIELDS:
                continue
            if name in properties:
                removed += _under(name, prune(value[name], properties[name]))
            elif others:
                removed += _under(name, prune(value[name], others if isinstance(others, Mapping) else None))
            elif not keep:
                del value[name]
                removed.append(name)
    elif isinstance(value, list):
        part = document.get("items")
        if part is not None or not keep:
            for index, item in enumerate(value):
                removed += [f"[{index}]{_joined(path)}" for path in prune(item, part, keep=keep)]
    return sorted(removed)


def _under(name: str, paths: list[str]) -> list[str]:
    return [f"{name}{_joined(path)}" for path in paths]


def _joined(path: str) -> str:
    return path if path.startswith("[") else f".{path}"


def copied(value: Any) -> Any:
    """A deep copy of a JSON value; much faster than copy.deepcopy."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value
