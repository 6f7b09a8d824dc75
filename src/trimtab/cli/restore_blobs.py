"""The blobs of a backup, brought to where a running server has its own, and pinned for the owners that it has now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from trimtab.cli.access import Access, configured
from trimtab.cli.backup_archive import BLOBS, PIECE, STORE, Manifest, Member, Read, opened
from trimtab.cli.bar import Bar
from trimtab.cli.blobs import Place
from trimtab.cli.blobs import opened as opened_blobs
from trimtab.cli.codes import Problem, complain
from trimtab.storage.blobs import Blobs, Digest


async def brought(path: Path, manifest: Manifest, access: Access, where: Place, uids: dict[str, str]) -> bool:
    """Whether all are there. Owners of blobs are named with their uids, which are others now."""
    if not manifest.blobs:
        return True
    try:
        async with opened_blobs(access, _place(access, where)) as place:
            with Bar("blobs") as bar, opened(path) as archive:
                done = 0
                for member, read in archive.members():
                    if member.name.startswith(BLOBS):
                        await _blob(place, member, read, uids)
                        done += 1
                        bar.show(done, len(manifest.blobs))
    except Problem as error:
        complain(f"{len(manifest.blobs)} blobs were not brought back: {error}")
        return False
    return True


def _place(access: Access, place: Place) -> Place:
    """Beside the kubeconfig of a data directory there may be no blobs yet."""
    beside = Path(configured(access).source).parent
    return place if place.url or not (beside / STORE).is_file() else Place(str(beside / "blobs"))


async def _blob(place: Blobs, member: Member, read: Read, uids: dict[str, str]) -> None:
    digest = Digest(f"sha256:{member.sha256}")

    async def pieces() -> AsyncIterator[bytes]:
        while piece := await asyncio.to_thread(read, PIECE):
            yield piece

    await place.put(pieces(), media_type=member.media_type, expected=digest, max_bytes=member.size)
    for owner in member.owners:
        parts = [uids.get(part, part) for part in owner.split("/")]
        await place.pin(digest, "/".join(parts))
