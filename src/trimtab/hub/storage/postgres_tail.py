"""Reading the log behind other processes: a listener wakes it, and every few seconds it looks by itself."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

import asyncpg

from trimtab.hub.storage import postgres_sql as sql
from trimtab.hub.storage.contract import StorageUnavailable
from trimtab.hub.storage.feed import BATCH, Feed
from trimtab.hub.storage.postgres_link import AWAY, Link
from trimtab.hub.storage.reading import logged
from trimtab.model.backoff import pause
from trimtab.model.clock import Clock
from trimtab.model.logs import log

CHANNEL = "trimtab_hub"
LOOK = 2.0
"""Seconds after which it looks without having been woken; this also finds a connection that died in silence."""


class Tail:
    """Runs from `start` to `close`, and pushes into the feed what is new in the log."""

    def __init__(self, link: Link, feed: Feed, *, clock: Clock, chance: random.Random) -> None:
        self._link = link
        self._feed = feed
        self._clock = clock
        self._chance = chance
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, newest: int) -> None:
        """Once: a second call changes nothing. Followers read from the log what is up to `newest`."""
        if self._task is None:
            self._feed.begin(newest)
            self._task = asyncio.create_task(self._run(), name="hub-storage-tail")

    def wake(self) -> None:
        self._woken.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        attempt = 0
        while True:
            try:
                connection = await self._link.connect()
                try:
                    connection.add_termination_listener(self._heard)
                    await connection.add_listener(CHANNEL, self._heard)
                    attempt = 0
                    await self._follow(connection)
                finally:
                    connection.terminate()
            except (StorageUnavailable, asyncpg.PostgresError, *AWAY) as error:
                log.info(
                    "the hub's log is not followed for a moment", place=self._link.place, error=type(error).__name__
                )
                await self._clock.sleep(pause(attempt, 0.05, 2.0, self._chance))
                attempt += 1

    async def _follow(self, connection: Any) -> None:
        while True:
            self._woken.clear()
            await self._catch_up(connection)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._woken.wait()

    async def _catch_up(self, connection: Any) -> None:
        while True:
            after = self._feed.revision
            found = await connection.fetch(sql.LOG, after, BATCH, timeout=30.0)
            newest, compacted = found[0]["newest"], found[0]["compacted"]
            if after < compacted:  # away for longer than the log reaches: followers learn it from the log themselves
                self._feed.begin(newest)
                return
            entries = [(row["revision"], row["before"], row["after"]) for row in found if row["revision"] is not None]
            changes, until = logged(entries, newest, BATCH)
            self._feed.push(after, changes, until)
            if until >= newest:
                return

    def _heard(self, *_: object) -> None:
        self._woken.set()
