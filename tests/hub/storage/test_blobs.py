"""The contract of Blobs, on blobs in the storage's SQLite file, and over the service's API; and what is special to the first."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.hub.storage.conftest import behind_http
from tests.hub.storage.rows import key, put
from tests.storage.conftest import LIMIT, Home
from tests.storage.test_blobs import *  # noqa: F403
from trimtab.hub.storage.sqlite import SqliteStorage
from trimtab.hub.storage.sqlite_blobs import SqliteBlobs
from trimtab.storage.blobs import CHUNK, Blobs, Collected, Digest
from trimtab.testing.clock import FakeClock


class SqliteHome:
    def __init__(self, path: Path) -> None:
        self.clock = FakeClock()
        self.storage = SqliteStorage(path, clock=self.clock)
        self.blobs: Blobs = SqliteBlobs(self.storage._opened, clock=self.clock, max_bytes=LIMIT)
        self.storage._blobs = self.blobs  # type: ignore[assignment]

    async def age(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    async def damage(self, digest: Digest) -> None:
        def act(connection: apsw.Connection) -> None:
            find = "SELECT c.rowid, c.data FROM hub_blobs b JOIN hub_blob_chunks c USING (upload) WHERE b.digest = ?"
            row, data = connection.execute(find, (digest,)).get
            changed = bytes([data[0] ^ 1]) + data[1:]
            connection.execute("UPDATE hub_blob_chunks SET data = ? WHERE rowid = ?", (changed, row))

        await (await self.storage._opened()).write(act)

    async def another(self) -> Blobs:
        return self.blobs  # one process owns the file

    async def chunks(self) -> int:
        file = await self.storage._opened()
        return await file.read(lambda connection: connection.execute("SELECT count(*) FROM hub_blob_chunks").get)


@pytest.fixture(params=["sqlite", "http"])
async def home(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Home]:
    found = SqliteHome(tmp_path / "hub.db")
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(found.storage.close)
        if request.param == "http":
            client: Any = await stack.enter_async_context(behind_http(found.storage))
            client.blobs._max_bytes = LIMIT
            found.blobs = client.blobs
        yield found


@pytest.fixture
async def sqlite_home(tmp_path: Path) -> AsyncIterator[SqliteHome]:
    found = SqliteHome(tmp_path / "hub.db")
    yield found
    await found.storage.close()


async def test_what_an_upload_left_that_did_not_end_is_collected(
    sqlite_home: SqliteHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.hub.storage.sqlite_blobs._MAKE", "no statement")
    with pytest.raises(Exception, match="no"):
        await sqlite_home.blobs.put(bytes(3 * CHUNK))
    assert await sqlite_home.chunks() == 3
    assert await sqlite_home.blobs.collect(grace=3600) == Collected(0, 0)
    assert await sqlite_home.chunks() == 0


async def test_a_collection_spares_an_upload_that_is_under_way(sqlite_home: SqliteHome) -> None:
    blobs: Any = sqlite_home.blobs
    write = blobs._write
    collected = []

    async def collecting(act: Any) -> Any:
        result = await write(act)
        if not collected and await sqlite_home.chunks() == 2:
            collected.append(True)
            blobs._write = write
            await blobs.collect(grace=0)
        return result

    blobs._write = collecting
    digest = await blobs.put(bytes(4 * CHUNK))
    assert collected
    assert sum([len(chunk) async for chunk in blobs.open(digest)]) == 4 * CHUNK


async def test_bytes_that_are_there_are_not_written_again(sqlite_home: SqliteHome) -> None:
    await sqlite_home.blobs.put(bytes(2 * CHUNK))
    before = await sqlite_home.chunks()
    await sqlite_home.blobs.put(bytes(2 * CHUNK))
    assert await sqlite_home.chunks() == before == 2


async def test_rows_are_committed_between_the_pieces_of_a_large_blob(sqlite_home: SqliteHome) -> None:
    blobs: Any = sqlite_home.blobs
    write = blobs._write
    rows = []

    async def committing(act: Any) -> Any:
        result = await write(act)
        rows.append(await sqlite_home.storage.commit(put(key(f"n{len(rows)}"))))
        return result

    blobs._write = committing
    await blobs.put(bytes(3 * CHUNK))
    assert len(rows) == 4
