"""Watch: the store's changes as a stream of events, in the form that the client asked for.

A change may cross the watcher's selector: then what was modified is ADDED or DELETED for this watcher. DELETED carries the
last state that matched, at the revision of the change. A watcher that is too slow, or starts too far back, gets one ERROR
event with code 410 and the end of the stream.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import orjson

from trimtab.model.errors import StatusError, expired
from trimtab.server import reads, tables
from trimtab.server.http import Request, Stream
from trimtab.server.negotiate import As, Form
from trimtab.server.options import ListOptions, list_options, revision_of
from trimtab.server.registry import Served
from trimtab.server.target import Target
from trimtab.store.contract import Batch, Change, Entry, Gone, Op, Query, Revision, Watch

if TYPE_CHECKING:
    from trimtab.server.core import Server

HEARTBEAT = 60.0
LONG = 5.0  # a watch of this many seconds ends with a bookmark
INITIAL_END = "k8s.io/initial-events-end"


async def watch(server: Server, request: Request, served: Served, target: Target, form: Form) -> Stream:
    options = list_options({**request.query, "watch": "true"})
    reads.check_selectable(served, options)
    if options.resource_version:
        revision_of(options.resource_version)
    view = _View(server, served, options, form, tables.include_object(request.query.get("includeObject")))
    return Stream(frames=view.frames(target))


class _View:
    """One watcher's way of looking at changes."""

    def __init__(self, server: Server, served: Served, options: ListOptions, form: Form, include: str) -> None:
        self.server = server
        self.served = served
        self.options = options
        self.form = form
        self.include = include
        self.fields = reads.stored_fields(served, options)
        self.headed = False  # the first Table carries the column definitions

    async def frames(self, target: Target) -> AsyncIterator[bytes]:
        """All events of the watch, framed, until its time is over."""
        timeout = self.options.timeout or random.uniform(1800, 3600)  # noqa: S311 - spreads reconnections
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        try:
            since, initial = await self._start(target)
            if initial:
                yield initial
            query = Query(
                resource=self.served.strategy.storage, namespace=target.namespace or None, name=target.name or None
            )
            batches = self.served.backend.watch(query, since, heartbeat=HEARTBEAT)
            try:
                while (batch := await _next(batches, deadline)) is not None:
                    framed = b"".join([frame for change in batch.changes if (frame := self._event(change))])
                    if framed:
                        yield framed
                    elif not batch.changes and self.options.bookmarks:
                        yield self._bookmark(batch.revision)
                    since = batch.revision
                if self.options.bookmarks and timeout >= LONG:
                    yield self._bookmark(since)
            finally:
                await batches.aclose()
        except Gone as gone:
            yield _error(expired(f"too old resource version: {gone.revision} ({gone.oldest})"))
        except StatusError as error:
            yield _error(error)

    async def _start(self, target: Target) -> tuple[Revision, bytes]:
        """Where the stream begins, and the events that come before it."""
        options = self.options
        wanted = options.resource_version
        initial = options.initial_events
        if initial is None:
            initial = wanted in ("", "0")
        if not initial:
            return (self.served.backend.revision if wanted in ("", "0") else revision_of(wanted)), b""
        page = await reads.fetch(self.served, target, ListOptions(labels=options.labels, fields=options.fields))
        frames = [self._frame("ADDED", self.served.rendered(entry)) for entry in page.entries]
        if options.initial_events and options.bookmarks:
            frames.append(self._bookmark(page.revision, {INITIAL_END: "true"}))
        return page.revision, b"".join(frames)

    def _event(self, change: Change) -> bytes | None:
        now = change.op is Op.PUT and self._matches(change.entry)
        before = change.before is not None and self._matches(change.before)
        if now:
            return self._frame("MODIFIED" if before else "ADDED", self.served.rendered(change.entry))
        if not before:
            return None
        if change.op is Op.DELETE:
            return self._frame("DELETED", self.served.rendered(change.entry))
        assert change.before is not None  # noqa: S101 - for the type checker
        return self._frame("DELETED", self._at(change.before, change.revision))

    def _matches(self, entry: Entry) -> bool:
        labels, fields = self.options.labels, self.fields
        return (labels is None or labels.matches(entry.labels)) and (fields is None or fields.matches(entry.fields))

    def _at(self, entry: Entry, revision: Revision) -> bytes:
        document = self.served.decode(entry)
        document["metadata"]["resourceVersion"] = str(revision)
        return self.served.encode(document)

    def _frame(self, kind: str, value: bytes) -> bytes:
        if self.form.as_ is As.METADATA:
            value = tables.metadata_only(value, self.form.version)
        elif self.form.as_ is As.TABLE:
            value = self._table([value], {"resourceVersion": orjson.loads(value)["metadata"]["resourceVersion"]})
        return b'{"type":"%s","object":%s}\n' % (kind.encode(), value.strip())

    def _table(self, values: list[bytes], meta: dict[str, Any]) -> bytes:
        headed, self.headed = not self.headed, True
        return tables.table(
            self.served, values, meta, self.include, self.form.version, self.server.clock, headed=headed
        )

    def _bookmark(self, revision: Revision, annotations: dict[str, str] | None = None) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if self.served.strategy.native:
            metadata["creationTimestamp"] = None
        if annotations:
            metadata["annotations"] = annotations
        kind = self.served.kind
        if self.form.as_ is As.TABLE:
            value = self._table([], {"resourceVersion": str(revision)})
        elif self.form.as_ is As.METADATA:
            api_version = f"meta.k8s.io/{self.form.version}"
            value = orjson.dumps({"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": metadata})
        else:
            value = orjson.dumps({"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata})
        return b'{"type":"BOOKMARK","object":%s}\n' % value


async def _next(batches: Watch, deadline: float) -> Batch | None:
    """The next batch, or None at the deadline. The time-out is around the wait alone: the reader's own time is its own."""
    try:
        async with asyncio.timeout_at(deadline):
            return await anext(batches)
    except (TimeoutError, StopAsyncIteration):
        return None


def _error(error: StatusError) -> bytes:
    return b'{"type":"ERROR","object":%s}\n' % orjson.dumps(error.status())
