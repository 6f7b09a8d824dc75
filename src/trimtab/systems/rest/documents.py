"""The OpenAPI documents of services: fetched when they are asked for, and again when that is due; kept in memory only."""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import Any

import msgspec

from trimtab.client.protocol import Client
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.runtime.objects import uncached
from trimtab.runtime.outbound import OutboundError
from trimtab.systems.rest.kinds import RestService
from trimtab.systems.rest.openapi.document import Document
from trimtab.systems.rest.openapi.errors import DocumentError
from trimtab.systems.rest.openapi.loading import from_url, load

LOOK_EVERY = 60.0
"""Seconds between looks at a ConfigMap: nobody needs the right to watch them all."""
LEAST = 1.0
"""Seconds between fetches of a URL, whatever its service says."""
INLINE = "openapi"


class NoDocument(Exception):  # noqa: N818 - it reads as what happened
    """It cannot be had, or is none. `transient`: it may be there later without a change of the service."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class Documents:
    """By service."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, _Kept] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def of(self, service: RestService, client: Client) -> Document:
        """The document of a service, not older than it may be. Raises NoDocument."""
        async with self._locks.setdefault(service.name, asyncio.Lock()):
            known = self._kept.get(service.name)
            generation = (service.metadata.uid or "", service.metadata.generation or 0)
            if known is not None and known.of == generation and self._clock.monotonic() < known.until:
                return known.document
            try:
                document = await _loaded(service, client)
            except NoDocument as error:
                if error.transient and known is not None and known.of == generation:
                    return known.document
                raise
            self._kept[service.name] = _Kept(document, generation, self._clock.monotonic() + look_every(service))
            return document

    def forget(self, name: str) -> None:
        self._kept.pop(name, None)
        self._locks.pop(name, None)


def look_every(service: RestService) -> float:
    """Seconds after which a document may be another."""
    given = service.spec.document
    if given.url:
        return max(LEAST, given.refresh.seconds)
    return LOOK_EVERY if given.config_map else float("inf")


class _Kept(msgspec.Struct, frozen=True):
    document: Document
    of: tuple[str, int]
    until: float


async def _loaded(service: RestService, client: Client) -> Document:
    given = service.spec.document
    try:
        if given.inline:
            return await asyncio.to_thread(load, {INLINE: given.inline.encode()}, INLINE)
        if given.url:
            from trimtab.runtime.outbound import Outbound

            async with Outbound() as outbound:
                return await from_url(outbound, given.url)
        assert given.config_map  # noqa: S101 - the schema wants one of the three
        files = await _files(given.config_map, client)
        return await asyncio.to_thread(load, files, given.config_map.key)
    except DocumentError as error:
        raise NoDocument(str(error)) from None
    except OutboundError as error:
        raise NoDocument(str(error), transient=True) from None


async def _files(named: Any, client: Client) -> dict[str, bytes]:
    where = f"ConfigMap {named.namespace}/{named.name}"
    try:
        found = await uncached(client).get(ConfigMap, named.name, named.namespace)
    except StatusError as error:
        if error.code == 404:
            raise NoDocument(f"{where} does not exist: create it, or correct spec.document.configMap") from None
        raise
    raw: Any = found.raw or {}
    raw = msgspec.json.decode(raw) if isinstance(raw, bytes) else raw
    files = {name: text.encode() for name, text in (raw.get("data") or {}).items()}
    try:
        files |= {name: base64.b64decode(text) for name, text in (raw.get("binaryData") or {}).items()}
    except binascii.Error:
        raise NoDocument(f"{where} has binaryData that is no base64") from None
    if named.key not in files:
        there = ", ".join(sorted(files)) or "none"
        raise NoDocument(f"{where} has no key {named.key!r}; it has: {there}")
    return files
