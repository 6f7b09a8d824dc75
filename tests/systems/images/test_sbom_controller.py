"""The controllers of SBOMs and VEX sources, on both servers. The test is the worker: it takes messages and writes reports."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from tests.runtime.widgets import until_found, until_gone
from tests.systems.images.image_kit import digest
from tests.systems.images.test_database import folder_of, osv
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query, Ref
from trimtab.model.clock import format_time
from trimtab.model.conditions import get_condition
from trimtab.model.duration import Period
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Untyped
from trimtab.runtime.manager import Manager
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.objects import with_metadata
from trimtab.runtime.owners import own
from trimtab.runtime.queue import LocalQueue
from trimtab.runtime.status import condition, write_status
from trimtab.runtime.system import NAMESPACE, Context
from trimtab.runtime.workers import Workers
from trimtab.storage.blobs import BlobMissing, Digest
from trimtab.storage.folder import FolderBlobs
from trimtab.storage.scratch import Scratch
from trimtab.systems.images.databases import NAME, DatabaseRef, publish
from trimtab.systems.images.kinds import (
    SBOM,
    ConfigMapRef,
    Documents,
    Registry,
    RegistrySpec,
    SBOMSpec,
    SBOMStatus,
    ScanSchedule,
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
from trimtab.systems.images.sbom_controller import ASK_AGAIN, FULL, SbomController
from trimtab.systems.images.vex_controller import LOOK_EVERY, VexController
from trimtab.systems.images.vex_sources import looked_up
from trimtab.systems.images.vulnerabilities.importing import import_osv
from trimtab.systems.images.worker.documents import encode
from trimtab.testing.clock import FakeClock

PATIENCE = 30.0


class Desk:
    """One namespace with its Registry, its controllers, and the queue that workers would read."""

    def __init__(self, client: ApiClient, namespace: str, folder: Path) -> None:
        self.client, self.namespace, self.folder = client, namespace, folder
        self.clock = FakeClock()
        self.blobs = FolderBlobs(folder / "blobs")
        self.queue = LocalQueue(self.clock)
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

    async def report(self, sbom: SBOM, database: str = "", *, vex: str = "", findings: int = 1) -> VulnerabilityReport:
        """As a worker writes it now."""
        document = await self.blobs.put(f"report of {sbom.name} at {self.clock.now()}".encode())
        await self.blobs.pin(document, report_owner(sbom))
        spec = VulnerabilityReportSpec(
            **self._which(sbom.spec.tag),
            document=document,
            summary=Severities(high=findings),
            database=database,
            vex=vex or UNSET,
            scanned_at=format_time(self.clock.now()),
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


# --- the first scan --------------------------------------------------------------------------------------------------


async def test_a_new_sbom_is_scanned_whatever_the_registry_wishes(desk: Desk) -> None:
    async with desk.working():
        sbom = await desk.sbom("v1", "left")
        message = await desk.message()
    assert (message.sbom, message.sbom_uid, message.namespace) == (sbom.name, sbom.metadata.uid, desk.namespace)
    assert (message.registry, message.registry_uid) == ("main", desk.registry.metadata.uid)


async def test_a_scan_that_nothing_came_of_is_asked_for_again_later_each_time(desk: Desk) -> None:
    async with desk.working():
        sbom = await desk.sbom("v1")
        assert await desk.asked() == sbom.name
        for pause in (ASK_AGAIN, 2 * ASK_AGAIN, 4 * ASK_AGAIN):
            await desk.until_waiting(pause)
            await desk.clock.advance(pause - 1)
            assert await desk.queue.depth(SCANS) == 0
            await desk.clock.advance(1)
            assert await desk.asked() == sbom.name


async def test_a_process_that_starts_anew_asks_for_what_is_not_there(desk: Desk) -> None:
    done, undone = await desk.sbom("v1"), await desk.sbom("v2")
    await desk.report(done)
    for _ in range(2):
        async with desk.working():
            assert await desk.asked() == undone.name
        desk.queue = LocalQueue(desk.clock)  # which forgets all


async def test_a_report_of_an_sbom_that_had_the_name_before_does_not_count(desk: Desk) -> None:
    sbom = await desk.sbom("v1")
    await desk.report(with_metadata(sbom, uid="00000000-0000-0000-0000-000000000000"))
    async with desk.working():
        assert await desk.asked() == sbom.name


async def test_a_report_that_somebody_deletes_is_made_again(desk: Desk) -> None:
    sbom = await desk.sbom("v1")
    await desk.report(sbom)
    async with desk.working():
        await desk.client.delete(Ref(VulnerabilityReport, sbom.name, desk.namespace))
        assert await desk.asked() == sbom.name


async def test_without_a_database_an_sbom_waits_for_one(desk: Desk) -> None:
    sbom = await desk.sbom("v1", "left")
    await desk.refuse(sbom, "NoDatabase")
    async with desk.working():
        other = await desk.sbom("v2")
        assert await desk.asked() == other.name
        await desk.refuse(other, "NoDatabase")
        await desk.imported("first", osv("A-1"))
        assert {await desk.asked(), await desk.asked()} == {sbom.name, other.name}


async def test_a_queue_that_is_full_is_asked_later(desk: Desk) -> None:
    desk.queue = LocalQueue(desk.clock, max_depth=1)
    one, other = await desk.sbom("v1"), await desk.sbom("v2")
    async with desk.working():
        await desk.until_waiting(FULL)
        first = await desk.asked()
        await desk.clock.advance(FULL)
        assert {first, await desk.asked()} == {one.name, other.name}


async def test_an_sbom_of_a_registry_that_is_gone_is_not_scanned(desk: Desk) -> None:
    await desk.sbom("v1", registry_uid="00000000-0000-0000-0000-000000000000")
    ours = await desk.sbom("v2")
    async with desk.working():
        assert await desk.asked() == ours.name
        await desk.until_waiting(ASK_AGAIN)
        assert await desk.queue.depth(SCANS) == 0


# --- scans again -----------------------------------------------------------------------------------------------------


async def test_a_period_scans_every_sbom_again(desk: Desk) -> None:
    await desk.change(Registry, "main", scan_schedule=ScanSchedule(scan_period=Period("1d")))
    sbom = await desk.sbom("v1")
    await desk.report(sbom)
    async with desk.working():
        await desk.until_waiting(3600.0)
        for _ in range(23):
            await desk.clock.advance(3600)
            await desk.until_waiting(3600.0)
        assert await desk.queue.depth(SCANS) == 0
        await desk.clock.advance(3600)
        await desk.clock.advance(3600)  # a tenth of the period is its share, an hour at most
        assert await desk.asked() == sbom.name


async def test_a_period_that_a_registry_gets_later_counts_for_old_reports(desk: Desk) -> None:
    sbom = await desk.sbom("v1")
    await desk.report(sbom)
    await desk.clock.advance(3 * 86400)
    async with desk.working():
        await desk.change(Registry, "main", scan_schedule=ScanSchedule(scan_period=Period("1d")))
        assert await desk.asked() == sbom.name


async def test_a_new_database_rescans_only_those_of_whose_packages_it_says_new_things(desk: Desk) -> None:
    await desk.change(Registry, "main", db_changed_rescan=True)
    first = await desk.imported("first", osv("A-1", "left"), osv("A-2", "right"))
    touched, untouched = await desk.sbom("v1", "left"), await desk.sbom("v2", "right")
    for sbom in (touched, untouched):
        await desk.report(sbom, first.digest)
    async with desk.working():
        second = await desk.imported("second", osv("A-1", "left", fixed="3.0"), osv("A-2", "right"))
        assert await desk.asked() == touched.name
        await desk.report(touched, second.digest)
        told = await desk.until(
            VulnerabilityReport, untouched.name, lambda report: report.spec.database == second.digest
        )
        assert told.spec.scanned_at == format_time(desk.clock.now())
        assert await desk.queue.depth(SCANS) == 0


async def test_what_a_database_did_not_touch_is_compared_with_the_next(desk: Desk) -> None:
    await desk.change(Registry, "main", db_changed_rescan=True)
    first = await desk.imported("first", osv("A-1", "left"))
    sbom = await desk.sbom("v1", "right")
    await desk.report(sbom, first.digest)
    async with desk.working():
        for number in (2, 3, 4):
            now = await desk.imported(f"number {number}", osv("A-1", "left", fixed=f"{number}.0"))
            digest_now = now.digest
            await desk.until(
                VulnerabilityReport, sbom.name, lambda report, wanted=digest_now: report.spec.database == wanted
            )
        await desk.imported("last", osv("A-1", "left", fixed="4.0"), osv("A-2", "right"))
        assert await desk.asked() == sbom.name


async def test_when_the_database_before_is_gone_every_sbom_is_scanned(desk: Desk) -> None:
    await desk.change(Registry, "main", db_changed_rescan=True)
    sboms = [await desk.sbom("v1", "left"), await desk.sbom("v2", "right")]
    for sbom in sboms:
        await desk.report(sbom, "sha256:of-long-ago")
    await desk.imported("first", osv("A-1", "left"))
    async with desk.working():
        assert {await desk.asked(), await desk.asked()} == {sbom.name for sbom in sboms}


async def test_without_a_wish_a_new_database_changes_nothing(desk: Desk) -> None:
    first = await desk.imported("first", osv("A-1", "left"))
    sbom = await desk.sbom("v1", "left")
    await desk.report(sbom, first.digest)
    async with desk.working():
        await desk.imported("second", osv("A-1", "left", fixed="3.0"))
        other = await desk.sbom("v2")
        assert await desk.asked() == other.name
        await desk.until_waiting(ASK_AGAIN)
        assert await desk.queue.depth(SCANS) == 0


async def test_new_statements_rescan_what_has_findings_when_they_are_quiet(desk: Desk) -> None:
    sbom, clean = await desk.sbom("v1", "left"), await desk.sbom("v2", "right")
    await desk.report(sbom)
    await desk.report(clean, findings=0)
    async with desk.working():
        await desk.vex("ours", inline=openvex())
        await desk.until(VEXSource, "ours", lambda source: source.status)
        await desk.until_waiting(10.0)
        assert await desk.queue.depth(SCANS) == 0
        await desk.clock.advance(10)
        assert await desk.asked() == sbom.name
        said, _ = await looked_up(desk.client, desk.blobs, desk.namespace)
        await desk.report(sbom, vex=said)
        await desk.client.delete(Ref(VEXSource, "ours", desk.namespace))
        await desk.until_waiting(10.0)
        await desk.clock.advance(10)
        assert await desk.asked() == sbom.name


# --- the end ---------------------------------------------------------------------------------------------------------


async def test_blobs_go_with_their_sbom(desk: Desk) -> None:
    sbom = await desk.sbom("v1", "left")
    report = await desk.report(sbom)
    async with desk.working():
        await desk.client.delete(Ref(SBOM, sbom.name, desk.namespace))
        await until_gone(desk.client, SBOM, sbom.name, desk.namespace)
    await desk.blobs.collect(grace=0)
    for blob in (sbom.spec.documents.inventory, report.spec.document):
        with pytest.raises(BlobMissing):
            await desk.blobs.stat(Digest(blob))


async def test_blobs_of_another_sbom_with_the_same_documents_stay(desk: Desk) -> None:
    one, other = await desk.sbom("v1", "left"), await desk.sbom("v2", "left")
    async with desk.working():
        await desk.client.delete(Ref(SBOM, one.name, desk.namespace))
        await until_gone(desk.client, SBOM, one.name, desk.namespace)
    await desk.blobs.collect(grace=0)
    assert await desk.blobs.stat(Digest(other.spec.documents.inventory))


# --- VEX sources -----------------------------------------------------------------------------------------------------


def reason(source: VEXSource) -> str:
    found = get_condition(source.status.conditions, "Ready") if source.status else None
    return f"{found.status}/{found.reason}" if found else ""


async def test_a_source_says_what_was_read_of_it(desk: Desk) -> None:
    async with desk.working():
        await desk.vex("ours", inline=openvex())
        source = await desk.until(VEXSource, "ours", lambda source: reason(source) == "True/Read")
        assert (source.status.documents, source.status.statements) == (1, 1)
        await desk.change(VEXSource, "ours", enabled=False)
        await desk.until(VEXSource, "ours", lambda source: reason(source) == "True/Disabled")


async def test_a_source_that_cannot_be_read_says_why(desk: Desk) -> None:
    async with desk.working():
        await desk.vex("ours", inline="no document")
        source = await desk.until(VEXSource, "ours", lambda source: reason(source) == "False/Unreadable")
        assert source.status.statements == 0


async def test_statements_that_were_left_out_are_named(desk: Desk) -> None:
    async with desk.working():
        await desk.vex("ours", inline=openvex(status="perhaps"))
        source = await desk.until(VEXSource, "ours", lambda source: reason(source) == "True/PartlyRead")
        assert "perhaps" in source.status.skipped[0]


async def test_a_config_map_that_changes_is_noticed(desk: Desk) -> None:
    metadata = ObjectMeta(name="statements", namespace=desk.namespace)
    held = await desk.client.create(ConfigMap(metadata=metadata, data={"a": openvex()}))
    async with desk.working():
        await desk.vex("ours", config_map=ConfigMapRef(name="statements"))
        first = await desk.until(VEXSource, "ours", lambda source: reason(source) == "True/Read")
        await desk.client.patch(held, held.replace(data={"a": openvex("CVE-2026-2")}))
        await desk.until_waiting(LOOK_EVERY)
        await desk.clock.advance(LOOK_EVERY)
        later = await desk.until(VEXSource, "ours", lambda source: source.status.read_at != first.status.read_at)
        assert later.status.read_at == format_time(desk.clock.now())


async def test_the_blob_of_a_source_stays_until_the_source_goes(desk: Desk) -> None:
    blob = await desk.blobs.put(openvex().encode())
    async with desk.working():
        await desk.vex("ours", blob=blob)
        await desk.until(VEXSource, "ours", lambda source: reason(source) == "True/Read")
        await desk.blobs.collect(grace=0)
        assert await desk.blobs.stat(blob)
        await desk.client.delete(Ref(VEXSource, "ours", desk.namespace))
        await until_gone(desk.client, VEXSource, "ours", desk.namespace)
    await desk.blobs.collect(grace=0)
    with pytest.raises(BlobMissing):
        await desk.blobs.stat(blob)
