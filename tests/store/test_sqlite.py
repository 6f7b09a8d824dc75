"""What only the store on SQLite does: its file, its life across restarts, its automatic compaction."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from trimtab.store.contract import Gone, Key, Op, Query, Unusable, Write
from trimtab.store.file import Database
from trimtab.store.retention import Retention
from trimtab.store.rows import APPLICATION_ID, LADDER
from trimtab.store.sqlite import SqliteStore

ALL = Query(resource="configmaps")


def put(name: str = "a", text: bytes = b"") -> Write:
    return Write(key=Key("configmaps", "default", name), head=text, tail=b"")


def delete(name: str) -> Write:
    return Write(key=Key("configmaps", "default", name), head=b"", tail=b"", op=Op.DELETE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


class TestRestart:
    async def test_everything_is_there_again(self, path: Path) -> None:
        store = await SqliteStore.open(path)
        for write in (put("a"), put("b"), delete("a"), put("b")):
            await store.commit(write)
        page, changes = await store.list(ALL), await anext(store.watch(ALL, 0))
        await store.close()
        again = await SqliteStore.open(path)
        assert await again.list(ALL) == page
        assert await anext(again.watch(ALL, 0)) == changes
        await again.close()

    async def test_revisions_go_on_even_if_the_newest_was_a_compacted_deletion(self, path: Path) -> None:
        store = await SqliteStore.open(path)
        for write in (put(), delete("a")):
            await store.commit(write)
        await store.compact(2)
        await store.close()
        again = await SqliteStore.open(path)
        assert (again.revision, again.compacted) == (2, 2)
        assert (await again.commit(put())).revision == 3
        await again.close()

    async def test_writes_under_way_are_finished_by_closing(self, path: Path) -> None:
        store = await SqliteStore.open(path)
        writes = [asyncio.ensure_future(store.commit(put(str(n)))) for n in range(10)]
        await asyncio.sleep(0)
        await store.close()
        assert sorted(entry.revision for entry in await asyncio.gather(*writes)) == list(range(1, 11))

    async def test_closing_leaves_nothing_beside_the_file_but_its_lock(self, path: Path) -> None:
        store = await SqliteStore.open(path)
        await store.commit(put())
        await store.close()
        assert sorted(file.name for file in path.parent.iterdir()) == ["store.db", "store.db.lock"]


class TestFile:
    async def test_only_its_owner_may_read_it(self, path: Path) -> None:
        store = await SqliteStore.open(path)
        await store.commit(put())
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        assert modes == dict.fromkeys(("store.db", "store.db-wal", "store.db-shm", "store.db.lock"), 0o600)
        await store.close()

    async def test_a_store_has_one_owner(self, path: Path) -> None:
        store = await SqliteStore.open(path)
        with pytest.raises(Unusable, match=r"in use by another process \(pid \d+\): stop it first"):
            await SqliteStore.open(path)
        await store.close()
        await (await SqliteStore.open(path)).close()

    @pytest.mark.parametrize(
        ("spoil", "message"),
        [
            (lambda path: path.write_text("kind: ConfigMap\n" * 1000), "is not a database"),
            (lambda path: _execute(path, "CREATE TABLE other(x)"), "belongs to another program"),
            (lambda path: _execute(path, f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version=99"), "newer"),
            (lambda path: path.mkdir(), "cannot be opened"),
            (lambda path: _damage(path), "is damaged"),
        ],
        ids=["text", "foreign", "newer", "folder", "damaged"],
    )
    async def test_a_file_that_is_not_a_sound_store_is_refused(
        self, path: Path, spoil: Callable[[Path], object], message: str
    ) -> None:
        spoil(path)
        with pytest.raises(Unusable, match=message):
            await SqliteStore.open(path)

    @pytest.mark.parametrize("suffix", ["", ".lock", "-wal", "-shm", "-journal"])
    async def test_a_symbolic_link_is_refused_and_what_it_points_to_left_alone(self, path: Path, suffix: str) -> None:
        victim = path.with_name("victim")
        victim.write_text("somebody's")
        victim.chmod(0o644)
        path.with_name(path.name + suffix).symlink_to(victim)
        with pytest.raises(Unusable, match=f"store.db{suffix} is a symbolic link"):
            await SqliteStore.open(path)
        assert (victim.read_text(), stat.S_IMODE(victim.stat().st_mode)) == ("somebody's", 0o644)

    async def test_its_folder_may_be_a_link_as_to_another_disk(self, tmp_path: Path) -> None:
        (tmp_path / "disk").mkdir()
        (tmp_path / "data").symlink_to(tmp_path / "disk")
        await (await SqliteStore.open(tmp_path / "data" / "store.db")).close()
        assert (tmp_path / "disk" / "store.db").is_file()

    async def test_a_file_that_another_program_holds_is_refused(self, path: Path) -> None:
        await (await SqliteStore.open(path)).close()
        other = apsw.Connection(str(path))
        other.pragma("locking_mode", "exclusive")
        other.execute("BEGIN EXCLUSIVE; COMMIT")
        with pytest.raises(Unusable, match="in use by another program"):
            await SqliteStore.open(path)
        other.close()

    async def test_a_missing_folder_is_said(self, tmp_path: Path) -> None:
        with pytest.raises(Unusable, match="check the folder"):
            await SqliteStore.open(tmp_path / "missing" / "store.db")

    async def test_an_older_file_is_brought_to_the_newest_shape(self, path: Path) -> None:
        store = await SqliteStore.open(path)
        entry = await store.commit(put())
        await store.close()
        longer = (*LADDER, "ALTER TABLE log ADD COLUMN author TEXT", "UPDATE log SET author = 'someone'")
        newer = Database(path, ladder=longer)
        assert newer.read.pragma("user_version") == len(longer)
        assert newer.read.execute("SELECT value, author FROM log").get == (entry.value, "someone")
        newer.close()

    async def test_a_step_that_fails_leaves_the_file_as_it_was(self, path: Path) -> None:
        await (await SqliteStore.open(path)).close()
        with pytest.raises(Unusable):
            Database(path, ladder=(*LADDER, "ALTER TABLE log ADD COLUMN author TEXT; SELECT nonsense"))
        store = await SqliteStore.open(path)
        await store.commit(put())
        await store.close()


class TestAutomaticCompaction:
    async def test_the_log_keeps_its_window_and_no_more(self, path: Path) -> None:
        store = await SqliteStore.open(path, retention=Retention(seconds=0, revisions=100))
        for _ in range(50):
            await asyncio.gather(*(store.commit(put(str(n))) for n in range(20)))
        assert 100 <= store.revision - store.compacted < 400
        await store.close()
        rows = _execute(path, "SELECT count(*) FROM log")
        assert 100 <= rows < 500

    async def test_what_is_younger_than_the_window_stays(self, path: Path) -> None:
        now = 0.0
        store = await SqliteStore.open(path, retention=Retention(seconds=300, revisions=0), clock=lambda: now)
        for _ in range(300):
            await store.commit(put())
        assert store.compacted == 0
        now = 301.0
        await store.commit(put())
        now = 602.0
        await store.commit(put())
        assert store.compacted == 301
        await store.close()

    async def test_a_watcher_that_is_overtaken_by_the_horizon_is_gone(self, path: Path) -> None:
        store = await SqliteStore.open(path)
        for _ in range(3):
            await asyncio.gather(*(store.commit(put(text=b"x" * 4000)) for _ in range(500)))
        watch = store.watch(ALL, 0)
        assert (await anext(watch)).revision < 1500
        await store.compact(1500)
        with pytest.raises(Gone):
            await anext(watch)
        await store.close()


class TestCatchingUp:
    async def test_a_long_catch_up_comes_in_bounded_batches_without_gap(self, path: Path) -> None:
        store = await SqliteStore.open(path)
        for _ in range(6):
            await asyncio.gather(*(store.commit(put(text=b"x" * 4000)) for _ in range(500)))
        watch = store.watch(ALL, 0)
        seen: list[int] = []
        while len(seen) < 3000:
            batch = await anext(watch)
            assert sum(len(change.entry.value) for change in batch.changes) < 1_100_000
            seen += [change.revision for change in batch.changes]
            assert batch.revision == seen[-1]
        assert seen == list(range(1, 3001))
        await store.close()

    async def test_it_passes_over_the_changes_of_other_kinds(self, path: Path) -> None:
        store = await SqliteStore.open(path)
        other = Write(key=Key("secrets", "", "a"), head=b"", tail=b"")
        for _ in range(5):
            await asyncio.gather(*(store.commit(other) for _ in range(500)))
        await store.commit(put())
        assert [change.revision for change in (await anext(store.watch(ALL, 0))).changes] == [2501]
        await store.close()


class TestUnpublished:
    """SQLite shows a transaction to readers before the store has published it. Here it never does."""

    @pytest.fixture
    async def store(self, path: Path) -> SqliteStore:
        store = await SqliteStore.open(path)
        for write in (put("changed"), put("deleted"), put("same")):
            await store.commit(write)
        await store.close()
        connection = apsw.Connection(str(path))
        connection.execute("""
            INSERT INTO log VALUES (4, 'configmaps', 'default', 'changed', 0, 1, '', NULL, NULL, x'34'),
                (5, 'configmaps', 'default', 'deleted', 1, 2, '', NULL, NULL, x'35'),
                (6, 'configmaps', 'default', 'created', 0, 0, '', NULL, NULL, x'36');
            UPDATE latest SET revision = 4, expires = 1 WHERE name = 'changed';
            DELETE FROM latest WHERE name = 'deleted';
            INSERT INTO latest VALUES ('configmaps', 'default', 'created', 6, 1);
        """)
        connection.close()
        opened = await SqliteStore.open(path)
        opened._revision = 3  # as in the moment between COMMIT and its publication
        return opened

    @pytest.mark.parametrize(("name", "revision"), [("changed", 1), ("deleted", 2), ("same", 3), ("created", None)])
    async def test_get_does_not_show_it(self, store: SqliteStore, name: str, revision: int | None) -> None:
        entry = await store.get(Key("configmaps", "default", name))
        assert (entry and entry.revision) == revision
        await store.close()

    async def test_no_other_read_shows_it(self, store: SqliteStore) -> None:
        page = await store.list(ALL)
        assert [entry.revision for entry in page.entries] == [1, 2, 3]
        assert await store.count("configmaps") == 3
        assert list(await store.expired(2.0)) == []
        assert (await anext(store.watch(ALL, 0))).revision == 3
        await store.close()


def _execute(path: Path, sql: str) -> int:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(sql).get  # type: ignore[no-any-return]
    finally:
        connection.close()


def _damage(path: Path) -> None:
    Database(path).close()
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * 3996  # the schema's page, after the header
    path.write_bytes(content)


def test_the_past_is_kept_for_five_minutes_and_ten_thousand_revisions() -> None:
    assert Retention() == Retention(seconds=300.0, revisions=10_000)
    assert (Retention().seconds, Retention().revisions) == (300.0, 10_000)
