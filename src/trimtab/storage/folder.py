"""Blobs in a folder of this machine: the embedded home of `Blobs`.

    <root>/sha256/ab/<digest>         the bytes; the time of the file is when they were last put or pinned
    <root>/sha256/ab/<digest>.type    the media type
    <root>/sha256/ab/<digest>.pins/   one file for each owner: these decide
    <root>/owners/<owner>/<digest>    the same the other way round, to find what an owner pins
    <root>/tmp/                       what is being put

Several processes may use one folder. Two rules carry all guarantees. Bytes are written under `tmp`, synced, and renamed: a
crash leaves them whole or not at all. And whoever changes what is in a shard holds the lock of its directory, so that a
collection never meets a half-done `put` or `pin`. The note under `owners` is written before the pin and removed after
it: a crash in between leaves a note too many, never a pin that nobody can find.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import IO, ParamSpec, TypeVar

from trimtab.model.clock import Clock, SystemClock
from trimtab.storage.blobs import (
    CHUNK,
    MAX_BYTES,
    BlobInfo,
    BlobMissing,
    BlobsUnavailable,
    Collected,
    Data,
    Digest,
    check_media_type,
    check_owner,
    parse_digest,
    verified,
)
from trimtab.storage.spool import fill
from trimtab.storage.threads import in_thread

P = ParamSpec("P")
T = TypeVar("T")

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAKE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FolderBlobs:
    """Fulfils `Blobs`. Folders have mode 0700 and files 0600; symbolic links below the root are never followed."""

    def __init__(self, root: Path, *, clock: Clock | None = None, max_bytes: int = MAX_BYTES) -> None:
        self._root = root
        self._clock = clock or SystemClock()
        self._max_bytes = max_bytes

    def __repr__(self) -> str:
        return f"FolderBlobs({str(self._root)!r})"

    async def put(
        self, data: Data, *, media_type: str = "", expected: Digest | None = None, max_bytes: int | None = None
    ) -> Digest:
        check_media_type(media_type)
        limit = self._max_bytes if max_bytes is None else min(max_bytes, self._max_bytes)
        with contextlib.ExitStack() as stack:
            name, file = await self._act(self._begin, stack)
            _, digest = await fill(file, data, max_bytes=limit, expected=expected)
            await self._act(self._publish, file, name, digest, media_type)
        return digest

    async def open(self, digest: Digest) -> AsyncIterator[bytes]:
        parse_digest(digest)
        with contextlib.ExitStack() as stack:
            file = await self._act(self._open, digest, stack)

            async def chunks() -> AsyncIterator[bytes]:
                while chunk := await self._act(file.read, CHUNK):
                    yield chunk

            async for chunk in verified(digest, chunks()):
                yield chunk

    async def stat(self, digest: Digest) -> BlobInfo:
        return await self._act(self._stat, parse_digest(digest))

    async def pin(self, digest: Digest, owner: str) -> None:
        await self._act(self._pin, parse_digest(digest), check_owner(owner))

    async def unpin(self, owner: str, digest: Digest | None = None) -> None:
        check_owner(owner)
        if digest is None:
            for each in await self._act(self._pinned_by, owner):
                await self._act(self._unpin, each, owner)
        else:
            await self._act(self._unpin, parse_digest(digest), owner)

    async def collect(self, *, grace: float) -> Collected:
        """Also removes what writers that died left under `tmp`."""
        await self._act(self._sweep_tmp)
        before = self._clock.now().timestamp() - grace
        count = size = 0
        for shard in await self._act(self._shards):
            for freed in await self._act(self._sweep, shard, before):
                count, size = count + 1, size + freed
        return Collected(count, size)

    async def ready(self) -> None:
        await self._act(self._make_folders)

    async def close(self) -> None:
        return

    async def _act(self, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """In a thread; what the system refuses is said as an error of ours."""
        try:
            return await in_thread(act, *args, **kwargs)
        except OSError as error:
            raise BlobsUnavailable(f"the folder of blobs {self._root} cannot be used: {error.strerror}") from error

    # Everything below blocks and runs in threads.

    def _make_folders(self) -> None:
        self._root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in ("", "tmp", "owners", "sha256"):
            _make_folder(self._root / name)

    def _begin(self, stack: contextlib.ExitStack) -> tuple[str, IO[bytes]]:
        """A new file under `tmp`, locked by us: that is how a collection knows that its writer lives.

        The stack sees to its end, also when the caller was cancelled while we are here.
        """
        self._make_folders()
        while True:
            name = secrets.token_hex(16)
            path = self._root / "tmp" / name
            file = os.fdopen(os.open(path, _MAKE, 0o600), "w+b")
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_nlink:
                stack.callback(path.unlink, missing_ok=True)
                stack.callback(_close, file)
                return name, file
            file.close()  # a collection took it for a dead writer's before we had the lock

    def _publish(self, file: IO[bytes], name: str, digest: Digest, media_type: str) -> None:
        file.flush()
        moment = self._clock.now().timestamp()
        os.utime(file.fileno(), (moment, moment))
        os.fsync(file.fileno())
        with self._shard(digest, make=True) as shard:
            if media_type:
                _write(shard, f"{_hex(digest)}.type", media_type.encode())
            os.rename(self._root / "tmp" / name, _hex(digest), dst_dir_fd=shard)
            os.fsync(shard)

    def _open(self, digest: Digest, stack: contextlib.ExitStack) -> IO[bytes]:
        with self._missing(digest), self._shard(digest, lock=False) as shard:
            return stack.enter_context(os.fdopen(os.open(_hex(digest), _READ, dir_fd=shard), "rb", buffering=0))

    def _stat(self, digest: Digest) -> BlobInfo:
        with self._missing(digest), self._shard(digest, lock=False) as shard:
            size = os.stat(_hex(digest), dir_fd=shard, follow_symlinks=False).st_size
            return BlobInfo(digest, size, _read(shard, f"{_hex(digest)}.type").decode())

    def _pin(self, digest: Digest, owner: str) -> None:
        with self._missing(digest), self._shard(digest) as shard:
            moment = self._clock.now().timestamp()
            os.utime(_hex(digest), (moment, moment), dir_fd=shard, follow_symlinks=False)
            with self._owners() as owners, _made(_owner_name(owner), owners) as notes:
                _note(notes, _hex(digest))
            with _made(f"{_hex(digest)}.pins", shard) as pins:
                _note(pins, _owner_name(owner), owner)

    def _unpin(self, digest: Digest, owner: str) -> None:
        with contextlib.suppress(FileNotFoundError), self._shard(digest) as shard:
            with (
                contextlib.suppress(FileNotFoundError),
                _folder(f"{_hex(digest)}.pins", shard) as pins,
            ):
                os.unlink(_owner_name(owner), dir_fd=pins)
                os.fsync(pins)
            with self._owners() as owners, contextlib.suppress(FileNotFoundError):
                with _folder(_owner_name(owner), owners) as notes:
                    os.unlink(_hex(digest), dir_fd=notes)
                    empty = not os.listdir(notes)
                if empty:
                    os.rmdir(_owner_name(owner), dir_fd=owners)

    def _pinned_by(self, owner: str) -> list[Digest]:
        try:
            names = os.listdir(self._root / "owners" / _owner_name(owner))
        except FileNotFoundError:
            return []
        return [Digest(f"sha256:{name}") for name in names if _is_hex(name)]

    def _shards(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._root / "sha256") if _is_hex(name, 2))
        except FileNotFoundError:
            return []

    def _sweep(self, name: str, before: float) -> list[int]:
        """The sizes of what was removed from one shard."""
        freed: list[int] = []
        with _folder(self._root / "sha256" / name) as shard:
            fcntl.flock(shard, fcntl.LOCK_EX)
            names = os.listdir(shard)
            for stray in names:  # of a writer that died: a living one would hold the lock
                if stray.startswith(".") or (stray.endswith(".type") and stray.removesuffix(".type") not in names):
                    os.unlink(stray, dir_fd=shard)
        for blob in filter(_is_hex, names):
            with self._shard(Digest(f"sha256:{blob}")) as shard:  # for each one: nobody waits for a whole shard
                with contextlib.suppress(FileNotFoundError):
                    found = os.stat(blob, dir_fd=shard, follow_symlinks=False)
                    if found.st_mtime > before or _pins(shard, blob):
                        continue
                    os.unlink(blob, dir_fd=shard)
                    freed.append(found.st_size)
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{blob}.type", dir_fd=shard)
                with contextlib.suppress(FileNotFoundError):
                    os.rmdir(f"{blob}.pins", dir_fd=shard)
        return freed

    def _sweep_tmp(self) -> None:
        with contextlib.suppress(FileNotFoundError), _folder(self._root / "tmp") as tmp:
            for name in os.listdir(tmp):
                with contextlib.suppress(FileNotFoundError, BlockingIOError):
                    descriptor = os.open(name, _READ, dir_fd=tmp)
                    try:
                        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # its writer holds it while it lives
                        os.unlink(name, dir_fd=tmp)
                    finally:
                        os.close(descriptor)

    def _path(self, digest: Digest) -> Path:
        return self._root / "sha256" / _hex(digest)[:2] / _hex(digest)

    @contextlib.contextmanager
    def _shard(self, digest: Digest, *, make: bool = False, lock: bool = True) -> Iterator[int]:
        """The directory that a blob is in, open and locked. The lock ends with the descriptor, also in a crash."""
        path = self._path(digest).parent
        if make:
            _make_folder(path)
        with _folder(path) as descriptor:
            if lock:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor

    @contextlib.contextmanager
    def _owners(self) -> Iterator[int]:
        """Where the notes are, locked: a folder of notes goes with its last one. Taken after a shard, never before."""
        with _folder(self._root / "owners") as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor

    @contextlib.contextmanager
    def _missing(self, digest: Digest) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise BlobMissing(digest) from None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise BlobsUnavailable(f"{self._path(digest)} is a symbolic link: remove it") from None
            raise


def _pins(shard: int, blob: str) -> bool:
    try:
        with _folder(f"{blob}.pins", shard) as pins:
            return bool(os.listdir(pins))
    except FileNotFoundError:
        return False


def _make_folder(path: Path) -> None:
    """Made durable too: a synced file in a folder that is lost with the power would be lost with it."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if not stat.S_ISDIR(path.lstat().st_mode):
            raise BlobsUnavailable(f"{path} is no folder: remove it") from None
        return
    with _folder(path.parent) as parent:
        os.fsync(parent)


@contextlib.contextmanager
def _folder(path: Path | str, inside: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, _FOLDER, dir_fd=inside)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _close(file: IO[bytes]) -> None:
    """What matters was flushed before. The rest of a failed write fails again here, and has been said."""
    with contextlib.suppress(OSError):
        file.close()


@contextlib.contextmanager
def _made(name: str, inside: int) -> Iterator[int]:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=inside)
        os.fsync(inside)
    with _folder(name, inside) as descriptor:
        yield descriptor


def _note(folder: int, name: str, text: str = "") -> None:
    """A file that says something by being there; the text is for people."""
    with contextlib.suppress(FileExistsError):
        with os.fdopen(os.open(name, _MAKE, 0o600, dir_fd=folder), "w") as file:
            file.write(text)
        os.fsync(folder)


def _write(folder: int, name: str, content: bytes) -> None:
    """A small file, whole or not at all; a temporary name begins with a point."""
    temporary = f".{secrets.token_hex(8)}"
    descriptor = os.open(temporary, _MAKE, 0o600, dir_fd=folder)
    try:
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _read(folder: int, name: str) -> bytes:
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
    except FileNotFoundError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        return file.read(4096)


def _hex(digest: Digest) -> str:
    return digest.removeprefix("sha256:")


def _is_hex(name: str, length: int = 64) -> bool:
    return len(name) == length and set(name) <= set("0123456789abcdef")


def _owner_name(owner: str) -> str:
    return hashlib.sha256(owner.encode()).hexdigest()[:32]
