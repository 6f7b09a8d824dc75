"""Terraform values as Python values.

null is None, unknown is UNKNOWN, a string is str, a bool bool, a number int, float or Decimal, a list and a set are list,
a map and an object dict, a dynamic value is Typed. Sets have no order: compare by `same`, never by `==`.

A float means the decimal that Python prints for it: 0.1 is one tenth, as it is for Terraform, whose numbers are decimal
texts or binary fractions of 512 bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from trimtab.terraform.framework.types import (
    DYNAMIC,
    NUMBER,
    ListOf,
    MapOf,
    ObjectOf,
    SetOf,
    TupleOf,
    Type,
)


class Unknown:
    """A value that will be known after apply. There is one, and it is never falsy: ask `value is UNKNOWN`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __copy__(self) -> Unknown:
        return self

    def __deepcopy__(self, memo: Any) -> Unknown:
        return self

    def __reduce__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()


@dataclass(frozen=True, slots=True)
class Typed:
    """A value of a DYNAMIC attribute, with its own type."""

    type: Type
    value: Any


def whole(value: Any) -> bool:
    """Whether nothing in the value is unknown."""
    if value is UNKNOWN:
        return False
    if isinstance(value, dict):
        return all(map(whole, value.values()))
    if isinstance(value, list):
        return all(map(whole, value))
    if isinstance(value, Typed):
        return whole(value.value)
    return True


def same(a: Any, b: Any, type_: Type) -> bool:
    """Whether two values of one type are equal: unknown equals unknown only, sets have no order."""
    if a is None or b is None or a is UNKNOWN or b is UNKNOWN:
        return a is b
    match type_:
        case ListOf(inner):
            return len(a) == len(b) and all(same(x, y, inner) for x, y in zip(a, b, strict=True))
        case SetOf(inner):
            return Counter(set_keys(a, inner)) == Counter(set_keys(b, inner))
        case MapOf(inner):
            return a.keys() == b.keys() and all(same(a[key], b[key], inner) for key in a)
        case ObjectOf(attributes):
            return all(same(a.get(name), b.get(name), inner) for name, inner in attributes.items())
        case TupleOf(elements):
            return len(a) == len(b) and all(same(x, y, inner) for x, y, inner in zip(a, b, elements, strict=True))
    if type_ == DYNAMIC:
        return bool(a.type == b.type and same(a.value, b.value, a.type))
    if type_ == NUMBER:
        return decimal(a) == decimal(b)
    return type(a) is type(b) and bool(a == b)


def decimal(value: Any) -> Decimal:
    """The number that a Python number means."""
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def number(text: str) -> int | float | Decimal:
    """A number of its decimal text, as the simplest Python number that means it exactly."""
    exact = Decimal(text)
    if not exact.is_finite():
        raise ValueError(f"not a number: {text!r}")
    if abs(exact.adjusted()) < 400 and exact == exact.to_integral_value():
        return int(exact)
    short = float(exact)
    return short if decimal(short) == exact else exact


def key(value: Any, type_: Type) -> Hashable:
    """Something hashable that is equal for the same values of a type, and for no others."""
    if value is None or value is UNKNOWN:
        return value
    match type_:
        case ListOf(inner):
            return tuple(key(element, inner) for element in value)
        case SetOf(inner):
            return frozenset(Counter(set_keys(value, inner)).items())
        case MapOf(inner):
            return frozenset((name, key(element, inner)) for name, element in value.items())
        case ObjectOf(attributes):
            return tuple(key(value.get(name), inner) for name, inner in sorted(attributes.items()))
        case TupleOf(elements):
            return tuple(key(element, inner) for element, inner in zip(value, elements, strict=True))
    if type_ == DYNAMIC:
        return (repr(value.type.json()), key(value.value, value.type))
    if type_ == NUMBER:
        return decimal(value)
    return (type(value).__name__, value)


def set_keys(elements: Iterable[Any], inner: Type) -> list[Hashable]:
    """One for each element that the set keeps: equal ones are one, but two that hold unknowns may yet differ."""
    keys = [(key(element, inner), whole(element)) for element in elements]
    return [*dict.fromkeys(item for item, known in keys if known), *(item for item, known in keys if not known)]


def distinct(elements: Iterable[Any], inner: Type) -> list[Any]:
    """The elements that a set keeps, in their first order."""
    seen: set[Hashable] = set()
    kept: list[Any] = []
    for element in elements:
        mark = key(element, inner)
        if whole(element):
            if mark in seen:
                continue
            seen.add(mark)
        kept.append(element)
    return kept
