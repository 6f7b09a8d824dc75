"""The vulnerability database: one SQLite file of advisories, found by (ecosystem, package).

A file is never changed: an import makes a new one and puts it in its place by a rename, so a reader holds a whole database
for as long as it likes, and the file can travel as a blob. `digest` names the contents: the same advisories give the same
digest, in whatever order and from whatever folders they came. `modified` times do not count, since they change no report.

    ecosystem   number, name
    advisory    number, id, modified, digest of the whole document, digest of the body, body (zlib of msgpack);
                a withdrawn one has no body
    affected    (ecosystem, name, advisory) → body (msgpack of Affected)
    package     (ecosystem, name) → digest of all that the database says of it
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import apsw
import msgspec

from trimtab.systems.images.vulnerabilities.advisory import Advisory, Affected

APPLICATION_ID, SCHEMA_VERSION = 0x5472_7654, 1
SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE ecosystem (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE advisory (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, modified TEXT NOT NULL, whole BLOB NOT NULL,
                       digest BLOB, body BLOB);
CREATE TABLE affected (ecosystem INTEGER, name TEXT, advisory INTEGER, body BLOB NOT NULL,
                       PRIMARY KEY (ecosystem, name, advisory)) WITHOUT ROWID;
CREATE TABLE package (ecosystem INTEGER, name TEXT, digest BLOB NOT NULL, PRIMARY KEY (ecosystem, name)) WITHOUT ROWID;
"""


class DatabaseError(Exception):
    """A file is no vulnerability database that this version reads."""


class Hit(NamedTuple):
    """An advisory that names a package: its number, and which versions are affected."""

    advisory: int
    affected: tuple[Affected, ...]


def open_database(path: Path) -> Database:
    """For reading. DatabaseError when the file is missing, is something else, or is of another version."""
    if not path.is_file():
        raise DatabaseError(f"there is no vulnerability database at {path}; import one with `trimtab images import-db`")
    try:
        connection = apsw.Connection(
            f"file:{quote(str(path.absolute()))}?immutable=1", apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
        connection.pragma("trusted_schema", False)
        marks = connection.pragma("application_id"), connection.pragma("user_version")
        if marks != (APPLICATION_ID, SCHEMA_VERSION):
            connection.close()
            raise DatabaseError(f"{path} is no vulnerability database of this version; import it again")
        return Database(connection)
    except apsw.Error as error:
        raise DatabaseError(f"{path} cannot be read as a vulnerability database: {error}; import it again") from None


class Database:
    """A reader. Use it in one thread at a time, and close it; other processes open the file for themselves."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._numbers: dict[str, int] = {
            name: number for number, name in self._rows("SELECT number, name FROM ecosystem")
        }
        self._meta: dict[str, str] = dict(self._rows("SELECT name, value FROM meta"))

    @property
    def digest(self) -> str:
        """`sha256:…` of what it says."""
        return self._meta.get("digest", "")

    @property
    def count(self) -> int:
        """Advisories in it."""
        return int(self._rows("SELECT count(*) FROM advisory WHERE body IS NOT NULL")[0][0])

    @property
    def ecosystems(self) -> frozenset[str]:
        return frozenset(self._numbers)

    def lookup(self, ecosystem: str, name: str) -> list[Hit]:
        """Every advisory for a package, by number."""
        number = self._numbers.get(ecosystem)
        if number is None:
            return []
        try:
            return [Hit(advisory, _AFFECTED.decode(body)) for advisory, body in self._rows(_LOOKUP, (number, name))]
        except _DAMAGE as error:
            raise DatabaseError(f"what the database says of {name} is damaged: {error}; import it again") from None

    def advisory(self, number: int) -> Advisory:
        """What a report says of it."""
        rows = self._rows("SELECT body FROM advisory WHERE number = ?", (number,))
        if not rows:
            raise DatabaseError(f"the database names an advisory {number} that it does not have; import it again")
        return unpacked(rows[0][0])

    def counts(self) -> dict[str, int]:
        """Advisories by ecosystem."""
        return dict(self._rows(_COUNTS))

    def packages(self) -> Iterator[tuple[str, str, bytes]]:
        """Ecosystem, name and digest of every package, in this order."""
        yield from self._rows(_PACKAGES)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _rows(self, sql: str, values: tuple[str | int, ...] = ()) -> list[Any]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except (apsw.Error, UnicodeDecodeError) as error:
            raise DatabaseError(f"the vulnerability database cannot be read: {error}; import it again") from None


def changed_packages(old: Path, new: Path) -> set[tuple[str, str]]:
    """(ecosystem, name) of packages of which two databases say different things: whose reports may change.

    An ecosystem that only one of them covers is in it with an empty name: what a report says of coverage changes too. See
    `ecosystems.places` for the other side of the comparison.
    """
    with open_database(old) as before, open_database(new) as after:
        if before.digest == after.digest:
            return set()
        said = {(ecosystem, name): digest for ecosystem, name, digest in before.packages()}
        changed = {(ecosystem, "") for ecosystem in before.ecosystems ^ after.ecosystems}
        for ecosystem, name, digest in after.packages():
            if said.pop((ecosystem, name), None) != digest:
                changed.add((ecosystem, name))
        return changed | said.keys()


def packed(content: bytes) -> bytes:
    """An advisory's msgpack, as its row has it."""
    return zlib.compress(content, 3)


def unpacked(body: bytes) -> Advisory:
    try:
        return _ADVISORY.decode(zlib.decompressobj().decompress(body, _LARGEST))
    except _DAMAGE as error:
        raise DatabaseError(f"an advisory in the database is damaged: {error}; import it again") from None


_AFFECTED = msgspec.msgpack.Decoder(tuple[Affected, ...])
_ADVISORY = msgspec.msgpack.Decoder(Advisory)
_LARGEST = 1 << 20
_DAMAGE = (zlib.error, msgspec.DecodeError, UnicodeDecodeError, TypeError)
_LOOKUP = "SELECT advisory, body FROM affected WHERE ecosystem = ? AND name = ? ORDER BY advisory"
_COUNTS = """SELECT e.name, count(DISTINCT f.advisory) FROM ecosystem e JOIN affected f ON f.ecosystem = e.number
             GROUP BY e.name ORDER BY e.name"""
_PACKAGES = """SELECT e.name, p.name, p.digest FROM ecosystem e JOIN package p ON p.ecosystem = e.number
               ORDER BY e.name, p.name"""
