"""When two spellings mean the same: numbers, durations, quantities, times, JSON, at any depth of a list or map; and two
orders of a list whose items are told apart by several keys.

Terraform compares texts. An attribute whose form has many spellings carries one of these functions, so that a server that
writes `90s` as `1m30s` makes no diff.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from trimtab.terraform.framework.values import UNKNOWN
from trimtab.terraform.kinds.converting import int_or_string
from trimtab.terraform.kinds.definition import DURATION, INT_OR_STRING, JSON, NUMBER, OBJECT, QUANTITY, SET, TIME, Shape

Equal = Callable[[Any, Any], bool]


def equality(shape: Shape) -> Equal | None:
    """For a value of this shape; None where equal texts are all that is equal. Objects have one for each attribute."""
    if shape.items is not None and shape.items.form != OBJECT:
        inner = equality(shape.items)
        return None if inner is None else _collections(inner, unordered=shape.form == SET)
    if shape.items is not None and len(shape.keys) > 1:
        return _collections(partial(_alike, shape.items), unordered=True)
    return _SCALARS.get(shape.form)


def means_the_same(shape: Shape, one: Any, other: Any) -> bool:
    """Of two values that are neither null nor unknown."""
    equal = equality(shape)
    return bool(one == other or (equal is not None and equal(one, other)))


def _alike(items: Shape, one: Any, other: Any) -> bool:
    """Of two items of a list of objects."""
    return all(
        _both(partial(means_the_same, field.shape), one.get(field.name), other.get(field.name))
        for field in items.fields
    )


def _collections(inner: Equal, *, unordered: bool) -> Equal:
    def equal(one: Any, other: Any) -> bool:
        if isinstance(one, dict) and isinstance(other, dict):
            return one.keys() == other.keys() and all(_both(inner, one[key], other[key]) for key in one)
        if not isinstance(one, list) or not isinstance(other, list) or len(one) != len(other):
            return bool(one == other)
        if unordered:
            return all(any(_both(inner, item, match) for match in other) for item in one) and all(
                any(_both(inner, match, item) for item in one) for match in other
            )
        return all(_both(inner, item, match) for item, match in zip(one, other, strict=True))

    return equal


def _both(inner: Equal, one: Any, other: Any) -> bool:
    if one is None or other is None or one is UNKNOWN or other is UNKNOWN:
        return one is other
    return one == other or inner(one, other)


def _json(one: Any, other: Any) -> bool:
    import json

    try:
        return _exactly(json.loads(one), json.loads(other))
    except (ValueError, TypeError, RecursionError):
        return False


def _exactly(one: Any, other: Any) -> bool:
    """JSON's own equality: true is not 1, and 1.0 is 1. A fraction is a double, a whole number is exact."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, float | int) and isinstance(other, float | int):
        return one == other or (float in (type(one), type(other)) and _numbers(one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_exactly(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_exactly(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def _numbers(one: Any, other: Any) -> bool:
    """Terraform counts in 512 bits, documents in 64: they mean the same double."""
    try:
        return float(one) == float(other)
    except OverflowError:
        return False


def _numbers_or_names(one: Any, other: Any) -> bool:
    first, second = int_or_string(one), int_or_string(other)
    return type(first) is type(second) and first == second


def _quantities(one: Any, other: Any) -> bool:
    from trimtab.model.quantity import Quantity

    try:
        return Quantity(one) == Quantity(other)
    except ValueError:
        return False


def _durations(one: Any, other: Any) -> bool:
    from trimtab.model.duration import Period

    try:
        return Period(one).seconds == Period(other).seconds
    except ValueError:
        return False


def _times(one: Any, other: Any) -> bool:
    from datetime import datetime

    try:
        return datetime.fromisoformat(one) == datetime.fromisoformat(other)
    except (ValueError, TypeError):
        return False


_SCALARS: dict[str, Equal] = {
    JSON: _json,
    NUMBER: _numbers,
    INT_OR_STRING: _numbers_or_names,
    QUANTITY: _quantities,
    DURATION: _durations,
    TIME: _times,
}
