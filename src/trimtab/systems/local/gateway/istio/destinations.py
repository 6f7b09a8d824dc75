"""DestinationRule: what holds for a host's clusters, as fields of Envoy's Cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from trimtab.systems.local.gateway.istio.reading import Document, Fields

BALANCING = {
    "": "LEAST_REQUEST",
    "UNSPECIFIED": "LEAST_REQUEST",
    "LEAST_CONN": "LEAST_REQUEST",
    "LEAST_REQUEST": "LEAST_REQUEST",
    "ROUND_ROBIN": "ROUND_ROBIN",
    "RANDOM": "RANDOM",
}
SUBSET = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")


class Policy(msgspec.Struct, frozen=True):
    """Envoy's fields, by the port they hold for; 0 is every port that has none of its own."""

    by_port: Mapping[int, Document] = {}

    def at(self, port: int) -> Document:
        return self.by_port.get(port) or self.by_port.get(0) or {}


class Rule(msgspec.Struct, frozen=True):
    """A DestinationRule, read. Subsets have the labels that their pods need, and their own policy."""

    host: str
    policy: Policy = Policy()
    subsets: Mapping[str, tuple[dict[str, str], Policy]] = {}


def rule(spec: Fields) -> Rule:
    host = spec.text("host")
    if not host:
        spec.refuse("is missing", "host")
    whole = _policy(spec.part("trafficPolicy"))
    subsets: dict[str, tuple[dict[str, str], Policy]] = {}
    for part in spec.parts("subsets"):
        name, labels = part.text("name"), part.part("labels")
        wanted = {label: labels.text(label) for label in labels.names()}
        own = _policy(part.part("trafficPolicy")) if "trafficPolicy" in part else whole
        part.ignore("trafficPolicy")
        part.rest()
        if not SUBSET.fullmatch(name) or name in subsets:
            part.refuse("is no name of a subset, or there twice", "name")
            continue
        subsets[name] = (wanted, own)
    if "exportTo" in spec:
        spec.warn("means nothing here: rules hold for all namespaces", "exportTo")
    if "workloadSelector" in spec:
        spec.refuse("is not known here", "workloadSelector")
    spec.ignore("exportTo", "workloadSelector")
    spec.rest()
    return Rule(host, whole, subsets)


def _policy(fields: Fields) -> Policy:
    found = {0: _settings(fields)}
    for part in fields.parts("portLevelSettings"):
        port = part.part("port").number("number", 1, 65535)
        made = _settings(part)
        part.rest()
        if port is not None:
            found[port] = made
    fields.rest()
    return Policy(found)


def _settings(fields: Fields) -> Document:
    made: Document = {"lb_policy": _balancing(fields.part("loadBalancer"))}
    pool = fields.part("connectionPool")
    limits, http = _pool(pool)
    made.update(limits)
    if http:
        made["http"] = http
    if "outlierDetection" in fields:
        made["outlier_detection"] = _outliers(fields.part("outlierDetection"))
    fields.ignore("outlierDetection")
    tls = fields.part("tls")
    if tls.text("mode") not in ("", "DISABLE", "ISTIO_MUTUAL"):
        tls.refuse("is not known here: only plain connections are made", "mode")
    for name in ("tunnel", "proxyProtocol"):
        if name in fields:
            fields.refuse("is not known here", name)
        fields.ignore(name)
    return made


def _balancing(fields: Fields) -> str:
    simple = fields.text("simple")
    if simple not in BALANCING:
        fields.refuse(f"{simple[:40]!r} is none of {', '.join(each for each in BALANCING if each)}", "simple")
    if "consistentHash" in fields:
        fields.refuse("is not known here", "consistentHash")
    for name in ("localityLbSetting", "warmup", "warmupDurationSecs"):
        if name in fields:
            fields.warn("means nothing here", name)
    fields.ignore("consistentHash", "localityLbSetting", "warmup", "warmupDurationSecs")
    fields.rest()
    return BALANCING.get(simple, "LEAST_REQUEST")


def _pool(fields: Fields) -> tuple[Document, Document]:
    tcp, http = fields.part("tcp"), fields.part("http")
    made: Document = {}
    limits: Document = {}
    if timeout := tcp.seconds("connectTimeout"):
        if timeout == "0s":
            tcp.refuse("is no time to connect in", "connectTimeout")
        else:
            made["connect_timeout"] = timeout
    _limit(limits, "max_connections", tcp.number("maxConnections"))
    _limit(limits, "max_pending_requests", http.number("http1MaxPendingRequests"))
    _limit(limits, "max_requests", http.number("http2MaxRequests"))
    _limit(limits, "max_retries", http.number("maxRetries"))
    if "tcpKeepalive" in tcp:
        tcp.warn("means nothing on the loopback interface", "tcpKeepalive")
    for name in ("idleTimeout", "maxConnectionDuration"):
        if name in tcp:
            tcp.warn("is not kept here", name)
    tcp.ignore("tcpKeepalive", "idleTimeout", "maxConnectionDuration")
    tcp.rest()
    protocol: Document = {}
    if idle := http.seconds("idleTimeout"):
        protocol["idle_timeout"] = idle
    per = http.number("maxRequestsPerConnection")
    if per:
        protocol["max_requests_per_connection"] = per
    streams = http.number("maxConcurrentStreams", 1, 2**31 - 1)
    upgrade = http.text("h2UpgradePolicy")
    http.flag("useClientProtocol")
    http.rest()
    fields.rest()
    if limits:
        made["limits"] = limits
    return made, {
        **({"common": protocol} if protocol else {}),
        **({"streams": streams} if streams else {}),
        **({"http2": True} if upgrade == "UPGRADE" else {}),
    }


def _limit(limits: Document, name: str, value: int | None) -> None:
    if value is not None:
        limits[name] = value


def _outliers(fields: Fields) -> Document:
    made: Document = {}
    for ours, name in (
        ("consecutive_5xx", "consecutive5xxErrors"),
        ("consecutive_gateway_failure", "consecutiveGatewayErrors"),
        ("consecutive_local_origin_failure", "consecutiveLocalOriginFailures"),
    ):
        value = fields.number(name)
        if value:
            made[ours] = value
        if value is not None:
            made[f"enforcing_{ours}"] = 100 if value else 0
    for ours, name in (("interval", "interval"), ("base_ejection_time", "baseEjectionTime")):
        if length := fields.seconds(name):
            if length == "0s":
                fields.refuse("is no length of time", name)
            else:
                made[ours] = length
    share = fields.number("maxEjectionPercent", 0, 100)
    if share is not None:
        made["max_ejection_percent"] = share
    split = fields.flag("splitExternalLocalOriginErrors")
    if split is not None:
        made["split_external_local_origin_errors"] = split
    if fields.number("minHealthPercent", 0, 100):
        fields.warn("means nothing here", "minHealthPercent")
    fields.rest()
    return made
