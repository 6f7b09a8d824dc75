"""A namespace that ends takes with it what servers behind this one keep in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from trimtab.server.aggregation import told
from trimtab.server.aggregation.remote import OURSELVES, Remote, failures
from trimtab.server.aggregation.services import ApiService, GroupVersion
from trimtab.store.contract import Entry, Key

METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json"
PAGE = 500


async def empty(
    remote: Remote, services: Iterable[ApiService], listed: Mapping[GroupVersion, dict[str, Any]], namespace: str
) -> tuple[dict[str, list[Entry]], list[str]]:
    """Delete all of it. What is left, by kind; and the groups that could not be asked, of which nobody knows."""
    remaining: dict[str, list[Entry]] = {}
    unknown: list[str] = []
    for service in list(services):
        try:
            for resource in told.resources(listed.get(service.key, {}), *service.key):
                if resource["scope"] == "Namespaced" and {"deletecollection", "list"} <= set(resource["verbs"]):
                    kind = f"{resource['resource']}.{service.group}"
                    left = await _deleted(remote, service, resource["resource"], namespace)
                    if left:
                        remaining[kind] = left
            if not service.available:
                raise LookupError("it does not answer")
        except Exception as error:
            if not isinstance(error, (LookupError, ValueError, RecursionError, *failures())):
                raise
            unknown.append(f"{service.group}/{service.version}")
    return remaining, unknown


async def _deleted(remote: Remote, service: ApiService, plural: str, namespace: str) -> list[Entry]:
    path = f"{service.path}/namespaces/{namespace}/{plural}"
    if not await _left(remote, service, path):
        return []
    await remote.fetch(service, path, method="DELETE", user=OURSELVES)
    return await _left(remote, service, path)


async def _left(remote: Remote, service: ApiService, path: str) -> list[Entry]:
    body = await remote.fetch(service, f"{path}?limit={PAGE}", METADATA, user=OURSELVES)
    items = msgspec.json.decode(body, type=_List).items or []
    return [
        Entry(
            key=Key(path, "", item.metadata.name),
            revision=0,
            value=msgspec.json.encode(item),
            labels={},
            fields={},
            schema="",
        )
        for item in items
    ]


class _Metadata(msgspec.Struct):
    name: str
    finalizers: list[str] | None = None


class _Item(msgspec.Struct):
    metadata: _Metadata


class _List(msgspec.Struct):
    """Of a list of another server, what we look at. What has another form is a ValueError."""

    items: list[_Item] | None = None
