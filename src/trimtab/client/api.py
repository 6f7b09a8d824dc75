"""The client for any Kubernetes API: objects to calls and answers to objects, over whatever carries them."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, overload
from urllib.parse import quote

import msgspec
import orjson

from trimtab.client.chunks import chunks
from trimtab.client.paths import Place, place_of
from trimtab.client.protocol import AnyKind, Event, EventType, Listing, Named, Object, Preconditions, Query, R, Ref
from trimtab.client.transport import Call, Transport, document_of
from trimtab.model.document import merge_diff, patch_between, read
from trimtab.model.errors import StatusError
from trimtab.model.kind import Kind
from trimtab.model.resource import Resource
from trimtab.model.scheme import Scheme, Untyped

CHUNK = 500
INACTIVITY = 150.0  # servers send a bookmark a minute; longer silence is a dead connection
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
PARTIAL = "application/json;as=PartialObjectMetadata{list};g=meta.k8s.io;v=v1,application/json"


class ApiClient:
    """Fulfils the `Client` protocol over a transport."""

    def __init__(
        self,
        transport: Transport,
        scheme: Scheme | None = None,
        *,
        namespace: str = "default",
        inactivity: float = INACTIVITY,
    ) -> None:
        """`namespace` is where an object lives that does not say."""
        self.transport = transport
        self.scheme = scheme or Scheme()
        self.namespace = namespace
        self.inactivity = inactivity
        self._places: dict[Named | type[Resource], Place] = {}

    @overload
    async def get(self, kind: type[R], name: str, namespace: str = "") -> R: ...
    @overload
    async def get(self, kind: AnyKind, name: str, namespace: str = "") -> Any: ...

    async def get(self, kind: AnyKind, name: str, namespace: str = "") -> Any:
        place = await self.place(kind)
        path = place.path(namespace or self.namespace, name)
        reply = await self.transport.call(Call(method="GET", path=path))
        return self._made(reply.body, kind if isinstance(kind, type) else None)

    @overload
    async def list(self, kind: type[R], query: Query = ...) -> Listing[R]: ...
    @overload
    async def list(self, kind: AnyKind, query: Query = ...) -> Listing[Any]: ...

    async def list(self, kind: AnyKind, query: Query = Query()) -> Listing[Any]:  # noqa: B008 - frozen
        """Everything, read in chunks of one revision; at once, when that revision is gone before the last chunk."""
        try:
            return await self._list(kind, query, CHUNK)
        except StatusError as error:
            if error.code != 410:
                raise
            return await self._list(kind, query, 0)

    async def _list(self, kind: AnyKind, query: Query, limit: int) -> Listing[Any]:
        place = await self.place(kind)
        parameters = selectors(query)
        if limit:
            parameters["limit"] = str(limit)
        accept = PARTIAL.format(list="List") if query.metadata_only else "application/json"
        call = Call(method="GET", path=place.path(query.namespace), query=parameters, accept=accept)
        items: list[Any] = []
        revision = ""
        async with aclosing(chunks(self.transport, call)) as found:
            async for chunk in found:
                for item in chunk.items:
                    item.setdefault("apiVersion", place.api_version)
                    item.setdefault("kind", place.kind)
                    items.append(self._seen(item, query))
                revision = chunk.revision
        return Listing(items, revision)

    @overload
    def watch(self, kind: type[R], query: Query, since: str) -> AsyncGenerator[Event[R], None]: ...
    @overload
    def watch(self, kind: AnyKind, query: Query, since: str) -> AsyncGenerator[Event[Any], None]: ...

    async def watch(self, kind: AnyKind, query: Query, since: str) -> AsyncGenerator[Event[Any], None]:
        """Changes after `since`, until the server ends the watch. Raises StatusError (410 Expired: list again)."""
        place = await self.place(kind)
        parameters = {
            **selectors(query),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": since,
            "timeoutSeconds": str(random.randint(300, 600)),  # noqa: S311 - spreads reconnections
        }
        accept = PARTIAL.format(list="") if query.metadata_only else "application/json"
        call = Call(method="GET", path=place.path(query.namespace), query=parameters, accept=accept)
        lines = self.transport.stream(call, self.inactivity)
        try:
            async for line in lines:
                yield self._event(line, query)
        finally:
            await lines.aclose()

    def _event(self, line: bytes, query: Query) -> Event[Any]:
        document = document_of(line)
        try:
            kind, found = document["type"], document["object"]
            if kind == "ERROR":
                raise StatusError.from_status(found, 500)
            revision = found["metadata"]["resourceVersion"]
            event = EventType(kind)
        except (KeyError, TypeError, ValueError):
            raise StatusError(500, "InternalError", "the server's event is of another shape") from None
        return Event(event, revision, None if event is EventType.BOOKMARK else self._seen(found, query))

    def _seen(self, document: dict[str, Any], query: Query) -> Object:
        """One of many: a document that does not fit its class must not hide the others, so it comes as it is."""
        if query.metadata_only:
            return Untyped(document)
        try:
            return self.scheme.decode(document)
        except msgspec.ValidationError:
            return Untyped(document)

    @overload
    async def create(self, obj: R, *, dry_run: bool = False) -> R: ...
    @overload
    async def create(self, obj: Object, *, dry_run: bool = False) -> Any: ...

    async def create(self, obj: Object, *, dry_run: bool = False) -> Any:
        place, document = await self._placed(obj)
        path = place.path(self._namespace(document))
        return await self._write("POST", path, document, "application/json", dry_run)

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
        place, document = await self._placed(partial)
        document = {**document, "metadata": {k: v for k, v in document["metadata"].items() if k != "managedFields"}}
        path = place.path(self._namespace(document), document["metadata"]["name"], subresource)
        query = {"fieldManager": manager, **({"force": "true"} if force else {})}
        return await self._write("PATCH", path, document, APPLY, dry_run, query)

    @overload
    async def patch(self, old: R, new: R, *, subresource: str = "", dry_run: bool = False) -> R: ...
    @overload
    async def patch(self, old: Object, new: Object, *, subresource: str = "", dry_run: bool = False) -> Any: ...

    async def patch(self, old: Object, new: Object, *, subresource: str = "", dry_run: bool = False) -> Any:
        """Send what changed from `old` to `new`; 409 when `old` is no longer what is there. Nothing changed: `old`."""
        if isinstance(old, Resource) and isinstance(new, Resource):
            change, place = patch_between(old, new), self._place(type(old))
        else:
            change = merge_diff(self.scheme.document(old), self.scheme.document(new))
            place = await self.place(Named(old.api_version, old.kind))
        if not change:
            return old
        revision = old.metadata.resource_version
        if revision:
            change = {**change, "metadata": {**change.get("metadata", {}), "resourceVersion": revision}}
        path = place.path(old.namespace or self.namespace, old.name, subresource)
        return await self._write("PATCH", path, change, MERGE, dry_run)

    async def delete(
        self, ref: Ref, *, preconditions: Preconditions | None = None, propagation: str = "", dry_run: bool = False
    ) -> Object | None:
        place = await self.place(ref.kind)
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if preconditions is not None:
            asked = {"uid": preconditions.uid, "resourceVersion": preconditions.resource_version}
            options["preconditions"] = {name: value for name, value in asked.items() if value is not None}
        if propagation:
            options["propagationPolicy"] = propagation
        if dry_run:
            options["dryRun"] = ["All"]
        path = place.path(ref.namespace or self.namespace, ref.name)
        reply = await self.transport.call(Call(method="DELETE", path=path, body=orjson.dumps(options)))
        return self._made(reply.body) if remains(document_of(reply.body)) else None

    async def close(self) -> None:
        await self.transport.close()

    async def _write(
        self, method: str, path: str, document: Any, media: str, dry_run: bool, query: dict[str, str] | None = None
    ) -> Any:
        query = {**(query or {}), **({"dryRun": "All"} if dry_run else {})}
        call = Call(method=method, path=path, query=query, body=orjson.dumps(document), content_type=media)
        return self._made((await self.transport.call(call)).body)

    def _made(self, body: bytes, cls: type[Resource] | None = None) -> Object:
        """As the class that was asked for; else as the scheme knows it."""
        try:
            return self.scheme.decode(body) if cls is None else read(body, cls)
        except msgspec.DecodeError as error:
            document_of(body)  # says it better when it is no object at all
            raise StatusError(500, "InternalError", f"the server's object is of another shape: {error}") from error

    async def _placed(self, obj: Object) -> tuple[Place, dict[str, Any]]:
        if isinstance(obj, Resource):
            return self._place(type(obj)), self.scheme.document(obj)
        return await self.place(Named(obj.api_version, obj.kind)), obj.raw

    async def place(self, kind: AnyKind) -> Place:
        """Where a kind lives, by its class or by the server's own account."""
        if isinstance(kind, Kind):
            return place_of(kind)
        if isinstance(kind, type):
            return self._place(kind)
        place = self._places.get(kind)
        if place is None:
            known = self.scheme.kind(kind.api_version, kind.kind)
            place = self._places[kind] = place_of(known) if known else await self._discover(kind)
        return place

    def _place(self, cls: type[Resource]) -> Place:
        """A class that is used is one to decode into, registered before or not."""
        place = self._places.get(cls)
        if place is None:
            kind = self.scheme.kind_of(cls)
            if self.scheme.class_of(kind.api_version, kind.kind) is None:
                self.scheme.register(cls)
            place = self._places[cls] = place_of(kind)
        return place

    async def _discover(self, kind: Named) -> Place:
        prefix = "/apis/" if "/" in kind.api_version else "/api/"
        try:
            reply = await self.transport.call(Call(method="GET", path=prefix + quote(kind.api_version)))
            rows = document_of(reply.body).get("resources") or ()
        except StatusError as error:
            if error.code != 404:
                raise
            rows = ()
        for row in rows:
            if row["kind"] == kind.kind and "/" not in row["name"]:
                return Place(kind.api_version, kind.kind, row["name"], row["namespaced"])
        message = f'no matches for kind "{kind.kind}" in version "{kind.api_version}"'
        raise StatusError(404, "NotFound", message, {"kind": kind.kind})

    def _namespace(self, document: dict[str, Any]) -> str:
        return document["metadata"].get("namespace") or self.namespace


def remains(answer: dict[str, Any]) -> bool:
    """Whether a deletion left the object there: finalizers or a grace period hold it."""
    metadata = answer.get("metadata") or {}
    if answer.get("kind") == "Status" or not metadata.get("deletionTimestamp"):
        return False
    held = metadata.get("finalizers") or (answer.get("spec") or {}).get("finalizers")
    return bool(held or metadata.get("deletionGracePeriodSeconds"))


def selectors(query: Query) -> dict[str, str]:
    """The parameters of a query."""
    chosen = {"labelSelector": query.labels, "fieldSelector": query.fields}
    return {name: value for name, value in chosen.items() if value}
