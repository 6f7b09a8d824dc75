"""Watches that syncs share: what one lets go of, another keeps."""

from __future__ import annotations

import asyncio
from typing import Any

from trimtab.client.discovery import ApiResource
from trimtab.runtime.changes import Request
from trimtab.systems.gitops.following import Followers
from trimtab.systems.gitops.scope import Scope

CONFIG = ApiResource(
    group="",
    version="v1",
    kind="ConfigMap",
    plural="configmaps",
    singular="configmap",
    namespaced=True,
    verbs=frozenset(),
)


class Watched:
    """An informer, as far as it is waited for."""

    def __init__(self, namespace: str) -> None:
        self.namespace, self.synced = namespace, asyncio.Event()


class Watches:
    """Informers that answer when a test says so, and never once they are ended."""

    def __init__(self) -> None:
        self.made: list[Watched] = []
        self.ended: list[Watched] = []

    def subscribe(self, kind: Any, query: Any, handler: Any) -> Watched:
        self.made.append(Watched(query.namespace))
        return self.made[-1]

    async def unsubscribe(self, watched: Watched, handler: Any) -> None:
        await asyncio.sleep(0)
        self.ended.append(watched)


async def test_syncs_that_begin_at_one_time_do_not_end_each_other_s_watches() -> None:
    watches = Watches()
    followers = Followers(watches, lambda sync, identity: None)  # type: ignore[arg-type]
    syncs = [Request(name, "fleet") for name in ("a", "b", "c")]
    async with asyncio.TaskGroup() as beginning:
        for sync in syncs:
            beginning.create_task(followers.follow(sync, Scope((CONFIG,), sync.namespace)))
            await asyncio.sleep(0)
            watches.made[0].synced.set()  # the first one is done while others begin
        for watched in watches.made:
            watched.synced.set()
    assert (len(watches.made), watches.ended) == (3, [])
    async with asyncio.TaskGroup() as ending:
        for sync in syncs[:2]:
            ending.create_task(followers.follow(sync, None))
    assert sorted(watched.namespace for watched in watches.ended) == ["a", "b"]
    await followers.close()
    assert len(watches.ended) == 3
