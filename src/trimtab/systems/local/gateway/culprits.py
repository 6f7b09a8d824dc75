"""Whose fault it is when Envoy refuses routes that several VirtualServices share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trimtab.systems.local.gateway.envoy.trial import complaint
from trimtab.systems.local.gateway.listeners import by_host
from trimtab.systems.local.gateway.names import Key
from trimtab.systems.local.gateway.translate import Config

Document = dict[str, Any]
UNKNOWN = "it gave no reason for these routes alone, only for all of them together"


async def culprits(
    config: Config, refused: Iterable[str], specs: Mapping[Key, Any], held: Mapping[Key, Any]
) -> dict[Key, str]:
    """Those whose routes Envoy does not take, with its words. Only one that has changed since it was good can be it; when
    each on its own is fine, all of those are."""
    owners = {place: key for key, places in config.carriers.items() for place in (*places, str(key))}
    suspects: dict[Key, Document] = {}
    for name in refused:
        for host in config.routes[name]["virtual_hosts"]:
            key = owners.get(host["name"])
            if key is not None and held.get(key) != specs[key]:
                suspects[key] = by_host("trial", [{**host, "domains": ["*"]}])
    found = {}
    for key, document in suspects.items():
        if words := await complaint(document):
            found[key] = words
    return found or dict.fromkeys(suspects, UNKNOWN)
