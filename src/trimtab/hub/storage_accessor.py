"""The accessor of kinds that the storage service keeps: rows become resources, with their envelopes, and back.

It is below hydration, so projects and references are IDs here. A revision is the resourceVersion.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import msgspec

from trimtab.hub.artifacts.digests import FilePaths
from trimtab.hub.contract import (
    ApplyOptions,
    DeleteOptions,
    Down,
    GetOptions,
    Hub,
    HubBatch,
    HubChange,
    HubError,
    HubList,
    HubStatus,
    ListOptions,
    Missing,
    Options,
    Refused,
    Republished,
    Stale,
    StatusOptions,
    WatchOptions,
)
from trimtab.hub.listing import selected
from trimtab.hub.proxies.version import LATEST
from trimtab.hub.rows import Rows
from trimtab.hub.storage.contract import (
    PROJECTS,
    InUse,
    Published,
    Row,
    RowConflict,
    RowKey,
    RowQuery,
    RowWrite,
    Snapshot,
    Storage,
    StorageUnavailable,
    Unknown,
)
from trimtab.hub.storage.decide import is_going, late
from trimtab.model.kind import Kind
from trimtab.store.contract import Op

PAGE = 500
RECENT = 256
"""Rows whose documents are kept for those who will ask next."""


class StillUsed(HubError):  # noqa: N818
    """A project cannot go while there is something in it."""

    code = 409
    reason = "Conflict"


class StorageAccessor:
    """Of one kind. `convertor` is between `cls` and `Stored`; without one the spec is kept as it is. `versioned`: of a kind
    without a class. `files`: where it names files; a version is published when the last of them is there."""

    def __init__(
        self,
        storage: Storage,
        kind: Kind,
        cls: type[Any] | None = None,
        convertor: Any = None,
        *,
        type_: str,
        versioned: bool = False,
        files: FilePaths = FilePaths(),  # noqa: B008
    ) -> None:
        self._storage = storage
        self._kind = kind
        self._type = type_
        self._rows = Rows(kind, cls, convertor, versioned=versioned, files=files)
        self._recent: dict[int, tuple[Row, Hub]] = {}

    async def get(self, name: str, options: GetOptions) -> Hub:
        return self._rows.hub(await self._row(name, options))

    async def status(self, name: str, options: StatusOptions) -> HubStatus:
        return (await self._row(name, options)).status or {}

    async def list(self, options: ListOptions) -> HubList:
        equal, matches = selected(options, self._kind)
        found: list[Hub] = []
        after, revision, size = options.after, options.revision, options.limit or PAGE
        while True:
            query = RowQuery(
                organization=options.organization,
                type=self._type,
                project=None if options.all_projects or not self._kind.namespaced else options.project,
                name=options.name,
                labels=equal,
                limit=size,
                after=after,
                revision=revision,
            )
            with self._told(""):
                page = await self._storage.list(query)
            meant = [(row, hub) for row, hub in ((row, self._rows.hub(row)) for row in page.rows) if matches(hub)]
            after, revision, size = page.after, page.revision, PAGE  # not what is missing: few may be meant
            left = options.limit - len(found)
            if options.limit and len(meant) > left:
                after = await self._place(meant[left - 1][0])
                meant = meant[:left]
            found += [hub for _, hub in meant]
            if after is None or (options.limit and len(found) >= options.limit):
                return HubList(items=found, revision=revision, after=after)

    async def _place(self, row: Row) -> tuple[str, str]:
        """Where a list goes on that ends with this row: lists are in the order of names."""
        project = row.key.project
        with self._told(""):
            names = await self._storage.names([project]) if project else {}
        return names[project].name if project else "", row.key.name

    async def apply(self, hub: Hub, options: ApplyOptions) -> Hub:
        name = hub["metadata"]["name"]
        key = self._key(name, options)
        row = self._rows.row(key, hub)
        if row.snapshot is not None and self._rows.awaits(hub) and not await self._is_published(row):
            row = msgspec.structs.replace(row, snapshot=None)
        if options.dry_run:
            return await self._rehearsed(row, options)
        with self._told(name):
            return self._shared(await self._storage.commit(RowWrite(row=row, expect=options.expect)))

    async def delete(self, name: str, options: DeleteOptions) -> None:
        row = Row(key=self._key(name, options))
        if options.dry_run:
            there = await self._row(name, options)
            if options.expect is not None and there.revision != options.expect:
                raise Stale(f"{name} is not at the expected revision", self._rows.hub(there))
            return
        with self._told(name):
            try:
                await self._storage.commit(RowWrite(row=row, op=Op.DELETE, expect=options.expect))
            except RowConflict as conflict:
                if conflict.current is None:
                    raise self._missing(name) from None
                raise

    async def watch(self, options: WatchOptions, since: int) -> AsyncIterator[HubBatch]:
        project = None if options.all_projects or not self._kind.namespaced else options.project
        batches = self._storage.changes(options.organization, (self._type,), since)
        try:
            with self._told(""):
                async for batch in batches:
                    changes = tuple(
                        HubChange(
                            op=change.op,
                            hub=self._shared(change.row),
                            before=None if change.before is None else self._shared(change.before),
                        )
                        for change in batch.changes
                        if change.row.key.type == self._type
                        and (project is None or change.row.key.project == project)
                        and (not options.name or change.row.key.name == options.name)
                    )
                    yield HubBatch(revision=batch.revision, changes=changes)
        finally:
            close = getattr(batches, "aclose", None)
            if close is not None:
                await close()

    async def horizon(self) -> tuple[int, int]:
        with self._told(""):
            return await self._storage.horizon()

    async def published(self, name: str, options: GetOptions) -> Sequence[Snapshot]:
        with self._told(name):
            found = await self._storage.versions(self._key(name, options))
        if options.version == LATEST:
            return found[-1:]
        return [snapshot for snapshot in found if options.version in ("", snapshot.version)]

    async def _row(self, name: str, options: Options) -> Row:
        with self._told(name):
            row = await self._storage.get(self._key(name, options))
        if row is None:
            raise self._missing(name)
        return row

    async def _is_published(self, row: Row) -> bool:
        """Whether the version that a row names is: then it cannot change, by a file that is still to come either."""
        with self._told(row.key.name):
            versions = await self._storage.versions(row.key)
        return row.snapshot is not None and any(each.version == row.snapshot.version for each in versions)

    async def _rehearsed(self, row: Row, options: ApplyOptions) -> Hub:
        """What would be, without it being so."""
        with self._told(row.key.name):
            there = await self._storage.get(row.key)
            at = 0 if there is None else there.revision
            if options.expect is not None and options.expect != at:
                raise RowConflict(row.key, there)
            if there is None and row.key.project:
                await self._refuse_late(row.key)
            if row.snapshot is not None:
                for snapshot in await self._storage.versions(row.key):
                    if snapshot.version == row.snapshot.version and snapshot.body != row.snapshot.body:
                        raise Published(row.key, snapshot.version)
        return self._rows.hub(msgspec.structs.replace(row, revision=at))

    async def _refuse_late(self, key: RowKey) -> None:
        """As the service does what is new in a project that is being deleted."""
        project = (await self._storage.names([key.project]))[key.project].name
        there = await self._storage.get(RowKey(key.organization, PROJECTS, "", project))
        if there is not None and is_going(there):
            raise Unknown(late(project))

    def _shared(self, row: Row) -> Hub:
        """The document of a row, made once for its writer and for all who watch. Nobody changes what comes from here."""
        known = self._recent.get(id(row))
        if known is not None:
            return known[1]
        hub = self._rows.hub(row)
        self._recent[id(row)] = (row, hub)
        if len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]
        return hub

    def _key(self, name: str, options: Options) -> RowKey:
        project = options.project if self._kind.namespaced else ""
        return RowKey(options.organization, self._type, project, name)

    def _missing(self, name: str) -> Missing:
        return Missing(f'{self._kind.resource} "{name}" not found')

    @contextlib.contextmanager
    def _told(self, name: str) -> Iterator[None]:
        """What the service says, in the hub's words."""
        try:
            yield
        except RowConflict as conflict:
            current = None if conflict.current is None else self._rows.hub(conflict.current)
            raise Stale(f"{name} is not at the expected revision", current) from None
        except Published as published:
            raise Republished(published.version, str(published)) from None
        except InUse as error:
            raise StillUsed(str(error)) from None
        except Unknown as error:  # it went after its name was looked up
            raise Refused([("metadata.project", str(error))]) from None
        except StorageUnavailable as error:
            raise Down(str(error)) from None
