"""Opening a database: its owner, its version, who made it; and how much of the log it keeps."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest

from tests.hub.storage.conftest import Made, execute, new_schema
from tests.hub.storage.rows import ORG, key, put, query
from trimtab.hub.compose import Hub
from trimtab.hub.storage import schema
from trimtab.hub.storage.client import HttpStorage
from trimtab.hub.storage.contract import StorageUnavailable, StorageUnusable
from trimtab.hub.storage.retained import SWEEP, horizon
from trimtab.hub.storage.schema import LADDER, Step
from trimtab.hub.storage.sqlite import SqliteStorage
from trimtab.model.hub import HubKind
from trimtab.server.core import Server
from trimtab.store.contract import Gone
from trimtab.store.memory import MemoryStore
from trimtab.store.retention import Retention
from trimtab.store.sqlite import SqliteStore
from trimtab.testing.clock import FakeClock


@contextlib.asynccontextmanager
async def opened(path: Path) -> Any:
    storage = SqliteStorage(path)
    try:
        await storage.ready()
        yield storage
    finally:
        await storage.close()


async def test_a_file_is_its_owners_alone_and_of_one_process(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    async with opened(path):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        second = SqliteStorage(path)
        with pytest.raises(StorageUnusable, match="in use"):
            await second.ready()
        await second.close()
    async with opened(path):
        pass


async def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    text, store, foreign = (tmp_path / name for name in ("text", "store.db", "foreign.db"))
    text.write_text("not a database, " * 100)
    await (await SqliteStore.open(store)).close()
    connection = apsw.Connection(str(foreign))
    connection.execute("CREATE TABLE t (a)")
    connection.close()
    for path, why in ((text, "not a database"), (store, "another program"), (foreign, "another program")):
        storage = SqliteStorage(path)
        with pytest.raises(StorageUnusable, match=why):
            await storage.ready()
        await storage.close()
    lost = SqliteStorage(tmp_path / "no" / "where.db")
    with pytest.raises(StorageUnusable, match="cannot be opened"):
        await lost.ready()


@pytest.mark.parametrize("suffix", ["", ".lock", "-wal"])
async def test_a_symbolic_link_is_refused(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"hub.db{suffix}").symlink_to(tmp_path / "victim")
    storage = SqliteStorage(tmp_path / "hub.db")
    with pytest.raises(StorageUnusable, match=f"hub.db{suffix} is a symbolic link"):
        await storage.ready()
    assert not (tmp_path / "victim").exists()


async def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    async with opened(path):
        pass
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", len(LADDER) + 1)
    connection.close()
    storage = SqliteStorage(path)
    with pytest.raises(StorageUnusable, match="newer Trimtab"):
        await storage.ready()


async def test_a_newer_database_is_refused(made: Made, postgres_url: str) -> None:
    await (await made("postgres", url=postgres_url)).ready()
    await execute(postgres_url, "UPDATE hub_version SET version = $1", len(LADDER) + 1)
    with pytest.raises(StorageUnusable, match="newer Trimtab"):
        await (await made("postgres", url=postgres_url)).ready()


@pytest.mark.parametrize("home", ["sqlite", "postgres"])
async def test_an_older_database_is_brought_up_to_date_with_its_rows(
    home: str, tmp_path: Path, request: pytest.FixtureRequest, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = await new_schema(request.getfixturevalue("postgres")) if home == "postgres" else ""

    async def opened_again() -> Any:
        return SqliteStorage(tmp_path / "hub.db") if home == "sqlite" else await made("postgres", url=url)

    old = await opened_again()
    row = await old.commit(put(key("a")))
    await old.close()
    more = (*LADDER, Step(both="CREATE TABLE hub_more (a {text}); INSERT INTO hub_more VALUES ('x');"))
    for module in ("schema", "sqlite_file", "postgres_link"):
        monkeypatch.setattr(f"trimtab.hub.storage.{module}.LADDER", more)
    new = await opened_again()
    assert await new.get(key("a")) == row
    await new.close()
    newest = await opened_again()
    assert await newest.get(key("a")) == row
    await newest.close()


async def test_a_step_that_fails_leaves_the_database_as_it_was(
    made: Made, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = (*LADDER, Step(both="CREATE TABLE hub_more (a {text}); SELECT nonsense;"))
    for module in ("schema", "postgres_link"):
        monkeypatch.setattr(f"trimtab.hub.storage.{module}.LADDER", wrong)
    with pytest.raises(StorageUnavailable, match="nonsense"):
        await (await made("postgres", url=postgres_url, patience=0.0)).ready()
    assert (await execute(postgres_url, "SELECT to_regclass('hub_version') AS t"))[0]["t"] is None
    monkeypatch.undo()
    await (await made("postgres", url=postgres_url)).ready()


async def test_many_who_start_at_once_make_the_tables_once(made: Made, postgres_url: str) -> None:
    several = [await made("postgres", url=postgres_url) for _ in range(6)]
    await asyncio.gather(*(each.ready() for each in several))
    await asyncio.gather(*(each.commit(put(key(f"n{n}"))) for n, each in enumerate(several)))
    assert len((await several[0].list(query())).rows) == 6


async def test_a_wrong_password_is_said_without_it(made: Made, postgres_url: str) -> None:
    password = postgres_url.split(":")[2].split("@")[0]
    wrong = postgres_url.replace(password, "hunter2")
    with pytest.raises(StorageUnusable, match="password") as error:
        await (await made("postgres", url=wrong, patience=0.0)).ready()
    assert "hunter2" not in str(error.value)


async def test_postgres_sorts_by_bytes_whatever_its_language_is(made: Made, postgres_url: str) -> None:
    storage = await made("postgres", url=postgres_url)
    await storage.ready()
    columns = await execute(
        postgres_url,
        "SELECT attname, collname FROM pg_attribute JOIN pg_collation c ON c.oid = attcollation "
        "WHERE attrelid = 'hub_resources'::regclass",
    )
    assert {row["collname"] for row in columns} == {"C"}


async def test_a_plan_from_when_the_tables_were_small_reads_an_index(made: Made, postgres_url: str) -> None:
    storage = await made("postgres", url=postgres_url)
    await storage.commit(put(key("a")))

    async def plan(connection: asyncpg.Connection) -> str:
        statement, args = storage_statement()
        return "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {statement}", *args))

    def storage_statement() -> tuple[str, list[Any]]:
        from trimtab.hub.storage import postgres_sql as sql
        from trimtab.hub.storage.reading import POSTGRES, Listing

        listing = Listing(query(after=("p", "n"), revision=1), POSTGRES)
        return sql.page(listing.at(1)), listing.args

    shown = await storage._link.run(plan)
    assert "Index Scan using hub_resources_pkey" in shown
    assert "Index Scan using hub_log_by_name" in shown
    assert "Seq Scan on hub_resources" not in shown


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], 0),
        ([(1, 0.0), (2, 10.0), (3, 20.0)], 2),  # the third is too young
        ([(1, 0.0), (2, 50.0), (3, 0.0)], 1),  # never past one that stays
        ([(n, 0.0) for n in range(1, 100)], 90),  # and never below the count
    ],
)
def test_what_is_old_and_more_than_the_count_goes(entries: list[tuple[int, float]], expected: int) -> None:
    assert horizon(entries, 100, 110.0, Retention(seconds=100.0, revisions=10)) == expected


async def test_the_log_in_a_file_is_bounded_by_age_and_count(tmp_path: Path) -> None:
    clock = FakeClock()
    storage = SqliteStorage(tmp_path / "hub.db", clock=clock, retention=Retention(seconds=60, revisions=100))

    async def write(count: int) -> None:
        await asyncio.gather(*(storage.commit(put(key(f"n{n}"), body={"at": clock.monotonic()})) for n in range(count)))

    try:
        await write(1000)
        assert await storage.horizon() == (1000, 0)  # all of it is young
        await clock.advance(61)
        await write(400)
        await write(1)
        newest, oldest = await storage.horizon()
        assert 1000 - SWEEP <= oldest <= 1000
        assert newest - oldest >= 100
        with pytest.raises(Gone):
            await storage.list(query(revision=oldest - 1))
        kept = await (await storage._opened()).read(lambda c: c.execute("SELECT count(*) FROM hub_log").get)
        assert kept == newest - oldest
    finally:
        await storage.close()


async def test_the_log_in_postgres_is_bounded(made: Made, postgres_url: str) -> None:
    storage = await made("postgres", url=postgres_url, retention=Retention(seconds=0, revisions=50))
    for turn in range(3):
        await asyncio.gather(*(storage.commit(put(key(f"n{n}"), body={"turn": turn})) for n in range(400)))
    newest, oldest = await storage.horizon()
    assert 50 <= newest - oldest <= 50 + SWEEP + 512
    assert (await execute(postgres_url, "SELECT count(*) AS n FROM hub_log"))[0]["n"] == newest - oldest


async def test_a_follower_that_sleeps_too_long_is_told_that_it_missed_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.hub.storage.feed.HELD", 10)
    storage = SqliteStorage(tmp_path / "hub.db")
    try:
        async with contextlib.aclosing(storage.changes(ORG, (), 0)) as batches:
            await storage.commit(put(key("first")))
            assert len((await anext(batches)).changes) == 1
            for number in range(60):
                await storage.commit(put(key(f"n{number}")))
            assert (await anext(batches)).changes[0].row.revision == 2  # memory forgot it, the log did not
        async with contextlib.aclosing(storage.changes(ORG, (), 0)) as batches:
            await anext(batches)
        late = storage.changes(ORG, (), 5)
        await anext(late)
        for number in range(60):
            await storage.commit(put(key(f"m{number}")))
        await storage.compact(100)
        with pytest.raises(Gone):
            [batch async for batch in late]
    finally:
        await storage.close()


async def test_what_was_asked_before_the_close_is_stored_and_what_comes_after_is_refused(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "hub.db")
    await storage.ready()
    asked = [asyncio.ensure_future(storage.commit(put(key(f"n{n}")))) for n in range(20)]
    following = asyncio.ensure_future(anext(storage.changes("other", (), 0)))
    await asyncio.sleep(0)
    await storage.close()
    assert len(await asyncio.gather(*asked)) == 20
    with pytest.raises(StorageUnavailable):
        await following
    with pytest.raises(StorageUnavailable):
        await storage.commit(put(key("late")))
    with pytest.raises(StorageUnavailable):
        await storage.get(key("n1"))


def test_every_step_is_for_both_databases() -> None:
    assert len(schema.sqlite_steps(0)) == len(schema.postgres_steps(0)) == len(LADDER)
    assert schema.sqlite_steps(len(LADDER)) == []


async def test_who_is_overtaken_by_a_newer_release_writes_no_more(made: Made, postgres_url: str) -> None:
    storage = await made("postgres", url=postgres_url)
    row = await storage.commit(put(key("a")))
    await execute(postgres_url, "UPDATE hub_version SET version = $1", len(LADDER) + 1)
    with pytest.raises(StorageUnusable, match="newer Trimtab"):
        await storage.commit(put(key("b")))
    assert await storage.get(key("a")) == row
    assert await storage.horizon() == (1, 0)


async def test_nobody_writes_while_tables_are_brought_up_to_date(
    made: Made, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await made("postgres", url=postgres_url)
    await old.commit(put(key("a")))
    writing = await asyncpg.connect(postgres_url, ssl=False)
    async with writing.transaction():
        await writing.execute("SELECT FROM hub_counter FOR UPDATE")
        more = (*LADDER, Step(both="CREATE TABLE hub_more (a {text});"))
        for module in ("schema", "postgres_link"):
            monkeypatch.setattr(f"trimtab.hub.storage.{module}.LADDER", more)
        new = asyncio.create_task((await made("postgres", url=postgres_url)).ready())
        waiting = (
            "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%hub_counter%'"
        )
        async with asyncio.timeout(10):
            while not new.done() and not (await execute(postgres_url, waiting))[0]["n"]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert not new.done()
    await writing.close()
    await new


async def test_only_a_file_is_nobody_elses(tmp_path: Path, made: Made, postgres_url: str) -> None:
    """A hub keeps nothing in memory of what others may change without its hearing of it."""
    kinds: tuple[HubKind, ...] = ()
    for storage, alone in (
        (SqliteStorage(tmp_path / "hub.db"), True),
        (await made("postgres", url=postgres_url), False),
        (HttpStorage("http://127.0.0.1:1", token=lambda: "token"), False),
    ):
        assert Hub(Server(MemoryStore()), kinds, storage).caches.open() is alone
        await storage.close()


async def test_a_process_that_was_away_for_longer_than_the_log_reaches_is_told_so(
    made: Made, postgres_url: str
) -> None:
    away, other = [await made("postgres", url=postgres_url) for _ in range(2)]
    await other.commit(put(key("first")))
    async with contextlib.aclosing(away.changes(ORG, (), 0)) as batches:
        assert len((await anext(batches)).changes) == 1
        await away._tail.close()
        for number in range(20):
            await other.commit(put(key(f"n{number}")))
        await other.compact(15)
        connection = await away._link.connect()
        await away._tail._catch_up(connection)
        await connection.close()
        with pytest.raises(Gone):
            await anext(batches)
    async with contextlib.aclosing(away.changes(ORG, (), 15)) as batches:
        assert [change.row.revision for change in (await anext(batches)).changes] == [*range(16, 22)]
