"""What is wrong with `spec.service`: a Service's spec of which two Services are made, one for each Deployment."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.names import label_key_problems
from trimtab.systems.delivery.problems import known
from trimtab.systems.delivery.problems.containers import is_port_name
from trimtab.systems.delivery.problems.findings import (
    forbidden,
    items,
    keyed,
    mapping,
    missing,
    repeated,
    text,
    whole,
    wrong,
)
from trimtab.systems.delivery.problems.shapes import mistakes
from trimtab.systems.delivery.problems.workload import RESERVED, containers, labels

PATH = "spec.service"
_NOT_HTTP = frozenset(("tcp", "tls", "https", "mongo", "mysql", "redis", "udp"))
"""How Istio is told that a port is not one whose requests it can see (its protocol selection)."""


def service_problems(service: Mapping[str, Any], deployment: Mapping[str, Any]) -> Iterator[FieldError]:
    yield from mistakes(service, known.SERVICE, PATH)
    outside = service.get("type") in ("NodePort", "LoadBalancer")
    if text(service.get("externalTrafficPolicy")) and not outside:
        yield forbidden(f"{PATH}.externalTrafficPolicy", "only a Service of type NodePort or LoadBalancer has one")
    address = text(service.get("clusterIP"))
    if address not in ("", "None") and not _is_address(address):
        yield wrong(f"{PATH}.clusterIP", address, "must be an IP address, or None")
    yield from _selector_problems(service, deployment)
    if service.get("ports") is None or service["ports"] == []:
        yield missing(f"{PATH}.ports", "at least one, such as {port: 80, targetPort: 8080}")
    ports = [mapping(one) for one in items(service.get("ports"))]
    for i, port in enumerate(ports):
        yield from _port_problems(f"{PATH}.ports[{i}]", port, deployment, several=len(ports) > 1, outside=outside)
    yield from repeated((f"{PATH}.ports[{i}].name", p["name"]) for i, p in enumerate(ports) if text(p.get("name")))
    yield from repeated(
        (f"{PATH}.ports[{i}]", f"{p['port']}/{text(p.get('protocol')) or 'TCP'}")
        for i, p in enumerate(ports)
        if whole(p.get("port")) is not None
    )


def speaks_http(service: Mapping[str, Any]) -> bool:
    """Whether a port may be one for HTTP: Istio finds out where it is not told."""
    ports = [mapping(one) for one in items(service.get("ports"))]
    return not ports or any(_protocol(port) not in _NOT_HTTP for port in ports)


def named_targets(service: Mapping[str, Any]) -> Iterator[tuple[str, str | int]]:
    """Where each port of the Service leads to: (path, name or number)."""
    for i, port in enumerate(map(mapping, items(service.get("ports")))):
        target = port.get("targetPort")
        place = f"{PATH}.ports[{i}].targetPort"
        if target is None or target in (0, ""):
            place, target = f"{PATH}.ports[{i}].port", port.get("port")
        if isinstance(target, str | int) and not isinstance(target, bool):
            yield place, target


def port_names(deployment: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(text(port.get("name")) for port in _declared(deployment)) - {""}


def port_numbers(deployment: Mapping[str, Any]) -> frozenset[int]:
    numbers = (whole(port.get("containerPort")) for port in _declared(deployment))
    return frozenset(number for number in numbers if number is not None)


def _declared(deployment: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [mapping(port) for one in containers(deployment) for port in items(one.get("ports"))]


def _selector_problems(service: Mapping[str, Any], deployment: Mapping[str, Any]) -> Iterator[FieldError]:
    """Without one, that of the Deployment is used, of which only matchLabels fit a Service."""
    path, selector = f"{PATH}.selector", mapping(service.get("selector"))
    pods = labels(deployment)
    for key, value in selector.items():
        if key.startswith(RESERVED):
            yield forbidden(keyed(path, key), "it is written by the controller")
        elif isinstance(value, str) and pods.get(key) != value:
            yield wrong(keyed(path, key), value, "no pod of the template has this label: requests would go nowhere")
    chosen = mapping(deployment.get("selector"))
    if not selector and chosen.get("matchExpressions") and not chosen.get("matchLabels"):
        yield missing(path, "labels of the template: a Service cannot select by matchExpressions")


def _port_problems(
    path: str, port: Mapping[str, Any], deployment: Mapping[str, Any], *, several: bool, outside: bool
) -> Iterator[FieldError]:
    name = text(port.get("name"))
    if several and port.get("name") in (None, ""):
        yield missing(f"{path}.name", "a name, where there is more than one port")
    if name and not (
        len(name) <= 63 and name.strip("-") == name and name.replace("-", "a").isalnum() and name.islower()
    ):
        yield wrong(f"{path}.name", name, "must be of a-z, 0-9 and -, such as http or grpc-api")
    if whole(port.get("nodePort")) and not outside:
        yield forbidden(f"{path}.nodePort", "only a Service of type NodePort or LoadBalancer has one")
    if port.get("appProtocol") == "":
        yield wrong(f"{path}.appProtocol", "", "must not be empty: leave it out")
    elif text(port.get("appProtocol")):
        for problem in label_key_problems(port["appProtocol"]):
            yield wrong(f"{path}.appProtocol", port["appProtocol"], problem)
    target = port.get("targetPort")
    if isinstance(target, str) and target:
        names = port_names(deployment)
        if not is_port_name(target):
            yield wrong(f"{path}.targetPort", target, "must be a number, or the name of a port: without quotes 8080")
        elif target not in names:
            there = f"the containers have {', '.join(sorted(names)[:8])}" if names else "the containers name no ports"
            yield wrong(f"{path}.targetPort", target, f"must be the name of a container's port: {there}")
    elif whole(target) is not None and not 0 <= (whole(target) or 0) <= 65535:
        yield wrong(f"{path}.targetPort", target, "must be between 1 and 65535")


def _protocol(port: Mapping[str, Any]) -> str:
    if text(port.get("protocol")) in ("UDP", "SCTP"):
        return "udp"
    told = text(port.get("appProtocol")) or text(port.get("name"))
    return told.lower().partition("-")[0]


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True
