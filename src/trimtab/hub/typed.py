"""Accessors that speak in objects of a kind's class, for those who write one over a service of their own.

The shortest way is a `Service`: say how the service's own records are read and written, and bring a convertor between them
and the class. `Typed(service, cls)` is then an accessor of documents.
"""

from __future__ import annotations

import bisect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from trimtab.hub.contract import (
    ApplyOptions,
    Convertor,
    DeleteOptions,
    GetOptions,
    Hub,
    HubError,
    HubList,
    HubStatus,
    ListOptions,
    Missing,
    Options,
    StatusOptions,
)
from trimtab.hub.convert import as_class
from trimtab.hub.listing import selected
from trimtab.model.document import to_document
from trimtab.model.hub import HubResource
from trimtab.model.kind import Kind
from trimtab.model.resource import definition_of
from trimtab.model.scheme import Scheme

H = TypeVar("H", bound=HubResource)
S = TypeVar("S")


class TypedAccessor(Protocol[H]):
    """An accessor in objects of a class. It need not know selectors or pages; `list` gives all of a project, or of all."""

    async def get(self, name: str, options: GetOptions) -> H: ...

    async def list(self, options: ListOptions) -> Iterable[H]: ...

    async def apply(self, obj: H, options: ApplyOptions) -> H: ...

    async def delete(self, name: str, options: DeleteOptions) -> None: ...


class Service(ABC, Generic[H, S]):
    """Base of accessors over a service. `S` is the service's record, or records, of one resource: the spoke.

    A subclass writes four methods. `project` is "" in `read_all` for all projects. What the service cannot do is a
    `HubError` (Refused, Down); an exception of any other type is a bug, and is told as one.
    """

    convertor: Convertor[S]

    @abstractmethod
    async def read(self, project: str, name: str) -> S | None: ...

    @abstractmethod
    async def read_all(self, project: str) -> Iterable[S]: ...

    @abstractmethod
    async def write(self, project: str, name: str, spoke: S) -> S:
        """Create or update; what the service has then."""

    @abstractmethod
    async def remove(self, project: str, name: str) -> bool:
        """Whether it was there."""

    async def get(self, name: str, options: GetOptions) -> H:
        spoke = await self.read(options.project, name)
        if spoke is None:
            raise Missing(f'"{name}" not found')
        return self._hub(spoke)

    async def list(self, options: ListOptions) -> Iterable[H]:
        project = "" if options.all_projects else options.project
        return [self._hub(spoke) for spoke in await self.read_all(project)]

    async def apply(self, obj: H, options: ApplyOptions) -> H:
        spoke = self.convertor.convert_from(obj)
        return obj if options.dry_run else self._hub(await self.write(options.project, obj.name, spoke))

    async def delete(self, name: str, options: DeleteOptions) -> None:
        if options.dry_run:
            await self.get(name, GetOptions(organization=options.organization, project=options.project))
        elif not await self.remove(options.project, name):
            raise Missing(f'"{name}" not found')

    def _hub(self, spoke: S) -> H:
        made: H = self.convertor.convert_to(spoke)
        return made


class Typed(Generic[H]):
    """An accessor of documents over one of objects. Lists are sorted, selected and cut into pages here."""

    def __init__(self, inner: TypedAccessor[H] | Service[H, Any], cls: type[H], kind: Kind | None = None) -> None:
        self.inner = inner
        self._cls = cls
        self._kind = kind or Scheme().kind_of(cls)
        self._namespaced = definition_of(cls).namespaced
        notifications = getattr(inner, "notifications", None)
        if notifications is not None:
            self.notifications = notifications

    async def get(self, name: str, options: GetOptions) -> Hub:
        return self._document(await self.inner.get(name, options), options)

    async def list(self, options: ListOptions) -> HubList:
        _, matches = selected(options, self._kind)
        found = [self._document(obj, options) for obj in await self.inner.list(options)]
        found = [hub for hub in found if matches(hub) and options.name in ("", hub["metadata"]["name"])]
        found.sort(key=_place)
        if options.after is not None:
            found = found[bisect.bisect_right(found, tuple(options.after), key=_place) :]
        more = bool(options.limit) and len(found) > options.limit
        items = found[: options.limit] if more else found
        return HubList(items=items, after=_place(items[-1]) if more else None)

    async def apply(self, hub: Hub, options: ApplyOptions) -> Hub:
        obj = as_class(hub, self._cls)
        return self._document(await self.inner.apply(obj, options), options)

    async def delete(self, name: str, options: DeleteOptions) -> None:
        await self.inner.delete(name, options)

    async def status(self, name: str, options: StatusOptions) -> HubStatus:
        asked = GetOptions(organization=options.organization, project=options.project)
        return (await self.get(name, asked)).get("status") or {}

    async def published(self, name: str, options: GetOptions) -> Sequence[Any]:
        below = getattr(self.inner, "published", None)
        return () if below is None else await below(name, options)

    def _document(self, obj: H, options: Options) -> Hub:
        hub = to_document(obj)
        self._kind.schema.default(hub)
        metadata = hub.get("metadata") or {}
        if not metadata.get("name"):
            raise HubError(f"an accessor of {self._kind.plural} gave an object without a name")
        if self._namespaced and not metadata.get("project"):
            metadata = {**metadata, "project": metadata.get("namespace") or options.project}
        return {**hub, "apiVersion": self._kind.api_version, "kind": self._kind.kind, "metadata": metadata}


def _place(hub: Hub) -> tuple[str, str]:
    return str(hub["metadata"].get("project", "")), str(hub["metadata"]["name"])
