"""What is there: the live objects that a plan needs, and no others. One list a kind where there are many, else gets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Query
from trimtab.model.errors import StatusError
from trimtab.systems.gitops.parsing import Identity

MANY = 8
"""So many objects of a kind are read by one list of their namespace."""
AT_ONCE = 16

Document = dict[str, Any]


class NotServed(Exception):  # noqa: N818 - it reads as what happened
    """A kind that we synced is not served any more: nobody can tell what is there, so nothing may be taken for gone."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"{kind} is not served any more: define it again, or take its documents away one by one")
        self.kind = kind


async def look(client: ApiClient, wanted: Mapping[Identity, str]) -> dict[Identity, Document]:
    """The live objects among `wanted`, which has each one's apiVersion. NotServed; StatusError."""
    groups: dict[tuple[str, str, str], list[Identity]] = {}
    for identity, version in wanted.items():
        groups.setdefault((version, identity.kind, identity.namespace), []).append(identity)
    found: dict[Identity, Document] = {}
    gate = asyncio.Semaphore(AT_ONCE)

    async def several(version: str, kind: str, namespace: str, identities: list[Identity]) -> None:
        async with gate:
            listed = await listed_of(client, version, kind, namespace)
        found.update((identity, listed[identity]) for identity in identities if identity in listed)

    async def single(version: str, identity: Identity) -> None:
        async with gate:
            live = await _get(client, version, identity)
        if live is not None:
            found[identity] = live

    try:
        async with asyncio.TaskGroup() as tasks:
            for (version, kind, namespace), identities in groups.items():
                if len(identities) >= MANY:
                    tasks.create_task(several(version, kind, namespace, identities))
                else:
                    for identity in identities:
                        tasks.create_task(single(version, identity))
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return found


async def listed_of(client: ApiClient, version: str, kind: str, namespace: str) -> dict[Identity, Document]:
    """All objects of a kind in a namespace; "" is all of the cluster."""
    try:
        listing = await client.list(Named(version, kind), Query(namespace=namespace))
    except StatusError as error:
        if error.code == 404:
            raise NotServed(f"{kind} of {version}") from None
        raise
    return dict(_identified(item.raw for item in listing.items))


async def _get(client: ApiClient, version: str, identity: Identity) -> Document | None:
    try:
        await client.place(Named(version, identity.kind))
    except StatusError as error:
        if error.code == 404:
            raise NotServed(f"{identity.kind} of {version}") from None
        raise
    try:
        live: Document = (await client.get(Named(version, identity.kind), identity.name, identity.namespace)).raw
    except StatusError as error:
        if error.code != 404:
            raise
        if not (error.details or {}).get("name"):  # it is not the object that is not there
            raise NotServed(f"{identity.kind} of {version}") from None
        return None
    return live


def _identified(documents: Iterable[Document]) -> Iterable[tuple[Identity, Document]]:
    for document in documents:
        metadata = document["metadata"]
        group = str(document["apiVersion"]).rpartition("/")[0]
        yield Identity(group, str(document["kind"]), metadata.get("namespace") or "", metadata["name"]), document
