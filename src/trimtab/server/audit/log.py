"""Where audit events go: a file of JSON lines that is rotated by size, or standard output.

Flow: `append` puts a line into memory and returns; a thread writes what has gathered, in order, and rotates. `close` writes
the rest.

Guarantees
  - A file is its owner's alone (0600), and no link is followed.
  - A disk that takes nothing never stops a request: lines are lost then, counted in `lost`, and it is warned of once until
    a write succeeds again. A line is whole or absent, also then.
  - At most `MAX_WAITING` bytes wait in memory.

Caveats: a process that is killed loses the lines of its last moment. Nothing is synced to the disk on its own.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from trimtab.model.logs import log

MEGABYTE = 1024 * 1024
MAX_WAITING = 64 * MEGABYTE


class AuditLog:
    """One log. `path` "-" is standard output, which is never rotated."""

    def __init__(self, path: str, *, max_size: int = 100, max_backups: int = 10, now: Callable[[], datetime]) -> None:
        """`max_size` is in megabytes; of rotated files `max_backups` stay, 0 is all. OSError when it cannot be opened."""
        self._path = None if path == "-" else Path(path)
        self._max_size = max_size * MEGABYTE
        self._max_backups = max_backups
        self._now = now
        self.written = 0
        self.lost = 0
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._full = False
        self._closing = False
        self._failing = False
        self._news = threading.Condition()
        self._file, self._size, self._regular = self._open()
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def append(self, line: bytes) -> None:
        """One event, with its newline."""
        with self._news:
            if self._waiting_bytes + len(line) > MAX_WAITING:
                self.lost += 1
                full, self._full = self._full, True
                if not full:
                    log.warning("the audit log is too slow: events are lost", path=str(self._path or "-"))
                return
            self._waiting.append(line)
            self._waiting_bytes += len(line)
            self._news.notify()

    def close(self) -> None:
        """Write what waits, and let go of the file."""
        with self._news:
            self._closing = True
            self._news.notify()
        self._thread.join(timeout=10.0)

    def _open(self) -> tuple[int, int, bool]:
        if self._path is None:
            return os.dup(sys.stdout.fileno()), 0, False
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self._path, flags, 0o600)
        status = os.fstat(file)
        regular = stat.S_ISREG(status.st_mode)
        if regular and stat.S_IMODE(status.st_mode) != 0o600:
            os.fchmod(file, 0o600)
        return file, status.st_size if regular else 0, regular

    def _run(self) -> None:
        while True:
            with self._news:
                while not self._waiting and not self._closing:
                    self._news.wait()
                lines, self._waiting, self._waiting_bytes, self._full = self._waiting, [], 0, False
                if not lines:
                    break
            for batch in _batches(lines, self._max_size if self._regular else MEGABYTE):
                self._write(batch)
        os.close(self._file)

    def _write(self, lines: list[bytes]) -> None:
        data = b"".join(lines)
        try:
            if self._regular and self._size and self._size + len(data) > self._max_size:
                self._rotate()
            self._put(data)
        except OSError as error:
            self.lost += len(lines)
            if not self._failing:
                self._failing = True
                log.warning("the audit log cannot be written: events are lost", error=error.strerror or str(error))
            return
        self.written += len(lines)
        if self._failing:
            self._failing = False
            log.warning("the audit log is written again", lost=self.lost)

    def _put(self, data: bytes) -> None:
        """All of it, or, in a file, nothing: half a line would spoil the next one."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError:
            if self._regular:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)

    def _rotate(self) -> None:
        """The file gets the time in its name, and a new one begins."""
        assert self._path is not None  # noqa: S101 - standard output is no regular file of ours
        moment = self._now().strftime("%Y-%m-%dT%H-%M-%S.%f")
        with contextlib.suppress(FileNotFoundError):  # somebody else moved it
            self._path.rename(self._path.with_name(f"{self._path.stem}-{moment}{self._path.suffix}"))
        opened = self._open()  # before the old one is let go of: it may fail
        os.close(self._file)
        self._file, self._size, self._regular = opened
        if self._max_backups:
            old = sorted(p for p in self._path.parent.glob(f"{_literal(self._path.stem)}-*{self._path.suffix}"))
            for path in [p for p in old if self._is_backup(p)][: -self._max_backups]:
                path.unlink(missing_ok=True)

    def _is_backup(self, path: Path) -> bool:
        assert self._path is not None  # noqa: S101 - asked of files only
        written = path.name.removeprefix(f"{self._path.stem}-").removesuffix(self._path.suffix)
        try:
            datetime.strptime(written, "%Y-%m-%dT%H-%M-%S.%f")
        except ValueError:
            return False
        return True


def _batches(lines: list[bytes], limit: int) -> list[list[bytes]]:
    """Lines that are written together: at most `limit` bytes, or one line."""
    batches: list[list[bytes]] = []
    size = limit
    for line in lines:
        if size + len(line) > limit:
            batches.append([])
            size = 0
        batches[-1].append(line)
        size += len(line)
    return batches


def _literal(name: str) -> str:
    """A name that means itself in a glob."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)
