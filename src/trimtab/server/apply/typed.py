"""What a configuration says: the set of its fields, and what is wrong with it under its type."""

from __future__ import annotations

from typing import Any

from trimtab.server.apply.elements import UnkeyedError, element_of, indexed
from trimtab.server.apply.fieldset import SELF, FieldSet, ordered, shown
from trimtab.server.apply.types import List, Map, Type
from trimtab.server.patch.failures import printed

MAX_DEPTH = 200
UNDECLARED = "field not declared in schema"


def fields_of(kind: Type | None, value: Any) -> FieldSet:
    """Every leaf, every element of a list and every key of a map that the value mentions."""
    return _fields(kind, value) or {}


def problems(kind: Type, document: dict[str, Any]) -> list[str]:
    """What is wrong with a configuration, as the API words it; nothing when it can be applied."""
    found: list[str] = []
    _check(kind, document, "", found, 0)
    return found


def _fields(kind: Type | None, value: Any) -> FieldSet | None:
    """The node of a value; None when it mentions nothing."""
    if kind is not None and isinstance(value, dict):
        if kind.map is None or kind.map.atomic:
            return {}
        return _fields_of_map(kind.map, value)
    if kind is not None and isinstance(value, list):
        if kind.list is None or kind.list.atomic:
            return {}
        return _fields_of_list(kind.list, value)
    return {}


def _fields_of_map(shape: Map, value: dict[str, Any]) -> FieldSet | None:
    node: FieldSet = {}
    fields, declared = shape.fields, shape.fields.properties
    for name in sorted(value):
        below = value[name]
        if not isinstance(below, dict | list):
            node["f:" + name] = {}
            continue
        child = _fields(fields[name], below)
        if below == {} or name not in declared:
            child = _with_itself(child)
        if child is not None:
            node["f:" + name] = child
    return node or None


def _fields_of_list(series: List, value: list[Any]) -> FieldSet | None:
    node = {
        element: _with_itself(_fields(series.element, items[0])) if len(items) == 1 else {}
        for element, items in indexed(series, value).items()
    }
    return ordered(node) or None


def _with_itself(node: FieldSet | None) -> FieldSet:
    return {SELF: {}, **node} if node else {}


def _check(kind: Type, value: Any, path: str, found: list[str], depth: int) -> None:
    if value is None:
        return
    if depth > MAX_DEPTH:
        found.append(_at(path, "nested too deeply"))
    elif isinstance(value, dict) and kind.map is not None:
        _check_map(kind.map, value, path, found, depth)
    elif isinstance(value, list) and kind.list is not None:
        _check_list(kind.list, value, path, found, depth)
    elif isinstance(value, dict | list) or not kind.scalar:
        _check_kind(kind, value, path, found)
    else:
        _check_scalar(kind.scalar, value, path, found)


def _check_map(shape: Map, value: dict[str, Any], path: str, found: list[str], depth: int) -> None:
    for name, below in value.items():
        kind = shape.fields[name]
        if kind is None:
            found.append(_at(f"{path}.{name}", UNDECLARED))
        else:
            _check(kind, below, f"{path}.{name}", found, depth + 1)


def _check_list(series: List, value: list[Any], path: str, found: list[str], depth: int) -> None:
    seen = set()
    for index, item in enumerate(value):
        place = f"[{index}]"
        if not series.atomic:
            try:
                element = element_of(series, item)
            except UnkeyedError as problem:
                found.append(_at(path, f"element {index}: {problem}"))
                return
            place = shown((element,))
            if element in seen:
                found.append(_at(path, f"duplicate entries for key {place}"))
            seen.add(element)
        _check(series.element, item, path + place, found, depth + 1)


def _check_kind(kind: Type, value: Any, path: str, found: list[str]) -> None:
    if kind.map is not None:
        found.append(_at(path, f"expected map, got &{{{printed(value)}}}"))
    elif kind.scalar:
        _check_scalar(kind.scalar, value, path, found)
    else:
        found.append(_at(path, f"expected list, got &{{{printed(value)}}}"))


def _check_scalar(scalar: str, value: Any, path: str, found: list[str]) -> None:
    if scalar == "numeric":
        if isinstance(value, bool) or not isinstance(value, int | float):
            found.append(_at(path, f"expected numeric (int or float), got {_go_type(value)}"))
    elif scalar == "string":
        if not isinstance(value, str):
            found.append(_at(path, f"expected string, got &value.valueUnstructured{{Value:{_go_literal(value)}}}"))
    elif scalar == "boolean":
        if not isinstance(value, bool):
            found.append(_at(path, f"expected boolean, got &{{{printed(value)}}}"))
    elif isinstance(value, dict | list):
        found.append(_at(path, f"expected any scalar, got &{{{printed(value)}}}"))


def _at(path: str, text: str) -> str:
    return f"{path}: {text}" if path else text


def _go_type(value: Any) -> str:
    names = {str: "string", bool: "bool", dict: "map[string]interface {}", list: "[]interface {}"}
    return names[type(value)]


def _go_literal(value: Any) -> str:
    """A value as Go's `%#v` prints it."""
    if isinstance(value, dict):
        inner = ", ".join(f'"{key}":{_go_literal(value[key])}' for key in sorted(value))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_literal, value))}}}"
    if isinstance(value, str):
        return f'"{value}"'
    return "interface {}(nil)" if value is None else printed(value)
