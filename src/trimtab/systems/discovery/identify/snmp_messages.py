"""The few SNMP messages that a sweep needs, in BER (RFC 1157, 3416, 3412, 3414). Pure, and bounded by the datagram.

Whatever is wrong with an answer is a `BadMessage`. Bytes after the message are ignored: some agents pad.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from trimtab.systems.discovery.identify.snmp_ber import (
    GET,
    OCTETS,
    OID,
    RESPONSE,
    SEQUENCE,
    BadMessage,
    Value,
    bindings,
    element,
    encoded_oid,
    enter,
    integer,
    number,
)

__all__ = [
    "LARGEST",
    "LONGEST_ENGINE_ID",
    "BadMessage",
    "EngineId",
    "Response",
    "Value",
    "Version",
    "engine_discovery",
    "get_request",
    "read_engine",
    "read_response",
]

Version = Literal["v1", "v2c"]

LONGEST_ENGINE_ID = 32
LARGEST = 65507
"""What fits in a UDP datagram over IPv4."""

_NUMBERS: dict[Version, int] = {"v1": 0, "v2c": 1}
_V3 = 3
_USM = 3  # the user-based security model
_REPORTABLE = 0x04


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
    asked = b"".join(element(SEQUENCE, element(OID, encoded_oid(oid)) + b"\x05\x00") for oid in oids)
    return element(SEQUENCE, integer(_NUMBERS[version]) + element(OCTETS, community) + _get(request_id, asked))


def engine_discovery(message_id: int) -> bytes:
    """A question that an SNMPv3 agent answers with its engine ID (RFC 3414 section 4). It carries no credential."""
    header = integer(message_id) + integer(LARGEST) + element(OCTETS, bytes((_REPORTABLE,))) + integer(_USM)
    nobody = element(OCTETS, b"")
    security = element(SEQUENCE, nobody + integer(0) + integer(0) + nobody * 3)
    scoped = nobody * 2 + _get(message_id, b"")
    return element(
        SEQUENCE,
        integer(_V3) + element(SEQUENCE, header) + element(OCTETS, security) + element(SEQUENCE, scoped),
    )


def read_response(data: bytes) -> Response:
    """The answer to a Get of v1 or v2c. BadMessage."""
    at, end = enter(data, 0, len(data), SEQUENCE)
    version, at = number(data, at, end)
    if version not in (0, 1):
        raise BadMessage("the answer is not SNMP v1 or v2c")
    _, at = enter(data, at, end, OCTETS)  # the community
    at, end = enter(data, at, end, RESPONSE)
    request_id, at = number(data, at, end)
    error, at = number(data, at, end)
    _, at = number(data, at, end)
    return Response(request_id, error, bindings(data, *enter(data, at, end, SEQUENCE)))


def read_engine(data: bytes) -> EngineId | None:
    """The engine that an SNMPv3 message comes from; None when it does not say. BadMessage."""
    at, end = enter(data, 0, len(data), SEQUENCE)
    version, at = number(data, at, end)
    if version != _V3:
        raise BadMessage("the answer is not SNMPv3")
    header, at = enter(data, at, end, SEQUENCE)
    message_id, _ = number(data, header, at)
    at, end = enter(data, at, end, OCTETS)
    at, end = enter(data, at, end, SEQUENCE)
    start, at = enter(data, at, end, OCTETS)
    if at - start > LONGEST_ENGINE_ID:
        raise BadMessage(f"the engine ID is longer than {LONGEST_ENGINE_ID} octets")
    boots, after = number(data, at, end)
    time, _ = number(data, after, end)
    return EngineId(data[start:at].hex(), boots, time, message_id) if at > start else None


def _get(request_id: int, asked: bytes) -> bytes:
    return element(GET, integer(request_id) + integer(0) + integer(0) + element(SEQUENCE, asked))
