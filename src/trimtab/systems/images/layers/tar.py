"""A tar archive as a stream: a push walker that hands out only the bodies that somebody wants.

    walker = Walker(visit)          # visit(entry) returns a sink for the body, or None
    for piece in pieces:
        walker.feed(piece)
    walker.finish()

Guarantees: any split of the bytes gives the same entries and bodies; nothing is held but a header, a pax record or a
long name; what is not wanted is skipped without a copy. Paths are relative, without `.` and `..`.

A layer has tens of thousands of entries, of which a few hundred are wanted: the way of an entry that nobody wants is
kept short.

Read: v7, ustar, GNU (long names, base-256 numbers, old sparse), pax (path, linkpath, size). Global pax headers are
passed over as Go's reader does. The body of a sparse file comes as it is packed: `Entry.sparse` says so, and a visitor
had better not take it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Protocol

import msgspec

from trimtab.systems.images.layers.problems import LIMITS, LayerDamaged, LayerTooLarge, Limits
from trimtab.systems.images.layers.tar_header import BLOCK, FIELDS, clean, decimal, is_sound, number, pax_records, text


class Kind(enum.Enum):
    """What an entry is."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    HARDLINK = "hardlink"
    OTHER = "other"  # devices and pipes


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One entry. `target` is as it is written for a symlink, and a clean path for a hard link."""

    path: str
    kind: Kind
    size: int
    target: str = ""
    sparse: bool = False


class Sink(Protocol):
    """Takes a body. `write` returns False when the rest is not wanted; `close` comes after the last wanted byte."""

    def write(self, data: memoryview) -> bool: ...
    def close(self) -> None: ...


Visit = Callable[[Entry], Sink | None]


class Walker:
    """Push bytes of the archive; `visit` is called for each entry in order."""

    def __init__(self, visit: Visit, limits: Limits = LIMITS) -> None:
        self._visit = visit
        self._limits = limits
        self._partial = bytearray()  # of a header
        self._sink: Sink | None = None
        self._body = 0  # bytes of a wanted body that are to come
        self._skip = 0  # bytes to pass over: a body that nobody wants, and the padding after any
        self._padding = 0  # of these, those that may be missing at the end of the archive
        self._extended = False  # a block of a sparse map follows
        self._ended = False
        self._pax: dict[str, str] = {}  # these three are said of the next entry
        self._long_name = ""
        self._long_link = ""
        self._pending: tuple[Entry, int] | None = None  # a sparse file whose map is not over
        self.entries = 0

    def feed(self, data: bytes) -> None:
        at, end = 0, len(data)
        while not self._ended:
            if self._body:
                at = self._write(data, at)
            if self._skip:
                step = min(self._skip, end - at)
                at += step
                self._skip -= step
            if at >= end:
                return
            if self._partial or end - at < BLOCK:
                step = BLOCK - len(self._partial)
                self._partial += data[at : at + step]
                at += step
                if len(self._partial) < BLOCK:
                    return
                block = bytes(self._partial)
                self._partial.clear()
            else:
                block = data[at : at + BLOCK]
                at += BLOCK
            self._block(block)

    def finish(self) -> None:
        if not self._ended and (self._body or self._skip > self._padding or self._partial or self._extended):
            raise LayerDamaged("the layer's archive ends in the midst of an entry")

    def _write(self, data: bytes, at: int) -> int:
        """What is here of the body goes to its sink. Where it ends."""
        step = min(self._body, len(data) - at)
        self._body -= step
        if self._sink is not None and not self._sink.write(memoryview(data)[at : at + step]):
            self._skip += self._body
            self._body = 0
        if self._body == 0:
            self._close()
        return at + step

    def _close(self) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.close()

    def _block(self, block: bytes) -> None:
        if self._extended:
            self._extended = block[504] != 0
            if not self._extended and self._pending is not None:
                (entry, size), self._pending = self._pending, None
                self._expect(size, self._visit(entry))
            return
        if block[0] == 0 and not block.strip(b"\0"):
            self._ended = True
            return
        name, size_field, checksum, flag, link, magic, prefix = FIELDS.unpack(block)
        if not is_sound(block, checksum):
            raise LayerDamaged("the layer is no tar archive, or a header in it is damaged")
        self.entries += 1
        if self.entries > self._limits.entries:
            raise LayerTooLarge(f"the layer has more than {self._limits.entries} entries")
        size = number(size_field)
        if flag in b"xgLKX":
            self._record(flag, size)
            return
        path = text(name)
        if prefix[0] and magic == b"ustar\0":
            path = f"{text(prefix)}/{path}"
        self._entry(block, flag, path, link, size)

    def _record(self, flag: bytes, size: int) -> None:
        """A header whose body describes the next one."""
        if size > self._limits.record_bytes:
            raise LayerTooLarge(f"a header of the layer's archive has more than {self._limits.record_bytes} bytes")
        self._expect(size, None if flag == b"g" else _Record(self, flag))

    def _entry(self, block: bytes, flag: bytes, name: str, link: bytes, size: int) -> None:
        target, sparse = "", flag == b"S"
        kind = _KINDS.get(flag, _FILE)
        if kind is _SYMLINK or kind is _HARDLINK:
            target = text(link)
        if self._long_name or self._long_link or self._pax:
            pax, self._pax = self._pax, {}
            name = pax.get("GNU.sparse.name") or pax.get("path") or self._long_name or name
            if kind is _SYMLINK or kind is _HARDLINK:
                target = pax.get("linkpath") or self._long_link or target
            self._long_name = self._long_link = ""
            if "size" in pax:
                size = decimal(pax["size"])
            sparse = sparse or any(key.startswith("GNU.sparse.") for key in pax)
        if size > self._limits.layer_bytes:
            raise LayerTooLarge(f"a file of the layer claims {size} bytes; {self._limits.layer_bytes} are the limit")
        path = clean(name, self._limits)
        if kind is _FILE:
            if name.endswith("/") and flag in b"0\0":
                kind = _DIRECTORY
        else:
            size = 0  # only files have a body, whatever the field says
            if kind is _HARDLINK:
                target = clean(target, self._limits)
        entry = Entry(path, kind, size, target, sparse)
        if flag == b"S" and block[482]:
            self._extended, self._pending = True, (entry, size)
        else:
            self._expect(size, self._visit(entry))

    def _expect(self, size: int, sink: Sink | None) -> None:
        """A body of this size follows, which goes to the sink."""
        self._padding = -size % BLOCK
        if sink is None:
            self._skip = size + self._padding
            return
        self._sink, self._body, self._skip = sink, size, self._padding
        if size == 0:
            self._close()

    def take_record(self, flag: bytes, body: bytes) -> None:
        if flag == b"L":
            self._long_name = text(body)
        elif flag == b"K":
            self._long_link = text(body)
        else:
            self._pax.update(pax_records(body))


class _Record:
    """The sink of a pax record or a long name."""

    def __init__(self, walker: Walker, flag: bytes) -> None:
        self._walker = walker
        self._flag = flag
        self._body = bytearray()

    def write(self, data: memoryview) -> bool:
        self._body += data
        return True

    def close(self) -> None:
        self._walker.take_record(self._flag, bytes(self._body))


# Looking a member up costs as much as taking a header apart (Python 3.11).
_FILE, _DIRECTORY, _SYMLINK, _HARDLINK = Kind.FILE, Kind.DIRECTORY, Kind.SYMLINK, Kind.HARDLINK

_KINDS = {
    b"1": Kind.HARDLINK,
    b"2": Kind.SYMLINK,
    b"3": Kind.OTHER,
    b"4": Kind.OTHER,
    b"5": Kind.DIRECTORY,
    b"6": Kind.OTHER,
}
