"""Where a Service is served: the ready addresses of its Endpoints, or the name that it stands for.

There is no network of Services here, so nobody is reached by a cluster IP; Endpoints say where a Service really is, whoever
writes them.
"""

from __future__ import annotations

from typing import Any

import orjson

from trimtab.store.contract import Key, Store

Address = tuple[str, int]


async def document(store: Store, resource: str, namespace: str, name: str) -> dict[str, Any] | None:
    entry = await store.get(Key(resource, namespace, name))
    if entry is None:
        return None
    found: dict[str, Any] = orjson.loads(entry.value)
    return found


async def addresses(store: Store, namespace: str, name: str, port: int) -> list[Address]:
    """All of them. LookupError, which says what is missing, when there is none."""
    service = await document(store, "services", namespace, name)
    if service is None:
        raise LookupError(f'service "{name}" not found')
    spec = service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return [(spec.get("externalName", ""), port)]
    wanted = next((each.get("name", "") for each in spec.get("ports") or () if each["port"] == port), None)
    if wanted is None:
        raise LookupError(f'no service port {port} found for service "{name}"')
    found = ready(await document(store, "endpoints", namespace, name), wanted)
    if not found:
        raise LookupError(f'no endpoints available for service "{name}"')
    return found


def ready(endpoints: dict[str, Any] | None, port_name: str) -> list[Address]:
    """The addresses at which a port is served now."""
    found: list[Address] = []
    for subset in (endpoints or {}).get("subsets") or ():
        port = next((each["port"] for each in subset.get("ports") or () if each.get("name", "") == port_name), None)
        if port is not None:
            found += [(address["ip"], port) for address in subset.get("addresses") or ()]
    return found
