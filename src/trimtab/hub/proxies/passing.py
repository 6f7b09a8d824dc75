"""The proxy that does nothing: what a proxy does not change, it inherits from here."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from trimtab.hub.contract import (
    ApplyOptions,
    DeleteOptions,
    GetOptions,
    Hub,
    HubBatch,
    HubList,
    HubStatus,
    ListOptions,
    StatusOptions,
    WatchOptions,
)

if TYPE_CHECKING:
    from trimtab.hub.storage.contract import Snapshot

B = TypeVar("B")


class Passing:
    """Passes every call on. `inner` is a `Watched` accessor; only one that keeps versions has `published`, too."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def get(self, name: str, options: GetOptions) -> Hub:
        found: Hub = await self.inner.get(name, options)
        return found

    async def list(self, options: ListOptions) -> HubList:
        page: HubList = await self.inner.list(options)
        return page

    async def apply(self, hub: Hub, options: ApplyOptions) -> Hub:
        applied: Hub = await self.inner.apply(hub, options)
        return applied

    async def delete(self, name: str, options: DeleteOptions) -> None:
        await self.inner.delete(name, options)

    async def status(self, name: str, options: StatusOptions) -> HubStatus:
        status: HubStatus = await self.inner.status(name, options)
        return status

    def watch(self, options: WatchOptions, since: int) -> AsyncIterator[HubBatch]:
        batches: AsyncIterator[HubBatch] = self.inner.watch(options, since)
        return batches

    async def horizon(self) -> tuple[int, int]:
        newest: tuple[int, int] = await self.inner.horizon()
        return newest

    async def published(self, name: str, options: GetOptions) -> Sequence[Snapshot]:
        """The published versions, oldest first. A body is a spec without `sharing`; none where none are kept. Of one with a
        `version` only that is wanted, and others may be left out: there may be thousands."""
        below = getattr(self.inner, "published", None)
        return () if below is None else await below(name, options)


@contextlib.asynccontextmanager
async def closing(batches: AsyncIterator[B]) -> AsyncIterator[AsyncIterator[B]]:
    """A watch that ends below when it ends here, and not when somebody collects the garbage."""
    try:
        yield batches
    finally:
        close = getattr(batches, "aclose", None)
        if close is not None:
            await close()
