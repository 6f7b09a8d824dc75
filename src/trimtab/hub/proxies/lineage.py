"""Where a resource was synced from is an annotation that only those see and write who ask for it (`include_lineage`).

    get, list, watch, apply's answer    with: shown                without: taken out, and out of managedFields
    apply, create                       with: stored as given      without: dropped
    apply, update                       with: stored as given      without: the stored one stays, whatever was sent

White labels are views on the same rows, so the key that is stored is always the same one, and a view shows its own. The keys
of other views are nobody's to write: what stood there would be taken for lineage by those who look through them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from trimtab.hub.contract import (
    ApplyOptions,
    DeleteOptions,
    GetOptions,
    Hub,
    HubBatch,
    HubChange,
    HubList,
    ListOptions,
    Missing,
    Stale,
    WatchOptions,
)
from trimtab.hub.proxies import lineage_fields as fields
from trimtab.hub.proxies.passing import Passing, closing
from trimtab.model.hub import lineage_key
from trimtab.model.scheme import SUFFIX

ATTEMPTS = 16
"""How often an update without a condition meets another writer before it gives up."""


class Lineage(Passing):
    """`key` is the annotation as users of this view see it, `kept` as it is stored, `others` as further views have it."""

    def __init__(self, inner: Any, key: str, kept: str = lineage_key(SUFFIX), *, others: Sequence[str] = ()) -> None:
        super().__init__(inner)
        self._key = key
        self._kept = kept
        self._others = tuple(set(others) - {key, kept})

    async def get(self, name: str, options: GetOptions) -> Hub:
        return self._shown(await super().get(name, options), options.include_lineage)

    async def list(self, options: ListOptions) -> HubList:
        page = await super().list(options)
        items = [self._shown(hub, options.include_lineage) for hub in page.items]
        return msgspec.structs.replace(page, items=items)

    async def watch(self, options: WatchOptions, since: int) -> AsyncIterator[HubBatch]:
        asked = options.include_lineage
        async with closing(super().watch(options, since)) as batches:
            async for batch in batches:
                changes = tuple(
                    HubChange(
                        op=change.op,
                        hub=self._shown(change.hub, asked),
                        before=None if change.before is None else self._shown(change.before, asked),
                    )
                    for change in batch.changes
                )
                yield HubBatch(revision=batch.revision, changes=changes)

    async def delete(self, name: str, options: DeleteOptions) -> None:
        try:
            await super().delete(name, options)
        except Stale as stale:
            if stale.current is not None:
                raise Stale(str(stale), self._shown(stale.current, options.include_lineage)) from None
            raise

    async def apply(self, hub: Hub, options: ApplyOptions) -> Hub:
        for other in self._others:
            hub = fields.without(hub, other)
        try:
            applied = await (self._given(hub, options) if options.include_lineage else self._without(hub, options))
        except Stale as stale:
            if stale.current is not None:
                raise Stale(str(stale), self._shown(stale.current, options.include_lineage)) from None
            raise
        return self._shown(applied, options.include_lineage)

    async def _given(self, hub: Hub, options: ApplyOptions) -> Hub:
        if self._key != self._kept:
            hub = fields.renamed(fields.without(hub, self._kept), self._key, self._kept)
        return await super().apply(hub, options)

    async def _without(self, hub: Hub, options: ApplyOptions) -> Hub:
        hub = fields.without(fields.without(hub, self._key), self._kept)
        if options.expect == 0:
            return await super().apply(hub, options)
        for attempt in range(ATTEMPTS):
            stored = await self._stored(hub, options)
            at = 0 if stored is None else int(stored["metadata"].get("resourceVersion") or 0)
            if options.expect is not None and at != options.expect:
                raise Stale(f"{hub['metadata'].get('name', '')} is not at the expected revision", stored)
            whole = hub if stored is None else fields.kept(hub, stored, self._kept)
            try:
                return await super().apply(whole, msgspec.structs.replace(options, expect=at))
            except Stale:
                if options.expect is not None or attempt + 1 == ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    async def _stored(self, hub: Hub, options: ApplyOptions) -> Hub | None:
        """What is there now. The revision in it makes the write safe: between the two nobody can write unseen."""
        asked = GetOptions(organization=options.organization, project=options.project, include_lineage=True)
        try:
            return await super().get(str(hub["metadata"].get("name", "")), asked)
        except Missing:
            return None

    def _shown(self, hub: Hub, asked: bool) -> Hub:
        for other in self._others:
            hub = fields.without(hub, other)
        if not asked:
            hub = fields.without(hub, self._kept)
            return hub if self._key == self._kept else fields.without(hub, self._key)
        return hub if self._key == self._kept else fields.renamed(hub, self._kept, self._key)
