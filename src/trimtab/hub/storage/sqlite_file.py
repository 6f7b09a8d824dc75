"""The SQLite file of a storage: who owns it, whether it is ours, bringing it up to date, and its threads.

One process owns the file, by an flock on `<file>.lock`: SQLite's own locks are lost when any other descriptor of the file is
closed. One thread writes, a few read, each with a connection of its own; so has the loop,
for what is quickly read.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import apsw

from trimtab.hub.storage.contract import StorageUnavailable, StorageUnusable
from trimtab.hub.storage.schema import LADDER, sqlite_steps
from trimtab.store.file import linked

APPLICATION_ID = 0x54726D48  # "TrmH"
READERS = 4
PAGE = 8192

T = TypeVar("T")


class File:
    """Open from construction to `close`; make it in a thread. StorageUnusable, StorageUnavailable."""

    def __init__(self, path: Path, *, vfs: str | None = None) -> None:
        self.path = path
        self._vfs = vfs
        if link := linked(path):
            raise StorageUnusable(link)
        self._lock = _locked(path)
        self._local = threading.local()
        self._connections: list[apsw.Connection] = []
        self._opening = threading.Lock()
        self._writing = ThreadPoolExecutor(1, "hub-storage-write")
        self._reading = ThreadPoolExecutor(READERS, "hub-storage-read")
        try:
            with _said(path):
                _created(path)
                self._writer = self._connect()
                _migrate(self._writer, path)
                self._here = self._reader()
        except BaseException:
            self.close()
            raise

    async def write(self, act: Callable[[apsw.Connection], T]) -> T:
        """In the writer's thread, as one transaction: durable when it returns; nothing of it is there when it raises."""

        def transaction() -> T:
            connection = self._writer
            with _said(self.path):
                if connection.in_transaction:  # SQLite ends some by itself when they fail, and not others
                    connection.execute("ROLLBACK")
                connection.execute("BEGIN IMMEDIATE")
                try:
                    result = act(connection)
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
                return result

        return await _done(self._writing, transaction)

    async def read(self, act: Callable[[apsw.Connection], T]) -> T:
        """In a reader's thread, of one state of the file."""

        return await _done(self._reading, lambda: self._read(self._own(), act))

    def look(self, act: Callable[[apsw.Connection], T]) -> T:
        """The same here and now, on the loop: for what takes microseconds. A trip to a thread and back takes many times as
        long, and more while the loop is busy."""
        return self._read(self._here, act)

    def _read(self, connection: apsw.Connection, act: Callable[[apsw.Connection], T]) -> T:
        with _said(self.path):
            connection.execute("BEGIN")
            try:
                return act(connection)
            finally:
                connection.execute("COMMIT")

    def close(self) -> None:
        """Waits for what runs."""
        self._reading.shutdown()
        self._writing.shutdown()
        for connection in reversed(self._connections):
            connection.close()
        os.close(self._lock)

    def _own(self) -> apsw.Connection:
        """The connection of this thread."""
        found: apsw.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            with _said(self.path):
                found = self._local.connection = self._reader()
        return found

    def _reader(self) -> apsw.Connection:
        connection = self._connect()
        connection.pragma("query_only", True)
        return connection

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=self._vfs)
        with self._opening:
            self._connections.append(connection)
        connection.set_busy_timeout(2000)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)  # plans that do not depend on what is bound
        connection.pragma("page_size", PAGE)
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "full")
        connection.pragma("journal_size_limit", 64 << 20)
        connection.pragma("cache_size", -16384)
        return connection


async def _done(pool: ThreadPoolExecutor, act: Callable[[], T]) -> T:
    try:
        return await asyncio.get_running_loop().run_in_executor(pool, act)
    except RuntimeError as error:
        if "shutdown" in str(error):
            raise StorageUnavailable("the storage is closed") from None
        raise


@contextlib.contextmanager
def _said(path: Path) -> Iterator[None]:
    """Errors of SQLite in the words of the contract."""
    try:
        yield
    except apsw.NotADBError as error:
        raise StorageUnusable(f"{path} is not a database: name another file, or move this one away") from error
    except apsw.CorruptError as error:
        raise StorageUnusable(f"{path} is damaged ({error}): restore it from a backup") from error
    except apsw.CantOpenError as error:
        raise StorageUnusable(f"{path} cannot be opened ({error}): check its permissions") from error
    except apsw.Error as error:
        raise StorageUnavailable(f"{path}: {error}") from error


def _locked(path: Path) -> int:
    name = f"{path}.lock"
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageUnusable(f"{name} cannot be opened ({error.strerror}): check the folder") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise StorageUnusable(
            f"{path} is in use by another process: stop it, or let one process serve it (trimtab hub storage)"
        ) from error
    return descriptor


def _created(path: Path) -> None:
    """Only its owner may read the file; SQLite gives the files beside it the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise StorageUnusable(f"{path} cannot be opened ({error.strerror}): check its permissions") from error


def _migrate(connection: apsw.Connection, path: Path) -> None:
    application, version = connection.pragma("application_id"), connection.pragma("user_version")
    empty = connection.execute("SELECT count(*) FROM sqlite_schema").get == 0
    if application != APPLICATION_ID and not (empty and application == 0 and version == 0):
        raise StorageUnusable(f"{path} belongs to another program: name another file")
    if version > len(LADDER):
        raise StorageUnusable(
            f"{path} was written by a newer Trimtab (version {version}; this one knows {len(LADDER)}): upgrade"
        )
    for number, step in enumerate(sqlite_steps(version), version + 1):
        with connection:
            connection.execute(step)
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", number)
