"""Packages of rpm: one database of headers in three forms (SQLite, NDB, BDB), told by its first bytes.

The forms differ only in how a header's bytes are found: `rpm_sqlite`, `rpm_ndb`, `rpm_bdb`. A header is an index of
tags and a store of values, all in big-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from trimtab.systems.images.packages import rpm_bdb, rpm_ndb, rpm_sqlite
from trimtab.systems.images.packages.package import Body, Package
from trimtab.systems.images.packages.problems import Unreadable

FOLDERS = ("var/lib/rpm", "usr/lib/sysimage/rpm", "usr/share/rpm")
NAMES = ("rpmdb.sqlite", "rpmdb.sqlite-wal", "Packages.db", "Packages")
PATHS = tuple(f"{folder}/{name}" for folder in FOLDERS for name in NAMES)

_MAX_TAGS = 1 << 16
_MAX_TEXT = 64 << 10

_NAME, _VERSION, _RELEASE, _EPOCH, _LICENSE, _ARCH, _SOURCE = 1000, 1001, 1002, 1003, 1014, 1022, 1044
_TAGS = {_NAME, _VERSION, _RELEASE, _EPOCH, _LICENSE, _ARCH, _SOURCE}
_INT32 = 4
_STRINGS = (6, 8, 9)


def is_sqlite(name: str) -> bool:
    """A database whose newest pages may be in a log beside it."""
    return name in ("rpmdb.sqlite", "rpmdb.sqlite-wal")


def read(path: str, body: Body) -> tuple[Package, ...]:
    """The packages of a database in one file, of any of the forms. Unreadable."""
    if not body:
        return ()
    if body[:16] == rpm_sqlite.MAGIC:
        return _packages(path, rpm_sqlite.blobs(body), len(body))
    if body[:4] == rpm_ndb.MAGIC:
        return _packages(path, rpm_ndb.blobs(body), len(body))
    return _packages(path, rpm_bdb.blobs(body), len(body))


def read_sqlite(path: str, body: Body, log: Body) -> tuple[Package, ...]:
    """The same of a database in SQLite with its write-ahead log. Unreadable."""
    return _packages(path, rpm_sqlite.blobs(body, log), len(body) + len(log)) if body else ()


def _packages(path: str, blobs: Iterable[Body], most: int) -> tuple[Package, ...]:
    packages: list[Package] = []
    read = 0
    try:
        for blob in blobs:
            read += len(blob)
            if read > most:  # places in the file that are named again and again
                raise Unreadable("the headers in it have more bytes than the database")
            package = _package(_header(blob), path)
            if package is not None:
                packages.append(package)
    except Unreadable as error:
        raise Unreadable(str(error), _sorted(packages)) from error
    return _sorted(packages)


def _sorted(packages: list[Package]) -> tuple[Package, ...]:
    return tuple(sorted(packages, key=lambda each: (each.name, each.version, each.arch)))


def _package(tags: dict[int, str | int], path: str) -> Package | None:
    name, version, release = str(tags.get(_NAME, "")), str(tags.get(_VERSION, "")), str(tags.get(_RELEASE, ""))
    if not name or not version or name == "gpg-pubkey":  # a key that signs packages is kept as if it were one
        return None
    full = f"{version}-{release}" if release else version
    source, source_version = _source(str(tags.get(_SOURCE, "")))
    licence = str(tags.get(_LICENSE, ""))
    return Package(
        type="rpm",
        name=name,
        version=f"{tags[_EPOCH]}:{full}" if tags.get(_EPOCH) else full,
        arch=str(tags.get(_ARCH, "")),
        source=source,
        source_version=source_version,
        licenses=(licence,) if licence else (),
        path=path,
    )


def _source(file: str) -> tuple[str, str]:
    """`bash-5.1-2.src.rpm` is bash in 5.1-2."""
    stem = file.removesuffix(".rpm").removesuffix(".src").removesuffix(".nosrc")
    parts = stem.rsplit("-", 2)
    return (parts[0], f"{parts[1]}-{parts[2]}") if len(parts) == 3 else ("", "")


def _header(blob: Body) -> dict[int, str | int]:
    if len(blob) < 8:
        raise Unreadable("a header in it is too short")
    count, length = struct.unpack_from(">II", blob)
    store = 8 + count * 16
    if count > _MAX_TAGS or store + length > len(blob):
        raise Unreadable("a header in it is longer than its place")
    tags: dict[int, str | int] = {}
    for tag, kind, offset, _ in struct.iter_unpack(">IIII", blob[8:store]):
        if tag not in _TAGS or tag in tags or offset >= length:
            continue
        at = store + offset
        if kind == _INT32 and offset + 4 <= length:
            tags[tag] = int.from_bytes(blob[at : at + 4], "big")
        elif kind in _STRINGS:
            end = blob.find(b"\0", at, min(at + _MAX_TEXT, store + length))
            if end < 0:
                raise Unreadable("a text of a header in it has no end")
            tags[tag] = blob[at:end].decode("utf-8", "replace")
    return tags
