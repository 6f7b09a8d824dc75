"""A client that writes only while the lease is held. Reads pass: a candidate that stands by keeps its caches warm."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Any

from trimtab.client.protocol import AnyKind, Client, Event, Listing, Object, Preconditions, Query, Ref
from trimtab.runtime.election import Election


class Guarded:
    """Fulfils `Client`. A write raises NotLeading when the lease is not surely held, before or during it."""

    def __init__(self, client: Client, election: Election) -> None:
        self._client = client
        self._election = election

    def guard(self) -> AbstractAsyncContextManager[None]:
        """For writes by another client that hold to the same lease: `async with guarded.guard(): …`."""
        return self._election.guard()

    async def get(self, kind: AnyKind, name: str, namespace: str = "") -> Any:
        return await self._client.get(kind, name, namespace)

    async def list(self, kind: AnyKind, query: Query = Query()) -> Listing[Any]:  # noqa: B008 - frozen
        return await self._client.list(kind, query)

    def watch(self, kind: AnyKind, query: Query, since: str) -> AsyncGenerator[Event[Any], None]:
        return self._client.watch(kind, query, since)

    async def create(self, obj: Object, *, dry_run: bool = False) -> Any:
        async with self._election.guard():
            return await self._client.create(obj, dry_run=dry_run)

    async def apply(
        self, partial: Object, *, manager: str, force: bool = False, subresource: str = "", dry_run: bool = False
    ) -> Any:
        async with self._election.guard():
            return await self._client.apply(
                partial, manager=manager, force=force, subresource=subresource, dry_run=dry_run
            )

    async def patch(self, old: Object, new: Object, *, subresource: str = "", dry_run: bool = False) -> Any:
        async with self._election.guard():
            return await self._client.patch(old, new, subresource=subresource, dry_run=dry_run)

    async def delete(
        self, ref: Ref, *, preconditions: Preconditions | None = None, propagation: str = "", dry_run: bool = False
    ) -> Object | None:
        async with self._election.guard():
            return await self._client.delete(ref, preconditions=preconditions, propagation=propagation, dry_run=dry_run)

    async def close(self) -> None:
        await self._client.close()
