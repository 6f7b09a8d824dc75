"""The agent's side of SNMP v1 and v2c: read a Get, write its answer."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from trimtab.systems.discovery.identify.snmp_ber import (
    GET,
    OCTETS,
    OID,
    RESPONSE,
    SEQUENCE,
    BadMessage,
    bindings,
    element,
    encoded_oid,
    enter,
    integer,
    number,
)

Scalar = bytes | int | str
"""An OCTET STRING, an INTEGER, an OBJECT IDENTIFIER."""

_NO_SUCH_OBJECT = b"\x80\x00"
_NULL = b"\x05\x00"


class Question(msgspec.Struct, frozen=True):
    """A Get. `version` is 0 for v1 and 1 for v2c."""

    version: int
    community: bytes
    request_id: int
    oids: tuple[str, ...]


def read_question(data: bytes) -> Question | None:
    """The Get in a datagram; None for anything else."""
    try:
        at, end = enter(data, 0, len(data), SEQUENCE)
        version, at = number(data, at, end)
        start, at = enter(data, at, end, OCTETS)
        community = data[start:at]
        at, end = enter(data, at, end, GET)
        request_id, at = number(data, at, end)
        _, at = number(data, at, end)
        _, at = number(data, at, end)
        asked = bindings(data, *enter(data, at, end, SEQUENCE))
    except BadMessage:
        return None
    return Question(version, community, request_id, tuple(oid for oid, _ in asked)) if version in (0, 1) else None


def response(
    question: Question, values: Iterable[tuple[str, Scalar | None]], *, error: int = 0, index: int = 0
) -> bytes:
    """The answer. A value that is None is noSuchObject, or NULL where there is an error."""
    absent = _NULL if error else _NO_SUCH_OBJECT
    listed = b"".join(
        element(SEQUENCE, element(OID, encoded_oid(oid)) + (absent if value is None else _scalar(value)))
        for oid, value in values
    )
    pdu = integer(question.request_id) + integer(error) + integer(index) + element(SEQUENCE, listed)
    community = element(OCTETS, question.community)
    return element(SEQUENCE, integer(question.version) + community + element(RESPONSE, pdu))


def _scalar(value: Scalar) -> bytes:
    if isinstance(value, bytes):
        return element(OCTETS, value)
    if isinstance(value, int):
        return integer(value)
    return element(OID, encoded_oid(value))
