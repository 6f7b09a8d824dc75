"""`trimtab backup`: one file with all that a data directory holds, of one moment, while its server goes on.

The store's and the hub's snapshots are opened one right after the other, each is of one revision of its own. Blobs are held
before anything is copied, so that what the objects of the snapshot name is in the archive, whoever lets go of it meanwhile.

Everything is made in a folder beside the archive, which gets its name when it is whole and on the disk. What a backup
that was killed left there is removed by the next one of the same name.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import os
import secrets
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

import trimtab
from trimtab.cli.backup_archive import BLOBS, HUB, PIECE, PKI, STORE, Archive, Manifest, Member, opened, write
from trimtab.cli.bar import Bar
from trimtab.cli.codes import FAILED, INTERRUPTED, OK, Problem, complain, told
from trimtab.model.clock import SystemClock, format_time
from trimtab.server.auth.files import UnsafeFileError, read_private
from trimtab.storage.folder_hold import Held, holding, present
from trimtab.store.contract import Unusable
from trimtab.store.snapshot import Snapshot, check, snapshot

if TYPE_CHECKING:
    from trimtab.hub.storage.snapshot import HubSnapshot

ATTEMPTS = 5
MEBIBYTE = 1 << 20


class Options(msgspec.Struct, frozen=True, kw_only=True):
    data_dir: Path
    keys: bool = False
    force: bool = False


def backup(target: Path, options: Options) -> int:
    return finished(lambda: _backup(target, options))


def listed(path: Path) -> int:
    return finished(lambda: _listed(path))


def verified(path: Path) -> int:
    return finished(lambda: _verified(path))


def _backup(target: Path, options: Options) -> None:
    if target.is_dir():
        raise Problem(f"{target} is a folder: name a file in it")
    if os.path.lexists(target) and not options.force:
        raise Problem(f"{target} is there already: name another file, or say --force")
    with Bar("backup") as bar, _workshop(target) as folder, contextlib.ExitStack() as stack:
        store, held = _moment(options.data_dir, stack)
        hub = _hub(options.data_dir, stack)
        store.copy(folder / STORE, lambda done, total: bar.show(done, total, "pages of the store"))
        copies = [_member(STORE, folder / STORE)]
        if hub is not None:
            hub.copy(folder / HUB, lambda done, total: bar.show(done, total, "pages of the hub's storage"))
            copies.append(_member(HUB, folder / HUB))
        keys = dict(_keys(options.data_dir)) if options.keys else {}
        manifest = Manifest(
            trimtab=trimtab.__version__,
            created=format_time(SystemClock().now()),
            revision=store.revision,
            hub_revision=None if hub is None else hub.revision,
            objects=dict(Counter(kept.resource for kept in store.objects())),
            members=(
                *copies,
                *(_content(name, content) for name, content in sorted(keys.items())),
                *(_blob(each) for each in held),
            ),
        )
        blobs = {f"{BLOBS}{each.digest.removeprefix('sha256:')}": each.path for each in held}

        def open_(member: Member) -> IO[bytes]:
            if member.name in keys:
                return io.BytesIO(keys[member.name])
            return blobs.get(member.name, folder / member.name).open("rb")

        unit = manifest.total > 10 * MEBIBYTE
        whole = folder / "archive"
        with open(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as out:
            write(out, manifest, open_, lambda done: _show(bar, done, manifest.total, unit))
            out.flush()
            os.fsync(out.fileno())
        _named(whole, target, options.force)
    print(f"{target}: {_summary(manifest)}, {target.stat().st_size} bytes")
    if not manifest.has_keys:
        print("without keys, certificates and tokens: --with-keys takes them along")


def _moment(data: Path, stack: contextlib.ExitStack) -> tuple[Snapshot, list[Held]]:
    """A state of the store with all the blobs that it names. What is named by a digest may be something else, as an image;
    a blob that was there before the snapshot and is gone after it was collected in between: then another moment is taken."""
    root = data / "blobs"
    for _ in range(ATTEMPTS):
        with contextlib.ExitStack() as attempt:
            before = present(root)
            store = attempt.enter_context(snapshot(data / STORE))
            if not root.is_dir():
                stack.push(attempt.pop_all())
                return store, []
            named = store.digests()
            there = present(root)
            wanted = {name for name, pinned in there.items() if pinned or name in named}
            held = attempt.enter_context(holding(root, wanted | (named & before.keys())))
            if named & before.keys() <= {each.digest.removeprefix("sha256:") for each in held}:
                stack.push(attempt.pop_all())
                return store, held
    raise Problem("blobs are collected faster than they can be held on to: try again")


def _hub(data: Path, stack: contextlib.ExitStack) -> HubSnapshot | None:
    if not (data / HUB).is_file():
        return None
    from trimtab.hub.storage.snapshot import hub_snapshot

    return stack.enter_context(hub_snapshot(data / HUB))


def _member(name: str, path: Path) -> Member:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            found.update(piece)
    return Member(name=name, size=path.stat().st_size, sha256=found.hexdigest())


def _content(name: str, content: bytes) -> Member:
    return Member(name=name, size=len(content), sha256=hashlib.sha256(content).hexdigest())


def _blob(held: Held) -> Member:
    name = held.digest.removeprefix("sha256:")
    return Member(name=BLOBS + name, size=held.size, sha256=name, media_type=held.media_type, owners=held.owners)


def _keys(data: Path) -> Iterator[tuple[str, bytes]]:
    folder = data / "pki"
    if not folder.is_dir():
        raise Problem(f"there are no keys in {data}: no server was started there yet")
    for path in sorted(folder.iterdir()):
        if not path.name.startswith("."):  # what is just being written
            yield PKI + path.name, read_private(path)


@contextlib.contextmanager
def _workshop(target: Path) -> Iterator[Path]:
    """A folder of ours beside the archive, locked while we live."""
    beside = target.absolute().parent
    for stale in beside.glob(f".{target.name}.*.partial"):
        with contextlib.suppress(OSError):
            if stat.S_ISDIR(stale.lstat().st_mode):
                with _lock(stale):
                    shutil.rmtree(stale, ignore_errors=True)
    folder = beside / f".{target.name}.{secrets.token_hex(6)}.partial"
    folder.mkdir(mode=0o700)
    try:
        with _lock(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _named(whole: Path, target: Path, force: bool) -> None:
    if force:
        os.replace(whole, target)
    else:
        try:
            os.link(whole, target)  # fails when somebody else made it meanwhile
        except FileExistsError:
            raise Problem(f"{target} was made by somebody else meanwhile: name another file") from None
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            os.rename(whole, target)
    descriptor = os.open(target.absolute().parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _listed(path: Path) -> None:
    from trimtab.cli.tables import Printer

    with opened(path) as archive:
        manifest = archive.manifest
    print(f"made {manifest.created} by Trimtab {manifest.trimtab}: {_summary(manifest)}")
    rows = [(name, str(count)) for name, count in sorted(manifest.objects.items())]
    if rows:
        Printer(("RESOURCE", "OBJECTS")).add(rows)
    files = [(member.name, str(member.size), f"sha256:{member.sha256}") for member in manifest.members]
    Printer(("FILE", "SIZE", "DIGEST")).add(files)


def _verified(path: Path) -> None:
    """Every byte is read; databases are looked through by SQLite, in a folder beside the archive."""
    with Bar("verify") as bar, _workshop(path) as folder, opened(path) as archive:
        manifest = archive.manifest
        room(folder, sum(member.size for member in manifest.members if member.name in (STORE, HUB)))
        for member in unpacked(archive, folder, bar, only=(STORE, HUB)):
            check(folder / member.name)
        with snapshot(folder / STORE) as store:
            if store.revision != manifest.revision:
                raise Problem(f"{path}: its store is at revision {store.revision}, not at {manifest.revision}")
    print(f"{path}: whole; {_summary(manifest)}")


def unpacked(archive: Archive, folder: Path, bar: Bar, *, only: tuple[str, ...]) -> list[Member]:
    """Write these members into a folder; all others are read and verified too."""
    manifest = archive.manifest
    unit, done = manifest.total > 10 * MEBIBYTE, 0
    found: list[Member] = []
    for member, read in archive.members():
        if member.name in only:
            found.append(member)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(folder / member.name, flags, 0o600), "wb") as out:
                while piece := read(PIECE):
                    out.write(piece)
                out.flush()
                os.fsync(out.fileno())
        done += member.size
        _show(bar, done, manifest.total, unit)
    return found


def room(folder: Path, needed: int) -> None:
    """Problem when the disk has not so many bytes left."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise Problem(f"the backup needs {needed} bytes, and the disk of {folder} has {free} left")


def _show(bar: Bar, done: int, total: int, unit: bool) -> None:
    if unit:
        bar.show(done // MEBIBYTE, total // MEBIBYTE, "MiB")
    else:
        bar.show(done // 1024, total // 1024, "KiB")


def _summary(manifest: Manifest) -> str:
    parts = [f"revision {manifest.revision}", f"{sum(manifest.objects.values())} objects"]
    if manifest.hub_revision is not None:
        parts.append(f"the hub at revision {manifest.hub_revision}")
    if manifest.blobs:
        parts.append(f"{len(manifest.blobs)} blobs")
    if manifest.has_keys:
        parts.append("keys")
    return ", ".join(parts)


def finished(act: Callable[[], None]) -> int:
    """Run it to its exit code."""
    try:
        act()
    except KeyboardInterrupt:
        return INTERRUPTED
    except (Unusable, UnsafeFileError) as error:
        complain(str(error))
        return FAILED
    except Exception as error:
        code, message = told(error)
        complain(message)
        return code
    return OK
