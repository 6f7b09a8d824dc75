"""The controller of VEXSources: it says of each what was read of it, and what could not be; and it holds the blob of one that
names a blob, until the source goes.

What a source names may change without the source: a ConfigMap is looked at every now and then, so that nobody needs the
right to watch them all. `readAt` moves whenever the contents did, and that is what the controller of SBOMs waits for.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from trimtab.model.clock import format_time
from trimtab.runtime import Context, Controller, Request, Result, generation_changed
from trimtab.runtime.finalizers import finalizer
from trimtab.runtime.objects import uid_of
from trimtab.runtime.status import ready, write_status
from trimtab.storage.blobs import BlobMissing, Blobs, parse_digest
from trimtab.systems.images.kinds import VEXSource, VEXSourceStatus

if TYPE_CHECKING:
    from trimtab.systems.images.vex_sources import SourceRead

FINALIZER = "images.trimtab.dev/vex"
LOOK_EVERY = 60.0
"""Seconds between looks at what a source names."""


class VexController(Controller[VEXSource]):
    when = generation_changed
    echo = False

    def __init__(self, context: Context) -> None:
        self._context = context
        self._contents: dict[Request, str] = {}

    async def reconcile(self, request: Request) -> Result | None:
        source = await self.client.find(VEXSource, request.name, request.namespace)
        if source is None:
            self._contents.pop(request, None)
            return None
        return await finalizer(self.client, source, FINALIZER, apply=self._read, cleanup=self._let_go)

    async def _read(self, source: VEXSource) -> Result | None:
        from trimtab.systems.images.vex_sources import read_source

        await self._hold(source)
        found = await read_source(self.client, self._blobs, source, workers=self._context.workers)
        request = Request(source.namespace, source.name)
        contents = f"{uid_of(source)}/{source.metadata.generation}/{_contents(source, found)}"
        is_new = self._contents.get(request) != contents
        await write_status(self.client, source, self._status(source, found, is_new=is_new))
        self._contents[request] = contents
        is_to_change = bool(source.spec.config_map) or (found.problem and not found.digest)
        return Result(requeue_after=LOOK_EVERY) if is_to_change else None

    async def _hold(self, source: VEXSource) -> None:
        """The blob that it names is pinned, and no other that it named before. The first pin makes the blob young, so that
        nobody collects it between the second and the third step."""
        owner = _owner(source)
        with contextlib.suppress(BlobMissing, ValueError):  # reading says so
            digest = parse_digest(source.spec.blob or "")
            await self._blobs.pin(digest, owner)
            await self._blobs.unpin(owner)
            await self._blobs.pin(digest, owner)
            return
        await self._blobs.unpin(owner)

    async def _let_go(self, source: VEXSource) -> None:
        await self._blobs.unpin(_owner(source))

    @property
    def _blobs(self) -> Blobs:
        if self._context.blobs is None:
            raise ValueError("image discovery needs a place for blobs")
        return self._context.blobs

    def _status(self, source: VEXSource, found: SourceRead, *, is_new: bool) -> VEXSourceStatus:
        before = source.status or VEXSourceStatus()
        generation = source.metadata.generation or UNSET
        ok, reason, message = _verdict(source, found)
        return before.replace(
            conditions=ready(before.conditions, self.clock, generation, ok, reason, message),
            documents=found.documents,
            statements=found.statements,
            skipped=found.skipped or UNSET,
            read_at=format_time(self.clock.now()) if is_new or not before.read_at else before.read_at,
        )


def _owner(source: VEXSource) -> str:
    """As `trimtab images import-vex` names it, before it knows a uid."""
    return f"images/VEXSource/{source.namespace}/{source.name}"


def _verdict(source: VEXSource, found: SourceRead) -> tuple[bool, str, str]:
    if found.problem:
        return False, "Unreadable", found.problem
    if not source.spec.enabled:
        return True, "Disabled", "it can be read, and does not count: spec.enabled is false"
    if found.skipped:
        return True, "PartlyRead", f"not all of it could be read: {found.skipped[0]}"
    return True, "Read", ""


def _contents(source: VEXSource, found: SourceRead) -> str:
    """What may change without the source: a blob never does, it may only be there or not."""
    if source.spec.config_map:
        return hashlib.sha256(msgspec.msgpack.encode(found)).hexdigest()
    return found.problem
