"""Watch: the store's changes as a stream of events, in the form that the client asked for.

A change may cross the watcher's selector: then what was modified is ADDED or DELETED for this watcher. DELETED carries the
last state that matched, at the revision of the change. A watcher that is too slow, or starts too far back, gets one ERROR
event with code 410 and the end of the stream. A kind that goes, or is no longer what it was, ends its watches at once.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import orjson

from trimtab.model.errors import StatusError, expired, internal, not_acceptable
from trimtab.server import reads, tables
from trimtab.server.broadcast import Handover
from trimtab.server.http import Request, Stream
from trimtab.server.negotiate import ANSWERED, As, Form
from trimtab.server.options import ListOptions, list_options, revision_of
from trimtab.server.registry import Served
from trimtab.server.target import Target
from trimtab.store.contract import Batch, Change, Entry, Gone, Op, Query, Revision, StoreError, Watch

if TYPE_CHECKING:
    from trimtab.server.core import Server

HEARTBEAT = 60.0
LONG = 2.0  # a watch of this many seconds ends with a bookmark
_HEADS = {kind: b'{"type":"%s","object":' % kind.encode() for kind in ("ADDED", "MODIFIED", "DELETED")}
BLUEPRINT = "kubernetes.io/initial-events-list-blueprint"
INITIAL_END = "k8s.io/initial-events-end"


async def watch(server: Server, request: Request, served: Served, target: Target, form: Form) -> Stream:
    options = list_options({**request.query, "watch": "true"})
    reads.check_selectable(served, options)
    if options.resource_version:
        revision_of(options.resource_version)
    if form.as_ is As.TABLE and options.initial_events and options.bookmarks:
        # The bookmark that ends the initial events says in its metadata what they make; a Table has no such place.
        raise not_acceptable(ANSWERED)
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
        self._deadline = 0.0
        self._wait: asyncio.Timeout | None = None

    async def frames(self, target: Target) -> AsyncIterator[bytes | Handover]:
        """All events of the watch, framed, until its time is over; or, once it has caught up, a Handover."""
        timeout = self.options.timeout or random.uniform(1800, 3600)  # noqa: S311 - spreads reconnections
        self._deadline = asyncio.get_running_loop().time() + timeout
        broadcasts, kind = self.server.broadcasts, self.served.kind
        try:
            since, initial = await self._start(target)
            if initial:
                yield initial
            if self._replaced():
                return
            if (handover := self._handover(target, since, timeout)) is not None:
                yield handover
                return
            batches = self.served.backend.watch(_query(self.served, target), since, heartbeat=HEARTBEAT)
            broadcasts.add_reader((kind.resource, kind.version), self)
            try:
                while (batch := await self._next(batches)) is not None:
                    framed = b"".join([frame for change in batch.changes if (frame := self.event(change))])
                    if not batch.changes:
                        framed = self.idle(batch.revision)
                    if framed:
                        yield framed
                    since = batch.revision
                    if self._replaced():
                        return
                    if (handover := self._handover(target, since, timeout)) is not None:
                        yield handover
                        return
                if timeout >= LONG and not self._replaced() and (last := self.idle(since)):
                    yield last
            finally:
                broadcasts.remove_reader((kind.resource, kind.version), self)
                await batches.aclose()
        except (StoreError, StatusError) as error:
            yield self.failure(error)

    def end(self) -> None:
        """End it while it reads for itself, once it has told what is there to be told."""
        self._deadline = 0.0
        if self._wait is not None and not self._wait.expired():
            self._wait.reschedule(self._deadline)

    async def _next(self, batches: Watch) -> Batch | None:
        """The next batch, or None at the deadline. The time-out is around the wait alone: the reader's own time is its own."""
        try:
            async with asyncio.timeout_at(self._deadline) as self._wait:
                return await anext(batches)
        except (TimeoutError, StopAsyncIteration):
            return None
        finally:
            self._wait = None

    def _replaced(self) -> bool:
        """Whether the kind is no longer what it was when the watch began."""
        kind = self.served.kind
        found = self.server.registry.find(kind.group, kind.version, kind.plural)
        return found is None or (found is not self.served and found.with_lineage is not self.served)

    def _handover(self, target: Target, since: Revision, timeout: float) -> Handover | None:
        """None while the broadcast is ahead, and for Tables, whose first event is unlike the others."""
        if self.form.as_ is As.TABLE:
            return None
        broadcasts, options = self.server.broadcasts, self.options
        selection = (str(options.labels), str(options.fields), options.bookmarks, self.form)
        kind, backend = self.served.kind, id(self.served.backend)
        key = (kind.resource, kind.version, backend, target.namespace, target.name, *selection)
        query = _query(self.served, target)
        running = broadcasts.get(key) or broadcasts.start(key, self.served.backend, query, self, HEARTBEAT)
        if since < running.revision:
            return None
        # It may be ahead of the broadcast when its time is over.
        farewell = (lambda: self.idle(max(since, running.revision))) if timeout >= LONG else bytes
        return Handover(running, since, self._deadline, farewell)

    async def _start(self, target: Target) -> tuple[Revision, bytes]:
        """Where the stream begins, and the events that come before it."""
        options = self.options
        wanted = options.resource_version
        initial = options.initial_events
        if initial is None:
            initial = wanted in ("", "0")
        if not initial:
            return (self.served.backend.revision if wanted in ("", "0") else revision_of(wanted)), b""
        if options.initial_events and wanted not in ("", "0"):
            await reads.reach(self.served, revision_of(wanted))
        page = await reads.fetch(self.served, target, ListOptions(labels=options.labels, fields=options.fields))
        frames = [self._frame("ADDED", self.served.rendered(entry)) for entry in page.entries]
        if options.initial_events and options.bookmarks:
            blueprint = base64.b64encode(self._empty_list()).decode()
            frames.append(self._bookmark(page.revision, {INITIAL_END: "true", BLUEPRINT: blueprint}))
        return page.revision, b"".join(frames)

    def _empty_list(self) -> bytes:
        """By this clients know what kind of list the initial events make."""
        kind = self.served.kind
        empty: dict[str, Any]
        if self.form.as_ is As.METADATA:
            api_version = f"meta.k8s.io/{self.form.version}"
            empty = {"kind": "PartialObjectMetadataList", "apiVersion": api_version, "metadata": {}, "items": None}
        elif self.served.strategy.native:
            empty = {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": {}, "items": None}
        else:
            empty = {"apiVersion": kind.api_version, "items": [], "kind": kind.list_kind}
        return orjson.dumps(empty) + b"\n"

    def idle(self, revision: Revision) -> bytes:
        """What a watcher is told when nothing happens."""
        return self._bookmark(revision) if self.options.bookmarks else b""

    def failure(self, error: StatusError | StoreError) -> bytes:
        if isinstance(error, Gone):
            error = expired(f"too old resource version: {error.revision} ({error.oldest})")
        elif isinstance(error, StoreError):
            error = internal(str(error))
        return b'{"type":"ERROR","object":%s}\n' % orjson.dumps(error.status())

    def event(self, change: Change) -> bytes | None:
        """A change as this watcher sees it; None when it does not."""
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
        return _HEADS[kind] + value.rstrip() + b"}\n"

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


def _query(served: Served, target: Target) -> Query:
    return Query(resource=served.strategy.storage, namespace=target.namespace or None, name=target.name or None)
