"""Reports made by a worker: a real database, a real process, VEX statements, and everything that is missing."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from tests.runtime.widgets import until_found
from tests.systems.images.advisory_kit import BASH, LEFT_PAD, OTHER, advisory, database, home, openvex
from tests.systems.images.worker_kit import Bench, Crash, Steps, bench, condition
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Ref
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.objects import with_metadata
from trimtab.runtime.owners import controller_of, own
from trimtab.runtime.queue import LocalQueue
from trimtab.runtime.system import NAMESPACE
from trimtab.storage.blobs import BlobMissing, Digest, read
from trimtab.storage.folder import FolderBlobs
from trimtab.systems.images.databases import NAME, publish
from trimtab.systems.images.kinds import (
    SBOM,
    Documents,
    SBOMSpec,
    Severities,
    TopFinding,
    VEXSource,
    VEXSourceSpec,
    VulnerabilityReport,
)
from trimtab.systems.images.kinds.job import REGISTRY_LABEL
from trimtab.systems.images.layers.image import Inventory
from trimtab.systems.images.messages import SCANS, ScanSBOM, encode
from trimtab.systems.images.packages.package import Distro, Package
from trimtab.systems.images.pins import FINALIZER, documents_owner
from trimtab.systems.images.vulnerabilities.report import Report
from trimtab.systems.images.worker import documents
from trimtab.systems.images.worker.handling import Later
from trimtab.systems.images.worker.scans import ScanHandler
from trimtab.systems.images.worker.worker import worker
from trimtab.testing.clock import FakeClock

DIGEST, INDEX = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
INVENTORY = Inventory(
    distro=Distro("debian", "12", "Debian"),
    packages=(
        Package(type="deb", name="bash", version="5.2.15-2", namespace="debian", path="var/lib/dpkg/status"),
        Package(type="npm", name="left-pad", version="1.3.0", path="app/package.json"),
        Package(type="gem", name="rake", version="13.0.6", path="rake.gemspec"),
    ),
)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def at(defined: ApiClient, namespace: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Bench]:
    await home(defined)
    async with bench(defined, namespace, tmp_path, None, clock) as made_ready:
        await made_ready.ready()
        yield made_ready


@pytest.fixture
def handler(at: Bench) -> ScanHandler:
    return ScanHandler(at.tools)


async def made_sbom(at: Bench, name: str = "one") -> SBOM:
    digest = await at.tools.blobs.put(documents.encode(INVENTORY))
    spec = SBOMSpec(
        registry="main",
        registry_uri="registry.example:5000",
        repository="team/app",
        tag="1.0",
        digest=DIGEST,
        index_digest=INDEX,
        platform="linux/amd64",
        documents=Documents(spdx=digest, cyclonedx=digest, inventory=digest),
    )
    labels = {REGISTRY_LABEL: at.registry.metadata.uid or ""}
    metadata = ObjectMeta(name=name, namespace=at.namespace, labels=labels, finalizers=(FINALIZER,))
    sbom = await at.client.create(own(SBOM(metadata=metadata, spec=spec), at.registry))
    await at.tools.blobs.pin(digest, documents_owner(sbom))
    return sbom


async def imported(at: Bench, folder: Path, *advisories: dict[str, object]) -> str:
    return (await publish(at.client, at.tools.blobs, database(folder, *advisories), clock=at.tools.clock)).digest


def message(sbom: SBOM) -> ScanSBOM:
    return ScanSBOM(namespace=sbom.namespace, registry="main", sbom=sbom.name, sbom_uid=sbom.metadata.uid or "")


async def report(at: Bench, sbom: SBOM) -> VulnerabilityReport:
    return await at.client.get(VulnerabilityReport, sbom.name, sbom.namespace)


async def whole(at: Bench, digest: str) -> Report:
    content = await read(at.tools.blobs, Digest(digest), max_bytes=1 << 20)
    return msgspec.json.decode(content, type=Report)


async def scanned(at: Bench, sbom: SBOM) -> tuple[str, str, str]:
    told = condition(await at.client.get(SBOM, sbom.name, sbom.namespace), "Scanned")
    return (told.status, told.reason, told.message) if told else ("", "", "")


async def is_kept(at: Bench, digest: str) -> bool:
    await at.tools.blobs.collect(grace=-1)
    try:
        await at.tools.blobs.stat(Digest(digest))
    except BlobMissing:
        return False
    return True


async def test_an_sbom_gets_its_report_and_is_scanned(at: Bench, handler: ScanHandler, tmp_path: Path) -> None:
    digest = await imported(at, tmp_path, BASH, LEFT_PAD, OTHER)
    sbom = await made_sbom(at)
    await handler.handle(message(sbom))
    made = await report(at, sbom)
    assert made.spec.summary == Severities(critical=1, high=1)
    assert made.spec.top == (
        TopFinding(
            id="CVE-2026-2", severity="Critical", package="left-pad", installed_version="1.3.0", fixed_version="1.3.1"
        ),
        TopFinding(
            id="CVE-2026-1", severity="High", package="bash", installed_version="5.2.15-2", fixed_version="5.2.15-3"
        ),
    )
    assert (made.spec.database, made.spec.scanned_at) == (digest, "2026-01-01T00:00:00Z")
    assert (made.spec.not_checked, made.spec.not_comparable) == (1, 0)
    assert (made.spec.repository, made.spec.tag, made.spec.digest) == ("team/app", "1.0", DIGEST)
    assert not made.spec.vex
    assert made.metadata.labels == {REGISTRY_LABEL: at.registry.metadata.uid}
    owner = controller_of(made)
    assert owner is not None
    assert (owner.kind, owner.uid) == ("SBOM", sbom.metadata.uid)
    assert (await whole(at, made.spec.document)).database == digest
    assert await scanned(at, sbom) == ("True", "Scanned", "")
    assert await is_kept(at, made.spec.document)


async def test_an_unchanged_result_only_renews_its_time(
    at: Bench, handler: ScanHandler, tmp_path: Path, clock: FakeClock
) -> None:
    await imported(at, tmp_path, BASH)
    sbom = await made_sbom(at)
    await handler.handle(message(sbom))
    first = await report(at, sbom)
    clock.jump(60)
    await handler.handle(message(sbom))
    second = await report(at, sbom)
    assert second.spec.scanned_at == "2026-01-01T00:01:00Z"
    assert second.spec.replace(scanned_at=first.spec.scanned_at) == first.spec
    assert await is_kept(at, second.spec.document)


async def test_a_new_database_makes_another_report_and_the_one_before_is_let_go(
    at: Bench, handler: ScanHandler, tmp_path: Path
) -> None:
    await imported(at, tmp_path, BASH)
    sbom = await made_sbom(at)
    await handler.handle(message(sbom))
    first = await report(at, sbom)
    digest = await imported(at, tmp_path, BASH, LEFT_PAD)
    await handler.handle(message(sbom))
    second = await report(at, sbom)
    assert second.spec.database == digest
    assert second.spec.summary == Severities(critical=1, high=1)
    assert second.metadata.uid == first.metadata.uid
    assert await is_kept(at, second.spec.document)
    assert not await is_kept(at, first.spec.document)


@pytest.mark.parametrize(
    "product",
    [
        "pkg:npm/left-pad@1.3.0",
        f"pkg:oci/app@{DIGEST}?repository_url=registry.example:5000/team/app",
        f"pkg:oci/app@{INDEX.replace(':', '%3A')}",
    ],
)
async def test_statements_suppress_findings_by_package_or_image(
    at: Bench, handler: ScanHandler, tmp_path: Path, product: str
) -> None:
    await imported(at, tmp_path, LEFT_PAD)
    metadata = ObjectMeta(name="vendor", namespace=at.namespace)
    inline = openvex("CVE-2026-2", product)
    await at.client.create(VEXSource(metadata=metadata, spec=VEXSourceSpec(inline=inline)))
    sbom = await made_sbom(at)
    await handler.handle(message(sbom))
    made = await report(at, sbom)
    assert made.spec.summary == Severities(suppressed=1)
    assert made.spec.top == ()
    assert made.spec.vex
    await at.client.delete(Ref(VEXSource, "vendor", at.namespace))
    await handler.handle(message(sbom))
    assert (await report(at, sbom)).spec.summary == Severities(critical=1)
    assert not (await report(at, sbom)).spec.vex


async def test_the_worst_twenty_are_in_the_resource_and_all_in_the_document(
    at: Bench, handler: ScanHandler, tmp_path: Path
) -> None:
    many = [advisory(f"CVE-2026-{n}", "npm", "left-pad", "9.0") for n in range(100, 130)]
    await imported(at, tmp_path, *many, LEFT_PAD)
    sbom = await made_sbom(at)
    await handler.handle(message(sbom))
    made = await report(at, sbom)
    assert len(made.spec.top) == 20
    assert made.spec.top[0].id == "CVE-2026-2"
    findings = [finding for result in (await whole(at, made.spec.document)).results for finding in result.findings]
    assert len(findings) == 31


async def test_without_a_database_the_sbom_says_how_to_import_one(at: Bench, handler: ScanHandler) -> None:
    sbom = await made_sbom(at)
    await handler.handle(message(sbom))
    status, reason, why = await scanned(at, sbom)
    assert (status, reason) == ("False", "NoDatabase")
    assert "trimtab images import-db" in why
    with pytest.raises(StatusError, match="not found"):
        await report(at, sbom)


async def test_a_database_that_is_none_is_told_without_a_path_of_this_machine(
    at: Bench, handler: ScanHandler, tmp_path: Path
) -> None:
    blob = await at.tools.blobs.put(b"no database")
    data = {"blob": str(blob), "digest": str(blob)}
    await at.client.create(ConfigMap(metadata=ObjectMeta(name=NAME, namespace=NAMESPACE), data=data))
    sbom = await made_sbom(at)
    await handler.handle(message(sbom))
    status, reason, why = await scanned(at, sbom)
    assert (status, reason) == ("False", "DatabaseUnreadable")
    assert str(tmp_path) not in why


async def test_an_inventory_that_is_gone_or_unreadable_is_told(at: Bench, handler: ScanHandler, tmp_path: Path) -> None:
    await imported(at, tmp_path, BASH)
    sbom = await made_sbom(at)
    strange = str(await at.tools.blobs.put(b"\xc1"))
    named = sbom.spec.documents.replace(inventory=strange)
    sbom = await at.client.patch(sbom, sbom.replace(spec=sbom.spec.replace(documents=named)))
    await handler.handle(message(sbom))
    assert (await scanned(at, sbom))[:2] == ("False", "InventoryUnreadable")
    assert not await is_kept(at, strange)
    await handler.handle(message(sbom))
    assert (await scanned(at, sbom))[:2] == ("False", "InventoryMissing")


async def test_an_sbom_that_is_gone_or_another_one_is_left_alone(
    at: Bench, handler: ScanHandler, tmp_path: Path
) -> None:
    await imported(at, tmp_path, BASH)
    sbom = await made_sbom(at)
    other = msgspec.structs.replace(message(sbom), sbom_uid="another")
    await handler.handle(other)
    await handler.give_up(other, "why")
    await handler.handle(msgspec.structs.replace(message(sbom), sbom="nobody"))
    assert await scanned(at, sbom) == ("", "", "")


async def test_a_pin_of_a_try_before_goes_when_the_sbom_is_gone(
    at: Bench, handler: ScanHandler, tmp_path: Path
) -> None:
    await imported(at, tmp_path, BASH)
    sbom = await made_sbom(at)
    await handler.handle(message(sbom))
    document = (await report(at, sbom)).spec.document
    await at.client.delete(Ref(SBOM, sbom.name, at.namespace))
    going = await at.client.get(SBOM, sbom.name, at.namespace)
    await at.client.patch(going, with_metadata(going, finalizers=()))
    assert await is_kept(at, document)
    await handler.handle(message(sbom))
    assert not await is_kept(at, document)


async def test_two_workers_for_one_sbom_make_one_report(at: Bench, tmp_path: Path) -> None:
    await imported(at, tmp_path, BASH)
    sbom = await made_sbom(at)
    await asyncio.gather(*(ScanHandler(at.tools).handle(message(sbom)) for _ in range(3)))
    made = await report(at, sbom)
    assert made.spec.summary == Severities(high=1)
    assert await is_kept(at, made.spec.document)


async def test_the_report_of_an_sbom_before_is_waited_for(at: Bench, handler: ScanHandler, tmp_path: Path) -> None:
    await imported(at, tmp_path, BASH)
    sbom, other = await made_sbom(at), await made_sbom(at, "other")
    await handler.handle(message(other))
    model = await report(at, other)
    metadata = ObjectMeta(name=sbom.name, namespace=at.namespace)
    await at.client.create(own(VulnerabilityReport(metadata=metadata, spec=model.spec), other))
    with pytest.raises(Later, match="on its way out"):
        await handler.handle(message(sbom))
    await at.client.delete(Ref(VulnerabilityReport, sbom.name, at.namespace))
    await handler.handle(message(sbom))
    assert (await scanned(at, sbom))[:2] == ("True", "Scanned")


async def test_giving_up_is_written_to_the_sbom(at: Bench, handler: ScanHandler) -> None:
    sbom = await made_sbom(at)
    await handler.give_up(message(sbom), "4 deliveries did not end well")
    assert await scanned(at, sbom) == ("False", "GivenUp", "4 deliveries did not end well")


async def test_a_scan_that_succeeds_clears_what_was_wrong(
    at: Bench, handler: ScanHandler, tmp_path: Path, clock: FakeClock
) -> None:
    sbom = await made_sbom(at)
    await handler.handle(message(sbom))
    await imported(at, tmp_path, BASH)
    clock.jump(timedelta(minutes=1).total_seconds())
    await handler.handle(message(sbom))
    assert await scanned(at, sbom) == ("True", "Scanned", "")
    current = condition(await at.client.get(SBOM, sbom.name, sbom.namespace), "Scanned")
    assert current is not None
    assert current.last_transition_time == "2026-01-01T00:01:00Z"


async def test_an_sbom_that_goes_while_it_is_scanned_leaves_no_pin(at: Bench, tmp_path: Path) -> None:
    await imported(at, tmp_path, BASH)
    sbom = await made_sbom(at)

    class Meanwhile(FolderBlobs):
        """The SBOM is deleted, and its controller has let go, just before the report is pinned."""

        async def pin(self, digest: Digest, owner: str) -> None:
            await at.client.delete(Ref(SBOM, sbom.name, sbom.namespace))
            await self.unpin(owner)
            await super().pin(digest, owner)

    tools = msgspec.structs.replace(at.tools, blobs=Meanwhile(tmp_path / "blobs"))
    await ScanHandler(tools).handle(message(sbom))
    assert not await is_kept(at, (await report(at, sbom)).spec.document)


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
async def test_killed_at_any_step_the_next_delivery_completes_it(
    at: Bench, handler: ScanHandler, tmp_path: Path, done: bool
) -> None:
    dated = [await imported(at, tmp_path, BASH), await imported(at, tmp_path, BASH, LEFT_PAD)]
    for step in itertools.count(1):
        sbom = await made_sbom(at, f"sbom-{step}")
        await imported(at, tmp_path, BASH)
        await handler.handle(message(sbom))
        await imported(at, tmp_path, BASH, LEFT_PAD)
        steps = Steps(step, done=done)
        tools = msgspec.structs.replace(
            at.tools, client=steps.through(at.tools.client), blobs=steps.through(at.tools.blobs)
        )
        try:
            await ScanHandler(tools).handle(message(sbom))
        except Crash:
            await handler.handle(message(sbom))
        made = await report(at, sbom)
        assert made.spec.database == dated[1]
        assert await is_kept(at, made.spec.document)
        assert (await scanned(at, sbom))[:2] == ("True", "Scanned")
        if steps.count < step:
            break
    assert step > 8


async def test_from_message_to_report_by_a_worker_with_a_queue(at: Bench, tmp_path: Path, clock: FakeClock) -> None:
    await imported(at, tmp_path, BASH)
    sbom = await made_sbom(at)
    queue = LocalQueue(clock=clock)
    stop = asyncio.Event()
    working = asyncio.create_task(worker(at.tools, queue).run(stop))
    await queue.publish(SCANS, encode(message(sbom)))
    told = await until_found(at.client, SBOM, sbom.name, at.namespace, lambda sbom: condition(sbom, "Scanned"))
    assert condition(told, "Scanned") is not None
    assert (await report(at, sbom)).spec.summary == Severities(high=1)
    stop.set()
    await working


async def test_a_lost_store_of_scratch_costs_time_only(at: Bench, handler: ScanHandler, tmp_path: Path) -> None:
    await imported(at, tmp_path, BASH)
    sbom = await made_sbom(at)
    await handler.handle(message(sbom))
    for folder in ("entries", "whole"):
        shutil.rmtree(tmp_path / "scratch" / "vulnerabilities" / folder)
        (tmp_path / "scratch" / "vulnerabilities" / folder).mkdir()
    await handler.handle(message(sbom))
    assert (await scanned(at, sbom))[:2] == ("True", "Scanned")
