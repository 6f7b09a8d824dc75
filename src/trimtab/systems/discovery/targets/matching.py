"""Which Target each device is. Pure.

By evidence first, strongest kind first; then what a crash left between the creation of a Target and its status; then
by address, where nothing speaks against it. What looks like another device at a known address is judged only after
every other device has found its Target, and only when the sweep is complete: the old one may have moved.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from trimtab.systems.discovery.kinds import Evidence, Target
from trimtab.systems.discovery.kinds.target import IDENTITY_LABEL
from trimtab.systems.discovery.targets.devices import Device
from trimtab.systems.discovery.targets.identity import KINDS, Verdict, cleaned, compare, deciding, strongest

MAX_TRIES = 64
"""Targets of one piece of evidence that a device is compared with."""


class How(enum.Enum):
    SAME = "same"
    """By evidence."""
    UNFINISHED = "unfinished"
    """By the label of a Target that has no identity yet."""
    ADDRESS = "address"
    """At the same address, with no evidence in common."""
    REKEYED = "rekeyed"
    """At the same address, by the strongest evidence; a weaker one has changed. Or the key is the strongest, and somebody
    accepts another one at this address."""
    REPLACED = "replaced"
    """Other hardware at the same address with the same host name."""
    RENAMED = "renamed"
    """At the same address, and known by nothing but its host name, which has changed."""
    NEW = "new"
    WAIT = "wait"
    """One of the last three before NEW, perhaps: the end of the sweep will tell."""


class Match(msgspec.Struct, frozen=True):
    device: Device
    target: Target | None
    how: How


def match(
    devices: Sequence[Device],
    targets: Iterable[Target],
    *,
    complete: bool,
    repinned: Callable[[str], bool] = lambda address: False,
) -> tuple[Match, ...]:
    """One Match for each device, in their order. No two have the same Target."""
    known = _Known(targets)
    found: dict[int, Match] = {}
    for how, candidates in _rounds(known, repinned):
        for place, device in enumerate(devices):
            if place in found:
                continue
            target = next((t for t in candidates(device) if t.name not in known.claimed), None)
            if target is not None:
                known.claimed.add(target.name)
                found[place] = Match(device, target, how if complete or how not in _JUDGED else How.WAIT)
    return tuple(found.get(place) or Match(device, None, How.NEW) for place, device in enumerate(devices))


def identity_of(target: Target) -> Evidence:
    return (target.status.identity if target.status else None) or Evidence()


def addresses_of(target: Target) -> tuple[str, ...]:
    """Where it was last known to answer; its own address first."""
    others = (target.status.addresses if target.status else None) or ()
    return tuple(dict.fromkeys((target.spec.address, *others)))


_JUDGED = (How.REKEYED, How.REPLACED, How.RENAMED)

Candidates = Callable[[Device], Iterator[Target]]


class _Known:
    """Targets by what they are found by."""

    def __init__(self, targets: Iterable[Target]) -> None:
        self.claimed: set[str] = set()
        self.evidence: dict[tuple[str, str], list[Target]] = {}
        self.labels: dict[str, list[Target]] = {}
        self.addresses: dict[str, list[Target]] = {}
        for target in sorted(targets, key=lambda target: target.name):
            identity = identity_of(target)
            for kind in KINDS:
                value = getattr(identity, kind)
                if value:
                    self.evidence.setdefault((kind, value), []).append(target)
            if not strongest(identity):
                self.labels.setdefault((target.metadata.labels or {}).get(IDENTITY_LABEL, ""), []).append(target)
            for address in addresses_of(target):
                self.addresses.setdefault(address, []).append(target)

    def by_evidence(self, device: Device, kind: str) -> list[Target]:
        """Those that are this device, as this kind of evidence decides."""
        sharing = self.evidence.get((kind, getattr(device.evidence, kind) or ""), ())[:MAX_TRIES]
        return [
            target
            for target in sharing
            if deciding(device.evidence, identity_of(target)) == kind
            and compare(device.evidence, identity_of(target)) is Verdict.SAME
        ]

    def at_address(self, device: Device) -> list[Target]:
        """Those that were last known at one of its addresses, first where it is the Target's own."""
        found = {t.name: t for address in device.addresses for t in self.addresses.get(address, ())}
        return sorted(found.values(), key=lambda target: target.spec.address not in device.addresses)


def _rounds(known: _Known, repinned: Callable[[str], bool]) -> Iterator[tuple[How, Candidates]]:
    """In each, every device that has no Target yet may claim one."""
    for kind in KINDS:
        yield How.SAME, _at_home(known, kind)
        yield How.SAME, _anywhere(known, kind)
    yield How.UNFINISHED, lambda device: iter(known.labels.get(device.key, ()))
    for how, fits in ((How.ADDRESS, _nothing_against), (How.REKEYED, _rekeyed), (How.REPLACED, _replaced)):
        yield how, _at_address(known, fits)
    yield How.REKEYED, _at_address(known, lambda device, target: _repinned(device, target, repinned))
    yield How.RENAMED, _at_address(known, _renamed)


def _at_home(known: _Known, kind: str) -> Candidates:
    def candidates(device: Device) -> Iterator[Target]:
        here = set(device.addresses)
        return (t for t in known.by_evidence(device, kind) if not here.isdisjoint(addresses_of(t)))

    return candidates


def _anywhere(known: _Known, kind: str) -> Candidates:
    return lambda device: iter(known.by_evidence(device, kind))


def _at_address(known: _Known, fits: Callable[[Device, Target], bool]) -> Candidates:
    return lambda device: (target for target in known.at_address(device) if fits(device, target))


def _nothing_against(device: Device, target: Target) -> bool:
    return compare(device.evidence, identity_of(target)) is Verdict.UNKNOWN


def _rekeyed(device: Device, target: Target) -> bool:
    return compare(device.evidence, identity_of(target)) is Verdict.CONFLICT


def _replaced(device: Device, target: Target) -> bool:
    if compare(device.evidence, identity_of(target)) is not Verdict.DIFFERENT:
        return False
    info = (target.status.discovery_info if target.status else None) or None
    name = cleaned(Evidence(hostname=info.hostname)).hostname if info else None
    return bool(name) and name == device.evidence.hostname


def _repinned(device: Device, target: Target, accepted: Callable[[str], bool]) -> bool:
    if deciding(device.evidence, identity_of(target)) not in ("ssh_host_key", "tls_key"):
        return False
    return any(accepted(address) for address in device.addresses if address in addresses_of(target))


def _renamed(device: Device, target: Target) -> bool:
    known = identity_of(target)
    return deciding(device.evidence, known) == "hostname" and device.evidence.hostname != known.hostname
