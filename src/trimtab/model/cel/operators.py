"""Operators on types that the checker knows: closures without dispatch, which charge what cel-go charges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimtab.model.cel import stdlib
from trimtab.model.cel.errors import EvaluationError, no_such_overload
from trimtab.model.cel.folds import Code, Frame
from trimtab.model.cel.prices import compared
from trimtab.model.cel.values import ABSENT, INT_MAX, INT_MIN, Optional, equals


def equality(left: Code, right: Code, wanted: bool, static: str, constant: Any) -> Code:
    if static == "string" and constant is not ABSENT:
        length = len(constant)

        def same_constant(frame: Frame) -> bool:
            value = left(frame)
            frame[0] -= (min(len(value), length) + 9) // 10
            return (value == constant) is wanted

        return same_constant
    if static == "string":

        def same_text(frame: Frame) -> bool:
            a, b = left(frame), right(frame)
            frame[0] -= (min(len(a), len(b)) + 9) // 10
            return (a == b) is wanted

        return same_text
    if static:

        def same_scalar(frame: Frame) -> bool:
            frame[0] -= 1
            return (left(frame) == right(frame)) is wanted

        return same_scalar

    def same(frame: Frame) -> bool:
        a, b = left(frame), right(frame)
        frame[0] -= compared(a, b)
        return equals(a, b) is wanted

    return same


def same_shape(left: Code, right: Code, shapes: tuple[type, ...]) -> Code:
    """Equality with a list, map or object of the schema: a dynamic value of another shape has no overload."""

    def same(frame: Frame) -> bool:
        a, b = left(frame), right(frame)
        frame[0] -= compared(a, b)
        if a is not None and b is not None and not isinstance(b, shapes):
            raise no_such_overload()
        return equals(a, b)

    return same


def comparison(compare: Callable[[Any, Any], bool], left: Code, right: Code, constant: Any) -> Code:
    if constant is not ABSENT:

        def limit(frame: Frame) -> bool:
            frame[0] -= 1
            return compare(left(frame), constant)

        return limit

    def comparison(frame: Frame) -> bool:
        frame[0] -= 1
        return compare(left(frame), right(frame))

    return comparison


def affix(test: Callable[[str, str], bool], left: Code, right: Code) -> Code:
    def affix(frame: Frame) -> bool:
        text = left(frame)
        frame[0] -= (len(text) + 9) // 10
        return test(text, right(frame))

    return affix


def string_comparison(compare: Callable[[Any, Any], bool], left: Code, right: Code) -> Code:
    def comparison(frame: Frame) -> bool:
        a, b = left(frame), right(frame)
        frame[0] -= compared(a, b)
        return compare(a, b)

    return comparison


def arithmetic(compute: Callable[[int, int], int], left: Code, right: Code) -> Code:
    def arithmetic(frame: Frame) -> int:
        frame[0] -= 1
        value = compute(left(frame), right(frame))
        if INT_MIN <= value <= INT_MAX:
            return value
        raise EvaluationError("integer overflow")

    return arithmetic


def one_of(left: Code, items: Any, static: str) -> Code | None:
    """Membership in a constant list of simple values, which costs nothing."""
    if items is ABSENT or not all(isinstance(item, str | int | float) for item in items):
        return None
    if static in ("string", "int") and all(type(item) is type(items[0]) for item in items):
        members = frozenset(items)
        return lambda frame: left(frame) in members
    return lambda frame: stdlib.contained(left(frame), items)


def either(left: Code, right: Code, unwrap: bool) -> Code:
    def choose(frame: Frame) -> Any:
        value = left(frame)
        if type(value) is not Optional:
            return value
        if value.present:
            return value.value if unwrap else value
        return right(frame)

    return choose
