"""The headers in an rpm database of the form NDB (`Packages.db`, SUSE): slots of 16 bytes that point to blobs."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from trimtab.systems.images.packages.package import Body
from trimtab.systems.images.packages.problems import Unreadable

MAGIC = b"RpmP"

_PAGE = 4096
_UNIT = 16  # slots and blobs lie at multiples of it
_FIRST_SLOT = 32
_SLOT, _BLOB = b"Slot", b"BlbS"
_MAX_SLOT_PAGES = 2048


def blobs(database: Body) -> Iterator[bytes]:
    """Each header. Unreadable."""
    try:
        magic, version, _, pages = struct.unpack_from("<4sIII", database)
    except struct.error:
        raise Unreadable("the NDB database is too short") from None
    if magic != MAGIC or version != 0:
        raise Unreadable("it is no NDB database of a version that is known")
    if not 0 < pages <= _MAX_SLOT_PAGES or pages * _PAGE > len(database):
        raise Unreadable("the NDB database is shorter than its slots")
    for at in range(_FIRST_SLOT, pages * _PAGE, _UNIT):
        mark, package, block, _ = struct.unpack_from("<4sIII", database, at)
        if mark != _SLOT:
            raise Unreadable("a slot of the NDB database is damaged")
        if package:
            yield _blob(database, package, block * _UNIT)


def _blob(database: Body, package: int, at: int) -> bytes:
    try:
        mark, owner, _, length = struct.unpack_from("<4sIII", database, at)
    except struct.error:
        raise Unreadable("a slot of the NDB database points outside the file") from None
    if mark != _BLOB or owner != package or at + 16 + length > len(database):
        raise Unreadable("a blob of the NDB database is damaged")
    return bytes(database[at + 16 : at + 16 + length])
