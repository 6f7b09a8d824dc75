"""Blobs in PostgreSQL: what replicas on several machines share. Needs the extra `trimtab[postgres]`.

A blob is a row and its bytes are rows of at most 1 MiB, so nobody holds a large one in memory. The bytes come to disk here
first: the transaction that stores them is short, knows the digest, and can be tried again when the connection breaks. No
connection is held while a caller is slow.

The row of a blob is the lock: `put` and `pin` update it, a collection takes it before it looks for pins. Ages are by the
database's clock, because those of the replicas differ.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import asyncpg

from trimtab.model.clock import Clock, SystemClock
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
from trimtab.storage.postgres_url import AWAY, cleaned, place_of, tls_of
from trimtab.storage.retry import retried
from trimtab.storage.spool import Spool, spooled

P = ParamSpec("P")
T = TypeVar("T")

VERSION = 1
_LOCK = 0x7472696D  # "trim": one at a time makes the tables
_BATCH = 256
# Not to_regclass: asked twice in one transaction, it may remember that there was no such table.
_MADE = "SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'trimtab_blob_version' AND pg_table_is_visible(oid))"
_TABLES = """
CREATE TABLE trimtab_blob_version (version integer NOT NULL);
CREATE TABLE trimtab_blobs (
  digest text PRIMARY KEY,
  size bigint NOT NULL,
  media_type text NOT NULL,
  touched timestamptz NOT NULL
);
CREATE INDEX trimtab_blobs_touched ON trimtab_blobs (touched);
CREATE TABLE trimtab_blob_chunks (
  digest text NOT NULL REFERENCES trimtab_blobs ON DELETE CASCADE,
  number integer NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (digest, number)
);
ALTER TABLE trimtab_blob_chunks ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE trimtab_blob_pins (
  owner text NOT NULL,
  digest text NOT NULL REFERENCES trimtab_blobs,
  PRIMARY KEY (owner, digest)
);
CREATE INDEX trimtab_blob_pins_digest ON trimtab_blob_pins (digest);
"""


class PostgresBlobs:
    """Fulfils `Blobs`. Tables are made in the first schema of the user's search path when they are not there."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        chance: random.Random | None = None,
        max_bytes: int = MAX_BYTES,
        connections: int = 4,
        timeout: float = 30.0,
    ) -> None:
        self._url = url
        self._place = place_of(url)
        self._clock = clock or SystemClock()
        self._chance = chance or random.Random()  # noqa: S311 - it spreads retries
        self._max_bytes = max_bytes
        self._connections = connections
        self._timeout = timeout
        self._starting = asyncio.Lock()
        self._pool: Any = None

    def __repr__(self) -> str:
        return f"PostgresBlobs({self._place!r})"

    async def put(
        self, data: Data, *, media_type: str = "", expected: Digest | None = None, max_bytes: int | None = None
    ) -> Digest:
        check_media_type(media_type)
        limit = self._max_bytes if max_bytes is None else min(max_bytes, self._max_bytes)
        async with spooled(data, max_bytes=limit, expected=expected) as spool:
            await self._run(_store, spool, media_type)
            return spool.digest

    async def open(self, digest: Digest) -> AsyncIterator[bytes]:
        size = (await self.stat(digest)).size

        async def chunks() -> AsyncIterator[bytes]:
            for number in range(-(-size // CHUNK)):
                yield await self._run(_chunk, digest, number)

        async for chunk in verified(digest, chunks()):
            yield chunk

    async def stat(self, digest: Digest) -> BlobInfo:
        parse_digest(digest)
        return await self._run(_stat, digest)

    async def pin(self, digest: Digest, owner: str) -> None:
        parse_digest(digest)
        check_owner(owner)
        await self._run(_pin, digest, owner)

    async def unpin(self, owner: str, digest: Digest | None = None) -> None:
        check_owner(owner)
        await self._run(_unpin, owner, digest)

    async def collect(self, *, grace: float) -> Collected:
        count = size = 0
        after = ""
        while True:
            found = await self._run(_unpinned, grace, after)
            for digest in found:
                freed = await self._run(_remove, digest, grace)
                if freed is not None:
                    count, size = count + 1, size + freed
            if len(found) < _BATCH:
                return Collected(count, size)
            after = found[-1]

    async def ready(self) -> None:
        await self._run(_nothing)

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    async def _run(self, act: Callable[Concatenate[Any, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """One act on a connection, tried again when the database is away."""

        async def once() -> T:
            try:
                pool = await self._ready_pool()
            except asyncpg.ClientConfigurationError as error:
                raise BlobsUnavailable(f"the URL of blobs in {self._place}: {self._cleaned(error)}") from None
            async with pool.acquire(timeout=self._timeout) as connection:
                return await act(connection, *args, **kwargs)

        try:
            return await retried(once, AWAY, clock=self._clock, chance=self._chance)
        except (asyncpg.PostgresError, *AWAY) as error:
            # An error of the driver may quote what it was given: the cause stays behind.
            raise BlobsUnavailable(f"blobs in {self._place}: {self._cleaned(error)}") from None

    async def _ready_pool(self) -> Any:
        async with self._starting:
            if self._pool is None:
                pool = await asyncpg.create_pool(
                    self._url,
                    min_size=0,
                    max_size=self._connections,
                    timeout=self._timeout,
                    command_timeout=self._timeout,
                    **tls_of(self._url),
                )
                try:
                    async with pool.acquire(timeout=self._timeout) as connection, connection.transaction():
                        await _make_tables(connection)
                except BaseException:
                    pool.terminate()
                    raise
                self._pool = pool
            return self._pool

    def _cleaned(self, error: Exception) -> str:
        return cleaned(error, self._url)


async def _make_tables(connection: Any) -> None:
    """Once for each database: later starts need no right to make tables, and wait for nobody."""
    if not await connection.fetchval(_MADE):
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        if not await connection.fetchval(_MADE):
            await connection.execute(_TABLES)
            await connection.execute("INSERT INTO trimtab_blob_version VALUES ($1)", VERSION)
    version = await connection.fetchval("SELECT max(version) FROM trimtab_blob_version")
    if version != VERSION:
        raise BlobsUnavailable(
            f"the tables of blobs have version {version}, and this release knows {VERSION}: upgrade it"
        )


async def _nothing(connection: Any) -> None:
    await connection.fetchval("SELECT 1")


async def _stat(connection: Any, digest: Digest) -> BlobInfo:
    row = await connection.fetchrow("SELECT size, media_type FROM trimtab_blobs WHERE digest = $1", digest)
    if row is None:
        raise BlobMissing(digest)
    return BlobInfo(digest, row["size"], row["media_type"])


async def _unpin(connection: Any, owner: str, digest: Digest | None) -> None:
    query = "DELETE FROM trimtab_blob_pins WHERE owner = $1 AND digest = coalesce($2, digest)"
    await connection.execute(query, owner, digest)


async def _store(connection: Any, spool: Spool, media_type: str) -> None:
    async with connection.transaction():
        await connection.execute(
            "INSERT INTO trimtab_blobs VALUES ($1, $2, $3, now()) ON CONFLICT (digest) DO UPDATE SET "
            "size = excluded.size, touched = greatest(trimtab_blobs.touched, now()), "
            "media_type = coalesce(nullif(excluded.media_type, ''), trimtab_blobs.media_type)",
            spool.digest,
            spool.size,
            media_type,
        )
        number = 0
        async for chunk in spool.chunks():
            await connection.execute(
                "INSERT INTO trimtab_blob_chunks VALUES ($1, $2, $3) ON CONFLICT (digest, number) DO UPDATE "
                "SET data = excluded.data WHERE trimtab_blob_chunks.data <> excluded.data",
                spool.digest,
                number,
                chunk,
            )
            number += 1


async def _chunk(connection: Any, digest: Digest, number: int) -> bytes:
    query = "SELECT data FROM trimtab_blob_chunks WHERE digest = $1 AND number = $2"
    data: bytes | None = await connection.fetchval(query, digest, number)
    if data is None:
        if await connection.fetchval("SELECT 1 FROM trimtab_blobs WHERE digest = $1", digest) is None:
            raise BlobMissing(digest)  # collected under the reader
        raise BlobDamaged(digest, f"piece {number} is not there")
    return data


async def _pin(connection: Any, digest: Digest, owner: str) -> None:
    async with connection.transaction():
        touched = await connection.fetchval(
            "UPDATE trimtab_blobs SET touched = greatest(touched, now()) WHERE digest = $1 RETURNING 1", digest
        )
        if touched is None:
            raise BlobMissing(digest)
        await connection.execute("INSERT INTO trimtab_blob_pins VALUES ($1, $2) ON CONFLICT DO NOTHING", owner, digest)


async def _unpinned(connection: Any, grace: float, after: str) -> list[Digest]:
    rows = await connection.fetch(
        "SELECT digest FROM trimtab_blobs b WHERE digest > $2 AND touched <= now() - make_interval(secs => $1) "
        "AND NOT EXISTS (SELECT FROM trimtab_blob_pins p WHERE p.digest = b.digest) ORDER BY digest LIMIT $3",
        grace,
        after,
        _BATCH,
    )
    return [row["digest"] for row in rows]


async def _remove(connection: Any, digest: Digest, grace: float) -> int | None:
    """The size of the removed blob; None when somebody put or pinned it meanwhile."""
    async with connection.transaction():
        locked = await connection.fetchval(
            "SELECT 1 FROM trimtab_blobs WHERE digest = $1 AND touched <= now() - make_interval(secs => $2) FOR UPDATE",
            digest,
            grace,
        )
        if locked is None:
            return None
        # A statement of its own: it sees the pins that were committed while we waited for the row.
        size: int | None = await connection.fetchval(
            "DELETE FROM trimtab_blobs b WHERE digest = $1 "
            "AND NOT EXISTS (SELECT FROM trimtab_blob_pins p WHERE p.digest = b.digest) RETURNING size",
            digest,
        )
        return size
