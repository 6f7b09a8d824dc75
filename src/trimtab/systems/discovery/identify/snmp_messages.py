"""The few SNMP messages that a sweep needs, in BER (RFC 1157, 3416, 3412, 3414). Pure, and bounded by the datagram.

A sweep sends one question to every address and reads thousands of answers, so the reader is written for speed: it walks
offsets and copies only values. Every length is checked against the element around it before it is used, nothing recurses,
and whatever is wrong with an answer is a `BadMessage`. Bytes after the message are ignored: some agents pad.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Literal

import msgspec

Version = Literal["v1", "v2c"]
Value = bytes | int | str | None

MOST_BINDINGS = 128
LONGEST_ENGINE_ID = 32
LARGEST = 65507
"""What fits in a UDP datagram over IPv4."""

_INTEGER, _OCTETS, _NULL, _OID, _SEQUENCE = 0x02, 0x04, 0x05, 0x06, 0x30
_IP_ADDRESS, _COUNTER, _GAUGE, _TICKS, _OPAQUE, _COUNTER64 = 0x40, 0x41, 0x42, 0x43, 0x44, 0x46
_GET, _RESPONSE, _REPORT = 0xA0, 0xA2, 0xA8
_UNSIGNED = frozenset({_COUNTER, _GAUGE, _TICKS, _COUNTER64})
_TEXTS = frozenset({_OCTETS, _OPAQUE})
_NOTHING = frozenset({_NULL, 0x80, 0x81, 0x82})  # also noSuchObject, noSuchInstance, endOfMibView
_NUMBERS: dict[Version, int] = {"v1": 0, "v2c": 1}
_V3 = 3
_USM = 3  # the user-based security model
_REPORTABLE = 0x04


class BadMessage(ValueError):  # noqa: N818 - it reads as what it is
    """Not the message that was asked for. The message says where it stops making sense, without its bytes."""


class Response(msgspec.Struct, frozen=True, gc=False):
    """An answer to a Get. `error` is the error-status (0: none); a value is None where the agent has none."""

    request_id: int
    error: int
    values: tuple[tuple[str, Value], ...]


class EngineId(msgspec.Struct, frozen=True, gc=False):
    """Who an SNMPv3 agent says it is: its engine ID in hexadecimal digits, its starts, and the seconds since the last."""

    hex: str
    boots: int
    time: int
    message_id: int = 0


def get_request(version: Version, community: bytes, request_id: int, oids: Iterable[str]) -> bytes:
    """A Get for these objects. ValueError when one is not an object identifier."""
    bindings = b"".join(_element(_SEQUENCE, _element(_OID, _encoded(oid)) + b"\x05\x00") for oid in oids)
    return _element(_SEQUENCE, _integer(_NUMBERS[version]) + _element(_OCTETS, community) + _get(request_id, bindings))


def engine_discovery(message_id: int) -> bytes:
    """A question that an SNMPv3 agent answers with its engine ID (RFC 3414 section 4). It carries no credential."""
    header = _integer(message_id) + _integer(LARGEST) + _element(_OCTETS, bytes((_REPORTABLE,))) + _integer(_USM)
    nobody = _element(_OCTETS, b"")
    security = _element(_SEQUENCE, nobody + _integer(0) + _integer(0) + nobody * 3)
    scoped = nobody * 2 + _get(message_id, b"")
    return _element(
        _SEQUENCE,
        _integer(_V3) + _element(_SEQUENCE, header) + _element(_OCTETS, security) + _element(_SEQUENCE, scoped),
    )


def read_response(data: bytes) -> Response:
    """The answer to a Get of v1 or v2c. BadMessage."""
    at, end = _enter(data, 0, len(data), _SEQUENCE)
    version, at = _number(data, at, end)
    if version not in (0, 1):
        raise BadMessage("the answer is not SNMP v1 or v2c")
    _, at = _enter(data, at, end, _OCTETS)  # the community
    at, end = _enter(data, at, end, _RESPONSE)
    request_id, at = _number(data, at, end)
    error, at = _number(data, at, end)
    _, at = _number(data, at, end)
    return Response(request_id, error, _bindings(data, *_enter(data, at, end, _SEQUENCE)))


def read_engine(data: bytes) -> EngineId | None:
    """The engine that an SNMPv3 message comes from; None when it does not say. BadMessage."""
    at, end = _enter(data, 0, len(data), _SEQUENCE)
    version, at = _number(data, at, end)
    if version != _V3:
        raise BadMessage("the answer is not SNMPv3")
    header, at = _enter(data, at, end, _SEQUENCE)
    message_id, _ = _number(data, header, at)
    at, end = _enter(data, at, end, _OCTETS)
    at, end = _enter(data, at, end, _SEQUENCE)
    start, at = _enter(data, at, end, _OCTETS)
    if at - start > LONGEST_ENGINE_ID:
        raise BadMessage(f"the engine ID is longer than {LONGEST_ENGINE_ID} octets")
    boots, after = _number(data, at, end)
    time, _ = _number(data, after, end)
    return EngineId(data[start:at].hex(), boots, time, message_id) if at > start else None


def _bindings(data: bytes, at: int, end: int) -> tuple[tuple[str, Value], ...]:
    found: list[tuple[str, Value]] = []
    while at < end:
        if len(found) == MOST_BINDINGS:
            raise BadMessage(f"the answer has more than {MOST_BINDINGS} values")
        inner, at = _enter(data, at, end, _SEQUENCE)
        start, stop = _enter(data, inner, at, _OID)
        oid = _decoded(data[start:stop])
        tag, start, stop = _header(data, stop, at)
        found.append((oid, _value(tag, data[start:stop])))
    return tuple(found)


def _value(tag: int, content: bytes) -> Value:
    if tag in _TEXTS:
        return content
    if tag == _OID:
        return _decoded(content)
    if tag in _NOTHING:
        return None
    if tag == _INTEGER or tag in _UNSIGNED:
        if not 0 < len(content) <= 9:
            raise BadMessage("a number is empty or too long")
        return int.from_bytes(content, "big", signed=tag == _INTEGER)
    if tag == _IP_ADDRESS and len(content) == 4:
        return ".".join(map(str, content))
    raise BadMessage(f"a value is of an unknown type, 0x{tag:02x}")


def _header(data: bytes, at: int, end: int) -> tuple[int, int, int]:
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


def _enter(data: bytes, at: int, end: int, tag: int) -> tuple[int, int]:
    """Where the content of the element begins and ends, which must be of this type."""
    start = at + 2
    if start <= end and data[at] == tag and (stop := start + data[at + 1]) <= end and stop < start + 0x80:
        return start, stop  # nearly always: a short length that fits
    found, start, stop = _header(data, at, end)
    if found != tag:
        raise BadMessage(f"an element is of type 0x{found:02x}, where 0x{tag:02x} belongs")
    return start, stop


def _number(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The integer at this place, and where it ends."""
    start, stop = _enter(data, at, end, _INTEGER)
    if not 0 < stop - start <= 5:
        raise BadMessage("a number is empty or too long")
    return int.from_bytes(data[start:stop], "big", signed=True), stop


@functools.lru_cache(maxsize=4096)
def _decoded(content: bytes) -> str:
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
def _encoded(oid: str) -> bytes:
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


def _get(request_id: int, bindings: bytes) -> bytes:
    return _element(_GET, _integer(request_id) + _integer(0) + _integer(0) + _element(_SEQUENCE, bindings))


def _integer(value: int) -> bytes:
    return _element(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def _element(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 0x80:
        return bytes((tag, length)) + content
    octets = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(octets))) + octets + content
