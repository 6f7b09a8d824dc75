"""The trust bundle, in the documents that API servers read: webhook configurations, CustomResourceDefinitions, APIServices.

A publisher must not put an old bundle over a newer one, however long it sleeps between two calls. So the order is: `read`
the documents, then read the bundle, then `publish`, which the API refuses where a document changed since it was read.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from trimtab.client.protocol import Client, Named, Query
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped

Document = dict[str, Any]

VALIDATING = Named("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
MUTATING = Named("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration")
DEFINITION = Named("apiextensions.k8s.io/v1", "CustomResourceDefinition")
SERVICE = Named("apiregistration.k8s.io/v1", "APIService")


class Targets(msgspec.Struct, frozen=True, kw_only=True):
    """What carries our bundle, by name; and the validating configurations that `labels` selects, whoever makes them."""

    validating: tuple[str, ...] = ()
    mutating: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    labels: str = ""


async def read(client: Client, targets: Targets) -> list[Untyped]:
    """The documents that are there. Nobody calls us by one that is not."""
    wanted = [
        *((VALIDATING, name) for name in targets.validating),
        *((MUTATING, name) for name in targets.mutating),
        *((DEFINITION, name) for name in targets.definitions),
        *((SERVICE, name) for name in targets.services),
    ]
    found = []
    for kind, name in wanted:
        try:
            found.append(await client.get(kind, name))
        except StatusError as error:
            if error.code != 404:
                raise
    if targets.labels:
        listing = await client.list(VALIDATING, Query(labels=targets.labels))
        found += [document for document in listing.items if document.name not in targets.validating]
    return found


async def revision(client: Client, targets: Targets) -> str:
    """From when on `changed` can tell of what the labels select; "" when there are none."""
    if not targets.labels:
        return ""
    return (await client.list(VALIDATING, Query(labels=targets.labels, metadata_only=True))).revision


async def changed(client: Client, targets: Targets, since: str) -> bool:
    """Waits until one of them changes, or comes; False when the server told of none."""
    query = Query(labels=targets.labels, metadata_only=True)
    async with contextlib.aclosing(client.watch(VALIDATING, query, since)) as events:
        async for event in events:
            if event.object is not None:
                return True
    return False


def carried(documents: Sequence[Untyped], trusted: bytes) -> bool:
    """Whether every one of them has this bundle."""
    wanted = base64.b64encode(trusted).decode()
    return all(config.get("caBundle") == wanted for document in documents for config in _client_configs(document.raw))


async def publish(client: Client, documents: Sequence[Untyped], trusted: bytes) -> None:
    """Set the one field where it differs. StatusError 409 when a document changed since it was read. One that we may not
    write keeps nobody from its own: the error comes after the others."""
    wanted = base64.b64encode(trusted).decode()
    refused: StatusError | None = None
    for document in documents:
        changed: Document = msgspec.json.decode(msgspec.json.encode(document.raw))
        for config in _client_configs(changed):
            config["caBundle"] = wanted
        if changed == document.raw:
            continue
        try:
            await client.patch(document, Untyped(changed))
        except StatusError as error:
            if error.code != 403:
                raise
            refused = refused or error
    if refused is not None:
        raise refused


def _client_configs(document: Document) -> Iterator[Document]:
    for webhook in document.get("webhooks") or ():
        yield webhook["clientConfig"]
    if document.get("kind") == SERVICE.kind and document["spec"].get("service"):
        yield document["spec"]
    conversion = (document.get("spec") or {}).get("conversion") or {}
    if conversion.get("strategy") == "Webhook":
        yield conversion["webhook"]["clientConfig"]
