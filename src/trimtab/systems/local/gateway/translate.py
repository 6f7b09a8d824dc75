"""The heart: from the objects as they are to all that Envoy is told. Pure; the same world gives the same bytes.

A VirtualService that is not understood, or that Envoy refused, is left out as a whole, and what it last said that was good
stands in for it (`held`): half of what somebody wrote is never in force, and the others do not suffer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.systems.local.gateway import clusters, listeners, names
from trimtab.systems.local.gateway.istio.destinations import Policy, Rule, rule
from trimtab.systems.local.gateway.istio.matching import Entry
from trimtab.systems.local.gateway.istio.policies import ATTEMPTS, RETRY_ON, retry
from trimtab.systems.local.gateway.istio.reading import Fields, Problem
from trimtab.systems.local.gateway.names import INGRESS, MESH, Key
from trimtab.systems.local.gateway.virtual_services import Places, Reading
from trimtab.systems.local.gateway.world import World, is_headless, key_of, oldest_first

Document = dict[str, Any]


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """All that Envoy is told, by name; and what must be told to users."""

    listeners: dict[str, Document]
    clusters: dict[str, Document]
    routes: dict[str, Document]
    """The tables."""
    readers: dict[str, tuple[str, ...]]
    """The listeners that go by a table: Envoy reads none that has no such listener."""
    problems: dict[Key, tuple[Problem, ...]]
    """Of VirtualServices."""
    rule_problems: dict[Key, tuple[Problem, ...]]
    carriers: dict[Key, tuple[str, ...]]
    """The listeners that a VirtualService has a part in."""


def translate(
    world: World,
    held: Mapping[Key, Document] | None = None,
    refused: Mapping[Key, str] | None = None,
    refused_rules: Mapping[Key, str] | None = None,
    memory: Memory | None = None,
) -> Config:
    """`held` are the last good specs of VirtualServices; `refused` are those that Envoy did not take, with its words. A
    `memory` saves reading again what has not changed; it changes nothing else."""
    rules, rule_problems = _rules(world, refused_rules or {})
    memory = memory or Memory()
    memory.at(Places(world.ports, rules))
    made = memory.clusters(world, rules)
    readings, judged = _readings(world, memory, held or {}, refused or {})
    notes: dict[Key, list[Problem]] = {key: [] for key in judged}
    told: dict[str, Document] = {}
    hosts: list[Document] = []
    carriers: dict[Key, list[str]] = {reading.key: [] for reading in readings}
    by_host = _ByHost(readings)
    for service in world.services:
        key = key_of(service)
        address = world.addresses.get(key)
        if address is None or is_headless(service):
            continue
        reading = by_host.of(key, notes)
        for port in world.ports[key]:
            name, entry = names.listener(key, port.number), Entry(port.number)
            cluster = names.cluster(key, port.number)
            streams = (reading.tcp(entry) if reading else []) or [(cluster, 1)]
            told[name] = memory.listener(name, address, world.heard_at(port.number), port.protocol, tuple(streams))
            if reading is not None:
                carriers[reading.key].append(name)
            if port.protocol == "tcp":
                continue
            requests = reading.http(entry) if reading is not None and reading.has_http else memory.plain(cluster)
            hosts.append({"name": name, "domains": [name], "routes": requests})
    routed = {MESH: listeners.by_entry(MESH, hosts)}
    readers = {MESH: tuple(str(host["name"]) for host in hosts), INGRESS: (INGRESS,)}
    if world.ingress:
        told[INGRESS] = listeners.http(INGRESS, "127.0.0.1", world.ingress, INGRESS)
        routed[INGRESS] = listeners.by_host(INGRESS, _ingress(readings, world, carriers, notes))
    return Config(
        listeners=told,
        clusters=made,
        routes=routed,
        readers=readers,
        problems={key: (*judged[key].problems, *_said(key, refused), *noted) for key, noted in notes.items()},
        rule_problems=rule_problems,
        carriers={key: tuple(found) for key, found in carriers.items()},
    )


def _rules(world: World, refused: Mapping[Key, str]) -> tuple[dict[Key, Rule], dict[Key, tuple[Problem, ...]]]:
    """The DestinationRule of each Service: the oldest one, if it is understood."""
    found: dict[Key, Rule] = {}
    problems: dict[Key, tuple[Problem, ...]] = {}
    for each in oldest_first(world.destination_rules):
        noted: list[Problem] = []
        fields = Fields(each.spec if isinstance(each.spec, dict) else {}, "spec", noted)
        read = rule(fields)
        if key_of(each) in refused:
            noted.append(Problem("", f"Envoy refused it: {refused[key_of(each)]}"))
        service = names.meant(read.host, each.namespace)
        if service is None:
            fields.refuse(f"{read.host[:80]!r} names no Service", "host")
        elif service in found:
            fields.refuse(f"the Service {service} has an older DestinationRule", "host")
        elif not any(problem.error for problem in noted):
            found[service] = read
        problems[key_of(each)] = tuple(noted)
    return found, problems


def _clusters(world: World, rules: Mapping[Key, Rule]) -> dict[str, Document]:
    made: dict[str, Document] = {}
    for service in world.services:
        key = key_of(service)
        known = rules.get(key)
        for port in world.ports[key]:
            parts: dict[str, tuple[dict[str, str], Policy]] = {"": ({}, known.policy if known else Policy())}
            parts.update(known.subsets if known else {})
            for subset, (labels, policy) in parts.items():
                name = names.cluster(key, port.number, subset)
                settings = policy.at(port.number)
                workload = world.workload(service, labels)
                endpoints = world.endpoints(service, port, labels)
                made[name] = clusters.cluster(key, port, subset, workload, settings, endpoints)
    return made


class Memory:
    """What was made before. VirtualServices as they were read: a reading is good as long as its spec, and all that it may
    name, is the same. And documents: the same ones are given for the same world, so that comparing them costs nothing."""

    def __init__(self) -> None:
        self._places: Places | None = None
        self._readings: dict[tuple[Key, bool], tuple[Any, Reading]] = {}
        self._clusters: tuple[object, Mapping[Key, Rule], dict[str, Document]] = (None, {}, {})
        self._listeners: dict[str, tuple[tuple[Any, ...], Document]] = {}
        self._plain: dict[str, list[Document]] = {}

    def at(self, places: Places) -> None:
        if places != self._places:
            self._places = places
            for known in (self._readings, self._listeners, self._plain):
                known.clear()

    def clusters(self, world: World, rules: Mapping[Key, Rule]) -> dict[str, Document]:
        ground, known, made = self._clusters
        if ground is not world.ports or known != rules:  # see `World.routed`
            made = _clusters(world, rules)
            self._clusters = (world.ports, rules, made)
        return made

    def listener(self, name: str, *told: Any) -> Document:
        known = self._listeners.get(name)
        if known is None or known[0] != told:
            known = self._listeners[name] = (told, _listener(name, *told))
        return known[1]

    def plain(self, cluster: str) -> list[Document]:
        """Routes of a Service that no VirtualService speaks of."""
        if cluster not in self._plain:
            self._plain[cluster] = [_plain(cluster)]
        return self._plain[cluster]

    def only(self, keys: set[Key]) -> None:
        """Forget the readings of others."""
        for known in [known for known in self._readings if known[0] not in keys]:
            del self._readings[known]

    def reading(self, key: Key, spec: Any, held: bool = False) -> Reading:
        known = self._readings.get((key, held))
        if known is None or known[0] != spec:
            assert self._places is not None  # noqa: S101 - `at` comes first
            known = self._readings[key, held] = (spec, Reading(key, spec, self._places))
        return known[1]


def _readings(
    world: World, memory: Memory, held: Mapping[Key, Document], refused: Mapping[Key, str]
) -> tuple[list[Reading], dict[Key, Reading]]:
    """Those in force, the oldest first; and all as they are written."""
    found: list[Reading] = []
    judged: dict[Key, Reading] = {}
    memory.only({key_of(each) for each in world.virtual_services})
    for each in oldest_first(world.virtual_services):
        key = key_of(each)
        reading = judged[key] = memory.reading(key, each.spec)
        if reading.is_good and key not in refused:
            found.append(reading)
        elif key in held and (before := memory.reading(key, held[key], held=True)).is_good:
            found.append(before)
    return found, judged


def _said(key: Key, refused: Mapping[Key, str] | None) -> tuple[Problem, ...]:
    return (Problem("", f"Envoy refused it: {refused[key]}"),) if refused and key in refused else ()


class _ByHost:
    """VirtualServices of the mesh, by the hosts that they name."""

    def __init__(self, readings: list[Reading]) -> None:
        self._exact: dict[tuple[str, str], list[Reading]] = {}
        self._wide: list[tuple[str, Reading]] = []
        for reading in readings:
            for host in reading.hosts if reading.in_mesh else ():
                service = names.meant(host, reading.key.namespace)
                if service is not None:
                    self._exact.setdefault(service, []).append(reading)
                elif host.startswith("*"):
                    self._wide.append((host, reading))

    def of(self, service: Key, problems: dict[Key, list[Problem]]) -> Reading | None:
        """The one that names a Service most closely, of those the oldest."""
        found = list(dict.fromkeys(self._exact.get(service, ())))
        if not found:
            fitting = [(names.covers(host, names.names_of(service)[1:]), each) for host, each in self._wide]
            closest = max((closeness for closeness, _ in fitting), default=0)
            found = [each for closeness, each in fitting if closeness == closest and closest]
        for other in found[1:]:
            text = f"the Service {service} is routed by the older VirtualService {found[0].key}"
            _note(problems[other.key], Problem("spec.hosts", text, error=False))
        return found[0] if found else None


def _ingress(
    readings: list[Reading], world: World, carriers: dict[Key, list[str]], problems: dict[Key, list[Problem]]
) -> list[Document]:
    """One virtual host for each VirtualService. A domain belongs to whom it came first."""
    taken: dict[str, Key] = {}
    hosts = []
    for reading in readings:
        if not reading.has_http:
            continue
        domains = []
        for host in reading.hosts:
            service = names.meant(host, reading.key.namespace)
            others = names.names_of(service) if service in world.service and service is not None else ()
            for domain in dict.fromkeys((host, *others)):
                owner = taken.setdefault(domain, reading.key)
                if owner == reading.key:
                    domains.append(domain)
                elif domain == host:
                    text = f"at the ingress {host} belongs to the older VirtualService {owner}"
                    _note(problems[reading.key], Problem("spec.hosts", text, error=False))
        if domains:
            hosts.append({"name": str(reading.key), "domains": list(dict.fromkeys(domains)), "routes": reading.ingress})
            carriers[reading.key].append(INGRESS)
    return hosts


def _note(problems: list[Problem], problem: Problem) -> None:
    if problem not in problems:
        problems.append(problem)


def _listener(name: str, address: str, port: int, protocol: str, streams: tuple[tuple[str, int], ...]) -> Document:
    if protocol == "tcp":
        return listeners.tcp(name, address, port, streams)
    if protocol == "auto":
        return listeners.sniffed(name, address, port, MESH, streams)
    return listeners.http(name, address, port, MESH)


def _plain(cluster: str) -> Document:
    return {
        "match": {"prefix": "/"},
        "route": {"cluster": cluster, "timeout": "0s", "retry_policy": retry(ATTEMPTS, RETRY_ON, [], "")},
    }
