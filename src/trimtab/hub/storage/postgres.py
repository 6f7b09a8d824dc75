"""The storage in PostgreSQL, for several processes at once. Needs the extra `trimtab[postgres]`.

The counter's row is the lock: a transaction takes it first, so revisions are in the order of commits, and whoever reads the
counter sees all up to it. When a connection breaks in mid-commit, the next attempt takes the lock, by which time the first
one has ended either way, and looks whether the log has what it wrote; only if not it is done again.

Followers: each process reads the log behind the others. A notification wakes it at once, and without one it looks every
few seconds, so a lost notification costs time and nothing else.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.hub.storage import postgres_sql as sql
from trimtab.hub.storage.codec import decoded
from trimtab.hub.storage.contract import (
    PROJECTS,
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
from trimtab.hub.storage.decide import EVERYONE, REFUSALS, State, decide, is_going, statements
from trimtab.hub.storage.feed import HEARTBEAT, Feed, check_since
from trimtab.hub.storage.gathering import Gathering
from trimtab.hub.storage.grouping import BATCH, Grouping, Outcome
from trimtab.hub.storage.postgres_link import PATIENCE, Link, check_version
from trimtab.hub.storage.postgres_stalled import Stalled
from trimtab.hub.storage.postgres_tail import CHANNEL, Tail
from trimtab.hub.storage.reading import POSTGRES, Listing, logged, page
from trimtab.hub.storage.retained import SWEEP, horizon, is_due
from trimtab.model.clock import Clock, SystemClock, format_time
from trimtab.storage.blobs import Blobs
from trimtab.storage.postgres import PostgresBlobs
from trimtab.store.contract import Gone, NotYet, Op
from trimtab.store.retention import Retention


class PostgresStorage:
    """`Storage` in a database. Tables are made in the first schema of the user's search path."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        retention: Retention | None = None,
        new_id: Callable[[], str] = lambda: secrets.token_hex(16),
        heartbeat: float = HEARTBEAT,
        connections: int = 8,
        timeout: float = 30.0,
        patience: float = PATIENCE,
        chance: random.Random | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        chance = chance or random.Random()  # noqa: S311 - it spreads retries
        self._retention = retention or Retention()
        self._new_id = new_id
        self._link = Link(
            url, clock=self._clock, connections=connections, timeout=timeout, patience=patience, chance=chance
        )
        self._stalled = Stalled(self._link)
        self._blobs = PostgresBlobs(url, clock=self._clock, chance=chance)
        self._grouping = Grouping(self._transaction)
        self._gets = Gathering(self._load, lanes=2)
        self._feed = Feed(self._log, heartbeat=heartbeat)
        self._tail = Tail(self._link, self._feed, clock=self._clock, chance=chance)

    def __repr__(self) -> str:
        return f"PostgresStorage({self._link.place!r})"

    @property
    def blobs(self) -> Blobs:
        return self._blobs

    async def get(self, key: RowKey) -> Row | None:
        return await self._gets.get(key) if _possible(*key) else None

    async def list(self, query: RowQuery) -> RowPage:
        if not _possible(
            query.organization,
            query.type,
            query.project or "",
            query.name,
            *query.after or (),
            *query.labels,
            *query.labels.values(),
        ):
            return RowPage(rows=[], revision=query.revision or (await self.horizon())[0])
        listing = Listing(query, POSTGRES)
        rows = listing.at(query.revision) if query.revision else listing.newest()
        found = await self._fetch(sql.page(rows), *listing.args)
        newest, compacted = found[0]["revision"], found[0]["compacted"]
        if query.revision and query.revision < compacted:
            raise Gone(query.revision, compacted)
        if query.revision > newest:
            raise NotYet(query.revision, newest)
        entries = [(row["project_name"], row["name"], row["data"]) for row in found if row["data"] is not None]
        return page(entries, listing.size, query.revision or newest)

    async def commit(self, write: RowWrite) -> Row:
        return await self._grouping.commit(write)

    async def changes(self, organization: str, types: Sequence[str], since: int) -> AsyncIterator[RowBatch]:
        newest, oldest = await self.horizon()
        check_since(since, newest, oldest)
        self._tail.start(newest)
        async for batch in self._feed.follow(organization, types, since):
            yield batch

    async def horizon(self) -> tuple[int, int]:
        row = (await self._fetch(sql.COUNTER))[0]
        return row["revision"], row["compacted"]

    async def ids(self, organization: str, type: str, project: str | None, names: Sequence[str]) -> Mapping[str, str]:  # noqa: A002
        wanted = [*filter(_possible, dict.fromkeys(names))] if _possible(organization, type, project or "") else []
        if project is None:
            found = await self._fetch(sql.IDS_ANYWHERE, organization, type, wanted)
            return {row["name"]: row["id"] for row in found}
        count = len(wanted)
        own = await self._fetch(sql.IDS, [organization] * count, [type] * count, [project] * count, wanted)
        ids = {row["name"]: row["id"] for row in own}
        left = [name for name in wanted if name not in ids]
        if left:
            shared = await self._fetch(sql.IDS_SHARED, organization, type, left, [project, EVERYONE], EVERYONE)
            ids |= {row["name"]: row["id"] for row in shared}
        return ids

    async def names(self, ids: Sequence[str]) -> Mapping[str, Identity]:
        found = await self._fetch(sql.NAMES, [*filter(_possible, ids)])
        return {row["id"]: Identity(**dict(row)) for row in found}

    async def versions(self, key: RowKey) -> Sequence[Snapshot]:
        if not _possible(*key):
            return []
        found = await self._fetch(sql.VERSIONS, key.organization, key.type, key.project, key.name)
        return [msgspec.json.decode(row["data"], type=Snapshot) for row in found]

    async def organizations(self) -> Sequence[str]:
        return [row["name"] for row in await self._fetch("SELECT name FROM hub_organizations ORDER BY name")]

    async def add_organization(self, name: str) -> None:
        if not name or "\0" in name:
            raise ValueError("an organisation needs a name")
        await self._fetch("INSERT INTO hub_organizations VALUES ($1) ON CONFLICT DO NOTHING", name)

    async def ready(self) -> None:
        await self.horizon()
        await self._blobs.ready()

    async def close(self) -> None:
        await self._grouping.close()
        await self._stalled.close()
        await self._gets.close()
        await self._tail.close()
        self._feed.close()
        await self._blobs.close()
        await self._link.close()

    async def compact(self, before: int) -> None:
        """Forget the log up to this revision, whatever its age."""
        newest, _ = await self.horizon()
        await self._fetch(sql.FORGET, min(before, newest))

    async def _fetch(self, statement: str, *args: Any) -> Any:
        return await self._link.run(lambda connection: connection.fetch(statement, *args))

    async def _load(self, keys: Sequence[RowKey]) -> Mapping[RowKey, Row]:
        if len(keys) == 1:
            key = keys[0]
            found = await self._fetch(sql.GET, key.organization, key.type, key.project, key.name)
        else:
            found = await self._fetch(sql.GET_ALL, *map(list, zip(*keys, strict=True)))
        return {row.key: row for row in (decoded(each["data"]) for each in found)}

    async def _log(self, after: int, limit: int) -> tuple[Sequence[RowChange], int]:
        found = await self._fetch(sql.LOG, after, limit)
        if after < found[0]["compacted"]:
            raise Gone(after, found[0]["compacted"])
        entries = [(row["revision"], row["before"], row["after"]) for row in found if row["revision"] is not None]
        return logged(entries, found[0]["newest"], limit)

    async def _transaction(self, writes: Sequence[RowWrite]) -> Sequence[Outcome]:
        unsure: _Attempt | None = None

        async def once(connection: Any) -> _Attempt:
            nonlocal unsure
            async with connection.transaction():
                attempt = await self._attempt(connection, writes, unsure)
                if attempt.changes:
                    unsure = attempt  # from here on the commit may happen without our hearing of it
            return attempt

        try:
            done = await self._link.run(once)
        except StorageUnavailable as error:
            if unsure is not None:
                raise StorageUnavailable(f"{error} (it is not known whether the write was stored)") from None
            raise
        if done.changes and not self._feed.push(done.before, done.changes, done.changes[-1].row.revision):
            self._tail.wake()
        return done.outcomes

    async def _attempt(self, connection: Any, writes: Sequence[RowWrite], unsure: _Attempt | None) -> _Attempt:
        with self._stalled.ended():
            counter = await connection.fetchrow(sql.LOCK)
        revision, compacted, at = counter["revision"], counter["compacted"], counter["now"]
        if unsure is not None:
            first = unsure.changes[0].row.revision
            if first <= compacted:
                raise StorageUnavailable("the log no longer tells")
            if await connection.fetchval(sql.LOGGED_AT, first) == unsure.at:
                return unsure
        state = State()
        check_version(self._link.place, await _load_state(connection, state, writes))
        outcomes: list[Outcome] = []
        newest = revision
        now = format_time(self._clock.now())
        for write in writes:
            try:
                row = decide(state, write, newest + 1, now, self._new_id)
            except REFUSALS as refusal:
                outcomes.append(refusal)
                continue
            outcomes.append(row)
            newest = max(newest, row.revision)
        for statement, args in statements(state, at):
            await connection.executemany(statement, args)
        if is_due(newest, compacted, self._retention):
            oldest = await connection.fetch(sql.OLDEST, compacted, SWEEP + 2 * len(writes))
            until = horizon([(row["revision"], row["at"]) for row in oldest], newest, at, self._retention)
            if until:
                await connection.execute(sql.FORGET, until)
        if newest > revision:
            await connection.execute(sql.ADVANCE, newest, CHANNEL, str(newest))
        return _Attempt(before=revision, at=at, outcomes=outcomes, changes=state.changes)


def _possible(*words: str) -> bool:
    """PostgreSQL keeps no character NUL: what asks for one finds nothing."""
    return not any("\0" in word for word in words)


class _Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What a transaction decided. Its revisions and its time together are no other's."""

    before: int
    at: float
    outcomes: list[Outcome]
    changes: list[RowChange]


async def _load_state(connection: Any, state: State, writes: Sequence[RowWrite]) -> int:
    """All that the writes ask for, in as few statements as there are tables. The version of the tables: a newer release may
    have come since we looked."""
    version = 0
    keys = [*dict.fromkeys(write.row.key for write in writes)]
    for found in await connection.fetch(sql.GET_ALL, *map(list, zip(*keys, strict=True))):
        row = decoded(found["data"])
        state.rows[row.key] = row
    organizations = {key.organization for key in keys}
    doomed = [
        state.rows[write.row.key].id
        for write in writes
        if write.op is Op.DELETE and write.row.key.type == PROJECTS and write.row.key in state.rows
    ]
    if doomed:
        for found in await connection.fetch(sql.USED, doomed, BATCH + 1):
            state.used[found["id"]] = found["count"]
        for found in await connection.fetch(sql.GUESTS, [*organizations], doomed):
            row = decoded(found["data"])
            state.rows.setdefault(row.key, row)
    projects = {key.project for key in state.rows.keys() | set(keys) if key.project}
    projects.update(project for write in writes for project in write.row.shared.projects)
    for place in await connection.fetch(sql.PLACES, [*organizations], [*projects], PROJECTS):
        if place["what"] == "o":
            state.organizations.add(place["id"])
        elif place["what"] == "v":
            version = int(place["id"])
        else:
            state.projects[place["id"]] = (place["organization"], place["name"])
            if is_going(decoded(place["data"])):
                state.going.add(place["id"])
    versions = [
        (state.rows[write.row.key].id, write.row.snapshot.version)
        for write in writes
        if write.row.snapshot is not None and write.row.key in state.rows
    ]
    if versions:
        for found in await connection.fetch(sql.PUBLISHED, *map(list, zip(*versions, strict=True))):
            snapshot = msgspec.json.decode(found["data"], type=Snapshot)
            state.published[found["resource"], found["version"]] = snapshot
    return version
