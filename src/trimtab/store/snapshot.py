"""A copy of a store's file while its owner goes on writing, and what a copy needs before it may be served.

A snapshot is one read transaction: everything that is asked of it, and the copy, is the state of one moment, whatever is
committed meanwhile. It takes no lock that a writer waits for; SQLite's log is not folded back into the file while it is
open. It may be taken by any process of the same user, also when no server runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw
import msgspec

from trimtab.store.contract import Revision, Unusable
from trimtab.store.file import Database
from trimtab.store.rows import APPLICATION_ID, LADDER
from trimtab.store.writer import Writer

STEP = 256
"""The pages that are copied between two reports."""

JUMP = 1_000_000_000
"""By how much a restored store is ahead of its copy, at the least."""

_DIGEST = re.compile(rb"sha256:([0-9a-f]{64})")
_OBJECTS = (
    "SELECT log.resource, log.value FROM latest CROSS JOIN log ON log.revision = latest.revision "
    "ORDER BY latest.resource, latest.namespace, latest.name"
)

Told = Callable[[int, int], None]


class Kept(msgspec.Struct, frozen=True):
    """An object of a snapshot: where it is stored, and the bytes that a client would get."""

    resource: str
    value: bytes


class Snapshot:
    """The state of a store at one revision. Make it with `snapshot`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.revision, self.compacted = Writer(connection).newest()

    def objects(self) -> Iterator[Kept]:
        for resource, value in self._connection.execute(_OBJECTS):
            yield Kept(resource, value)

    def digests(self) -> set[str]:
        """All that objects name by a digest, as hexadecimal digits. Not all of them are blobs."""
        return {found.decode() for kept in self.objects() for found in _DIGEST.findall(kept.value)}

    def copy(self, target: Path, told: Told) -> None:
        copied(self._connection, target, told)


@contextmanager
def snapshot(path: Path) -> Iterator[Snapshot]:
    """`Unusable` when there is no store of ours."""
    with reading(path, APPLICATION_ID, len(LADDER)) as connection:
        yield Snapshot(connection)


@contextmanager
def reading(path: Path, application: int, newest: int) -> Iterator[apsw.Connection]:
    """A connection to a file of ours that holds on to the moment at which it was opened."""
    if not path.is_file():
        raise Unusable(f"{path} is not there: is this a data directory?")
    try:
        # Not read-only: whoever comes first to a file in WAL mode has to make the index of the log.
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.Error as error:
        raise Unusable(f"{path} cannot be opened ({error}): check its permissions") from error
    try:
        connection.set_busy_timeout(5000)
        connection.pragma("query_only", True)
        connection.execute("BEGIN")
        found, version = connection.pragma("application_id"), connection.pragma("user_version")
        if found != application:
            raise Unusable(f"{path} belongs to another program")
        if version > newest:
            raise Unusable(
                f"{path} was written by a newer Trimtab (format {version}, this one knows {newest}): upgrade"
            )
        yield connection
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise Unusable(f"{path} is damaged ({error})") from error
    finally:
        connection.close()


def copied(source: apsw.Connection, target: Path, told: Told) -> None:
    """The whole file as `source` sees it, durable when this returns. `told` gets pages done, and of how many."""
    copy = apsw.Connection(str(target))
    try:
        with copy.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(STEP)
                told(backup.page_count - backup.remaining, backup.page_count)
        copy.pragma("journal_mode", "delete")  # one file, nothing beside it
    finally:
        copy.close()


def after_restore(revision: Revision, now: float) -> Revision:
    """The revision at which a copy of `revision` goes on when it is restored at `now` (seconds since 1970).

    Clients may have seen revisions that were given out after the copy was taken, by the lost server or by an earlier
    restore of the same copy. Microseconds since 1970 are ahead of all of them: no server gives out a million revisions a
    second for its whole life. The jump is for clocks that are wrong.
    """
    return max(revision + JUMP, int(now * 1_000_000))


def advance(path: Path, to: Revision, *, without: Sequence[tuple[str, str]] = ()) -> None:
    """Let a copy go on at `to`, with nothing of the log left: whoever comes with an older revision learns that it is gone.

    `without` names objects, by resource and name in whatever namespace, that are not to be there.
    """
    database = Database(path)
    try:
        writer = Writer(database.write)
        newest, compacted = writer.newest()
        if to <= newest:
            raise ValueError(f"{to} is not after {newest}")
        writer.begin()
        for named in without:
            database.write.execute("DELETE FROM latest WHERE resource = ? AND name = ?", named)
            database.write.execute("DELETE FROM log WHERE resource = ? AND name = ?", named)
        writer.sweep(compacted, to)
        writer.commit()
    finally:
        database.close()


def check(path: Path) -> None:
    """`Unusable` when SQLite finds the file damaged."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        problem = connection.execute("PRAGMA quick_check(1)").get
    except apsw.Error as error:
        problem = str(error)
    finally:
        connection.close()
    if problem != "ok":
        raise Unusable(f"{path.name} is damaged: {problem}")
