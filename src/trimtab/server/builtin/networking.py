"""Ingress."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.kind import Column
from trimtab.model.names import dns_subdomain_problems
from trimtab.server.builtin import names
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.problems import at, each, invalid, invalid_go, required, unsupported
from trimtab.server.strategy import Document

PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
BAD_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
BAD_SUFFIXES = ("/..", "/.")
SHOWN_HOSTS = 3
NO_RULES = "either `defaultBackend` or `rules` must be specified"


class Ingress(Native):
    has_generation = True
    shown = (
        NAME,
        Column("Class", ".spec.ingressClassName"),
        Column("Hosts", ""),
        Column("Address", ""),
        Column("Ports", ""),
        AGE,
    )

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource:
            return ()
        spec = new.get("spec") or {}
        errors = []
        if not spec.get("rules") and spec.get("defaultBackend") is None:
            errors.append(invalid_go("spec", "[]networking.IngressRule(nil)", NO_RULES))
        if spec.get("defaultBackend") is not None:
            errors += _backend(spec["defaultBackend"], "spec.defaultBackend")
        for index, rule in enumerate(spec.get("rules") or ()):
            errors += _rule(rule, f"spec.rules[{index}]")
        if spec.get("ingressClassName") is not None:
            errors += each(
                "spec.ingressClassName", spec["ingressClassName"], dns_subdomain_problems(spec["ingressClassName"])
            )
        return errors

    def row(self, obj: Document) -> Sequence[Any]:
        spec = obj.get("spec") or {}
        hosts = [rule["host"] for rule in spec.get("rules") or () if rule.get("host")]
        listed = ",".join(hosts[:SHOWN_HOSTS]) or "*"
        if len(hosts) > SHOWN_HOSTS:
            listed += f" + {len(hosts) - SHOWN_HOSTS} more..."
        places = at(obj, "status", "loadBalancer", "ingress") or []
        address = ",".join(place.get("ip") or place.get("hostname") or "" for place in places)
        return (spec.get("ingressClassName") or "<none>", listed, address, "80, 443" if spec.get("tls") else "80")


def _rule(rule: Document, path: str) -> list[FieldError]:
    host = rule.get("host") or ""
    errors = []
    if host:
        if _is_address(host):
            errors.append(invalid(f"{path}.host", host, "must be a DNS name, not an IP address"))
        if "*" not in host:
            errors += each(f"{path}.host", host, dns_subdomain_problems(host))
        elif not host.startswith("*.") or dns_subdomain_problems(host[2:]):
            errors.append(invalid(f"{path}.host", host, "a wildcard DNS-1123 subdomain must start with '*.'"))
    http = rule.get("http")
    if http is None:
        return errors
    paths = http.get("paths") or []
    if not paths:
        errors.append(required(f"{path}.http.paths"))
    for index, one in enumerate(paths):
        errors += _path(one, f"{path}.http.paths[{index}]")
    return errors


def _path(one: Document, path: str) -> list[FieldError]:
    kind_, text = one.get("pathType"), one.get("path") or ""
    if kind_ is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    errors = []
    if kind_ not in PATH_TYPES:
        errors.append(unsupported(f"{path}.pathType", kind_, PATH_TYPES))
    else:
        exact = kind_ != "ImplementationSpecific"
        if not text.startswith("/") and (exact or text):
            errors.append(invalid(f"{path}.path", text, "must be an absolute path"))
        if exact:
            errors += [invalid(f"{path}.path", text, f"must not contain '{s}'") for s in BAD_SEQUENCES if s in text]
            errors += [
                invalid(f"{path}.path", text, f"cannot end with '{s}'") for s in BAD_SUFFIXES if text.endswith(s)
            ]
    return errors + _backend(one.get("backend") or {}, f"{path}.backend")


def _backend(backend: Document, path: str) -> list[FieldError]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return [required(f"{path}.resource.{field}") for field in ("kind", "name") if not resource.get(field)]
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    name, port = service.get("name") or "", service.get("port") or {}
    if name:
        errors = each(f"{path}.service.name", name, names.dns_1035_label_name(name, False))
    else:
        errors = [required(f"{path}.service.name")]
    if port.get("name") and port.get("number"):
        errors.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("number"):
        if not 1 <= port["number"] <= 65535:
            why = "must be between 1 and 65535, inclusive"
            errors.append(invalid(f"{path}.service.port.number", port["number"], why))
    elif not port.get("name"):
        errors.append(required(path, "port name or number is required"))
    return errors


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


STRATEGIES = (
    Ingress(
        kind(
            "io.k8s.api.networking.v1.Ingress",
            "ingresses",
            group="networking.k8s.io",
            short=("ing",),
            status=True,
            singular="ingress",
        )
    ),
)
