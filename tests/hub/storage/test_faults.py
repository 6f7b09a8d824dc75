"""Deaths in the midst: of a writer, of PostgreSQL, of a connection. What was acknowledged is there, nothing is there by half."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.hub.storage.conftest import Made, execute, new_schema
from tests.hub.storage.rows import ORG, key, listed, put, query
from trimtab.hub.storage.connect import storage as connect
from trimtab.hub.storage.contract import RowChange, Snapshot, Storage, StorageUnavailable
from trimtab.hub.storage.postgres import PostgresStorage
from trimtab.testing.postgres import PostgresServer
from trimtab.testing.processes import PeerFailed, Process

ENDLESS = 1_000_000


@contextlib.contextmanager
def writer(url: str, log: Path, name: str, count: int) -> Iterator[Process]:
    command = [sys.executable, "-m", "tests.hub.storage.writer", url, name, str(count)]
    process = Process(command, log=log)
    try:
        yield process
    finally:
        process.kill()


def stored(log: Path) -> dict[int, int]:
    """Number → revision of all that was acknowledged; the last line may be cut."""
    lines = [line.split() for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return {int(words[1]): int(words[2]) for words in lines if words[0] == "stored"}


async def changes(storage: Storage, since: int = 0) -> list[RowChange]:
    """All up to now."""
    newest, _ = await storage.horizon()
    found: list[RowChange] = []
    async with contextlib.aclosing(storage.changes(ORG, (), since)) as batches:  # type: ignore[type-var]
        while not found or found[-1].row.revision < newest:
            found += (await anext(batches)).changes
    return found


async def check_whole(storage: Storage) -> dict[str, int]:
    """Rows, log and counter tell the same story; name → revision."""
    newest, _ = await storage.horizon()
    told = await changes(storage)
    assert [change.row.revision for change in told] == [*range(1, newest + 1)]
    rows = await listed(storage, query())
    assert {row.revision: row for row in rows} == {change.row.revision: change.row for change in told}
    known = await storage.names([row.id for row in rows])
    assert {each.id: each.name for each in known.values()} == {row.id: row.key.name for row in rows}
    return {row.key.name: row.revision for row in rows}


@pytest.mark.parametrize("home", ["sqlite", "postgres"])
async def test_a_writer_that_is_killed_in_the_midst_leaves_all_that_it_was_told(
    home: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = str(tmp_path / "hub.db")
    if home == "postgres":
        url = await new_schema(request.getfixturevalue("postgres"))
    log = tmp_path / "writer.log"
    with writer(url, log, "w", ENDLESS) as process:
        process.wait_until(lambda: len(stored(log)) >= 300, within=60)
        process.kill()
    storage = connect(url)
    try:
        there = await check_whole(storage)
        for number, revision in stored(log).items():
            assert there[f"w-{number}"] == revision
        await storage.commit(put(key("after")))
    finally:
        await storage.close()


@pytest.mark.row(37)
async def test_two_processes_see_each_others_changes_in_one_order(
    postgres_url: str, made: Made, tmp_path: Path
) -> None:
    mine, yours = [await made("postgres", url=postgres_url) for _ in range(2)]
    await mine.ready()
    logs = [tmp_path / "one.log", tmp_path / "two.log"]
    total = 2 * 150 + 100
    following = [asyncio.create_task(_first(each, total)) for each in (mine, yours)]
    with writer(postgres_url, logs[0], "one", 150), writer(postgres_url, logs[1], "two", 150):
        await asyncio.gather(*(mine.commit(put(key(f"three-{n}"))) for n in range(100)))
        told = await asyncio.wait_for(asyncio.gather(*following), 60)
    assert told[0] == told[1]
    assert [change.row.revision for change in told[0]] == [*range(1, total + 1)]
    there = await check_whole(yours)
    for log, name in zip(logs, ("one", "two"), strict=True):
        assert all(there[f"{name}-{number}"] == revision for number, revision in stored(log).items())


async def _first(storage: Storage, count: int) -> list[RowChange]:
    found: list[RowChange] = []
    async with contextlib.aclosing(storage.changes(ORG, (), 0)) as batches:  # type: ignore[type-var]
        while len(found) < count:
            found += (await anext(batches)).changes
    return found


async def test_a_commit_is_read_by_another_process_once_it_is_acknowledged(postgres_url: str, made: Made) -> None:
    mine, yours = [await made("postgres", url=postgres_url) for _ in range(2)]
    for number in range(30):
        row = await mine.commit(put(key("a"), body={"n": number}))
        assert await yours.get(key("a")) == row
        assert (await yours.list(query())).rows == [row]
        assert (await yours.horizon())[0] == row.revision


@pytest.fixture
async def own_postgres() -> AsyncIterator[PostgresServer]:
    """One that a test may kill."""
    with PostgresServer() as server:
        yield server


async def revive(server: PostgresServer) -> None:
    """What the old one left may hold its memory for a moment: then the new one ends as soon as it has begun."""
    while True:
        with contextlib.suppress(PeerFailed):
            server.restart()
        while server._process.running:
            with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await execute(server.url, "SELECT 1")
                return


async def test_postgres_may_die_and_come_back_in_the_midst_of_commits(own_postgres: PostgresServer, made: Made) -> None:
    storage = await made("postgres", url=own_postgres.url, patience=60.0)
    following = asyncio.create_task(_first(storage, 400))
    halfway = asyncio.Event()

    async def lane(start: int) -> list[Any]:
        rows = []
        for number in range(start, 400, 8):
            rows.append(await storage.commit(put(key(f"n{number}"), expect=0, body={"n": number})))
            if number > 150:
                halfway.set()
        return rows

    lanes = asyncio.gather(*map(lane, range(8)))
    await halfway.wait()
    own_postgres.kill()
    await revive(own_postgres)
    rows = [row for each in await asyncio.wait_for(lanes, 60) for row in each]
    there = await check_whole(storage)
    assert {row.key.name: row.revision for row in rows} == there
    assert [change.row.revision for change in await asyncio.wait_for(following, 30)] == [*range(1, 401)]


async def test_while_postgres_is_away_everybody_is_told_so(own_postgres: PostgresServer, made: Made) -> None:
    storage = await made("postgres", url=own_postgres.url, patience=0.2)
    await storage.commit(put(key("a")))
    own_postgres.kill()
    for asked in (
        storage.commit(put(key("b"))),
        storage.get(key("a")),
        storage.list(query()),
        storage.names(["x"]),
        storage.horizon(),
    ):
        with pytest.raises(StorageUnavailable) as error:
            await asked
        assert own_postgres.password not in str(error.value)
    await revive(own_postgres)
    fresh = await made("postgres", url=own_postgres.url)
    assert [row.key.name for row in await listed(fresh, query())] == ["a"]
    await storage.commit(put(key("b")))
    assert await check_whole(storage) == {"a": 1, "b": 2}


async def test_a_commit_whose_answer_was_lost_is_not_done_twice(
    postgres_url: str, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = await made("postgres", url=postgres_url)
    await storage.ready()
    run = storage._link.run
    lost: list[Any] = []

    async def losing(act: Any, **options: Any) -> Any:
        async def once(connection: Any) -> Any:
            result = await act(connection)
            if not lost and getattr(result, "changes", None):
                lost.append(result)
                raise ConnectionResetError
            return result

        return await run(once, **options)

    monkeypatch.setattr(storage._link, "run", losing)
    row = await storage.commit(put(key("a"), expect=0, body={"n": 1}, snapshot=Snapshot(version="v1", body={})))
    assert lost
    assert row.revision == 1
    assert await check_whole(storage) == {"a": 1}


async def test_a_commit_that_was_rolled_back_is_done_again(postgres_url: str, made: Made) -> None:
    storage = await made("postgres", url=postgres_url)
    await storage.ready()
    attempt = storage._attempt
    broken: list[Any] = []

    async def breaking(connection: Any, *args: Any) -> Any:
        result = await attempt(connection, *args)
        if not broken:
            broken.append(result)
            await execute(postgres_url, "SELECT pg_terminate_backend($1)", connection.get_server_pid())
        return result

    storage._attempt = breaking
    await storage.commit(put(key("a"), expect=0))
    assert broken
    assert await check_whole(storage) == {"a": 1}


async def test_notifications_are_not_needed(postgres_url: str, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimtab.hub.storage.postgres_tail.LOOK", 0.05)
    mine, yours = [await made("postgres", url=postgres_url) for _ in range(2)]
    await mine.ready()
    monkeypatch.setattr(
        "trimtab.hub.storage.postgres_sql.ADVANCE", "UPDATE hub_counter SET revision = $1 + length($2 || $3) * 0"
    )
    following = asyncio.create_task(_first(yours, 20))
    for number in range(20):
        await mine.commit(put(key(f"n{number}")))
    assert len(await asyncio.wait_for(following, 30)) == 20


async def test_a_listener_that_dies_is_started_again(postgres_url: str, made: Made) -> None:
    mine, yours = [await made("postgres", url=postgres_url) for _ in range(2)]
    await mine.commit(put(key("a")))
    following = asyncio.create_task(_first(yours, 2))
    listening = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
        "AND (query ILIKE 'LISTEN%' OR query LIKE '%hub_log%')"
    )
    while not await execute(postgres_url, listening):
        pass
    await mine.commit(put(key("b")))
    assert [change.row.key.name for change in await asyncio.wait_for(following, 30)] == ["a", "b"]


def test_the_postgres_storage_shows_no_password() -> None:
    async def shown() -> str:
        return repr(PostgresStorage("postgresql://me:secret@127.0.0.1/db"))

    assert asyncio.run(shown()) == "PostgresStorage('postgresql://127.0.0.1/db')"


async def test_a_process_that_stands_still_in_a_transaction_does_not_hold_up_the_others(
    postgres_url: str, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.hub.storage.postgres_link.STALLED", 0.2)
    stalled, other = [await made("postgres", url=postgres_url) for _ in range(2)]
    await stalled.ready()
    attempt = stalled._attempt
    holds, goes_on = asyncio.Event(), asyncio.Event()

    async def stopping(*args: Any) -> Any:
        result = await attempt(*args)
        if not holds.is_set():
            holds.set()
            await goes_on.wait()  # as one that was sent SIGSTOP
        return result

    stalled._attempt = stopping
    first = asyncio.create_task(stalled.commit(put(key("a"), expect=0)))
    await holds.wait()
    async with asyncio.timeout(10):
        await other.commit(put(key("b"), expect=0))
    goes_on.set()
    await first
    assert await check_whole(other) == {"b": 1, "a": 2}
