"""Reading the database as it was at a revision.

The writer's transaction becomes visible to this connection at the moment it is durable, which is a little before the
store has published its revisions. So every read here is told the revision `at` which it is to see, and looks past what
is newer: a row of `latest` that is not newer than `at` was the latest at `at` too; for a key that changed after `at`,
the first row of the log after `at` names in `previous` what was there. Compaction keeps those rows, since they were
superseded after `at` and `at` is not below the horizon.

Reads are synchronous and meant for the event loop's thread: a lookup costs less than a trip to another thread.
"""

from __future__ import annotations

import heapq
from collections.abc import Generator, Iterator
from typing import NamedTuple

import apsw

from trimtab.store.contract import Batch, Change, Entry, Key, Op, Page, Query, Revision
from trimtab.store.page import page
from trimtab.store.rows import ENTRY, entry

STEP = 1000
"""The most revisions that a watcher looks at in one step of catching up."""
STEP_BYTES = 1024 * 1024
"""The most bytes that it takes in one step, states before included, give or take the last change."""

_JOINED = f"SELECT {ENTRY} FROM latest CROSS JOIN log ON log.revision = latest.revision"  # noqa: S608
_GET = f"{_JOINED} WHERE latest.resource = ? AND latest.namespace = ? AND latest.name = ?"
_AT = f"SELECT {ENTRY} FROM log WHERE revision = ?"  # noqa: S608
_FIRST_AFTER = (
    "SELECT previous FROM log WHERE revision > ? AND resource = ? AND namespace = ? AND name = ? "
    "ORDER BY revision LIMIT 1"
)
# One statement, so that both parts see the same state.
_COUNT = """
    SELECT (SELECT count(*) FROM latest WHERE resource = ?1)
         - (SELECT coalesce(sum((deleted = 0 AND previous = 0) - deleted), 0)
            FROM log WHERE revision > ?2 AND resource = ?1)
"""
_EXPIRED = f"{_JOINED} WHERE latest.expires <= ? AND latest.revision <= ? ORDER BY latest.expires LIMIT ?"


class _Moved(NamedTuple):
    """A key that changed after the revision of a snapshot."""

    previous: Revision  # what it was at then; 0: absent
    exists: bool  # is in `latest`


class Reader:
    """The read side of a store; see the module for what `at` means."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()

    def get(self, key: Key, at: Revision) -> Entry | None:
        row = self._cursor.execute(_GET, key).get
        if row is not None and row[3] <= at:
            return entry(row)
        # Absent, or changed since: had it changed after `at`, the log shows that by now.
        previous = self._cursor.execute(_FIRST_AFTER, (at, *key)).get
        return self._entry_at(previous) if previous else None

    def list(self, query: Query, at: Revision) -> Page:
        self._cursor.execute("BEGIN")
        try:
            moved = self._moved(query, at)
            entries = self._entries(query, moved)
            try:
                return page(entries, query, at, lambda key: self._after(query, moved, key))
            finally:
                entries.close()
        finally:
            self._cursor.execute("COMMIT")

    def changes(self, query: Query, after: Revision, at: Revision) -> Batch:
        """The changes in (after, at], a step of them."""
        until = min(after + STEP, at)
        where, bindings = _scope(query, "log")
        sql = (
            f"SELECT {ENTRY}, log.deleted, before.resource, before.namespace, before.name, before.revision, "  # noqa: S608
            "before.schema, before.labels, before.fields, before.value "
            "FROM log LEFT JOIN log AS before ON before.revision = log.previous "
            f"WHERE log.revision > ? AND log.revision <= ? AND {where} ORDER BY log.revision"
        )
        changes = []
        size = 0
        cursor = self._connection.execute(sql, (after, until, *bindings))
        for row in cursor:
            change = Change(
                op=Op.DELETE if row[8] else Op.PUT,
                entry=entry(row[:8]),
                before=None if row[9] is None else entry(row[9:]),
            )
            changes.append(change)
            size += len(change.entry.value) + (len(change.before.value) if change.before is not None else 0)
            if size > STEP_BYTES:
                until = change.revision
                break
        cursor.close(True)
        return Batch(until, tuple(changes))

    def count(self, resource: str, at: Revision) -> int:
        return int(self._cursor.execute(_COUNT, (resource, at)).get)

    def expired(self, now: float, limit: int, at: Revision) -> Iterator[Entry]:
        return map(entry, self._cursor.execute(_EXPIRED, (now, at, limit)).fetchall())

    def _entry_at(self, revision: Revision) -> Entry:
        return entry(self._cursor.execute(_AT, (revision,)).get)

    def _moved(self, query: Query, at: Revision) -> dict[tuple[str, str], _Moved]:
        where, bindings = _scope(query, "log")
        sql = f"SELECT namespace, name, previous, deleted FROM log WHERE revision > ? AND {where} ORDER BY revision"  # noqa: S608
        moved: dict[tuple[str, str], _Moved] = {}
        for namespace, name, previous, deleted in self._cursor.execute(sql, (at, *bindings)):
            place = (namespace, name)
            first = moved.get(place)
            moved[place] = _Moved(previous if first is None else first.previous, not deleted)
        return moved

    def _entries(self, query: Query, moved: dict[tuple[str, str], _Moved]) -> Generator[Entry, None, None]:
        """Sorted: what did not change after the snapshot, merged with what was there before it changed."""
        where, bindings = _scope(query, "latest") if query.after is None else _beyond(query, query.after)
        limit = ""
        if query.limit and query.labels is None and query.fields is None:
            limit = f" LIMIT {int(query.limit) + 1 + len(moved)}"
        order = "ORDER BY latest.resource, latest.namespace, latest.name"
        cursor = self._connection.execute(f"{_JOINED} WHERE {where} {order}{limit}", bindings)
        try:
            if not moved:
                yield from map(entry, cursor)
                return
            still = (entry(row) for row in cursor if (row[1], row[2]) not in moved)
            start = query.after[1:] if query.after is not None else ("", "")
            places = sorted(place for place, was in moved.items() if was.previous and place > start)
            old = (self._entry_at(moved[place].previous) for place in places)
            yield from heapq.merge(still, old, key=_key)
        finally:
            cursor.close(True)

    def _after(self, query: Query, moved: dict[tuple[str, str], _Moved], key: Key) -> int:
        where, bindings = _beyond(query, key)
        now = int(self._cursor.execute(f"SELECT count(*) FROM latest WHERE {where}", bindings).get)  # noqa: S608
        later = [was for place, was in moved.items() if place > key[1:]]
        return now - sum(was.exists for was in later) + sum(was.previous > 0 for was in later)


def _scope(query: Query, table: str) -> tuple[str, tuple[str, ...]]:
    """The condition for the keys that a query names."""
    where = f"{table}.resource = ?"
    bindings: tuple[str, ...] = (query.resource,)
    if query.namespace is not None:
        where += f" AND {table}.namespace = ?"
        bindings += (query.namespace,)
    if query.name is not None:
        where += f" AND {table}.name = ?"
        bindings += (query.name,)
    return where, bindings


def _beyond(query: Query, key: Key) -> tuple[str, tuple[str, ...]]:
    """The condition for those of them that come after a key, in terms that the primary key can seek by."""
    where, bindings = _scope(query, "latest")
    if query.namespace == key.namespace:
        return f"{where} AND latest.name > ?", (*bindings, key.name)
    return f"{where} AND (latest.namespace, latest.name) > (?, ?)", (*bindings, key.namespace, key.name)


def _key(item: Entry) -> Key:
    return item.key
