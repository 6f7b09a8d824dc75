"""Where a client may connect to: which names, and which addresses behind them.

Names are checked before each request and each redirect. Addresses are checked when the socket is made, on the address
that is then connected to: a name that resolves to something else a moment later gains nothing.

An IPv6 address that stands for an IPv4 one is judged as that one. Where we cannot tell which one that is, it may be any,
so it is allowed only where all are.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import msgspec

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class HostPin(msgspec.Struct, frozen=True, kw_only=True):
    """`hosts` are `name`, `name:port` or `*.suffix`; None is any. For addresses that users supply set all three to False."""

    hosts: tuple[str, ...] | None = None
    loopback: bool = True
    private: bool = True
    link_local: bool = False  # there live the metadata services of clouds, which hand out credentials

    def allows(self, host: str, port: int) -> bool:
        """Whether a request may name this host."""
        if self.hosts is None:
            return True
        host = host.lower().rstrip(".")
        return any(_matches(pattern.lower(), host, port) for pattern in self.hosts)

    def refusal(self, address: str) -> str | None:
        """Why an address may not be connected to; None when it may."""
        found = _unwrapped(ipaddress.ip_address(address.partition("%")[0]))
        if any(found in network for network in _OPAQUE):
            return None if self.loopback and self.private and self.link_local else "an address that leads anywhere"
        if found.is_unspecified or found.is_loopback or found in _THIS_HOST:
            return None if self.loopback else "a loopback address"
        if found.is_link_local or found in _METADATA:
            return None if self.link_local else "a link-local or metadata address"
        if found.is_multicast or found == _BROADCAST:
            return "no address of one host"
        return None if self.private or _is_public(found) else "a private address"

    def socket(self, info: tuple[Any, ...]) -> socket.socket:
        """A socket for one resolved address (a `socket_factory`); `AddressRefused` when it is not allowed."""
        family, kind, protocol, _, address = info
        if self.refusal(address[0]) is not None:
            raise AddressRefused
        return socket.socket(family, kind, protocol)


class AddressRefused(PermissionError):  # noqa: N818 - it reads as what happened
    """Always the same text, so that several of them stay what they are when the connector sums them up."""

    def __init__(self) -> None:
        super().__init__("the name resolves to an address that is not allowed")


def _matches(pattern: str, host: str, port: int) -> bool:
    name, colon, number = pattern.rpartition(":")
    if colon and number.isdigit() and (":" not in name or name.endswith("]")):
        if int(number) != port:
            return False
        pattern = name
    pattern = pattern.strip("[]")
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and len(host) >= len(pattern)
    return host == pattern


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one leads to."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.sixtofour is not None:
        return address.sixtofour
    if any(address in network for network in _EMBEDDING):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _is_public(address: Address) -> bool:
    if any(address in network for network in _NOT_PUBLIC):
        return False
    return address.is_global and (address.version == 4 or address in _GLOBAL_UNICAST)


_THIS_HOST = ipaddress.ip_network("0.0.0.0/8")
_EMBEDDING = (
    ipaddress.ip_network("::/96"),  # IPv4-compatible; :: and ::1 stay what they are, for 0.0.0.0/8 is this host too
    ipaddress.ip_network("::ffff:0:0/96"),  # IPv4-mapped
    ipaddress.ip_network("::ffff:0:0:0/96"),  # IPv4-translated (RFC 2765)
    ipaddress.ip_network("64:ff9b::/96"),  # NAT64 (RFC 6052)
)
"""The last 32 bits are the IPv4 address."""
_OPAQUE = (
    ipaddress.ip_network("64:ff9b:1::/48"),  # NAT64 of a site's own making (RFC 8215)
    ipaddress.ip_network("2001::/32"),  # Teredo
)
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")  # all that was ever given out; beyond is fec0::/10, for one
_NOT_PUBLIC = (ipaddress.ip_network("192.0.0.0/24"), ipaddress.ip_network("3fff::/20"))
"""What some Python versions take for global: protocol assignments, and documentation (RFC 9637)."""
_BROADCAST = ipaddress.ip_address("255.255.255.255")
_METADATA = frozenset(
    ipaddress.ip_address(text) for text in ("168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")
)
"""Services of cloud hosts that are not at a link-local address."""
