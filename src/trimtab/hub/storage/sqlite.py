"""The storage in one SQLite file, of one process. Make it, `await ready()`, use it, `await close()`.

A transaction's changes go to followers after it is durable, and before its writers hear of it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import apsw

from trimtab.hub.storage.contract import (
    Identity,
    Row,
    RowBatch,
    RowChange,
    RowKey,
    RowPage,
    RowQuery,
    RowWrite,
    Snapshot,
    StorageUnavailable,
)
from trimtab.hub.storage.decide import State, statements
from trimtab.hub.storage.feed import HEARTBEAT, Feed, check_since
from trimtab.hub.storage.grouping import Grouping, Outcome
from trimtab.hub.storage.retained import SWEEP, horizon, is_due
from trimtab.hub.storage.sqlite_blobs import SqliteBlobs
from trimtab.hub.storage.sqlite_file import File
from trimtab.hub.storage.sqlite_sql import (
    counter,
    decided,
    find_ids,
    find_names,
    find_versions,
    forget,
    get_row,
    list_page,
    read_log,
)
from trimtab.model.clock import Clock, SystemClock, format_time
from trimtab.storage.blobs import Blobs
from trimtab.storage.threads import in_thread
from trimtab.store.retention import Retention

FEW = 16
"""So many are looked up on the loop."""


class SqliteStorage:
    """`Storage` in a file."""

    alone = True
    """The file is of one process, so nobody else writes."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock | None = None,
        retention: Retention | None = None,
        new_id: Callable[[], str] = lambda: secrets.token_hex(16),
        heartbeat: float = HEARTBEAT,
        vfs: str | None = None,
    ) -> None:
        self._path = path
        self._vfs = vfs
        self._clock = clock or SystemClock()
        self._retention = retention or Retention()
        self._new_id = new_id
        self._file: File | None = None
        self._opening = asyncio.Lock()
        self._closed = False
        self._feed = Feed(self._log, heartbeat=heartbeat)
        self._grouping = Grouping(self._transaction)
        self._blobs = SqliteBlobs(self._opened, clock=self._clock)

    @property
    def blobs(self) -> Blobs:
        return self._blobs

    async def get(self, key: RowKey) -> Row | None:
        file = await self._opened()
        return file.look(lambda connection: get_row(connection, key))

    async def list(self, query: RowQuery) -> RowPage:
        file = await self._opened()
        return await file.read(lambda connection: list_page(connection, query))

    async def commit(self, write: RowWrite) -> Row:
        return await self._grouping.commit(write)

    async def changes(self, organization: str, types: Sequence[str], since: int) -> AsyncIterator[RowBatch]:
        await self._opened()
        check_since(since, *await self.horizon())
        async for batch in self._feed.follow(organization, types, since):
            yield batch

    async def horizon(self) -> tuple[int, int]:
        file = await self._opened()
        return await file.read(counter)

    async def ids(self, organization: str, type: str, project: str | None, names: Sequence[str]) -> Mapping[str, str]:  # noqa: A002
        file = await self._opened()

        def act(connection: apsw.Connection) -> dict[str, str]:
            return find_ids(connection, organization, type, project, names)

        return file.look(act) if len(names) <= FEW else await file.read(act)

    async def names(self, ids: Sequence[str]) -> Mapping[str, Identity]:
        file = await self._opened()

        def act(connection: apsw.Connection) -> dict[str, Identity]:
            return find_names(connection, ids)

        return file.look(act) if len(ids) <= FEW else await file.read(act)

    async def versions(self, key: RowKey) -> Sequence[Snapshot]:
        file = await self._opened()
        return await file.read(lambda connection: find_versions(connection, key))

    async def organizations(self) -> Sequence[str]:
        file = await self._opened()
        found = await file.read(
            lambda connection: [*connection.execute("SELECT name FROM hub_organizations ORDER BY name")]
        )
        return [name for (name,) in found]

    async def add_organization(self, name: str) -> None:
        if not name or "\0" in name:
            raise ValueError("an organisation needs a name")
        file = await self._opened()
        statement = "INSERT INTO hub_organizations VALUES (?) ON CONFLICT DO NOTHING"
        await file.write(lambda connection: connection.execute(statement, (name,)) and None)

    async def ready(self) -> None:
        await self._opened()

    async def close(self) -> None:
        await self._grouping.close()
        self._feed.close()
        self._closed = True
        file, self._file = self._file, None
        if file is not None:
            await in_thread(file.close)

    async def compact(self, before: int) -> None:
        """Forget the log up to this revision, whatever its age."""
        file = await self._opened()
        await file.write(lambda connection: forget(connection, min(before, counter(connection)[0])))

    async def _opened(self) -> File:
        if self._file is not None:
            return self._file
        async with self._opening:
            if self._closed:
                raise StorageUnavailable("the storage is closed")
            if self._file is None:
                file = await in_thread(File, self._path, vfs=self._vfs)
                try:
                    self._feed.begin((await file.read(counter))[0])
                except BaseException:
                    await in_thread(file.close)
                    raise
                self._file = file
            return self._file

    async def _log(self, after: int, limit: int) -> tuple[Sequence[RowChange], int]:
        file = await self._opened()
        return await file.read(lambda connection: read_log(connection, after, limit))

    async def _transaction(self, writes: Sequence[RowWrite]) -> Sequence[Outcome]:
        file = await self._opened()
        now = self._clock.now()
        at, text = now.timestamp(), format_time(now)

        def act(connection: apsw.Connection) -> tuple[list[Outcome], list[RowChange], int]:
            state = State()
            before, compacted = counter(connection)
            outcomes, newest = decided(connection, state, writes, before, text, self._new_id)
            for statement, args in statements(state, at):
                connection.executemany(statement.replace("$", "?"), args)
            if newest > before:
                connection.execute("UPDATE hub_counter SET revision = ?", (newest,))
            if is_due(newest, compacted, self._retention):
                oldest = connection.execute(
                    "SELECT revision, at FROM hub_log WHERE revision > ? ORDER BY revision LIMIT ?",
                    (compacted, SWEEP + 2 * len(writes)),
                )
                forget(connection, horizon([*oldest], newest, at, self._retention))
            return outcomes, state.changes, before

        outcomes, changes, before = await file.write(act)
        if changes:
            self._feed.push(before, changes, changes[-1].row.revision)
        return outcomes
