"""A VirtualService, read: its hosts, its routes at any entry, and what is wrong with it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from trimtab.systems.local.gateway import names
from trimtab.systems.local.gateway.istio.destinations import Rule
from trimtab.systems.local.gateway.istio.matching import Entry
from trimtab.systems.local.gateway.istio.reading import UINT32, Fields, Problem
from trimtab.systems.local.gateway.istio.routes import routes
from trimtab.systems.local.gateway.names import Key
from trimtab.systems.local.gateway.world import Port

Document = dict[str, Any]
INGRESS = Entry()


class Places(msgspec.Struct, frozen=True):
    """What destinations are looked up in."""

    ports: dict[Key, tuple[Port, ...]]
    rules: dict[Key, Rule]


class Reading:
    """One VirtualService of one moment. Whatever is asked of it, problems gather in `problems`. Nobody changes what it
    returns."""

    def __init__(self, key: Key, spec: Any, places: Places) -> None:
        self.key, self._spec, self._places = key, spec, places
        self.problems: list[Problem] = []
        self._http: dict[Entry, list[Document]] = {}
        fields = Fields(spec, "spec", self.problems)
        self.hosts = [host.lower().rstrip(".") for host in fields.texts("hosts") if self._is_host(fields, host)]
        if not self.hosts:
            fields.refuse("names no host", "hosts")
        gateways = fields.texts("gateways")
        self.in_mesh = not gateways or "mesh" in gateways
        if "tls" in fields:
            fields.refuse("is not known here: connections are plain", "tls")
        if "exportTo" in fields:
            fields.warn("means nothing here: routes hold for all namespaces", "exportTo")
        if not any(name in fields for name in ("http", "tcp", "tls")):
            fields.refuse("has neither http nor tcp routes")
        fields.ignore("tls", "exportTo", "http", "tcp")
        fields.rest()
        self.ingress = self.http(INGRESS)
        self.tcp(INGRESS)

    @property
    def is_good(self) -> bool:
        return not any(problem.error for problem in self.problems)

    @property
    def has_http(self) -> bool:
        return isinstance(self._spec, dict) and bool(self._spec.get("http"))

    def http(self, entry: Entry) -> list[Document]:
        """Its routes for requests that come in there."""
        if entry not in self._http:
            self._http[entry] = routes(Fields(self._spec, "spec", self.problems), entry, self._cluster)
        return self._http[entry]

    def tcp(self, entry: Entry) -> list[tuple[str, int]]:
        """Its clusters for connections that come in there, with their weights; none when no route is for them."""
        chosen: list[tuple[str, int]] = []
        for route in Fields(self._spec, "spec", self.problems).parts("tcp"):
            found = self._tcp_route(route, entry)
            chosen = chosen or found
        return chosen

    def _tcp_route(self, route: Fields, entry: Entry) -> list[tuple[str, int]]:
        here = "match" not in route
        for match in route.parts("match"):
            port, gateways = match.number("port", 1, 65535), match.texts("gateways")
            here = here or ((port is None or port == entry.port) and (not gateways or "mesh" in gateways))
            for name in ("destinationSubnets", "sourceLabels", "sourceNamespace", "sourceSubnet"):
                if name in match:
                    match.refuse("is not known here", name)
                match.ignore(name)
            match.rest()
        parts = route.parts("route")
        clusters = []
        for part in parts:
            weight = part.number("weight", 0, UINT32)
            name = self._cluster(part.part("destination"), entry)
            clusters.append((name, 100 if len(parts) == 1 and not weight else weight or 0))
            part.rest()
        if not sum(weight for _, weight in clusters):
            route.refuse("has no destination with a weight above 0", "route")
        route.rest()
        return clusters if here else []

    def _cluster(self, destination: Fields, entry: Entry) -> str:
        """The cluster of a Destination. One that is not there answers 503, as in Istio: it may still come."""
        host, subset = destination.text("host"), destination.text("subset")
        part = destination.part("port")
        number = part.number("number", 1, 65535)
        part.rest()
        destination.rest()
        service = names.meant(host, self.key.namespace)
        if service is None:
            destination.refuse(f"{host[:80]!r} names no Service", "host")
            return "none"
        ports = self._places.ports.get(service)
        if ports is None:
            destination.warn(f"there is no Service {service} (yet)", "host")
            ports = ()
        known = {port.number for port in ports}
        if number is None:
            number = _only(ports) or (entry.port if entry.port in known else 0) or _first(ports) or entry.port or 80
        elif ports and number not in known:
            destination.warn(f"the Service {service} has no port {number}", "port")
        rule = self._places.rules.get(service)
        if subset and (rule is None or subset not in rule.subsets):
            destination.warn(f"no DestinationRule of {service} has a subset {subset[:63]!r}", "subset")
        return names.cluster(service, number, subset)

    def _is_host(self, fields: Fields, host: str) -> bool:
        if _HOST.fullmatch(host.lower()):
            return True
        fields.refuse(f"{host[:80]!r} is no host", "hosts")
        return False


def _only(ports: tuple[Port, ...]) -> int:
    return ports[0].number if len(ports) == 1 else 0


def _first(ports: tuple[Port, ...]) -> int:
    return next((port.number for port in ports if port.protocol != "tcp"), 0) or (ports[0].number if ports else 0)


_HOST = re.compile(r"(\*|(\*\.)?[a-z0-9_]([a-z0-9_.-]{0,252}))")
