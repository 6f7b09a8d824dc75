"""The headers in an rpm database that is an SQLite file: the last column of its table `Packages`.

It is read from the bytes themselves, by the file format of SQLite: nothing is copied but the rows, and no file is made.
Pages in a write-ahead log beside it take the place of its own. A frame of the log counts up to the last commit while
its salts are those of the log; its checksum is not computed, as a layer is not a file that a crash left.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from trimtab.systems.images.packages.package import Body
from trimtab.systems.images.packages.problems import Unreadable

MAGIC = b"SQLite format 3\0"

_LEAF, _INTERIOR = 13, 5
_MAX_ROW = 64 << 20


def blobs(database: Body, log: Body = b"") -> Iterator[bytes]:
    """Each header. Unreadable."""
    pages = _Pages(database, log)
    try:
        root = _root(pages)
        for row in _rows(pages, root):
            yield _last_blob(row)
    except (struct.error, IndexError):
        raise Unreadable("the SQLite database is damaged") from None


class _Pages:
    """Pages by number, the log's before the file's."""

    def __init__(self, database: Body, log: Body) -> None:
        if database[:16] != MAGIC or len(database) < 512:
            raise Unreadable("it is no SQLite database")
        size = int.from_bytes(database[16:18], "big")
        self.size = 65536 if size == 1 else size
        if self.size < 512 or self.size & (self.size - 1):
            raise Unreadable("the SQLite database has no valid size of pages")
        self.usable = self.size - database[20]
        if self.usable < 480:
            raise Unreadable("the SQLite database has no valid size of pages")
        self._database = memoryview(database)
        self._log = memoryview(log)
        self._logged = _logged(self._log, self.size)

    def __getitem__(self, number: int) -> memoryview:
        at = self._logged.get(number)
        if at is not None:
            return self._log[at : at + self.size]
        page = self._database[(number - 1) * self.size : number * self.size]
        if number < 1 or len(page) < self.size:
            raise Unreadable(f"page {number} of the SQLite database is missing")
        return page

    @property
    def count(self) -> int:
        return len(self._database) // self.size + len(self._logged)


def _logged(log: memoryview, size: int) -> dict[int, int]:
    """Where in the log the newest committed copy of each page is."""
    if (
        len(log) < 32
        or struct.unpack_from(">I", log)[0] & ~1 != 0x377F0682
        or struct.unpack_from(">I", log, 8)[0] != size
    ):
        return {}
    salts = bytes(log[16:24])
    committed: dict[int, int] = {}
    pending: dict[int, int] = {}
    for at in range(32, len(log) - size - 23, size + 24):
        number, commit = struct.unpack_from(">II", log, at)
        if bytes(log[at + 8 : at + 16]) != salts:
            break
        pending[number] = at + 24
        if commit:
            committed.update(pending)
            pending.clear()
    return committed


def _root(pages: _Pages) -> int:
    """The first page of the table, by the schema in page 1."""
    for row in _rows(pages, 1):
        columns = list(_columns(row))
        if len(columns) >= 4 and _text(row, columns[0]) == b"table" and _text(row, columns[1]) == b"Packages":
            _, start, end = columns[3]
            return int.from_bytes(row[start:end], "big")
    raise Unreadable("the SQLite database has no table Packages")


def _rows(pages: _Pages, root: int) -> Iterator[bytes]:
    """The records of a table's tree, in any order."""
    todo = [root]
    seen = 0
    while todo:
        number = todo.pop()
        seen += 1
        if seen > pages.count + 1:
            raise Unreadable("the SQLite database refers to its pages in a circle")
        page = pages[number]
        at = 100 if number == 1 else 0
        kind, cells = page[at], int.from_bytes(page[at + 3 : at + 5], "big")
        first = at + (12 if kind == _INTERIOR else 8)
        if kind not in (_LEAF, _INTERIOR) or first + cells * 2 > len(page):
            raise Unreadable("a page of the SQLite database is not of a table")
        pointers = struct.unpack_from(f">{cells}H", page, first)
        if kind == _LEAF:
            for pointer in pointers:
                yield _row(pages, page, pointer)
        else:
            todo += [struct.unpack_from(">I", page, pointer)[0] for pointer in pointers]
            todo.append(struct.unpack_from(">I", page, at + 8)[0])


def _row(pages: _Pages, page: memoryview, at: int) -> bytes:
    """A cell of a leaf: its record, with what overflows into other pages."""
    size, at = _varint(page, at)
    _, at = _varint(page, at)
    if size > _MAX_ROW:
        raise Unreadable(f"a row of the SQLite database has {size} bytes; {_MAX_ROW} are read at most")
    usable = pages.usable
    if size <= usable - 35:
        return bytes(page[at : at + size])
    least = (usable - 12) * 32 // 255 - 23
    local = least + (size - least) % (usable - 4)
    if local > usable - 35:
        local = least
    row = bytearray(page[at : at + local])
    (number,) = struct.unpack_from(">I", page, at + local)
    while len(row) < size:
        overflow = pages[number]
        (number,) = struct.unpack_from(">I", overflow)
        row += overflow[4 : 4 + min(usable - 4, size - len(row))]
    return bytes(row)


def _columns(row: bytes) -> Iterator[tuple[int, int, int]]:
    """Serial type, start and end of each value of a record."""
    head, at = _varint(row, 0)
    value = head
    while at < min(head, len(row)):
        kind, at = _varint(row, at)
        length = (kind - 12) // 2 if kind >= 12 else (0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0)[kind]
        if value + length > len(row):
            raise Unreadable("a row of the SQLite database is cut off")
        yield kind, value, value + length
        value += length


def _last_blob(row: bytes) -> bytes:
    last = (0, 0, 0)
    for last in _columns(row):  # noqa: B007 - the last one is wanted
        pass
    kind, start, end = last
    if kind < 12 or kind % 2:
        raise Unreadable("a row of the SQLite database has no blob")
    return row[start:end]


def _text(row: bytes, column: tuple[int, int, int]) -> bytes:
    kind, start, end = column
    return row[start:end] if kind >= 13 and kind % 2 else b""


def _varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    value = 0
    for _ in range(8):
        byte = data[at]
        at += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at
    return value << 8 | data[at], at + 1
