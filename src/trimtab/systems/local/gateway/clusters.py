"""Clusters: where a Service's port, or a subset of it, sends requests, with the endpoints that answer for it.

Endpoints are told with their cluster: each file that Envoy follows takes one of the few inotify instances that the kernel
gives a user, so there must not be one for each cluster. A cluster that changes is replaced without a gap, and its counters go on.
"""

from __future__ import annotations

from typing import Any

from trimtab.systems.local.gateway import names
from trimtab.systems.local.gateway.names import Key
from trimtab.systems.local.gateway.world import Endpoint, Port

Document = dict[str, Any]

CLUSTER = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
IDLE = "1s"
"""Shorter than any server keeps a connection open that nobody uses: who closes first must be us, or a request may meet
the other's farewell. To connect anew costs nothing on one machine."""
UNLIMITED = 2**32 - 1
CONNECT = "2s"


def cluster(
    service: Key, port: Port, subset: str, workload: str, settings: Document, endpoints: tuple[Endpoint, ...]
) -> Document:
    """`settings` are those of a DestinationRule."""
    name = names.cluster(service, port.number, subset)
    http = settings.get("http") or {}
    limits = dict.fromkeys(("max_connections", "max_pending_requests", "max_requests", "max_retries"), UNLIMITED)
    made: Document = {
        "@type": CLUSTER,
        "name": name,
        "alt_stat_name": names.counted_as(service.namespace, workload, service.name),
        "type": "STATIC",
        "load_assignment": _assignment(name, endpoints),
        "connect_timeout": settings.get("connect_timeout") or CONNECT,
        "lb_policy": settings.get("lb_policy") or "LEAST_REQUEST",
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
        "circuit_breakers": {"thresholds": [{**limits, **(settings.get("limits") or {})}]},
    }
    if "outlier_detection" in settings:
        made["outlier_detection"] = settings["outlier_detection"]
    if port.protocol != "tcp":
        http2: Document = {"max_concurrent_streams": http["streams"]} if "streams" in http else {}
        chosen: Document = {
            "use_downstream_protocol_config": {"http_protocol_options": {}, "http2_protocol_options": http2}
        }
        if port.protocol == "http2" or http.get("http2"):
            chosen = {"explicit_http_config": {"http2_protocol_options": http2}}
        elif port.protocol == "http":
            chosen = {"explicit_http_config": {"http_protocol_options": {}}}
        common = {"idle_timeout": IDLE, **(http.get("common") or {})}
        made["typed_extension_protocol_options"] = {
            OPTIONS: {"@type": f"type.googleapis.com/{OPTIONS}", "common_http_protocol_options": common, **chosen}
        }
    return made


def _assignment(name: str, endpoints: tuple[Endpoint, ...]) -> Document:
    """Who answers for a cluster. Nobody: then requests get 503."""
    hosts = [
        {"endpoint": {"address": {"socket_address": {"address": each.address, "port_value": each.port}}}}
        for each in endpoints
    ]
    return {"cluster_name": name, "endpoints": [{"lb_endpoints": hosts}] if hosts else []}


def source(path: str) -> Document:
    """A file that Envoy follows. The path is relative to where Envoy was started; a rename onto it is what it sees."""
    return {"resource_api_version": "V3", "path_config_source": {"path": path}}
