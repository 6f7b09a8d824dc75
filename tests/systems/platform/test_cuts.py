"""The process ends at every write there is, before it or after it; the next one ends where the first would have."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.systems.platform.stage import Stage, config_map
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query
from trimtab.client.transport import Call, Reply, Transport, Unreachable
from trimtab.model.errors import StatusError
from trimtab.systems.platform.kinds import Blueprint, Cluster, Workload

FIRST, THEN = config_map("a", x="1") + config_map("b"), config_map("a", x="2") + config_map("c")


class Doom:
    """The process dies at write number `at`: before it arrives, or when it was done and nobody heard. Events do not count."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.at, self.after, self.count = at, after, 0
        self.dead = asyncio.Event()

    async def call(self, transport: Transport, call: Call) -> Reply:
        if self.dead.is_set():
            raise Unreachable("this process is dead")
        if not call.safe and "/events" not in call.path and not call.query.get("dryRun"):
            self.count += 1
            if self.count == self.at:
                self.dead.set()
                if self.after:
                    await transport.call(call)
                raise Unreachable("this process is dead")
        return await transport.call(call)


class Doomed:
    def __init__(self, transport: Transport, doom: Doom) -> None:
        self._transport, self._doom = transport, doom

    async def call(self, call: Call) -> Reply:
        if "/events" in call.path:
            return await self._transport.call(call)
        return await self._doom.call(self._transport, call)

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        return self._transport.stream(call, inactivity)

    async def close(self) -> None:
        """The others go on."""


async def story(stage: Stage) -> None:
    """What users do, from the first to the last."""
    await stage.ready(Cluster, "team", "one")
    await stage.change(Blueprint, "team", "base", lambda spec: spec.update(addons=[{"name": "lb"}]))
    await stage.until(Cluster, "team", "one", lambda c: [a["name"] for a in c["status"].get("addons", ())] == ["lb"])
    await stage.workload("team", "shop", FIRST, ["one"])
    first = await stage.ready(Workload, "team", "shop")
    stage.files["shop", "all.yaml"] = THEN.encode()
    await stage.nudge(Workload, "team", "shop")
    await stage.until(Workload, "team", "shop", lambda w: w["status"]["digest"] != first["status"]["digest"])
    await ending(stage)


async def ending(stage: Stage) -> None:
    """The rest of it, from wherever it was cut."""
    stage.files["shop", "all.yaml"] = THEN.encode()
    with contextlib.suppress(StatusError):
        await stage.nudge(Workload, "team", "shop")
        await stage.delete(Workload, "team", "shop")
    await stage.gone(Workload, "team", "shop")
    with contextlib.suppress(StatusError):
        await stage.delete(Cluster, "team", "one")
    await stage.gone(Cluster, "team", "one")


async def cut(folder: Path, at: int, *, after: bool) -> bool:
    """Whether it was over before the cut came."""
    stage = await Stage.made(folder)
    try:
        await stage.namespace("team")
        await stage.addon("team", "mesh", config_map("mesh"))
        await stage.addon("team", "lb", config_map("lb"))
        await stage.create(Blueprint, "team", "base", {"addons": [{"name": "mesh"}]})
        one = await stage.imported("team", "one", blueprint="base")
        doom = Doom(at, after=after)
        healthy = one.dialled
        one.dialled = lambda: ApiClient(Doomed(one.wire, doom), healthy().scheme)  # type: ignore[method-assign]
        async with stage.working(client=ApiClient(Doomed(stage.hub.transport, doom), stage.hub.scheme)):
            done = await first_of(story(stage), doom.dead.wait())
        if not done:
            one.dialled = healthy  # type: ignore[method-assign]
            async with stage.working():
                if await exists(stage):
                    await stage.until(Workload, "team", "shop", lambda w: bool(w.get("status")))
                await ending(stage)
        left = await one.config_maps("web") | await one.config_maps("addons")
        assert {"a", "b", "c", "mesh", "lb"}.isdisjoint(left), f"cut at {at}, {'after' if after else 'before'}"
        assert await one.config_maps("trimtab-system") == {}
        return done
    finally:
        await stage.close()


async def exists(stage: Stage) -> bool:
    found = (await stage.hub.list(Workload, Query(namespace="team"))).items
    return any(not item.metadata.deletion_timestamp for item in found)


async def first_of(work: Coroutine[Any, Any, None], death: Coroutine[Any, Any, Any]) -> bool:
    """Whether the work came to its end."""
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(death)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    done = tasks[0].done() and not tasks[1].done()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    if done:
        tasks[0].result()
    return done


@pytest.mark.slow
@pytest.mark.row(24)
@pytest.mark.parametrize("after", [False, True])
async def test_a_cut_at_any_write_leaves_nothing_behind(tmp_path: Path, after: bool) -> None:
    for at in range(1, 200):
        if await cut(tmp_path / str(at), at, after=after):
            assert at > 20, "there were writes to cut"
            return
    pytest.fail("the story has no end")
