"""Service: its ports, its addresses, and how it is shown."""

from __future__ import annotations

import hashlib
import ipaddress
import itertools
import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

from trimtab.model.errors import FieldError, bad_request
from trimtab.model.kind import Column
from trimtab.model.metadata import dns_label_problems
from trimtab.model.names import dns_subdomain_problems, label_key_problems
from trimtab.server.builtin import gosource, names
from trimtab.server.builtin.endpoints import PROTOCOLS, reachable_ip, valid_ip
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.problems import (
    at,
    duplicate,
    duplicate_go,
    each,
    forbidden,
    invalid,
    invalid_go,
    items,
    label_map,
    required,
    unsupported,
)
from trimtab.server.strategy import Document

SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
NETWORK = ipaddress.ip_network("10.96.0.0/12")
NODE_PORTS = range(30000, 32768)
TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
AFFINITY_SECONDS = 10800


class Service(Native):
    """Cluster IP and node ports come from the uid: one of a million addresses of 10.96.0.0/12, one of 2768 ports.

    Two Services may meet there, and nothing refuses it, nor a cluster IP that a client gives and another Service has:
    a hook sees one object only. Among a hundred Services two share an address once in two hundred times. The address
    is a name here, not a route; whoever makes it one must first allocate it where the store can be asked.
    """

    create_on_update = True
    returns_deleted = True
    name_check = staticmethod(names.dns_1035_label_name)
    selectable: Mapping[str, str] = {"spec.clusterIP": "spec.clusterIP", "spec.type": "spec.type"}
    shown = (
        NAME,
        Column("Type", ".spec.type"),
        Column("Cluster-IP", ".spec.clusterIP"),
        Column("External-IP", ".spec.externalIPs"),
        Column("Port(s)", ".spec.ports"),
        AGE,
        Column("Selector", ".spec.selector", priority=1),
    )

    def prepare(self, new: Document, old: Document | None, subresource: str) -> None:
        super().prepare(new, old, subresource)
        spec = new.get("spec")
        if subresource or not isinstance(spec, dict):
            return
        if old is not None:
            _keep_allocated(spec, old.get("spec") or {})
        _allocate(spec, new["metadata"].get("uid") or "")

    def complete(self, obj: Document) -> None:
        spec = obj.get("spec")
        if not isinstance(spec, dict):
            return
        if not spec.get("type"):
            spec["type"] = "ClusterIP"
        if not spec.get("sessionAffinity"):
            spec["sessionAffinity"] = "None"
        if spec["sessionAffinity"] == "None":
            spec.pop("sessionAffinityConfig", None)
        elif spec["sessionAffinity"] == "ClientIP" and at(spec, "sessionAffinityConfig", "clientIP") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}}
        for port in items(spec, "ports"):
            if not port.get("targetPort"):
                port["targetPort"] = port.get("port", 0)
        external = spec["type"] in ("NodePort", "LoadBalancer")
        if external and not spec.get("externalTrafficPolicy"):
            spec["externalTrafficPolicy"] = "Cluster"
        if spec["type"] != "ExternalName":
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if spec["type"] == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
            for ingress in items(obj, "status", "loadBalancer", "ingress"):
                if ingress.get("ip"):
                    ingress.setdefault("ipMode", "VIP")

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource:
            return ()
        spec = new.get("spec") or {}
        errors = []
        if old is not None and spec.get("type") != "ExternalName" and at(old, "spec", "clusterIP"):
            before = at(old, "spec", "clusterIPs") or []
            if (spec.get("clusterIPs") or [])[:1] != before[:1]:
                shown = gosource.strings(spec.get("clusterIPs"))
                errors.append(invalid_go("spec.clusterIPs[0]", shown, "may not change once set"))
        return errors + _spec(spec) + _source_ranges(new)

    def fields(self, obj: Document) -> dict[str, str]:
        spec = obj.get("spec") or {}
        return {"spec.clusterIP": spec.get("clusterIP") or "", "spec.type": spec.get("type") or ""}

    def row(self, obj: Document) -> Sequence[Any]:
        spec = obj.get("spec") or {}
        ips = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
        ports = []
        for port in spec.get("ports") or ():
            node = f":{port['nodePort']}" if port.get("nodePort") else ""
            ports.append(f"{port.get('port')}{node}/{port.get('protocol')}")
        return (spec.get("type") or "", ips[0] if ips else "<none>", _external(obj), ",".join(ports) or "<none>")

    def wide(self, obj: Document) -> Sequence[Any]:
        selector = at(obj, "spec", "selector") or {}
        return (",".join(f"{key}={selector[key]}" for key in sorted(selector)) or "<none>",)


def _keep_allocated(spec: Document, old: Document) -> None:
    """What was allocated stays when an update does not speak of it."""
    if spec.get("type") == "ExternalName" or old.get("type") == "ExternalName":
        return
    if (
        spec.get("clusterIP")
        and spec["clusterIP"] != old.get("clusterIP")
        and spec.get("clusterIPs") == old.get("clusterIPs")
    ):
        spec["clusterIPs"] = [spec["clusterIP"]]
    if not spec.get("clusterIP") and not spec.get("clusterIPs"):
        for field in ("clusterIP", "clusterIPs"):
            if field in old:
                spec[field] = old[field]
    for field in ("ipFamilies", "ipFamilyPolicy"):
        if field in old:
            spec.setdefault(field, old[field])
    taken = {(port.get("protocol"), port.get("port")): port.get("nodePort") for port in old.get("ports") or ()}
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        for port in items(spec, "ports"):
            found = taken.get((port.get("protocol") or "TCP", port.get("port")))
            if not port.get("nodePort") and found:
                port["nodePort"] = found


def _allocate(spec: Document, uid: str) -> None:
    what = spec.get("type") or "ClusterIP"
    if what == "ExternalName":
        if spec.get("clusterIP"):
            spec.setdefault("clusterIPs", [spec["clusterIP"]])
        return
    if not spec.get("clusterIP"):
        given = spec.get("clusterIPs")
        spec["clusterIP"] = given[0] if isinstance(given, list) and given else str(NETWORK[_number(uid, 2**16, 2**20)])
    if not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    headless = spec["clusterIP"] == "None" and not spec.get("selector")
    spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if headless else [_family(spec["clusterIP"])])
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if headless else "SingleStack")
    if what in ("NodePort", "LoadBalancer") and spec.get("allocateLoadBalancerNodePorts") is not False:
        used = {port.get("nodePort") for port in items(spec, "ports")}
        for port in items(spec, "ports"):
            if not port.get("nodePort"):
                port["nodePort"] = _node_port(f"{uid}/{port.get('port')}/{port.get('protocol')}", used)
                used.add(port["nodePort"])


def _source_ranges(service: Document) -> list[FieldError]:
    """Who may reach a load balancer, by the field or by the annotation that was before it."""
    ranges = at(service, "spec", "loadBalancerSourceRanges") or []
    annotation = at(service, "metadata", "annotations", SOURCE_RANGES)
    if not ranges and annotation is None:
        return []
    path = "spec.LoadBalancerSourceRanges" if ranges else f"metadata.annotations[{SOURCE_RANGES}]"
    if at(service, "spec", "type") != "LoadBalancer":
        return [forbidden(path, "may only be used when `type` is 'LoadBalancer'")]
    if ranges:
        wrong = ((index, text) for index, text in enumerate(ranges) if not _is_cidr(text))
        return [invalid(f"{path}[{index}]", text, CIDR) for index, text in wrong]
    fits = not annotation.strip() or all(map(_is_cidr, annotation.split(",")))
    return [] if fits else [invalid(path, annotation, CIDR)]


def _is_cidr(text: str) -> bool:
    try:
        ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        return False
    return re.fullmatch(r"[0-9a-fA-F:.]+/[0-9]{1,3}", text.strip()) is not None


def _node_port(seed: str, used: Container[Any]) -> int:
    """One that is free, the same for the same port if it can be."""
    first = _number(seed, 0, len(NODE_PORTS))
    turned = itertools.chain(NODE_PORTS[first:], NODE_PORTS[:first])
    found = next((number for number in turned if number not in used), None)
    if found is None:
        raise bad_request("failed to allocate a nodePort: range is full")
    return found


def _number(seed: str, low: int, high: int) -> int:
    digest = hashlib.blake2b(seed.encode(), digest_size=8).digest()
    return low + int.from_bytes(digest, "big") % (high - low)


def _family(address: Any) -> str:
    return "IPv6" if isinstance(address, str) and ":" in address else "IPv4"


def _spec(spec: Document) -> list[FieldError]:
    errors = []
    ports, what = spec.get("ports") or [], spec.get("type") or ""
    ips = spec.get("clusterIPs") or []
    headless = ips == ["None"]
    if not ports and not headless and what != "ExternalName":
        errors.append(required("spec.ports"))
    if what in ("LoadBalancer", "NodePort") and headless:
        errors.append(invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {what} services"))
    if what == "ExternalName":
        errors += [
            forbidden(f"spec.{field}", "may not be set for ExternalName services")
            for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
            if spec.get(field)
        ]
        cname = (spec.get("externalName") or "").removesuffix(".")
        path = "spec.externalName"
        errors += each(path, cname, dns_subdomain_problems(cname)) if cname else [required(path)]
    seen: set[str] = set()
    for index, port in enumerate(ports):
        errors += _port(port, f"spec.ports[{index}]", len(ports) > 1, seen)
    errors += label_map(spec.get("selector"), "spec.selector")
    if spec.get("sessionAffinity") not in ("ClientIP", "None"):
        errors.append(unsupported("spec.sessionAffinity", spec.get("sessionAffinity"), ("ClientIP", "None")))
    errors += _cluster_ips(spec, ips) if what != "ExternalName" else []
    for index, ip in enumerate(spec.get("externalIPs") or []):
        errors += reachable_ip(ip, f"spec.externalIPs[{index}]")
    if what not in TYPES:
        errors.append(unsupported("spec.type", what, TYPES))
    return errors + _repeated_ports(ports, what)


def _cluster_ips(spec: Document, ips: list[str]) -> list[FieldError]:
    errors = []
    if spec.get("clusterIP") and ips and ips[0] != spec["clusterIP"]:
        errors.append(invalid_go("spec.clusterIPs", gosource.strings(ips), "first value must match `clusterIP`"))
    for index, ip in enumerate(ips):
        if index == 0 and ip == "None":
            if len(ips) > 1:
                why = "'None' must be the first and only value"
                errors.append(invalid_go("spec.clusterIPs", gosource.strings(ips), why))
            continue
        errors += valid_ip(ip, f"spec.clusterIPs[{index}]")
    return errors


def _repeated_ports(ports: list[Document], what: str) -> list[FieldError]:
    errors = []
    numbers, nodes = set(), set()
    for index, port in enumerate(ports):
        path, node = f"spec.ports[{index}]", port.get("nodePort") or 0
        if node and what == "ClusterIP":
            errors.append(forbidden(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'"))
        if node and (port.get("protocol"), node) in nodes:
            errors.append(duplicate(f"{path}.nodePort", node))
        nodes.add((port.get("protocol"), node))
    for index, port in enumerate(ports):
        key = (port.get("protocol"), port.get("port"))
        if key in numbers:
            shown = f'core.ServicePort{{Name:"", Protocol:"{key[0]}", AppProtocol:(*string)(nil), Port:{key[1]}, '
            shown += 'TargetPort:intstr.IntOrString{Type:0, IntVal:0, StrVal:""}, NodePort:0}'
            errors.append(duplicate_go(f"spec.ports[{index}]", shown))
        numbers.add(key)
    return errors


def _port(port: Document, path: str, named: bool, seen: set[str]) -> list[FieldError]:
    errors = []
    name, number, target = port.get("name") or "", port.get("port") or 0, port.get("targetPort", 0)
    if named and not name:
        errors.append(required(f"{path}.name"))
    elif name:
        errors += each(f"{path}.name", name, dns_label_problems(name))
        if name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
    errors += each(f"{path}.port", number, names.port_number(number))
    if port.get("protocol") not in PROTOCOLS:
        errors.append(unsupported(f"{path}.protocol", port.get("protocol"), PROTOCOLS))
    problems = names.port_name(target) if isinstance(target, str) else names.port_number(target)
    errors += each(f"{path}.targetPort", target, problems)
    if port.get("appProtocol") is not None:
        errors += each(f"{path}.appProtocol", port["appProtocol"], label_key_problems(port["appProtocol"]))
    return errors


def _external(obj: Document) -> str:
    spec = obj.get("spec") or {}
    ips = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(ips) or "<none>"
        case "LoadBalancer":
            ingress = at(obj, "status", "loadBalancer", "ingress") or []
            found = sorted({one.get("ip") or one.get("hostname") or "" for one in ingress} - {""})
            return ",".join([*found, *ips]) or "<pending>"
        case "ExternalName":
            return spec.get("externalName") or ""
    return "<unknown>"


STRATEGIES = (
    Service(kind("io.k8s.api.core.v1.Service", "services", short=("svc",), categories=("all",), status=True)),
)
