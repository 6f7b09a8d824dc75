"""Scratch: what can be rebuilt (layer results, a vulnerability database, clones), in folders of bounded size.

    layers = Scratch(root, max_bytes=20 << 30).dir("layers", max_bytes=5 << 30)
    async with layers.fill(digest, unpack) as path:    # made once, however many ask; kept while in use
        ...
    with layers.use(digest) as path:                   # None when it is not there
        ...

Guarantees: an entry appears whole, by a rename; what a crash left half made is made again. Of all who ask for an entry at
the same time, in this process or another, one makes it. An entry in use is never evicted. When a folder is over its
bound, what was used longest ago goes first.

Assumptions: losing everything here costs time and nothing else. All processes are on one machine: locks are of its kernel.

Caveats: entries are not synced to disk. An entry that is a file is checked by its size; for a folder the caller may say by
`intact` whether it is whole. The bound is kept after a fill and by `trim`, not at every byte.

    <root>/<name>/entries/<key>    a file or a folder
    <root>/<name>/whole/<key>      its size, written when it was whole; the time of the file is its last use
    <root>/<name>/locks/<key>      shared by those who use it, exclusive for whoever makes or evicts it
    <root>/<name>/making/<key>     the next one
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from trimtab.model.clock import Clock, SystemClock
from trimtab.storage.threads import in_thread

Make = Callable[[Path], Awaitable[None]]
"""Makes a file or a folder at the path, which is free and whose parent is there."""

_LOW = 0.9  # an eviction goes on to this part of the bound, so that the next fill does not bring the next eviction
_TRIM_EVERY = 100  # fills: other processes fill too
_POLL = 0.05  # seconds between looks at another process that makes the same


class ScratchError(Exception):
    """An entry could not be made or used."""


class Scratch:
    """All the folders under one root; `max_bytes` bounds them together."""

    def __init__(self, root: Path, max_bytes: int, *, clock: Clock | None = None) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._clock = clock or SystemClock()
        self._dirs: dict[str, ScratchDir] = {}

    def dir(self, name: str, max_bytes: int) -> ScratchDir:
        """A folder of its own, made at once. The same name gives the same one."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name[:80]!r} is no name of a scratch folder: small letters, digits, - and _")
        if name not in self._dirs:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._dirs[name] = ScratchDir(self._root / name, max_bytes, clock=self._clock)
        return self._dirs[name]

    async def trim(self) -> int:
        """Bytes that were freed to keep every folder, and all of them together, within their bounds."""
        freed = 0
        for each in self._dirs.values():
            freed += await each.trim()
        return freed + await in_thread(_evict, tuple(self._dirs.values()), self._max_bytes)


class ScratchDir:
    """Entries by key. Any text is a key; it is turned into a safe name."""

    def __init__(self, path: Path, max_bytes: int, *, clock: Clock) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._clock = clock
        self._flights: dict[str, asyncio.Lock] = {}
        self._added: int | None = None  # bytes since the last look; None: never looked
        self._fills = 0
        path.mkdir(mode=0o700, exist_ok=True)
        for part in ("entries", "whole", "locks", "making"):
            (path / part).mkdir(mode=0o700, exist_ok=True)

    @contextlib.contextmanager
    def use(self, key: str) -> Iterator[Path | None]:
        """The entry, which stays while the block runs; None when it is not there, or is just being made."""
        name = entry_name(key)
        if not self._is_whole(name):  # before the lock, so that a question leaves no file behind
            yield None
            return
        with _locked(self.path / "locks" / name, fcntl.LOCK_SH) as held:
            if held and self._is_whole(name):
                self._touch(name)
                yield self.path / "entries" / name
                return
        yield None

    @contextlib.asynccontextmanager
    async def fill(self, key: str, make: Make, *, intact: Callable[[Path], bool] | None = None) -> AsyncIterator[Path]:
        """The entry, which stays while the block runs; made first when it is not there or not `intact`."""
        name = entry_name(key)
        async with contextlib.AsyncExitStack() as stack:
            while True:
                path = stack.enter_context(self.use(key))
                if path is not None and (intact is None or await in_thread(intact, path)):
                    break
                await stack.pop_all().aclose()  # let go, or we would wait for ourselves
                await self._make(name, make, intact)
            if self._added is None or self._fills >= _TRIM_EVERY or self._added > self._max_bytes:
                await self.trim()
            yield path

    async def discard(self, key: str) -> bool:
        """Throws an entry away that its user found damaged; False while somebody else uses it."""
        return await in_thread(self.evict, entry_name(key))

    async def trim(self) -> int:
        """Bytes that were freed to keep within the bound."""
        freed = await in_thread(_evict, (self,), self._max_bytes)
        self._fills = 0
        self._added = await in_thread(lambda: sum(entry.size for entry in self.entries()))
        return freed

    async def _make(self, name: str, make: Make, intact: Callable[[Path], bool] | None) -> None:
        """One at a time in this process by a lock of asyncio, and among processes by one of the kernel."""
        flight = self._flights.setdefault(name, asyncio.Lock())
        try:
            async with flight:
                with contextlib.ExitStack() as stack:
                    while not stack.enter_context(_locked(self.path / "locks" / name, fcntl.LOCK_EX)):
                        stack.pop_all().close()
                        if await self._others_made(name, intact):
                            return
                        await self._clock.sleep(_POLL)
                    if not await self._others_made(name, intact, locked=True):
                        await self._make_locked(name, make)
        finally:
            if not flight.locked():
                self._flights.pop(name, None)

    async def _others_made(self, name: str, intact: Callable[[Path], bool] | None, *, locked: bool = False) -> bool:
        with contextlib.nullcontext(True) if locked else _locked(self.path / "locks" / name, fcntl.LOCK_SH) as held:
            if not held or not self._is_whole(name):
                return False
            return intact is None or await in_thread(intact, self.path / "entries" / name)

    async def _make_locked(self, name: str, make: Make) -> None:
        making = self.path / "making" / name
        await in_thread(_remove, making)
        try:
            await make(making)
            size = await in_thread(self._replace, name, making)
        except BaseException:
            await in_thread(_remove, making)
            raise
        self._fills += 1
        if self._added is not None:
            self._added += size

    def _replace(self, name: str, making: Path) -> int:
        """The mark goes before the old entry and comes after the new one: without it an entry is not whole."""
        if not os.path.lexists(making):
            raise ScratchError(f"nothing was made for {name} in {self.path}")
        size = _size(making)
        (self.path / "whole" / name).unlink(missing_ok=True)
        _remove(self.path / "entries" / name)
        making.rename(self.path / "entries" / name)
        mark = self.path / "whole" / name
        mark.touch(mode=0o600)
        mark.write_text(str(size))
        self._touch(name)
        return size

    def _is_whole(self, name: str) -> bool:
        try:
            size = int((self.path / "whole" / name).read_text())
            found = (self.path / "entries" / name).lstat()
        except (FileNotFoundError, ValueError):
            return False
        return not stat.S_ISREG(found.st_mode) or found.st_size == size

    def _touch(self, name: str) -> None:
        moment = self._clock.now().timestamp()
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.path / "whole" / name, (moment, moment))

    def entries(self) -> list[Entry]:
        """All that is there, with what it takes on disk now: a folder may have grown since it was made."""
        found = []
        for name in os.listdir(self.path / "entries"):
            try:
                used = (self.path / "whole" / name).stat().st_mtime
            except FileNotFoundError:
                used = 0.0  # not whole: first to go
            found.append(Entry(used, _size(self.path / "entries" / name), self, name))
        found += [
            Entry(0.0, _size(self.path / "making" / name), self, name) for name in os.listdir(self.path / "making")
        ]
        return found

    def evict(self, name: str) -> bool:
        """False while somebody uses or makes it."""
        lock = self.path / "locks" / name
        with _locked(lock, fcntl.LOCK_EX) as held:
            if held:
                (self.path / "whole" / name).unlink(missing_ok=True)
                _remove(self.path / "entries" / name)
                _remove(self.path / "making" / name)
                lock.unlink(missing_ok=True)
            return held


class Entry(NamedTuple):
    """What an eviction looks at; they sort by their last use."""

    used: float
    size: int
    dir: ScratchDir
    name: str


def entry_name(key: str) -> str:
    """A file name for any key: itself when it is harmless, else its beginning and a digest. Never two keys the same."""
    if _KEY.fullmatch(key):
        return key
    slug = re.sub(r"[^a-z0-9]+", "-", key[:40].lower()).strip("-")
    return f"{slug}~{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"


_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")


def _evict(dirs: tuple[ScratchDir, ...], bound: int) -> int:
    entries = sorted((entry for each in dirs for entry in each.entries()), key=lambda entry: (entry.used, entry.name))
    total = sum(entry.size for entry in entries)
    freed = 0
    over = total > bound
    for entry in entries:
        broken = entry.used == 0.0
        if (broken or (over and total - freed > bound * _LOW)) and entry.dir.evict(entry.name):
            freed += entry.size
    return freed


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[bool]:
    """Whether the lock was free; it is held while the block runs, and by the kernel's care no longer than the process."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            yield False
            return
        if _is_at(descriptor, path):
            break
        os.close(descriptor)  # an eviction removed the file before we had its lock
    try:
        yield True
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder; links are not followed."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return 0
    if not stat.S_ISDIR(found.st_mode):
        return found.st_size
    total = 0
    for folder, _, files in os.walk(path):
        for file in files:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(folder, file)).st_size
    return total


def _remove(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISDIR(found.st_mode):
        shutil.rmtree(path)
    else:
        path.unlink()
