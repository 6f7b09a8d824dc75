"""A service in memory that keeps revisions, for tests of the cache above it. It can be made slow, and can forget."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

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
    StatusOptions,
    WatchOptions,
)
from trimtab.store.contract import Gone, Op


class Service:
    """`pause` is awaited between looking and answering, and before and after writing: where races are made."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Hub] = {}
        self.revision = 0
        self.oldest = 0
        self.gets = 0
        self.lists = 0
        self.log: list[HubChange] = []
        self.pause: Callable[[str], Awaitable[None]] = _nothing
        self.moved = asyncio.Event()

    async def get(self, name: str, options: GetOptions) -> Hub:
        self.gets += 1
        await self.pause("before get")
        found = self.rows.get((options.project, name))
        await self.pause("get")
        if found is None:
            raise Missing(f"{name} is not there")
        return found

    async def list(self, options: ListOptions) -> HubList:
        self.lists += 1
        await self.pause("before list")
        items = [
            hub
            for (project, name), hub in sorted(self.rows.items())
            if (options.all_projects or project == options.project) and options.name in ("", name)
        ]
        page = HubList(items=items, revision=self.revision)
        await self.pause("list")
        return page

    async def apply(self, hub: Hub, options: ApplyOptions) -> Hub:
        await self.pause("before apply")
        key = (options.project, hub["metadata"]["name"])
        before = self.rows.get(key)
        at = 0 if before is None else int(before["metadata"]["resourceVersion"])
        if options.expect is not None and options.expect != at:
            raise Stale("it changed", before)
        applied = self.put(key, hub)
        await self.pause("apply")
        return applied

    def put(self, key: tuple[str, str], hub: Hub) -> Hub:
        """Also what another client of the service does, without us."""
        self.revision += 1
        metadata = {**hub.get("metadata", {}), "name": key[1], "project": key[0], "resourceVersion": str(self.revision)}
        applied = {**hub, "metadata": metadata}
        before, self.rows[key] = self.rows.get(key), applied
        self._logged(HubChange(op=Op.PUT, hub=applied, before=before))
        return applied

    async def delete(self, name: str, options: DeleteOptions) -> None:
        await self.pause("before delete")
        before = self.rows.pop((options.project, name), None)
        if before is None:
            raise Missing(f"{name} is not there")
        self.revision += 1
        last = {**before, "metadata": {**before["metadata"], "resourceVersion": str(self.revision)}}
        self._logged(HubChange(op=Op.DELETE, hub=last, before=before))
        await self.pause("delete")

    async def status(self, name: str, options: StatusOptions) -> dict[str, Any]:
        return dict(self.rows[options.project, name].get("status", {}))

    async def watch(self, options: WatchOptions, since: int) -> AsyncIterator[HubBatch]:
        while True:
            if since < self.oldest:
                raise Gone(since, self.oldest)
            news = [change for change in self.log if int(change.hub["metadata"]["resourceVersion"]) > since]
            if news:
                since = self.revision
                yield HubBatch(revision=since, changes=tuple(news))
                continue
            self.moved.clear()
            await self.moved.wait()

    async def horizon(self) -> tuple[int, int]:
        return self.revision, self.oldest

    def forget(self) -> None:
        """The log's window moves to now."""
        self.oldest = self.revision
        self.log.clear()
        self.moved.set()

    def _logged(self, change: HubChange) -> None:
        self.log.append(change)
        self.moved.set()


async def _nothing(where: str) -> None:
    return None


def document(name: str, value: Any = 0) -> Hub:
    return {"apiVersion": "infra.trimtab.dev/v3", "kind": "Blueprint", "metadata": {"name": name}, "spec": {"v": value}}
