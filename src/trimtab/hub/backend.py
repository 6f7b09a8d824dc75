"""An accessor as the server's backend: documents become entries, and an accessor's changes become watch events.

Flow: a read asks the accessor and encodes what it answers; a commit is one `apply` or `delete` with the revision that it
expects. Nothing is kept here but the newest revision that was seen.

Guarantees: those of `store.contract`, as far as the accessor gives its own. A service that is down is a 503, never an empty
list. What a service refuses is a Status that names the fields.

Assumptions: the accessor is `Watched`: it keeps envelopes and revisions. `seen` is told of revisions of other kinds, and of
other replicas, by whoever follows the service.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
import orjson

from trimtab.hub.contract import (
    ApplyOptions,
    DeleteOptions,
    GetOptions,
    Hub,
    HubBatch,
    HubChange,
    HubError,
    ListOptions,
    Missing,
    Refused,
    Stale,
    WatchOptions,
)
from trimtab.hub.storage.contract import StorageUnavailable
from trimtab.model.errors import FieldError, FieldProblem, StatusError, invalid
from trimtab.server.actor import ACTOR
from trimtab.server.registry import Served
from trimtab.server.turns import Turns
from trimtab.store.contract import (
    ABSENT,
    MAX_VALUE,
    Batch,
    Change,
    Conflict,
    Entry,
    Key,
    NotYet,
    Op,
    Page,
    Query,
    Revision,
    TooLarge,
    Write,
)

PAGE = 500


class AccessorBackend:
    """Serves one kind from its accessor. `lineage`: with what tells where objects were synced from. `turns`: those of all
    that serve the same objects."""

    def __init__(self, accessor: Any, *, organization: str, lineage: bool = False, turns: Turns | None = None) -> None:
        self.accessor = accessor
        self._turns = turns or Turns()
        self._organization = organization
        self._lineage = lineage
        self._served: Served | None = None
        self._revision = 0
        self._oldest = 0
        self.created: Callable[[Hub], Awaitable[None]] | None = None  # told of what is new, before who made it is

    def serve(self, served: Served) -> None:
        """As what its objects are shown: told once, when the kind is registered."""
        self._served = served

    @property
    def served(self) -> Served:
        assert self._served is not None  # noqa: S101 - `serve` comes first
        return self._served

    @property
    def revision(self) -> Revision:
        return self._revision

    @property
    def compacted(self) -> Revision:
        return self._oldest

    def seen(self, revision: Revision, oldest: Revision = 0) -> None:
        """Some part of the service has reached this revision."""
        self._revision = max(self._revision, revision)
        self._oldest = max(self._oldest, oldest)

    async def get(self, key: Key) -> Entry | None:
        return await self._get(key, "")

    async def published(self, key: Key, version: str) -> Entry | None:
        return await self._get(key, version)

    async def _get(self, key: Key, version: str) -> Entry | None:
        options = GetOptions(
            organization=self._organization, project=key.namespace, version=version, include_lineage=self._lineage
        )
        with self._told(key.name):
            try:
                hub = await self.accessor.get(key.name, options)
            except Missing:
                if version:
                    raise
                return None
        return self._entry(key, hub)

    async def list(self, query: Query) -> Page:
        """A selector that the service does not know is asked of each of its pages."""
        if query.revision is not None and query.revision > self._revision:
            await self._refresh()
            if query.revision > self._revision:
                raise NotYet(query.revision, self._revision)
        found: list[Entry] = []
        after = (query.after.namespace, query.after.name) if query.after is not None else None
        revision = query.revision or 0
        wanted = PAGE if query.limit is None else query.limit
        while True:
            with self._told(""):
                page = await self.accessor.list(self._options(query, wanted, after, revision))
            self.seen(page.revision)
            after, revision, wanted = page.after, page.revision, PAGE  # not what is missing: few may be meant
            found += self._selected(query, page.items)
            if query.limit is not None and len(found) > query.limit:
                found = found[: query.limit]
                return Page(revision=revision, entries=found, after=found[-1].key)
            if after is None or (query.limit is not None and len(found) >= query.limit):
                last = None if after is None else Key(query.resource, *after)
                return Page(revision=revision, entries=found, after=last)

    def _options(self, query: Query, limit: int, after: tuple[str, str] | None, revision: Revision) -> ListOptions:
        return ListOptions(
            organization=self._organization,
            project=query.namespace or "",
            all_projects=query.namespace is None,
            name=query.name or "",
            labels=_pushed(query.labels),
            limit=limit,
            after=after,
            revision=revision,
            include_lineage=self._lineage,
        )

    def _selected(self, query: Query, items: Sequence[Hub]) -> Iterator[Entry]:
        for hub in items:
            entry = self._entry(self._key(query.resource, hub), hub)
            if query.labels is not None and not query.labels.matches(entry.labels):
                continue
            if query.fields is not None and not query.fields.matches(entry.fields):
                continue
            yield entry

    async def commit(self, write: Write) -> Entry:
        key = write.key
        with self._told(key.name, write):
            try:
                if write.op is Op.DELETE:
                    return await self._delete(write)
                hub = await self.accessor.apply(self._document(write), self._applying(write))
                if write.expect == ABSENT and self.created is not None:
                    await self.created(hub)
            except Stale as error:
                current = None if error.current is None else self._entry(key, error.current)
                raise Conflict(key, current) from None
        return self._entry(key, hub)

    def turn(self, key: Key, *, again: bool) -> AbstractAsyncContextManager[None]:
        return self._turns.take((key.namespace, key.name), again=again)

    async def rehearse(self, write: Write) -> None:
        with self._told(write.key.name, write):
            try:
                if write.op is Op.DELETE:
                    await self._delete(write, dry_run=True)
                    return
                options = msgspec.structs.replace(self._applying(write), dry_run=True)
                await self.accessor.apply(self._document(write), options)
            except Stale as error:
                raise Conflict(write.key, None) from error

    def _applying(self, write: Write) -> ApplyOptions:
        return ApplyOptions(
            organization=self._organization,
            project=write.key.namespace,
            include_lineage=self._lineage,
            expect=write.expect,
            user=ACTOR.get(),
        )

    def _document(self, write: Write) -> Hub:
        value = b"".join((write.head, str(write.expect or 0).encode(), write.tail))
        if len(value) > MAX_VALUE:
            raise TooLarge(f"{len(value)} bytes")
        document: Hub = orjson.loads(value)
        return document

    async def _delete(self, write: Write, *, dry_run: bool = False) -> Entry:
        key, document = write.key, self._document(write)
        options = DeleteOptions(
            organization=self._organization,
            project=key.namespace,
            expect=write.expect,
            include_lineage=self._lineage,
            dry_run=dry_run,
        )
        try:
            await self.accessor.delete(key.name, options)
        except Missing:
            raise Conflict(key, None) from None
        return self._entry(key, document)

    def watch(self, query: Query, since: Revision, *, heartbeat: float = 60.0) -> _Watch:
        options = WatchOptions(
            organization=self._organization,
            project=query.namespace or "",
            all_projects=query.namespace is None,
            name=query.name or "",
            include_lineage=self._lineage,
        )
        return _Watch(self, query, self.accessor.watch(options, since), since, heartbeat)

    async def _refresh(self) -> None:
        with self._told(""):
            newest, oldest = await self.accessor.horizon()
        self.seen(newest, oldest)

    def _key(self, resource: str, hub: Hub) -> Key:
        metadata = hub["metadata"]
        return Key(resource, metadata.get("namespace", ""), metadata["name"])

    def _entry(self, key: Key, hub: Hub) -> Entry:
        served, metadata = self.served, hub["metadata"]
        revision = int(metadata.get("resourceVersion") or 0)
        self.seen(revision)
        fields = served.strategy.fields(hub)
        fields["metadata.name"], fields["metadata.namespace"] = key.name, key.namespace
        return Entry(
            key=key,
            revision=revision,
            value=served.encode(hub),
            labels=metadata.get("labels") or {},
            fields=fields,
            schema=served.tag,
        )

    def change(self, query: Query, change: HubChange) -> Change:
        entry = self._entry(self._key(query.resource, change.hub), change.hub)
        before = None if change.before is None else self._entry(entry.key, change.before)
        return Change(op=change.op, entry=entry, before=before)

    @contextlib.contextmanager
    def _told(self, name: str, write: Write | None = None) -> Iterator[None]:
        """What goes wrong below, as a Status."""
        kind = self.served.kind
        try:
            yield
        except Refused as error:
            document = None if write is None else self._document(write)
            found = [FieldError(path, FieldProblem.INVALID, _at(document, path), why) for path, why in error.problems]
            raise invalid(kind.kind, kind.group, name, found) from None
        except (Stale, Missing) as error:
            raise StatusError(error.code, error.reason, str(error), {}) from None
        except HubError as error:
            details = {"retryAfterSeconds": 1} if error.code == 503 else {}
            raise StatusError(error.code, error.reason, str(error), details) from error
        except StorageUnavailable as error:
            raise StatusError(503, "ServiceUnavailable", str(error), {"retryAfterSeconds": 1}) from error


class _Watch:
    """A watch under way. A reader that gives up waiting loses nothing: the next one to wait gets what came."""

    def __init__(
        self,
        backend: AccessorBackend,
        query: Query,
        batches: AsyncIterator[HubBatch],
        since: Revision,
        heartbeat: float,
    ) -> None:
        self._backend = backend
        self._query = query
        self._batches = batches
        self._since = since
        self._heartbeat = heartbeat
        self._coming: asyncio.Task[HubBatch] | None = None
        self._closed = False

    def __aiter__(self) -> AsyncIterator[Batch]:
        return self

    async def __anext__(self) -> Batch:
        if self._closed:
            raise StopAsyncIteration
        if self._coming is None:
            self._coming = asyncio.create_task(_next(self._batches))
        done, _ = await asyncio.wait({self._coming}, timeout=self._heartbeat)
        if not done:
            return Batch(self._since, ())
        coming, self._coming = self._coming, None
        with self._backend._told(""):
            try:
                batch = coming.result()
            except _Ended:
                raise StopAsyncIteration from None
        self._since = batch.revision
        self._backend.seen(batch.revision)
        return Batch(batch.revision, tuple(self._backend.change(self._query, change) for change in batch.changes))

    async def aclose(self) -> None:
        self._closed = True
        if self._coming is not None:
            self._coming.cancel()
            await asyncio.gather(self._coming, return_exceptions=True)
            self._coming = None
        closing = getattr(self._batches, "aclose", None)
        if closing is not None:
            await closing()


class _Ended(Exception):  # noqa: N818 - a StopAsyncIteration cannot be a task's result
    """The accessor has no more changes to tell."""


async def _next(batches: AsyncIterator[HubBatch]) -> HubBatch:
    try:
        return await anext(batches)
    except StopAsyncIteration:
        raise _Ended from None


def _at(document: Hub | None, path: str) -> Any:
    """What stands at a path such as `spec.addons[0].name`; "" when there is nothing to show."""
    found: Any = document
    for step in path.replace("[", ".").replace("]", "").split("."):
        if isinstance(found, dict):
            found = found.get(step)
        elif isinstance(found, list) and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        else:
            return ""
    return "" if found is None or isinstance(found, dict | list) else found


def _pushed(selector: Any) -> str:
    """A label selector in words, for the service to look through fewer; it is asked of each object again."""
    return "" if selector is None else str(selector)
