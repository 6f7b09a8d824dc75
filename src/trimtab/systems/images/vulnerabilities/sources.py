"""OSV documents from a folder or a zip file, one after the other, within bounds.

A folder may have folders and zip files in it, as a mirror of osv.dev has (`PyPI/all.zip`). Nothing is unpacked to disk, so
names in a zip file mean nothing. A file that is too large is passed over with a reason; a source that is too large as a
whole is an error, because half of it would look like the whole.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """What is read of foreign data."""

    file_bytes: int = 16 << 20
    files: int = 2_000_000
    total_bytes: int = 32 << 30
    directory_bytes: int = 512 << 20  # the list of names in a zip file, which is read into memory at once
    depth: int = 16  # folders in folders


class SourceError(Exception):
    """The source cannot be read, or is over a limit."""


class Document(NamedTuple):
    """A file. `content` is None when it is passed over, and `why` says the reason."""

    name: str
    content: bytes | None
    why: str = ""


def documents(source: Path, limits: Limits, suffixes: tuple[str, ...] = (".json",)) -> Iterator[Document]:
    """Every document, always in the same order. SourceError."""
    meter = _Meter(limits)
    if source.is_dir():
        found = _of_folder(source, meter, suffixes)
    elif source.is_file():
        found = _of_zip(source, meter, suffixes)
    else:
        raise SourceError(f"{source} is neither a folder nor a zip file")
    for document in found:
        meter.count_file()
        yield document


class _Meter:
    """What was read so far. A file that is passed over counts too: a bomb has many of them."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._files = self._bytes = 0

    def count_file(self) -> None:
        self._files += 1
        if self._files > self.limits.files:
            raise SourceError(f"more than {self.limits.files:,} files; import fewer at a time")

    def count_bytes(self, number: int) -> None:
        self._bytes += number
        if self._bytes > self.limits.total_bytes:
            raise SourceError(f"more than {self.limits.total_bytes:,} bytes of documents; import fewer at a time")


def _of_folder(folder: Path, meter: _Meter, suffixes: tuple[str, ...]) -> Iterator[Document]:
    top = len(folder.parts)
    for at, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = (
            sorted(name for name in folders if not name.startswith(".")) if _depth(at, top) < meter.limits.depth else []
        )
        for name in sorted(files):
            path = Path(at, name)
            if name.endswith(".zip") and path.is_file():
                yield from _of_zip(path, meter, suffixes)
            elif not name.endswith(suffixes):
                yield Document(str(path), None, "not JSON")
            elif path.is_symlink() or not path.is_file():  # a link may lead out, a pipe would wait for ever
                yield Document(str(path), None, "not a regular file")
            else:
                yield _of_file(path, meter)


def _of_file(path: Path, meter: _Meter) -> Document:
    try:
        with path.open("rb") as file:
            return _bounded(str(path), file, meter)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None


def _of_zip(path: Path, meter: _Meter, suffixes: tuple[str, ...]) -> Iterator[Document]:
    try:
        with path.open("rb") as file:
            if _directory_bytes(file) > meter.limits.directory_bytes:
                raise SourceError(f"{path}: its list of names is over {meter.limits.directory_bytes:,} bytes")
            with zipfile.ZipFile(file) as archive:
                for info in sorted(archive.infolist(), key=lambda info: info.filename):
                    if info.is_dir():
                        continue
                    if not info.filename.endswith(suffixes):
                        yield Document(info.filename, None, "not JSON")
                        continue
                    try:
                        with archive.open(info) as entry:
                            yield _bounded(info.filename, entry, meter)
                    except _DAMAGE:
                        yield Document(info.filename, None, "damaged or encrypted in the zip file")
    except _DAMAGE as error:
        raise SourceError(f"{path} is no zip file that can be read: {error}") from None


def _bounded(name: str, file: IO[bytes], meter: _Meter) -> Document:
    most = meter.limits.file_bytes
    content = file.read(most + 1)
    meter.count_bytes(len(content))
    if len(content) > most:
        return Document(name, None, f"over {most:,} bytes")
    return Document(name, content)


def _directory_bytes(file: BinaryIO) -> int:
    """How large the central directory of a zip file says it is, also with more than 65,535 names (APPNOTE 4.3.14)."""
    file.seek(0, os.SEEK_END)
    size = file.tell()
    file.seek(max(0, size - (1 << 16) - 22 - 20 - 56))
    tail = file.read()
    file.seek(0)
    large = tail.rfind(b"PK\x06\x06")
    if 0 <= large <= len(tail) - 56:
        return int(struct.unpack_from("<Q", tail, large + 40)[0])
    small = tail.rfind(b"PK\x05\x06")
    if 0 <= small <= len(tail) - 22:
        return int(struct.unpack_from("<I", tail, small + 12)[0])
    raise zipfile.BadZipFile("it has no end record")


def _depth(at: str, top: int) -> int:
    return len(Path(at).parts) - top


def _refuse(error: OSError) -> None:
    raise SourceError(f"{error.filename} cannot be read: {error.strerror}") from None


_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,
    NotImplementedError,
    ValueError,
    struct.error,
    OSError,
)
