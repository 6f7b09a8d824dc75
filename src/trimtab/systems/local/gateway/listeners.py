"""Listeners: a Service's port on its own address, and the ingress for all hosts. What they route comes in tables of its own,
so that a listener never changes while its Service does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.systems.local.gateway.clusters import source

Document = dict[str, Any]

TYPE = "type.googleapis.com/envoy.extensions.filters."
MUTATION = "type.googleapis.com/envoy.extensions.http.early_header_mutation.header_mutation"
LISTENER = "type.googleapis.com/envoy.config.listener.v3.Listener"
ROUTES = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"


ENTRY = "x-trimtab-entry"
"""The header that says at which listener a request came in, from there to the routes and no further. All Services share one
table of routes, told in one file: see `clusters` for why there must not be many."""


def file_of(name: str) -> str:
    """Where a table of routes is told."""
    return f"routes/{name}.json"


def http(name: str, address: str, port: int, table: str) -> Document:
    """`table` is that of its routes."""
    return _listener(name, address, port, filter_chains=[{"filters": [_manager(name, table)]}])


def tcp(name: str, address: str, port: int, clusters: Sequence[tuple[str, int]]) -> Document:
    return _listener(name, address, port, filter_chains=[{"filters": [_proxy(name, clusters)]}])


def sniffed(name: str, address: str, port: int, table: str, clusters: Sequence[tuple[str, int]]) -> Document:
    """For a port that does not say what it speaks: requests of HTTP are routed, everything else is carried as it is. Who
    waits to be spoken to first is carried after a short while."""
    return _listener(
        name,
        address,
        port,
        listener_filters=[
            {
                "name": "envoy.filters.listener.http_inspector",
                "typed_config": {"@type": f"{TYPE}listener.http_inspector.v3.HttpInspector"},
            }
        ],
        listener_filters_timeout="0.100s",
        continue_on_listener_filters_timeout=True,
        filter_chains=[
            {
                "filter_chain_match": {"application_protocols": ["http/1.0", "http/1.1", "h2c"]},
                "filters": [_manager(name, table)],
            }
        ],
        default_filter_chain={"filters": [_proxy(name, clusters)]},
    )


def by_host(name: str, hosts: list[Document]) -> Document:
    """A table of routes that goes by the Host header."""
    return {"@type": ROUTES, "name": name, "ignore_port_in_host_matching": True, "virtual_hosts": hosts}


def by_entry(name: str, hosts: list[Document]) -> Document:
    """A table of routes that goes by the listener."""
    return {
        "@type": ROUTES,
        "name": name,
        "vhost_header": ENTRY,
        "request_headers_to_remove": [ENTRY],
        "virtual_hosts": hosts,
    }


def _listener(name: str, address: str, port: int, **more: Any) -> Document:
    where = {"socket_address": {"address": address, "port_value": port}}
    return {"@type": LISTENER, "name": name, "address": where, "traffic_direction": "OUTBOUND", **more}


def _manager(name: str, table: str) -> Document:
    filters = [("cors", "cors.v3.Cors"), ("fault", "fault.v3.HTTPFault"), ("router", "router.v3.Router")]
    return {
        "name": "envoy.filters.network.http_connection_manager",
        "typed_config": {
            "@type": f"{TYPE}network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": name,
            "rds": {"route_config_name": table, "config_source": source(file_of(table))},
            "early_header_mutation_extensions": [
                {
                    "name": "envoy.http.early_header_mutation.header_mutation",
                    "typed_config": {
                        "@type": f"{MUTATION}.v3.HeaderMutation",
                        "mutations": [
                            {
                                "append": {
                                    "header": {"key": ENTRY, "value": name},
                                    "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
                                }
                            }
                        ],
                    },
                }
            ],
            "http_filters": [
                {"name": f"envoy.filters.http.{short}", "typed_config": {"@type": f"{TYPE}http.{kind}"}}
                for short, kind in filters
            ],
            "upgrade_configs": [{"upgrade_type": "websocket"}],
            "http_protocol_options": {"accept_http_10": True},
            "normalize_path": True,
            "server_header_transformation": "PASS_THROUGH",
        },
    }


def _proxy(name: str, clusters: Sequence[tuple[str, int]]) -> Document:
    weighted = [{"name": cluster, "weight": weight} for cluster, weight in clusters if weight]
    target: Document = (
        {"weighted_clusters": {"clusters": weighted}} if len(weighted) != 1 else {"cluster": weighted[0]["name"]}
    )
    return {
        "name": "envoy.filters.network.tcp_proxy",
        "typed_config": {"@type": f"{TYPE}network.tcp_proxy.v3.TcpProxy", "stat_prefix": name, **target},
    }
