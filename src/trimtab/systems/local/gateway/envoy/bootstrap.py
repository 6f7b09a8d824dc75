"""What Envoy is started with. Everything else it reads from the files that this names, relative to where it is started."""

from __future__ import annotations

from typing import Any

from trimtab.systems.local.gateway.clusters import source
from trimtab.systems.local.gateway.listeners import http
from trimtab.systems.local.gateway.names import TAGS

Document = dict[str, Any]

SOCKET = "admin.sock"
LISTENERS, CLUSTERS = "listeners/all.json", "clusters/all.json"
FLUSH = "0.5s"
"""How old a histogram may be when it is read; counters are always of now."""


def bootstrap() -> Document:
    return {
        "node": {"id": "trimtab", "cluster": "trimtab"},
        "admin": {"address": {"pipe": {"path": SOCKET, "mode": 0o600}}},
        "dynamic_resources": {"lds_config": source(LISTENERS), "cds_config": source(CLUSTERS)},
        "stats_config": {"stats_tags": [{"tag_name": name, "regex": regex} for name, regex in TAGS]},
        "stats_flush_interval": FLUSH,
        "layered_runtime": {
            "layers": [{"name": "fixed", "static_layer": {"re2.max_program_size.error_level": 100_000}}]
        },
    }


def trial(routes: Document) -> Document:
    """A whole configuration with these routes alone, to ask whether Envoy takes them. Their clusters need not be there."""
    listener = http("trial", "127.0.0.1", 1, "trial")
    del listener["@type"]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    del manager["rds"]
    manager["route_config"] = {**{k: v for k, v in routes.items() if k != "@type"}, "validate_clusters": False}
    whole = bootstrap()
    del whole["dynamic_resources"], whole["admin"]
    return {**whole, "static_resources": {"listeners": [listener]}}
