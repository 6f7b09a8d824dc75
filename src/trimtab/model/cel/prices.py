"""What a call costs when it runs. A function that is not here costs 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from trimtab.model.cel.cost import CHECK, NEW_LIST, NEW_STRUCT, REGEX, TRAVERSAL
from trimtab.model.cel.values import EACH, LISTS, MAPS, Opaque, find, size, spend

_TRAVERSED = ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf")


def _length(value: Any) -> int:
    return len(value) if isinstance(value, Opaque) and hasattr(value, "__len__") else size(value)


def _tenth(value: Any, factor: int = 1) -> int:
    if factor == 1 and type(value) is str:
        return (len(value) + 9) // 10
    return math.ceil(_length(value) * factor * TRAVERSAL)


def _match(text: Any, pattern: Any) -> int:
    return math.ceil((1.0 + size(text)) * TRAVERSAL) * math.ceil(size(pattern) * REGEX)


def compared(a: Any, b: Any) -> int:
    """The price of an equality or of an order."""
    if isinstance(a, Opaque):
        return 1
    return math.ceil(min(_length(a), _length(b)) * TRAVERSAL)


def _traversed(value: Any) -> int:
    if isinstance(value, str | bytes):
        return int(len(value.encode() if isinstance(value, str) else value) * TRAVERSAL)
    if isinstance(value, LISTS):
        spend(len(value) + EACH)
        return sum(_traversed(item) for item in value)
    if isinstance(value, MAPS):
        spend(len(value) + EACH)
        return sum(_traversed(key) + _traversed(find(value, key)) for key in value)
    return 1


def _contains_ip(cidr: Any, other: Any) -> int:
    return math.ceil(2 * _length(cidr) * TRAVERSAL) + (_tenth(other) if type(other) is str else 0)


def _validate(form: Any, text: Any) -> int:
    return int(math.ceil((1.0 + size(text)) * TRAVERSAL) * math.ceil(form.regex_size * REGEX))


def _selector(length: int) -> int:
    return NEW_LIST + math.ceil(length * TRAVERSAL) + math.ceil(length * 0.5) * (NEW_LIST + NEW_STRUCT)


Price = Callable[[tuple[Any, ...], Any], int]
# The price of a call that is not 1, by function: arguments and result to units.
PRICES: dict[str, Price] = {
    **dict.fromkeys(_TRAVERSED, lambda args, _: _traversed(args[0])),
    **dict.fromkeys(
        ("url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR", "quantity", "isQuantity",
         "startsWith", "endsWith", "strings.quote", "format"),
        lambda args, _: _tenth(args[0]),
    ),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), lambda args, _: _tenth(args[0], 2)),
    "join": lambda args, result: _tenth(result, 2),
    **dict.fromkeys(("find", "findAll", "matches"), lambda args, _: _match(args[0], args[1])),
    "ip": lambda args, _: _tenth(args[0]) if type(args[0]) is str else 1,
    "containsIP": lambda args, _: _contains_ip(*args),
    "containsCIDR": lambda args, _: _contains_ip(*args) + _tenth(args[0]) + 1,
    "validate": lambda args, _: _validate(*args),
    "bytes": lambda args, _: _tenth(args[0]) if type(args[0]) is str else 1,
    "string": lambda args, _: _tenth(args[0]) if type(args[0]) is bytes else 1,
    "@in": lambda args, _: size(args[1]) if isinstance(args[1], LISTS) else 1,
    "contains": lambda args, _: _tenth(args[0]) * _tenth(args[1]),
    "_+_": lambda args, _: math.ceil((size(args[0]) + size(args[1])) * TRAVERSAL)
    if isinstance(args[0], str | bytes) else 1,
    **dict.fromkeys(("_==_", "_!=_"), lambda args, _: compared(*args)),
    **dict.fromkeys(
        ("_<_", "_<=_", "_>_", "_>=_"), lambda args, _: compared(*args) if isinstance(args[0], str | bytes) else 1
    ),
    "check": lambda args, _: CHECK,
    **dict.fromkeys(("fieldSelector", "labelSelector"), lambda args, _: _selector(size(args[1]))),
    "sets.contains": lambda args, _: 1 + size(args[0]) * size(args[1]),
    "sets.intersects": lambda args, _: 1 + size(args[0]) * size(args[1]),
    "sets.equivalent": lambda args, _: 1 + 2 * size(args[0]) * size(args[1]),
}  # fmt: skip
