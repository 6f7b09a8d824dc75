"""Kubernetes quantities: `500m`, `1.5Gi`, `1e3`. Exact: a whole number of nanos, and the notation that it came in.

Reading, rounding (up, to nanos) and the canonical form are those of `k8s.io/apimachinery/pkg/api/resource`.
"""

from __future__ import annotations

import re
from enum import Enum
from fractions import Fraction
from functools import total_ordering
from typing import Any

MAX_LENGTH = 64
MAX_EXPONENT = 64
NANOS = 1_000_000_000


class Notation(Enum):
    """How a quantity is written."""

    BINARY = "BinarySI"  # 12Mi
    DECIMAL = "DecimalSI"  # 12M
    EXPONENT = "DecimalExponent"  # 12e6


@total_ordering
class Quantity:
    """An amount, equal to any of the same amount. `str` is the canonical form. ValueError on bad text."""

    __slots__ = ("_given", "nanos", "notation")

    def __init__(self, text: str | int) -> None:
        self.nanos, self.notation, kept = _read(str(text))
        self._given = str(text) if kept else ""

    @classmethod
    def of(cls, nanos: int, notation: Notation = Notation.DECIMAL) -> Quantity:
        made = cls.__new__(cls)
        made.nanos, made.notation, made._given = nanos, notation, ""
        return made

    @property
    def value(self) -> int:
        """In whole units, rounded up (away from zero)."""
        return _divided_up(self.nanos, NANOS)

    @property
    def milli_value(self) -> int:
        return _divided_up(self.nanos, NANOS // 1000)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity.of(self.nanos + other.nanos, self.notation if self.nanos else other.notation)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity.of(self.nanos - other.nanos, self.notation if self.nanos else other.notation)

    def __mul__(self, factor: int) -> Quantity:
        return Quantity.of(self.nanos * factor, self.notation)

    def __neg__(self) -> Quantity:
        return Quantity.of(-self.nanos, self.notation)

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __str__(self) -> str:
        return self._given or _canonical(self.nanos, self.notation)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    @classmethod
    def schema(cls) -> dict[str, Any]:
        return {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
            "pattern": SCHEMA_PATTERN,
            "maxLength": MAX_LENGTH,
        }


SCHEMA_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""As controller-gen writes it, so that schemas of the field look alike."""


def _read(text: str) -> tuple[int, Notation, bool]:
    """The amount, its notation, and whether the text is near enough to canonical that Kubernetes keeps it as it is."""
    split = _SPLIT.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if split is None:
        raise ValueError(f"quantities must match the regular expression '{_SPLIT_SHOWN}'")
    number, suffix = split.groups()
    notation, power = _suffix(suffix)
    try:
        amount = Fraction(number) * power * NANOS
    except ValueError:
        raise ValueError("unable to parse numeric part of quantity") from None
    nanos = _divided_up(amount.numerator, amount.denominator)
    if notation is Notation.BINARY:
        nanos = max(-_LARGEST, min(_LARGEST, nanos))
    return nanos, notation, _is_kept(number, suffix, notation)


def _is_kept(number: str, suffix: str, notation: Notation) -> bool:
    whole, _, fraction = number.lstrip("+-").lstrip("0").partition(".")
    digits = whole + fraction
    if not digits or digits[0] == "0" or len(digits) > 15:
        return False
    if notation is Notation.BINARY:
        return not fraction and int(digits) % 8 != 0 and len(digits) + _BINARY[suffix] * 3 // 10 < 15
    scale = (_DECIMAL[suffix] if notation is Notation.DECIMAL else int(suffix[1:])) - len(fraction)
    return scale >= -9 and scale % 3 == 0 and not digits.endswith("000")


def _suffix(suffix: str) -> tuple[Notation, Fraction]:
    if suffix in _DECIMAL:
        return Notation.DECIMAL, Fraction(10) ** _DECIMAL[suffix]
    if suffix in _BINARY:
        return Notation.BINARY, Fraction(1 << _BINARY[suffix])
    if suffix[0] in "eE" and _EXPONENT.fullmatch(suffix[1:]) and abs(int(suffix[1:])) <= MAX_EXPONENT:
        return Notation.EXPONENT, Fraction(10) ** int(suffix[1:])
    raise ValueError("unable to parse quantity's suffix")


def _canonical(nanos: int, notation: Notation) -> str:
    """The largest suffix that needs no fraction."""
    if nanos == 0:
        return "0"
    if notation is Notation.BINARY and nanos % NANOS == 0 and abs(nanos) >= 1024 * NANOS:
        units, power = nanos // NANOS, 0
        while units % 1024 == 0 and power < 60:
            units, power = units // 1024, power + 10
        return f"{units}{_BINARY_NAMES.get(power, '')}"
    exponent = -9
    while nanos % 1000 == 0 and (notation is Notation.EXPONENT or exponent < 18):
        nanos, exponent = nanos // 1000, exponent + 3
    if notation is Notation.EXPONENT:
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_NAMES[exponent]}"


def _divided_up(amount: int, by: int) -> int:
    """Away from zero: who asks for some of a resource gets some."""
    return -(-amount // by) if amount >= 0 else amount // by


_SPLIT_SHOWN = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_SPLIT = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT = re.compile(r"[-+]?[0-9]{1,4}")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES = {exponent: name for name, exponent in _DECIMAL.items()}
_BINARY_NAMES = {power: name for name, power in _BINARY.items()}
_LARGEST = ((1 << 63) - 1) * NANOS
