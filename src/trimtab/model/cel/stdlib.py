"""The standard functions: operators, conversions, sizes, optionals. Each takes values of any type and raises "no such
overload" for those it has no meaning for, because a dynamic value is known only at run time.
"""

from __future__ import annotations

import math
from typing import Any

from trimtab.model.cel import times
from trimtab.model.cel.declarations import type_names
from trimtab.model.cel.errors import CostExceeded, EvaluationError, NoSuchOverload, no_such_overload
from trimtab.model.cel.types import STRUCT, Type
from trimtab.model.cel.values import (
    ABSENT,
    INT_MAX,
    INT_MIN,
    LISTS,
    MAPS,
    NONE,
    UINT_MAX,
    Duration,
    Function,
    Optional,
    Sequence,
    Timestamp,
    Uint,
    checked,
    equals,
    find,
    ordered,
    size,
    spend,
    type_name,
    unsigned,
)

MAX_LENGTH = 20_000_000  # characters or items that one operation may make


def bounded(length: int) -> None:
    """Stop before a result is made that the cost would notice only afterwards."""
    if length > MAX_LENGTH:
        raise CostExceeded


def without(a: Any, name: str, kinds: tuple[type, ...]) -> NoSuchOverload:
    """Why an operator has no value: its left side has no such operator at all, or not with this right side."""
    silent = (*kinds, str, Duration, Timestamp)  # these are receivers in cel-go, which answer without a name
    return no_such_overload() if type(a) in silent else NoSuchOverload(f"no such overload: {name}")


def negate(a: Any) -> Any:
    if type(a) is int:
        return checked(-a)
    if type(a) is float:
        return -a
    raise without(a, "-_", (int, float))


def logical_not(a: Any) -> bool:
    if type(a) is not bool:
        raise no_such_overload()
    return not a


def add(a: Any, b: Any) -> Any:
    kind, other = type(a), type(b)
    if kind is other:
        if kind is int:
            return checked(a + b)
        if kind is str or kind is bytes:
            bounded(len(a) + len(b))
            return a + b
        if kind is float:
            return a + b
        if kind is Uint:
            return unsigned(int(a) + int(b))
        if kind is Duration:
            return times.long_enough(a.ns + b.ns)
    if isinstance(a, LISTS) and isinstance(b, LISTS):
        bounded(len(a) + len(b))
        spend((len(a) + len(b)) >> 3)
        if isinstance(a, Sequence):
            return a.added(b)  # type: ignore[attr-defined]
        return [*a, *b]
    if {kind, other} == {Timestamp, Duration}:
        return times.in_range(Timestamp(a.ns + b.ns))
    raise without(a, "_+_", (int, Uint, float, str, bytes, list, Duration, Timestamp))


def subtract(a: Any, b: Any) -> Any:
    kind, other = type(a), type(b)
    if kind is other:
        if kind is int:
            return checked(a - b)
        if kind is float:
            return a - b
        if kind is Uint:
            return unsigned(int(a) - int(b))
        if kind is Timestamp or kind is Duration:
            return times.long_enough(a.ns - b.ns)
    if kind is Timestamp and other is Duration:
        return times.in_range(Timestamp(a.ns - b.ns))
    raise without(a, "_-_", (int, Uint, float, Duration, Timestamp))


def multiply(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is not type(b):
        raise without(a, "_*_", (int, Uint, float))
    if kind is int:
        return checked(a * b)
    if kind is float:
        return a * b
    if kind is Uint:
        return unsigned(int(a) * int(b))
    raise without(a, "_*_", (int, Uint, float))


def divide(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is not type(b):
        raise without(a, "_/_", (int, Uint, float))
    if kind is float:
        if b == 0:
            if a == 0 or a != a:
                return math.nan
            return math.copysign(math.inf, a) * math.copysign(1, b)
        return a / b
    if kind is not int and kind is not Uint:
        raise without(a, "_/_", (int, Uint, float))
    if b == 0:
        raise EvaluationError("division by zero")
    quotient = abs(int(a)) // abs(int(b))
    if kind is Uint:
        return Uint(quotient)
    return checked(quotient if (a < 0) == (b < 0) else -quotient)


def modulo(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is not type(b) or (kind is not int and kind is not Uint):
        raise without(a, "_%_", (int, Uint))
    if b == 0:
        raise EvaluationError("modulus by zero")
    rest = abs(int(a)) % abs(int(b))
    if kind is Uint:
        return Uint(rest)
    if a == INT_MIN and b == -1:
        raise EvaluationError("integer overflow")
    return -rest if a < 0 else rest


def compared(a: Any, b: Any, name: str) -> int:
    try:
        return ordered(a, b)
    except NoSuchOverload:
        raise without(a, name, (bool, int, Uint, float, str, bytes, Duration, Timestamp)) from None


def index(container: Any, key: Any) -> Any:
    if isinstance(container, LISTS):
        place = _position(key)
        if 0 <= place < len(container):
            return container[place]
        raise EvaluationError(f"index out of bounds: {place}")
    if isinstance(container, MAPS):
        value = find(container, _key(key))
        if value is not ABSENT:
            return value
        raise EvaluationError(f"no such key: {key_shown(key)}")
    if type(container) is Optional:
        return optional_index(container, key)
    raise EvaluationError(f"no such key: {key_shown(key)}")


def optional_index(container: Any, key: Any) -> Optional:
    if type(container) is Optional:
        if not container.present:
            return NONE
        container = container.value
    if isinstance(container, LISTS):
        place = _position(key)
        return Optional(True, container[place]) if 0 <= place < len(container) else NONE
    if isinstance(container, MAPS):
        value = find(container, _key(key))
        return NONE if value is ABSENT else Optional(True, value)
    raise no_such_overload()


def select(operand: Any, field: str) -> Any:
    """`operand.field` on a value whose type is not known."""
    if isinstance(operand, MAPS):
        value = find(operand, field)
        if value is not ABSENT:
            return value
    elif type(operand) is Optional:
        return optional_select(operand, field)
    elif isinstance(operand, LISTS):
        raise EvaluationError("unsupported index type 'string' in list")
    raise EvaluationError(f"no such key: {field}")


def optional_select(operand: Any, field: str) -> Optional:
    if type(operand) is Optional:
        if not operand.present:
            return NONE
        operand = operand.value
    if not isinstance(operand, MAPS):
        return NONE
    value = find(operand, field)
    return NONE if value is ABSENT else Optional(True, value)


def has(operand: Any, field: str) -> bool:
    if type(operand) is Optional:
        return operand.present and has(operand.value, field)
    return isinstance(operand, MAPS) and find(operand, field) is not ABSENT


def contained(value: Any, container: Any) -> bool:
    if isinstance(container, LISTS):
        return any(equals(value, item) for item in container)
    if isinstance(container, MAPS):
        return find(container, _key(value)) is not ABSENT
    raise no_such_overload()


def measured(value: Any) -> int:
    if isinstance(value, (str, bytes, *LISTS, *MAPS)):
        return len(value)
    raise no_such_overload()


def type_value(value: Any) -> Type:
    name = type_name(value)
    return type_names().get(name) or Type(STRUCT, name)


def _position(key: Any) -> int:
    if type(key) is int or type(key) is Uint:
        return int(key)
    if type(key) is float and key.is_integer():
        return int(key)
    raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")


def _key(key: Any) -> Any:
    if isinstance(key, str | int | float):
        return key
    raise EvaluationError(f"unsupported key type: {type_name(key)}")


def key_shown(key: Any) -> str:
    return str(key).lower() if type(key) is bool else str(key)


def failed_conversion(value: Any, target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{type_name(value)}' to '{target}'")


def to_int(value: Any) -> int:
    kind = type(value)
    if kind is int:
        return int(value)
    if kind is Uint:
        return checked(int(value))
    if kind is float:
        if not INT_MIN < value < INT_MAX:
            raise EvaluationError("integer overflow")
        return int(value)
    if kind is str:
        number = _parsed_int(value)
        if number is None or not INT_MIN <= number <= INT_MAX:
            raise failed_conversion(value, "int")
        return number
    if kind is Duration:
        return int(value.ns)
    if kind is Timestamp:
        return int(value.ns // times.SECOND)
    raise no_such_overload()


def to_uint(value: Any) -> Uint:
    kind = type(value)
    if kind is Uint:
        return Uint(value)
    if kind is int:
        return unsigned(value)
    if kind is float:
        if not 0 <= value < UINT_MAX:
            raise EvaluationError("unsigned integer overflow")
        return Uint(int(value))
    if kind is str:
        number = _parsed_int(value)
        if number is None or not 0 <= number <= UINT_MAX or value[0] in "+-":
            raise failed_conversion(value, "uint")
        return Uint(number)
    raise no_such_overload()


def _parsed_int(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit() or len(digits) > 400:
        return None
    return int(text)


def to_double(value: Any) -> float:
    if type(value) in (float, int, Uint):
        return float(value)
    if type(value) is str:
        try:
            if value.strip() != value or "_" in value:
                raise ValueError
            return float.fromhex(value) if "0x" in value.lower() and "p" in value.lower() else float(value)
        except (ValueError, OverflowError):
            raise failed_conversion(value, "double") from None
    raise no_such_overload()


def to_string(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is Uint:
        return str(int(value))
    if kind is float:
        return double_shown(value)
    if kind is bytes:
        try:
            return str(value, "utf-8")
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, Timestamp):
        return times.shown(value)
    if hasattr(value, "shown"):
        return str(value.shown())
    raise no_such_overload()


def double_shown(value: float) -> str:
    """As Go's `%g`: shortest digits, an exponent from 1e+06 on and below 1e-04."""
    if value != value:
        return "NaN"
    if value in (math.inf, -math.inf):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    mantissa, _, exponent = f"{value:.16e}".partition("e")
    if value and not -4 <= int(exponent) < 6:
        digits = text.partition("e")[0].replace(".", "").lstrip("-").strip("0") or "0"
        sign = "-" if mantissa[0] == "-" else ""
        body = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
        return f"{sign}{body}e{exponent[0]}{exponent[1:].zfill(2)}"
    return text.removesuffix(".0")


def to_bytes(value: Any) -> bytes:
    if type(value) is bytes:
        return value
    if type(value) is str:
        return value.encode()
    raise no_such_overload()


def to_bool(value: Any) -> bool:
    if type(value) is bool:
        return value
    if type(value) is str:
        if value in ("1", "t", "T", "TRUE", "true", "True"):
            return True
        if value in ("0", "f", "F", "FALSE", "false", "False"):
            return False
        raise failed_conversion(value, "bool")
    raise no_such_overload()


def to_timestamp(value: Any) -> Timestamp:
    if type(value) is Timestamp:
        return value
    if type(value) is int:
        return times.in_range(Timestamp(value * times.SECOND))
    if type(value) is str:
        try:
            return times.timestamp(value)
        except ValueError:
            raise failed_conversion(value, "google.protobuf.Timestamp") from None
    raise no_such_overload()


def to_duration(value: Any) -> Duration:
    if type(value) is Duration:
        return value
    if type(value) is int:
        return Duration(value)
    if type(value) is str:
        try:
            return times.duration(value)
        except ValueError:
            raise failed_conversion(value, "google.protobuf.Duration") from None
    raise no_such_overload()


def optional_value(value: Any) -> Any:
    if type(value) is not Optional:
        raise no_such_overload()
    if not value.present:
        raise EvaluationError("optional.none() dereference")
    return value.value


def has_value(value: Any) -> bool:
    if type(value) is not Optional:
        raise no_such_overload()
    return bool(value.present)


def of_non_zero(value: Any) -> Optional:
    zero = value is None or (isinstance(value, Timestamp) and value.ns == 0)
    if isinstance(value, (bool, int, float, str, bytes, *LISTS, *MAPS)):
        zero = not value if isinstance(value, bool | int | float) else size(value) == 0
    return NONE if zero else Optional(True, value)


def _part(name: str) -> Function:
    def part(value: Any, zone: Any = None) -> int:
        if zone is not None and type(zone) is not str:
            raise no_such_overload()
        return times.part(value, name, zone)

    return part


FUNCTIONS: dict[str, Function] = {
    "!_": logical_not, "-_": negate, "_+_": add, "_-_": subtract, "_*_": multiply, "_/_": divide, "_%_": modulo,
    "_==_": equals, "_!=_": lambda a, b: not equals(a, b),
    "_<_": lambda a, b: compared(a, b, "_<_") < 0, "_<=_": lambda a, b: compared(a, b, "_<=_") <= 0,
    "_>_": lambda a, b: compared(a, b, "_>_") > 0, "_>=_": lambda a, b: compared(a, b, "_>=_") >= 0,
    "_[_]": index, "_[?_]": optional_index, "@in": contained, "size": measured, "type": type_value,
    "bool": to_bool, "bytes": to_bytes, "double": to_double, "int": to_int, "uint": to_uint, "string": to_string,
    "timestamp": to_timestamp, "duration": to_duration, "dyn": lambda a: a,
    "optional.of": lambda a: Optional(True, a), "optional.none": lambda: NONE, "optional.ofNonZeroValue": of_non_zero,
    ".value": optional_value, ".hasValue": has_value,
    **{f".{name}": _part(name) for name in times.PARTS},
}  # fmt: skip
