"""The only door that a controller has to the API. In a cluster and embedded it is the same one.

Objects of kinds with a class come typed; others come as `Untyped`, which is its document, and so does one among many
that does not fit its class: it must not hide the others. A refusal is a `StatusError`;
when no answer came it is an OSError (`transport.Unreachable`) or a TimeoutError, and nobody knows whether a write took
place. There is no typed PUT: changes go as apply of a partial, or as a patch from old to new that the server refuses
when `old` is no longer what is there.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Generic, Protocol, TypeVar, overload

import msgspec

from trimtab.model.kind import Kind
from trimtab.model.resource import Resource
from trimtab.model.scheme import Untyped

Object = Resource | Untyped
R = TypeVar("R", bound=Resource)
O = TypeVar("O", bound=Object, covariant=True)  # noqa: E741 - an object


class Named(msgspec.Struct, frozen=True):
    """A kind by its names, as documents carry them: `Named("apps/v1", "Deployment")`. Looked up by discovery."""

    api_version: str
    kind: str


AnyKind = type[Resource] | Kind | Named


class Ref(msgspec.Struct, frozen=True):
    """One object."""

    kind: AnyKind
    name: str
    namespace: str = ""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What to list or watch. No namespace is all of them."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False


class Preconditions(msgspec.Struct, frozen=True, kw_only=True):
    """A delete goes through only when these hold."""

    uid: str | None = None
    resource_version: str | None = None


class Listing(msgspec.Struct, Generic[O], frozen=True):
    """All objects at one revision, to watch from."""

    items: Sequence[O]
    revision: str


class EventType(enum.Enum):
    """What a watch tells of an object. A bookmark only tells how far the watch has come."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class Event(msgspec.Struct, Generic[O], frozen=True):
    """One change, or a bookmark (then `object` is None): with it the watcher is complete up to `revision`."""

    type: EventType
    revision: str
    object: O | None = None


class Client(Protocol):
    """The contract that controllers are written against. A class gives objects of that class; other kinds are not known
    to a type checker."""

    @overload
    async def get(self, kind: type[R], name: str, namespace: str = "") -> R: ...
    @overload
    async def get(self, kind: AnyKind, name: str, namespace: str = "") -> Any: ...

    @overload
    async def list(self, kind: type[R], query: Query = ...) -> Listing[R]: ...
    @overload
    async def list(self, kind: AnyKind, query: Query = ...) -> Listing[Any]: ...

    @overload
    def watch(self, kind: type[R], query: Query, since: str) -> AsyncGenerator[Event[R], None]: ...
    @overload
    def watch(self, kind: AnyKind, query: Query, since: str) -> AsyncGenerator[Event[Any], None]: ...

    @overload
    async def create(self, obj: R, *, dry_run: bool = False) -> R: ...
    @overload
    async def create(self, obj: Object, *, dry_run: bool = False) -> Any: ...

    @overload
    async def apply(
        self, partial: R, *, manager: str, force: bool = False, subresource: str = "", dry_run: bool = False
    ) -> R: ...
    @overload
    async def apply(
        self, partial: Object, *, manager: str, force: bool = False, subresource: str = "", dry_run: bool = False
    ) -> Any: ...

    @overload
    async def patch(self, old: R, new: R, *, subresource: str = "", dry_run: bool = False) -> R: ...
    @overload
    async def patch(self, old: Object, new: Object, *, subresource: str = "", dry_run: bool = False) -> Any: ...

    async def delete(
        self, ref: Ref, *, preconditions: Preconditions | None = None, propagation: str = "", dry_run: bool = False
    ) -> Object | None:
        """What is left: the object while finalizers or a grace period hold it, None when it is gone."""
        ...

    async def close(self) -> None: ...
