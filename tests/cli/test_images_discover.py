"""`trimtab images discover`, with a controller that the test plays: what it writes is what is shown."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
from typing import Any

import pytest
from msgspec import UNSET

from tests.cli.conftest import Program
from tests.cli.images_kit import condition
from trimtab.client.api import ApiClient
from trimtab.client.follow import follow
from trimtab.client.protocol import Listing, Query, Ref
from trimtab.model.conditions import Condition
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.progress import ProgressStatus
from trimtab.systems.images.kinds import (
    Diff,
    DiscoveryJob,
    DiscoveryJobStatus,
    ImageCounts,
    ImageError,
    ListingCounts,
    Registry,
    RegistrySpec,
    RegistryStatus,
    TagChange,
)
from trimtab.systems.images.runs.claim import RELEASE

BEGAN, ENDED = "2026-01-01T12:00:00Z", "2026-01-01T12:00:12Z"
ONE, OTHER = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"


class Controller:
    """What the controllers of image discovery would write."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self._client, self._namespace = client, namespace

    async def registry(self) -> None:
        metadata = ObjectMeta(name="lab", namespace=self._namespace)
        await self._client.create(Registry(metadata=metadata, spec=RegistrySpec(uri="https://registry.example.com")))

    async def job(self) -> DiscoveryJob:
        """The job, when it comes."""
        following = follow(self._client, DiscoveryJob, Query(namespace=self._namespace))
        try:
            async for told in following:
                for job in told.items if isinstance(told, Listing) else (told.object,):
                    assert isinstance(job, DiscoveryJob)
                    return job
        finally:
            await following.aclose()
        raise AssertionError("the watch never ends")

    async def write(self, job: DiscoveryJob, **status: Any) -> None:
        old = await self._client.get(DiscoveryJob, job.name, job.namespace)
        new = old.replace(status=DiscoveryJobStatus(run_id="r1", **status))
        await self._client.patch(old, new, subresource="status")

    async def delete(self, job: DiscoveryJob) -> None:
        await self._client.delete(Ref(DiscoveryJob, job.name, job.namespace))


@pytest.fixture
async def controller(images_client: ApiClient, images: Program) -> Controller:
    made = Controller(images_client, images.namespace)
    await made.registry()
    return made


def conditions(progressing: tuple[str, str], completed: tuple[str, str, str]) -> tuple[Condition, ...]:
    return condition("Progressing", *progressing, ""), condition("Completed", *completed)


RUNNING = conditions(("True", "Listing"), ("Unknown", "Running", ""))
SUCCEEDED = conditions(("True", "Finished"), ("True", "Succeeded", "3 of 3 images have their SBOM"))


def started(images: Program, *words: str, **more: Any) -> subprocess.Popen[str]:
    return images.installed("images", "discover", "lab", *words, **{"stderr": subprocess.PIPE, **more})


async def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = await asyncio.to_thread(process.communicate, timeout=30)
    return process.returncode, out, err


async def test_discover_makes_a_job_follows_it_and_tells_what_came_of_it(
    images: Program, controller: Controller
) -> None:
    process = started(images, "--until", "reports")
    job = await controller.job()
    assert job.name.startswith("lab-")
    assert (job.spec.registry, job.spec.until) == ("lab", "Reports")
    progress = ProgressStatus(done=5, total=12, note="repositories", started=BEGAN, updated=ENDED)
    await controller.write(job, conditions=RUNNING, progress=progress)
    assert process.stderr is not None
    said = await asyncio.to_thread(process.stderr.readline)
    assert said == f"discoveryjob/{job.name}: 5 of 12: Listing, repositories\n"
    await controller.write(
        job,
        conditions=SUCCEEDED,
        start_time=BEGAN,
        completion_time=ENDED,
        listing=ListingCounts(repositories=2, tags=4, found=3, skipped=1),
        images=ImageCounts(discovered=3, created=2, unchanged=1, sboms=3),
        diff=Diff(
            added=1,
            moved=1,
            changes=(
                TagChange(change="added", repository="team/app", tag="1.1", digest=ONE),
                TagChange(change="moved", repository="team/app", tag="latest", digest=ONE, before=OTHER),
            ),
        ),
    )
    code, out, _ = await ended(process)
    assert code == 0
    assert out.splitlines() == [
        f"discoveryjob/{job.name}: Succeeded in 12 s: 3 of 3 images have their SBOM",
        "WHAT           COUNT",
        "repositories   2",
        "tags           4",
        "skipped        1",
        "discovered     3",
        "created        2",
        "unchanged      1",
        "sboms          3",
        "tags: 1 added, 1 moved, 0 removed",
        "CHANGE   TAG               DIGEST                BEFORE",
        "added    team/app:1.1      sha256:111111111111",
        "moved    team/app:latest   sha256:111111111111   sha256:222222222222",
    ]


async def test_where_some_images_failed_they_are_named_and_the_exit_code_is_0(
    images: Program, controller: Controller
) -> None:
    process = started(images)
    job = await controller.job()
    assert job.spec.until == "SBOMs"
    partly = conditions(("True", "Finished"), ("True", "PartiallySucceeded", "1 of 2 images have their SBOM"))
    errors = (
        ImageError(repository="team/app", tag="bad", image="x", reason="DigestMismatch", message="a layer is damaged"),
        ImageError(repository="team/gone", reason="NotFound", message="no such repository"),
    )
    await controller.write(job, conditions=partly, errors=errors, error_count=5)
    code, out, _ = await ended(process)
    assert code == 0
    assert out.splitlines()[1:] == [
        "FAILED         REASON           MESSAGE",
        "team/app:bad   DigestMismatch   a layer is damaged",
        "team/gone      NotFound         no such repository",
        "and 3 more",
    ]


async def test_a_discovery_that_failed_has_exit_code_1_and_says_why(images: Program, controller: Controller) -> None:
    process = started(images)
    job = await controller.job()
    failed = conditions(("False", "AuthenticationFailed"), ("False", "AuthenticationFailed", "the login was refused"))
    await controller.write(job, conditions=failed)
    code, out, _ = await ended(process)
    assert (code, out) == (1, f"discoveryjob/{job.name}: AuthenticationFailed: the login was refused\n")


async def test_a_registry_that_another_job_has_is_named_with_that_job(images: Program, controller: Controller) -> None:
    process = started(images)
    job = await controller.job()
    refused = conditions(("False", "DiscoveryAlreadyRunning"), ("False", "DiscoveryAlreadyRunning", "it is running"))
    await controller.write(job, conditions=refused, blocked_by="lab-other")
    code, out, _ = await ended(process)
    assert code == 1
    assert "discoveryjob/lab-other has the registry: try again when it has ended" in out


async def test_a_job_that_nobody_takes_is_out_of_time_and_says_who_should(
    images: Program, controller: Controller
) -> None:
    ran = images("images", "discover", "lab", "--timeout", "0.2s")
    assert ran.code == 124
    assert "did not end within 0.2 s, for nobody has taken it: do controllers run the system images?" in ran.err


async def test_a_job_that_goes_on_is_out_of_time_and_says_how_to_see_more(
    images: Program, controller: Controller
) -> None:
    process = started(images, "--timeout", "3s")
    job = await controller.job()
    await controller.write(job, conditions=RUNNING)
    code, _, err = await ended(process)
    assert code == 124
    assert f"it goes on without us: `trimtab get discoveryjob {job.name} -w`" in err


async def test_a_job_that_is_deleted_meanwhile_ends_it(images: Program, controller: Controller) -> None:
    process = started(images)
    await controller.delete(await controller.job())
    code, _, err = await ended(process)
    assert code == 1
    assert "was deleted meanwhile" in err


async def test_no_wait_only_asks(images: Program, controller: Controller) -> None:
    ran = images("images", "discover", "lab", "--no-wait")
    job = await controller.job()
    assert (ran.code, ran.out) == (0, f"discoveryjob/{job.name}: a discovery of registry lab was asked for\n")
    assert job.status is UNSET


async def test_an_interrupted_command_leaves_the_job_to_go_on(images: Program, controller: Controller) -> None:
    process = started(images)
    job = await controller.job()
    await controller.write(job, conditions=RUNNING)
    assert process.stderr is not None
    await asyncio.to_thread(process.stderr.readline)
    process.send_signal(signal.SIGINT)
    assert (await ended(process))[0] == 130
    assert (await controller.job()).name == job.name


async def test_a_terminal_has_a_bar(images: Program, controller: Controller) -> None:
    ours, its = pty.openpty()
    process = started(images, stderr=its)
    os.close(its)
    job = await controller.job()
    progress = ProgressStatus(done=5, total=12, started=BEGAN, updated=ENDED)
    await controller.write(job, conditions=RUNNING, progress=progress)
    seen = b""
    while b"5/12" not in seen:
        seen += await asyncio.to_thread(os.read, ours, 65536)
    await controller.write(job, conditions=SUCCEEDED)
    assert (await ended(process))[0] == 0
    os.close(ours)


async def test_a_registry_that_is_not_there_has_its_exit_code_and_gets_no_job(
    images: Program, images_client: ApiClient
) -> None:
    ran = images("images", "discover", "nobody")
    assert ran.code == 3
    assert 'registries.images.trimtab.dev "nobody" not found' in ran.err
    assert not (await images_client.list(DiscoveryJob, Query(namespace=images.namespace))).items


def test_until_is_one_of_three_words(bare: Program) -> None:
    ran = bare("images", "discover", "lab", "--until", "Everything")
    assert ran.code == 2
    assert '"Everything" is not one of Images, SBOMs, Reports' in " ".join(ran.err.split())


async def test_what_was_held_back_is_said_and_release_names_the_run_that_did(
    images: Program, images_client: ApiClient, controller: Controller
) -> None:
    process = started(images)
    job = await controller.job()
    await controller.write(job, conditions=SUCCEEDED, images=ImageCounts(discovered=1, held=40))
    _, out, _ = await ended(process)
    assert "40 were not removed, for they are many: `trimtab images release lab`" in out
    assert "holds nothing back" in images("images", "release", "lab").err
    registry = await images_client.get(Registry, "lab", images.namespace)
    held = registry.replace(status=RegistryStatus(held_run="r7"))
    await images_client.patch(registry, held, subresource="status")
    ran = images("images", "release", "lab")
    assert (ran.code, ran.out) == (
        0,
        "registry/lab: what discovery r7 would have removed may go, with the next discovery\n",
    )
    released = await images_client.get(Registry, "lab", images.namespace)
    assert (released.metadata.annotations or {})[RELEASE] == "r7"
