"""The controller of SBOMs, on both servers. The test is the worker: it takes messages and writes reports."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from tests.runtime.widgets import until, until_gone
from tests.systems.images.scan_kit import Desk, TellingQueue, desk, openvex
from tests.systems.images.test_database import osv
from trimtab.client.protocol import Ref
from trimtab.model.clock import format_time
from trimtab.model.conditions import get_condition
from trimtab.model.duration import Period
from trimtab.runtime.credentials import Credentials
from trimtab.runtime.objects import with_metadata
from trimtab.runtime.workers import Workers
from trimtab.storage.blobs import BlobMissing, Digest
from trimtab.storage.scratch import Scratch
from trimtab.systems.images.kinds import (
    SBOM,
    Registry,
    ScanSchedule,
    VEXSource,
    VulnerabilityReport,
)
from trimtab.systems.images.messages import SCANS
from trimtab.systems.images.registry.connections import Connections
from trimtab.systems.images.sbom_controller import ASK_AGAIN, FULL
from trimtab.systems.images.vex_sources import looked_up
from trimtab.systems.images.worker.handling import Tools
from trimtab.systems.images.worker.scans import ScanHandler
from trimtab.systems.images.worker.worker import Worker

__all__ = ["desk"]


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
        desk.queue = TellingQueue(desk.clock)  # which forgets all


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
    desk.queue = TellingQueue(desk.clock, max_depth=1)
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


@pytest.mark.parametrize("behind", [300.0, -300.0])
async def test_a_worker_whose_clock_is_wrong_is_asked_no_more_often(desk: Desk, behind: float) -> None:
    await desk.change(Registry, "main", scan_schedule=ScanSchedule(scan_period=Period("1m")))
    async with desk.working():
        sbom = await desk.sbom("v1")
        for times in (1, 2, 3):
            assert await desk.asked() == sbom.name
            assert len(desk.queue.published) == times
            await desk.report(sbom, behind=behind)
            await until(lambda: waits(desk, 60, 66))  # a tenth of the period is its share
            await desk.clock.advance(59)
            assert await desk.queue.depth(SCANS) == 0
            await desk.clock.advance(7)


def waits(desk: Desk, least: float, most: float) -> bool:
    """Whether somebody waits for so long."""
    return any(least <= deadline - desk.clock.monotonic() <= most for deadline in desk.clock.pending)


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


# --- with a worker ---------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def scanning(desk: Desk) -> AsyncIterator[None]:
    """A worker that scans, beside the controllers."""
    async with (
        Workers(1) as workers,
        Connections(clock=desk.clock) as connections,
        Credentials(desk.client) as credentials,
    ):
        tools = Tools(
            name="worker",
            client=desk.client,
            clock=desk.clock,
            blobs=desk.blobs,
            scratch=Scratch(desk.folder / "worker", 1 << 30),
            workers=workers,
            connections=connections,
            credentials=credentials,
        )
        stop = asyncio.Event()
        task = asyncio.create_task(Worker(tools, desk.queue, {SCANS: ScanHandler(tools)}).run(stop))
        try:
            yield
        finally:
            stop.set()
            await task


async def test_reports_follow_the_database_and_the_statements_by_themselves(desk: Desk) -> None:
    await desk.change(Registry, "main", db_changed_rescan=True)
    sbom = await desk.sbom("v1", "left")
    async with desk.working(), scanning(desk):
        await desk.until(SBOM, sbom.name, lambda sbom: condition_of(sbom) == "False/NoDatabase")
        await desk.imported("first", osv("A-1", "right"))
        await desk.until(VulnerabilityReport, sbom.name, lambda report: _found(report) == (0, 0))
        await desk.imported("second", osv("A-1", "right"), osv("A-2", "left", aliases=["CVE-2026-1"]))
        await desk.until(VulnerabilityReport, sbom.name, lambda report: _found(report) == (1, 0))
        await desk.vex("ours", inline=openvex("CVE-2026-1"))
        await desk.until_waiting(10.0)
        await desk.clock.advance(10)
        report = await desk.until(VulnerabilityReport, sbom.name, lambda report: _found(report) == (0, 1))
        assert report.spec.vex == (await looked_up(desk.client, desk.blobs, desk.namespace))[0]
    assert [name.split("/")[2] for name in desk.queue.published] == ["new", "new", "database", "vex"]


def condition_of(sbom: SBOM) -> str:
    found = get_condition(sbom.status.conditions, "Scanned") if sbom.status else None
    return f"{found.status}/{found.reason}" if found else ""


def _found(report: VulnerabilityReport) -> tuple[int, int]:
    """Findings that count, and those that are suppressed."""
    summary = report.spec.summary
    counting = (summary.critical, summary.high, summary.medium, summary.low, summary.unknown)
    return sum(counting), summary.suppressed
