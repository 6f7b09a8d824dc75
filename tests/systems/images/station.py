"""Image discovery at work for a test: a real registry, its controllers and workers in this process, on either server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from tests.runtime.widgets import PATIENCE, until_found, until_gone
from tests.systems.images.documents import KINDS
from tests.systems.images.layer_kit import dpkg_stanza
from trimtab.client.api import ApiClient
from trimtab.client.protocol import EventType, Query, Ref
from trimtab.client.transport import Call, Reply, Unreachable
from trimtab.lab import registry_images as made
from trimtab.lab.registry import Registry as LabRegistry
from trimtab.model.clock import SystemClock
from trimtab.model.conditions import Condition, get_condition
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, Event, Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Resource
from trimtab.model.scheme import Untyped
from trimtab.runtime.controller import Controller
from trimtab.runtime.credentials import Credentials
from trimtab.runtime.manager import Manager
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.queue import Queue
from trimtab.runtime.queue import connect as connect_queue
from trimtab.runtime.system import NAMESPACE, Context
from trimtab.runtime.workers import Workers
from trimtab.storage.blobs import Digest, read
from trimtab.storage.folder import FolderBlobs
from trimtab.storage.scratch import Scratch
from trimtab.systems.images import databases
from trimtab.systems.images.job_controller import JobController
from trimtab.systems.images.kinds import (
    SBOM,
    DiscoveryJob,
    DiscoveryJobSpec,
    Image,
    Registry,
    RegistrySpec,
    VulnerabilityReport,
)
from trimtab.systems.images.registry.connections import Connections
from trimtab.systems.images.runs.claim import PREFIX
from trimtab.systems.images.runs.states import reserved_name
from trimtab.systems.images.vulnerabilities.importing import import_osv
from trimtab.systems.images.worker.handling import Tools

LARGEST = 64 << 20
C = TypeVar("C", bound=Controller[Any])
R = TypeVar("R", bound=Resource)


class LeapClock:
    """Real time, which a test can make leap forward: whoever sleeps then wakes when that time is reached."""

    def __init__(self) -> None:
        self._system, self._ahead, self._leapt = SystemClock(), 0.0, asyncio.Event()

    def now(self) -> datetime:
        return self._system.now() + timedelta(seconds=self._ahead)

    def monotonic(self) -> float:
        return self._system.monotonic() + self._ahead

    async def sleep(self, seconds: float) -> None:
        until = self.monotonic() + seconds
        await asyncio.sleep(0)
        while (left := until - self.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._leapt.wait(), left)

    def leap(self, seconds: float) -> None:
        self._ahead += seconds
        self._leapt.set()
        self._leapt = asyncio.Event()


class Mortal:
    """A worker that can be killed: from then on nothing that it does arrives at the API."""

    task: asyncio.Task[None]

    def __init__(self, client: ApiClient) -> None:
        self._transport, self._dead = client.transport, False
        self.client = ApiClient(self, client.scheme, namespace=client.namespace)

    def kill(self) -> None:
        self._dead = True
        self.task.cancel()

    async def call(self, call: Call) -> Reply:
        if self._dead:
            raise Unreachable("this worker is dead")
        return await self._transport.call(call)

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        return self._transport.stream(call, inactivity)

    async def close(self) -> None:
        """The transport is everybody's."""


class Station:
    """One namespace and one registry. Everything that a test writes goes by `client` and `pusher`.

    `nats` is the address of a server; without it the queue is in this process, and empty after each restart.
    """

    def __init__(
        self, client: ApiClient, namespace: str, folder: Path, lab: LabRegistry, pusher: made.Pusher, nats: str = ""
    ) -> None:
        self.client, self.namespace, self.lab, self.pusher = client, namespace, lab, pusher
        self.clock = LeapClock()
        self.blobs = FolderBlobs(folder / "blobs")
        self.queue: Queue | None = None  # while it works
        self._folder, self._nats, self._stream = folder, nats, f"test-{uuid.uuid4().hex[:12]}"

    # --- the system ------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def working(self, *, work: bool = True) -> AsyncIterator[None]:
        """The controllers run inside, and a worker with them unless `work` is False. To leave it and to enter it again
        is a restart."""
        from trimtab.systems.images.system import SYSTEM

        async with self._context("controllers") as context:
            manager = Manager(self.client, name="images", clock=self.clock, metrics=Metrics())
            for controller in SYSTEM.made(context):
                silent = isinstance(controller, JobController) and not work
                manager.add(_within(JobController(context, work=False) if silent else controller, self.namespace))
            stop = asyncio.Event()
            task = asyncio.create_task(manager.run(stop))
            self.queue = context.queue
            try:
                yield
            finally:
                self.queue = None
                stop.set()
                await task

    @contextlib.asynccontextmanager
    async def worker(self, name: str, **options: Any) -> AsyncIterator[Mortal]:
        """One more worker, with scratch of its own as on another machine. To leave it is a clean stop."""
        from trimtab.systems.images.worker.worker import worker

        mortal = Mortal(self.client)
        async with self._context(name, self.queue) as context, self._tools(name, mortal.client, context) as tools:
            mortal.task = asyncio.create_task(worker(tools, context.queue, **options).run(asyncio.Event()))
            try:
                yield mortal
            finally:
                mortal.task.cancel()
                await asyncio.wait((mortal.task,))

    @contextlib.asynccontextmanager
    async def _tools(self, name: str, client: ApiClient, context: Context) -> AsyncIterator[Tools]:
        async with Connections(clock=self.clock) as connections, Credentials(client) as credentials:
            yield Tools(
                name=name,
                client=client,
                clock=self.clock,
                blobs=self.blobs,
                scratch=context.scratch,
                workers=context.workers,
                connections=connections,
                credentials=credentials,
            )

    @contextlib.asynccontextmanager
    async def _context(self, name: str, queue: Queue | None = None) -> AsyncIterator[Context]:
        """That of one process. With NATS each has a connection of its own."""
        shared = queue if queue is not None and not self._nats else None
        options = {"stream": self._stream} if self._nats else {}
        own = shared or connect_queue(self._nats or None, clock=self.clock, **options)
        workers = Workers(1)
        try:
            yield Context(
                client=self.client,
                clock=self.clock,
                blobs=self.blobs,
                scratch=Scratch(self._folder / name, 1 << 30),
                queue=own,
                workers=workers,
                metrics=Metrics(),
            )
        finally:
            await workers.close()
            if shared is None:
                await own.close()

    # --- what users do ---------------------------------------------------------------------------------------------

    async def push(self, repository: str, tag: str, image: made.Made) -> str:
        return await self.pusher.push(repository, tag, image)

    async def registry(
        self, name: str = "lab", *, annotations: Mapping[str, str] | None = None, **spec: Any
    ) -> Registry:
        """A Registry for the lab's registry; fields of its spec by their names in Python."""
        fields = {"uri": self.lab.url, "plain_http": self.lab.url.startswith("http:"), **spec}
        metadata = self._meta(name, annotations)
        return await self.client.create(Registry(metadata=metadata, spec=RegistrySpec(**fields)))

    async def job(self, name: str, registry: str = "lab", **spec: Any) -> DiscoveryJob:
        spec = DiscoveryJobSpec(registry=registry, **spec)  # type: ignore[assignment]
        return await self.client.create(DiscoveryJob(metadata=self._meta(name), spec=spec))  # type: ignore[arg-type]

    async def discovered(self, name: str, registry: str = "lab", **spec: Any) -> DiscoveryJob:
        """A job that was made, when its run has ended and the registry is free."""
        await self.job(name, registry, **spec)
        job = await self.completed(name)
        await self.free(registry)
        return job

    async def secret(self, name: str, type: str = "Opaque", **values: str) -> None:  # noqa: A002 - its name in the API
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        await self.client.create(Secret(metadata=self._meta(name), type=type, data=data))

    async def import_database(self, *documents: Mapping[str, Any]) -> databases.DatabaseRef:
        """Make these OSV documents the vulnerability database."""
        folder = self._folder / f"osv-{uuid.uuid4().hex[:8]}"
        folder.mkdir()
        for number, document in enumerate(documents):
            (folder / f"{number}.json").write_text(json.dumps(document))
        target = folder / "database"
        await asyncio.to_thread(import_osv, folder, target)
        return await databases.publish(self.client, self.blobs, target, clock=self.clock)

    async def change(self, kind: Any, name: str, **fields: Any) -> Any:
        """Change fields of a spec, whoever else writes the object meanwhile."""
        return await self.edit(kind, name, lambda held: held.replace(spec=held.spec.replace(**fields)))

    async def annotate(self, registry: str, **annotations: str | None) -> Any:
        """Set annotations of image discovery, or remove them; dashes are underscores."""

        def edited(held: Registry) -> Registry:
            changed = {f"{PREFIX}{name.replace('_', '-')}": value for name, value in annotations.items()}
            both = {**(held.metadata.annotations or {}), **changed}
            kept = {name: value for name, value in both.items() if value is not None}
            return held.replace(metadata=msgspec.structs.replace(held.metadata, annotations=kept))

        return await self.edit(Registry, registry, edited)

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

    def leap(self, seconds: float) -> None:
        """Let so much time pass at once, for controllers and workers."""
        self.clock.leap(seconds)

    # --- what is to be seen ----------------------------------------------------------------------------------------

    async def until(self, kind: Any, name: str, holds: Callable[[Any], Any]) -> Any:
        """The object, as soon as this is true of it."""
        return await until_found(self.client, kind, name, self.namespace, holds)

    async def until_gone(self, kind: Any, name: str) -> None:
        await until_gone(self.client, kind, name, self.namespace)

    async def until_all(self, kind: type[R], holds: Callable[[list[R]], Any]) -> list[R]:
        """All objects of the kind, as soon as this is true of them together."""
        query = Query(namespace=self.namespace)
        async with asyncio.timeout(PATIENCE):
            while True:
                listing = await self.client.list(kind, query)
                known = {item.name: item for item in listing.items}
                if holds(list(known.values())):
                    return list(known.values())
                with contextlib.suppress(StatusError, OSError):
                    async with contextlib.aclosing(self.client.watch(kind, query, listing.revision)) as events:
                        async for event in events:
                            if event.object is None:
                                continue
                            known[event.object.name] = event.object
                            if event.type is EventType.DELETED:
                                del known[event.object.name]
                            if holds(list(known.values())):
                                return list(known.values())

    async def completed(self, job: str, reason: str = "") -> DiscoveryJob:
        """The job, when its run has ended, and so."""
        found: DiscoveryJob = await self.until(
            DiscoveryJob, job, lambda job: (said := condition(job, "Completed")) and said.status != "Unknown"
        )
        said = condition(found, "Completed")
        assert said is not None
        assert not reason or said.reason == reason, said
        return found

    async def running(self, registry: str = "lab") -> Registry:
        found: Registry = await self.until(Registry, registry, lambda held: notes(held).get("running-id"))
        return found

    async def free(self, registry: str = "lab", runs: int = 1) -> Registry:
        """The registry, when no run has it and so many have ended."""
        found: Registry = await self.until(
            Registry,
            registry,
            lambda held: not notes(held).get("running-id") and len((held.status and held.status.history) or ()) >= runs,
        )
        return found

    async def reserved(self, registry: str = "lab") -> DiscoveryJob:
        return await self.client.get(DiscoveryJob, reserved_name(registry), self.namespace)

    async def images(self) -> dict[str, Image]:
        """By repository, tag and platform: `team/app:1.0 linux/amd64`."""
        return _named(await self._all(Image))

    async def sboms(self) -> dict[str, SBOM]:
        return _named(await self._all(SBOM))

    async def reports(self) -> dict[str, VulnerabilityReport]:
        return _named(await self._all(VulnerabilityReport))

    async def document(self, digest: str) -> Any:
        """A blob that is JSON."""
        return msgspec.json.decode(await read(self.blobs, Digest(digest), max_bytes=LARGEST))

    async def everything(self) -> list[Any]:
        """What a reader of the namespace sees, without Secrets."""
        return [item.raw for kind in (*KINDS, Event) for item in await self._all(kind)]

    async def _all(self, kind: type[R]) -> list[R]:
        return list((await self.client.list(kind, Query(namespace=self.namespace))).items)

    def _meta(self, name: str, annotations: Mapping[str, str] | None = None) -> ObjectMeta:
        return ObjectMeta(name=name, namespace=self.namespace, annotations=dict(annotations) if annotations else UNSET)


def debian(*packages: str, platform: str = "linux/amd64", release: str = "12") -> made.Made:
    """An image of Debian with these packages: `openssl=3.0.11-1`. The base is the same one for all."""
    os = made.layer({"etc/os-release": f'ID=debian\nVERSION_ID="{release}"\nNAME="Debian GNU/Linux"\n'.encode()})
    stanzas = [dpkg_stanza(*each.split("=", 1)) for each in packages]
    return made.image([os, made.layer({"var/lib/dpkg/status": b"".join(stanzas)})], platform)


def osv(name: str, package: str, fixed: str, ecosystem: str = "Debian:12", **more: Any) -> dict[str, Any]:
    """An advisory: all versions of the package before this one are affected."""
    ranges = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": fixed}]}]
    affected = {"package": {"ecosystem": ecosystem, "name": package}, "ranges": ranges}
    return {"id": name, "modified": "2024-01-01T00:00:00Z", "affected": [affected], **more}


def notes(obj: Any) -> dict[str, str]:
    """Its annotations of image discovery, without their prefix."""
    found = (obj.metadata.annotations or {}).items()
    return {name.removeprefix(PREFIX): value for name, value in found if name.startswith(PREFIX)}


def condition(obj: Any, kind: str) -> Condition | None:
    return get_condition(obj.status.conditions, kind) if obj.status else None


async def without_database(client: ApiClient) -> None:
    """On a cluster, that of the test before is not this one's: its blob is elsewhere."""
    try:
        await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
    except StatusError as error:
        if error.code != 409:
            raise
    try:
        await client.delete(Ref(ConfigMap, databases.NAME, NAMESPACE))
    except StatusError as error:
        if error.code != 404:
            raise


def _named(found: Iterable[Any]) -> dict[str, Any]:
    named = {f"{each.spec.repository}:{each.spec.tag} {each.spec.platform or ''}".strip(): each for each in found}
    return dict(sorted(named.items()))


def _within(controller: C, namespace: str) -> C:
    """A controller that sees only one namespace, but for what it looks for in another: others are those of tests before."""
    query = Query(namespace=namespace)
    controller.query = query
    controller.watches = tuple(  # type: ignore[misc]
        watch if watch.query.namespace else msgspec.structs.replace(watch, query=query) for watch in controller.watches
    )
    return controller
