"""A disk that does not take writes: the store says why, reads and watches go on, and it comes back by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from tests.store.test_crash import Disk, check_sound

from trimtab.store import sqlite
from trimtab.store.contract import Key, Query, Unwritable, Write
from trimtab.store.sqlite import SqliteStore

FAULTS: dict[str, tuple[Callable[[], apsw.Error], bool]] = {
    "full": (lambda: apsw.FullError("database or disk is full"), True),
    "read-only": (lambda: apsw.ReadOnlyError("attempt to write a readonly database"), False),
    "broken": (lambda: apsw.IOError("disk I/O error"), False),
}


def write(name: str) -> Write:
    return Write(key=Key("configmaps", "default", name), head=b"x" * 100, tail=b"")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "PROBE", 0.01)


@pytest.mark.parametrize("name", FAULTS)
async def test_a_disk_that_fails_is_told_and_ends_by_itself(name: str, tmp_path: Path) -> None:
    make, full = FAULTS[name]
    disk = Disk(f"told-{name}")
    store = await SqliteStore.open(tmp_path / "store.db", vfs=f"told-{name}")
    await store.commit(write("a"))
    assert store.trouble == ""

    disk.fault = lambda asked, file: make() if asked == "write" and file == "store.db-wal" else None
    with pytest.raises(Unwritable) as failed:
        await store.commit(write("b"))
    assert failed.value.full is full
    assert str(make()) in store.trouble

    disk.fault = lambda asked, file: None
    async with asyncio.timeout(10):
        while store.trouble:  # noqa: ASYNC110 - nobody writes: the store looks itself
            await asyncio.sleep(0.01)
    assert store.revision == 1
    assert (await store.commit(write("b"))).revision == 2
    await store.close()
    check_sound(tmp_path / "store.db", name)


async def test_reads_and_watches_go_on_while_the_disk_is_full(tmp_path: Path) -> None:
    disk = Disk("go-on")
    store = await SqliteStore.open(tmp_path / "store.db", vfs="go-on")
    await store.commit(write("a"))
    watch = store.watch(Query(resource="configmaps"), 0)
    assert [change.entry.key.name for change in (await anext(watch)).changes] == ["a"]

    disk.fault = lambda asked, file: apsw.FullError("full") if asked == "write" else None
    with pytest.raises(Unwritable):
        await store.commit(write("lost"))
    assert (await store.get(write("a").key)) is not None
    assert len((await store.list(Query(resource="configmaps"))).entries) == 1

    disk.fault = lambda asked, file: None
    await store.commit(write("b"))
    assert [change.entry.key.name for change in (await anext(watch)).changes] == ["b"]
    await store.close()


async def test_a_store_in_trouble_can_be_closed(tmp_path: Path) -> None:
    disk = Disk("closed")
    store = await SqliteStore.open(tmp_path / "store.db", vfs="closed")
    disk.fault = lambda asked, file: apsw.FullError("full") if asked == "write" else None
    with pytest.raises(Unwritable):
        await store.commit(write("a"))
    async with asyncio.timeout(5):
        await store.close()
