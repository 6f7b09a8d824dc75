"""Sets of addresses as intervals: what a rule sweeps. Pure.

`parse` reads what users write and gives what of it is probed: a prefix without its network and broadcast address, for
IPv6 without the subnet-router anycast address (RFC 4291, 2.6.1); a range `a-b` and a single address as they are.
`span` gives all of it, which is what an exclude means.

An address has one position in a set, so a sweep can be permuted, split and resumed by numbers. Nothing is ever listed:
a set costs its intervals, not its addresses. Sets of different text but the same addresses are equal, with one digest.
"""

from __future__ import annotations

import hashlib
import ipaddress
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from socket import AF_INET, AF_INET6, inet_ntoa, inet_ntop, inet_pton
from typing import Literal

import msgspec

from trimtab.systems.discovery.kinds import PrefixEntry

MAX_HOSTS = 2**20
"""Of one prefix or range."""
MAX_ADDRESSES = 2**21
"""Of all that one rule names: what its ledger is made for."""

Version = Literal[4, 6]


class Interval(msgspec.Struct, frozen=True):
    """Addresses that follow each other; both ends belong to it."""

    first: int
    last: int
    version: Version = 4

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def overlaps(self, other: Interval) -> bool:
        return self.version == other.version and self.first <= other.last and other.first <= self.last

    def __str__(self) -> str:
        first = written(self.first, self.version)
        return first if self.first == self.last else f"{first}-{written(self.last, self.version)}"


class Addresses:
    """A set of addresses, in order, IPv4 before IPv6. It never changes."""

    __slots__ = ("_firsts", "_lasts", "_starts", "intervals", "size")

    def __init__(self, intervals: Iterable[Interval] = ()) -> None:
        pairs = _merged(sorted((_key(i.first, i.version), _key(i.last, i.version)) for i in intervals))
        self._firsts = [first for first, _ in pairs]
        self._lasts = [last for _, last in pairs]
        *self._starts, self.size = accumulate((last - first + 1 for first, last in pairs), initial=0)
        self.intervals: tuple[Interval, ...] = tuple(_interval(first, last) for first, last in pairs)

    @classmethod
    def of(cls, entries: Iterable[PrefixEntry]) -> Addresses:
        """What the entries name together. An exclude counts for its own entry only. ValueError as `parse`."""
        found: list[Interval] = []
        for entry in entries:
            hosts = cls(parse(entry.prefix)) - cls(map(span, entry.excludes))
            found += hosts.intervals
        return cls(found)

    def __len__(self) -> int:
        return self.size

    def at(self, position: int) -> str:
        """The address at a position from 0 to len - 1."""
        if not 0 <= position < self.size:
            raise IndexError(f"{position} is not a position among {self.size} addresses")
        index = bisect_right(self._starts, position) - 1
        key = self._firsts[index] + position - self._starts[index]
        return inet_ntoa(key.to_bytes(4, "big")) if key < _SIX else written(key - _SIX, 6)

    def position(self, text: str) -> int | None:
        """Where an address is; None when it is not in the set, or no address."""
        try:
            if ":" in text:
                key = _SIX + int.from_bytes(inet_pton(AF_INET6, text), "big")
            else:
                key = int.from_bytes(inet_pton(AF_INET, text), "big")
        except (OSError, ValueError):
            return None
        index = bisect_right(self._firsts, key) - 1
        if index < 0 or key > self._lasts[index]:
            return None
        return self._starts[index] + key - self._firsts[index]

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and self.position(text) is not None

    def __iter__(self) -> Iterator[str]:
        return map(self.at, range(self.size))

    def __or__(self, other: Addresses) -> Addresses:
        return Addresses((*self.intervals, *other.intervals))

    def __sub__(self, other: Addresses) -> Addresses:
        left: list[Interval] = []
        for first, last in zip(self._firsts, self._lasts, strict=True):
            at = max(bisect_right(other._firsts, first) - 1, 0)
            while at < len(other._firsts) and other._firsts[at] <= last and first <= last:
                if other._firsts[at] > first:
                    left.append(_interval(first, other._firsts[at] - 1))
                first = max(first, other._lasts[at] + 1)
                at += 1
            if first <= last:
                left.append(_interval(first, last))
        return Addresses(left)

    @property
    def digest(self) -> str:
        """Names the set: another set has another one."""
        return hashlib.sha256(str(self).encode()).hexdigest()[:32]

    def __str__(self) -> str:
        return ",".join(map(str, self.intervals))

    def __repr__(self) -> str:
        return f"Addresses({self})"

    def __eq__(self, other: object) -> bool:
        return self.intervals == other.intervals if isinstance(other, Addresses) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.intervals)


def parse(text: str) -> tuple[Interval, ...]:
    """What of `10.1.0.0/24`, `10.1.0.5-10.1.0.9` or one address is probed. ValueError says what would be right."""
    whole = span(text)
    hosts = _hosts(whole) if "/" in text else whole
    if hosts.size > MAX_HOSTS:
        raise ValueError(
            f"has {_counted(hosts.size)} hosts, and {MAX_HOSTS} is the most: "
            f"name prefixes of /{32 - 20} or longer (/{128 - 20} or longer for IPv6), or the addresses that are in use"
        )
    for unfit, why in _UNFIT:
        if hosts.overlaps(unfit):
            raise ValueError(f"holds {why}: only addresses of single devices can be probed")
    return (hosts,)


def span(text: str) -> Interval:
    """All addresses of a prefix, a range or a single address. ValueError says what would be right."""
    if "%" in text:
        raise ValueError("has a zone (%…), which means another network on each machine: leave it out")
    first, dash, last = text.partition("-")
    if dash:
        return _range(first, last)
    if "/" in text:
        return _prefix(text)
    number, version = _address(text)
    return Interval(number, number, version)


def written(number: int, version: Version) -> str:
    """An address as text, in the one usual form (RFC 5952)."""
    if version == 4:
        return inet_ntoa(number.to_bytes(4, "big"))
    if number < _FOURS:  # which inet_ntop would end with a dotted quad
        return str(ipaddress.IPv6Address(number))
    return inet_ntop(AF_INET6, number.to_bytes(16, "big"))


def _hosts(whole: Interval) -> Interval:
    if whole.size <= 2:  # /31 (RFC 3021), /127 (RFC 6164) and single addresses have no others than hosts
        return whole
    return Interval(whole.first + 1, whole.last - (whole.version == 4), whole.version)


def _prefix(text: str) -> Interval:
    address, _, length = text.partition("/")
    first, version = _address(address)
    bits = 32 if version == 4 else 128
    if not (length.isascii() and length.isdigit() and len(length) <= 3 and int(length) <= bits):
        raise ValueError(f"must end with a length from /0 to /{bits}, as {_EXAMPLES[version]}")
    rest = (1 << (bits - int(length))) - 1
    if first & rest:
        whole = f"{written(first & ~rest, version)}/{int(length)}"
        raise ValueError(
            f"has bits set after the first {int(length)}: "
            f"write {whole} for the whole prefix, or {written(first, version)} for that one address"
        )
    return Interval(first, first | rest, version)


def _range(left: str, right: str) -> Interval:
    (first, version), (last, other) = _address(left), _address(right)
    if version != other:
        raise ValueError("must go from one IPv4 address to another, or from one IPv6 address to another")
    if last < first:
        raise ValueError(f"ends before it begins: write {written(last, version)}-{written(first, version)}")
    return Interval(first, last, version)


def _address(text: str) -> tuple[int, Version]:
    """By the system's own reader: an object may have thousands of them, and somebody waits for the answer."""
    version: Version = 6 if ":" in text else 4
    try:
        number = int.from_bytes(inet_pton(AF_INET6 if version == 6 else AF_INET, text), "big")
    except (OSError, ValueError):
        listed = ", ".join((*_EXAMPLES.values(), "10.1.0.5-10.1.0.9 or one address as 10.1.0.5"))
        raise ValueError(f"is not an address, a prefix or a range: write it as {listed}") from None
    if version == 6 and number >> 32 == 0xFFFF:
        raise ValueError(f"is an IPv4 address in the form of IPv6: write {written(number & (_FOURS - 1), 4)}")
    return number, version


def _counted(size: int) -> str:
    return str(size) if size < 10**12 else f"more than 2^{size.bit_length() - 1}"


def _key(number: int, version: Version) -> int:
    """One line of numbers for both families, with a gap between them."""
    return number if version == 4 else _SIX + number


def _interval(first: int, last: int) -> Interval:
    return Interval(first, last, 4) if first < _SIX else Interval(first - _SIX, last - _SIX, 6)


def _merged(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted pairs with those that touch made one."""
    merged: list[tuple[int, int]] = []
    for first, last in pairs:
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


_SIX = 1 << 128
_FOURS = 1 << 32
_EXAMPLES: dict[int, str] = {4: "10.1.0.0/24", 6: "2001:db8::/112"}
_UNFIT = (
    (span("0.0.0.0/8"), "addresses of 0.0.0.0/8, which mean no device"),
    (span("224.0.0.0/4"), "multicast addresses (224.0.0.0/4)"),
    (span("255.255.255.255"), "the broadcast address 255.255.255.255"),
    (span("::"), "the unspecified address ::"),
    (span("fe80::/10"), "link-local addresses (fe80::/10), which mean another device on each link"),
    (span("ff00::/8"), "multicast addresses (ff00::/8)"),
)
