"""Which packets a sweep sends for a rule's connection profiles: one probe an endpoint; for SNMP, one a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from trimtab.systems.discovery.findings import Login
from trimtab.systems.discovery.kinds import TargetConnectionProfileSpec
from trimtab.systems.discovery.settings import Connection
from trimtab.systems.discovery.sweep import Probe

Question = Callable[[Login, TargetConnectionProfileSpec], tuple[bytes, Callable[[bytes], bool]]]
"""What SNMP asks first with a login, and whether a datagram answers that."""


class Asked(msgspec.Struct, frozen=True):
    """A probe, and what an answer to it opens: connections by their place in the rule, each with the place of the login
    that the probe carried; -1 where it carried none."""

    probe: Probe
    opens: tuple[tuple[int, int], ...]


def asked(connections: Sequence[Connection], question: Question) -> tuple[Asked, ...]:
    """One probe for each endpoint, as patient as the most patient profile. A community is part of the question, so each
    has a probe of its own; SNMPv3 is asked for its engine, which needs no credential."""
    found: dict[tuple[str, int, str], Asked] = {}
    for place, connection in enumerate(connections):
        spec = connection.spec
        if spec.protocol != "snmp":
            _add(found, ("tcp", spec.used_port, ""), _probe(spec), place, -1)
            continue
        for number, login in enumerate(connection.logins):
            payload, accepts = question(login, spec)
            probe = msgspec.structs.replace(_probe(spec), payload=payload, accepts=accepts)
            version = spec.spoken_snmp(login.values)
            if version == "v3":
                _add(found, ("udp", spec.used_port, "v3"), probe, place, -1)
            else:
                _add(found, ("udp", spec.used_port, f"{version} {login.secret}"), probe, place, number)
    return tuple(found.values())


def is_community(connection: Connection) -> bool:
    """Whether it only asks by communities, which no device counts against us."""
    spec = connection.spec
    return spec.protocol == "snmp" and all(spec.spoken_snmp(login.values) != "v3" for login in connection.logins)


def _probe(spec: TargetConnectionProfileSpec) -> Probe:
    return Probe(
        transport="udp" if spec.protocol == "snmp" else "tcp",
        port=spec.used_port,
        timeout=spec.probe_timeout.seconds,
        tries=spec.probe_retries + 1,
    )


def _add(
    found: dict[tuple[str, int, str], Asked], key: tuple[str, int, str], probe: Probe, place: int, login: int
) -> None:
    before = found.get(key, Asked(probe, ()))
    patient = msgspec.structs.replace(
        before.probe, timeout=max(before.probe.timeout, probe.timeout), tries=max(before.probe.tries, probe.tries)
    )
    opens = before.opens if (place, login) in before.opens else (*before.opens, (place, login))
    found[key] = Asked(patient, opens)
