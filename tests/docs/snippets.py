"""The smaller pieces of code of docs/operators.md. The guide quotes them word by word; `test_operators` runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from trimtab.client.connect import connect
from trimtab.client.protocol import Client, Query, Ref
from trimtab.model import kubernetes
from trimtab.model.clock import Clock
from trimtab.model.kubernetes import ConfigMap, Secret
from trimtab.model.scheme import Scheme
from trimtab.runtime import (
    Change,
    Context,
    Controller,
    Manager,
    Predicate,
    Request,
    Result,
    System,
    generation_changed,
    labels_changed,
)
from trimtab.runtime.claim import Claim, Held
from trimtab.runtime.inventory import Inventory
from trimtab.runtime.queue import Queue
from trimtab.storage.scratch import ScratchDir


@Predicate
def data_changed(change: Change) -> bool:
    return bool(change.old.data != change.new.data)


class Notes(Controller[ConfigMap]):
    query = Query(namespace="harbour", labels="kind=note")  # only these are listed, watched and cached
    when = labels_changed | data_changed
    concurrency = 8
    timeout = 60.0

    async def reconcile(self, request: Request) -> Result | None:
        self.log.info("a note changed", note=str(request))
        return None


wanted_or_labelled = generation_changed | labels_changed


async def pump(client: Client, claims: Claim, tank: ConfigMap) -> Result | None:
    """`claims` lives as long as the process: it knows how long it has seen somebody else's claim unrenewed."""
    try:
        async with claims.held(Ref(ConfigMap, tank.name, tank.namespace), holder="pump-1", ttl=120.0) as fence:
            current = await client.get(ConfigMap, tank.name, tank.namespace)
            await fence.patch(client, current, current.replace(data={"level": "0"}))
    except Held as held:
        return Result(requeue_after=held.wait)
    return None


async def hand_out(queue: Queue, images: Iterable[str]) -> None:
    for digest in images:
        await queue.publish("images.scan", digest.encode(), id=digest)  # the same one twice is one


async def work_off(queue: Queue, scan: Callable[[str], Awaitable[None]]) -> None:
    async for message in queue.consume("images.scan", deadline=60.0):
        await scan(message.payload.decode())
        await message.ack()


async def keep(client: Client, clock: Clock, owner: ConfigMap, documents: list[dict[str, Any]]) -> int:
    inventory = Inventory(client, clock, manager="harbour")
    plan = await inventory.apply(owner, documents)  # what is no longer among the documents is pruned
    return len(plan.refused)


async def unpacked(layers: ScratchDir, digest: str, archive: bytes) -> int:
    async def unpack(path: Path) -> None:
        await asyncio.to_thread(path.write_bytes, archive)

    async with layers.fill(digest, unpack) as path:  # made once, whoever asks; not evicted while in use
        return path.stat().st_size


async def main(kubeconfig: str) -> None:
    client = connect(kubeconfig, scheme=kubernetes.register(Scheme()))
    manager = Manager(client, name="notes")
    manager.add(Notes())
    await manager.run()


class Mirror(Controller[Secret]):
    def __init__(self, context: Context) -> None:
        self.scratch = context.scratch.dir("mirror", max_bytes=1 << 30)
        self.queue = context.queue

    async def reconcile(self, request: Request) -> Result | None:
        return None


SYSTEM = System(name="mirror", reconciles=(Mirror,), controllers=lambda context: [Mirror(context)])
