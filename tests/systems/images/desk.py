"""The controllers of registries and jobs at work, with a clock that a test moves, and the test in the role of the worker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from tests.runtime.widgets import until_found, until_gone
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query, Ref
from trimtab.model.conditions import Condition, get_condition
from trimtab.model.errors import StatusError
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.controller import Controller
from trimtab.runtime.manager import Manager
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.objects import with_metadata
from trimtab.runtime.queue import Queue
from trimtab.runtime.queue.contract import MAX_DEPTH
from trimtab.runtime.queue.local import LocalQueue
from trimtab.runtime.system import Context
from trimtab.runtime.workers import Workers
from trimtab.storage.folder import FolderBlobs
from trimtab.storage.scratch import Scratch
from trimtab.systems.images.job_controller import JobController
from trimtab.systems.images.kinds import (
    DiscoveryJob,
    DiscoveryJobSpec,
    DiscoveryJobStatus,
    Listed,
    Registry,
    RegistrySpec,
)
from trimtab.systems.images.messages import CATALOG, CreateCatalog, decode
from trimtab.systems.images.registry_controller import RegistryController
from trimtab.systems.images.runs.catalogue import Catalogue, Pictured, Tag, encode
from trimtab.systems.images.runs.claim import PREFIX
from trimtab.testing.clock import FakeClock

DIGEST = "sha256:" + "a" * 64
C = TypeVar("C", bound=Controller[Any])
T = TypeVar("T")


class Desk:
    """One namespace. Everything that a test writes goes by `client`."""

    def __init__(self, client: ApiClient, namespace: str, folder: Path, *, depth: int = MAX_DEPTH) -> None:
        self._depth = depth
        self.client, self.namespace = client, namespace
        self.clock = FakeClock(datetime.now(UTC).replace(microsecond=0))
        self.blobs = FolderBlobs(folder / "blobs")
        self.queue: Queue = LocalQueue(self.clock)
        self._folder = folder

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """As one process: leaving it and entering again is a restart, with an empty queue."""
        self.queue = LocalQueue(self.clock, max_depth=self._depth)
        context = Context(
            client=self.client,
            clock=self.clock,
            blobs=self.blobs,
            scratch=Scratch(self._folder / "scratch", 1 << 20),
            queue=self.queue,
            workers=Workers(1),
            metrics=Metrics(),
        )
        manager = Manager(self.client, name="images", clock=self.clock, metrics=Metrics())
        manager.add(within(RegistryController(context), self.namespace))
        manager.add(within(JobController(context, work=False), self.namespace))
        stop = asyncio.Event()
        task = asyncio.create_task(manager.run(stop))
        try:
            yield
        finally:
            stop.set()
            await task

    async def registry(
        self, name: str = "hub", *, annotations: Mapping[str, str] | None = None, **spec: Any
    ) -> Registry:
        metadata = ObjectMeta(
            name=name, namespace=self.namespace, annotations=dict(annotations) if annotations else UNSET
        )
        return await self.client.create(Registry(metadata=metadata, spec=RegistrySpec(uri="127.0.0.1:5000", **spec)))

    async def job(self, name: str, registry: str = "hub", **spec: Any) -> DiscoveryJob:
        spec = {"until": "Images", **spec}
        metadata = ObjectMeta(name=name, namespace=self.namespace)
        return await self.client.create(
            DiscoveryJob(metadata=metadata, spec=DiscoveryJobSpec(registry=registry, **spec))
        )

    async def asked(self) -> CreateCatalog:
        """The next message for workers."""
        return await self.nudged(self._asked())

    async def _asked(self) -> CreateCatalog:
        async with asyncio.timeout(30), contextlib.aclosing(self.queue.consume(CATALOG)) as messages:  # type: ignore[type-var]
            message = await anext(messages)
            await message.ack()
            return decode(message.payload, CreateCatalog)

    async def take(self, job: str, worker: str = "w1") -> DiscoveryJob:
        """A worker begins to list."""
        return await self.status(
            job, lambda s: s.replace(worker=worker, fence=(s.fence or 0) + 1, heartbeat=f"{self.clock.now():%FT%TZ}")
        )

    async def listed(self, job: str, *tags: str, complete: bool = True, **listed: Any) -> DiscoveryJob:
        """A worker says what it found: an image for each tag of the repository app; or why nothing."""
        if not listed:
            found = Catalogue(
                tags={"app": {tag: Tag(DIGEST, images=(DIGEST,)) for tag in tags}} if tags else {},
                images={DIGEST: Pictured("linux/amd64")} if tags else {},
                members={"app": list(tags)} if tags else {},
            )
            listed = {"catalog": await self.blobs.put(encode(found)), "complete": complete}
        return await self.status(job, lambda s: s.replace(worker=s.worker or "w1", listed=Listed(**listed)))

    async def status(self, job: str, say: Callable[[DiscoveryJobStatus], DiscoveryJobStatus]) -> DiscoveryJob:
        while True:
            held = await self.client.get(DiscoveryJob, job, self.namespace)
            try:
                return await self.client.patch(
                    held, held.replace(status=say(held.status or DiscoveryJobStatus())), subresource="status"
                )
            except StatusError as error:
                if error.code != 409:
                    raise

    async def change(self, kind: Any, name: str, **fields: Any) -> Any:
        """Change fields of a spec, whoever else writes the object meanwhile."""
        return await self.edit(kind, name, lambda held: held.replace(spec=held.spec.replace(**fields)))

    async def annotate(self, registry: str, **annotations: str | None) -> Registry:
        """Set annotations of image discovery, or remove them; dashes are underscores."""

        def edited(held: Registry) -> Registry:
            new = dict(held.metadata.annotations or {})
            for key, value in annotations.items():
                name = PREFIX + key.replace("_", "-")
                if value is None:
                    new.pop(name, None)
                else:
                    new[name] = value
            return with_metadata(held, annotations=new)

        changed: Registry = await self.edit(Registry, registry, edited)
        return changed

    async def edit(self, kind: Any, name: str, edited: Callable[[Any], Any]) -> Any:
        while True:
            held = await self.client.get(kind, name, self.namespace)
            try:
                return await self.client.patch(held, edited(held))
            except StatusError as error:
                if error.code != 409:
                    raise

    async def delete(self, kind: Any, name: str) -> None:
        await self.client.delete(Ref(kind, name, self.namespace))

    async def until(self, kind: Any, name: str, holds: Callable[[Any], Any]) -> Any:
        return await self.nudged(until_found(self.client, kind, name, self.namespace, holds))

    async def until_gone(self, kind: Any, name: str) -> None:
        await self.nudged(until_gone(self.client, kind, name, self.namespace))

    async def completed(self, job: str, reason: str = "") -> DiscoveryJob:
        """The job, when its run has ended, and so."""
        found: DiscoveryJob = await self.until(
            DiscoveryJob, job, lambda o: (c := condition(o, "Completed")) and c.status != "Unknown"
        )
        if reason:
            assert condition(found, "Completed").reason == reason, condition(found, "Completed")  # type: ignore[union-attr]
        return found

    async def later(self, seconds: float, awaited: Coroutine[Any, Any, T]) -> T:
        """Let time pass, so long and then as long as it takes for this to come true."""
        task = asyncio.create_task(awaited)
        await self.clock.advance(seconds)
        while not task.done():
            await self.clock.advance(1)
            await asyncio.wait((task,), timeout=0.01)
        return task.result()

    async def nudged(self, awaited: Coroutine[Any, Any, T]) -> T:
        """A controller that met a conflict looks again a moment later: that moment must pass."""
        task = asyncio.create_task(awaited)
        while not (await asyncio.wait((task,), timeout=0.3))[0]:
            await self.clock.advance(0.1)
        return task.result()

    async def running(self, registry: str = "hub") -> Registry:
        found: Registry = await self.until(Registry, registry, lambda o: notes(o).get("running-id"))
        return found

    async def free(self, registry: str = "hub", *, after: str = "") -> Registry:
        """The registry when no run has it, and the last one began."""
        found: Registry = await self.until(
            Registry,
            registry,
            lambda o: not notes(o).get("running-id") and notes(o).get("last-discovery-started-at"),
        )
        return found


def within(controller: C, namespace: str) -> C:
    """A controller that sees only one namespace: others are those of tests before."""
    query = Query(namespace=namespace)
    controller.query = query
    controller.watches = tuple(msgspec.structs.replace(watch, query=query) for watch in controller.watches)  # type: ignore[misc]
    return controller


def notes(obj: Any) -> dict[str, str]:
    """Its annotations of image discovery, without their prefix."""
    return {
        name.removeprefix(PREFIX): value
        for name, value in (obj.metadata.annotations or {}).items()
        if name.startswith(PREFIX)
    }


def condition(obj: Any, kind: str) -> Condition | None:
    return get_condition(obj.status.conditions, kind) if obj.status else None
