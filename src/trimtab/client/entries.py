"""Objects as the server sent them: bytes, with just enough read to file them. What caches live on.

A list is a `Snapshot`; a watch gives `Delta`s. A watch may begin with the whole state (a streamed list, KEP-3157): then
comes one delta for each object, and `INITIAL_END` when all were told.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from trimtab.client.api import CHUNK, PARTIAL, ApiClient, selectors
from trimtab.client.protocol import AnyKind, EventType, Query
from trimtab.client.transport import Call, document_of
from trimtab.model.errors import StatusError


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One object. Objects of lists lack apiVersion and kind where the server leaves them out."""

    namespace: str
    name: str
    revision: str
    body: bytes
    generation: int = 0
    deleting: bool = False


class Snapshot(msgspec.Struct, frozen=True):
    """Everything at one revision."""

    entries: list[Entry]
    revision: str


class Delta(msgspec.Struct, frozen=True, gc=False):
    """One change. A bookmark has no entry; `initial_end` marks the one that ends a streamed list."""

    type: EventType
    revision: str
    entry: Entry | None = None
    initial_end: bool = False


async def snapshot(client: ApiClient, kind: AnyKind, query: Query) -> Snapshot:
    """Read in chunks of one revision; at once, when that revision is gone before the last chunk."""
    try:
        return await _paged(client, kind, query, CHUNK)
    except StatusError as error:
        if error.code != 410:
            raise
        return await _paged(client, kind, query, 0)


async def deltas(
    client: ApiClient,
    kind: AnyKind,
    query: Query,
    since: str = "",
    *,
    initial: bool = False,
    chance: random.Random | None = None,
) -> AsyncGenerator[Delta, None]:
    """Changes after `since`, until the server ends the watch; with `initial`, of the whole state first. Raises
    StatusError: 410 means that the past is gone, 400 or 422 with `initial` that the server streams no lists."""
    place = await client.place(kind)
    parameters = {
        **selectors(query),
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": since,
        "timeoutSeconds": str((chance or _CHANCE).randint(300, 600)),
    }
    if initial:
        parameters |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    accept = PARTIAL.format(list="") if query.metadata_only else "application/json"
    call = Call(method="GET", path=place.path(query.namespace), query=parameters, accept=accept)
    lines = client.transport.stream(call, client.inactivity)
    try:
        async for line in lines:
            yield _delta(line)
    finally:
        await lines.aclose()


async def _paged(client: ApiClient, kind: AnyKind, query: Query, limit: int) -> Snapshot:
    place = await client.place(kind)
    accept = PARTIAL.format(list="List") if query.metadata_only else "application/json"
    entries: list[Entry] = []
    token = ""
    while True:
        parameters = selectors(query)
        if limit:
            parameters["limit"] = str(limit)
        if token:
            parameters["continue"] = token
        call = Call(method="GET", path=place.path(query.namespace), query=parameters, accept=accept)
        body = (await client.transport.call(call)).body
        try:
            page = _PAGE.decode(body)
            entries += [entry(bytes(item)) for item in page.items or ()]
        except msgspec.DecodeError as error:
            document_of(body)  # says it better when it is no object at all
            raise StatusError(500, "InternalError", f"the server's answer is no list: {error}") from None
        token = page.metadata.next
        if not token:
            return Snapshot(entries, page.metadata.resource_version)


def entry(body: bytes) -> Entry:
    """File an object by its own metadata. Raises msgspec.DecodeError."""
    found = _NAMED.decode(body).metadata
    return Entry(
        found.namespace,
        found.name,
        found.resource_version,
        body,
        found.generation,
        found.deletion_timestamp is not None,
    )


def _delta(line: bytes) -> Delta:
    try:
        for kind, start in _STARTS:  # as every server writes it: no need to read what is in between
            if line.startswith(start) and line.endswith(b"}"):
                found = entry(line[len(start) : -1])
                return Delta(kind, found.revision, found)
        read = _LINE.decode(line)
        if read.type == "ERROR":
            raise StatusError.from_status(msgspec.json.decode(read.object), 500)
        kind = EventType(read.type)
        if kind is EventType.BOOKMARK:
            marked = _MARKED.decode(read.object).metadata
            return Delta(kind, marked.resource_version, None, INITIAL_END in (marked.annotations or ()))
        found = entry(bytes(read.object))
    except (msgspec.DecodeError, ValueError, AttributeError):
        raise StatusError(500, "InternalError", "the server's event is of another shape") from None
    return Delta(kind, found.revision, found)


_STARTS = tuple(
    (kind, b'{"type":"%s","object":' % kind.value.encode())
    for kind in (EventType.ADDED, EventType.MODIFIED, EventType.DELETED)
)
INITIAL_END = "k8s.io/initial-events-end"
_CHANCE = random.Random()  # noqa: S311 - spreads reconnections


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str
    resource_version: str
    namespace: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None


class _Named(msgspec.Struct, gc=False):
    metadata: _Metadata


class _Mark(msgspec.Struct, rename="camel"):
    resource_version: str
    annotations: dict[str, Any] | None = None


class _Marked(msgspec.Struct):
    metadata: _Mark


class _Line(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class _ListMeta(msgspec.Struct, rename={"next": "continue", "resource_version": "resourceVersion"}):
    resource_version: str = ""
    next: str = ""


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


_NAMED = msgspec.json.Decoder(_Named)
_MARKED = msgspec.json.Decoder(_Marked)
_LINE = msgspec.json.Decoder(_Line)
_PAGE = msgspec.json.Decoder(_Page)
