"""Names: which Service a host means, what its clusters and listeners are called, and what its counters are filed under."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

DOMAIN = "svc.cluster.local"
ROOT = "cluster.local"


class Key(NamedTuple):
    """An object of a namespace."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def meant(host: str, namespace: str) -> Key | None:
    """The Service that a host names, seen from a namespace: `web`, `web.shop`, `web.shop.svc`, `web.shop.svc.cluster.local`.
    None for what cannot be one."""
    labels = host.lower().rstrip(".").split(".")
    if not all(labels) or "*" in labels:
        return None
    match labels:
        case [name]:
            return Key(namespace, name)
        case [name, space] | [name, space, "svc"] | [name, space, "svc", "cluster", "local"]:
            return Key(space, name)
    return None


def names_of(service: Key) -> tuple[str, ...]:
    """All hosts that mean a Service, seen from its own namespace."""
    name, space = service.name, service.namespace
    return (name, f"{name}.{space}", f"{name}.{space}.svc", f"{name}.{space}.{DOMAIN}")


def fqdn(service: Key) -> str:
    return f"{service.name}.{service.namespace}.{DOMAIN}"


def covers(host: str, names: Iterable[str]) -> int:
    """How closely a host of a VirtualService names one of these: 0 is not at all. A wildcard is its suffix."""
    host = host.lower().rstrip(".")
    if host == "*":
        return 1
    if host.startswith("*."):
        return max((len(host) for name in names if name.endswith(host[1:])), default=0)
    return 1 << 16 if host in names else 0


def cluster(service: Key, port: int, subset: str = "") -> str:
    """As Istio calls it."""
    return f"outbound|{port}|{subset}|{fqdn(service)}"


def listener(service: Key, port: int) -> str:
    return f"{service.namespace}.{service.name}.{port}"


INGRESS, MESH = "ingress", "mesh"
"""The tables of routes: at the ingress, and at the addresses of Services."""


def counted_as(namespace: str, workload: str, service: str) -> str:
    """Under which name a cluster's counters are filed. A Deployment may have dots in its name, the others not."""
    return f"{namespace}@{workload}@{service}"


TAGS = (
    ("destination_workload_namespace", r"^cluster\.(([^@.]+)@)"),
    ("destination_workload", r"^cluster\.[^@.]+@(([^@]+)@)"),
    ("destination_service_name", r"^cluster\.[^@.]+@[^@]+@(([^@.]+)\.)"),
)
"""How Envoy takes those names apart again: labels of its Prometheus text."""
