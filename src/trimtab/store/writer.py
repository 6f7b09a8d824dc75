"""Writing to the database: one transaction for a batch of writes and a little compaction.

`begin`, `apply` and `sweep` only change pages in memory and are called on the event loop; `commit` waits for the disk
and is called in a thread. A write whose compare-and-swap fails changes nothing, so it needs no savepoint.
"""

from __future__ import annotations

import apsw

from trimtab.store.contract import Change, Conflict, Entry, Op, Revision, Write
from trimtab.store.rows import ENTRY, entry, packed

_CURRENT = (
    f"SELECT {ENTRY} FROM latest CROSS JOIN log ON log.revision = latest.revision "  # noqa: S608
    "WHERE latest.resource = ? AND latest.namespace = ? AND latest.name = ?"
)
_LOG = "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_POINT = "INSERT OR REPLACE INTO latest VALUES (?, ?, ?, ?, ?)"
_REMOVE = "DELETE FROM latest WHERE resource = ? AND namespace = ? AND name = ?"
_SWEEP = (
    "DELETE FROM log WHERE revision IN "
    "(SELECT previous FROM log WHERE revision > ?1 AND revision <= ?2 AND previous > 0)"
)
_SWEEP_DELETED = "DELETE FROM log WHERE revision > ?1 AND revision <= ?2 AND deleted"


class Writer:
    """The write side of a store. One transaction at a time."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()

    def newest(self) -> tuple[Revision, Revision]:
        """(revision, compacted). Compaction may have removed the newest row, when that was a deletion."""
        compacted = self._cursor.execute("SELECT compacted FROM horizon").get
        newest = self._cursor.execute("SELECT max(revision) FROM log").get
        return max(newest or 0, compacted), compacted

    def begin(self) -> None:
        self.rollback()
        self._cursor.execute("BEGIN IMMEDIATE")

    def apply(self, write: Write, revision: Revision) -> Change | Conflict:
        """The change that the write makes at `revision`, if it may."""
        execute, key = self._cursor.execute, write.key
        row = execute(_CURRENT, key).get
        before = None if row is None else entry(row)
        previous = 0 if before is None else before.revision
        deletes = write.op is Op.DELETE
        if (write.expect is not None and write.expect != previous) or (deletes and before is None):
            return Conflict(key, before)
        value = b"%b%d%b" % (write.head, revision, write.tail)
        labels, fields = packed(write.labels), packed(write.fields)
        execute(_LOG, (revision, *key, deletes, previous, write.schema, labels, fields, value))
        if deletes:
            execute(_REMOVE, key)
        else:
            execute(_POINT, (*key, revision, write.expires))
        after = Entry(
            key=key, revision=revision, value=value, labels=write.labels, fields=write.fields, schema=write.schema
        )
        return Change(op=write.op, entry=after, before=before)

    def sweep(self, after: Revision, until: Revision) -> None:
        """Move the horizon from `after` to `until`: drop what the writes between superseded, and the deletions."""
        self._cursor.execute(_SWEEP, (after, until))
        self._cursor.execute(_SWEEP_DELETED, (after, until))
        self._cursor.execute("UPDATE horizon SET compacted = ?", (until,))

    def touch(self) -> None:
        """Write something that changes nothing, to see whether the disk takes it."""
        self._cursor.execute("UPDATE horizon SET compacted = compacted")

    def commit(self) -> None:
        self._cursor.execute("COMMIT")

    def rollback(self) -> None:
        """Whether or not there is a transaction: SQLite ends some by itself when they fail."""
        if self._connection.in_transaction:
            self._cursor.execute("ROLLBACK")
