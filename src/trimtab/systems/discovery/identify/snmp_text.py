"""SNMP values as text. An OCTET STRING may be a name, a MAC address or anything else; only its octets can tell."""

from __future__ import annotations

import re

from trimtab.systems.discovery.identify.snmp_messages import Value

_BINARY = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def text(value: Value | float) -> str:
    """For people: UTF-8 where it is, else Latin-1 where most octets are letters, else hexadecimal as aa:bb:cc."""
    if value is None:
        return ""
    if not isinstance(value, bytes):
        return str(value)
    octets = value.rstrip(b"\x00")
    try:
        read = octets.decode()
    except UnicodeDecodeError:
        letters = sum(0x20 <= octet < 0x7F for octet in octets)
        read = octets.decode("latin-1") if letters * 4 >= len(octets) * 3 else "\x00"
    return hexadecimal(value) if _BINARY.search(read) else read


def mac(value: Value | float) -> str:
    """A MAC address as aa:bb:cc:dd:ee:ff; nothing for six zeros; other values as text."""
    if not isinstance(value, bytes) or len(value) != 6:
        return text(value)
    return hexadecimal(value) if any(value) else ""


def hexadecimal(octets: bytes) -> str:
    return octets.hex(":")
