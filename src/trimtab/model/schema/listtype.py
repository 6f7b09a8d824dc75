"""Lists that are sets or maps: no element, or no key, twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.schema.finding import Check, Finding, Found, Stage, duplicate


def list_type_check(document: Mapping[str, Any]) -> Check | None:
    """The check of `x-kubernetes-list-type: set` or `map`; None for lists of other types."""
    list_type = document.get("x-kubernetes-list-type")
    if list_type == "set":
        return _set
    if list_type == "map":
        return _map(tuple(document.get("x-kubernetes-list-map-keys") or ()))
    return None


def _set(value: list[Any]) -> Found:
    if len(value) < 2:
        return None
    return [duplicate(index, value[index]) for index in repeated(value)] or None


def _map(keys: tuple[str, ...]) -> Check:
    single = keys[0] if len(keys) == 1 else None

    def check(value: list[Any]) -> Found:
        for index, item in enumerate(value):
            if not isinstance(item, dict) and item is not None:
                return [_not_an_object(index, item)]
        if len(value) < 2:
            return None
        if single is not None:
            names = [item.get(single) for item in value if item]
            if all(isinstance(name, str) for name in names) and len(set(names)) == len(value):
                return None
        named = [{key: item[key] for key in keys if key in item} if item else {} for item in value]
        return [duplicate(index, named[index]) for index in repeated(named)] or None

    return check


def repeated(values: list[Any]) -> list[int]:
    """The index of the second appearance of each value that is there more than once."""
    seen: dict[Any, int] = {}
    found = []
    for index, value in enumerate(values):
        if isinstance(value, dict | list):
            key: Any = (dict, json.dumps(value, sort_keys=True))
        else:
            key = (type(value), value)
        times = seen.get(key, 0)
        seen[key] = times + 1
        if times == 1:
            found.append(index)
    return found


def _not_an_object(index: int, value: Any) -> Finding:
    detail = "must be an object for an array of list-type map"
    return Finding(Stage.LIST_TYPE, lambda path: FieldError(path, FieldProblem.INVALID, value, detail), [index])


def breaks_list_types(value: Any, document: Mapping[str, Any]) -> bool:
    """Whether any list in an object has something twice that it must not have."""
    if isinstance(value, dict):
        properties = document.get("properties") or {}
        others = document.get("additionalProperties")
        parts = ((item, properties.get(name, others)) for name, item in value.items())
        return any(isinstance(part, Mapping) and breaks_list_types(item, part) for item, part in parts)
    if not isinstance(value, list):
        return False
    check = list_type_check(document)
    items = document.get("items")
    if check is not None and check(value) is not None:
        return True
    return isinstance(items, Mapping) and any(breaks_list_types(item, items) for item in value)
