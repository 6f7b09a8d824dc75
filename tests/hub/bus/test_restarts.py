"""The PostgreSQL of our tests: when `kill` returns, nothing of it answers, and when `restart` returns, it takes questions."""

import asyncio

import asyncpg
import pytest

from trimtab.testing.postgres import PostgresServer


@pytest.mark.slow
async def test_a_server_that_was_killed_answers_as_soon_as_restart_returns(postgres: PostgresServer) -> None:
    for _ in range(8):
        postgres.kill()
        postgres.restart()
        connection = await asyncpg.connect(postgres.url)
        assert await connection.fetchval("SELECT 1") == 1
        await connection.close()


async def test_a_server_that_was_killed_is_gone_with_all_that_it_was_doing(postgres: PostgresServer) -> None:
    asking, looking = [await asyncpg.connect(postgres.url) for _ in range(2)]
    busy = asyncio.create_task(asking.fetchval("SELECT count(*) FROM generate_series(1, 1000000000)"))
    while not await looking.fetchval("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT count%series%'"):
        pass
    postgres.kill()
    for question in (busy, looking.fetchval("SELECT 1")):
        with pytest.raises((asyncpg.PostgresConnectionError, asyncpg.InterfaceError, ConnectionError)):
            await asyncio.wait_for(question, 10)
    postgres.restart()
    connection = await asyncpg.connect(postgres.url)
    assert await connection.fetchval("SELECT 1") == 1
    await connection.close()
