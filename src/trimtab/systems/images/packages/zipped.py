"""A zip archive in memory: its members by name, with bounds. Only what jars need: stored and deflated members."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import msgspec

from trimtab.systems.images.packages.package import Body
from trimtab.systems.images.packages.problems import Unreadable

MAX_MEMBERS = 200_000

_END, _CENTRAL, _LOCAL = b"PK\x05\x06", b"PK\x01\x02", b"PK\x03\x04"
_END_SIZE, _CENTRAL_SIZE, _LOCAL_SIZE = 22, 46, 30
_WIDE, _LOCATOR = b"PK\x06\x06", b"PK\x06\x07"  # zip64
_WIDE_SIZE, _LOCATOR_SIZE = 56, 20
_STORED, _DEFLATED = 0, 8
_ENCRYPTED = 1


class Member(msgspec.Struct, frozen=True):
    """One file of the archive."""

    name: str
    flags: int
    method: int
    packed: int
    size: int
    at: int  # of the local header


def members(body: Body) -> Iterator[Member]:
    """What the central directory lists. Unreadable."""
    end = body.rfind(_END, max(0, len(body) - 65535 - _END_SIZE))
    if end < 0 or end + _END_SIZE > len(body):
        raise Unreadable("it is no zip archive: it has no central directory")
    size, start, count = _directory(body, end)
    # Bytes may stand before the archive (a script that starts it); then all offsets are off by their number.
    before = end - size - start if end >= size + start else 0
    at = before + start
    for _ in range(min(count, MAX_MEMBERS)):
        if at + _CENTRAL_SIZE > len(body) or body[at : at + 4] != _CENTRAL:
            raise Unreadable("the central directory of the zip archive is damaged")
        flags, method = struct.unpack_from("<HH", body, at + 8)
        packed, unpacked, name, extra, comment = struct.unpack_from("<IIHHH", body, at + 20)
        (local,) = struct.unpack_from("<I", body, at + 42)
        text = bytes(body[at + _CENTRAL_SIZE : at + _CENTRAL_SIZE + name]).decode("utf-8", "replace")
        yield Member(text, flags, method, packed, unpacked, before + local)
        at += _CENTRAL_SIZE + name + extra + comment


def _directory(body: Body, end: int) -> tuple[int, int, int]:
    """Size and offset of the central directory, and how many members it lists; of zip64 where there is one."""
    count, size, start = struct.unpack_from("<HII", body, end + 10)
    locator = end - _LOCATOR_SIZE
    if (start != 0xFFFFFFFF and count != 0xFFFF) or locator < 0 or body[locator : locator + 4] != _LOCATOR:
        return size, start, count
    (wide,) = struct.unpack_from("<Q", body, locator + 8)
    if wide + _WIDE_SIZE > len(body) or body[wide : wide + 4] != _WIDE:
        raise Unreadable("the central directory of the zip archive is damaged")
    count, size, start = struct.unpack_from("<QQQ", body, wide + 32)
    return size + _WIDE_SIZE + _LOCATOR_SIZE, start, count


def read(body: Body, member: Member, max_bytes: int) -> bytes:
    """The member's content. Unreadable when it is damaged, or when it has more bytes than that."""
    if member.size > max_bytes:
        raise Unreadable(f"{member.name[:200]} in it has {member.size} bytes; {max_bytes} are read at most")
    at = member.at
    if body[at : at + 4] != _LOCAL or at + _LOCAL_SIZE > len(body):
        raise Unreadable(f"{member.name[:200]} in it is damaged")
    name, extra = struct.unpack_from("<HH", body, at + 26)
    start = at + _LOCAL_SIZE + name + extra
    packed = memoryview(body)[start : start + member.packed]
    if member.flags & _ENCRYPTED or member.method not in (_STORED, _DEFLATED):
        raise Unreadable(f"{member.name[:200]} in it is encrypted, or compressed in a way that is not known")
    if member.method == _STORED:
        content = bytes(packed[: member.size + 1])
    else:
        try:
            content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, member.size + 1)
        except zlib.error as error:
            raise Unreadable(f"{member.name[:200]} in it is damaged: {error}") from error
    if len(content) != member.size:
        raise Unreadable(f"{member.name[:200]} in it has not the {member.size} bytes that it claims")
    return content
