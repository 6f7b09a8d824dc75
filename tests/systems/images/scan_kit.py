"""A desk for tests of the controllers of SBOMs and VEX sources: the test is the worker, and holds the clock."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from tests.runtime.widgets import until_found
from tests.systems.images.image_kit import digest
from tests.systems.images.test_database import folder_of
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query, Ref
from trimtab.model.clock import format_time
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Untyped
from trimtab.runtime.manager import Manager
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.owners import own
from trimtab.runtime.queue import LocalQueue
from trimtab.runtime.status import condition, write_status
from trimtab.runtime.system import NAMESPACE, Context
from trimtab.runtime.workers import Workers
from trimtab.storage.folder import FolderBlobs
from trimtab.storage.scratch import Scratch
from trimtab.systems.images.databases import NAME, DatabaseRef, publish
from trimtab.systems.images.kinds import (
    SBOM,
    Documents,
    Registry,
    RegistrySpec,
    SBOMSpec,
    SBOMStatus,
    Severities,
    VEXSource,
    VEXSourceSpec,
    VulnerabilityReport,
    VulnerabilityReportSpec,
)
from trimtab.systems.images.kinds.job import REGISTRY_LABEL
from trimtab.systems.images.layers.image import Inventory
from trimtab.systems.images.messages import SCANS, ScanSBOM, decode
from trimtab.systems.images.packages.package import Package
from trimtab.systems.images.pins import FINALIZER, documents_owner, report_owner
from trimtab.systems.images.registry.references import image_name
from trimtab.systems.images.sbom_controller import SbomController
from trimtab.systems.images.vex_controller import VexController
from trimtab.systems.images.vulnerabilities.importing import import_osv
from trimtab.systems.images.worker.documents import encode
from trimtab.testing.clock import FakeClock

PATIENCE = 30.0


class TellingQueue(LocalQueue):
    """It knows what was published."""

    def __init__(self, clock: FakeClock, **limits: Any) -> None:
        super().__init__(clock, **limits)
        self.published: list[str] = []

    async def publish(self, subject: str, payload: bytes, *, id: str = "") -> bool:  # noqa: A002
        is_new = await super().publish(subject, payload, id=id)
        self.published.append(id)
        return is_new


class Desk:
    """One namespace with its Registry, its controllers, and the queue that workers would read."""

    def __init__(self, client: ApiClient, namespace: str, folder: Path) -> None:
        self.client, self.namespace, self.folder = client, namespace, folder
        self.clock = FakeClock()
        self.blobs = FolderBlobs(folder / "blobs")
        self.queue = TellingQueue(self.clock)
        self.registry: Registry

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """The controllers run inside."""
        manager = Manager(self.client, name="images", clock=self.clock, metrics=Metrics())
        async with Workers(1) as workers:
            context = Context(
                client=self.client,
                clock=self.clock,
                blobs=self.blobs,
                scratch=Scratch(self.folder / "scratch", 1 << 30),
                queue=self.queue,
                workers=workers,
                metrics=Metrics(),
            )
            for controller in (SbomController(context), VexController(context)):
                controller.query = Query(namespace=self.namespace)  # on a cluster there are those of other tests
                manager.add(controller)
            stop = asyncio.Event()
            task = asyncio.create_task(manager.run(stop))
            try:
                yield
            finally:
                stop.set()
                await task

    async def asked(self) -> str:
        """The SBOM that a worker is asked to scan next."""
        return (await self.message()).sbom

    async def message(self) -> ScanSBOM:
        async with asyncio.timeout(PATIENCE):
            async for delivery in self.queue.consume(SCANS):
                await delivery.ack()
                return decode(delivery.payload, ScanSBOM)
        raise AssertionError("the queue is closed")

    async def change(self, kind: Any, name: str, **fields: Any) -> Any:
        while True:
            held = await self.client.get(kind, name, self.namespace)
            try:
                return await self.client.patch(held, held.replace(spec=held.spec.replace(**fields)))
            except StatusError as error:
                if error.code != 409:
                    raise

    async def sbom(self, tag: str, *packages: str, registry_uid: str | None = None) -> SBOM:
        """Of an image with these Python packages."""
        found = tuple(Package(type="pypi", name=name, version="1.0") for name in packages)
        inventory = await self.blobs.put(encode(Inventory(packages=found)))
        metadata = ObjectMeta(
            name=image_name("main", "app", tag, digest(tag)),
            namespace=self.namespace,
            labels={REGISTRY_LABEL: registry_uid or self.registry.metadata.uid or ""},
            finalizers=(FINALIZER,),
        )
        documents = Documents(spdx=inventory, cyclonedx=inventory, inventory=inventory)
        made = await self.client.create(SBOM(metadata=metadata, spec=SBOMSpec(**self._which(tag), documents=documents)))
        await self.blobs.pin(inventory, documents_owner(made))
        return made

    async def report(
        self, sbom: SBOM, database: str = "", *, vex: str = "", findings: int = 1, behind: float = 0.0
    ) -> VulnerabilityReport:
        """As a worker writes it now, whose clock may be so many seconds behind."""
        document = await self.blobs.put(f"report of {sbom.name} at {self.clock.now()}".encode())
        await self.blobs.pin(document, report_owner(sbom))
        spec = VulnerabilityReportSpec(
            **self._which(sbom.spec.tag),
            document=document,
            summary=Severities(high=findings),
            database=database,
            vex=vex or UNSET,
            scanned_at=format_time(self.clock.now() - timedelta(seconds=behind)),
        )
        listed = await self.client.list(VulnerabilityReport, Query(namespace=self.namespace))
        held = next((report for report in listed.items if report.name == sbom.name), None)
        if held is not None:
            return await self.client.patch(held, held.replace(spec=spec))
        metadata = ObjectMeta(name=sbom.name, namespace=self.namespace, labels=sbom.metadata.labels)
        return await self.client.create(own(VulnerabilityReport(metadata=metadata, spec=spec), sbom))

    async def refuse(self, sbom: SBOM, reason: str) -> None:
        """The worker could not scan it."""
        held = await self.client.get(SBOM, sbom.name, self.namespace)
        conditions = condition(UNSET, self.clock, UNSET, "Scanned", False, reason, "so it is")
        await write_status(self.client, held, SBOMStatus(conditions=conditions))

    async def imported(self, name: str, *documents: Any) -> DatabaseRef:
        """A new database for the whole server."""
        target = self.folder / f"{name}.db"
        await asyncio.to_thread(import_osv, folder_of(self.folder / name, *documents), target)
        return await publish(self.client, self.blobs, target, clock=self.clock)

    async def vex(self, name: str, **spec: Any) -> VEXSource:
        metadata = ObjectMeta(name=name, namespace=self.namespace)
        return await self.client.create(VEXSource(metadata=metadata, spec=VEXSourceSpec(**spec)))

    async def until(self, kind: Any, name: str, holds: Callable[[Any], Any]) -> Any:
        return await until_found(self.client, kind, name, self.namespace, holds)

    async def until_waiting(self, seconds: float) -> None:
        """Until somebody waits for just so long, by the clock that stands still."""
        async with asyncio.timeout(PATIENCE):
            while self.clock.monotonic() + seconds not in self.clock.pending:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.005)

    def _which(self, tag: str) -> dict[str, str]:
        return {
            "registry": "main",
            "registry_uri": "registry.example.com",
            "repository": "app",
            "tag": tag,
            "digest": digest(tag),
        }


@pytest.fixture
async def desk(defined: ApiClient, namespace: str, tmp_path: Path) -> Desk:
    with contextlib.suppress(StatusError):  # on a cluster it is there already
        await defined.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
    with contextlib.suppress(StatusError):  # and a test before this one may have left its database
        await defined.delete(Ref(ConfigMap, NAME, NAMESPACE))
    desk = Desk(defined, namespace, tmp_path)
    await desk.blobs.ready()
    metadata = ObjectMeta(name="main", namespace=namespace)
    desk.registry = await defined.create(Registry(metadata=metadata, spec=RegistrySpec(uri="registry.example.com")))
    return desk


def openvex(vulnerability: str = "CVE-2026-1", product: str = "pkg:pypi/left", status: str = "fixed") -> str:
    statement = {"vulnerability": {"name": vulnerability}, "products": [{"@id": product}], "status": status}
    return json.dumps(
        {
            "@context": "https://openvex.dev/ns/v0.2.0",
            "@id": f"https://example.com/{vulnerability}",
            "author": "us",
            "version": 1,
            "timestamp": "2026-01-01T00:00:00Z",
            "statements": [statement],
        }
    )
