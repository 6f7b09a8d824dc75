"""The client that controllers have: reads come from the caches, writes go to the server and into the caches.

Guarantees: an informer answers for what its scope covers; everything else is asked of the server. A read sees the
writes made through this client. Objects are decoded on each read: nobody shares them.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator
from typing import Any, overload

import msgspec

from trimtab.client.api import ApiClient, remains
from trimtab.client.entries import Entry, entry
from trimtab.client.protocol import AnyKind, Client, Event, Listing, Named, Object, Preconditions, Query, R, Ref
from trimtab.model.errors import StatusError, not_found
from trimtab.model.resource import Resource
from trimtab.model.scheme import Scheme
from trimtab.model.selectors import FieldSelector, LabelSelector
from trimtab.runtime.changes import Request, head
from trimtab.runtime.echo import Writer, current
from trimtab.runtime.informers import Informer, Informers
from trimtab.runtime.objects import kind_of


class CachedClient:
    """Fulfils the `Client` protocol; `find` and `indexed` beside it. `writer` is who may write: a guarded client when
    only the leader may."""

    def __init__(
        self,
        client: ApiClient,
        informers: Informers,
        writer: Client | None = None,
        own: tuple[Named, Query] | None = None,
    ) -> None:
        self._client = client
        self._informers = informers
        self._writer: Client = writer or client
        self._own = own

    def within(self, kind: AnyKind, query: Query) -> CachedClient:
        """For a controller that follows a part of its kind: what is not in that part is not there. An object that loses
        its label is gone, for one who goes by the label."""
        return CachedClient(self._client, self._informers, self._writer, (self._informers.named(kind)[0], query))

    @property
    def scheme(self) -> Scheme:
        return self._client.scheme

    @property
    def live(self) -> Client:
        """For reads that must not come from a cache. A write through it is not seen before the watch tells it."""
        return self._writer

    @overload
    async def find(self, kind: type[R], name: str, namespace: str = "") -> R | None: ...
    @overload
    async def find(self, kind: AnyKind, name: str, namespace: str = "") -> Any: ...

    async def find(self, kind: AnyKind, name: str, namespace: str = "") -> Any:
        """The object, or None when it is not there."""
        place = await self._client.place(kind)
        request = Request((namespace or self._client.namespace) if place.namespaced else "", name)
        own = self._own is not None and self._informers.named(kind)[0] == self._own[0]
        for informer in self._informers.of(kind):
            if own and self._own is not None and informer.query != self._own[1]:
                continue
            found = informer.cache.get(request)
            if found is not None and not informer.query.metadata_only:
                return informer.cache.decode(found)
            if covers(informer.query, Query(namespace=request.namespace)) or (own and found is None):
                return None
        try:
            return await self._client.get(kind, name, namespace)
        except StatusError as error:
            if error.code != 404:
                raise
            return None

    @overload
    async def get(self, kind: type[R], name: str, namespace: str = "") -> R: ...
    @overload
    async def get(self, kind: AnyKind, name: str, namespace: str = "") -> Any: ...

    async def get(self, kind: AnyKind, name: str, namespace: str = "") -> Any:
        found = await self.find(kind, name, namespace)
        if found is None:
            place = await self._client.place(kind)
            group = place.api_version.rpartition("/")[0]
            raise not_found(place.plural, group, name)
        return found

    @overload
    async def list(self, kind: type[R], query: Query = ...) -> Listing[R]: ...
    @overload
    async def list(self, kind: AnyKind, query: Query = ...) -> Listing[Any]: ...

    async def list(self, kind: AnyKind, query: Query = Query()) -> Listing[Any]:  # noqa: B008 - frozen
        informer = self._covering(kind, query)
        if informer is None:
            return await self._client.list(kind, query)
        cache = informer.cache
        entries = cache.entries(query.namespace)
        if query.labels and query.labels != informer.query.labels:
            selector = LabelSelector.parse(query.labels)
            entries = (e for e in entries if selector.matches(head(e.body).labels or {}))
        if query.fields and query.fields != informer.query.fields:
            fields = FieldSelector.parse(query.fields)
            entries = (
                e for e in entries if fields.matches({"metadata.name": e.name, "metadata.namespace": e.namespace})
            )
        return Listing([cache.decode(e) for e in entries], cache.revision)

    @overload
    async def indexed(self, kind: type[R], index: str, value: str) -> builtins.list[R]: ...
    @overload
    async def indexed(self, kind: AnyKind, index: str, value: str) -> builtins.list[Any]: ...

    async def indexed(self, kind: AnyKind, index: str, value: str) -> builtins.list[Any]:
        """The objects that an index has under a value."""
        for informer in self._informers.of(kind):
            if informer.cache.has_index(index):
                found = (informer.cache.get(request) for request in informer.cache.indexed(index, value))
                return [informer.cache.decode(e) for e in found if e is not None]
        names = self._informers.named(kind)[0]
        raise LookupError(f'{names.kind} has no filled index "{index}"; a controller declares it in `indexes`')

    @overload
    def watch(self, kind: type[R], query: Query, since: str) -> AsyncGenerator[Event[R], None]: ...
    @overload
    def watch(self, kind: AnyKind, query: Query, since: str) -> AsyncGenerator[Event[Any], None]: ...

    def watch(self, kind: AnyKind, query: Query, since: str) -> AsyncGenerator[Event[Any], None]:
        return self._client.watch(kind, query, since)

    @overload
    async def create(self, obj: R, *, dry_run: bool = False) -> R: ...
    @overload
    async def create(self, obj: Object, *, dry_run: bool = False) -> Any: ...

    async def create(self, obj: Object, *, dry_run: bool = False) -> Any:
        return self._seen(await self._writer.create(obj, dry_run=dry_run), dry_run, current())

    @overload
    async def apply(
        self, partial: R, *, manager: str, force: bool = False, subresource: str = "", dry_run: bool = False
    ) -> R: ...
    @overload
    async def apply(
        self, partial: Object, *, manager: str, force: bool = False, subresource: str = "", dry_run: bool = False
    ) -> Any: ...

    async def apply(
        self, partial: Object, *, manager: str, force: bool = False, subresource: str = "", dry_run: bool = False
    ) -> Any:
        answer = await self._writer.apply(
            partial, manager=manager, force=force, subresource=subresource, dry_run=dry_run
        )
        return self._seen(answer, dry_run)

    @overload
    async def patch(self, old: R, new: R, *, subresource: str = "", dry_run: bool = False) -> R: ...
    @overload
    async def patch(self, old: Object, new: Object, *, subresource: str = "", dry_run: bool = False) -> Any: ...

    async def patch(self, old: Object, new: Object, *, subresource: str = "", dry_run: bool = False) -> Any:
        answer = await self._writer.patch(old, new, subresource=subresource, dry_run=dry_run)
        if answer is old:
            return old
        revision = old.metadata.resource_version  # with which it was sent: nobody wrote in between
        made = bool(revision) and revision != answer.metadata.resource_version
        return self._seen(answer, dry_run, current() if made else None)

    async def delete(
        self, ref: Ref, *, preconditions: Preconditions | None = None, propagation: str = "", dry_run: bool = False
    ) -> Object | None:
        place = await self._client.place(ref.kind)
        request = Request((ref.namespace or self._client.namespace) if place.namespaced else "", ref.name)
        # What is deleted is what was there before: when the answer comes, another one may have taken the name.
        meant = [(i.cache, i.cache.uid(request)) for i in self._informers.following(ref.kind)]
        left = await self._writer.delete(ref, preconditions=preconditions, propagation=propagation, dry_run=dry_run)
        if left is not None:
            self._seen(left, dry_run)
        elif not dry_run:
            for cache, uid in meant:
                cache.forget(request, uid)
        return left

    async def look(self, kind: AnyKind, name: str, namespace: str = "") -> None:
        """Bring an object into the caches as the server has it now: for when they may be behind a write of our own."""
        try:
            self._seen(await self._client.get(kind, name, namespace), False)
        except StatusError as error:
            if error.code != 404:  # the watch will tell that it is gone
                raise

    async def close(self) -> None:
        await self._client.close()

    def _covering(self, kind: AnyKind, query: Query) -> Informer | None:
        return next((i for i in self._informers.of(kind) if covers(i.query, query)), None)

    def _seen(self, obj: Any, dry_run: bool, writer: Writer | None = None) -> Any:
        """Lay the answer to a write over the caches, those too whose first list may be older than it. `writer` is who
        surely made this revision."""
        if dry_run:
            return obj
        informers = self._informers.following(kind_of(obj))
        if informers:
            written = _filed(obj)
            gone = b'"deletionTimestamp"' in written.body and not remains(msgspec.json.decode(written.body))
            for informer in informers:
                if gone:  # the last finalizer went
                    informer.cache.forget(Request(written.namespace, written.name), head(written.body).uid)
                else:
                    informer.cache.absorb(written, writer)
        return obj


def covers(scope: Query, asked: Query) -> bool:
    """Whether a cache with this scope has all that is asked for, and can tell it apart. Pure."""
    if scope.metadata_only and not asked.metadata_only:
        return False
    if scope.namespace not in ("", asked.namespace):
        return False
    if scope.labels not in ("", asked.labels) or scope.fields not in ("", asked.fields):
        return False
    if asked.fields in ("", scope.fields):
        return True
    return all(
        r.field in ("metadata.name", "metadata.namespace") for r in FieldSelector.parse(asked.fields).requirements
    )


def _filed(obj: Object) -> Entry:
    """The entry of an answer, without reading it again where it is read already."""
    body = _body(obj)
    if not isinstance(obj, Resource):
        return entry(body)
    metadata = obj.metadata
    return Entry(
        obj.namespace,
        obj.name,
        metadata.resource_version or "",
        body,
        metadata.generation or 0,
        bool(metadata.deletion_timestamp),
    )


def _body(obj: Object) -> bytes:
    if isinstance(obj, Resource):
        raw = obj.__dict__["_raw"]
        return raw if isinstance(raw, bytes) else msgspec.json.encode(raw)
    return msgspec.json.encode(obj.raw)
