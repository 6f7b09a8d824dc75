"""Values on the wire: msgpack for all calls, JSON for stored state.

Both are read by the type that the schema says, and what does not fit is refused with its place: a peer's bytes are never
believed. An unknown value is an extension type; newer Terraform adds what it knows about it already, which is not used.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from trimtab.terraform.framework.paths import ROOT, Path
from trimtab.terraform.framework.shaping import Misfit
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
    parse,
)
from trimtab.terraform.framework.values import UNKNOWN, Typed, decimal, number

UNKNOWN_EXT = 0
REFINED_EXT = 12
LARGEST = 256 * 1024 * 1024
"""Bytes of one value; what Terraform itself takes in a message."""


def pack(value: Any, type_: Type) -> bytes:
    """A value that was `shaped`, as msgpack."""
    import msgpack

    packed: bytes = msgpack.packb(_wire(value, type_), use_bin_type=True)
    return packed


def unpack(data: bytes, type_: Type) -> Any:
    """A value of msgpack; Misfit when it is not of the type."""
    import msgpack

    if len(data) > LARGEST:
        raise Misfit(ROOT, f"has {len(data)} bytes; {LARGEST} are allowed")
    try:
        raw = msgpack.unpackb(data, ext_hook=_extension, strict_map_key=True)
    except (ValueError, RecursionError, msgpack.UnpackException) as error:
        raise Misfit(ROOT, f"cannot be read: {error}") from None
    return _value(raw, type_, ROOT)


def dynamic_value(value: Any, type_: Type) -> dict[str, Any]:
    """The protocol's DynamicValue."""
    return {"msgpack": pack(value, type_)}


def read_dynamic(message: dict[str, Any] | None, type_: Type) -> Any:
    """The value of a DynamicValue; null where there is none."""
    if message and message.get("msgpack"):
        return unpack(message["msgpack"], type_)
    if message and message.get("json"):
        return from_json(load_json(message["json"]), type_)
    return None


def load_json(data: bytes | str) -> Any:
    """JSON with exact numbers."""
    try:
        return json.loads(data, parse_float=number, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Misfit(ROOT, f"is not JSON: {error}") from None


def from_json(raw: Any, type_: Type, path: Path = ROOT, dropped: list[Misfit] | None = None) -> Any:
    """A value of stored state. Attributes that the schema has no more are left out; new ones are null.

    One that does not fit is null too, and told in `dropped`, where that is given."""
    if raw is None:
        return None
    match type_:
        case ListOf(inner):
            return [from_json(element, inner, path.index(at), dropped) for at, element in enumerate(_list(raw, path))]
        case SetOf(inner):
            return [from_json(element, inner, path, dropped) for element in _list(raw, path)]
        case MapOf(inner):
            return {
                name: from_json(element, inner, path.key(name), dropped) for name, element in _dict(raw, path).items()
            }
        case ObjectOf(attributes):
            given = _dict(raw, path)
            return {
                name: _attribute(given.get(name), inner, path.name(name), dropped) for name, inner in attributes.items()
            }
        case TupleOf(elements):
            items = _list(raw, path, len(elements))
            return [from_json(items[at], inner, path.index(at), dropped) for at, inner in enumerate(elements)]
    if type_ == DYNAMIC:
        both = _dict(raw, path)
        inner = _parse(both.get("type"), path)
        return Typed(inner, from_json(both.get("value"), inner, path, dropped))
    if type_ == NUMBER and isinstance(raw, str):  # a number too large for a JSON number
        return _number(raw, path)
    return _scalar(raw, type_, path)


def _attribute(raw: Any, type_: Type, path: Path, dropped: list[Misfit] | None) -> Any:
    try:
        return from_json(raw, type_, path, dropped)
    except Misfit as misfit:
        if dropped is None:
            raise
        dropped.append(misfit)
        return None


def _wire(value: Any, type_: Type) -> Any:
    if value is None:
        return None
    if value is UNKNOWN:
        import msgpack

        return msgpack.ExtType(UNKNOWN_EXT, b"\0")
    match type_:
        case ListOf(inner) | SetOf(inner):
            return [_wire(element, inner) for element in value]
        case MapOf(inner):
            return {name: _wire(element, inner) for name, element in value.items()}
        case ObjectOf(attributes):
            return {name: _wire(value.get(name), attributes[name]) for name in sorted(attributes)}
        case TupleOf(elements):
            return [_wire(element, inner) for element, inner in zip(value, elements, strict=True)]
    if type_ == DYNAMIC:
        return [json.dumps(value.type.json()).encode(), _wire(value.value, value.type)]
    return _wire_number(value) if type_ == NUMBER else value


def _wire_number(value: Any) -> int | str:
    exact = decimal(value)
    if abs(exact.adjusted()) < 20 and exact == exact.to_integral_value():
        whole = int(exact)
        return whole if -(2**63) <= whole < 2**64 else str(whole)
    return str(exact)


def _extension(code: int, data: bytes) -> Any:
    if code in (UNKNOWN_EXT, REFINED_EXT):
        return UNKNOWN
    raise ValueError(f"there is no extension type {code}")


def _value(raw: Any, type_: Type, path: Path) -> Any:
    if raw is None or raw is UNKNOWN:
        return raw
    match type_:
        case ListOf(inner):
            return [_value(element, inner, path.index(at)) for at, element in enumerate(_list(raw, path))]
        case SetOf(inner):
            return [_value(element, inner, path) for element in _list(raw, path)]
        case MapOf(inner):
            return {name: _value(element, inner, path.key(name)) for name, element in _dict(raw, path).items()}
        case ObjectOf(attributes):
            given = _dict(raw, path)
            if given.keys() != attributes.keys():
                odd = min(given.keys() ^ attributes.keys())
                raise Misfit(path.name(odd), "is missing" if odd in attributes else "there is no such attribute")
            return {name: _value(given[name], inner, path.name(name)) for name, inner in attributes.items()}
        case TupleOf(elements):
            items = _list(raw, path, len(elements))
            return [_value(items[at], inner, path.index(at)) for at, inner in enumerate(elements)]
    if type_ == DYNAMIC:
        pair = _list(raw, path, 2)
        form = load_json(pair[0]) if isinstance(pair[0], bytes | str) else None
        inner = _parse(form, path)
        return Typed(inner, _value(pair[1], inner, path))
    if type_ == NUMBER and isinstance(raw, str | float):  # a float in msgpack is its bits, one tenth is the text "0.1"
        return _number(str(Decimal(raw)) if isinstance(raw, float) else raw, path)
    return _scalar(raw, type_, path)


def _scalar(raw: Any, type_: Type, path: Path) -> Any:
    if type_ == STRING and isinstance(raw, str):
        return raw
    if type_ == BOOL and isinstance(raw, bool):
        return raw
    if type_ == NUMBER and isinstance(raw, int | float | Decimal) and not isinstance(raw, bool):
        return raw
    raise Misfit(path, f"a {type_.json()} is required, not {type(raw).__name__}")


def _number(text: str, path: Path) -> int | float | Decimal:
    try:
        return number(text)
    except (ValueError, ArithmeticError):
        raise Misfit(path, f"not a number: {text[:40]!r}") from None


def _parse(form: Any, path: Path) -> Type:
    try:
        return parse(form)
    except ValueError as error:
        raise Misfit(path, str(error)) from None


def _list(raw: Any, path: Path, length: int | None = None) -> list[Any]:
    if not isinstance(raw, list):
        raise Misfit(path, f"a list is required, not {type(raw).__name__}")
    if length is not None and len(raw) != length:
        raise Misfit(path, f"{length} elements are required, not {len(raw)}")
    return raw


def _dict(raw: Any, path: Path) -> dict[str, Any]:
    if not isinstance(raw, dict) or not all(isinstance(name, str) for name in raw):
        raise Misfit(path, f"an object is required, not {type(raw).__name__}")
    return raw


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")
