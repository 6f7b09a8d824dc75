"""The little of ELF that is needed: where a section lies in the file, and where an address of memory does."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from trimtab.systems.images.packages.package import Body

MAGIC = b"\x7fELF"
_MAX_HEADERS = 4096
_LOAD = 1


def section(body: Body, name: bytes) -> tuple[int, int] | None:
    """Offset and size of the first section of the name; None when there is none, or when the headers make no sense."""
    try:
        headers = _sections(body)
        if headers is None or name + b"\0" not in headers.names:
            return None
        for at in range(headers.offset, headers.offset + headers.entries * headers.size, headers.size):
            start, _, _, _, where, length = struct.unpack_from(headers.form, body, at)
            if headers.names[start : start + len(name) + 1] == name + b"\0":
                return where, length
    except (struct.error, OverflowError):  # an offset beyond the file, or beyond any
        return None
    return None


def section_names(body: Body) -> bytes:
    """The names of all sections, each with a zero after it: one look tells most files from those with a section that is
    looked for. Empty when there are none, or when the headers make no sense."""
    try:
        headers = _sections(body)
    except (struct.error, OverflowError):
        return b""
    return b"" if headers is None else headers.names


class _Sections(NamedTuple):
    """The headers of sections: where they are, how many and how large; and the names in them."""

    offset: int
    size: int
    entries: int
    form: str
    names: bytes


def _sections(body: Body) -> _Sections | None:
    shape = _shape(body)
    if shape is None:
        return None
    order, wide = shape
    offset, size, count, names = (
        (*struct.unpack_from(order + "Q", body, 0x28), *struct.unpack_from(order + "HHH", body, 0x3A))
        if wide
        else (*struct.unpack_from(order + "I", body, 0x20), *struct.unpack_from(order + "HHH", body, 0x2E))
    )
    form = order + ("IIQQQQ" if wide else "IIIIII")
    if not offset or not count or count > _MAX_HEADERS or size < struct.calcsize(form):
        return None
    _, _, _, _, table, length = struct.unpack_from(form, body, offset + names * size)
    return _Sections(offset, size, count, form, bytes(body[table : table + min(length, 1 << 20)]))


def offset_of(body: Body, address: int) -> int | None:
    """Where in the file the byte of this address is; None when no segment of the file is loaded there."""
    for where, start, length in _segments(body):
        if start <= address < start + length:
            return where + address - start
    return None


def _segments(body: Body) -> Iterator[tuple[int, int, int]]:
    shape = _shape(body)
    if shape is None:
        return
    order, wide = shape
    try:
        if wide:
            (offset,) = struct.unpack_from(order + "Q", body, 0x20)
            size, count = struct.unpack_from(order + "HH", body, 0x36)
        else:
            (offset,) = struct.unpack_from(order + "I", body, 0x1C)
            size, count = struct.unpack_from(order + "HH", body, 0x2A)
        for at in range(offset, offset + min(count, _MAX_HEADERS) * size, max(size, 1)):
            if wide:
                kind, _, where, start, _, length = struct.unpack_from(order + "IIQQQQ", body, at)
            else:
                kind, where, start, _, length = struct.unpack_from(order + "IIIII", body, at)
            if kind == _LOAD:
                yield where, start, length
    except (struct.error, OverflowError):  # an offset beyond the file, or beyond any
        return


def _shape(body: Body) -> tuple[str, bool] | None:
    """Byte order and whether it is 64 bits."""
    if body[:4] != MAGIC or len(body) < 0x34 or body[4] not in (1, 2) or body[5] not in (1, 2):
        return None
    return "<" if body[5] == 1 else ">", body[4] == 2
