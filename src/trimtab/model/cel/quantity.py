"""Kubernetes' `quantity` library: `quantity("1.5Gi").isLessThan(quantity("2G"))`.

A quantity is an exact fraction here. Kubernetes rounds up to nano and caps at 2^63-1, and so do we.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from trimtab.model.cel.errors import EvaluationError, no_such_overload
from trimtab.model.cel.values import INT_MAX, INT_MIN, Function, Opaque

_FORM = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3}|[KMGTPE]i|[numkMGTPE]|)\Z", re.ASCII)
_SUFFIX = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(10**3),
    "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12), "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(1 << 10), "Mi": Fraction(1 << 20), "Gi": Fraction(1 << 30), "Ti": Fraction(1 << 40),
    "Pi": Fraction(1 << 50), "Ei": Fraction(1 << 60),
}  # fmt: skip
_NANO = 10**9


class Quantity(Opaque):
    __slots__ = ("amount",)
    type_name = "kubernetes.Quantity"

    def __init__(self, amount: Fraction) -> None:
        self.amount = amount

    def equals(self, other: Any) -> bool:
        return bool(self.amount == other.amount)


def parse(text: Any) -> Quantity:
    if type(text) is not str:
        raise no_such_overload()
    if text == "":
        raise EvaluationError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    match = _FORM.match(text) if len(text) <= 200 else None
    if match is None:
        raise EvaluationError(
            "unable to parse quantity's suffix"
            if re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]*)[eEinumkKMGTP]+[-+]?[0-9]*", text)
            else "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    sign, number, suffix = match.groups()
    whole, _, rest = number.partition(".")
    amount = Fraction(int((whole or "0") + rest), 10 ** len(rest))
    scale = _SUFFIX.get(suffix)
    amount *= Fraction(10) ** int(suffix[1:]) if scale is None else scale
    nano = amount * _NANO
    amount = Fraction(-(-nano.numerator // nano.denominator), _NANO)  # rounds away from zero, to nano
    amount = min(amount, Fraction(INT_MAX))
    return Quantity(-amount if sign == "-" else amount)


def is_quantity(text: Any) -> bool:
    try:
        parse(text)
    except EvaluationError as error:
        if str(error) == "no such overload":
            raise
        return False
    return True


def _amount(value: Any) -> Fraction:
    if type(value) is Quantity:
        return value.amount
    raise no_such_overload()


def _operand(value: Any) -> Fraction:
    return Fraction(value) if type(value) is int else _amount(value)


def compare(a: Any, b: Any) -> int:
    left, right = _amount(a), _amount(b)
    return (left > right) - (left < right)


def is_integer(value: Any) -> bool:
    amount = _amount(value)
    return amount.denominator == 1 and INT_MIN <= amount <= INT_MAX


def as_integer(value: Any) -> int:
    if not is_integer(value):
        raise EvaluationError("cannot convert value to integer")
    return int(_amount(value))


FUNCTIONS: dict[str, Function] = {
    "quantity": parse,
    "isQuantity": is_quantity,
    "sign": lambda q: (_amount(q) > 0) - (_amount(q) < 0),
    ".isGreaterThan": lambda a, b: compare(a, b) > 0,
    ".isLessThan": lambda a, b: compare(a, b) < 0,
    ".compareTo": compare,
    ".asApproximateFloat": lambda q: float(_amount(q)),
    ".asInteger": as_integer,
    ".isInteger": is_integer,
    ".add": lambda a, b: Quantity(_amount(a) + _operand(b)),
    ".sub": lambda a, b: Quantity(_amount(a) - _operand(b)),
}
