"""The VEX documents of one source in a file, found by the vulnerabilities that they speak of.

A vendor's repository has hundreds of thousands of statements, of which a scan needs a few: `load` gives every document,
with only those of its statements that are about the names that were asked for. All documents are there, because a newer
version of one may have nothing to say any more. A source that says more of them than a scan can hold is left out.

    document    number, head (msgpack of VexDocument without statements)
    statement   number, document, body (msgpack)
    said        (name, statement)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import apsw
import msgspec

from trimtab.systems.images.vulnerabilities.openvex import Statement, VexDocument

FORM = 2
"""To be raised whenever a document or this file has another form, or more is read of one."""

MOST_BYTES = 24 << 20
"""Of all that one scan holds, as it is in the files. In memory it is several times as large."""

_SCHEMA = """
CREATE TABLE document (number INTEGER PRIMARY KEY, head BLOB NOT NULL);
CREATE TABLE statement (number INTEGER PRIMARY KEY, document INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE said (name TEXT, statement INTEGER, PRIMARY KEY (name, statement)) WITHOUT ROWID;
"""
_SAID = """SELECT DISTINCT s.document, s.number, s.body FROM said JOIN statement s ON s.number = said.statement
           WHERE said.name = ?"""


class Writer:
    """Takes documents, one at a time."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._documents = self._statements = 0

    def add(self, document: VexDocument) -> None:
        self._documents += 1
        head = msgspec.structs.replace(document, statements=(), problems=())
        self._connection.execute("INSERT INTO document VALUES (?, ?)", (self._documents, _encode(head)))
        numbered = list(enumerate(document.statements, self._statements + 1))
        self._statements += len(numbered)
        rows = ((number, self._documents, _encode(statement)) for number, statement in numbered)
        self._connection.executemany("INSERT INTO statement VALUES (?, ?, ?)", rows)
        names = ((name, number) for number, statement in numbered for name in statement.vulnerabilities)
        self._connection.executemany("INSERT OR IGNORE INTO said VALUES (?, ?)", names)


@contextmanager
def writing(path: Path) -> Iterator[Writer]:
    """A new file. It counts when the block has ended well; what a failure leaves is thrown away by who asked for it."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        connection.execute(_SCHEMA)
        connection.execute("BEGIN")
        yield Writer(connection)
        connection.execute("COMMIT")


class Said(NamedTuple):
    """What is said of some vulnerabilities. `left_out` are the files that say too much."""

    documents: tuple[VexDocument, ...]
    left_out: tuple[Path, ...] = ()


def load(paths: Sequence[Path], names: Iterable[str], *, most_bytes: int = MOST_BYTES) -> Said:
    """All documents, in the order in which they came, with what they say of these vulnerabilities."""
    asked = sorted(set(names))
    documents: list[VexDocument] = []
    left_out: list[Path] = []
    for path in paths:
        try:
            found, size = _load(path, asked, most_bytes)
        except _TooMuch:
            left_out.append(path)
        else:
            documents += found
            most_bytes -= size
    return Said(tuple(documents), tuple(left_out))


class _TooMuch(Exception):  # noqa: N818 - it reads as what happened
    pass


def _load(path: Path, names: Sequence[str], most_bytes: int) -> tuple[list[VexDocument], int]:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with closing(apsw.Connection(f"file:{quote(str(path.absolute()))}?immutable=1", flags)) as connection:
        ((size,),) = connection.execute("SELECT coalesce(sum(length(head)), 0) FROM document")
        said: dict[int, dict[int, bytes]] = {}
        for name in names:
            for document, number, body in connection.execute(_SAID, (name,)):
                if number not in (some := said.setdefault(document, {})):
                    some[number] = body
                    size += len(body)
                if size > most_bytes:
                    raise _TooMuch
        if size > most_bytes:
            raise _TooMuch
        documents = []
        for number, head in connection.execute("SELECT number, head FROM document ORDER BY number"):
            bodies = sorted(said.get(number, {}).items())
            statements = tuple(_STATEMENT.decode(body) for _, body in bodies)
            documents.append(msgspec.structs.replace(_DOCUMENT.decode(head), statements=statements))
        return documents, size


_encode = msgspec.msgpack.Encoder().encode
_DOCUMENT = msgspec.msgpack.Decoder(VexDocument)
_STATEMENT = msgspec.msgpack.Decoder(Statement)
