"""From findings, one an address, to devices, one an identity with all its addresses.

The result depends on the findings alone, not on their order. Findings meet where they share a piece of evidence,
strongest kind first, and become one device unless their evidence says otherwise. Devices in conflict stay apart, each
naming the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from socket import AF_INET, AF_INET6, inet_pton

import msgspec

from trimtab.systems.discovery.findings import Identified
from trimtab.systems.discovery.kinds import Evidence
from trimtab.systems.discovery.targets.identity import KINDS, Verdict, cleaned, compare, key, merged, strongest

MAX_TRIES = 64
"""Devices of one piece of evidence that a finding is compared with. More than so many clones are clones all the same."""


class Finding(msgspec.Struct, frozen=True):
    """A device that answered at one address: by which profile, with which Secret."""

    address: str
    profile: str
    secret: str
    identified: Identified


class Device(msgspec.Struct, frozen=True):
    """One device. `findings` and `addresses` are in the order of addresses."""

    key: str
    evidence: Evidence
    primary: Finding
    findings: tuple[Finding, ...]
    conflicts: tuple[str, ...] = ()
    """Addresses of devices that claim the same identity, one of each."""

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(finding.address for finding in self.findings)


def group(findings: Iterable[Finding], order: Sequence[str] = ()) -> tuple[Device, ...]:
    """The devices, by lowest address. `order` is that of the rule's profiles, for the choice of the primary finding."""
    rank = {name: place for place, name in reversed(list(enumerate(order)))}
    groups = _joined([_Group(finding) for finding in _one_an_address(findings, rank)])
    conflicts = _conflicts(groups)
    found = (_device(each, conflicts.get(place, ()), rank) for place, each in enumerate(groups))
    return tuple(sorted(found, key=lambda device: by_address(device.addresses[0])))


def by_address(text: str) -> tuple[int, bytes, str]:
    """Sorts addresses as numbers, IPv4 first, and names after them."""
    try:
        if ":" in text:
            return (6, inet_pton(AF_INET6, text), text)
        return (4, inet_pton(AF_INET, text), text)
    except (OSError, ValueError):
        return (9, b"", text)


class _Group:
    """Findings that are one device so far."""

    def __init__(self, finding: Finding) -> None:
        self.findings = [finding]
        self.evidence = cleaned(finding.identified.evidence)
        self.gone = False

    def take(self, other: _Group) -> None:
        self.findings += other.findings
        self.evidence = merged(other.evidence, self.evidence)
        other.gone = True

    @property
    def lowest(self) -> str:
        return min((finding.address for finding in self.findings), key=by_address)


def _one_an_address(findings: Iterable[Finding], rank: dict[str, int]) -> list[Finding]:
    ordered = sorted(findings, key=lambda finding: (_preference(finding, rank), msgspec.msgpack.encode(finding)))
    chosen: dict[str, Finding] = {}
    for finding in ordered:
        chosen.setdefault(finding.address, finding)
    return list(chosen.values())


def _preference(finding: Finding, rank: dict[str, int]) -> tuple[int, str, tuple[int, bytes, str]]:
    return (rank.get(finding.profile, len(rank)), finding.profile, by_address(finding.address))


def _joined(groups: list[_Group]) -> list[_Group]:
    equal: dict[Evidence, _Group] = {}
    for each in groups:
        known = equal.setdefault(each.evidence, each)
        if known is not each and strongest(each.evidence):
            known.take(each)
    groups = [each for each in groups if not each.gone]
    for kind in KINDS:
        shared: dict[str, list[_Group]] = {}
        for each in groups:
            value = getattr(each.evidence, kind)
            if value:
                _join(each, shared.setdefault(value, []))
        groups = [each for each in groups if not each.gone]
    return groups


def _join(one: _Group, present: list[_Group]) -> None:
    """Make it part of the first that it is, or one more of those that share this evidence."""
    for other in present[:MAX_TRIES]:
        if compare(other.evidence, one.evidence) is Verdict.SAME:
            other.take(one)
            return
    present.append(one)


def _conflicts(groups: Sequence[_Group]) -> dict[int, set[str]]:
    """By place in `groups`, the lowest addresses of those in conflict with it."""
    found: dict[int, set[str]] = {}
    for kind in KINDS:
        shared: dict[str, list[int]] = {}
        for place, each in enumerate(groups):
            value = getattr(each.evidence, kind)
            if value:
                shared.setdefault(value, []).append(place)
        for places in shared.values():
            for at, one in enumerate(places[:MAX_TRIES]):
                for other in places[at + 1 : MAX_TRIES]:
                    if compare(groups[one].evidence, groups[other].evidence) is Verdict.CONFLICT:
                        found.setdefault(one, set()).add(groups[other].lowest)
                        found.setdefault(other, set()).add(groups[one].lowest)
    return found


def _device(each: _Group, conflicts: Iterable[str], rank: dict[str, int]) -> Device:
    named = tuple(sorted(conflicts, key=by_address))
    findings = tuple(sorted(each.findings, key=lambda finding: by_address(finding.address)))
    return Device(
        key=key(each.evidence, findings[0].address, whole=bool(named)),
        evidence=each.evidence,
        primary=min(findings, key=lambda finding: _preference(finding, rank)),
        findings=findings,
        conflicts=named,
    )
