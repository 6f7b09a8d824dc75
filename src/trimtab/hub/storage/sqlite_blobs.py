"""Blobs in the SQLite file of a storage, for a machine that has nothing else.

The bytes are rows of at most 1 MiB, under a name of their upload, and each is a short transaction: a large blob does not hold
up the commits of rows. The last transaction makes the blob, all at once. What an upload left that never came to its end is
nobody's, and the next collection takes it: the one process that owns the file knows which uploads are under way.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import apsw
import msgspec

from trimtab.hub.storage.contract import StorageUnavailable
from trimtab.hub.storage.sqlite_file import File
from trimtab.model.clock import Clock
from trimtab.storage.blobs import (
    CHUNK,
    MAX_BYTES,
    BlobDamaged,
    BlobInfo,
    BlobMissing,
    BlobsUnavailable,
    Collected,
    Data,
    Digest,
    check_media_type,
    check_owner,
    parse_digest,
    verified,
)
from trimtab.storage.spool import Spool, spooled

T = TypeVar("T")

Act = Callable[[apsw.Connection], T]


class SqliteBlobs:
    """Fulfils `Blobs`. The file is the storage's: it is opened and closed with it."""

    def __init__(self, file: Callable[[], Awaitable[File]], *, clock: Clock, max_bytes: int = MAX_BYTES) -> None:
        self._file = file
        self._clock = clock
        self._max_bytes = max_bytes
        self._uploads: set[str] = set()

    async def put(
        self, data: Data, *, media_type: str = "", expected: Digest | None = None, max_bytes: int | None = None
    ) -> Digest:
        check_media_type(media_type)
        limit = self._max_bytes if max_bytes is None else min(max_bytes, self._max_bytes)
        async with spooled(data, max_bytes=limit, expected=expected) as spool:
            if not await self._kept(spool, media_type):
                await self._upload(spool, media_type)
            return spool.digest

    async def open(self, digest: Digest) -> AsyncIterator[bytes]:
        size = (await self.stat(digest)).size

        async def chunks() -> AsyncIterator[bytes]:
            for number in range(-(-size // CHUNK)):
                chunk = await self._read(functools.partial(_chunk, digest, number))
                if chunk is None:
                    await self.stat(digest)  # BlobMissing: collected under the reader
                    raise BlobDamaged(digest, f"piece {number} is not there")
                yield chunk

        async for chunk in verified(digest, chunks()):
            yield chunk

    async def stat(self, digest: Digest) -> BlobInfo:
        parse_digest(digest)
        row = await self._read(lambda connection: connection.execute(_STAT, (digest,)).get)
        if row is None:
            raise BlobMissing(digest)
        return BlobInfo(digest, row[0], row[1])

    async def pin(self, digest: Digest, owner: str) -> None:
        parse_digest(digest)
        check_owner(owner)
        now = self._now()

        def act(connection: apsw.Connection) -> bool:
            if connection.execute(_TOUCH, (digest, now, "")).get is None:
                return False
            connection.execute("INSERT INTO hub_blob_pins VALUES (?, ?) ON CONFLICT DO NOTHING", (owner, digest))
            return True

        if not await self._write(act):
            raise BlobMissing(digest)

    async def unpin(self, owner: str, digest: Digest | None = None) -> None:
        check_owner(owner)
        statement = "DELETE FROM hub_blob_pins WHERE owner = ?1 AND digest = coalesce(?2, digest)"
        await self._write(lambda connection: connection.execute(statement, (owner, digest)).get)

    async def collect(self, *, grace: float) -> Collected:
        before = self._now() - grace
        count = size = 0
        while (freed := await self._write(lambda connection: _remove(connection, before))) is not None:
            count, size = count + 1, size + freed
        while await self._write(lambda connection: _sweep(connection, [*self._uploads])):
            pass
        return Collected(count, size)

    async def ready(self) -> None:
        await self._read(lambda connection: connection.execute("SELECT 1").get)

    async def close(self) -> None:
        """The storage closes the file."""

    async def _kept(self, spool: Spool, media_type: str) -> bool:
        """Whether the same bytes are there, undamaged; then they are as good as new."""
        try:
            if (await self.stat(spool.digest)).size != spool.size:
                return False
            async for _ in self.open(spool.digest):
                pass
        except (BlobMissing, BlobDamaged):
            return False
        now = self._now()
        return await self._write(lambda c: c.execute(_TOUCH, (spool.digest, now, media_type)).get) is not None

    async def _upload(self, spool: Spool, media_type: str) -> None:
        upload = secrets.token_hex(16)
        self._uploads.add(upload)
        try:
            number = 0
            async for chunk in spool.chunks():
                await self._write(functools.partial(_add_chunk, (upload, number, chunk)))
                number += 1
            blob = (spool.digest, upload, spool.size, media_type, self._now())
            await self._write(lambda connection: connection.execute(_MAKE, blob).get)
        finally:
            self._uploads.discard(upload)

    def _now(self) -> float:
        return self._clock.now().timestamp()

    async def _write(self, act: Act[T]) -> T:
        try:
            return await (await self._file()).write(act)
        except StorageUnavailable as error:
            raise BlobsUnavailable(f"blobs: {error}") from error

    async def _read(self, act: Act[T]) -> T:
        try:
            return await (await self._file()).read(act)
        except StorageUnavailable as error:
            raise BlobsUnavailable(f"blobs: {error}") from error


def _chunk(digest: Digest, number: int, connection: apsw.Connection) -> bytes | None:
    found: bytes | None = connection.execute(_CHUNK, (digest, number)).get
    return found


def _add_chunk(row: tuple[str, int, bytes], connection: apsw.Connection) -> None:
    connection.execute("INSERT INTO hub_blob_chunks VALUES (?, ?, ?)", row)


def _remove(connection: apsw.Connection, before: float) -> int | None:
    """The size of one blob that nobody pins; None when there is none. Its bytes are nobody's from then on."""
    found: int | None = connection.execute(_REMOVE, (before,)).get
    return found


def _sweep(connection: apsw.Connection, under_way: list[str]) -> bool:
    """Whether it removed bytes that are nobody's."""
    return connection.execute(_SWEEP, (msgspec.json.encode(under_way).decode(),)).get is not None


_STAT = "SELECT size, media_type FROM hub_blobs WHERE digest = ?"
_CHUNK = (
    "SELECT c.data FROM hub_blobs b JOIN hub_blob_chunks c ON c.upload = b.upload WHERE b.digest = ? AND c.number = ?"
)
_TOUCH = (
    "UPDATE hub_blobs SET touched = max(touched, ?2), media_type = coalesce(nullif(?3, ''), media_type) "
    "WHERE digest = ?1 RETURNING 1"
)
_MAKE = (
    "INSERT INTO hub_blobs VALUES (?, ?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET upload = excluded.upload, "
    "size = excluded.size, touched = max(touched, excluded.touched), "
    "media_type = coalesce(nullif(excluded.media_type, ''), media_type)"
)
_REMOVE = (
    "DELETE FROM hub_blobs WHERE digest = (SELECT b.digest FROM hub_blobs b WHERE b.touched <= ? "
    "AND NOT EXISTS (SELECT 1 FROM hub_blob_pins p WHERE p.digest = b.digest) LIMIT 1) RETURNING size"
)
_SWEEP = (
    "DELETE FROM hub_blob_chunks WHERE rowid IN (SELECT c.rowid FROM hub_blob_chunks c "
    "WHERE c.upload NOT IN (SELECT upload FROM hub_blobs) AND c.upload NOT IN (SELECT value FROM json_each(?)) "
    "LIMIT 16) RETURNING 1"
)
