"""What the data plane is made from: the objects as they are, and the questions that translation asks of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from trimtab.model.istio import DestinationRule, VirtualService
from trimtab.model.kubernetes import Deployment, Pod, Service
from trimtab.model.resource import Resource
from trimtab.systems.local.gateway.names import Key

Document = dict[str, Any]
T = TypeVar("T")
SHIFT = 10000


class Port(msgspec.Struct, frozen=True):
    """One port of a Service. `target` is a number, or the name of a container's port."""

    number: int
    name: str
    target: int | str
    protocol: str
    """http, http2, tcp, or auto."""


class Endpoint(msgspec.Struct, frozen=True, order=True):
    """Where a pod listens."""

    address: str
    port: int


class World(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A snapshot. `addresses` are those of the Services that have one."""

    services: tuple[Service, ...] = ()
    pods: tuple[Pod, ...] = ()
    deployments: tuple[Deployment, ...] = ()
    virtual_services: tuple[VirtualService, ...] = ()
    destination_rules: tuple[DestinationRule, ...] = ()
    addresses: Mapping[Key, str] = {}
    ingress: int = 0
    """The port of the ingress listener; 0 for none."""
    lowest: int = 0
    """The lowest port that Envoy may listen at."""

    def routed(self, virtual_services: tuple[VirtualService, ...]) -> World:
        """The same world with other VirtualServices. What was worked out of the rest is kept: it is the same objects, by
        which others know that nothing else has changed."""
        made = msgspec.structs.replace(self, virtual_services=virtual_services)
        made.__dict__.update(self.__dict__)
        return made

    def heard_at(self, port: int) -> int:
        """Where a Service's port is listened at: there, or `SHIFT` above what only an administrator may take."""
        return port if port >= self.lowest else port + SHIFT

    @cached_property
    def service(self) -> dict[Key, Service]:
        return {key_of(each): each for each in self.services}

    @cached_property
    def ports(self) -> dict[Key, tuple[Port, ...]]:
        return {key_of(each): ports_of(each) for each in self.services}

    @cached_property
    def _pods(self) -> dict[tuple[str, str, str], list[Pod]]:
        """By namespace and label."""
        found: dict[tuple[str, str, str], list[Pod]] = {}
        for pod in self.pods:
            for name, value in _labels(pod).items():
                found.setdefault((pod.namespace, name, value), []).append(pod)
        return found

    @cached_property
    def _deployments(self) -> dict[tuple[str, str, str], list[tuple[str, dict[str, str]]]]:
        """By namespace and label of their pods: their names and all those labels."""
        found: dict[tuple[str, str, str], list[tuple[str, dict[str, str]]]] = {}
        for each in sorted(self.deployments, key=key_of):
            labels = _map(_at(_spec(each), "template", "metadata", "labels"))
            for name, value in labels.items():
                found.setdefault((each.namespace, name, value), []).append((each.name, labels))
        return found

    def pods_of(self, service: Service, labels: Mapping[str, str] | None = None) -> list[Pod]:
        """The pods that a Service selects, `labels` of a subset included. A Service without a selector selects none."""
        selector = _map(_spec(service).get("selector"))
        if not selector:
            return []
        wanted = {**selector, **(labels or {})}
        return [pod for pod in _fewest(self._pods, service, wanted) if wanted.items() <= _labels(pod).items()]

    def endpoints(self, service: Service, port: Port, labels: Mapping[str, str] | None = None) -> tuple[Endpoint, ...]:
        """Where requests may go now: pods that are ready, and not on their way out."""
        unready = bool(_spec(service).get("publishNotReadyAddresses"))
        found = set()
        for pod in self.pods_of(service, labels):
            address = _status(pod).get("podIP")
            number = port.target if isinstance(port.target, int) else _named_port(pod, port.target)
            if isinstance(address, str) and address and number and (unready or is_ready(pod)) and not is_leaving(pod):
                found.add(Endpoint(address, number))
        return tuple(sorted(found))

    def workload(self, service: Service, labels: Mapping[str, str] | None = None) -> str:
        """The Deployment behind a Service: the one whose template it selects, or that owns its pods; else its own name."""
        selector = {**_map(_spec(service).get("selector")), **(labels or {})}
        if selector:
            matching = [
                name for name, held in _fewest(self._deployments, service, selector) if selector.items() <= held.items()
            ]
            if matching:
                return service.name if service.name in matching else matching[0]
            for pod in self.pods_of(service, labels):
                for owner in pod.metadata.owner_references or ():
                    if owner.kind == "Deployment":
                        return owner.name
        return service.name


def _fewest(index: dict[tuple[str, str, str], list[T]], service: Service, wanted: Mapping[str, str]) -> list[T]:
    """Those with the rarest of some labels: all that have all of them are among these."""
    return min((index.get((service.namespace, name, value), []) for name, value in wanted.items()), key=len)


def key_of(obj: Resource) -> Key:
    return Key(obj.namespace, obj.name)


def ports_of(service: Service) -> tuple[Port, ...]:
    """The ports that a proxy can carry."""
    found = []
    for port in _spec(service).get("ports") or ():
        number, target = port.get("port"), port.get("targetPort")
        if not isinstance(number, int) or (port.get("protocol") or "TCP") != "TCP":
            continue
        name = str(port.get("name") or "")
        found.append(Port(number, name, target or number, _protocol(str(port.get("appProtocol") or ""), name)))
    return tuple(found)


def is_headless(service: Service) -> bool:
    """It has no address of its own. One without a selector has none either: nobody here could answer for it."""
    spec = _spec(service)
    return spec.get("clusterIP") == "None" or spec.get("type") == "ExternalName" or not spec.get("selector")


def is_ready(pod: Pod) -> bool:
    conditions = _status(pod).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def is_leaving(pod: Pod) -> bool:
    return bool(pod.metadata.deletion_timestamp) or _status(pod).get("phase") in ("Succeeded", "Failed")


def _protocol(app: str, name: str) -> str:
    """By `appProtocol` (KEP-1435), else by the name's first word, as Istio has it. A port that says nothing is looked at
    connection by connection."""
    word = (app.rpartition("/")[2] or name.partition("-")[0]).lower()
    if not word:
        return "auto"
    if word in ("grpc", "http2", "h2c"):
        return "http2"
    return "http" if word in ("http", "ws", "grpcweb") else "tcp"


def _named_port(pod: Pod, name: str) -> int:
    for container in _spec(pod).get("containers") or ():
        for port in container.get("ports") or ():
            number = port.get("containerPort")
            if port.get("name") == name and isinstance(number, int):
                return number
    return 0


def _spec(obj: Any) -> Document:
    return obj.spec if isinstance(obj.spec, dict) else {}


def _status(obj: Any) -> Document:
    return obj.status if isinstance(obj.status, dict) else {}


def _labels(obj: Resource) -> Mapping[str, str]:
    labels = obj.metadata.labels
    return {} if labels is UNSET or not isinstance(labels, dict) else labels


def _map(value: Any) -> dict[str, str]:
    return value if isinstance(value, dict) else {}


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def oldest_first(objects: Iterable[Any]) -> list[Any]:
    """Who came first has the right of way."""
    return sorted(objects, key=lambda each: (str(each.metadata.creation_timestamp or "~"), key_of(each)))
