"""Protobuf's wire format, driven by tables: a message is a dict, and its table says which field has which number.

The protobuf package costs 50 ms at each start of a provider; Terraform starts one three to five times for an apply. The
tables are small, so the codec is too. What a peer may send is bounded here: messages nest at most `DEPTH` deep, lengths
must lie inside what was received, text must be UTF-8. Anything else is `InvalidRequest`, never another exception.

Encoding is strict with ourselves: a key that the table does not know, or a value of the wrong type, raises `TypeError` with
its path, so that a misspelt field is found by its first test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.terraform.protocol.contract import Encoded, InvalidRequest, Message

__all__ = ["DEPTH", "Encoded", "Field", "Table", "decode", "encode", "resolve", "split"]

DEPTH: Final = 100
"""The same depth as protobuf's own parsers allow."""

STRING, BYTES, BOOL, INT, ENUM, MESSAGE = range(6)
ONE, LIST, MAP = range(3)
_VARINT, _FIXED64, _LENGTH, _START, _END, _FIXED32 = range(6)
_WIRE = (_LENGTH, _LENGTH, _VARINT, _VARINT, _VARINT, _LENGTH)
_DEFAULT: tuple[Any, ...] = ("", b"", False, 0, 0, None)


class Field:
    """One field of a message. `explicit` fields are sent even when they hold their type's zero (proto3 `optional`, oneof)."""

    __slots__ = ("count", "explicit", "kind", "name", "number", "oneof", "table", "tag")

    def __init__(
        self,
        number: int,
        kind: int,
        *,
        count: int = ONE,
        table: Table | None = None,
        explicit: bool = False,
        oneof: bool = False,
    ) -> None:
        self.name = ""
        self.number = number
        self.kind = kind
        self.count = count
        self.table = table
        self.explicit = explicit or oneof
        self.oneof = oneof
        """A table has at most one oneof, so a flag is enough."""
        self.tag = _varint(number << 3 | (_LENGTH if count == MAP else _WIRE[kind]))


class Table:
    """The fields of a message type. Types that contain themselves are made empty, and filled by `has`."""

    __slots__ = ("fields", "name", "numbers")

    def __init__(self, name: str, /, **fields: Field) -> None:
        self.name = name
        self.fields: dict[str, Field] = {}
        self.numbers: dict[int, Field] = {}
        self.has(**fields)

    def has(self, /, **fields: Field) -> None:
        for name, field in fields.items():
            field.name = name.rstrip("_")  # `return_` is the field `return`
            self.fields[field.name] = field
            self.numbers[field.number] = field


def string(number: int, **more: Any) -> Field:
    return Field(number, STRING, **more)


def binary(number: int, **more: Any) -> Field:
    return Field(number, BYTES, **more)


def boolean(number: int, **more: Any) -> Field:
    return Field(number, BOOL, **more)


def integer(number: int, **more: Any) -> Field:
    return Field(number, INT, **more)


def enum(number: int, **more: Any) -> Field:
    return Field(number, ENUM, **more)


def one(number: int, table: Table) -> Field:
    return Field(number, MESSAGE, table=table, explicit=True)


def many(number: int, table: Table) -> Field:
    return Field(number, MESSAGE, table=table, count=LIST)


def mapping(number: int, table: Table | None = None) -> Field:
    """A map from strings to messages, or to strings when there is no table."""
    return Field(number, STRING if table is None else MESSAGE, table=table, count=MAP)


# -- encoding ------------------------------------------------------------------------------------------------------------


def encode(message: Message | Encoded, table: Table) -> bytes:
    if type(message) is Encoded:
        return message.data
    parts: list[bytes] = []
    _write(message, table, parts)
    return b"".join(parts)


def _write(message: Any, table: Table, parts: list[bytes]) -> None:
    if not isinstance(message, Mapping):
        raise TypeError(f"{table.name} is a message, not {type(message).__name__}")
    for name, value in message.items():
        field = table.fields.get(name)
        if field is None:
            raise TypeError(f"{table.name} has no field {name!r}")
        if value is None:
            continue
        try:
            if field.count == MAP:
                for key, item in value.items():
                    entry = _KEY_TAG + _sized(_text(key)) + _VALUE_TAG + _sized(_payload(field, item))
                    parts.append(field.tag + _sized(entry))
            elif field.count == LIST:
                for item in value:
                    parts.append(field.tag)
                    parts.append(_single(field, item))
            elif field.explicit or value != _DEFAULT[field.kind]:
                parts.append(field.tag)
                parts.append(_single(field, value))
        except TypeError as error:
            raise TypeError(f"{table.name}.{name}: {error}") from None
        except AttributeError:
            raise TypeError(f"{table.name}.{name} is a map, not {type(value).__name__}") from None


_KEY_TAG, _VALUE_TAG = b"\x0a", b"\x12"


def _single(field: Field, value: Any) -> bytes:
    kind = field.kind
    if kind == BOOL:
        if value is not True and value is not False:
            raise TypeError(f"a truth value is wanted, not {value!r}")
        return b"\x01" if value else b"\x00"
    if kind in (INT, ENUM):
        bits = 63 if kind == INT else 31
        if type(value) is not int or not -(1 << bits) <= value < 1 << bits:
            raise TypeError(f"a whole number is wanted, not {value!r}")
        return _varint(value & 0xFFFFFFFFFFFFFFFF)
    return _sized(_payload(field, value))


def _payload(field: Field, value: Any) -> bytes:
    if field.kind == STRING:
        return _text(value)
    if field.kind == BYTES:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise TypeError(f"bytes are wanted, not {type(value).__name__}")
        return bytes(value)
    if field.table is None:
        raise TypeError(f"{field.name} has no table")
    return encode(value, field.table)


def _text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"text is wanted, not {type(value).__name__}")
    return value.encode("utf-8", "replace")  # a lone surrogate becomes a question mark rather than a broken answer


def _sized(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


# -- decoding ------------------------------------------------------------------------------------------------------------


def decode(data: bytes, table: Table) -> Message:
    """All of a message. Fields that the table does not know are passed over, as protobuf wants it."""
    return _read(data, 0, len(data), table, {}, DEPTH, False)


def split(data: bytes, table: Table) -> Message:
    """The outermost message only: those inside it stay `Encoded`, so that maps of large schemas are joined without reading."""
    return _read(data, 0, len(data), table, {}, DEPTH, True)


def resolve(message: Message | Encoded, table: Table) -> Message:
    """The same message with nothing `Encoded` in it."""
    if isinstance(message, Encoded):
        return decode(message.data, table)
    out: Message = {}
    for name, value in message.items():
        field = table.fields.get(name)
        inner = None if field is None else field.table
        if field is None or inner is None or value is None:
            out[name] = value
        elif field.count == MAP:
            out[name] = {key: resolve(item, inner) for key, item in value.items()}
        elif field.count == LIST:
            out[name] = [resolve(item, inner) for item in value]
        else:
            out[name] = resolve(value, inner)
    return out


def _read(data: bytes, at: int, end: int, table: Table, out: Message, depth: int, shallow: bool) -> Message:
    if depth < 0:
        raise InvalidRequest(f"{table.name}: messages nest too deep")
    while at < end:
        tag, at = _number(data, at, end)
        number, wire = tag >> 3, tag & 7
        if not number or tag > 0xFFFFFFFF:
            raise InvalidRequest(f"{table.name}: there is no such field number")
        field = table.numbers.get(number)
        if field is None or wire != (_LENGTH if field.count == MAP else _WIRE[field.kind]):
            at = _skip(data, at, end, number, wire, depth)
            continue
        if wire == _VARINT:
            value, at = _number(data, at, end)
            _put(out, table, field, _scalar(field, value))
            continue
        size, start = _number(data, at, end)
        at = start + size
        if at > end:
            raise InvalidRequest(f"{table.name}.{field.name} is cut short")
        if field.count == MAP:
            key, item = _entry(data, start, at, field, depth - 1, shallow)
            out.setdefault(field.name, {})[key] = item
        elif field.kind == MESSAGE:
            _put_message(data, start, at, table, field, out, depth - 1, shallow)
        else:
            _put(out, table, field, _slice(data, start, at, field, table))
    return out


def _put(out: Message, table: Table, field: Field, value: Any) -> None:
    if field.count == LIST:
        out.setdefault(field.name, []).append(value)
        return
    if field.oneof:
        for other in table.fields.values():
            if other.oneof:
                out.pop(other.name, None)  # of a oneof the last one holds
    out[field.name] = value


def _put_message(
    data: bytes, start: int, end: int, table: Table, field: Field, out: Message, depth: int, shallow: bool
) -> None:
    inner = _table(field)
    if shallow:
        raw = data[start:end]
        if field.count == ONE and field.name in out:
            raw = out[field.name].data + raw  # a message that comes in two parts is their joint
        _put(out, table, field, Encoded(raw))
        return
    before = out.get(field.name) if field.count == ONE else None
    _put(out, table, field, _read(data, start, end, inner, {} if before is None else before, depth, False))


def _entry(data: bytes, at: int, end: int, field: Field, depth: int, shallow: bool) -> tuple[str, Any]:
    key = ""
    item: Any = "" if field.kind == STRING else None
    inner = field.table
    while at < end:
        tag, at = _number(data, at, end)
        if tag not in (10, 18):
            if not tag >> 3 or tag > 0xFFFFFFFF:
                raise InvalidRequest(f"{field.name}: there is no such field number")
            at = _skip(data, at, end, tag >> 3, tag & 7, depth)
            continue
        size, start = _number(data, at, end)
        at = start + size
        if at > end:
            raise InvalidRequest(f"{field.name} is cut short")
        if tag == 10:
            key = _decode_text(data[start:at], field.name)
        elif inner is None:
            item = _decode_text(data[start:at], field.name)
        elif shallow:
            item = Encoded((b"" if item is None else item.data) + data[start:at])
        else:
            item = _read(data, start, at, inner, {} if item is None else item, depth - 1, False)
    if item is None:
        item = Encoded(b"") if shallow else {}
    return key, item


def _slice(data: bytes, start: int, end: int, field: Field, table: Table) -> str | bytes:
    raw = data[start:end]
    return raw if field.kind == BYTES else _decode_text(raw, f"{table.name}.{field.name}")


def _decode_text(raw: bytes, where: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"{where} is not UTF-8") from None


def _scalar(field: Field, value: int) -> int | bool:
    if field.kind == BOOL:
        return bool(value)
    if field.kind == ENUM:
        value &= 0xFFFFFFFF
        return value - (1 << 32) if value >> 31 else value
    return value - (1 << 64) if value >> 63 else value


def _number(data: bytes, at: int, end: int) -> tuple[int, int]:
    if at >= end:
        raise InvalidRequest("the message is cut short")
    byte = data[at]
    at += 1
    if byte < 0x80:
        return byte, at
    value, shift = byte & 0x7F, 7
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return value, at
        shift += 7
        if shift > 63:
            break
    raise InvalidRequest("a number is cut short or too long")


def _skip(data: bytes, at: int, end: int, number: int, wire: int, depth: int) -> int:
    if wire == _VARINT:
        return _number(data, at, end)[1]
    if wire == _LENGTH:
        size, at = _number(data, at, end)
        at += size
    elif wire == _FIXED64:
        at += 8
    elif wire == _FIXED32:
        at += 4
    elif wire == _START:
        return _skip_group(data, at, end, number, depth - 1)
    else:
        raise InvalidRequest("there is no such wire type")
    if at > end:
        raise InvalidRequest("the message is cut short")
    return at


def _skip_group(data: bytes, at: int, end: int, number: int, depth: int) -> int:
    if depth < 0:
        raise InvalidRequest("groups nest too deep")
    while True:
        tag, at = _number(data, at, end)
        if not tag >> 3 or tag > 0xFFFFFFFF:
            raise InvalidRequest("there is no such field number")
        if tag & 7 == _END:
            if tag >> 3 != number:
                raise InvalidRequest("a group ends that did not begin")
            return at
        at = _skip(data, at, end, tag >> 3, tag & 7, depth)


def _table(field: Field) -> Table:
    if field.table is None:
        raise TypeError(f"{field.name} has no table")
    return field.table
