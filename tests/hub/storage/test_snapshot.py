"""A copy of the hub's file: of one revision while writes go on, and ahead of all revisions once it is restored."""

from __future__ import annotations

from pathlib import Path

import pytest

from trimtab.hub.storage.contract import Row, RowKey, RowQuery, RowWrite
from trimtab.hub.storage.snapshot import advance_hub, hub_snapshot
from trimtab.hub.storage.sqlite import SqliteStorage
from trimtab.store.contract import Gone


def write(name: str) -> RowWrite:
    return RowWrite(row=Row(key=RowKey("default", "projects", "", name), body={"a": name}))


async def test_a_copy_has_what_was_there_and_goes_on_ahead(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "hub.db")
    await storage.ready()
    try:
        first = await storage.commit(write("before"))
        with hub_snapshot(tmp_path / "hub.db") as snapshot:
            await storage.commit(write("after"))
            snapshot.copy(tmp_path / "copy.db", lambda done, total: None)
            assert snapshot.revision == first.revision
            assert [row.key.name for row in snapshot.rows("default")] == ["before"]
    finally:
        await storage.close()
    advance_hub(tmp_path / "copy.db", 5_000_000)
    copy = SqliteStorage(tmp_path / "copy.db")
    await copy.ready()
    try:
        assert await copy.horizon() == (5_000_000, 5_000_000)
        page = await copy.list(RowQuery(organization="default", type="projects"))
        assert [row.key.name for row in page.rows] == ["before"]
        assert (await copy.commit(write("later"))).revision == 5_000_001
        with pytest.raises(Gone):
            await anext(copy.changes("default", ["projects"], first.revision))
    finally:
        await copy.close()
