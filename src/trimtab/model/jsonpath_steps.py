"""The steps of a JSONPath: functions from the values found so far to the values found next."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

MAX_RESULTS = 100_000
"""How many values one step may yield; only chains of `..` get there."""

Step = Callable[[list[Any]], list[Any]]


class JSONPathError(ValueError):
    """The path cannot be read, or an object is not of the shape that it asks for."""


def run(steps: list[Step], values: list[Any]) -> list[Any]:
    for step in steps:
        values = step(values)
        if len(values) > MAX_RESULTS:
            raise JSONPathError(f"more than {MAX_RESULTS} results")
    return values


def key(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def wildcard(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, dict):
            found.extend(value.values())
        elif isinstance(value, list):
            found.extend(value)
    return found


def descend(values: list[Any]) -> list[Any]:
    """Every object and list, outermost first, the value itself included."""
    found: list[Any] = []
    rest = values[::-1]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            found.append(value)
            rest.extend(reversed(value.values()))
        elif isinstance(value, list):
            found.append(value)
            rest.extend(reversed(value))
        if len(found) > MAX_RESULTS:
            raise JSONPathError(f"more than {MAX_RESULTS} results")
    return found


def sliced(match: re.Match[str]) -> Step:
    first, last, step = match.groups()
    single = last is None
    try:
        start = int(first) if first else 0
        end = start + 1 if single else (int(last[1:]) if last[1:] else None)
        stride = int(step[1:]) if step and step[1:] else 1
    except ValueError:
        raise JSONPathError(f"array index {match.group()} is not a number") from None
    if stride <= 0:
        raise JSONPathError("step must be > 0")

    def take(values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise JSONPathError(f"{type(value).__name__} is not array or slice")
            size = len(value)
            low = start + size if start < 0 else start
            high = size if end is None else end
            if high < 0 or (high == 0 and single):
                high += size
            if low == high:
                return found
            for bound in (low, high - 1):
                if not 0 <= bound < size:
                    raise JSONPathError(f"array index out of bounds: index {bound}, length {size}")
            if low > high:
                raise JSONPathError(f"starting index {low} is greater than ending index {high}")
            found.extend(value[low:high:stride])
        return found

    return take


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise JSONPathError(f"{printed(value)} is not array or slice and cannot be filtered")
    return value


def exists(steps: list[Step]) -> Step:
    def holds(item: Any) -> bool:
        try:
            return bool(run(steps, [item]))
        except JSONPathError:
            return False

    return lambda values: [item for value in values for item in _items(value) if holds(item)]


def key_is(key: str, wanted: str) -> Step:
    """`[?(@.type=="Ready")]`, the filter of almost every column that has one: no lists in between."""

    def take(values: list[Any]) -> list[Any]:
        found = []
        for value in values:
            for item in _items(value):
                if isinstance(item, dict) and key in item:
                    if not isinstance(item[key], str):
                        raise JSONPathError("incompatible types for comparison")
                    if item[key] == wanted:
                        found.append(item)
        return found

    return take


def compared(left: list[Step], compare: Callable[[Any, Any], bool], right: list[Step]) -> Step:
    def holds(item: Any) -> bool:
        ours, theirs = run(left, [item]), run(right, [item])
        if not ours or not theirs:
            return False
        if len(ours) > 1 or len(theirs) > 1:
            raise JSONPathError("can only compare one element at a time")
        if _sort_of(ours[0]) != _sort_of(theirs[0]):
            raise JSONPathError("incompatible types for comparison")
        return compare(ours[0], theirs[0])

    return lambda values: [item for value in values for item in _items(value) if holds(item)]


def _sort_of(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    raise JSONPathError("invalid type for comparison")


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


def printed(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
        return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")  # as encoding/json does
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
