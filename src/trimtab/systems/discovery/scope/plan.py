"""What a sweep costs at most, reckoned before it begins. Pure, but for `limits`, which reads the environment.

Every address is probed by every probe, and in the worst case none answers: then each probe is sent `tries` times and
waits `timeout` each time. Packets wait for the shared rate; TCP probes wait for a free socket besides, UDP has one
socket for all. So a sweep takes

    max(packets / rate, seconds of TCP waiting / sockets) + the longest that one probe may take

This is for a rule that has the limits for itself: rules that sweep at the same time share them, and take longer.
Admission refuses a rule whose worst case is longer than its period. What comes after the probe (logging in) is not in
it: how many devices will answer is not known before.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from trimtab.model.duration import Duration
from trimtab.systems.discovery.kinds import DiscoveryRuleSpec, Plan, TargetConnectionProfileSpec

Transport = Literal["tcp", "udp"]

PACKETS_VARIABLE = "TRIMTAB_DISCOVERY_PACKETS_PER_SECOND"
SOCKETS_VARIABLE = "TRIMTAB_DISCOVERY_SOCKETS"


class Probing(Protocol):
    """What a plan must know of a probe. `timeout` is in seconds, for each of the `tries`."""

    @property
    def transport(self) -> Transport: ...
    @property
    def timeout(self) -> float: ...
    @property
    def tries(self) -> int: ...


class Cost(msgspec.Struct, frozen=True):
    """A probe, as far as it costs."""

    transport: Transport
    timeout: float
    tries: int = 1


class Shared(msgspec.Struct, frozen=True):
    """What all rules of this process have together."""

    packets_per_second: int = 20_000
    sockets: int = 8_192


def plan(addresses: int, probes: Sequence[Probing], packets_per_second: int, sockets: int) -> Plan:
    """For so many addresses, at the lower of the shared rate and the rule's own."""
    packets = addresses * sum(probe.tries for probe in probes)
    waiting = addresses * sum(probe.timeout * probe.tries for probe in probes if probe.transport == "tcp")
    connections = addresses * sum(probe.transport == "tcp" for probe in probes)
    datagrams = any(probe.transport == "udp" for probe in probes)
    longest = max((probe.timeout * probe.tries for probe in probes), default=0.0)
    worst = max(packets / packets_per_second, waiting / sockets) + longest if packets else 0.0
    return Plan(
        addresses=addresses,
        probes=packets,
        packets_per_second=packets_per_second,
        sockets=min(connections, sockets) + bool(datagrams and addresses),
        worst_case=Duration.of(round(worst, 3)),
    )


def rule_plan(
    spec: DiscoveryRuleSpec, addresses: int, profiles: Iterable[TargetConnectionProfileSpec], shared: Shared
) -> Plan:
    """For a rule that asks so many addresses by these profiles."""
    own = spec.packets_per_second or shared.packets_per_second
    logins = 1 + len(spec.discovery_profile.fallback_credentials) if spec.discovery_profile else 1
    return plan(addresses, costs(profiles, logins), min(own, shared.packets_per_second), shared.sockets)


def costs(profiles: Iterable[TargetConnectionProfileSpec], logins: int = 1) -> tuple[Cost, ...]:
    """The probes that connection profiles need: one for each port, as patient as the most patient profile.

    SNMP asks in the first packet already, so each version and each login has a probe of its own.
    """
    found: dict[tuple[str, int, int], Cost] = {}
    for profile in profiles:
        timeout, tries = profile.probe_timeout.seconds, profile.probe_retries + 1
        snmp = profile.protocol == "snmp"
        asked = f"snmp {profile.snmp_version or ''}" if snmp else "tcp"
        for login in range(logins if snmp else 1):
            key = (asked, profile.used_port, login)
            before = found.get(key, Cost("udp" if snmp else "tcp", 0.0, 0))
            found[key] = Cost(before.transport, max(before.timeout, timeout), max(before.tries, tries))
    return tuple(found.values())


def limits(environment: Mapping[str, str] = os.environ) -> Shared:
    """What the environment allows all rules together. ValueError when it is malformed."""
    usual = Shared()
    return Shared(
        packets_per_second=_number(environment, PACKETS_VARIABLE, usual.packets_per_second),
        sockets=_number(environment, SOCKETS_VARIABLE, usual.sockets),
    )


def _number(environment: Mapping[str, str], name: str, usual: int) -> int:
    text = environment.get(name, "")
    if not text:
        return usual
    if not (text.isascii() and text.isdigit() and len(text) <= 7 and 1 <= int(text) <= 1_000_000):
        raise ValueError(f"{name} is {text[:32]!r}: it must be a whole number from 1 to 1000000")
    return int(text)
