"""BER as SNMP uses it (RFC 3417 section 8): definite lengths, a handful of types, nothing nested by itself.

Written for speed: it walks offsets and copies only values. Every length is checked against the element around it before
it is used, nothing recurses, and whatever is wrong is a `BadMessage`.
"""

from __future__ import annotations

import functools

Value = bytes | int | str | None

MOST_BINDINGS = 128

INTEGER, OCTETS, NULL, OID, SEQUENCE = 0x02, 0x04, 0x05, 0x06, 0x30
GET, RESPONSE = 0xA0, 0xA2
_IP_ADDRESS, _COUNTER, _GAUGE, _TICKS, _OPAQUE, _COUNTER64 = 0x40, 0x41, 0x42, 0x43, 0x44, 0x46
_UNSIGNED = frozenset({_COUNTER, _GAUGE, _TICKS, _COUNTER64})
_TEXTS = frozenset({OCTETS, _OPAQUE})
_NOTHING = frozenset({NULL, 0x80, 0x81, 0x82})  # also noSuchObject, noSuchInstance, endOfMibView


class BadMessage(ValueError):  # noqa: N818 - it reads as what it is
    """Not the message that was asked for. The message says where it stops making sense, without its bytes."""


def bindings(data: bytes, at: int, end: int) -> tuple[tuple[str, Value], ...]:
    found: list[tuple[str, Value]] = []
    while at < end:
        if len(found) == MOST_BINDINGS:
            raise BadMessage(f"the answer has more than {MOST_BINDINGS} values")
        inner, at = enter(data, at, end, SEQUENCE)
        start, stop = enter(data, inner, at, OID)
        oid = decoded_oid(data[start:stop])
        tag, start, stop = header(data, stop, at)
        found.append((oid, value_of(tag, data[start:stop])))
    return tuple(found)


def value_of(tag: int, content: bytes) -> Value:
    if tag in _TEXTS:
        return content
    if tag == OID:
        return decoded_oid(content)
    if tag in _NOTHING:
        return None
    if tag == INTEGER or tag in _UNSIGNED:
        if not 0 < len(content) <= 9:
            raise BadMessage("a number is empty or too long")
        return int.from_bytes(content, "big", signed=tag == INTEGER)
    if tag == _IP_ADDRESS and len(content) == 4:
        return ".".join(map(str, content))
    raise BadMessage(f"a value is of an unknown type, 0x{tag:02x}")


def header(data: bytes, at: int, end: int) -> tuple[int, int, int]:
    """The tag of the element at this place, and where its content begins and ends."""
    start = at + 2
    if start > end:
        raise BadMessage("the answer ends in the middle of an element")
    length = data[at + 1]
    if length > 0x7F:
        count = length & 0x7F
        if not 0 < count <= 4 or start + count > end:
            raise BadMessage("an element's length is not readable")
        length = int.from_bytes(data[start : start + count], "big")
        start += count
    stop = start + length
    if stop > end:
        raise BadMessage("an element is longer than what is around it")
    return data[at], start, stop


def enter(data: bytes, at: int, end: int, tag: int) -> tuple[int, int]:
    """Where the content of the element begins and ends, which must be of this type."""
    start = at + 2
    if start <= end and data[at] == tag and (stop := start + data[at + 1]) <= end and stop < start + 0x80:
        return start, stop  # nearly always: a short length that fits
    found, start, stop = header(data, at, end)
    if found != tag:
        raise BadMessage(f"an element is of type 0x{found:02x}, where 0x{tag:02x} belongs")
    return start, stop


def number(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The integer at this place, and where it ends."""
    start, stop = enter(data, at, end, INTEGER)
    if not 0 < stop - start <= 5:
        raise BadMessage("a number is empty or too long")
    return int.from_bytes(data[start:stop], "big", signed=True), stop


@functools.lru_cache(maxsize=4096)
def decoded_oid(content: bytes) -> str:
    if not content or len(content) > 640 or content[-1] > 0x7F:
        raise BadMessage("an object identifier is empty, too long or cut off")
    arcs: list[int] = []
    arc = 0
    for octet in content:
        arc = arc << 7 | octet & 0x7F
        if arc > 0xFFFFFFFF + 80:
            raise BadMessage("a part of an object identifier is too large")
        if octet < 0x80:
            arcs.append(arc)
            arc = 0
    if len(arcs) > 127:
        raise BadMessage("an object identifier has more than 128 parts")
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, (first, arcs[0] - first * 40, *arcs[1:])))


@functools.lru_cache(maxsize=4096)
def encoded_oid(oid: str) -> bytes:
    arcs = [int(arc) for arc in oid.split(".")]
    if len(arcs) < 2 or len(arcs) > 128 or min(arcs) < 0 or max(arcs) > 0xFFFFFFFF or arcs[0] > 2:
        raise ValueError(f"{oid!r} is not an object identifier such as 1.3.6.1.2.1.1.1.0")
    if arcs[0] < 2 and arcs[1] > 39:
        raise ValueError(f"{oid!r} is not an object identifier: under 0 and 1 the second part is 39 at most")
    return b"".join(map(_arc, (arcs[0] * 40 + arcs[1], *arcs[2:])))


def _arc(arc: int) -> bytes:
    octets = [arc & 0x7F]
    while arc := arc >> 7:
        octets.append(arc & 0x7F | 0x80)
    return bytes(reversed(octets))


def integer(value: int) -> bytes:
    return element(INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def element(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 0x80:
        return bytes((tag, length)) + content
    octets = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(octets))) + octets + content
