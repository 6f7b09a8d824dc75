"""The hub's part of a backup: its storage is opened in a folder of our own, and read by the hub's own accessors."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from trimtab.cli.backup_archive import HUB
from trimtab.cli.codes import NOT_FOUND, Problem
from trimtab.cli.hub_proto import loaded
from trimtab.cli.restore_hub_plan import files_of
from trimtab.cli.restore_plan import Name, name_of
from trimtab.cli.systems import NoSystem, load
from trimtab.hub.contract import ORGANIZATION
from trimtab.hub.offline import Kept, Untold, contents
from trimtab.hub.storage.contract import StorageUnavailable
from trimtab.hub.storage.snapshot import hub_snapshot
from trimtab.hub.storage.sqlite import SqliteStorage
from trimtab.storage.blobs import BlobMissing, Blobs, parse_digest


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What an archive has of the hub."""

    kept: dict[Name, Kept] = {}
    untold: tuple[Untold, ...] = ()
    blobs: Blobs | None = None
    """The bytes of files; None when there is nothing of the hub."""

    async def missing(self, kept: Kept) -> dict[str, str]:
        """The files of a resource whose bytes are not there, by their digests."""
        found: dict[str, str] = {}
        if self.blobs is None:
            return found
        for digest, name in files_of(kept).items():
            try:
                await self.blobs.stat(parse_digest(digest))
            except BlobMissing:
                found[digest] = name
        return found


@contextlib.asynccontextmanager
async def hub_part(folder: Path, operators: Sequence[Path], protos: Sequence[str]) -> AsyncIterator[Part]:
    """Of the archive that was unpacked there."""
    path = folder / HUB
    if not path.is_file():
        yield Part()
        return
    with hub_snapshot(path) as snapshot:
        types = snapshot.types()
    storage = SqliteStorage(path)
    try:
        await storage.ready()
        own = {type_: count for (organization, type_), count in types.items() if organization == ORGANIZATION}
        found = await contents(storage, _kinds(operators, protos), own)
        others = [
            Untold(f"{type_} of the organization {organization}", count, "no server serves it")
            for (organization, type_), count in types.items()
            if organization != ORGANIZATION
        ]
        kept = {name_of(each.document): each for each in found.resources}
        yield Part(kept=kept, untold=(*found.untold, *others), blobs=storage.blobs)
    except StorageUnavailable as error:
        raise Problem(f"the hub's storage in the archive cannot be read: {error}") from None
    finally:
        await storage.close()


def _kinds(operators: Sequence[Path], protos: Sequence[str]) -> list[Any]:
    try:
        return [
            *(kind for system in load("all", operators) for kind in system.hub),
            *(loaded(each) for each in protos),
        ]
    except NoSystem as error:
        raise Problem(str(error), NOT_FOUND) from None
