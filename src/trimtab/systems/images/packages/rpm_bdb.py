"""The headers in an rpm database that is a hash of Berkeley DB (`Packages`): the values of all pairs.

Values lie in the pages of the hash or, as nearly always, in chains of overflow pages. The file's byte order is that of
the machine which made it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from trimtab.systems.images.packages.package import Body
from trimtab.systems.images.packages.problems import Unreadable

_HASH = 0x061561
_HASH_UNSORTED, _OVERFLOW, _HASH_SORTED = 2, 7, 13
_VALUE, _OFFPAGE = 1, 3
_HEAD = 26  # bytes of a page's header
_SMALLEST = 16  # a value that is no header: the counter of packages is kept under a key of zeros
_MAX_VALUE = 64 << 20


def blobs(database: Body) -> Iterator[bytes]:
    """Each header. Unreadable."""
    if len(database) < 512:
        raise Unreadable("it is no database of rpm: it is too short")
    order = next((mark for mark in "<>" if struct.unpack_from(mark + "I", database, 12)[0] == _HASH), None)
    if order is None:
        raise Unreadable("it is no database of rpm: neither SQLite, NDB nor a hash of Berkeley DB")
    size, last = struct.unpack_from(order + "I8xI", database, 20)
    if database[24] != 0:
        raise Unreadable("the Berkeley DB is encrypted")
    if not 512 <= size <= 65536 or size & (size - 1):
        raise Unreadable("the Berkeley DB has no valid size of pages")
    try:
        for page in range(1, min(last, len(database) // size - 1) + 1):
            yield from _page(database, order, size, page * size)
    except (struct.error, IndexError):
        raise Unreadable("the Berkeley DB is damaged") from None


def _page(database: Body, order: str, size: int, at: int) -> Iterator[bytes]:
    """The values of one page: keys and values take turns in its index."""
    entries, _ = struct.unpack_from(order + "HH", database, at + 20)
    if database[at + 25] not in (_HASH_UNSORTED, _HASH_SORTED):
        return
    if _HEAD + entries * 2 > size:
        raise Unreadable("a page of the Berkeley DB is damaged")
    index = struct.unpack_from(f"{order}{entries}H", database, at + _HEAD)
    for key, value in zip(index[::2], index[1::2], strict=False):
        kind = database[at + value]
        if kind == _OFFPAGE:
            first, length = struct.unpack_from(order + "II", database, at + value + 4)
            yield _chain(database, order, size, first, length)
        elif kind == _VALUE and key - value > _SMALLEST:
            yield bytes(database[at + value + 1 : at + key])


def _chain(database: Body, order: str, size: int, page: int, length: int) -> bytes:
    if length > min(_MAX_VALUE, len(database)):
        raise Unreadable("a value of the Berkeley DB is longer than the file")
    value = bytearray()
    while page and len(value) < length:
        at = page * size
        (following,) = struct.unpack_from(order + "I", database, at + 16)
        (used,) = struct.unpack_from(order + "H", database, at + 22)
        if database[at + 25] != _OVERFLOW or used == 0:
            raise Unreadable("an overflow page of the Berkeley DB is damaged")
        value += database[at + _HEAD : at + _HEAD + min(used, size - _HEAD)]
        page = following
    if len(value) < length:
        raise Unreadable("a value of the Berkeley DB is cut off")
    return bytes(value[:length])
