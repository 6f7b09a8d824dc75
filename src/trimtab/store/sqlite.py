"""The store on SQLite: durable, revisioned, watched.

Flow: writes queue on the event loop. Whatever queued while the last transaction was on its way to the disk goes into
the next one (group commit, no timer). Its statements run on the loop, where they only touch memory; only COMMIT, which
waits for the disk, runs in the writer's thread. When it returns, `revision` is raised, the writes are acknowledged, and
their changes go to the watchers, all in one turn of the loop.

What a read sees: `revision` is raised before a write is acknowledged, and every read is made at `revision`, so a read
sees all acknowledged writes. SQLite shows a transaction to the reading connection once it is durable, which may be
before its revisions are published; the reader looks past those (see `reader`), so nobody sees a revision newer than
`revision`, and a list followed by a watch from its revision neither misses nor repeats a change.

Failures: when the disk refuses a transaction, each of its writes gets `Unwritable`, nothing of it is there, and the
next batch tries anew. `trouble` says so until a write gets through; while nobody writes, the store tries one itself every
few seconds. A failed compare-and-swap fails its own write only.

Compaction: rides on the transactions of the writes, a few revisions more than they add, so it needs no disk wait of its
own and never holds up a write for long. `compacted` is raised before anything is removed, so no read starts below it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw

from trimtab.model.logs import log
from trimtab.store.contract import (
    MAX_VALUE,
    Batch,
    Change,
    Conflict,
    Entry,
    Gone,
    Key,
    NotYet,
    Page,
    Query,
    Revision,
    TooLarge,
    Unavailable,
    Unwritable,
    Write,
)
from trimtab.store.file import Database, refusal
from trimtab.store.reader import Reader
from trimtab.store.retention import Retention, Window
from trimtab.store.watch import Buffer, Fanout, Watcher
from trimtab.store.writer import Writer

BATCH = 512
"""The most writes in one transaction."""
BATCH_BYTES = 8 * 1024 * 1024
"""The most bytes, give or take the last write."""
SWEEP = 128
"""The revisions that one transaction compacts, beside as many as it adds."""
RECENT, RECENT_BYTES = 256, 16 * 1024
"""Entries that were read lately and are kept at hand until they change, and the largest that is: every create asks for its
namespace, every patch for what its sender has just read."""
PROBE = 2.0
"""Seconds between tries of a disk that has failed."""
MOMENT = 0.1
"""Seconds until a failure is logged: a server that cannot start for it says so itself, and closes the store."""

_Waiting = list[tuple[Write, asyncio.Future[Entry]]]
_Compactions = list[tuple[Revision, asyncio.Future[None]]]
_Outcomes = list[Change | Conflict]


class SqliteStore:
    """`Store` in one file. Make it with `open`."""

    def __init__(self, database: Database, *, retention: Retention, buffer: Buffer, clock: Callable[[], float]) -> None:
        self._database = database
        self._reader = Reader(database.read)
        self._writer = Writer(database.write)
        self._revision, self._swept = self._writer.newest()
        self._compacted = self._swept  # announced; `_swept` follows
        self._clock = clock
        self._window = Window(retention, self._revision, clock())
        self._fanout = Fanout(self, buffer)
        self._recent: dict[Key, Entry] = {}  # as they are at `revision`
        self._queue: deque[tuple[Write, asyncio.Future[Entry]]] = deque()
        self._compactions: _Compactions = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-commit")
        self._pump: asyncio.Task[None] | None = None
        self._trouble = ""
        self._probing = False
        self._probe: asyncio.TimerHandle | None = None
        self._telling: asyncio.TimerHandle | None = None
        self._closed = False

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        retention: Retention | None = None,
        buffer: Buffer | None = None,
        clock: Callable[[], float] = time.monotonic,
        vfs: str | None = None,
    ) -> SqliteStore:
        """Open or create the file; `Unusable` says why not. `vfs` names a SQLite VFS, for tests of failing disks."""
        database = await asyncio.to_thread(Database, path, vfs=vfs)
        try:
            return cls(database, retention=retention or Retention(), buffer=buffer or Buffer(), clock=clock)
        except BaseException as error:
            database.close()
            if said := refusal(path, error):
                raise said from error
            raise

    @property
    def revision(self) -> Revision:
        return self._revision

    @property
    def compacted(self) -> Revision:
        return self._compacted

    @property
    def trouble(self) -> str:
        return self._trouble

    async def get(self, key: Key) -> Entry | None:
        self._check_open()
        recent = self._recent.get(key)
        if recent is not None:
            return recent
        try:
            found = self._reader.get(key, self._revision)
        except apsw.Error as error:
            raise self._unreadable(error) from error
        if found is not None and len(found.value) <= RECENT_BYTES:
            if len(self._recent) >= RECENT:
                del self._recent[next(iter(self._recent))]
            self._recent[key] = found
        return found

    async def list(self, query: Query) -> Page:
        self._check_open()
        at = self._revision if query.revision is None else query.revision
        if at < self._compacted:
            raise Gone(at, self._compacted)
        if at > self._revision:
            raise NotYet(at, self._revision)
        try:
            return self._reader.list(query, at)
        except apsw.Error as error:
            raise self._unreadable(error) from error

    async def commit(self, write: Write) -> Entry:
        self._check_open()
        size = len(write.head) + len(write.tail) + len(str(self._revision))
        if size > MAX_VALUE:
            raise TooLarge(f"{size} bytes are more than {MAX_VALUE}")
        done: asyncio.Future[Entry] = asyncio.get_running_loop().create_future()
        self._queue.append((write, done))
        self._start()
        return await done

    def watch(self, query: Query, since: Revision, *, heartbeat: float = 60.0) -> Watcher:
        return self._fanout.watch(query, since, heartbeat)

    async def count(self, resource: str) -> int:
        self._check_open()
        try:
            return self._reader.count(resource, self._revision)
        except apsw.Error as error:
            raise self._unreadable(error) from error

    async def expired(self, now: float, limit: int = 100) -> Sequence[Entry]:
        self._check_open()
        try:
            return [*self._reader.expired(now, limit, self._revision)]
        except apsw.Error as error:
            raise self._unreadable(error) from error

    async def compact(self, before: Revision) -> None:
        """Durable, and all removed, when it returns."""
        self._check_open()
        before = min(before, self._revision)
        self._compacted = max(self._compacted, before)
        if before > self._swept:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._compactions.append((before, done))
            self._start()
            await done

    async def close(self) -> None:
        """Ends all watches, finishes the writes that were asked for, and lets go of the file."""
        if self._closed:
            return
        self._closed = True
        for timer in (self._probe, self._telling):
            if timer is not None:
                timer.cancel()
        self._fanout.close()
        if self._pump is not None:
            await asyncio.wait([self._pump])
        self._thread.shutdown()
        # The last connection to close copies the log of SQLite back into the file: that waits for the disk.
        await asyncio.to_thread(self._database.close)

    def changes(self, query: Query, after: Revision) -> Batch:
        try:
            return self._reader.changes(query, after, self._revision)
        except apsw.Error as error:
            raise self._unreadable(error) from error

    def _start(self) -> None:
        if self._pump is None:
            self._pump = asyncio.get_running_loop().create_task(self._run(), name="store-writer")

    async def _run(self) -> None:
        try:
            while self._queue or self._compactions or self._probing:
                await self._transaction(self._take())
        finally:
            self._pump = None

    def _take(self) -> _Waiting:
        batch: _Waiting = []
        size = 0
        while self._queue and len(batch) < BATCH and size < BATCH_BYTES:
            write, done = self._queue.popleft()
            if not done.cancelled():
                batch.append((write, done))
                size += len(write.head) + len(write.tail)
        return batch

    async def _transaction(self, batch: _Waiting) -> None:
        writer = self._writer
        outcomes: _Outcomes = []
        revision = self._revision
        until = min(self._compacted, self._swept + SWEEP + len(batch))
        probing, self._probing = self._probing, False
        try:
            writer.begin()
            if probing:
                writer.touch()
            for write, _ in batch:
                outcome = writer.apply(write, revision + 1)
                outcomes.append(outcome)
                revision += isinstance(outcome, Change)
            if until > self._swept:
                writer.sweep(self._swept, until)
            if revision > self._revision or until > self._swept or probing:
                await asyncio.get_running_loop().run_in_executor(self._thread, writer.commit)
                self._well()
            else:
                writer.rollback()
        except Exception as error:
            self._fail(batch, error)
            return
        self._swept = until
        self._publish(batch, outcomes, revision)

    def _publish(
        self,
        batch: _Waiting,
        outcomes: _Outcomes,
        revision: Revision,
    ) -> None:
        self._revision = revision
        for (write, done), outcome in zip(batch, outcomes, strict=True):
            self._recent.pop(write.key, None)
            if done.cancelled():
                continue
            if isinstance(outcome, Change):
                done.set_result(outcome.entry)
            else:
                done.set_exception(outcome)
        for before, waiting in self._compactions:
            if before <= self._swept and not waiting.cancelled():
                waiting.set_result(None)
        self._compactions = [(before, waiting) for before, waiting in self._compactions if before > self._swept]
        self._fanout.publish([outcome for outcome in outcomes if isinstance(outcome, Change)])
        horizon = self._window.advance(revision, self._clock())
        if horizon - self._compacted >= SWEEP:
            self._compacted = horizon

    def _fail(self, batch: _Waiting, error: Exception) -> None:
        """Nothing of the batch is there; everyone who waits for it learns why."""
        with contextlib.suppress(apsw.Error):  # the next transaction begins by trying again
            self._writer.rollback()
        compactions, self._compactions = self._compactions, []
        waiting: tuple[asyncio.Future[Any], ...] = (*(done for _, done in batch), *(done for _, done in compactions))
        failed = isinstance(error, apsw.Error)
        for done in waiting:
            if not done.cancelled():
                why = f"nothing was written: {error}"
                full = isinstance(error, apsw.FullError)
                failure = Unwritable(why, full=full) if failed else Unavailable(why)
                failure.__cause__ = error
                done.set_exception(failure)
        if failed:
            self._ill(f"the disk does not take writes: {error}")

    def _ill(self, why: str) -> None:
        """Note it, say it once, and look again in a while."""
        loop = asyncio.get_running_loop()
        if not (self._trouble or self._closed):
            self._telling = loop.call_later(MOMENT, _tell, why)
        self._trouble = why
        if self._probe is None and not self._closed:
            self._probe = loop.call_later(PROBE, self._look_again)

    def _well(self) -> None:
        if self._trouble:
            log.warning("the disk of the store is well again", before=self._trouble)
            self._trouble = ""

    def _look_again(self) -> None:
        self._probe = None
        if self._trouble and not self._closed:
            self._probing = True
            self._start()

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")

    def _unreadable(self, error: apsw.Error) -> Unavailable:
        self._ill(f"the disk cannot be read: {error}")
        return Unavailable(f"the store cannot be read: {error}")


def _tell(why: str) -> None:
    log.error("the store has trouble with its disk", why=why)
