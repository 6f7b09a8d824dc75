"""The file that holds a store: who owns it, whether it is ours, and bringing it to the newest shape.

One process owns a store. It holds an flock on `<file>.lock`, and not on the database itself, because SQLite's own locks
on that file are lost when any other descriptor of it is closed. None of its files may be a symbolic link: whoever could
place one would have us write to a file of their choice. The folder may be one, as to another disk.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Sequence
from pathlib import Path

import apsw
import msgspec

from trimtab.store.contract import Unavailable, Unusable
from trimtab.store.rows import APPLICATION_ID, LADDER

MEBIBYTE = 1024 * 1024
PAGE = 8192  # a row of 2 KiB in pages of 4 KiB wastes half of them


class Database:
    """An open store file: the lock, a connection for writing and one for reading."""

    def __init__(self, path: Path, *, vfs: str | None = None, ladder: Sequence[str] = LADDER) -> None:
        if link := linked(path):
            raise Unusable(link)
        self._lock = _lock(path)
        self._connections: list[apsw.Connection] = []
        try:
            _create(path)
            self.write = self._connect(path, vfs)
            _migrate(self.write, path, ladder)
            self.read = self._connect(path, vfs)
            self.read.pragma("query_only", True)
        except BaseException as error:
            self.close()
            if said := refusal(path, error):
                raise said from error
            raise

    def close(self) -> None:
        for connection in reversed(self._connections):
            with contextlib.suppress(apsw.Error):  # a full disk: what was committed stays in the log beside the file
                connection.close()
        os.close(self._lock)

    def _connect(self, path: Path, vfs: str | None) -> apsw.Connection:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
        self._connections.append(connection)
        connection.set_busy_timeout(2000)
        # Plans that do not depend on what is bound: otherwise SQLite prepares a join anew each time that it is run.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.pragma("page_size", PAGE)  # for a new file; an old one keeps its own
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "full")
        connection.pragma("journal_size_limit", 64 * MEBIBYTE)
        connection.pragma("cache_size", -8192)
        return connection


def refusal(path: Path, error: BaseException) -> Unusable | None:
    """What a failure says of the store at `path`, when it comes before anything was written; None: nothing.

    SQLite does not see damage within a row: that comes as text that is none."""
    cause = error.__cause__ if isinstance(error, Unavailable) else error
    match cause:
        case apsw.CantOpenError():
            why = f"cannot be opened ({cause}): check its permissions and those of its folder"
        case apsw.NotADBError():
            why = "is not a database: name another file, or move this one away"
        case apsw.CorruptError() | json.JSONDecodeError() | UnicodeDecodeError() | msgspec.DecodeError():
            why = f"is damaged ({cause}): restore it from a backup"
        case apsw.BusyError():
            why = "is in use by another program: stop it first"
        case apsw.Error():
            why = f"cannot be used ({cause}): check the disk"
        case _:
            return None
    return Unusable(f"{path} {why}")


def linked(path: Path) -> str:
    """What to say when the file at `path`, its lock or one of SQLite's beside it is a symbolic link; "" is nothing."""
    for suffix in ("", ".lock", "-wal", "-shm", "-journal"):
        if os.path.islink(name := f"{path}{suffix}"):
            return f"{name} is a symbolic link, which is refused: put the file itself there, or make the folder a link"
    return ""


def _lock(path: Path) -> int:
    name = f"{path}.lock"
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unusable(f"{name} cannot be opened ({error.strerror}): check the folder and its permissions") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        owner = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise Unusable(f"{path} is in use by another process (pid {owner}): stop it first") from error
    with contextlib.suppress(OSError):  # who holds it is told to others; a full disk is no reason not to start
        os.ftruncate(descriptor, 0)
        os.write(descriptor, b"%d\n" % os.getpid())
    return descriptor


def _create(path: Path) -> None:
    """Only its owner may read the file; SQLite gives the files beside it the same mode."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise Unusable(f"{path} cannot be opened ({error.strerror}): check the file and its permissions") from error


def _migrate(connection: apsw.Connection, path: Path, ladder: Sequence[str]) -> None:
    application = connection.pragma("application_id")
    version = connection.pragma("user_version")
    empty = connection.execute("SELECT count(*) FROM sqlite_schema").get == 0
    if application != APPLICATION_ID and not (empty and application == 0 and version == 0):
        raise Unusable(f"{path} belongs to another program: name another file")
    if version > len(ladder):
        raise Unusable(
            f"{path} was written by a newer Trimtab (format {version}, this one knows {len(ladder)}): upgrade"
        )
    for step in range(version, len(ladder)):
        with connection:
            connection.execute(ladder[step])
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", step + 1)
