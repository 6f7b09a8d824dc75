"""The homes of a storage in turn: a SQLite file, PostgreSQL, and the service's API in front of each."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from aiohttp import web

from trimtab.hub.storage.contract import Storage
from trimtab.hub.storage.sqlite import SqliteStorage
from trimtab.testing.postgres import PostgresMissing, PostgresServer

HOMES = ("sqlite", "postgres", "http-sqlite", "http-postgres")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """TRIMTAB_REQUIRE_POSTGRES=1 makes its absence fail, not skip."""
    try:
        server = PostgresServer()
    except PostgresMissing as missing:
        if os.environ.get("TRIMTAB_REQUIRE_POSTGRES"):
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))
    with server:
        yield server


@pytest.fixture
async def postgres_url(postgres: PostgresServer) -> str:
    """A schema of the test's own."""
    return await new_schema(postgres)


async def new_schema(postgres: PostgresServer) -> str:
    schema = f"test_{secrets.token_hex(6)}"
    url = f"{postgres.url}?search_path={schema}"
    await execute(url, f"CREATE SCHEMA {schema}")
    return url


async def empty_schema(postgres: PostgresServer) -> str:
    """One for all tests that need no tables of their own, emptied: making tables takes longer than most tests."""
    if postgres.url not in _SHARED:
        _SHARED[postgres.url] = await new_schema(postgres)
    else:
        await execute(_SHARED[postgres.url], _EMPTY)
    return _SHARED[postgres.url]


_SHARED: dict[str, str] = {}
_EMPTY = """DO $$ BEGIN
  IF EXISTS (SELECT FROM pg_class WHERE relname = 'trimtab_blobs' AND pg_table_is_visible(oid)) THEN
    DELETE FROM hub_resources; DELETE FROM hub_labels; DELETE FROM hub_log; DELETE FROM hub_sharing;
    DELETE FROM hub_snapshots; DELETE FROM hub_identities WHERE id <> '';
    DELETE FROM hub_organizations WHERE name <> 'default';
    UPDATE hub_counter SET revision = 0, compacted = 0;
    DELETE FROM trimtab_blob_pins; DELETE FROM trimtab_blobs;
  END IF;
END $$"""


async def execute(url: str, statement: str, *args: object) -> Any:
    connection = await asyncpg.connect(url, ssl=False)
    try:
        return await connection.fetch(statement, *args)
    finally:
        await connection.close()


@contextlib.asynccontextmanager
async def behind_http(storage: Storage, **options: Any) -> AsyncIterator[Storage]:
    """A client of the service's API in front of a storage."""
    from trimtab.hub.storage.api import application
    from trimtab.hub.storage.client import HttpStorage

    token = secrets.token_hex(16)
    runner = web.AppRunner(application(storage, token=lambda: token), lingering_time=0.1, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    client = HttpStorage(f"http://127.0.0.1:{runner.addresses[0][1]}", token=lambda: token, **options)
    try:
        yield client
    finally:
        await client.close()
        await runner.cleanup()


Made = Callable[..., Any]


@pytest.fixture
async def made(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Made]:
    """Makes storages of a home; all are closed in the end. Options are those of the one in the database."""
    async with contextlib.AsyncExitStack() as stack:

        async def make(home: str, **options: Any) -> Any:
            if home.endswith("sqlite"):
                storage: Any = SqliteStorage(tmp_path / f"{secrets.token_hex(4)}.db", **options)
            else:
                from trimtab.hub.storage.postgres import PostgresStorage

                url = options.pop("url", None) or await empty_schema(request.getfixturevalue("postgres"))
                storage = PostgresStorage(url, **options)
            stack.push_async_callback(storage.close)
            if home.startswith("http"):
                client: Any = await stack.enter_async_context(behind_http(storage))
                client.behind = storage
                return client
            storage.behind = storage
            return storage

        yield make


@pytest.fixture(params=HOMES)
def home(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
async def storage(home: str, made: Made) -> Storage:
    """Each of the four, for what must hold in all."""
    found: Storage = await made(home)
    await found.ready()
    return found
