"""Which bytes rows of the storage service name. The service does not know what a body means, so digests are found by their
look: one too many keeps bytes for longer, and harms nobody."""

from __future__ import annotations

import re

import msgspec

from trimtab.hub.storage.contract import PROJECTS, RowKey, Storage

_DIGEST = re.compile(rb'"(sha256:[0-9a-f]{64})"')


def digests_in(body: object) -> set[str]:
    return {found.decode() for found in _DIGEST.findall(msgspec.json.encode(body))}


async def published_digests(storage: Storage, key: RowKey) -> set[str]:
    """Of all published versions of a resource."""
    return set().union(*(digests_in(snapshot.body) for snapshot in await storage.versions(key)))


async def row_key(storage: Storage, organization: str, type_: str, namespace: str, name: str) -> RowKey:
    """The row of an object. Where there is no such project there is no such row either."""
    project = ""
    if namespace:
        project = (await storage.ids(organization, PROJECTS, None, [namespace])).get(namespace, "")
    return RowKey(organization, type_, project, name)
