"""Kubernetes' `quantity` library: `quantity("1.5Gi").isLessThan(quantity("2G"))`.

A quantity is a whole number of a power of ten, small (in 64 bits) or not. By that form, and not by its value, Kubernetes
tells whether it is an integer and what float comes near it: `1000m` is none. It rounds up to nano, caps what is in Ki to Ei
at 2^63-1, and takes a number without digits for zero.
"""

from __future__ import annotations

import math
import re
from typing import Any

from trimtab.model.cel.errors import EvaluationError, no_such_overload
from trimtab.model.cel.values import INT_MAX, INT_MIN, Function, Opaque

_FORM = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT = re.compile(r"[eE][+-]?[0-9]{1,3}")
_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BITS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NANO = -9


class Quantity(Opaque):
    __slots__ = ("exponent", "number", "small")
    type_name = "kubernetes.Quantity"

    def __init__(self, number: int, exponent: int = 0, *, small: bool = True) -> None:
        self.number = number
        self.exponent = exponent
        self.small = small

    def at(self, exponent: int) -> int:
        """The number in units of a power of ten that is not above its own."""
        return int(self.number * 10 ** (self.exponent - exponent))

    def equals(self, other: Any) -> bool:
        return compare(self, other) == 0


def parse(text: Any) -> Quantity:
    if type(text) is not str:
        raise no_such_overload()
    match = _FORM.fullmatch(text) if 0 < len(text) <= 200 else None
    if match is None:
        raise EvaluationError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    sign, whole, rest, suffix = match.groups(default="")
    number = int("0" + whole + rest)
    digits = len(whole.lstrip("0") or "0") + len(rest)
    exponent = -len(rest)
    bits = _BITS.get(suffix)
    if bits is not None:
        small = not rest and digits + bits * 3 // 10 < 15
        number <<= bits
    else:
        if suffix in _POWERS:
            exponent += _POWERS[suffix]
        elif _EXPONENT.fullmatch(suffix):
            exponent += int(suffix[1:])
        else:
            raise EvaluationError("unable to parse quantity's suffix")
        small = digits <= 18 and exponent >= _NANO
    if not small and not whole + rest:
        raise EvaluationError("unable to parse numeric part of quantity")
    if not small and number:
        scale = 10 ** abs(exponent - _NANO)
        number, exponent = number * scale if exponent > _NANO else -(-number // scale), _NANO  # away from zero
        if bits is not None and number > INT_MAX * 10**9:
            number, exponent = INT_MAX, 0
    return Quantity(-number if sign == "-" else number, exponent, small=small)


def is_quantity(text: Any) -> bool:
    try:
        parse(text)
    except EvaluationError as error:
        if str(error) == "no such overload":
            raise
        return False
    return True


def _quantity(value: Any) -> Quantity:
    if type(value) is Quantity:
        return value
    raise no_such_overload()


def compare(a: Any, b: Any) -> int:
    left, right = _quantity(a), _quantity(b)
    exponent = min(left.exponent, right.exponent)
    return (left.at(exponent) > right.at(exponent)) - (left.at(exponent) < right.at(exponent))


def add(a: Any, b: Any, sign: int = 1) -> Quantity:
    left, right = _quantity(a), Quantity(b) if type(b) is int else _quantity(b)
    small = left.small and right.small
    if small and not right.number:
        return left
    if small and not left.number:
        return Quantity(sign * right.number, right.exponent)
    exponent = min(left.exponent, right.exponent)
    parts = left.at(exponent), sign * right.at(exponent)
    total = sum(parts)
    return Quantity(total, exponent, small=small and all(INT_MIN <= part <= INT_MAX for part in (*parts, total)))


def is_integer(value: Any) -> bool:
    quantity = _quantity(value)
    return quantity.small and quantity.exponent >= 0 and INT_MIN <= quantity.at(0) <= INT_MAX


def as_integer(value: Any) -> int:
    if not is_integer(value):
        raise EvaluationError("cannot convert value to integer")
    return _quantity(value).at(0)


def as_float(value: Any) -> float:
    quantity = _quantity(value)
    try:
        number = float(quantity.number)
    except OverflowError:
        number = math.inf if quantity.number > 0 else -math.inf
    return number * _power(quantity.exponent) if quantity.exponent else number


def _power(exponent: int) -> float:
    """Of ten, as Go has it: made of two, so its last bit may be another than that of the nearest float."""
    if not -323 <= exponent <= 308:
        return math.inf if exponent > 0 else 0.0
    many, few = divmod(abs(exponent), 32)
    if exponent < 0:
        return float(f"1e-{many * 32}") / float(f"1e{few}")
    return float(f"1e{many * 32}") * float(f"1e{few}")


FUNCTIONS: dict[str, Function] = {
    "quantity": parse,
    "isQuantity": is_quantity,
    "sign": lambda q: (_quantity(q).number > 0) - (_quantity(q).number < 0),
    ".isGreaterThan": lambda a, b: compare(a, b) > 0,
    ".isLessThan": lambda a, b: compare(a, b) < 0,
    ".compareTo": compare,
    ".asApproximateFloat": as_float,
    ".asInteger": as_integer,
    ".isInteger": is_integer,
    ".add": add,
    ".sub": lambda a, b: add(a, b, -1),
}
