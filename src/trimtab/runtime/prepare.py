"""Bring what systems need to a server: the namespace, their kinds, their accounts and rights. Again and again is fine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Query
from trimtab.model.crd import crds
from trimtab.model.errors import StatusError
from trimtab.model.resource import Resource
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.apply import apply
from trimtab.runtime.rights import grants, places
from trimtab.runtime.system import NAMESPACE, System

MANAGER = "trimtab-install"
PATIENCE = 60.0
DEFINITION = Named("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def documents(
    systems: Sequence[System], scheme: Scheme, *, manage: bool = False, hub: bool = True, suffixes: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """In the order in which they can be applied. With `manage` the systems may define kinds; without a `hub` its kinds
    are defined, too, and with one `suffixes` are further ones of its groups."""
    names = dict.fromkeys((NAMESPACE, *(place for system in systems for place in places(system))))
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
    return [
        *namespaces,
        *definitions(systems, scheme),
        *(() if hub else hub_definitions(systems, scheme)),
        *(grant for system in systems for grant in grants(system, scheme, manage=manage, suffixes=suffixes)),
    ]


def definitions(systems: Sequence[System], scheme: Scheme) -> list[dict[str, Any]]:
    """Of the systems' kinds. Those that have convertors name the system's own Service for the conversion: the embedded
    server knows it, and calls the convertors itself."""
    own = Scheme(scheme.suffix)
    homes: dict[tuple[str, str], str] = {}
    for system in systems:
        for kind in system.classes:
            own.register(kind)
        for convertor in system.convertors:
            own.convert_by(convertor)
            hub = own.kind_of(convertor.hub)
            homes[hub.group, hub.kind] = system.name
    return crds(own, lambda hub: conversion_at(homes[hub.group, hub.kind]))


def conversion_at(system: str) -> dict[str, Any]:
    """The `spec.conversion` of kinds that a system converts."""
    from trimtab.runtime.webhooks.manifest import Service, conversion  # few systems have several versions

    return conversion(Service(namespace=NAMESPACE, name=system))


def hub_definitions(systems: Sequence[System], scheme: Scheme) -> list[dict[str, Any]]:
    """Of the hub's kinds, for a server beside which there is no hub."""
    return _defined([kind.cls for system in systems for kind in system.hub], scheme)


def borrowed_definitions(systems: Sequence[System], scheme: Scheme) -> list[dict[str, Any]]:
    """Of the kinds of others that systems drive, for a server where those others are not."""
    return _defined(_borrowed(systems), scheme)


async def prepare(
    client: ApiClient,
    systems: Sequence[System],
    *,
    rights: bool = True,
    manage: bool = False,
    borrowed: bool = False,
    suffixes: Sequence[str] = (),
) -> None:
    """Apply it all, or without `rights` the kinds only, and wait until those are served. With `borrowed` also kinds of
    others, each unless somebody else has defined it here. The hub's kinds are defined where no hub serves them; `suffixes`
    are those that a hub serves them under, beside the scheme's own."""
    scheme = client.scheme
    kinds = dict.fromkeys(kind for system in systems for kind in (*system.classes, *(hub.cls for hub in system.hub)))
    for kind in _borrowed(systems) if borrowed else ():
        (definition,) = _defined([kind], scheme)
        if not await _of_others(client, definition["metadata"]["name"]):
            await apply(client, Untyped(definition), manager=MANAGER, force=True)
            kinds[kind] = None
    wanted = documents(systems, scheme, manage=manage, suffixes=suffixes) if rights else definitions(systems, scheme)
    for document in wanted:
        await apply(client, Untyped(document), manager=MANAGER, force=True)
    for definition in hub_definitions(systems, scheme):
        if not await _is_served(client, definition):
            await apply(client, Untyped(definition), manager=MANAGER, force=True)
    hubs = {hub.cls for system in systems for hub in system.hub}
    async with asyncio.timeout(PATIENCE):
        for kind in kinds:
            await _served(client, kind, away=kind in hubs)


def _defined(kinds: Iterable[type[Resource]], scheme: Scheme) -> list[dict[str, Any]]:
    own = Scheme(scheme.suffix)
    for kind in dict.fromkeys(kinds):
        own.register(kind)
    return crds(own)


def _borrowed(systems: Sequence[System]) -> list[type[Resource]]:
    """Each once, and none that one of the systems has as its own."""
    own = {kind for system in systems for kind in system.kinds}
    return [kind for kind in dict.fromkeys(kind for system in systems for kind in system.borrowed) if kind not in own]


async def _of_others(client: ApiClient, name: str) -> bool:
    """Whether there is a definition of this name that we did not bring: nobody applied it as we do."""
    try:
        found = await client.get(DEFINITION, name)
    except StatusError as error:
        if error.code != 404:
            raise
        return False
    held = found.metadata.managed_fields or ()
    return not any(entry.manager == MANAGER for entry in held)


async def _is_served(client: ApiClient, definition: dict[str, Any]) -> bool:
    """Whether others than a definition of ours serve the kind."""
    spec = definition["spec"]
    try:
        await client.get(DEFINITION, definition["metadata"]["name"])
        return False
    except StatusError as error:
        if error.code != 404:
            raise
    kind = Named(f"{spec['group']}/{spec['versions'][0]['name']}", spec["names"]["kind"])
    try:
        await client.list(kind, Query(metadata_only=True, fields="metadata.name=none"))
    except StatusError as error:
        if error.code == 429 or error.code >= 500:
            return True  # somebody does, whose service is away, busy or broken: it holds up nobody else
        if error.code != 404:
            raise
        return False
    return True


async def _served(client: ApiClient, kind: type[Resource], *, away: bool = False) -> None:
    """Returns when it is. `away`: also when the service that holds it does not answer now, or not well."""
    while True:
        try:
            await client.list(kind, Query(metadata_only=True, fields="metadata.name=none"))
        except StatusError as error:
            if away and error.code >= 500:
                return
            if error.code not in (404, 429, 503):
                raise
        else:
            return
        await asyncio.sleep(0.05)  # the server says by no watch when it serves a new kind
