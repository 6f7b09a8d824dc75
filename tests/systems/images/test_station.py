"""Image discovery as a whole: from a real registry to Images, SBOMs and reports, with each queue, on either server."""

from __future__ import annotations

import asyncio

import aiohttp

from tests.runtime.widgets import until
from tests.systems.images.station import Station, condition, debian, notes, osv
from trimtab.lab import registry_images as made
from trimtab.lab.registry_faults import Dropped, FaultProxy, Stalled
from trimtab.model.duration import Period
from trimtab.runtime.credentials import Credentials
from trimtab.systems.images.kinds import (
    SBOM,
    DiscoveryJob,
    DiscoverySchedule,
    Image,
    Notifications,
    Registry,
    Removal,
    VulnerabilityReport,
)
from trimtab.systems.images.listening import Listener
from trimtab.systems.images.runs.claim import PREFIX
from trimtab.testing.ports import free_ports

OLD, NEW = debian("openssl=3.0.11-1"), debian("openssl=3.0.13-1")
ADVISORY = osv("CVE-2023-5678", "openssl", "3.0.13-1")


async def test_a_job_makes_images_and_their_sboms(station: Station) -> None:
    many = made.index([made.entry(OLD, "linux/amd64"), made.entry(debian(platform="linux/arm64"), "linux/arm64")])
    await station.push("team/app", "1.0", many)
    await station.push("team/web", "2.0", NEW)
    await station.registry()
    async with station.working():
        job = await station.discovered("first")
    assert condition(job, "Completed").reason == "Succeeded"  # type: ignore[union-attr]
    names = ["team/app:1.0 linux/amd64", "team/app:1.0 linux/arm64", "team/web:2.0 linux/amd64"]
    assert list(await station.images()) == names
    assert list(await station.sboms()) == names
    sbom = (await station.sboms())[names[0]]
    document = await station.document(sbom.spec.documents.cyclonedx)
    assert [part["name"] for part in document["components"] if part["type"] == "library"] == ["openssl"]
    held = await station.client.get(Registry, "lab", station.namespace)
    assert notes(held)["last-discovery-type"] == "manual"
    assert notes(held)["last-discoveryjob-name"] == "first"
    assert not [name for name in notes(held) if name.startswith("running-")]


async def test_reports_come_when_a_database_is_there(station: Station) -> None:
    await station.import_database(ADVISORY)
    await station.push("team/app", "old", OLD)
    await station.push("team/app", "new", NEW)
    await station.registry()
    async with station.working():
        job = await station.discovered("first", until="Reports")
    assert condition(job, "Completed").reason == "Succeeded"  # type: ignore[union-attr]
    found = {name: report.spec.top for name, report in (await station.reports()).items()}
    assert [finding.id for finding in found["team/app:old linux/amd64"]] == ["CVE-2023-5678"]
    assert found["team/app:new linux/amd64"] == ()


async def test_a_schedule_discovers_again_and_again(station: Station) -> None:
    await station.push("team/app", "1", OLD)
    await station.registry(discovery_schedule=DiscoverySchedule(discovery_period=Period("1h")))
    async with station.working():
        await station.free()
        assert list(await station.images()) == ["team/app:1 linux/amd64"]
        await station.push("team/app", "2", NEW)
        station.leap(3700)
        held = await station.free(runs=2)
        assert list(await station.images()) == ["team/app:1 linux/amd64", "team/app:2 linux/amd64"]
    assert notes(held)["last-discovery-type"] == "scheduled"
    assert "last-discoveryjob-name" not in notes(held)


async def test_a_push_is_discovered_at_once_and_nothing_else_is_touched(station: Station) -> None:
    await station.push("team/app", "1", OLD)
    await station.push("team/web", "1", OLD)
    await station.secret("told", token="hunter2")
    await station.registry(notifications=Notifications(token_secret="told"))
    async with station.working(), Credentials(station.client) as credentials:
        listener = Listener(station.client, credentials)
        port = await listener.start()
        try:
            await tell(f"http://127.0.0.1:{port}/{station.namespace}/lab", "team/app", "1")
            held = await station.free()
        finally:
            await listener.stop()
        assert list(await station.images()) == ["team/app:1 linux/amd64"]
    assert "pushed" not in notes(held)
    job = await station.reserved()
    assert job.status
    assert job.status.type == "scheduled"
    assert "hunter2" not in repr(await station.everything())


async def tell(url: str, repository: str, tag: str) -> None:
    headers = {
        "Authorization": "Bearer hunter2",
        "Content-Type": "application/vnd.docker.distribution.events.v1+json",
    }
    events = {"events": [{"action": "push", "target": {"repository": repository, "tag": tag}}]}
    async with aiohttp.ClientSession(headers=headers) as session, session.post(url, json=events) as answer:
        assert answer.status == 200


async def test_a_restart_in_the_middle_loses_nothing(station: Station) -> None:
    for number in range(4):
        await station.push("team/app", str(number), debian(f"a={number}"))
    await station.registry()
    await station.job("first")
    async with station.working(work=False):
        await station.running()
    async with station.working():
        await station.completed("first", "Succeeded")
        await station.free()
    assert len(await station.sboms()) == 4


async def test_several_workers_share_the_work(station: Station) -> None:
    for number in range(6):
        await station.push("team/app", str(number), debian(f"a={number}"))
    await station.registry()
    async with station.working(work=False), station.worker("one"), station.worker("two"):
        job = await station.discovered("first")
    assert condition(job, "Completed").reason == "Succeeded"  # type: ignore[union-attr]
    assert len(await station.sboms()) == 6


async def test_what_belongs_to_a_registry_goes_with_it(station: Station) -> None:
    await station.import_database(ADVISORY)
    await station.push("team/app", "1", OLD)
    await station.registry()
    async with station.working():
        await station.discovered("first", until="Reports")
        await station.delete(Registry, "lab")
        await station.until_gone(Registry, "lab")
        for kind in (VulnerabilityReport, SBOM, Image, DiscoveryJob):
            await station.until_all(kind, lambda left: not left)


async def test_an_image_whose_tag_is_gone_is_marked_and_goes_with_a_later_listing(station: Station) -> None:
    await station.push("team/app", "1", OLD)
    await station.push("team/app", "2", NEW)
    await station.registry(removal=Removal(grace=Period("1h"), max_percent=100))
    async with station.working():
        await station.discovered("first", until="Images")
        await station.pusher.delete("team/app", OLD.digest)
        job = await station.discovered("second", until="Images")
        assert job.status
        assert job.status.diff
        assert [(each.change, each.tag) for each in job.status.diff.changes] == [("removed", "1")]
        image = (await station.images())["team/app:1 linux/amd64"]
        assert image.status
        assert image.status.missing_since
        station.leap(3700)
        await station.discovered("third", until="Images")
        assert list(await station.images()) == ["team/app:2 linux/amd64"]


async def test_a_new_database_has_only_what_it_concerns_scanned_again(station: Station) -> None:
    await station.import_database(ADVISORY)
    await station.push("team/app", "old", OLD)
    await station.push("team/app", "other", debian("zlib1g=1.2.13-1"))
    await station.registry(db_changed_rescan=True)
    async with station.working():
        await station.discovered("first", until="Reports")
        first = await station.reports()
        database = await station.import_database(ADVISORY, osv("CVE-2024-0001", "openssl", "3.0.14-1"))
        await station.until_all(
            VulnerabilityReport, lambda reports: {report.spec.database for report in reports} == {database.digest}
        )
        second = await station.reports()
    old, other = "team/app:old linux/amd64", "team/app:other linux/amd64"
    assert {finding.id for finding in second[old].spec.top} == {"CVE-2023-5678", "CVE-2024-0001"}
    assert second[other].spec.scanned_at == first[other].spec.scanned_at
    assert second[other].spec.document == first[other].spec.document


async def test_a_worker_that_dies_frees_the_registry_in_the_end(station: Station) -> None:
    await station.push("team/app", "1", OLD)
    async with FaultProxy(*free_ports(1), station.lab.url) as proxy:
        proxy.fault("GET", "/tags/list", Stalled(after=0))
        await station.registry(uri=proxy.url)
        async with station.working(work=False):
            await station.job("first")
            async with station.worker("one") as worker:
                await until(lambda: proxy.count("GET", "/tags/list"))
                worker.kill()
            completed = asyncio.create_task(station.completed("first"))
            while not (await asyncio.wait((completed,), timeout=0.5))[0]:
                station.leap(310)
            job, held = await completed, await station.free()
    assert condition(job, "Completed").reason == "WorkerLost"  # type: ignore[union-attr]
    assert notes(held)["last-discoveryjob-name"] == "first"
    assert "last-discovered-at" not in notes(held)


async def test_another_worker_goes_on_where_one_died(station: Station) -> None:
    await station.push("team/app", "1", OLD)
    async with FaultProxy(*free_ports(1), station.lab.url) as proxy:
        proxy.fault("GET", "/tags/list", Stalled(after=0), times=1)
        await station.registry(uri=proxy.url)
        async with station.working(work=False):
            await station.job("first")
            async with station.worker("one") as worker:
                await until(lambda: proxy.count("GET", "/tags/list"))
                worker.kill()
            async with station.worker("two", silent=0.2):
                job = await station.completed("first", "Succeeded")
    assert job.status
    assert (job.status.worker, job.status.fence) == ("two", 2)


async def test_a_registry_that_is_away_fails_the_run_and_the_next_succeeds(station: Station) -> None:
    await station.push("team/app", "1", OLD)
    async with FaultProxy(*free_ports(1), station.lab.url) as proxy:
        proxy.fault("GET", "", Dropped())
        await station.registry(uri=proxy.url)
        async with station.working():
            job = await station.discovered("first")
            said = condition(job, "Completed")
            assert said
            assert (said.status, said.reason) == ("False", "RegistryUnavailable")
            proxy.clear()
            job = await station.discovered("second")
            assert condition(job, "Completed").reason == "Succeeded"  # type: ignore[union-attr]


async def test_a_push_that_could_not_be_listed_is_listed_later(station: Station) -> None:
    await station.push("team/app", "1", OLD)
    async with FaultProxy(*free_ports(1), station.lab.url) as proxy:
        for method in ("GET", "HEAD"):
            proxy.fault(method, "", Dropped())
        await station.registry(uri=proxy.url, annotations={f"{PREFIX}pushed": '{"team/app":["1"]}'})
        async with station.working():
            held = await station.free()
            assert notes(held).get("pushed") == '{"team/app":["1"]}'
            proxy.clear()
            station.leap(61)
            held = await station.free(runs=2)
            assert list(await station.images()) == ["team/app:1 linux/amd64"]
    assert "pushed" not in notes(held)
