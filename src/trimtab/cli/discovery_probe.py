"""`trimtab discovery plan` and `run --dry-run`: what a sweep costs, and what answers it, from this machine.

A dry run sends the packets of a sweep and no more: it logs in nowhere and writes nothing. Whoever may not read the
Secrets still has one; SNMP is then asked by the engine discovery of version 3, which needs no community.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.cli.access import Access, Session, session
from trimtab.cli.bar import Bar
from trimtab.cli.codes import OK, Problem, run
from trimtab.cli.discovery_source import implementation_of, learn
from trimtab.cli.tables import Printer, shown
from trimtab.model.errors import StatusError
from trimtab.systems.discovery.findings import Login, Outcome
from trimtab.systems.discovery.kinds import DiscoveryRule, Plan, TargetConnectionProfile

if TYPE_CHECKING:
    from trimtab.systems.discovery.scope.probes import Asked
    from trimtab.systems.discovery.scope.sources import Scope
    from trimtab.systems.discovery.settings import Connection

SHOWN = 50
"""Open addresses, unless all are asked for."""


class Intended(msgspec.Struct, frozen=True):
    """What a sweep of the rule would be, right now."""

    rule: DiscoveryRule
    scope: Scope
    connections: tuple[Connection, ...]
    asked: tuple[Asked, ...]
    plan: Plan
    without_secrets: bool
    static: bool


def plan(access: Access, name: str, *, operators: Sequence[str] = ()) -> int:
    return run(_plan(access, name, operators))


def dry_run(access: Access, name: str, *, everything: bool, operators: Sequence[str] = ()) -> int:
    return run(_dry_run(access, name, everything, operators))


async def _plan(access: Access, name: str, operators: Sequence[str]) -> int:
    learn(operators)
    async with session(access) as server:
        intended = await _intended(server, name)
    _show_plan(intended)
    return OK


async def _dry_run(access: Access, name: str, everything: bool, operators: Sequence[str]) -> int:
    learn(operators)
    async with session(access) as server:
        intended = await _intended(server, name)
    _show_plan(intended)
    if intended.static or not intended.plan.probes:
        print("there is nothing to probe")
        return OK
    heard, poor = await _swept(intended)
    _show_entries(intended.scope, _strongest(heard))
    _show_open(intended, heard, everything)
    if poor:
        print(f"silence may mislead: {poor}")
    print("this was a dry run: nobody logged in, nothing was written")
    return OK


async def _intended(server: Session, name: str) -> Intended:
    from trimtab.systems.discovery.scope.plan import limits
    from trimtab.systems.discovery.scope.plan import plan as reckon
    from trimtab.systems.discovery.scope.sources import TooMany, resolved, system_resolver

    rule = await server.client.get(DiscoveryRule, name, server.namespace)
    implementation = implementation_of(rule)
    source: Any = await server.client.get(implementation.kind, rule.spec.rule_ref.name, rule.namespace)
    try:
        entries = implementation.entries(source)
        shared = limits()
    except ValueError as error:
        raise Problem(str(error)) from None
    try:
        scope = await resolved(entries, server.client, rule.namespace, system_resolver)
    except TooMany as error:
        raise Problem(f"discoveryrule/{name}: {error}") from None
    static = implementation.static(source) is not None
    connections, without = ((), False) if static else await _connections(server, rule)
    asked = _asked(connections)
    own = rule.spec.packets_per_second or shared.packets_per_second
    rate = min(own, shared.packets_per_second)
    reckoned = reckon(len(scope.addresses), [each.probe for each in asked], rate, shared.sockets)
    return Intended(rule, scope, connections, asked, reckoned, without, static)


async def _connections(server: Session, rule: DiscoveryRule) -> tuple[tuple[Connection, ...], bool]:
    """The rule's connection profiles; and whether they must do without Secrets."""
    from trimtab.systems.discovery.settings import Connection, lacks

    profile = rule.spec.discovery_profile
    if not profile:
        raise Problem(f"discoveryrule/{rule.name} has no spec.discoveryProfile, and its addresses are to be probed")
    logins = [
        await _login(server, rule.namespace, name) for name in (profile.credentials, *profile.fallback_credentials)
    ]
    known = [login for login in logins if login is not None]
    without, found = False, []
    for name in profile.connection_profiles:
        spec = (await server.client.get(TargetConnectionProfile, name, rule.namespace)).spec
        serving = tuple(login for login in known if not lacks(login.values, spec))
        if spec.protocol == "snmp" and not serving:
            without = True
            spec, serving = spec.replace(snmp_version="v3"), (Login("", {}),)
        found.append(Connection(name, spec, serving))
    return tuple(found), without


async def _login(server: Session, namespace: str, name: str) -> Login | None:
    """None when it is not there, or not for us."""
    from trimtab.runtime.credentials import CredentialError, Credentials, SecretRef

    try:
        values = await Credentials(server.client, cached=True).resolve_all(SecretRef(name, namespace))
    except CredentialError:
        return None
    except StatusError as error:
        if error.code != 403:
            raise
        return None
    return Login(name, values)


def _asked(connections: Sequence[Connection]) -> tuple[Asked, ...]:
    try:
        from trimtab.systems.discovery.identify.snmp import SnmpIdentifier
        from trimtab.systems.discovery.scope.probes import asked
        from trimtab.systems.discovery.vendors.choice import Vendors
    except ModuleNotFoundError as error:
        raise Problem(f'discovery needs {error.name}: pip install "trimtab[discovery]"') from None
    return asked(connections, SnmpIdentifier(Vendors(())).probe)


async def _swept(intended: Intended) -> tuple[dict[int, dict[int, Outcome]], str]:
    """What each address answered to each probe; and why silence means little, if so."""
    from trimtab.systems.discovery.scope.plan import limits
    from trimtab.systems.discovery.sweep import Job, Limits, Sweeper

    shared = limits()
    job = Job(
        addresses=intended.scope.addresses,
        probes=tuple(each.probe for each in intended.asked),
        seed=random.getrandbits(32),
        packets_per_second=intended.plan.packets_per_second,
    )
    heard: dict[int, dict[int, Outcome]] = {}
    limit = Limits(packets_per_second=shared.packets_per_second, sockets=shared.sockets)
    async with Sweeper(limit) as sweeper, sweeper.sweep(job) as sweep:
        with Bar(f"discoveryrule/{intended.rule.name}") as bar:
            async for batch in sweep:
                for answer in batch.answers:
                    heard.setdefault(answer.position, {})[answer.probe] = answer.outcome
                bar.show(batch.done, batch.total, "probing")
        return heard, sweep.quality.poor if sweep.quality else ""


def _strongest(heard: Mapping[int, Mapping[int, Outcome]]) -> dict[int, Outcome]:
    return {position: max(answers.values(), key=_ORDER.index) for position, answers in heard.items()}


_ORDER = (Outcome.NOT_SENT, Outcome.UNREACHABLE, Outcome.REFUSED, Outcome.OPEN)
"""Of several answers of one address the last of these counts."""


def _show_plan(intended: Intended) -> None:
    reckoned, period = intended.plan, intended.rule.spec.period
    fits = reckoned.worst_case.seconds <= period.seconds
    worst = f"{reckoned.worst_case} ({'within' if fits else 'LONGER THAN'} the period, {period})"
    rows = (
        ("addresses", f"{reckoned.addresses}" + (", written unprobed" if intended.static else "")),
        ("packets", str(reckoned.probes)),
        ("packets per second", str(reckoned.packets_per_second)),
        ("sockets", str(reckoned.sockets)),
        ("worst case", worst),
        ("probes", ", ".join(_probe(each, intended.connections) for each in intended.asked) or "none"),
    )
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name.ljust(width)}   {value}")
    if intended.without_secrets:
        print("SNMP is asked without a community: its Secret cannot be read, or has none")
    for place in intended.scope.places:
        if place.problem:
            print(f"{shown(place.entry.name)}: {shown(place.problem)}")


def _probe(asked: Asked, connections: Sequence[Connection]) -> str:
    """As `gnmi tcp/57400`."""
    protocols = dict.fromkeys(connections[place].spec.protocol for place, _ in asked.opens)
    return f"{'+'.join(protocols)} {asked.probe.transport}/{asked.probe.port}"


def _show_entries(scope: Scope, outcomes: Mapping[int, Outcome]) -> None:
    answered = [(scope.addresses.at(position), outcome) for position, outcome in outcomes.items()]
    rows = []
    for place in scope.places:
        inside = [outcome for address, outcome in answered if address in place.addresses]
        counts = [inside.count(outcome) for outcome in reversed(_ORDER)]
        size = len(place.addresses)
        rows.append([shown(place.entry.name), *map(str, (size, *counts, size - len(inside)))])
    Printer(("entry", "addresses", "open", "refused", "unreachable", "not sent", "silent")).add(rows)


def _show_open(intended: Intended, heard: Mapping[int, Mapping[int, Outcome]], everything: bool) -> None:
    found = sorted(position for position, answers in heard.items() if Outcome.OPEN in answers.values())
    if not found:
        return
    listed = found if everything else found[:SHOWN]
    rows = [[intended.scope.addresses.at(position), _answered(intended, heard[position])] for position in listed]
    Printer(("address", "answers")).add(rows)
    if len(found) > len(listed):
        print(f"and {len(found) - len(listed)} more: --all shows them")


def _answered(intended: Intended, answers: Mapping[int, Outcome]) -> str:
    opened: Iterable[int] = sorted(probe for probe, outcome in answers.items() if outcome is Outcome.OPEN)
    return ", ".join(dict.fromkeys(_probe(intended.asked[probe], intended.connections) for probe in opened))
