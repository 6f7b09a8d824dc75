"""Lets go of bytes that nobody names any more: those of deleted resources, and of files that a write took out of a spec; and
removes what nobody holds.

It follows the storage service's log from its oldest entry on. So a replica that was down, or died between a write and this,
catches up when it comes back; to let go twice changes nothing.

Guarantee: bytes that a resource or one of its published versions names stay pinned. Before it lets go it looks whether
somebody names them by now, and afterwards it looks again: who records a digest pins it after the write, so one of the two
sees the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from trimtab.hub.artifacts.endpoint import owner
from trimtab.hub.artifacts.naming import digests_in, published_digests
from trimtab.hub.storage.contract import RowChange, RowKey, Storage, StorageUnavailable
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.logs import log
from trimtab.storage.blobs import BlobError, BlobMissing, parse_digest
from trimtab.store.contract import Gone, Op

RETRY = 5.0
COLLECT_EVERY = 3600.0
UNNAMED_FOR = 86400.0
"""Seconds for which bytes that nobody holds are kept: somebody may be about to."""


async def release_deleted(
    storage: Storage,
    *,
    organization: str,
    types: Sequence[str],
    clock: Clock | None = None,
    released: Callable[[str], None] | None = None,
) -> None:
    """Until cancelled. `types` are the rows that have files; `released` hears of every uid whose bytes were let go of."""
    if not types:
        return
    clock = clock or SystemClock()
    async with asyncio.TaskGroup() as group:
        group.create_task(_follow(storage, organization, types, clock, released), name="artifacts let go")
        group.create_task(_collect(storage, clock), name="artifacts collected")


async def _collect(storage: Storage, clock: Clock) -> None:
    """Every replica does, at its own times: to collect twice removes nothing more."""
    while True:
        await clock.sleep(COLLECT_EVERY)
        try:
            collected = await storage.blobs.collect(grace=UNNAMED_FOR)
            log.info("files that nobody names were removed", count=collected.count, bytes=collected.bytes)
        except BlobError as error:
            log.warning("files that nobody names wait to be removed", error=str(error))


async def _follow(
    storage: Storage,
    organization: str,
    types: Sequence[str],
    clock: Clock,
    released: Callable[[str], None] | None,
) -> None:
    since: int | None = None
    while True:
        try:
            if since is None:
                since = (await storage.horizon())[1]
            async for batch in storage.changes(organization, types, since):
                for change in batch.changes:
                    uid = change.row.envelope.get("uid")
                    if uid and await _let_go(storage, change, uid) and released is not None:
                        released(uid)
                since = batch.revision
        except Gone:
            since = None
            continue
        except (StorageUnavailable, BlobError) as error:
            log.warning("bytes that nobody names wait to be let go of", error=str(error))
        await clock.sleep(RETRY)


async def _let_go(storage: Storage, change: RowChange, uid: str) -> bool:
    if change.op is Op.DELETE:
        await storage.blobs.unpin(owner(uid))
        return True
    if change.before is None:
        return False
    dropped = digests_in(change.before.body) - digests_in(change.row.body)
    if dropped:
        dropped -= await _named(storage, change.row.key, uid)
    for digest in dropped:
        await storage.blobs.unpin(owner(uid), parse_digest(digest))
    for digest in dropped & await _named(storage, change.row.key, uid) if dropped else ():
        try:
            await storage.blobs.pin(parse_digest(digest), owner(uid))
        except BlobMissing:
            log.error("the bytes of an artifact are gone", uid=uid, digest=digest)
    return bool(dropped)


async def _named(storage: Storage, key: RowKey, uid: str) -> set[str]:
    """Every digest that the resource and its published versions name now; none when it is gone, or another by now."""
    row = await storage.get(key)
    if row is None or row.envelope.get("uid") != uid:
        return set()
    return digests_in(row.body) | await published_digests(storage, key)
