"""Lists: Kubernetes' `lists` library and the `sets` extension."""

from __future__ import annotations

from typing import Any

from trimtab.model.cel import strings
from trimtab.model.cel.errors import EvaluationError, no_such_overload
from trimtab.model.cel.stdlib import add
from trimtab.model.cel.values import LISTS, Duration, Function, Uint, equals, ordered

_ZERO: dict[str, Any] = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}


def _listed(items: Any) -> Any:
    if not isinstance(items, LISTS):
        raise no_such_overload()
    return items


def is_sorted(items: Any) -> bool:
    before = None
    for at, item in enumerate(_listed(items)):
        if at and ordered(before, item) > 0:
            return False
        before = item
    return True


def total(items: Any, kind: str = "int") -> Any:
    """The sum; an empty list has the zero of its type."""
    result: Any = None
    for item in _listed(items):
        if type(item) not in (int, Uint, float, Duration):
            raise no_such_overload()
        result = item if result is None else add(result, item)
    return _ZERO.get(kind, 0) if result is None else result


def _extreme(name: str, wanted: int) -> Function:
    def extreme(items: Any) -> Any:
        result: Any = None
        for at, item in enumerate(_listed(items)):
            if at == 0 or ordered(item, result) == wanted:
                result = item
        if len(items) == 0:
            raise EvaluationError(f"{name} called on empty list")
        return result

    return extreme


def index_of(items: Any, value: Any, offset: Any = 0) -> int:
    if type(items) is str:
        return strings.index_of(items, value, offset)
    return next((at for at, item in enumerate(_listed(items)) if equals(item, value)), -1)


def last_index_of(items: Any, value: Any, offset: Any = None) -> int:
    if type(items) is str:
        return strings.last_index_of(items, value, offset)
    return next((at for at in range(len(_listed(items)) - 1, -1, -1) if equals(items[at], value)), -1)


def contains(items: Any, others: Any) -> bool:
    return all(any(equals(item, other) for item in _listed(items)) for other in _listed(others))


def equivalent(items: Any, others: Any) -> bool:
    return contains(items, others) and contains(others, items)


def intersects(items: Any, others: Any) -> bool:
    return any(any(equals(item, other) for item in _listed(items)) for other in _listed(others))


FUNCTIONS: dict[str, Function] = {
    ".isSorted": is_sorted, ".sum": total, ".min": _extreme("min", -1), ".max": _extreme("max", 1),
    ".indexOf": index_of, ".lastIndexOf": last_index_of,
    "sets.contains": contains, "sets.equivalent": equivalent, "sets.intersects": intersects,
}  # fmt: skip
