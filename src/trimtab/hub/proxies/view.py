"""The same resources under another group: what comes from below is of one group, and is shown as of this view's.

White labels are such views, over one accessor and one cache. Annotations of our own are stored under one key, and have the
view's own suffix in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
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
    Stale,
    WatchOptions,
)
from trimtab.hub.proxies import lineage_fields as fields
from trimtab.hub.proxies.passing import Passing, closing
from trimtab.model.kind import Kind


class View(Passing):
    """`renamed`: annotations as they are stored → as they are shown."""

    def __init__(self, inner: Any, kind: Kind, renamed: Mapping[str, str] | None = None) -> None:
        super().__init__(inner)
        self._renamed = dict(renamed or {})
        self._names = {"apiVersion": kind.api_version, "kind": kind.kind}

    async def get(self, name: str, options: GetOptions) -> Hub:
        return self._shown(await super().get(name, options))

    async def list(self, options: ListOptions) -> HubList:
        page = await super().list(options)
        return msgspec.structs.replace(page, items=[self._shown(hub) for hub in page.items])

    async def apply(self, hub: Hub, options: ApplyOptions) -> Hub:
        for kept, shown in self._renamed.items():
            hub = fields.renamed(hub, shown, kept)
        try:
            return self._shown(await super().apply(hub, options))
        except Stale as stale:
            raise self._stale(stale) from None

    async def delete(self, name: str, options: DeleteOptions) -> None:
        try:
            await super().delete(name, options)
        except Stale as stale:
            raise self._stale(stale) from None

    async def watch(self, options: WatchOptions, since: int) -> AsyncIterator[HubBatch]:
        async with closing(super().watch(options, since)) as batches:
            async for batch in batches:
                changes = tuple(
                    HubChange(
                        op=change.op,
                        hub=self._shown(change.hub),
                        before=None if change.before is None else self._shown(change.before),
                    )
                    for change in batch.changes
                )
                yield HubBatch(revision=batch.revision, changes=changes)

    def _stale(self, stale: Stale) -> Stale:
        return stale if stale.current is None else Stale(str(stale), self._shown(stale.current))

    def _shown(self, hub: Hub) -> Hub:
        for kept, shown in self._renamed.items():
            hub = fields.renamed(hub, kept, shown)
        return {**hub, **self._names}
