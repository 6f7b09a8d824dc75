"""A registry to list, a claimed Registry and its job, and the tools of a worker, for tests on either API server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import msgspec

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Client
from trimtab.lab import registry_images as made
from trimtab.lab.registry import Registry as LabRegistry
from trimtab.lab.registry_faults import FaultProxy
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.kubernetes import Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.credentials import Credentials
from trimtab.runtime.objects import with_metadata
from trimtab.runtime.outbound import Budget
from trimtab.runtime.workers import Workers
from trimtab.storage.blobs import Blobs, Data, Digest, parse_digest, read
from trimtab.storage.folder import FolderBlobs
from trimtab.storage.scratch import Scratch
from trimtab.systems.images.kinds import (
    DiscoveryJob,
    DiscoveryJobSpec,
    DiscoveryJobStatus,
    Registry,
    RegistrySpec,
    RegistryStatus,
)
from trimtab.systems.images.messages import CreateCatalog
from trimtab.systems.images.registry.connections import Connections
from trimtab.systems.images.runs import catalogue as catalogues
from trimtab.systems.images.runs import claim
from trimtab.systems.images.runs.states import begun
from trimtab.systems.images.worker.handling import Tools
from trimtab.testing.ports import free_ports

BASE = made.layer({"etc/os-release": b"ID=debian\n"})
AMD = made.image([BASE, made.layer({"app": b"amd"})])
ARM = made.image([BASE, made.layer({"app": b"arm"})], "linux/arm64")
MULTI = made.index([made.entry(AMD, "linux/amd64"), made.entry(ARM, "linux/arm64"), made.attestation(AMD)])
QUICK = Budget(concurrent=48, rate=4000, burst=4000, attempts=2, first_pause=0.001)


class GatedBlobs(FolderBlobs):
    """Whoever puts waits until the gate is opened."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.reached, self.opened = asyncio.Event(), asyncio.Event()

    async def put(
        self, data: Data, *, media_type: str = "", expected: Digest | None = None, max_bytes: int | None = None
    ) -> Digest:
        self.reached.set()
        await self.opened.wait()
        return await super().put(data, media_type=media_type, expected=expected, max_bytes=max_bytes)


@contextlib.asynccontextmanager
async def tools(
    client: Client | None, folder: Path, *, name: str = "one", clock: Clock | None = None, blobs: Blobs | None = None
) -> AsyncIterator[Tools]:
    """Those of one worker. Without a client only its clock and name are of use."""
    reached = cast(Client, client)
    async with Connections(QUICK) as connections, Credentials(reached) as credentials:
        yield Tools(
            name=name,
            client=reached,
            clock=clock or SystemClock(),
            blobs=blobs or FolderBlobs(folder / "blobs"),
            scratch=Scratch(folder / "scratch", 1 << 20),
            workers=Workers(1),
            connections=connections,
            credentials=credentials,
        )


@contextlib.asynccontextmanager
async def lab_registry(folder: Path) -> AsyncIterator[tuple[made.Pusher, FaultProxy]]:
    """An empty registry behind a proxy."""
    port, proxy_port = free_ports(2)
    with LabRegistry(folder / "registry", port) as running:
        async with made.Pusher(running.url) as pusher, FaultProxy(proxy_port, running.url) as proxy:
            yield pusher, proxy


class Bench:
    """One namespace of an API server, with one Registry and one job."""

    def __init__(self, client: ApiClient, namespace: str, folder: Path) -> None:
        self.client, self.namespace, self.folder = client, namespace, folder
        self.blobs = FolderBlobs(folder / "blobs")

    async def registry(self, uri: str, *, plain_http: bool = True, **spec: Any) -> Registry:
        metadata = ObjectMeta(name="main", namespace=self.namespace)
        return await self.client.create(
            Registry(metadata=metadata, spec=RegistrySpec(uri=uri, plain_http=plain_http, **spec))
        )

    async def begin(self, registry: Registry, run: str = "run-1", **message: Any) -> CreateCatalog:
        """Claim the registry for a run, and begin it in a job: what the controller does."""
        now = SystemClock().now()
        name = f"job-{run}"
        job = await self.client.create(
            DiscoveryJob(
                metadata=ObjectMeta(name=name, namespace=self.namespace), spec=DiscoveryJobSpec(registry="main")
            )
        )
        running = claim.Running(
            id=run, type="manual", started_at=now, job=name, generation=1, uid=job.metadata.uid or ""
        )
        held = await self.client.get(Registry, "main", self.namespace)
        claimed = with_metadata(held, annotations=claim.claimed(held.metadata.annotations or {}, running))
        await self.client.patch(held, claimed)
        status = begun(job, running, now + timedelta(hours=1), now)
        await self.client.patch(job, job.replace(status=status), subresource="status")
        return CreateCatalog(
            namespace=self.namespace, registry="main", registry_uid=registry.metadata.uid or "", type="manual",
            job=name, job_uid=job.metadata.uid or "", run=run, **message,
        )  # fmt: skip

    async def job(self, run: str = "run-1") -> DiscoveryJob:
        return await self.client.get(DiscoveryJob, f"job-{run}", self.namespace)

    async def status(self, run: str = "run-1") -> DiscoveryJobStatus:
        return (await self.job(run)).status or DiscoveryJobStatus()

    async def change(self, run: str = "run-1", **fields: Any) -> None:
        """Somebody else writes to the job's status."""
        job = await self.job(run)
        status = (job.status or DiscoveryJobStatus()).replace(**fields)
        await self.client.patch(job, job.replace(status=status), subresource="status")

    async def catalogue(self, run: str = "run-1") -> catalogues.Catalogue:
        """Of the run that has ended."""
        listed = (await self.status(run)).listed
        assert listed, "nothing was listed"
        assert listed.catalog, (listed.reason, listed.message)
        return catalogues.decode(await read(self.blobs, parse_digest(listed.catalog), max_bytes=1 << 20))

    async def remember(self, run: str = "run-1") -> None:
        """The registry has the catalogue of a run, as after its end."""
        listed = (await self.status(run)).listed
        assert listed
        held = await self.client.get(Registry, "main", self.namespace)
        status = (held.status or RegistryStatus()).replace(catalog=listed.catalog)
        await self.client.patch(held, held.replace(status=status), subresource="status")

    async def secret(self, name: str, values: Mapping[str, str]) -> None:
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        await self.client.create(Secret(metadata=ObjectMeta(name=name, namespace=self.namespace), data=data))


def renamed(tools: Tools, **changes: Any) -> Tools:
    """The tools of another worker, which has all else in common."""
    return msgspec.structs.replace(tools, **changes)
