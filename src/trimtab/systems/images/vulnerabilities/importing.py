"""Make a vulnerability database from OSV data.

Flow: the new file is built beside the old one, from its contents unless `replace`; each document replaces an older one
of its id (by `modified`); then the digests are computed, the file is synced and renamed over the old one. A failure at any
line leaves the old database as it was. Withdrawn advisories leave an empty row, so that an older copy does not return.

Of two imports into one path at the same time the second is refused. What a killed import left is made anew by the next.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import msgspec

from trimtab.systems.images.vulnerabilities.advisory import DocumentError, Read, read
from trimtab.systems.images.vulnerabilities.database import SCHEMA, DatabaseError, open_database, packed
from trimtab.systems.images.vulnerabilities.sources import Limits, SourceError, documents

Progress = Callable[[int, str], None]
"""Documents read so far, and the last one's name."""

EXAMPLES = 20
REASONS = 3
"""Why documents were skipped, in an error."""
_EVERY = 500  # documents between calls of progress


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an import did. `count` is what the database has now; the other numbers are of this source."""

    count: int
    read: int  # advisories of the source that are in the database now
    unchanged: int  # the database had them as new or newer
    ecosystems: dict[str, int]  # advisories in the database, by ecosystem
    skipped: dict[str, int]  # documents, by reason
    examples: tuple[str, ...]  # the first files that were skipped as unreadable
    digest: str
    changed: bool  # against the database that was there before


def import_osv(
    source: Path, target: Path, *, replace: bool = False, limits: Limits | None = None, progress: Progress | None = None
) -> ImportReport:
    """Read a folder or zip file of OSV JSON into the database at `target`. SourceError, DatabaseError, OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target):
        return _import(source, target, replace, limits or Limits(), progress)


def _import(source: Path, target: Path, replace: bool, limits: Limits, progress: Progress | None) -> ImportReport:
    goes_on = target.exists() and not replace
    before = _digest(target, damaged_is_none=replace)
    making = target.with_name(f".{target.name}.making")
    try:
        making.unlink(missing_ok=True)
        if goes_on:
            shutil.copyfile(target, making)
        tally = _Tally()
        with _connection(making) as connection:
            if not goes_on:
                connection.execute(SCHEMA)
            connection.execute("BEGIN")
            builder = _Builder(connection)
            for document in _read(source, limits, tally, progress):
                tally.note(document, builder.put(document))
            if not tally.understood:
                raise SourceError(f"{source} has no OSV documents in JSON{tally.told()}")
            if replace and not tally.kept:
                raise SourceError(f"{source} has no advisories that are matched here; the database stays as it is")
            builder.finish()
            connection.execute("COMMIT; VACUUM")
        _settle(making, target)
    finally:
        making.unlink(missing_ok=True)
    return _report(target, tally, before)


def _digest(target: Path, *, damaged_is_none: bool) -> str:
    """Of the database that is there; a damaged one may be replaced, but not added to."""
    if not target.exists():
        return ""
    try:
        with open_database(target) as database:
            return database.digest
    except DatabaseError:
        if damaged_is_none:
            return ""
        raise


class _Tally:
    def __init__(self) -> None:
        self.done = self.understood = self.kept = self.unchanged = 0
        self.skipped: Counter[str] = Counter()
        self.examples: list[str] = []

    def skip(self, name: str, why: str) -> None:
        self.skipped[why] += 1
        if len(self.examples) < EXAMPLES and why != "not JSON":
            self.examples.append(f"{name[-200:]}: {why}")

    def told(self) -> str:
        """What there was instead: a bomb has documents, and they are too large."""
        most = sorted(self.skipped.items(), key=lambda each: (each[0] == "not JSON", -each[1]))[:REASONS]
        return f": {', '.join(f'{count:,} {why}' for why, count in most)}" if most else ""

    def note(self, document: Read, taken: bool) -> None:
        self.understood += 1
        if document.advisory is None:
            self.skipped[document.why] += 1
        elif taken:
            self.kept += 1
        else:
            self.unchanged += 1


def _read(source: Path, limits: Limits, tally: _Tally, progress: Progress | None) -> Iterator[Read]:
    for name, content, why in documents(source, limits):
        tally.done += 1
        if progress and tally.done % _EVERY == 0:
            progress(tally.done, name)
        if content is None:
            tally.skip(name, why)
            continue
        try:
            yield read(content)
        except DocumentError as error:
            tally.skip(name, str(error))
    if progress:
        progress(tally.done, "")


class _Builder:
    """Writes documents into an open file."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._many = connection.executemany
        self._numbers: dict[str, int] = {
            name: number for number, name in self._execute("SELECT number, name FROM ecosystem")
        }
        self._known: dict[str, tuple[int, str, bytes]] = {
            name: (number, modified, whole) for number, name, modified, whole in self._execute(_KNOWN)
        }
        self._next = 1 + max((number for number, _, _ in self._known.values()), default=0)
        self._stale: list[int] = []

    def put(self, document: Read) -> bool:
        """Was it newer than what is there? Of two with the same time the larger stays, which is the same in any order."""
        affected = [(*place, msgspec.msgpack.encode(body)) for place, body in sorted(document.affected.items())]
        content = msgspec.msgpack.encode(document.advisory) if document.advisory else b""
        whole = _short(msgspec.msgpack.encode((content, affected))) if content else _WITHDRAWN
        known = self._known.get(document.id)
        if known is not None:
            number, modified, there = known
            if (document.modified, whole) <= (modified, there):
                return False
            self._stale.append(number)
            self._execute("DELETE FROM advisory WHERE number = ?", (number,))
        number, self._next = self._next, self._next + 1
        self._known[document.id] = number, document.modified, whole
        body = (_short(content), packed(content)) if content else (None, None)
        self._execute(
            "INSERT INTO advisory VALUES (?, ?, ?, ?, ?, ?)", (number, document.id, document.modified, whole, *body)
        )
        self._many(
            "INSERT INTO affected VALUES (?, ?, ?, ?)",
            [(self._ecosystem(ecosystem), name, number, body) for ecosystem, name, body in affected],
        )
        return True

    def finish(self) -> None:
        """Drop what was replaced, and compute the digests."""
        self._execute("CREATE TEMP TABLE stale (number INTEGER PRIMARY KEY)")
        self._many("INSERT INTO stale VALUES (?)", [(number,) for number in self._stale])
        if self._stale:
            self._execute("DELETE FROM affected WHERE advisory IN (SELECT number FROM stale)")
        self._execute("DELETE FROM ecosystem WHERE number NOT IN (SELECT DISTINCT ecosystem FROM affected)")
        self._execute("DELETE FROM package")
        whole = hashlib.sha256()
        for name, number in list(self._execute("SELECT name, number FROM ecosystem ORDER BY name")):
            for package, digest in list(self._packages(number)):
                self._execute("INSERT INTO package VALUES (?, ?, ?)", (number, package, digest))
                whole.update(msgspec.msgpack.encode((name, package, digest)))
        self._execute("INSERT OR REPLACE INTO meta VALUES ('digest', ?)", (f"sha256:{whole.hexdigest()}",))

    def _packages(self, ecosystem: int) -> Iterator[tuple[str, bytes]]:
        """Each package of an ecosystem with the digest of all that is said of it, by name."""
        current, said = "", list[tuple[str, bytes, bytes]]()
        for name, *row in self._execute(_SAID, (ecosystem,)):
            if name != current and said:
                yield current, _short(msgspec.msgpack.encode(sorted(said)))
                said = []
            current = name
            said.append(tuple(row))
        if said:
            yield current, _short(msgspec.msgpack.encode(sorted(said)))

    def _ecosystem(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = 1 + max(self._numbers.values(), default=0)
            self._execute("INSERT INTO ecosystem VALUES (?, ?)", (number, name))
        return number


def _report(target: Path, tally: _Tally, before: str) -> ImportReport:
    with open_database(target) as database:
        return ImportReport(
            count=database.count,
            read=tally.kept,
            unchanged=tally.unchanged,
            ecosystems=database.counts(),
            skipped=dict(sorted(tally.skipped.items())),
            examples=tuple(tally.examples),
            digest=database.digest,
            changed=database.digest != before,
        )


@contextlib.contextmanager
def _alone(target: Path) -> Iterator[None]:
    """The kernel drops the lock with the process."""
    with target.with_name(f".{target.name}.lock").open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DatabaseError(f"another import into {target} is running; try again when it is done") from None
        yield


@contextlib.contextmanager
def _connection(path: Path) -> Iterator[apsw.Connection]:
    """Nobody else sees the file, and a crash drops it: no journal is needed."""
    connection = apsw.Connection(str(path))
    try:
        connection.pragma("journal_mode", "OFF")
        connection.pragma("synchronous", "OFF")
        yield connection
    finally:
        connection.close()


def _settle(making: Path, target: Path) -> None:
    """The file's contents are on disk before it has its name."""
    _sync(making)
    os.replace(making, target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _short(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


_SAID = """SELECT f.name, a.id, a.digest, f.body FROM affected f JOIN advisory a ON a.number = f.advisory
           WHERE f.ecosystem = ? ORDER BY f.name"""
_KNOWN = "SELECT number, id, modified, whole FROM advisory"
_WITHDRAWN = b"\xff" * 16  # the largest: of two with the same time, the one that was withdrawn stays
