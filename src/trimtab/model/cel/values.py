"""The values of CEL in Python: bool, int, float, str, bytes, None, list and dict are themselves; the rest is here.

An int is 64 bits wide and is never a bool; `Uint` is an int that remembers to be unsigned. Values bound from objects
may be views (`trimtab.model.cel.binding`) that answer as a list or a dict does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from trimtab.model.cel.errors import CostExceeded, EvaluationError, no_such_overload
from trimtab.model.cel.types import Type

INT_MIN, INT_MAX, UINT_MAX = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1


MAX_STEPS = 1_000_000
EACH = 3  # steps that a list or a map takes besides its items


class Steps:
    """How much evaluations may still do that has no price. Prices are those of cel-go, which compares, prints and joins lists
    and maps for the price of their outermost items: what shares its parts, or is looked at again and again, would take hours."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_STEPS


RUNNING: list[Steps | None] = [None]
"""The steps of the evaluation that runs now. A place in a list, because it is looked at often."""


def spend(count: int) -> None:
    """Say before it is done that so many items are looked at, or so many kilobytes made. Raises CostExceeded."""
    steps = RUNNING[0]
    if steps is not None:
        steps.left -= count
        if steps.left < 0:
            raise CostExceeded


class Uint(int):
    __slots__ = ()


class Timestamp:
    """Nanoseconds since 1970."""

    __slots__ = ("ns",)

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.ns == other.ns

    def __hash__(self) -> int:
        return hash(self.ns)


class Duration(Timestamp):
    """Nanoseconds."""

    __slots__ = ()


class Optional:
    __slots__ = ("present", "value")

    def __init__(self, present: bool, value: Any = None) -> None:
        self.present = present
        self.value = value


NONE = Optional(False)


class Opaque:
    """A value of a library: knows the name of its type and how it compares."""

    __slots__ = ()
    type_name = ""

    def equals(self, other: Any) -> bool:
        raise NotImplementedError


class Sequence:
    """What a list may be besides a Python list."""

    __slots__ = ()

    def __len__(self) -> int:
        raise NotImplementedError

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def equals(self, other: Any) -> bool:
        spend(len(self) + EACH)
        return len(self) == len(other) and all(equals(a, b) for a, b in zip(self, other, strict=True))


class Mapping:
    """What a map may be besides a Python dict. `find` answers `ABSENT` for a key that is not there."""

    __slots__ = ()

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def find(self, key: Any) -> Any:
        raise NotImplementedError

    def equals(self, other: Any) -> bool:
        spend(len(self) + EACH)
        return len(self) == len(other) and all(equals(self.find(key), find(other, key)) for key in self)


ABSENT: Any = object()
LISTS = (list, Sequence)
MAPS = (dict, Mapping)


def find(mapping: Any, key: Any) -> Any:
    """The value of a key, or ABSENT."""
    if isinstance(mapping, dict):
        value = mapping.get(key, ABSENT)
        if value is not ABSENT and (key is True or key is False) and not any(k is key for k in mapping):
            return ABSENT  # Python takes True for 1
        return value
    return mapping.find(key)


_SAME_IN_PYTHON = frozenset({str, int, bool, bytes, Uint})


def equals(a: Any, b: Any) -> bool:
    kind = type(a)
    if kind is str or kind is bool or a is None or kind is bytes:
        return type(b) is kind and a == b
    if isinstance(a, int | float):
        return isinstance(b, int | float) and type(b) is not bool and a == b
    if kind is list:
        if isinstance(b, Sequence):
            return b.equals(a)
        if type(b) is not list or len(a) != len(b):
            return False
        kinds = {*map(type, a), *map(type, b)}
        if len(kinds) == 1 and kinds <= _SAME_IN_PYTHON:
            spend(len(a) >> 3)
            return bool(a == b)
        spend(len(a) + EACH)
        return all(equals(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Sequence):
        return isinstance(b, LISTS) and a.equals(b)
    if kind is dict:
        if isinstance(b, Mapping):
            return b.equals(a)
        spend(len(a) + EACH)
        return type(b) is dict and len(a) == len(b) and all(equals(v, find(b, k)) for k, v in a.items())
    if isinstance(a, Mapping):
        return isinstance(b, MAPS) and a.equals(b)
    if kind is Optional:
        if type(b) is not Optional or a.present != b.present:
            return False
        return not a.present or equals(a.value, b.value)
    if isinstance(a, Opaque):
        return type(b) is kind and a.equals(b)
    return bool(type(b) is kind and a == b) if not isinstance(a, Type) else isinstance(b, Type) and a.name == b.name


def ordered(a: Any, b: Any) -> int:
    """-1, 0 or 1. Raises for values that have no order."""
    if isinstance(a, int | float) and isinstance(b, int | float) and (type(a) is bool) == (type(b) is bool):
        if a != a or b != b:
            raise EvaluationError("NaN values cannot be ordered")
        return (a > b) - (a < b)
    if type(a) is not type(b):
        raise no_such_overload()
    if isinstance(a, str | bytes):
        return int(a > b) - int(a < b)
    if isinstance(a, Timestamp):
        return int(a.ns > b.ns) - int(a.ns < b.ns)
    raise no_such_overload()


def size(value: Any) -> int:
    """How big a value is for its cost: characters, items or entries, and 1 for everything else."""
    if isinstance(value, str | bytes | list | dict | Sequence | Mapping):
        return len(value)
    return 1


_NAMES: dict[type, str] = {
    bool: "bool", int: "int", Uint: "uint", float: "double", str: "string", bytes: "bytes", type(None): "null_type",
    list: "list", dict: "map", Timestamp: "google.protobuf.Timestamp", Duration: "google.protobuf.Duration",
    Optional: "optional_type",
}  # fmt: skip


def type_name(value: Any) -> str:
    """What `type(value)` is called."""
    name = _NAMES.get(type(value))
    if name is not None:
        return name
    if isinstance(value, Sequence):
        return "list"
    if isinstance(value, Mapping):
        return "map"
    if isinstance(value, Opaque):
        return value.type_name
    return "type"


def checked(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def unsigned(value: int) -> Uint:
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


Function = Callable[..., Any]
