"""What is special to blobs in PostgreSQL: broken connections, its restart, passwords, several who start at once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from tests.storage.conftest import ImpatientClock, PostgresHome
from trimtab.storage import postgres as module
from trimtab.storage.blobs import CHUNK, BlobMissing, BlobsUnavailable, Collected, digest_of, read
from trimtab.storage.postgres import PostgresBlobs
from trimtab.storage.postgres_url import tls_of
from trimtab.storage.spool import Spool
from trimtab.testing.clock import FakeClock
from trimtab.testing.postgres import PostgresServer

CONTENT = bytes(2 * CHUNK) + b"the end"


class DyingSpool(Spool):
    """Breaks the connection of the transaction in which it is read, after its first chunk; `times` times."""

    home: PostgresHome
    times = 1
    seen: list[int]

    async def chunks(self) -> AsyncIterator[bytes]:
        number = 0
        async for chunk in super().chunks():
            if number == 1 and len(self.seen) < self.times:
                self.seen.append(number)
                await self.home.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'"
                )
            yield chunk
            number += 1


@pytest.fixture
def dying(postgres_home: PostgresHome, monkeypatch: pytest.MonkeyPatch) -> type[DyingSpool]:
    class Here(DyingSpool):
        home = postgres_home
        seen: list[int] = []  # noqa: RUF012 - one for the test

    monkeypatch.setattr("trimtab.storage.spool.Spool", Here)
    return Here


async def test_a_put_whose_connection_dies_in_the_midst_is_done_again(
    postgres_home: PostgresHome, dying: type[DyingSpool]
) -> None:
    digest = await postgres_home.blobs.put(CONTENT)
    assert dying.seen == [1]
    assert await read(postgres_home.blobs, digest, max_bytes=len(CONTENT)) == CONTENT


async def test_a_put_that_never_succeeds_leaves_nothing(postgres_home: PostgresHome, dying: type[DyingSpool]) -> None:
    dying.times = 1000
    impatient = PostgresBlobs(postgres_home.url, clock=ImpatientClock())
    with pytest.raises(BlobsUnavailable):
        await impatient.put(CONTENT)
    await impatient.close()
    with pytest.raises(BlobMissing):
        await postgres_home.blobs.stat(digest_of(CONTENT))
    assert await postgres_home.blobs.collect(grace=0) == Collected(0, 0)


async def test_a_reader_goes_on_after_its_connection_died(postgres_home: PostgresHome) -> None:
    digest = await postgres_home.blobs.put(CONTENT)
    whole = b""
    async for chunk in postgres_home.blobs.open(digest):
        whole += chunk
        await postgres_home.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state = 'idle'"
        )
    assert whole == CONTENT


async def test_what_was_put_survives_a_killed_server() -> None:
    with PostgresServer() as server:
        blobs = PostgresBlobs(server.url)
        digest = await blobs.put(CONTENT)
        await blobs.pin(digest, "owner")
        server.kill()
        server.restart()
        assert await read(blobs, digest, max_bytes=len(CONTENT)) == CONTENT
        assert await blobs.collect(grace=0) == Collected(0, 0)
        await blobs.close()


async def test_a_collection_that_waits_for_a_pin_leaves_the_blob(postgres_home: PostgresHome) -> None:
    digest = await postgres_home.blobs.put(b"old")
    await postgres_home.age(7200)
    pinning = await asyncpg.connect(postgres_home.url, ssl=False)
    transaction = pinning.transaction()
    await transaction.start()
    await module._pin(pinning, digest, "owner")
    collecting = asyncio.create_task(postgres_home.blobs.collect(grace=0))
    looking = await asyncpg.connect(postgres_home.url, ssl=False)
    blocked = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))"
    while not await looking.fetchval(blocked, pinning.get_server_pid()):
        assert not collecting.done()
    await transaction.commit()
    assert await collecting == Collected(0, 0)
    assert await read(postgres_home.blobs, digest, max_bytes=10) == b"old"
    await pinning.close()
    await looking.close()


async def test_several_that_start_at_once_make_one_set_of_tables(postgres_home: PostgresHome) -> None:
    await postgres_home.execute(
        "DROP TABLE trimtab_blob_pins, trimtab_blob_chunks, trimtab_blobs, trimtab_blob_version"
    )
    several = [await postgres_home.another() for _ in range(6)]
    await asyncio.gather(*(blobs.ready() for blobs in several))
    await several[0].put(b"x")


async def test_one_that_starts_waits_for_nobody_once_there_are_tables(postgres_home: PostgresHome) -> None:
    await postgres_home.blobs.ready()
    still = await asyncpg.connect(postgres_home.url, ssl=False)
    async with still.transaction():
        await still.execute("SELECT pg_advisory_xact_lock($1)", module._LOCK)  # as one that stands still in its start
        async with asyncio.timeout(20):
            await (await postgres_home.another()).ready()
    await still.close()


async def test_a_user_without_the_right_to_make_tables_can_use_those_that_are_there(
    postgres_home: PostgresHome,
) -> None:
    schema = postgres_home.url.rpartition("=")[2]
    user = f"{schema}_user"
    await postgres_home.execute(f"CREATE USER {user} PASSWORD 'known'")
    await postgres_home.execute(f"GRANT USAGE ON SCHEMA {schema} TO {user}")
    await postgres_home.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {user}")
    blobs = PostgresBlobs(re.sub("//.*@", f"//{user}:known@", postgres_home.url))
    digest = await blobs.put(b"allowed")
    assert await read(blobs, digest, max_bytes=10) == b"allowed"
    await blobs.close()


async def test_tables_of_a_newer_release_are_left_alone(postgres_home: PostgresHome) -> None:
    await postgres_home.execute("UPDATE trimtab_blob_version SET version = $1", module.VERSION + 1)
    with pytest.raises(BlobsUnavailable, match="upgrade"):
        await (await postgres_home.another()).ready()


async def test_a_wrong_password_is_said_without_the_password(postgres: PostgresServer) -> None:
    blobs = PostgresBlobs(postgres.url.replace(postgres.password, "not-the-pass%2Fword"), clock=FakeClock())
    with pytest.raises(BlobsUnavailable, match="password authentication failed") as caught:
        await blobs.ready()
    assert_secret(caught.value, "not-the-pass")
    assert "not-the-pass" not in repr(blobs)


async def test_a_url_that_the_driver_refuses_is_said_without_the_password() -> None:
    blobs = PostgresBlobs("postgresql://user:hidden-word@127.0.0.1/db?sslmode=hidden-word")
    with pytest.raises(BlobsUnavailable) as caught:
        await blobs.ready()
    assert_secret(caught.value, "hidden-word")


def assert_secret(error: BaseException, secret: str) -> None:
    text = f"{error} {error!r} {error.__cause__!r}"
    assert secret not in text


@pytest.mark.parametrize(
    ("url", "verified"),
    [
        ("postgresql://u:p@db.example/x", True),
        ("postgresql://u:p@127.0.0.1,db.example/x", True),
        ("postgresql:///x?host=db.example", True),
        ("postgresql://u:p@127.0.0.1:5432/x", False),
        ("postgresql://u:p@[::1]:5432/x", False),
        ("postgresql:///x?host=/run/postgresql", False),
    ],
)
def test_tls_is_verified_but_on_this_machine(url: str, verified: bool) -> None:
    tls: Any = tls_of(url)["ssl"]
    assert bool(tls) == verified
    if verified:
        assert tls.check_hostname


def test_a_url_with_sslmode_decides_itself() -> None:
    assert tls_of("postgresql://db.example/x?sslmode=require") == {}


async def test_a_read_only_look_at_the_tables_shows_bounded_rows(postgres_home: PostgresHome) -> None:
    await postgres_home.blobs.put(CONTENT)
    connection = await asyncpg.connect(postgres_home.url, ssl=False)
    sizes = await connection.fetch("SELECT length(data) AS size FROM trimtab_blob_chunks ORDER BY number")
    await connection.close()
    assert [row["size"] for row in sizes] == [CHUNK, CHUNK, 7]
