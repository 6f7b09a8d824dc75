"""What is wrong with `spec.virtualService`: a VirtualService to drive by its name, or one to own by its spec."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UnsetType

from trimtab.model.errors import FieldError
from trimtab.systems.delivery.kinds import CanaryDeployment
from trimtab.systems.delivery.kinds.fields import CANARY, STABLE
from trimtab.systems.delivery.objects import routing
from trimtab.systems.delivery.objects.names import hosts_of
from trimtab.systems.delivery.problems.findings import (
    forbidden,
    items,
    mapping,
    missing,
    mistyped,
    object_name,
    repeated,
    wrong,
)
from trimtab.systems.delivery.problems.matching import match_problems
from trimtab.systems.delivery.problems.shapes import Each, Fields, Text, Whole, mistakes

PATH = "spec.virtualService"
_DESTINATION = Fields({"host": Text(required=True), "subset": Text(), "port": Fields({"number": Whole(1, 65535)})})
_ROUTES = Each(Fields({"destination": _DESTINATION, "weight": Whole(0, 100)}))
_SPEC = Fields(
    {
        "hosts": Each(Text()),
        "gateways": Each(Text()),
        "exportTo": Each(Text()),
        "http": Each(Fields({"name": Text(), "match": Each(Fields()), "route": _ROUTES, "timeout": Text()})),
        "tls": Each(Fields({"match": Each(Fields()), "route": _ROUTES})),
        "tcp": Each(Fields({"match": Each(Fields()), "route": _ROUTES})),
    }
)


def routing_problems(canary: CanaryDeployment) -> Iterator[FieldError]:
    chosen = canary.spec.virtual_service
    if not isinstance(chosen.name, UnsetType) and not isinstance(chosen.spec, UnsetType):
        yield forbidden(f"{PATH}.spec", "give name, for one that exists, or spec, for one that is made; not both")
    yield from object_name(f"{PATH}.name", chosen.name)
    if chosen.routes and isinstance(chosen.name, UnsetType):
        yield forbidden(f"{PATH}.routes", "names routes of a VirtualService that exists: give its name")
    yield from repeated((f"{PATH}.routes[{i}]", name) for i, name in enumerate(chosen.routes))
    if not isinstance(chosen.spec, UnsetType):
        found = [*routing_mistakes(chosen.spec), *_spec_problems(chosen.spec, canary)]
        yield from found or _joint_problems(chosen.spec, canary)


def routing_mistakes(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    """What has the wrong type in a VirtualService's spec."""
    yield from mistakes(spec, _SPEC, f"{PATH}.spec")
    for i, route in enumerate(items(spec.get("http"))):
        for j, match in enumerate(items(mapping(route).get("match"))):
            yield from match_problems(f"{PATH}.spec.http[{i}].match[{j}]", match)


def _spec_problems(spec: Mapping[str, Any], canary: CanaryDeployment) -> Iterator[FieldError]:
    path, hosts, gateways = f"{PATH}.spec", items(spec.get("hosts")), items(spec.get("gateways"))
    for i, host in enumerate(hosts):
        if isinstance(host, str) and host != "*" and not (len(host) <= 253 and _HOST.fullmatch(host)):
            yield wrong(f"{path}.hosts[{i}]", host, "must be a host's name: no scheme, no port, * only as first part")
    yield from repeated((f"{path}.hosts[{i}]", host) for i, host in enumerate(hosts) if isinstance(host, str))
    for i, gateway in enumerate(gateways):
        if isinstance(gateway, str) and not _GATEWAY.fullmatch(gateway):
            yield wrong(f"{path}.gateways[{i}]", gateway, "must be mesh, a Gateway's name, or namespace/name")
    if spec.get("hosts") == [] and gateways:
        yield missing(
            f"{path}.hosts", "which hosts: without any, another VirtualService delegates to it, at no gateway"
        )
    if "*" in hosts and (not gateways or "mesh" in gateways):
        yield wrong(f"{path}.hosts", "*", "would catch all requests in the mesh: name hosts, or gateways without mesh")
    routes = items(spec.get("http"))
    if not canary.name:
        return  # the server is yet to make it
    hosts_of_ours, found = hosts_of(canary), False
    for i, route in enumerate(map(mapping, routes)):
        for j, one in enumerate(map(mapping, items(route.get("route")))):
            role = hosts_of_ours.role(mapping(one.get("destination")).get("host"))
            if role == CANARY:
                detail = f"the controller adds it, and its weight: route to {canary.name} only"
                yield forbidden(f"{path}.http[{i}].route[{j}].destination.host", detail)
            found = found or role == STABLE
    if routes and not found:
        detail = f"one of them must route to {canary.name}, the Service; without any, all requests go there"
        yield wrong(f"{path}.http", list(routes), detail)


def _joint_problems(spec: Mapping[str, Any], canary: CanaryDeployment) -> Iterator[FieldError]:
    """A route's match and that of the analysis must hold together, which Istio cannot always say."""
    if canary.name and items(spec.get("http")):
        for why in routing.problems({"spec": dict(spec)}, canary):
            yield wrong(f"{PATH}.spec.http", spec["http"], why)


def policy_problems(canary: CanaryDeployment) -> Iterator[FieldError]:
    """`trafficPolicy` goes to Istio as it is, but for what cannot be one."""
    policy = canary.spec.virtual_service.traffic_policy
    if isinstance(policy, UnsetType):
        return
    for name in ("loadBalancer", "connectionPool", "outlierDetection", "tls"):
        if policy.get(name) is not None and not isinstance(policy[name], Mapping):
            yield mistyped(f"{PATH}.trafficPolicy.{name}", policy[name], "an object")


_LABEL = r"[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?"
_HOST = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")
_GATEWAY = re.compile(rf"({_LABEL}/)?{_LABEL}(\.{_LABEL})*")
