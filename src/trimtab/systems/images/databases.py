"""Where the vulnerability database is. It travels as a blob, and the ConfigMap `trimtab-system/images-database` names it.

Flow: `publish` puts a file as a blob, pins it, and writes its name; whoever scans reads the name (`current`) and has the
blob brought into scratch, once for all who use it (`Databases`). The database before stays pinned, so that two can be
compared and a scan that just began can go on; older ones are let go.

Guarantees: what the ConfigMap names is pinned before it is named. Who says on which database the new one is built replaces
that one and no other: of two who add to the same one at once, the second is refused (`Overtaken`) and loses nothing. Who
does not say so replaces whatever is there. What a killed `publish` did not let go of is let go by the next (`retired`).

Caveat: one that was killed between pinning and writing leaves a pin that nobody knows of, until the same file is published.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.client.protocol import Client
from trimtab.model.clock import Clock, SystemClock, format_time
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.objects import uncached
from trimtab.runtime.system import NAMESPACE
from trimtab.storage.blobs import CHUNK, BlobMissing, Blobs, Digest, parse_digest
from trimtab.storage.scratch import Scratch
from trimtab.storage.threads import in_thread
from trimtab.systems.images.vulnerabilities.database import open_database

NAME = "images-database"
MEDIA_TYPE = "application/vnd.trimtab.vulnerabilities+sqlite3"
SCRATCH, SCRATCH_BYTES = "vulnerabilities", 4 << 30
ATTEMPTS = 8


class NoDatabase(Exception):  # noqa: N818 - it reads as what happened
    """There is nothing to scan with. The text says what to do."""

    def __init__(self, why: str = "no vulnerability database was imported") -> None:
        super().__init__(f"{why}: import one with `trimtab images import-db`")


class Overtaken(Exception):  # noqa: N818 - it reads as what happened
    """Another database than the one that this was built on is current now: build it on that one."""

    def __init__(self, current: DatabaseRef | None) -> None:
        super().__init__("another database was published meanwhile: import again, into that one")
        self.kept = (current.blob, current.previous) if current else ()


class DatabaseRef(msgspec.Struct, frozen=True, kw_only=True):
    """`blob` is the file, `digest` names its contents. `previous` is the file before, empty for none."""

    blob: Digest
    digest: str
    previous: str = ""
    imported_at: str = ""
    advisories: int = 0


class Opened(NamedTuple):
    """A database to scan with: its file, which stays while the block runs, and the digest of its contents."""

    path: Path
    digest: str


async def current(client: Client) -> DatabaseRef | None:
    """The database of this cluster; None when nobody imported one, or when what is written there is no name of one."""
    found = await _config_map(client)
    return None if found is None else _ref(found)


async def publish(
    client: Client,
    blobs: Blobs,
    path: Path,
    *,
    base: Digest | UnsetType | None = UNSET,
    clock: Clock | None = None,
) -> DatabaseRef:
    """Make the file the database of the cluster. `base` is the blob that it was built on, None for none. Overtaken when
    that is not current any more; DatabaseError, BlobError, StatusError; OSError when it cannot be read.

    When the contents are what they were, nothing changes, unless the blob is lost.
    """
    digest, advisories = await in_thread(_described, path)
    known = await current(client)
    if known is not None and known.digest == digest:
        with contextlib.suppress(BlobMissing):
            await blobs.pin(known.blob, _owner(known.blob))
            return known
    blob = await blobs.put(_chunks(path), media_type=MEDIA_TYPE)
    await blobs.pin(blob, _owner(blob))
    now = format_time((clock or SystemClock()).now())
    new = DatabaseRef(blob=blob, digest=digest, imported_at=now, advisories=advisories)
    try:
        ref, retired = await _name(client, new, base)
    except Overtaken as overtaken:
        if blob not in overtaken.kept:
            await blobs.unpin(_owner(blob))
        raise
    for old in retired:
        await blobs.unpin(_owner(old))
    return ref


class Databases:
    """Databases as files of this machine. Made once in a process."""

    def __init__(self, client: Client, blobs: Blobs, scratch: Scratch) -> None:
        self._client, self._blobs = client, blobs
        self._files = scratch.dir(SCRATCH, SCRATCH_BYTES)

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Opened]:
        """The current one. NoDatabase, BlobError."""
        ref = await current(self._client)
        if ref is None:
            raise NoDatabase
        async with self.at(ref.blob) as path:
            yield Opened(path, ref.digest)

    @contextlib.asynccontextmanager
    async def at(self, blob: Digest) -> AsyncIterator[Path]:
        """The file of any of them. NoDatabase when its blob is gone."""
        async with contextlib.AsyncExitStack() as stack:
            try:
                path = await stack.enter_async_context(self._files.fill(blob, partial(self._fetch, blob)))
            except BlobMissing:
                raise NoDatabase(f"the vulnerability database {blob} is gone") from None
            yield path

    async def _fetch(self, blob: Digest, path: Path) -> None:
        """Whole and verified, or not at all: a fill that raises leaves nothing."""
        with path.open("wb") as file:
            async for chunk in self._blobs.open(blob):
                await in_thread(file.write, chunk)


async def _name(client: Client, new: DatabaseRef, base: Digest | UnsetType | None) -> tuple[DatabaseRef, list[Digest]]:
    """Write the name over that of the base, which is whatever is there when none is given; and what nobody needs any more.
    Each write is conditional on what was read."""
    for attempt in range(1, ATTEMPTS + 1):
        held = await _config_map(client)
        before = None if held is None else _ref(held)
        if not isinstance(base, UnsetType) and base != (before.blob if before else None):
            raise Overtaken(before)
        previous = "" if before is None else before.previous if before.blob == new.blob else before.blob
        ref = msgspec.structs.replace(new, previous=previous)
        kept = {ref.blob, ref.previous}
        known = [*_retired(held), *([before.previous] if before and before.previous else [])]
        retired = [Digest(old) for old in dict.fromkeys(known) if old not in kept]
        data = _data(ref, retired)
        try:
            if held is None:
                metadata = ObjectMeta(name=NAME, namespace=NAMESPACE)
                await client.create(ConfigMap(metadata=metadata, data=data))
            else:
                await client.patch(held, held.replace(data=data))
        except StatusError as error:
            if error.code not in (404, 409) or attempt == ATTEMPTS or _has_no_home(error):
                raise
        else:
            return ref, retired
    raise AssertionError("the last attempt returns or raises")


async def _config_map(client: Client) -> ConfigMap | None:
    try:
        return await uncached(client).get(ConfigMap, NAME, NAMESPACE)
    except StatusError as error:
        if error.code != 404:
            raise
        return None


def _data(ref: DatabaseRef, retired: list[Digest]) -> dict[str, str]:
    data = {
        "blob": ref.blob,
        "digest": ref.digest,
        "previous": ref.previous,
        "importedAt": ref.imported_at,
        "advisories": str(ref.advisories),
        "retired": " ".join(retired),
    }
    return {name: value for name, value in data.items() if value}


def _ref(found: ConfigMap) -> DatabaseRef | None:
    data = found.data or {}
    try:
        blob, previous = parse_digest(data.get("blob", "")), data.get("previous", "")
        count = data.get("advisories", "")
        return DatabaseRef(
            blob=blob,
            digest=data.get("digest", ""),
            previous=parse_digest(previous) if previous else "",
            imported_at=data.get("importedAt", ""),
            advisories=int(count) if count.isascii() and count.isdigit() else 0,
        )
    except ValueError:
        return None


def _retired(found: ConfigMap | None) -> list[str]:
    """Those that the publication before let go of, or meant to."""
    names = [] if found is None else (found.data or {}).get("retired", "").split()
    return [name for name in names if _is_digest(name)]


def _is_digest(text: str) -> bool:
    try:
        return bool(parse_digest(text))
    except ValueError:
        return False


def _has_no_home(error: StatusError) -> bool:
    """The namespace is missing: another attempt would end the same."""
    return error.code == 404 and (error.details or {}).get("kind") == "namespaces"


def _described(path: Path) -> tuple[str, int]:
    with open_database(path) as database:
        return database.digest, database.count


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while chunk := await in_thread(file.read, CHUNK):
            yield chunk


def _owner(blob: Digest) -> str:
    return f"images/database/{blob}"
