"""A store in memory, for tests and for servers that may forget: the same contract, with nothing on disk."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Sequence

from trimtab.store.contract import (
    MAX_VALUE,
    Batch,
    Change,
    Conflict,
    Entry,
    Gone,
    Key,
    NotYet,
    Op,
    Page,
    Query,
    Revision,
    TooLarge,
    Unavailable,
    Write,
)
from trimtab.store.page import page
from trimtab.store.watch import Buffer, Fanout, Watcher

STEP = 1000
"""The most changes that a watcher reads from the log at once."""


class MemoryStore:
    """`Store` as dictionaries and a list. Keeps the last `keep` revisions for watches and snapshots."""

    trouble = ""

    def __init__(self, *, keep: int = 10_000, buffer: Buffer | None = None) -> None:
        self._keep = keep
        self._objects: dict[str, dict[Key, Entry]] = {}
        self._expires: dict[Key, float] = {}
        self._log: deque[Change] = deque()  # the changes (compacted, revision], one for each revision
        self._revision: Revision = 0
        self._compacted: Revision = 0
        self._fanout = Fanout(self, buffer or Buffer())

    @property
    def revision(self) -> Revision:
        return self._revision

    @property
    def compacted(self) -> Revision:
        return self._compacted

    async def get(self, key: Key) -> Entry | None:
        return self._objects.get(key.resource, {}).get(key)

    async def list(self, query: Query) -> Page:
        at = self._revision if query.revision is None else query.revision
        if at < self._compacted:
            raise Gone(at, self._compacted)
        if at > self._revision:
            raise NotYet(at, self._revision)
        objects = self._objects.get(query.resource, {})
        if at < self._revision:
            objects = dict(objects)
            for change in reversed(list(self._since(at))):  # undo, newest first
                if change.entry.key.resource == query.resource:
                    objects.pop(change.entry.key, None)
                    if change.before is not None:
                        objects[change.entry.key] = change.before
        keys = sorted(key for key in objects if _asked(query, key))
        start = 0 if query.after is None else bisect_right(keys, query.after)
        entries = (objects[key] for key in itertools.islice(keys, start, None))
        return page(entries, query, at, lambda key: len(keys) - bisect_left(keys, key) - 1)

    async def commit(self, write: Write) -> Entry:
        if self._fanout.closed:
            raise Unavailable("the store is closed")
        key = write.key
        before = self._objects.get(key.resource, {}).get(key)
        at = 0 if before is None else before.revision
        if (write.expect is not None and write.expect != at) or (write.op is Op.DELETE and before is None):
            raise Conflict(key, before)
        revision = self._revision + 1
        value = b"%b%d%b" % (write.head, revision, write.tail)
        if len(value) > MAX_VALUE:
            raise TooLarge(f"{len(value)} bytes are more than {MAX_VALUE}")
        entry = Entry(
            key=key, revision=revision, value=value, labels=write.labels, fields=write.fields, schema=write.schema
        )
        self._expires.pop(key, None)
        if write.op is Op.DELETE:
            del self._objects[key.resource][key]
        else:
            self._objects.setdefault(key.resource, {})[key] = entry
            if write.expires is not None:
                self._expires[key] = write.expires
        change = Change(op=write.op, entry=entry, before=before)
        self._log.append(change)
        self._revision = revision
        self._forget(revision - self._keep)
        self._fanout.publish((change,))
        return entry

    def watch(self, query: Query, since: Revision, *, heartbeat: float = 60.0) -> Watcher:
        return self._fanout.watch(query, since, heartbeat)

    async def count(self, resource: str) -> int:
        return len(self._objects.get(resource, {}))

    async def expired(self, now: float, limit: int = 100) -> Sequence[Entry]:
        due = sorted((expires, key) for key, expires in self._expires.items() if expires <= now)
        return [self._objects[key.resource][key] for _, key in due[:limit]]

    async def compact(self, before: Revision) -> None:
        self._forget(min(before, self._revision))

    async def close(self) -> None:
        self._fanout.close()

    def changes(self, query: Query, after: Revision) -> Batch:
        step = list(itertools.islice(self._since(after), STEP))
        wanted = [c for c in step if c.entry.key.resource == query.resource and _asked(query, c.entry.key)]
        return Batch(after + len(step), tuple(wanted))

    def _since(self, revision: Revision) -> Iterator[Change]:
        return itertools.islice(self._log, revision - self._compacted, None)

    def _forget(self, before: Revision) -> None:
        while self._compacted < before:
            self._log.popleft()
            self._compacted += 1


def _asked(query: Query, key: Key) -> bool:
    return (query.namespace is None or query.namespace == key.namespace) and (
        query.name is None or query.name == key.name
    )
