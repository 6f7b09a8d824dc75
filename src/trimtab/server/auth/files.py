"""Secret files: written whole or not at all, for the owner only, and never through a symbolic link.

Whoever can place a link in the data directory could otherwise have a key written to or read from a place of their own.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

MAX_SECRET = 1 << 20
"""The largest file that is read, in bytes: certificates and keys are a few KiB."""


class UnsafeFileError(Exception):
    """A file or directory of secrets is not what it must be. The message says what to do; it holds no content."""


def private_directory(path: Path) -> None:
    """Make `path` a directory of its owner alone (0700), or refuse it."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700, parents=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise UnsafeFileError(f"{path} is not a directory (symbolic links are refused): move it away")
    _check_owner(path, status)
    if stat.S_IMODE(status.st_mode) != 0o700:
        path.chmod(0o700)


def guarded_directory(path: Path) -> None:
    """Make `path` a directory in which not everybody can put things, or refuse it. It may be a link, as to another disk."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_mode & stat.S_IWOTH:
        raise UnsafeFileError(
            f"{path} can be written by everybody, who could put another store there: chmod o-w {path}"
        )


def write_private(path: Path, content: bytes) -> None:
    """Replace `path` by a 0600 file with this content: a crash leaves the old one or the new one."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        pass
    else:
        if not stat.S_ISREG(mode):
            raise UnsafeFileError(f"{path} is not a regular file (symbolic links are refused): move it away")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def read_private(path: Path) -> bytes:
    """The content of a file that only its owner can read or write; FileNotFoundError when there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnsafeFileError(f"{path} cannot be read ({error.strerror}); symbolic links are refused") from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise UnsafeFileError(f"{path} is not a regular file")
        _check_owner(path, status)
        if status.st_mode & 0o077:
            raise UnsafeFileError(f"{path} can be used by others: chmod 600 {path}, and renew what is in it")
        content = file.read(MAX_SECRET + 1)
    if len(content) > MAX_SECRET:
        raise UnsafeFileError(f"{path} is over {MAX_SECRET} bytes")
    return content


def _check_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise UnsafeFileError(f"{path} belongs to another user")


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
