"""One version of a kind that has a converter, as a backend: the server reads and writes it as if it were the stored one.

Flow: what the store has in another version is converted when it is read, listed or watched; a write is converted into the
storage version, committed, and read back, as the real server does.

Guarantees: an entry that leaves here is in this version, with the labels and fields of this version, by which selectors
judge it. Several who list or watch ask for the conversion of an object's revision once. A conversion that fails is a
StatusError for the one who asked, and ends a watch; other kinds never notice.

Caveats: lists and watches may get what was converted before, as long as the definition stays as it is. A get and a write
always ask.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

import msgspec
import orjson

from trimtab.model.errors import StatusError
from trimtab.model.selectors import FieldSelector
from trimtab.server.backend import Backend
from trimtab.server.conversion.review import failed
from trimtab.server.conversion.versions import Versions, stored_version
from trimtab.server.registry import Served
from trimtab.server.strategy import Document
from trimtab.store.contract import Batch, Change, Conflict, Entry, Key, Op, Page, Query, Revision, Watch, Write

MAX_KEPT = 8 * 1024 * 1024  # bytes of converted objects
CHUNK = 500
_SURE = ("metadata.name", "metadata.namespace")  # no conversion changes them

Mark = tuple[Key, Revision]
Entries = list[Entry]


class ConvertingBackend:
    """Shows the objects of `source` in the version of `form`."""

    def __init__(self, source: Backend, form: Served, versions: Versions) -> None:
        self.source = source
        self.versions = versions
        self._form = form
        self._kept: OrderedDict[Mark, Entry] = OrderedDict()
        self._size = 0
        self._asked: dict[Mark, asyncio.Task[dict[Mark, Entry]]] = {}

    @property
    def revision(self) -> Revision:
        return self.source.revision

    @property
    def compacted(self) -> Revision:
        return self.source.compacted

    async def get(self, key: Key) -> Entry | None:
        entry = await self.source.get(key)
        return None if entry is None else await self._asked_anew(entry)

    async def list(self, query: Query) -> Page:
        if query.labels is not None or not _is_sure(query.fields):
            return await self._selected(query)
        page = await self.source.list(query)
        return msgspec.structs.replace(page, entries=await self.shown(page.entries))

    async def _selected(self, query: Query) -> Page:
        """Selectors look at the converted objects, whose labels and fields the store does not know."""
        found: Entries = []
        asked = msgspec.structs.replace(query, labels=None, fields=None, limit=CHUNK, counted=False)
        while True:
            page = await self.source.list(asked)
            for entry in await self.shown(page.entries):
                if not _matches(query, entry):
                    continue
                if query.limit is not None and len(found) == query.limit:
                    return Page(revision=page.revision, entries=found, after=found[-1].key)
                found.append(entry)
            if page.after is None:
                return Page(revision=page.revision, entries=found)
            asked = msgspec.structs.replace(asked, after=page.after, revision=page.revision)

    async def commit(self, write: Write) -> Entry:
        current = await self.source.get(write.key) if write.expect or write.op is Op.DELETE else None
        if write.expect and (current is None or current.revision != write.expect):
            raise Conflict(write.key, current)
        if write.op is Op.DELETE:
            return await self._deleted(write, current)
        stored = await self._to_storage(write)
        if current is not None and _value(stored, current.revision) == orjson.loads(current.value):
            return await self._asked_anew(current)
        return await self._asked_anew(await self.source.commit(stored))

    async def _to_storage(self, write: Write) -> Write:
        storage = self.versions.storage
        if self._form.kind.version == storage.kind.version:
            return write
        document = _value(write, 0)
        del document["metadata"]["resourceVersion"]
        (made,) = await self.versions.converted([document], storage.kind.api_version)
        storage.kind.schema.default(made)  # on the real server each read would do it
        return storage.write(made, write.expect, expires=write.expires)

    async def _deleted(self, write: Write, current: Entry | None) -> Entry:
        """The last state stays as it was stored; nothing needs to be converted to go."""
        if current is None:
            raise Conflict(write.key, None)
        last = self.versions.storage.write(orjson.loads(current.value), current.revision, Op.DELETE)
        gone = await self.source.commit(
            msgspec.structs.replace(last, schema=current.schema, labels=current.labels, fields=current.fields)
        )
        return self._entry(gone, _value(write, gone.revision))

    def watch(self, query: Query, since: Revision, *, heartbeat: float = 60.0) -> Watch:
        return _ConvertedWatch(self, self.source.watch(query, since, heartbeat=heartbeat))

    async def shown(self, entries: Sequence[Entry]) -> Entries:
        """Entries in this version, converted together as far as that was not done before."""
        marks = {(entry.key, entry.revision): entry for entry in entries if not self._is_own(entry)}
        if not marks:
            return list(entries)
        found = {mark: kept for mark in marks if (kept := self._kept.get(mark)) is not None}
        waiting = {self._asked[mark] for mark in marks if mark not in found and mark in self._asked}
        missing = [entry for mark, entry in marks.items() if mark not in found and mark not in self._asked]
        if missing:
            waiting.add(self._ask(missing))
        for task in waiting:
            found |= await asyncio.shield(task)  # who goes away takes it from nobody else
        return [found.get((entry.key, entry.revision), entry) for entry in entries]

    def _ask(self, entries: Sequence[Entry]) -> asyncio.Task[dict[Mark, Entry]]:
        task = asyncio.create_task(self._converted(entries), name=f"conversion to {self._form.kind.api_version}")
        for entry in entries:
            self._asked[entry.key, entry.revision] = task
        task.add_done_callback(lambda _: self._answered(entries, task))
        return task

    def _answered(self, entries: Sequence[Entry], task: asyncio.Task[dict[Mark, Entry]]) -> None:
        for entry in entries:
            self._asked.pop((entry.key, entry.revision), None)
        if not task.cancelled() and task.exception() is None:
            for made in task.result().values():
                self._keep(made)

    async def _converted(self, entries: Sequence[Entry]) -> dict[Mark, Entry]:
        documents = [self.versions.read(entry) for entry in entries]
        made = await self.versions.converted(documents, self._form.kind.api_version)
        return {
            (entry.key, entry.revision): self._entry(entry, document)
            for entry, document in zip(entries, made, strict=True)
        }

    async def _asked_anew(self, entry: Entry) -> Entry:
        if self._is_own(entry):
            return entry
        (made,) = (await self._converted([entry])).values()
        self._keep(made)
        return made

    def _is_own(self, entry: Entry) -> bool:
        return stored_version(entry) == self._form.kind.api_version

    def _entry(self, entry: Entry, document: Document) -> Entry:
        fields = self._form.strategy.fields(document)
        fields["metadata.name"], fields["metadata.namespace"] = entry.key.name, entry.key.namespace
        return Entry(
            key=entry.key,
            revision=entry.revision,
            value=self._encoded(document),
            labels=document["metadata"].get("labels") or {},
            fields=fields,
            schema=self._form.tag,
        )

    def _encoded(self, document: Document) -> bytes:
        try:
            return self._form.encode_within(document)
        except StatusError:
            raise failed(document, "returned an object that is nested too deeply to be shown") from None

    def _keep(self, entry: Entry) -> None:
        mark = entry.key, entry.revision
        if (old := self._kept.pop(mark, None)) is not None:
            self._size -= len(old.value)
        self._kept[mark] = entry
        self._size += len(entry.value)
        while self._size > MAX_KEPT:
            _, oldest = self._kept.popitem(last=False)
            self._size -= len(oldest.value)

    async def batch(self, batch: Batch) -> Batch:
        """Changes in this version. A deletion shows the state before it, which was mostly converted already."""
        if not batch.changes:
            return batch
        wanted: dict[Mark, Entry] = {}
        for change in batch.changes:
            for entry in (change.before, change.entry if change.op is Op.PUT or change.before is None else None):
                if entry is not None:
                    wanted[entry.key, entry.revision] = entry
        shown = dict(zip(wanted, await self.shown(list(wanted.values())), strict=True))
        return Batch(batch.revision, tuple(self._change(change, shown) for change in batch.changes))

    def _change(self, change: Change, shown: dict[Mark, Entry]) -> Change:
        before = None if change.before is None else shown[change.before.key, change.before.revision]
        if before is None or change.op is Op.PUT:
            return Change(op=change.op, entry=shown[change.entry.key, change.entry.revision], before=before)
        if self._is_own(change.entry):
            return Change(op=change.op, entry=change.entry, before=before)
        document = orjson.loads(before.value)
        document["metadata"]["resourceVersion"] = str(change.revision)
        return Change(op=change.op, entry=self._entry(change.entry, document), before=before)


class _ConvertedWatch:
    def __init__(self, backend: ConvertingBackend, watch: Watch) -> None:
        self._backend = backend
        self._watch = watch

    def __aiter__(self) -> _ConvertedWatch:
        return self

    async def __anext__(self) -> Batch:
        return await self._backend.batch(await anext(self._watch))

    async def aclose(self) -> None:
        await self._watch.aclose()


def _value(write: Write, revision: Revision) -> Document:
    document: Document = orjson.loads(write.head + str(revision).encode() + write.tail)
    return document


def _is_sure(fields: object) -> bool:
    return fields is None or (
        isinstance(fields, FieldSelector) and all(wanted.field in _SURE for wanted in fields.requirements)
    )


def _matches(query: Query, entry: Entry) -> bool:
    labels, fields = query.labels, query.fields
    return (labels is None or labels.matches(entry.labels)) and (fields is None or fields.matches(entry.fields))
