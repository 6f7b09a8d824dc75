"""`trimtab restore` into a new data directory: a server that is started there goes on from the backup.

Everything is unpacked and verified in a folder beside the data directory, which gets its name when it is whole and on the
disk: a restore that was killed leaves no directory that a server would start on.

The revision. A lost server went on after the backup, so clients have seen revisions that the copy does not know. If it went
on from its own revision, it would give out the same ones again for other changes, and a client that resumes its watch would
miss some. So the copy goes on at a revision that is after all that were ever given out, and its log is empty: a watch
that resumes gets 410, as after a compaction, and its client lists anew. Objects keep uids and revisions that they had.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path

from trimtab.cli.backup import finished, room
from trimtab.cli.backup_archive import BLOBS, HUB, PIECE, PKI, STORE, Archive, Manifest, Member, Read, opened
from trimtab.cli.bar import Bar
from trimtab.cli.codes import Problem
from trimtab.storage.blobs import Digest
from trimtab.storage.folder import FolderBlobs
from trimtab.store.snapshot import advance, after_restore, check, snapshot

BUNDLE = ("configmaps", "kube-root-ca.crt")
"""Holds the authority of the server: one that has new keys makes it anew."""


def offline(path: Path, data_dir: Path) -> int:
    return finished(lambda: _offline(path, data_dir))


def _offline(path: Path, data_dir: Path) -> None:
    target = Path(os.path.abspath(data_dir))
    _check_free(target)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = target.parent / f".{target.name}.{secrets.token_hex(6)}.restoring"
    folder.mkdir(mode=0o700)
    try:
        with Bar("restore") as bar, opened(path) as archive:
            manifest = archive.manifest
            room(folder, manifest.total)
            asyncio.run(_unpack(archive, folder, bar))
        revision = _prepared(folder, manifest, path)
        _sync(folder)
        _check_free(target)
        try:
            os.rename(folder, target)  # over an empty folder too, and over no other
        except OSError as error:
            raise Problem(
                f"{data_dir} cannot be put in its place ({error.strerror}): "
                "where a disk is mounted, name a folder on it that is not there yet"
            ) from None
        _sync_one(target.parent)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    print(f"{data_dir}: {sum(manifest.objects.values())} objects of revision {manifest.revision}, now at {revision}")
    if not manifest.has_keys:
        print("the backup has no keys: the server makes new ones, and old kubeconfigs and tokens are of no use")
    print(f"start it: trimtab up --data-dir {data_dir}")


def _check_free(target: Path) -> None:
    if target.is_symlink():
        raise Problem(f"{target} is a symbolic link: name the folder itself")
    if not target.exists():
        return
    if not target.is_dir() or any(target.iterdir()):
        raise Problem(
            f"{target} is not empty: a restore never overwrites; name a folder that is not there yet, "
            "or bring objects back to a running server with --server"
        )


async def _unpack(archive: Archive, folder: Path, bar: Bar) -> None:
    blobs = FolderBlobs(folder / "blobs", max_bytes=max((m.size for m in archive.manifest.blobs), default=0))
    done, total = 0, archive.manifest.total
    for member, read in archive.members():
        if member.name.startswith(BLOBS):
            await put(blobs, member, read)
            for owner in member.owners:
                await blobs.pin(Digest(f"sha256:{member.sha256}"), owner)
        else:
            await asyncio.to_thread(_write, folder / member.name, read)
        done += member.size
        bar.show(done // 1024, total // 1024, "KiB")


async def put(blobs: FolderBlobs, member: Member, read: Read) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        while piece := await asyncio.to_thread(read, PIECE):
            yield piece

    await blobs.put(pieces(), media_type=member.media_type, expected=Digest(f"sha256:{member.sha256}"))


def _write(path: Path, read: Read) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as out:
        while piece := read(PIECE):
            out.write(piece)
        out.flush()
        os.fsync(out.fileno())


def _prepared(folder: Path, manifest: Manifest, path: Path) -> int:
    """Databases looked through and moved on. The revision that the store is at then."""
    check(folder / STORE)
    with snapshot(folder / STORE) as store:
        if store.revision != manifest.revision:
            raise Problem(f"{path}: its store is at revision {store.revision}, not at {manifest.revision}")
    now = time.time()
    revision = after_restore(manifest.revision, now)
    advance(folder / STORE, revision, without=() if manifest.has_keys else (BUNDLE,))
    if (folder / HUB).is_file():
        from trimtab.hub.storage.snapshot import advance_hub, hub_snapshot

        check(folder / HUB)
        with hub_snapshot(folder / HUB) as hub:
            at = hub.revision
        advance_hub(folder / HUB, after_restore(at, now))
    for left in folder.iterdir():  # of SQLite and of the lock
        if re.fullmatch(r"(store|hub)\.db(-wal|-shm|\.lock)", left.name):
            left.unlink()
    return revision


def _sync(folder: Path) -> None:
    """Names as well as bytes are on the disk before the folder gets its own."""
    for each in (STORE, HUB):
        if (folder / each).is_file():
            _sync_one(folder / each)
    for where in (folder / PKI, folder):
        if where.is_dir():
            _sync_one(where)


def _sync_one(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
