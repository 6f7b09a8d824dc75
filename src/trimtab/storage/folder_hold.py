"""Holding on to blobs of a folder while they are copied, although their owners may let go of them meanwhile.

A held blob has a second name, in a folder beside the shards. A collection removes the first name only, so the bytes stay.
Holds of programs that died are known by their lock, which died with them, and are removed by the next hold.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from trimtab.storage.blobs import Digest

PREFIX = "hold-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Held(msgspec.Struct, frozen=True):
    """A blob that stays until the hold ends."""

    digest: Digest
    path: Path
    size: int
    media_type: str = ""
    owners: tuple[str, ...] = ()


def present(root: Path) -> dict[str, bool]:
    """The blobs of a folder, as hexadecimal digits; whether someone pins them."""
    found: dict[str, bool] = {}
    shards = root / "sha256"
    if not shards.is_dir():
        return found
    for shard in sorted(shards.iterdir()):
        if len(shard.name) == 2 and not shard.is_symlink() and shard.is_dir():
            names = set(os.listdir(shard))
            found |= {name: f"{name}.pins" in names for name in names if is_name(name)}
    return found


@contextlib.contextmanager
def holding(root: Path, names: Iterable[str]) -> Iterator[list[Held]]:
    """Those of the blobs that are still there."""
    _sweep(root)
    folder, lock = _begun(root)
    try:
        yield [held for name in sorted(names) if (held := _held(root, folder, name)) is not None]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def is_name(name: str) -> bool:
    return len(name) == 64 and set(name) <= set("0123456789abcdef")


def _begun(root: Path) -> tuple[Path, int]:
    while True:
        folder = root / f"{PREFIX}{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        with contextlib.suppress(FileNotFoundError):  # another hold took it for a dead one before we had the lock
            lock = os.open(folder, _FOLDER)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.is_dir():
                return folder, lock
            os.close(lock)


def _held(root: Path, folder: Path, name: str) -> Held | None:
    shard = root / "sha256" / name[:2]
    path = folder / name
    try:
        os.link(shard / name, path, follow_symlinks=False)
        if path.is_symlink():
            return None
        size = path.stat().st_size
    except FileNotFoundError:
        return None
    return Held(Digest(f"sha256:{name}"), path, size, _text(shard / f"{name}.type"), tuple(_owners(shard, name)))


def _owners(shard: Path, name: str) -> Iterator[str]:
    with contextlib.suppress(FileNotFoundError):
        for note in sorted((shard / f"{name}.pins").iterdir()):
            if owner := _text(note):
                yield owner


def _text(path: Path) -> str:
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        return file.read(4096).decode(errors="replace")
    return ""


def _sweep(root: Path) -> None:
    for stale in root.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = os.open(stale, _FOLDER)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(stale, ignore_errors=True)
            finally:
                os.close(lock)
