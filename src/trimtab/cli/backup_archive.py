"""The file that a backup is: a gzipped tar whose first member, `manifest.json`, names all others in their order.

    manifest.json    what is inside, with sizes and digests
    store.db         the store at one revision
    hub.db           the hub's storage, when it is a file of the data directory
    pki/…            keys, certificates and tokens, only when they were asked for
    blobs/<digest>   blobs that objects name or owners pin

A reader takes nothing that the manifest does not name, and nothing but plain files: a link, a path that leads elsewhere, a
member of another size or with other bytes ends it. It never holds more than a piece of a member in memory.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from trimtab.cli.codes import Problem

FORMAT = 1
MANIFEST, STORE, HUB, PKI, BLOBS = "manifest.json", "store.db", "hub.db", "pki/", "blobs/"
MAX_MANIFEST = 256 << 20
MAX_TOTAL = 1 << 40
"""The most bytes that an archive may hold unpacked; what the disk has room for is checked besides."""
PIECE = 1 << 20
BLOCK = 512

_NAME = re.compile(r"store\.db|hub\.db|pki/[a-z0-9][a-z0-9.-]{0,63}|blobs/[0-9a-f]{64}")

Read = Callable[[int], bytes]
Told = Callable[[int], None]


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file of an archive. Of a blob also its media type and who pins it."""

    name: str
    size: int
    sha256: str
    media_type: str = ""
    owners: tuple[str, ...] = ()


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What an archive holds."""

    format: int = FORMAT
    trimtab: str
    created: str
    revision: int
    hub_revision: int | None = None
    objects: dict[str, int]
    """How many there are of each resource."""
    members: tuple[Member, ...]

    @property
    def total(self) -> int:
        return sum(member.size for member in self.members)

    @property
    def blobs(self) -> tuple[Member, ...]:
        return tuple(member for member in self.members if member.name.startswith(BLOBS))

    @property
    def has_keys(self) -> bool:
        return any(member.name.startswith(PKI) for member in self.members)


class Damaged(Problem):
    """An archive that must not be used; the message says why."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} is not a whole backup: {why}")


def write(out: IO[bytes], manifest: Manifest, open_: Callable[[Member], IO[bytes]], told: Told) -> None:
    """All members, from where `open_` finds them. A file that is not what the manifest says is a Problem."""
    with gzip.GzipFile(filename="", mode="wb", compresslevel=4, fileobj=out, mtime=0) as packed:
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        packed.write(_header(MANIFEST, len(text)) + text + _padding(len(text)))
        done = 0
        for member in manifest.members:
            packed.write(_header(member.name, member.size))
            found, left = hashlib.sha256(), member.size
            with open_(member) as file:
                while piece := file.read(min(PIECE, left)):
                    packed.write(piece)
                    found.update(piece)
                    left -= len(piece)
                    done += len(piece)
                    told(done)
            if left or found.hexdigest() != member.sha256:
                raise Problem(f"{member.name} has not the bytes that it must have: it is damaged")
            packed.write(_padding(member.size))
        packed.write(bytes(2 * BLOCK))


class Archive:
    """An archive that is read from its beginning to its end. Make it with `opened`."""

    def __init__(self, path: Path, file: IO[bytes] | gzip.GzipFile) -> None:
        self._path = path
        self._file = file
        self.manifest = self._manifest()

    def members(self) -> Iterator[tuple[Member, Read]]:
        """Each member, and how to read it; it is verified when it was read to its end, which is done for who does not."""
        for member in self.manifest.members:
            name, size = self._entry()
            if (name, size) != (member.name, member.size):
                raise self._bad(f"{member.name} was expected, and there is {name[:100]!r}")
            body = _Body(self, member)
            yield member, body.read
            body.finish()
        self._end()

    def _manifest(self) -> Manifest:
        name, size = self._entry()
        if name != MANIFEST or size > MAX_MANIFEST:
            raise self._bad("it does not begin with a manifest")
        text = self.exactly(size)
        self.exactly(-size % BLOCK)
        try:
            form = msgspec.json.decode(text, type=_Form).format
            if form > FORMAT:
                raise Problem(
                    f"{self._path} was made by a newer Trimtab (format {form}, this one knows {FORMAT}): upgrade"
                )
            manifest = msgspec.json.decode(text, type=Manifest)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise self._bad(f"its manifest cannot be read: {error}") from None
        self._check(manifest)
        return manifest

    def _check(self, manifest: Manifest) -> None:
        names = [member.name for member in manifest.members]
        for member in manifest.members:
            if not _NAME.fullmatch(member.name):
                raise self._bad(f"{member.name[:100]!r} has no place in a backup")
            if member.size < 0 or not re.fullmatch("[0-9a-f]{64}", member.sha256):
                raise self._bad(f"the size or the digest of {member.name} is none")
            if member.name.startswith(BLOBS) and member.name.removeprefix(BLOBS) != member.sha256:
                raise self._bad(f"{member.name} is not named by its digest")
        if len(set(names)) != len(names):
            raise self._bad("a member is named twice")
        if STORE not in names or not 0 <= manifest.revision < 1 << 62:
            raise self._bad("it has no store")
        if manifest.total > MAX_TOTAL:
            raise self._bad(f"{manifest.total} bytes are more than a backup may have")

    def _entry(self) -> tuple[str, int]:
        block = self.exactly(BLOCK)
        try:
            found = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.HeaderError, UnicodeDecodeError) as error:
            raise self._bad(f"a header of the tar file is damaged: {error}") from None
        if found.type != tarfile.REGTYPE or found.linkname:
            raise self._bad(f"{found.name[:100]!r} is not a plain file")
        if found.size < 0:
            raise self._bad(f"{found.name[:100]!r} has no size")
        return found.name, found.size

    def _end(self) -> None:
        """Nothing but the zeros that end a tar file."""
        rest = self.read(2 * BLOCK + 1)
        if len(rest) != 2 * BLOCK or any(rest):
            raise self._bad("it does not end where it should")

    def exactly(self, size: int) -> bytes:
        data = self.read(size) if size else b""
        if len(data) < size:
            raise self._bad("it ends too early")
        return data

    def read(self, size: int) -> bytes:
        try:
            pieces = []
            while size and (piece := self._file.read(min(size, PIECE))):
                pieces.append(piece)
                size -= len(piece)
            return b"".join(pieces)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise self._bad(str(error)) from None

    def _bad(self, why: str) -> Damaged:
        return Damaged(self._path, why)

    def refuse(self, why: str) -> Damaged:
        return self._bad(why)


class _Body:
    def __init__(self, archive: Archive, member: Member) -> None:
        self._archive, self._member = archive, member
        self._left = member.size
        self._found = hashlib.sha256()
        self._ended = False

    def read(self, size: int) -> bytes:
        data = self._archive.exactly(min(size, self._left, PIECE))
        self._left -= len(data)
        self._found.update(data)
        if not self._left:
            self._verify()
        return data

    def finish(self) -> None:
        while self._left:
            self.read(PIECE)
        self._verify()
        if any(self._archive.exactly(-self._member.size % BLOCK)):
            raise self._archive.refuse(f"there is something behind {self._member.name}")

    def _verify(self) -> None:
        if not self._ended and self._found.hexdigest() != self._member.sha256:
            raise self._archive.refuse(f"{self._member.name} has other bytes than the manifest says")
        self._ended = True


class _Form(msgspec.Struct):
    format: int


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """The archive at a path. Problem when there is none, Damaged when it is not one of ours."""
    try:
        raw = path.open("rb")
    except OSError as error:
        raise Problem(f"{path}: {error.strerror}") from None
    with raw, gzip.GzipFile(fileobj=raw, mode="rb") as file:
        yield Archive(path, file)


def _header(name: str, size: int) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, 0o600, 0
    return entry.tobuf(tarfile.GNU_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % BLOCK)
