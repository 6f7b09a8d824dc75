"""Get and list. Stored bytes go out as they are; a list is one join of them, at one revision."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from trimtab.model.errors import StatusError, bad_request, expired, not_found
from trimtab.model.selectors import FieldSelector
from trimtab.server import tables
from trimtab.server.backend import VersionedBackend
from trimtab.server.http import Request, Response, Stream
from trimtab.server.negotiate import As, Form
from trimtab.server.options import ListOptions, list_options, revision_of
from trimtab.server.registry import Served
from trimtab.server.target import Target
from trimtab.store.contract import Gone, Key, NotYet, Page, Query, Revision

if TYPE_CHECKING:
    from trimtab.server.core import Server

CHUNK, PIECE = 500, 100  # of a streamed list: read at once, sent at once
NEWEST = -1  # in a continue token: go on with the newest state, since the old one is gone
PATIENCE = 3.0  # seconds that a read waits for a revision that is not there yet


class _Continue(msgspec.Struct):
    rv: int
    start: tuple[str, str]
    v: str = "meta.k8s.io/v1"


async def get(server: Server, request: Request, served: Served, target: Target, form: Form) -> Response:
    wanted = request.query.get("resourceVersion")
    if wanted:
        await reach(served, revision_of(wanted))
    key, version = served.key(target.namespace, target.name), request.query.get("version", "")
    if version and isinstance(served.backend, VersionedBackend):
        entry = await served.backend.published(key, version)
    else:
        entry = await served.backend.get(key)
    if entry is None:
        raise not_found(served.kind.plural, served.kind.group, target.name)
    return Response(body=served.rendered(entry))


async def list_(server: Server, request: Request, served: Served, target: Target, form: Form) -> Response | Stream:
    options = list_options(request.query)
    if form.plain and options.limit <= 0 and not options.continue_token:
        return await _whole_list(served, target, options)
    page = await fetch(served, target, options)
    values = [served.item(entry) for entry in page.entries]
    meta = list_meta(served, page, padded=form.as_ is As.OBJECT)
    if form.as_ is As.TABLE:
        include = tables.include_object(request.query.get("includeObject"))
        whole = [served.rendered(entry) for entry in page.entries]
        return Response(body=tables.table(served, whole, meta, include, form.version, server.clock))
    kind, api_version = served.kind.list_kind, served.kind.api_version
    if form.as_ is As.METADATA:
        if not form.list_:
            why = "you requested PartialObjectMetadata, but the requested object is a list"
            raise StatusError(406, "NotAcceptable", why)
        kind, api_version = "PartialObjectMetadataList", f"meta.k8s.io/{form.version}"
        values = [tables.metadata_only(value, form.version) for value in values]
    return Response(body=list_body(kind, api_version, meta, values))


async def _whole_list(served: Served, target: Target, options: ListOptions) -> Response | Stream:
    """Everything, in one piece when it is little, else streamed in chunks: neither memory nor the loop is held long."""
    page = await fetch(served, target, options, CHUNK)
    kind, api_version = served.kind.list_kind, served.kind.api_version
    if page.after is None:
        values = [served.item(entry) for entry in page.entries]
        return Response(body=list_body(kind, api_version, list_meta(served, page), values))
    return Stream(frames=_chunks(served, target, options, page))


async def _chunks(served: Served, target: Target, options: ListOptions, page: Page) -> AsyncIterator[bytes]:
    """The same list, page by page of one revision."""
    whole = Page(revision=page.revision, entries=[])
    lead = list_body(served.kind.list_kind, served.kind.api_version, list_meta(served, whole), []).removesuffix(b"]}\n")
    while True:
        values = [served.item(entry) for entry in page.entries]
        for start in range(0, len(values), PIECE):
            yield lead + b",".join(values[start : start + PIECE])
            lead = b","
        if page.after is None:
            yield b"]}\n"
            return
        query = _query(served, target, options, limit=CHUNK, after=page.after, revision=page.revision, counted=False)
        page = await served.backend.list(query)


def list_meta(served: Served, page: Page, *, padded: bool = True) -> dict[str, Any]:
    """`padded`: lists of custom resources have an empty continue where others have none."""
    meta: dict[str, Any] = {"resourceVersion": str(page.revision)}
    if not served.strategy.native and padded:
        meta["continue"] = ""
    if page.after is not None:
        meta["continue"] = _token(page.revision, page.after)
        if page.remaining is not None:
            meta["remainingItemCount"] = page.remaining
    return meta


def list_body(kind: str, api_version: str, meta: dict[str, Any], values: list[bytes]) -> bytes:
    head = f'{{"kind":"{kind}","apiVersion":"{api_version}","metadata":'.encode() + orjson.dumps(meta)
    if not values:
        return head + b',"items":[]}\n'
    values[0] = head + b',"items":[' + values[0]
    values[-1] += b"]}\n"
    return b",".join(values)  # one copy, whatever the size


async def fetch(served: Served, target: Target, options: ListOptions, chunk: int | None = None) -> Page:
    """The page that the options ask for, by the rules of resourceVersion and continue. `chunk` cuts it short."""
    check_selectable(served, options)
    revision: Revision | None = None
    after: Key | None = None
    limit: int | None = options.limit if options.limit > 0 else None
    if options.resource_version == "0" and not options.continue_token:
        limit = None  # any state will do: the real server answers from its cache, which does not chunk
    if options.continue_token:
        token = _parse_token(options.continue_token)
        if options.resource_version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        after = Key(served.strategy.storage, *token.start)
        revision = None if token.rv == NEWEST else token.rv
    elif options.resource_version and options.resource_version != "0":
        wanted = revision_of(options.resource_version)
        await reach(served, wanted)
        if options.match == "Exact" or (limit and not options.match):
            revision = wanted
    counted = chunk is None
    query = _query(served, target, options, limit=limit or chunk, after=after, revision=revision, counted=counted)
    try:
        return await served.backend.list(query)
    except Gone:
        if after is not None:
            raise _expired_token(after) from None
        raise expired("The resourceVersion for the provided list is too old.") from None
    except NotYet:
        if after is None:
            raise
        raise bad_request("invalid continue token: its revision is still to come") from None


def _query(
    served: Served,
    target: Target,
    options: ListOptions,
    *,
    limit: int | None,
    after: Key | None,
    revision: Revision | None,
    counted: bool,
) -> Query:
    return Query(
        resource=served.strategy.storage,
        namespace=target.namespace or None,
        name=target.name or (options.fields.exact("metadata.name") if options.fields is not None else None) or None,
        labels=options.labels,
        fields=stored_fields(served, options),
        limit=limit,
        after=after,
        revision=revision,
        counted=counted,
    )


def check_selectable(served: Served, options: ListOptions) -> None:
    if options.fields is None:
        return
    extra = served.strategy.selectable
    for requirement in options.fields.requirements:
        if requirement.field in ("metadata.name", "metadata.namespace", *extra):
            continue
        if served.strategy.native and not extra:
            known = 'only "metadata.name", "metadata.namespace"'
            raise bad_request(f'"{requirement.field}" is not a known field selector: {known}')
        raise bad_request(served.strategy.unselectable.format(requirement.field))


def stored_fields(served: Served, options: ListOptions) -> FieldSelector | None:
    """The field selector in the names under which fields are stored."""
    selectable = served.strategy.selectable
    if options.fields is None or all(stored == asked for asked, stored in selectable.items()):
        return options.fields
    renamed = [
        wanted._replace(field=selectable.get(wanted.field, wanted.field)) for wanted in options.fields.requirements
    ]
    return FieldSelector(tuple(renamed))


async def reach(served: Served, wanted: Revision) -> None:
    """Wait a little for a revision that the store has not seen; a client may come from a newer past."""
    backend = served.backend
    if wanted <= backend.revision:
        return
    try:
        async with asyncio.timeout(PATIENCE):
            query = Query(resource=served.strategy.storage)
            async with aclosing(backend.watch(query, backend.revision, heartbeat=0.2)) as batches:
                async for batch in batches:
                    if max(batch.revision, backend.revision) >= wanted:
                        return
    except TimeoutError:
        pass
    message = f"Too large resource version: {wanted}, current: {backend.revision}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    raise StatusError(504, "Timeout", f"Timeout: {message}", {"causes": causes, "retryAfterSeconds": 1})


def _token(revision: Revision, after: Key) -> str:
    raw = msgspec.json.encode(_Continue(revision, (after.namespace, after.name)))
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _parse_token(text: str) -> _Continue:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(raw, type=_Continue)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise bad_request("invalid continue token: continue key is not valid") from None


def _expired_token(after: Key) -> StatusError:
    error = expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
        "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
        "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
        "deleted between the time the first chunk was returned and now may show up in the list."
    )
    error.metadata = {"continue": _token(NEWEST, after)}
    return error
