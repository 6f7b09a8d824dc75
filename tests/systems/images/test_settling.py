"""A run completes when every member of a frozen set is settled, whatever the counts say. The test is the worker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from tests.systems.images.desk import DIGEST, Desk, condition
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query, Ref
from trimtab.model.conditions import set_condition
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Untyped
from trimtab.runtime.owners import owner_reference
from trimtab.systems.images.kinds import (
    SBOM,
    Attempt,
    DiscoveryJob,
    Documents,
    Image,
    ImageStatus,
    SBOMSpec,
    SBOMStatus,
)
from trimtab.systems.images.kinds.job import REGISTRY_LABEL
from trimtab.systems.images.messages import SBOMS, GenerateSBOM, decode
from trimtab.systems.images.settling import WINDOW


@pytest.fixture
async def desk(defined: ApiClient, namespace: str, tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(defined, namespace, tmp_path)
    async with made.working():
        yield made


async def begun(desk: Desk, *tags: str, until: str = "SBOMs") -> dict[str, Image]:
    """A run whose listing has ended with these tags, and its Images by tag."""
    await desk.registry()
    await desk.job("now", until=until)
    await desk.asked()
    await desk.listed("now", *tags)
    await desk.until(DiscoveryJob, "now", lambda o: o.status.images)
    images = (await desk.client.list(Image, Query(namespace=desk.namespace))).items
    return {image.spec.tag: image for image in images}


async def wanted(desk: Desk, count: int) -> list[GenerateSBOM]:
    """So many messages for workers, none of them acknowledged before."""
    found: list[GenerateSBOM] = []
    async with asyncio.timeout(30), aclosing(desk.queue.consume(SBOMS, concurrency=count)) as messages:  # type: ignore[type-var]
        while len(found) < count:
            message = await anext(messages)
            await message.ack()
            found.append(decode(message.payload, GenerateSBOM))
    return found


async def make(desk: Desk, image: Image, *, owner: Image | None = None, reason: str = "", kept: bool = True) -> SBOM:
    """The SBOM of an image; with a reason, one whose scan failed so; not `kept`, one whose maker died too early."""
    of = owner or image
    metadata = ObjectMeta(
        name=image.name,
        namespace=desk.namespace,
        labels={REGISTRY_LABEL: (image.metadata.labels or {})[REGISTRY_LABEL]},
        owner_references=(owner_reference(of, desk.client.scheme),),
    )
    blob = "sha256:" + "0" * 64
    spec = SBOMSpec(
        registry=image.spec.registry,
        registry_uri=image.spec.registry_uri,
        repository=image.spec.repository,
        tag=image.spec.tag,
        digest=DIGEST,
        documents=Documents(spdx=blob, cyclonedx=blob, inventory=blob),
    )
    sbom = await desk.client.create(SBOM(metadata=metadata, spec=spec))
    if kept:
        held = await desk.client.get(Image, image.name, desk.namespace)
        is_ready = set_condition((), "Ready", True, "SBOMGenerated", now=desk.clock.now())
        await desk.client.patch(held, held.replace(status=ImageStatus(conditions=is_ready)), subresource="status")
    if not reason:
        return sbom
    said = set_condition((), "Scanned", False, reason, "no", now=desk.clock.now())
    return await desk.client.patch(sbom, sbom.replace(status=SBOMStatus(conditions=said)), subresource="status")


async def fail(desk: Desk, image: Image, run: str) -> None:
    attempt = Attempt(run=run, reason="DigestMismatch", message="the layer is not what its digest says")
    held = await desk.client.get(Image, image.name, desk.namespace)
    await desk.client.patch(held, held.replace(status=ImageStatus(attempt=attempt)), subresource="status")


async def test_a_run_completes_when_each_member_has_its_sbom(desk: Desk) -> None:
    images = await begun(desk, "1", "2")
    assert {message.image for message in await wanted(desk, 2)} == {image.name for image in images.values()}
    for image in images.values():
        await make(desk, image)
    done = await desk.completed("now", "Succeeded")
    assert (done.status.images.discovered, done.status.images.sboms) == (2, 2)  # type: ignore[union-attr]


async def test_one_bad_image_is_named_and_the_others_count(desk: Desk) -> None:
    images = await begun(desk, "good", "bad")
    messages = await wanted(desk, 2)
    await make(desk, images["good"])
    await fail(desk, images["bad"], messages[0].run)
    done = await desk.completed("now", "PartiallySucceeded")
    assert condition(done, "Completed").status == "True"  # type: ignore[union-attr]
    (error,) = done.status.errors or ()  # type: ignore[union-attr]
    assert (error.repository, error.tag, error.reason) == ("app", "bad", "DigestMismatch")
    assert done.status.error_count == 1  # type: ignore[union-attr]


async def test_a_member_that_failed_though_it_has_an_sbom_is_settled(desk: Desk) -> None:
    """Its documents were lost, and could not be made again."""
    images = await begun(desk, "good", "bad")
    messages = await wanted(desk, 2)
    await make(desk, images["good"])
    await make(desk, images["bad"], kept=False)
    await fail(desk, images["bad"], messages[0].run)
    await desk.completed("now", "PartiallySucceeded")


async def test_a_failure_of_an_earlier_run_is_tried_again(desk: Desk) -> None:
    await desk.registry()
    await desk.job("first", until="Images")
    await desk.asked()
    await desk.listed("first", "1")
    await desk.completed("first", "Succeeded")
    await desk.free()
    (image,) = (await desk.client.list(Image, Query(namespace=desk.namespace))).items
    await fail(desk, image, "an-earlier-run")
    await desk.job("now", until="SBOMs")
    await desk.asked()
    await desk.listed("now", "1")
    assert [message.image for message in await wanted(desk, 1)] == [image.name]


async def test_an_image_that_is_deleted_meanwhile_is_waited_for_no_more(desk: Desk) -> None:
    images = await begun(desk, "1", "2")
    await wanted(desk, 2)
    await make(desk, images["1"])
    await desk.delete(Image, images["2"].name)
    done = await desk.completed("now", "Succeeded")
    assert (done.status.images.sboms, done.status.images.gone) == (1, 1)  # type: ignore[union-attr]


async def test_what_is_not_of_the_run_completes_nothing(desk: Desk) -> None:
    """As many SBOMs as images are no completion: one of them is of an Image that had the name before."""
    images = await begun(desk, "1", "2")
    await wanted(desk, 2)
    await make(desk, images["1"])
    await make(desk, images["2"], owner=images["1"])
    job = await desk.later(60, desk.until(DiscoveryJob, "now", lambda o: (o.status.images.sboms or 0) == 1))
    assert condition(job, "Completed").status == "Unknown"  # type: ignore[union-attr]


async def test_an_sbom_whose_maker_died_before_its_documents_were_kept_is_asked_for_again(
    defined: ApiClient, namespace: str, tmp_path: Path
) -> None:
    desk = Desk(defined, namespace, tmp_path)
    async with desk.working():
        images = await begun(desk, "1")
        await wanted(desk, 1)
        await make(desk, images["1"], kept=False)
    async with desk.working():
        assert [message.image for message in await wanted(desk, 1)] == [images["1"].name]


async def test_a_registry_has_only_a_window_of_its_images_in_the_queue(desk: Desk) -> None:
    images = await begun(desk, *(f"{number}" for number in range(WINDOW + 6)))
    first = await wanted(desk, WINDOW)
    assert await desk.queue.depth(SBOMS) == 0
    by_name = {image.name: image for image in images.values()}
    for message in first[:6]:
        await make(desk, by_name[message.image])
    more = await desk.later(1, wanted(desk, 6))
    assert len({message.image for message in (*first, *more)}) == WINDOW + 6


async def test_what_nothing_came_of_is_asked_for_again_in_the_end(desk: Desk) -> None:
    await begun(desk, "1")
    (first,) = await wanted(desk, 1)
    (again,) = await desk.later(905, wanted(desk, 1))
    assert again == first


async def test_a_full_queue_is_filled_as_it_empties(defined: ApiClient, namespace: str, tmp_path: Path) -> None:
    desk = Desk(defined, namespace, tmp_path, depth=2)
    async with desk.working():
        await begun(desk, "1", "2", "3", "4", "5")
        found = set()
        while len(found) < 5:
            found |= {message.image for message in await desk.later(1, wanted(desk, 1))}
        assert condition(await desk.until(DiscoveryJob, "now", lambda o: True), "Completed").status == "Unknown"  # type: ignore[union-attr]


async def test_after_a_restart_only_what_is_not_there_is_asked_for(
    defined: ApiClient, namespace: str, tmp_path: Path
) -> None:
    desk = Desk(defined, namespace, tmp_path)
    async with desk.working():
        images = await begun(desk, "1", "2", "3")
        await wanted(desk, 3)
        await make(desk, images["1"])
    async with desk.working():
        again = await wanted(desk, 2)
        assert {message.image for message in again} == {images["2"].name, images["3"].name}
        for tag in ("2", "3"):
            await make(desk, images[tag])
        await desk.completed("now", "Succeeded")


async def test_reports_that_cannot_be_made_fail_their_images(desk: Desk) -> None:
    with contextlib.suppress(StatusError):
        await desk.client.delete(Ref(ConfigMap, "images-database", "trimtab-system"))
    images = await begun(desk, "1", until="Reports")
    await wanted(desk, 1)
    await make(desk, images["1"], reason="NoDatabase")
    done = await desk.completed("now", "AllImagesFailed")
    assert done.status.errors[0].reason == "NoDatabase"  # type: ignore[union-attr,index]


async def test_a_database_that_was_imported_since_makes_old_refusals_count_no_more(desk: Desk) -> None:
    images = await begun(desk, "1", "2", until="Reports")
    await wanted(desk, 2)
    await imported(desk)
    await make(desk, images["1"], reason="NoDatabase")
    await make(desk, images["2"], reason="InventoryMissing")
    job = await desk.later(60, desk.until(DiscoveryJob, "now", lambda o: o.status.images.failed))
    assert condition(job, "Completed").status == "Unknown"  # type: ignore[union-attr]
    assert job.status.images.failed == 1
    await desk.client.delete(Ref(ConfigMap, "images-database", "trimtab-system"))


async def imported(desk: Desk) -> None:
    """A database is there; that of another test will do."""
    digest = "sha256:" + "d" * 64
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "trimtab-system"}}
    database = ConfigMap(
        metadata=ObjectMeta(name="images-database", namespace="trimtab-system"),
        data={"blob": digest, "digest": digest, "importedAt": "2026-01-01T00:00:00Z", "advisories": "1"},
    )
    for needed in (Untyped(namespace), database):
        with contextlib.suppress(StatusError):
            await desk.client.create(needed)


async def test_a_run_that_found_nothing_says_so(desk: Desk) -> None:
    await desk.registry()
    await desk.job("now", until="SBOMs")
    await desk.asked()
    await desk.listed("now")
    await desk.completed("now", "NoImages")


async def test_a_catalogue_that_is_lost_ends_the_run(desk: Desk) -> None:
    await desk.registry()
    await desk.job("now")
    await desk.asked()
    await desk.listed("now", catalog="sha256:" + "f" * 64, complete=True)
    await desk.completed("now", "CatalogLost")
    assert not (await desk.client.list(Image, Query(namespace=desk.namespace))).items
    await desk.free()
