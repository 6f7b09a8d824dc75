"""The VirtualService of a CanaryDeployment: one that it owns, or one of someone else that it drives.

Both get the same traffic by the same rules. In one that is driven only routes to our Service change. An annotation keeps
those routes as their author wrote them, where that cannot be told from the driven ones; `released` puts them back. A
route without the canary in it is as its author wrote it: after `kubectl apply` of the author's own file the next round
starts from that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UnsetType

from trimtab.systems.delivery.kinds.canary import CanaryDeployment
from trimtab.systems.delivery.kinds.fields import CANARY, STABLE
from trimtab.systems.delivery.objects import routes
from trimtab.systems.delivery.objects.matching import all_of
from trimtab.systems.delivery.objects.names import Hosts, document, hosts_of, name_of
from trimtab.systems.delivery.objects.routes import HTTP, MATCHED, SECTIONS, TCP, Traffic

API_VERSION = "networking.istio.io/v1"
MEMORY = "delivery.trimtab.dev/driven-"
"""With the name of the CanaryDeployment: an annotation of a VirtualService that is driven."""
MEMORY_LIMIT = 64 * 1024
"""Bytes of it. What is larger is not remembered: then `released` gives the routes without the canary."""
_NOT_HTTP = ("tcp", "tls", "https", "mongo", "mysql", "redis")

Document = Mapping[str, Any]

__all__ = [
    "Traffic",
    "destination_rules",
    "driven",
    "is_reference",
    "owned_virtual_service",
    "problems",
    "released",
    "weight_of",
]


class _Memory(msgspec.Struct, frozen=True, omit_defaults=True):
    """`applied` is a digest of the routes that were written; `routes` are the originals, by section."""

    applied: str = ""
    routes: tuple[tuple[str, dict[str, Any]], ...] = ()


def is_reference(canary: CanaryDeployment) -> bool:
    """Whether a VirtualService of someone else is driven."""
    return not isinstance(canary.spec.virtual_service.name, UnsetType)


def owned_virtual_service(canary: CanaryDeployment, traffic: Traffic) -> dict[str, Any]:
    given = canary.spec.virtual_service.spec
    spec = _default(canary) if isinstance(given, UnsetType) else given
    return document(canary, API_VERSION, "VirtualService", STABLE, _with(_without(spec, canary), canary, traffic))


def driven(found: Document, canary: CanaryDeployment, traffic: Traffic) -> dict[str, Any]:
    """The VirtualService, as it was read, with this traffic. Give it to `released` to have it back."""
    original = _without(_spec(found), canary, _memory(found, canary).routes)
    spec = _with(original, canary, traffic)
    kept = _to_remember(original, canary, traffic)
    memory = msgspec.json.encode(_Memory(applied_of(spec, canary), kept)).decode()
    if len(memory) > MEMORY_LIMIT:
        memory = msgspec.json.encode(_Memory(applied_of(spec, canary))).decode()
    metadata = dict(found.get("metadata") or {})
    metadata["annotations"] = {**(metadata.get("annotations") or {}), MEMORY + canary.name: memory}
    return {**found, "metadata": metadata, "spec": spec}


def released(found: Document, canary: CanaryDeployment) -> dict[str, Any]:
    """The VirtualService as its author wrote it: all that we have goes to stable."""
    spec = _without(_spec(found), canary, _memory(found, canary).routes)
    metadata = dict(found.get("metadata") or {})
    annotations = {n: v for n, v in (metadata.get("annotations") or {}).items() if n != MEMORY + canary.name}
    metadata.pop("annotations", None)
    if annotations:
        metadata["annotations"] = annotations
    return {**found, "metadata": metadata, "spec": spec} if "spec" in found else {**found, "metadata": metadata}


def applied_to(found: Document, canary: CanaryDeployment) -> str:
    """What was last written: equal to `applied_of` of what is wanted when nobody changed their mind."""
    return _memory(found, canary).applied


def applied_of(spec: Document, canary: CanaryDeployment) -> str:
    """A digest of our routes."""
    hosts = hosts_of(canary)
    ours = [
        [section, route] for section in SECTIONS for route in _routes(spec, section) if routes.is_ours(route, hosts)
    ]
    return hashlib.sha256(msgspec.json.encode(ours, order="sorted")).hexdigest()[:16]


def weight_of(found: Document, canary: CanaryDeployment) -> int | None:
    """The canary's weight as it stands there; None when no route is ours, or when they differ."""
    hosts, spec = hosts_of(canary), _spec(found)
    weights: dict[bool, set[int | None]] = {True: set(), False: set()}
    for section in SECTIONS:
        for route in _routes(spec, section):
            if routes.is_made_here(route, hosts):
                if routes.purpose(route, hosts) == MATCHED:
                    weights[True].add(routes.canary_weight(route, hosts))
            elif _is_meant(route, section, canary):
                weights[False].add(routes.canary_weight(route, hosts))
    seen = weights[True] or weights[False]
    return seen.pop() if len(seen) == 1 else None


def problems(found: Document, canary: CanaryDeployment) -> list[str]:
    """Why this VirtualService cannot be driven; empty when it can."""
    hosts, spec = hosts_of(canary), _spec(found)
    named = canary.spec.virtual_service.routes
    ours = [
        (section, route)
        for section in SECTIONS
        for route in _routes(spec, section)
        if routes.is_ours(route, hosts) and not routes.is_made_here(route, hosts)
    ]
    said = []
    known = {route.get("name"): route for route in _routes(spec, HTTP) if route.get("name")}
    for name in named:
        if name not in known:
            there = ", ".join(sorted(map(str, known))[:10]) or "none has a name"
            said.append(f"it has no http route named {name} (there are: {there})")
        elif not routes.is_ours(known[name], hosts):
            said.append(f"its route {name} does not go to the host {canary.name}")
    if not named and not ours:
        said.append(f"no route of it goes to the host {canary.name}")
    analysis = canary.spec.analysis
    match = () if isinstance(analysis, UnsetType) else analysis.match
    for section, route in ours:
        if section == HTTP and _is_meant(route, section, canary):
            _, unsaid = all_of(route.get("match") or (), match)
            if unsaid:
                where = f"route {route['name']}" if route.get("name") else "a route"
                said.append(
                    f"the match of {where} and analysis.match are about the same field, and cannot both be said at once"
                )
    return said


def destination_rules(canary: CanaryDeployment) -> list[dict[str, Any]]:
    """One for each Service, when a traffic policy is given."""
    policy = canary.spec.virtual_service.traffic_policy
    if isinstance(policy, UnsetType):
        return []
    return [
        document(
            canary, API_VERSION, "DestinationRule", role, {"host": name_of(canary, role), "trafficPolicy": dict(policy)}
        )
        for role in (STABLE, CANARY)
    ]


def _default(canary: CanaryDeployment) -> dict[str, Any]:
    """All to the Service: by http, and plainly for ports that say that they speak something else."""
    ports = [port for port in canary.spec.service.get("ports") or () if isinstance(port, Mapping)]
    plain = [port for port in ports if _is_plain(port)]
    to_us: dict[str, Any] = {"destination": {"host": canary.name}}
    spec: dict[str, Any] = {"hosts": [canary.name]}
    if len(plain) < len(ports) or not ports:
        spec[HTTP] = [{"route": [to_us]}]
    if plain:
        spec[TCP] = [
            {
                "match": [{"port": port["port"]}],
                "route": [{"destination": {"host": canary.name, "port": {"number": port["port"]}}}],
            }
            for port in plain
            if port.get("protocol", "TCP") == "TCP"
        ]
    return spec


def _is_plain(port: Document) -> bool:
    said = str(port.get("appProtocol") or port.get("name") or "").lower()
    return port.get("protocol", "TCP") != "TCP" or said.partition("-")[0] in _NOT_HTTP


def _with(spec: Document, canary: CanaryDeployment, traffic: Traffic) -> dict[str, Any]:
    """A bare spec with this traffic."""
    hosts = hosts_of(canary)
    made = dict(spec)
    for section in SECTIONS:
        if not isinstance(spec.get(section), list):
            continue
        written: list[Any] = []
        for route in spec[section]:
            if not _is_meant(route, section, canary):
                written.append(route)
            elif section == HTTP:
                written += routes.driven(route, hosts, traffic)
            else:
                written.append(routes.driven_plain(route, hosts, traffic))
        made[section] = written
    return made


def _without(
    spec: Document, canary: CanaryDeployment, remembered: tuple[tuple[str, dict[str, Any]], ...] = ()
) -> dict[str, Any]:
    """The spec as its author wrote it: what we made is gone, what we changed is as it was."""
    hosts = hosts_of(canary)
    left = [(section, routes.key(route, hosts), route) for section, route in remembered]
    made = dict(spec)
    for section in SECTIONS:
        if not isinstance(spec.get(section), list):
            continue
        written = []
        for route in spec[section]:
            if routes.is_made_here(route, hosts):
                continue
            written.append(_original(route, section, hosts, left) if routes.is_driven(route, hosts) else route)
        made[section] = written
    return made


def _original(route: Document, section: str, hosts: Hosts, left: list[tuple[str, Any, dict[str, Any]]]) -> Document:
    sought = routes.key(route, hosts)
    for at, (where, known, original) in enumerate(left):
        if where == section and known == sought:
            del left[at]
            return original
    return routes.bare(route, hosts)


def _to_remember(
    original: Document, canary: CanaryDeployment, traffic: Traffic
) -> tuple[tuple[str, dict[str, Any]], ...]:
    """The routes that cannot be told from what this traffic makes of them; and with one of them all that look like it, so
    that each is found in its turn."""
    hosts = hosts_of(canary)
    meant = [
        (section, dict(route), msgspec.json.encode([section, routes.key(route, hosts)], order="sorted"))
        for section in SECTIONS
        for route in _routes(original, section)
        if _is_meant(route, section, canary)
    ]
    lost = {look for section, route, look in meant if _is_lost(route, section, hosts, traffic)}
    return tuple((section, route) for section, route, look in meant if look in lost)


def _is_lost(route: Document, section: str, hosts: Hosts, traffic: Traffic) -> bool:
    made = routes.driven(route, hosts, traffic)[-1] if section == HTTP else routes.driven_plain(route, hosts, traffic)
    return routes.bare(made, hosts) != route


def _is_meant(route: Any, section: str, canary: CanaryDeployment) -> bool:
    """Whether it is one of those to drive. Names are of http routes alone."""
    if not isinstance(route, Mapping) or not routes.is_ours(route, hosts_of(canary)):
        return False
    named = canary.spec.virtual_service.routes
    return not named or (section == HTTP and route.get("name") in named)


def _memory(found: Document, canary: CanaryDeployment) -> _Memory:
    """What others did to the annotation is not trusted: what cannot be read is not remembered."""
    text = ((found.get("metadata") or {}).get("annotations") or {}).get(MEMORY + canary.name)
    if not isinstance(text, str) or len(text) > MEMORY_LIMIT:
        return _Memory()
    try:
        read = msgspec.json.decode(text, type=_Memory)
    except msgspec.MsgspecError:
        return _Memory()
    hosts = hosts_of(canary)
    known = tuple((s, r) for s, r in read.routes if s in SECTIONS and routes.is_ours(r, hosts))
    return _Memory(read.applied, known)


def _spec(found: Document) -> Document:
    spec = found.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def _routes(spec: Document, section: str) -> list[Any]:
    listed = spec.get(section)
    return [route for route in listed if isinstance(route, Mapping)] if isinstance(listed, list) else []
