"""Reaching PostgreSQL: a pool, tables that are up to date, patience while the server restarts, and errors without secrets."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncpg

from trimtab.hub.storage.contract import StorageUnavailable, StorageUnusable
from trimtab.hub.storage.schema import LADDER, postgres_steps
from trimtab.model.backoff import pause
from trimtab.model.clock import Clock
from trimtab.storage import postgres_url
from trimtab.storage.postgres_url import cleaned, place_of, tls_of

T = TypeVar("T")

PATIENCE = 5.0
"""Seconds in which a server that is away may come back before anybody hears of it."""
AWAY = (*postgres_url.AWAY, asyncpg.IdleInTransactionSessionTimeoutError)
"""What may work in a moment."""
_LOCK = 0x74726968  # one at a time makes the tables


_PLANS = {
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    **{
        f"enable_{way}": "off" for way in ("seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort", "incremental_sort")
    },
}
"""Every statement has its index. A plan that was made while the tables were small must not read all of them later."""
STALLED = 5.0
"""Seconds after which a transaction is ended whose process stands still: all others wait for its lock."""


class _Connection(asyncpg.Connection):  # type: ignore[misc]
    def get_reset_query(self) -> str:
        """Nothing here changes a session: what would undo it is a round trip for every read."""
        return ""


class Link:
    """A database. It is reached when it is first needed, and again after it was away."""

    def __init__(
        self, url: str, *, clock: Clock, connections: int, timeout: float, patience: float, chance: random.Random
    ) -> None:
        self._url = url
        self.place = place_of(url)
        self._clock = clock
        self._connections = connections
        self._timeout = timeout
        self._patience = patience
        self._chance = chance
        self.stalled = STALLED
        self._starting = asyncio.Lock()
        self._pool: Any = None
        self._closed = False

    async def run(self, act: Callable[[Any], Awaitable[T]], *, again: bool = True) -> T:
        """One act on a connection; `again` when the server was away meanwhile, for whatever may be done twice."""

        async def once() -> T:
            pool = await self._ready()
            async with pool.acquire(timeout=self._timeout) as connection:
                return await act(connection)

        return await self.patiently(once) if again else await self.said(once)

    async def patiently(self, act: Callable[[], Awaitable[T]]) -> T:
        deadline = self._clock.monotonic() + self._patience
        attempt = 0
        while True:
            try:
                return await act()
            except AWAY as error:
                wait = pause(attempt, 0.05, 1.0, self._chance)
                if self._closed or self._clock.monotonic() + wait > deadline:
                    raise self._unavailable(error) from None
                await self._clock.sleep(wait)
                attempt += 1
            except asyncpg.PostgresError as error:
                raise self._unavailable(error) from None

    async def said(self, act: Callable[[], Awaitable[T]]) -> T:
        """Once; errors in the contract's words."""
        try:
            return await act()
        except (asyncpg.PostgresError, *AWAY) as error:
            raise self._unavailable(error) from None

    async def connect(self) -> Any:
        """A connection of its own, outside the pool."""
        await self._ready()
        return await asyncpg.connect(self._url, timeout=self._timeout, **tls_of(self._url))

    async def close(self) -> None:
        self._closed = True
        pool, self._pool = self._pool, None
        if pool is not None:
            try:
                async with asyncio.timeout(self._timeout):
                    await pool.close()
            except (TimeoutError, *AWAY):
                pool.terminate()

    async def _ready(self) -> Any:
        if self._pool is not None:
            return self._pool
        async with self._starting:
            if self._closed:
                raise StorageUnavailable("the storage is closed")
            if self._pool is None:
                try:
                    pool = await asyncpg.create_pool(
                        self._url,
                        min_size=0,
                        max_size=self._connections,
                        timeout=self._timeout,
                        command_timeout=self._timeout,
                        connection_class=_Connection,
                        server_settings={
                            **_PLANS,
                            "idle_in_transaction_session_timeout": str(int(self.stalled * 1000)),
                        },
                        **tls_of(self._url),
                    )
                except (asyncpg.ClientConfigurationError, ValueError) as error:
                    raise StorageUnusable(f"the URL of {self.place}: {self._cleaned(error)}") from None
                try:
                    async with pool.acquire(timeout=self._timeout) as connection, connection.transaction():
                        await _migrate(connection, self.place)
                except BaseException:
                    pool.terminate()
                    raise
                self._pool = pool
            return self._pool

    def _unavailable(self, error: Exception) -> StorageUnavailable:
        # An error of the driver may quote what it was given: the cause stays behind.
        kind = StorageUnusable if isinstance(error, _NEVER) else StorageUnavailable
        return kind(f"{self.place}: {self._cleaned(error)}")

    def _cleaned(self, error: Exception) -> str:
        return cleaned(error, self._url)


def check_version(place: str, version: int) -> None:
    """StorageUnusable when the tables are of a release that came later than this one."""
    if version > len(LADDER):
        raise StorageUnusable(
            f"{place} was written by a newer Trimtab (version {version}; this one knows {len(LADDER)}): upgrade"
        )


_NEVER = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)


# Not to_regclass: asked twice in one transaction, it may remember that there was no such table.
_KNOWN = "SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'hub_version' AND pg_table_is_visible(oid))"


async def _migrate(connection: Any, place: str) -> None:
    """Later starts need no right to make tables, and wait for nobody."""
    known = await connection.fetchval(_KNOWN)
    version = await connection.fetchval("SELECT version FROM hub_version") if known else 0
    if version == len(LADDER):
        return
    await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
    if not await connection.fetchval(_KNOWN):
        await connection.execute("CREATE TABLE hub_version (version integer NOT NULL)")
        await connection.execute("INSERT INTO hub_version VALUES (0)")
    version = await connection.fetchval("SELECT version FROM hub_version")
    check_version(place, version)
    if version:
        await connection.execute("SELECT FROM hub_counter FOR UPDATE")  # nobody writes meanwhile
    for step in postgres_steps(version):
        await connection.execute(step)
    await connection.execute("UPDATE hub_version SET version = $1", len(LADDER))
