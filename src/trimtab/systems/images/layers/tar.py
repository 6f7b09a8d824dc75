"""A tar archive as a stream: a push walker that hands out only the bodies that somebody wants.

    walker = Walker(visit)          # visit(entry) returns a sink for the body, or None
    for piece in pieces:
        walker.feed(piece)
    walker.finish()

Guarantees: any split of the bytes gives the same entries and bodies; nothing is held but a header, a pax record or a
long name; what is not wanted is skipped without a copy. Paths are relative, without `.` and `..`.

Read: v7, ustar, GNU (long names, base-256 numbers, old sparse), pax (path, linkpath, size). Global pax headers are
passed over as Go's reader does. The body of a sparse file comes as it is packed: `Entry.sparse` says so, and a visitor
had better not take it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple, Protocol

from trimtab.systems.images.layers.problems import LIMITS, LayerDamaged, LayerTooLarge, Limits

BLOCK = 512


class Kind(enum.Enum):
    """What an entry is."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    HARDLINK = "hardlink"
    OTHER = "other"  # devices and pipes


class Entry(NamedTuple):
    """One entry. `target` is as it is written for a symlink, and a clean path for a hard link."""

    path: str
    kind: Kind
    size: int
    target: str = ""
    sparse: bool = False


class Sink(Protocol):
    """Takes a body. `write` returns False when the rest is not wanted; `close` comes after the last byte."""

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
        self._wants = False
        self._body = 0  # bytes of the body that are to come
        self._skip = 0  # bytes of padding after it
        self._extended = False  # a block of a sparse map follows
        self._ended = False
        self._pax: dict[str, str] = {}
        self._long_name: str | None = None
        self._long_link: str | None = None
        self._pending: tuple[Entry, int] | None = None  # a sparse file whose map is not over
        self.entries = 0

    def feed(self, data: bytes) -> None:
        view = memoryview(data)
        at, end = 0, len(data)
        while at < end and not self._ended:
            if self._body:
                step = min(self._body, end - at)
                if self._wants and self._sink is not None:
                    self._wants = self._sink.write(view[at : at + step])
                at += step
                self._body -= step
                if self._body == 0:
                    self._close()
                continue
            if self._skip:
                step = min(self._skip, end - at)
                at += step
                self._skip -= step
                continue
            if not self._partial and end - at >= BLOCK:
                block = data[at : at + BLOCK]
                at += BLOCK
            else:
                step = min(BLOCK - len(self._partial), end - at)
                self._partial += view[at : at + step]
                at += step
                if len(self._partial) < BLOCK:
                    return
                block = bytes(self._partial)
                self._partial.clear()
            self._block(block)

    def finish(self) -> None:
        if not self._ended and (self._body or self._partial or self._extended):
            raise LayerDamaged("the layer's archive ends in the midst of an entry")

    def _close(self) -> None:
        sink, self._sink, self._wants = self._sink, None, False
        if sink is not None:
            sink.close()

    def _block(self, block: bytes) -> None:
        if self._extended:
            self._extended = block[504] != 0
            if not self._extended and self._pending is not None:
                (entry, size), self._pending = self._pending, None
                self._begin(entry, size)
            return
        if block[0] == 0 and not block.strip(b"\0"):
            self._ended = True
            return
        _check(block)
        self.entries += 1
        if self.entries > self._limits.entries:
            raise LayerTooLarge(f"the layer has more than {self._limits.entries} entries")
        flag = block[156:157]
        size = _number(block[124:136])
        if flag in b"xgLKX":
            self._record(flag, size)
            return
        self._entry(block, flag, size)

    def _record(self, flag: bytes, size: int) -> None:
        """A header whose body describes the next one."""
        if size > self._limits.record_bytes:
            raise LayerTooLarge(f"a header of the layer's archive has more than {self._limits.record_bytes} bytes")
        self._body, self._skip = size, -size % BLOCK
        if flag == b"g":
            return
        self._sink, self._wants = _Record(self, flag), True
        if size == 0:
            self._close()

    def _entry(self, block: bytes, flag: bytes, size: int) -> None:
        pax, self._pax = self._pax, {}
        long_name, self._long_name = self._long_name, None
        long_link, self._long_link = self._long_link, None
        if "size" in pax:
            size = _decimal(pax["size"])
        if size > self._limits.layer_bytes:
            raise LayerTooLarge(f"a file of the layer claims {size} bytes; {self._limits.layer_bytes} are the limit")
        name = pax.get("GNU.sparse.name") or pax.get("path") or long_name or _name(block)
        path = clean(name, self._limits)
        kind = _KINDS.get(flag, Kind.FILE)
        sparse = flag == b"S" or any(key.startswith("GNU.sparse.") for key in pax)
        target = ""
        if kind is Kind.SYMLINK or kind is Kind.HARDLINK:
            target = pax.get("linkpath") or long_link or _text(block[157:257])
            if kind is Kind.HARDLINK:
                target = clean(target, self._limits)
        if kind is Kind.FILE:
            if name.endswith("/") and flag in b"0\0":
                kind = Kind.DIRECTORY
        else:
            size = 0  # only files have a body, whatever the field says
        entry = Entry(path, kind, size, target, sparse)
        if flag == b"S" and block[482]:
            self._extended, self._pending = True, (entry, size)
            return
        self._begin(entry, size)

    def _begin(self, entry: Entry, size: int) -> None:
        sink = self._visit(entry)
        self._body, self._skip = size, -size % BLOCK
        self._sink, self._wants = sink, sink is not None
        if size == 0:
            self._close()

    def take_record(self, flag: bytes, body: bytes) -> None:
        if flag == b"L":
            self._long_name = _text(body)
        elif flag == b"K":
            self._long_link = _text(body)
        else:
            self._pax.update(_pax(body))


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


_KINDS = {
    b"1": Kind.HARDLINK,
    b"2": Kind.SYMLINK,
    b"3": Kind.OTHER,
    b"4": Kind.OTHER,
    b"5": Kind.DIRECTORY,
    b"6": Kind.OTHER,
}


def clean(name: str, limits: Limits = LIMITS) -> str:
    """A path from the root of the image, without a leading slash, `.` and `..`; the root itself is empty."""
    if len(name) > limits.path_bytes:
        raise LayerTooLarge(f"a path in the layer has more than {limits.path_bytes} characters: {name[:80]!r}…")
    name = name.removeprefix("./")
    name = name.removesuffix("/")
    if "//" in name or "./" in name or name.startswith("/") or name.endswith((".", "/")):
        parts: list[str] = []
        for part in name.split("/"):
            if part == "..":
                del parts[-1:]
            elif part not in ("", "."):
                parts.append(part)
        name = "/".join(parts)
    if name.count("/") >= limits.path_depth:
        raise LayerTooLarge(f"a path in the layer is deeper than {limits.path_depth} folders: {name[:80]!r}…")
    return name


def _check(block: bytes) -> None:
    claimed = _number(block[148:156])
    rest = block[:148] + b" " * 8 + block[156:]
    if sum(rest) != claimed and sum(rest) - 256 * sum(byte > 127 for byte in rest) != claimed:
        raise LayerDamaged("the layer is no tar archive, or a header in it is damaged")


def _number(field: bytes) -> int:
    """Octal digits, or base 256 when the first bit is set."""
    if field[0] & 0x80:
        value = int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
        if field[0] & 0x40 or value >> 62:
            raise LayerDamaged("a number in a header of the layer's archive is negative or too large")
        return value
    digits = field.partition(b"\0")[0].strip()
    if not digits:
        return 0
    try:
        value = int(digits, 8)
    except ValueError:
        raise LayerDamaged("a number in a header of the layer's archive is not octal") from None
    if value < 0:
        raise LayerDamaged("a number in a header of the layer's archive is negative")
    return value


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise LayerDamaged("a size in a pax header of the layer's archive is no number")
    return int(text)


def _name(block: bytes) -> str:
    name = block[:100]
    if block[257:263] == b"ustar\0" and block[345]:
        return f"{_text(block[345:500])}/{_text(name)}"
    return _text(name)


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "replace")


def _pax(body: bytes) -> dict[str, str]:
    """Records of the form `<length> <key>=<value>` and a line feed; the length counts the whole record."""
    records = {}
    at = 0
    while at < len(body):
        space = body.find(b" ", at, at + 12)
        digits = body[at:space] if space > 0 else b""
        if not digits.isdigit():
            raise LayerDamaged("a pax header of the layer's archive is damaged")
        end = at + int(digits)
        if end > len(body) or end <= space + 1 or body[end - 1 : end] != b"\n":
            raise LayerDamaged("a pax header of the layer's archive is damaged")
        key, equals, value = body[space + 1 : end - 1].partition(b"=")
        if not equals:
            raise LayerDamaged("a pax header of the layer's archive is damaged")
        records[key.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        at = end
    return records
