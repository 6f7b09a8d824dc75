"""Does a Python value fit a type? What provider code returns passes here, and is named exactly where it does not fit.

What is left out of an object is null, as in a configuration; what no attribute is named for is a mistake. Elements of a
set have no place of their own, so that a fault in one is told of the set.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from trimtab.terraform.framework.paths import ROOT, Path
from trimtab.terraform.framework.types import (
    BOOL,
    DYNAMIC,
    NUMBER,
    STRING,
    ListOf,
    MapOf,
    ObjectOf,
    SetOf,
    TupleOf,
    Type,
)
from trimtab.terraform.framework.values import UNKNOWN, Typed, distinct


class Misfit(ValueError):  # noqa: N818 - it is the value that is at fault
    """This value is not of its type."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(f"{path}: {text}" if path.steps else text)
        self.path = path
        self.text = text


def shaped(value: Any, type_: Type, path: Path = ROOT) -> Any:
    """The value as its type has it: tuples and sets as lists, objects with all their attributes. Misfit otherwise."""
    if value is None or value is UNKNOWN:
        return value
    match type_:
        case ListOf(inner):
            return [shaped(element, inner, path.index(at)) for at, element in enumerate(_sequence(value, path))]
        case SetOf(inner):
            return distinct([shaped(element, inner, path) for element in _sequence(value, path)], inner)
        case MapOf(inner):
            return {name: shaped(element, inner, path.key(name)) for name, element in _mapping(value, path).items()}
        case ObjectOf(attributes):
            given = _mapping(value, path)
            for name in given:
                if name not in attributes:
                    raise Misfit(path.name(name), "there is no such attribute")
            return {name: shaped(given.get(name), inner, path.name(name)) for name, inner in attributes.items()}
        case TupleOf(elements):
            items = _sequence(value, path)
            if len(items) != len(elements):
                raise Misfit(path, f"has {len(items)} elements, needs {len(elements)}")
            return [shaped(items[at], inner, path.index(at)) for at, inner in enumerate(elements)]
    if type_ == DYNAMIC:
        if not isinstance(value, Typed):
            raise Misfit(path, f"must be Typed, which says the type of a dynamic value, not {_kind(value)}")
        return Typed(value.type, shaped(value.value, value.type, path))
    if not _fits(value, type_):
        raise Misfit(path, f"must be a {type_.json()}, not {_kind(value)}")
    return value


def _fits(value: Any, type_: Type) -> bool:
    if type_ == STRING:
        return isinstance(value, str)
    if type_ == BOOL:
        return isinstance(value, bool)
    if type_ == NUMBER and not isinstance(value, bool):
        return isinstance(value, int) or (isinstance(value, float | Decimal) and Decimal(value).is_finite())
    return False


def _sequence(value: Any, path: Path) -> list[Any]:
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    raise Misfit(path, f"must be a list, not {_kind(value)}")


def _mapping(value: Any, path: Path) -> dict[str, Any]:
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return value
    raise Misfit(path, f"must be a dict with names, not {_kind(value)}")


def _kind(value: Any) -> str:
    return type(value).__name__
