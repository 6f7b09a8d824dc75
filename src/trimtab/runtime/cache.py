"""One kind's objects in memory, as bytes, decoded when read; with indexes, and with our own writes laid over them.

Guarantees: a read sees every write that this process made through `absorb` and `forget`, from the moment its answer
came, and goes on to see it: the laid-over entry stays until the watch has passed its revision. Readers see either the
watch's object or a newer one of our own.

Assumptions: revisions are numbers and grow (KEP-5504); all of one kind's changes come in order of revision, so that an
event of revision r, whatever its object, means that every change up to r was told. On a server whose revisions are no
numbers, nothing is laid over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from trimtab.client.entries import Delta, Entry, Snapshot
from trimtab.client.protocol import EventType, Object, Query
from trimtab.model.document import read
from trimtab.model.resource import Resource
from trimtab.model.scheme import Untyped
from trimtab.model.selectors import LabelSelector
from trimtab.runtime.changes import Change, Request, head
from trimtab.runtime.echo import Writer
from trimtab.runtime.index import Filed, Index

if TYPE_CHECKING:
    from trimtab.runtime.informers import Informers


class Cache:
    """What one list-watch brought."""

    def __init__(
        self, informers: Informers, cls: type[Resource] | None, api_version: str, kind: str, query: Query
    ) -> None:
        self.informers = informers
        self.query = query
        self.revision = ""  # the state of the watch; "" before the first list
        self._cls = None if query.metadata_only else cls
        self._names = (api_version, kind)
        self._selector = LabelSelector.parse(query.labels) if query.labels else None
        self._entries: dict[str, dict[str, Entry]] = {}  # by namespace, by name
        self._written: dict[
            Request, Entry
        ] = {}  # our own writes that the watch has not told yet; no body: out of scope
        self._writers: dict[tuple[str, str, str], Writer] = {}  # of those, by namespace, name and revision
        self._gone: dict[Request, Entry] = {}  # our own deletions: what is gone, as last known
        self._indexes: dict[str, Filed] = {}

    # --- what the watch brings -------------------------------------------------------------------------------------

    def replace(self, snapshot: Snapshot, *, initial: bool) -> list[Change]:
        """Take a whole new state; what changed since the one before, deletions first."""
        fresh: dict[str, dict[str, Entry]] = {}
        for entry in snapshot.entries:
            fresh.setdefault(entry.namespace, {})[entry.name] = entry
        changes = [
            Change(self, entry, None)
            for entry in self.entries_of_watch()
            if entry.name not in fresh.get(entry.namespace, ())
        ]
        changes += [
            Change(self, entry, None)  # readers knew it by our own writes alone
            for request, entry in (*self._written.items(), *self._gone.items())
            if entry.body
            and not self._newer(entry.revision, snapshot.revision)
            and request.name not in fresh.get(request.namespace, ())
            and request.name not in self._entries.get(request.namespace, ())
        ]
        for entry in snapshot.entries:
            before = self._entries.get(entry.namespace, {}).get(entry.name)
            if before is not None and before.revision == entry.revision:
                continue
            if before is not None and self._uid(before) != self._uid(entry):  # another one took the name meanwhile
                changes.append(Change(self, before, None))
                before = None
            changes.append(Change(self, before, entry, initial))
        self._entries = fresh
        self._writers.clear()  # a list may leave out what happened before
        self._reached(snapshot.revision)
        self._gone = {
            request: gone
            for request, gone in self._gone.items()
            if not self._newer(snapshot.revision, gone.revision)
            or self._uid(fresh.get(request.namespace, _NONE).get(request.name)) == self._uid(gone)
        }
        for filed in self._indexes.values():
            for change in changes:
                filed.refile(self, change)
        return changes

    def advance(self, delta: Delta) -> Change | None:
        """Take one change of the watch; None for a bookmark and for what was told before."""
        change = None if delta.entry is None else self._advanced(delta.type, delta.entry)
        self._reached(delta.revision)
        if change is not None and self._indexes:
            for filed in self._indexes.values():
                filed.refile(self, change)
        return change

    def _advanced(self, kind: EventType, entry: Entry) -> Change | None:
        names = self._entries.get(entry.namespace)
        if names is None:
            names = self._entries[entry.namespace] = {}
        before = names.get(entry.name)
        if self._gone and self._returned(kind, entry):
            del self._gone[Request(entry.namespace, entry.name)]
        writer = self._writers.pop((entry.namespace, entry.name, entry.revision), None) if self._writers else None
        if kind is EventType.DELETED:
            names.pop(entry.name, None)
            if not names:
                del self._entries[entry.namespace]
            return Change(self, before, None) if before is not None else None
        if before is not None and before.revision == entry.revision:
            return None
        names[entry.name] = entry
        return Change(self, before, entry, False, writer)

    def _returned(self, kind: EventType, entry: Entry) -> bool:
        """Whether the watch has caught up with our deletion, or is already at the object's successor."""
        gone = self._gone.get(Request(entry.namespace, entry.name))
        if gone is None or not self._newer(entry.revision, gone.revision):
            return False  # or it is still at a predecessor
        return kind is EventType.DELETED or self._uid(entry) != self._uid(gone)

    def _reached(self, revision: str) -> None:
        self.revision = revision
        while self._written:  # the oldest first: about in order of revision
            key, entry = next(iter(self._written.items()))
            if self._newer(entry.revision, revision):
                return
            del self._written[key]
        self._writers.clear()

    # --- what we wrote ourselves -----------------------------------------------------------------------------------

    def absorb(self, entry: Entry, writer: Writer | None = None) -> None:
        """The answer to a write of our own: readers see it from now on. `writer` is who surely made this revision."""
        if not self._newer(entry.revision, self.revision):
            return
        key = Request(entry.namespace, entry.name)
        known = self._written.get(key)
        if known is not None and not self._newer(entry.revision, known.revision):
            return
        self._written.pop(key, None)
        self._written[key] = entry if self._in_scope(entry) else Entry(key.namespace, key.name, entry.revision, b"")
        self._gone.pop(key, None)
        if writer is not None:
            self._writers[entry.namespace, entry.name, entry.revision] = writer

    def forget(self, request: Request, uid: str | None = None) -> None:
        """We deleted an object for good: readers do not see it any more. The answer to a deletion has no revision, so
        it is told by its uid; another one that took the name meanwhile stays."""
        known = self._written.get(request) or self._entries.get(request.namespace, _NONE).get(request.name)
        if known is None or not known.body or uid not in (None, self._uid(known)):
            return
        self._written.pop(request, None)
        if known.revision.isdecimal():
            self._gone[request] = known

    def uid(self, request: Request) -> str:
        """Of the newest object that we know of; "" when there is none."""
        return self._uid(self.get(request))

    def _uid(self, entry: Entry | None) -> str:
        return head(entry.body).uid if entry is not None and entry.body else ""

    def _newer(self, one: str, other: str) -> bool:
        return one.isdecimal() and (not other or (other.isdecimal() and int(one) > int(other)))

    def _in_scope(self, entry: Entry) -> bool:
        if self.query.namespace and entry.namespace != self.query.namespace:
            return False
        if self.query.fields:  # only the server can tell
            return entry.name in self._entries.get(entry.namespace, ())
        return self._selector is None or self._selector.matches(head(entry.body).labels or {})

    # --- what readers ask ------------------------------------------------------------------------------------------

    def get(self, request: Request) -> Entry | None:
        """The newest that we know of."""
        if self._written:
            written = self._written.get(request)
            if written is not None:
                if self._newer(written.revision, self.revision):
                    return written if written.body else None
                del self._written[request]  # the watch has passed it, out of order
        entry = self._entries.get(request.namespace, _NONE).get(request.name)
        if entry is not None and self._gone and request in self._gone:
            return None
        return entry

    def entries(self, namespace: str = "") -> Iterator[Entry]:
        """All, or those of one namespace."""
        if not self._written and not self._gone:
            yield from self.entries_of_watch(namespace)
            return
        for request in list(self._written):
            entry = self.get(request)
            if entry is not None and request in self._written and namespace in ("", request.namespace):
                yield entry
        for entry in self.entries_of_watch(namespace):
            request = Request(entry.namespace, entry.name)
            if request not in self._written and request not in self._gone:
                yield entry

    def entries_of_watch(self, namespace: str = "") -> Iterator[Entry]:
        groups = [self._entries.get(namespace, _NONE)] if namespace else self._entries.values()
        for group in groups:
            yield from group.values()

    @property
    def typed(self) -> bool:
        return self._cls is not None

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def decode(self, entry: Entry) -> Object:
        """The object; Untyped when there is no class, or when it does not fit its class."""
        if self._cls is not None:
            try:
                made = read(entry.body, self._cls)
            except msgspec.ValidationError:
                pass
            else:
                if not made.kind:  # lists leave them out
                    msgspec.structs.force_setattr(made, "api_version", self._names[0])
                    msgspec.structs.force_setattr(made, "kind", self._names[1])
                return made
        document = msgspec.json.decode(entry.body)
        return Untyped({"apiVersion": self._names[0], "kind": self._names[1]} | document)

    # --- indexes ---------------------------------------------------------------------------------------------------

    def add_index(self, index: Index) -> None:
        known = self._indexes.get(index.name)
        if known is not None:
            if known.index.keys is not index.keys:
                raise ValueError(f'{self._names[1]} has another index "{index.name}" already')
            return
        filed = self._indexes[index.name] = Filed(index)
        for entry in self.entries_of_watch():
            filed.refile(self, Change(self, None, entry))

    def has_index(self, name: str) -> bool:
        return name in self._indexes

    def indexed(self, name: str, value: str) -> list[Request]:
        """Which objects an index has under a value, our own writes included."""
        filed = self._indexes.get(name)
        if filed is None:
            raise LookupError(f'{self._names[1]} has no index "{name}"; a controller declares it in `indexes`')
        found = dict.fromkeys(r for r in filed.values.get(value, ()) if r not in self._written and r not in self._gone)
        for request in list(self._written):
            entry = self.get(request)
            if entry is not None and value in filed.keys_of_written(self, request, entry):
                found[request] = None
        return list(found)


_NONE: dict[str, Entry] = {}
