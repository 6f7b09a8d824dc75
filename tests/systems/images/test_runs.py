"""Runs of discoveries: who starts one, that there is never a second, and how each ends. The test is the worker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

import pytest

from tests.systems.images.desk import Desk, condition, notes
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query
from trimtab.model.clock import parse_time
from trimtab.model.duration import Period
from trimtab.runtime.objects import with_metadata
from trimtab.storage.blobs import BlobMissing, Digest
from trimtab.systems.images.kinds import (
    DiscoveryJob,
    DiscoveryJobStatus,
    DiscoverySchedule,
    Image,
    Registry,
    Removal,
)
from trimtab.systems.images.pins import run_owner
from trimtab.systems.images.runs.catalogue import Catalogue, encode
from trimtab.systems.images.runs.claim import running
from trimtab.systems.images.runs.states import begun

RESERVED = "discovery-job-hub"


@pytest.fixture
async def desk(defined: ApiClient, namespace: str, tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(defined, namespace, tmp_path)
    async with made.working():
        yield made


async def test_a_registry_gets_its_reserved_job_which_starts_nothing(desk: Desk) -> None:
    await desk.registry()
    job = await desk.until(DiscoveryJob, RESERVED, lambda o: True)
    assert job.metadata.owner_references[0].kind == "Registry"
    registry = await desk.until(Registry, "hub", lambda o: condition(o, "Ready"))
    assert condition(registry, "Ready").reason == "NeverDiscovered"  # type: ignore[union-attr]
    assert notes(registry) == {}
    assert not job.status


async def test_a_manual_job_claims_the_registry_in_one_write_and_asks_for_a_catalogue(desk: Desk) -> None:
    began = desk.clock.now()
    created = await desk.registry()
    job = await desk.job("now")
    states = await desk.nudged(_until(desk, created, bool))
    asked = await desk.asked()
    (claim,) = [state for state in states if state]
    started = claim["running-discovery-started-at"]
    assert began <= parse_time(started) <= desk.clock.now()
    assert claim == {
        "running-id": asked.run,
        "running-discovery-type": "manual",
        "running-discovery-started-at": started,
        "running-discoveryjob-name": "now",
        "running-discoveryjob-generation": "1",
        "running-discoveryjob-uid": job.metadata.uid,
        "whole-discovery-started-at": started,
    }
    assert (asked.type, asked.job, asked.registry) == ("manual", "now", "hub")


async def _until(desk: Desk, since: Registry, holds: Callable[[dict[str, str]], bool]) -> list[dict[str, str]]:
    """The annotations of the registry after each write since then, up to the first of which this is true."""
    states: list[dict[str, str]] = []
    query = Query(namespace=desk.namespace, fields="metadata.name=hub")
    async with aclosing(desk.client.watch(Registry, query, since.metadata.resource_version or "")) as events:
        async for event in events:
            if event.object is None:
                continue  # a bookmark
            states.append(notes(event.object))
            if holds(states[-1]):
                break
    return states


async def test_a_job_that_finds_another_running_ends_and_starts_nothing(desk: Desk) -> None:
    await desk.registry()
    await desk.job("first")
    await desk.asked()
    await desk.job("second")
    second = await desk.completed("second", "DiscoveryAlreadyRunning")
    assert condition(second, "Completed").status == "False"  # type: ignore[union-attr]
    assert second.status.blocked_by == "first"  # type: ignore[union-attr]
    assert notes(await desk.running())["running-discoveryjob-name"] == "first"
    assert await desk.queue.depth("images.catalog") == 0


async def test_on_completion_one_write_moves_running_to_last(desk: Desk) -> None:
    await desk.registry()
    job = await desk.job("now")
    asked = await desk.asked()
    claimed = await desk.running()
    await desk.listed("now", "1.0", "1.1")
    done = await desk.completed("now", "Succeeded")
    assert done.status.images.discovered == 2  # type: ignore[union-attr]
    states = await desk.nudged(_until(desk, claimed, lambda state: "running-id" not in state))
    assert all(set(state) == set(notes(claimed)) for state in states[:-1])
    started = notes(claimed)["running-discovery-started-at"]
    assert states[-1] == {
        "last-discovery-type": "manual",
        "last-discovery-started-at": started,
        "last-discovered-at": states[-1]["last-discovered-at"],
        "last-discoveryjob-name": "now",
        "last-discoveryjob-generation": "1",
        "last-discoveryjob-uid": job.metadata.uid,
        "whole-discovery-started-at": started,
    }
    assert parse_time(started) <= parse_time(states[-1]["last-discovered-at"]) <= desk.clock.now()
    registry = await desk.until(Registry, "hub", lambda o: o.status.images == 2)
    assert registry.status.history[0].id == asked.run
    assert registry.status.history[0].outcome == "Succeeded"


async def test_a_listing_that_failed_says_why_and_is_no_discovery(desk: Desk) -> None:
    await desk.registry()
    await desk.job("now")
    await desk.asked()
    await desk.listed("now", reason="AuthenticationFailed", message="the login was refused")
    await desk.completed("now", "AuthenticationFailed")
    registry = await desk.free()
    assert "last-discovered-at" not in notes(registry)
    assert notes(registry)["last-discovery-type"] == "manual"
    registry = await desk.until(Registry, "hub", lambda o: condition(o, "Ready").status == "False")  # type: ignore[union-attr]
    assert condition(registry, "Ready").reason == "AuthenticationFailed"  # type: ignore[union-attr]


async def test_a_worker_that_reports_no_more_is_lost_and_the_registry_free(desk: Desk) -> None:
    await desk.registry()
    await desk.job("now")
    await desk.asked()
    await desk.take("now")
    await desk.until(Registry, "hub", lambda o: o.status and o.status.active_run)
    done = await desk.later(301, desk.completed("now", "WorkerLost"))
    assert "w1" in condition(done, "Completed").message  # type: ignore[union-attr]
    await desk.free()


async def test_a_worker_that_reports_is_not_lost(desk: Desk) -> None:
    await desk.registry()
    await desk.job("now")
    await desk.asked()
    await desk.take("now")
    for _ in range(4):
        await desk.clock.advance(120)
        beat = f"{desk.clock.now():%FT%TZ}"
        job = await desk.status("now", lambda s, beat=beat: s.replace(heartbeat=beat))  # type: ignore[misc]
        assert condition(job, "Completed").status == "Unknown"  # type: ignore[union-attr]
    await desk.listed("now", "1.0")
    await desk.completed("now", "Succeeded")


async def test_a_run_past_its_deadline_ends(desk: Desk) -> None:
    await desk.registry(discovery_timeout=Period("10m"))
    await desk.job("now")
    await desk.asked()
    await desk.until(DiscoveryJob, "now", lambda o: o.status.deadline)
    done = await desk.later(601, desk.completed("now", "DeadlineExceeded"))
    assert "no worker took it" in condition(done, "Completed").message  # type: ignore[union-attr]
    await desk.free()


async def test_what_a_late_worker_says_of_an_ended_run_changes_nothing(desk: Desk) -> None:
    await desk.registry()
    await desk.job("now")
    await desk.asked()
    await desk.take("now")
    await desk.later(301, desk.completed("now", "WorkerLost"))
    await desk.free()
    told = await desk.listed("now", "1.0")  # as one that does not look
    assert condition(told, "Completed").reason == "WorkerLost"  # type: ignore[union-attr]
    await desk.job("next")
    await desk.asked()
    assert not (await desk.client.list(Image, Query(namespace=desk.namespace))).items


async def test_deleting_the_job_of_a_run_cancels_it(desk: Desk) -> None:
    await desk.registry()
    await desk.job("now")
    await desk.asked()
    await desk.running()
    await desk.delete(DiscoveryJob, "now")
    registry = await desk.free()
    assert registry.status.history[0].outcome == "Cancelled"  # type: ignore[union-attr]
    await desk.job("next")
    assert (await desk.asked()).job == "next"


async def test_who_takes_the_annotations_away_cancels_the_run(desk: Desk) -> None:
    await desk.registry()
    await desk.job("now")
    await desk.asked()
    registry = await desk.running()
    await desk.annotate("hub", **{name.replace("-", "_"): None for name in notes(registry)})
    await desk.completed("now", "Canceled")


async def test_a_process_that_died_between_claim_and_status_goes_on(
    defined: ApiClient, namespace: str, tmp_path: Path
) -> None:
    desk = Desk(defined, namespace, tmp_path)
    await desk.registry()
    job = await desk.job("now")
    await desk.annotate(
        "hub",
        running_id="run-1",
        running_discovery_type="manual",
        running_discovery_started_at=f"{desk.clock.now():%FT%TZ}",
        running_discoveryjob_name="now",
        running_discoveryjob_generation="1",
        running_discoveryjob_uid=job.metadata.uid or "",
    )
    async with desk.working():
        assert (await desk.asked()).run == "run-1"
        await desk.listed("now", "1.0")
        done = await desk.completed("now", "Succeeded")
        assert done.status.run_id == "run-1"  # type: ignore[union-attr]


async def test_a_process_that_starts_anew_asks_again_for_what_was_lost(
    defined: ApiClient, namespace: str, tmp_path: Path
) -> None:
    desk = Desk(defined, namespace, tmp_path)
    await desk.registry()
    async with desk.working():
        await desk.job("now")
        first = await desk.asked()
    async with desk.working():
        assert (await desk.asked()).run == first.run


async def test_a_finished_run_frees_the_registry_after_a_restart(
    defined: ApiClient, namespace: str, tmp_path: Path
) -> None:
    """Killed after the job's end and before the registry was freed."""
    desk = Desk(defined, namespace, tmp_path)
    await desk.registry()
    async with desk.working():
        await desk.job("now")
        await desk.asked()
        claimed = await desk.running()
        await desk.listed("now", "1.0")
        await desk.completed("now", "Succeeded")
        await desk.free()
    await desk.annotate("hub", **{name.replace("-", "_"): value for name, value in notes(claimed).items()})
    async with desk.working():
        registry = await desk.free()
        assert len(registry.status.history or ()) == 1  # type: ignore[union-attr]


async def test_another_guid_asks_for_another_run_and_the_same_for_none(desk: Desk) -> None:
    await desk.registry()
    await desk.job("now", manual_guid="one")
    first = await desk.asked()
    await desk.listed("now", "1.0")
    await desk.completed("now", "Succeeded")
    await desk.free()
    await desk.change(DiscoveryJob, "now", manual_guid="two")
    second = await desk.asked()
    assert second.run != first.run
    job = await desk.until(DiscoveryJob, "now", lambda o: o.status.run_id == second.run)
    assert job.status.observed_manual_guid == "two"


async def test_the_reserved_job_runs_by_hand_when_its_guid_changes(desk: Desk) -> None:
    await desk.registry()
    await desk.until(DiscoveryJob, RESERVED, lambda o: True)
    await desk.change(DiscoveryJob, RESERVED, manual_guid="one", until="Images")
    asked = await desk.asked()
    assert (asked.type, asked.job) == ("manual", RESERVED)
    assert notes(await desk.running())["running-discoveryjob-name"] == RESERVED


async def test_older_finished_jobs_of_the_same_registry_go_and_no_others(desk: Desk) -> None:
    await desk.registry()
    await desk.registry("other")
    await desk.registry("third")
    for name, registry in (("theirs", "other"), ("old", "hub")):
        await desk.job(name, registry)
        await desk.asked()
        await desk.listed(name, "1.0")
        await desk.completed(name, "Succeeded")
        await desk.free(registry)
    await desk.job("running", "third")
    await desk.asked()
    await desk.job("new")
    await desk.asked()
    await desk.until_gone(DiscoveryJob, "old")
    left = {job.name for job in (await desk.client.list(DiscoveryJob, Query(namespace=desk.namespace))).items}
    assert {name for name in left if not name.startswith("discovery-job-")} == {"theirs", "running", "new"}
    assert RESERVED in left


async def test_as_many_finished_jobs_stay_as_the_registry_says(desk: Desk) -> None:
    await desk.registry(jobs_history_limit=1)
    for name in ("first", "second"):
        await desk.job(name)
        await desk.asked()
        await desk.listed(name, "1.0")
        await desk.completed(name, "Succeeded")
        await desk.free()
        await desk.until(Registry, "hub", lambda o: not o.status.active_run)
    await desk.job("third")
    await desk.asked()
    await desk.until_gone(DiscoveryJob, "first")
    assert await desk.client.get(DiscoveryJob, "second", desk.namespace)


async def test_a_job_without_its_registry_says_so(desk: Desk) -> None:
    await desk.job("now", "nowhere")
    done = await desk.completed("now", "RegistryNotFound")
    assert "nowhere" in condition(done, "Completed").message  # type: ignore[union-attr]


async def test_a_registry_made_anew_in_mid_run_is_another_one(desk: Desk) -> None:
    await desk.registry()
    await desk.job("now")
    await desk.asked()
    await desk.running()
    await desk.delete(Registry, "hub")
    await desk.until_gone(Registry, "hub")
    await desk.registry()
    await desk.job("next")
    assert (await desk.asked()).job == "next"
    assert notes(await desk.running())["running-discoveryjob-name"] == "next"


async def test_a_scheduled_run_tells_in_the_reserved_job_and_names_no_job(desk: Desk) -> None:
    await desk.registry(discovery_schedule=DiscoverySchedule(discovery_period=Period("1h")))
    asked = await desk.asked()
    assert (asked.type, asked.job) == ("scheduled", RESERVED)
    assert set(notes(await desk.running())) == {
        "running-id",
        "running-discovery-type",
        "running-discovery-started-at",
        "whole-discovery-started-at",
    }
    await desk.change(DiscoveryJob, RESERVED, until="Images")
    await desk.listed(RESERVED, "1.0")
    await desk.completed(RESERVED, "Succeeded")
    registry = await desk.until(Registry, "hub", lambda o: o.status.next_discovery_time)
    assert notes(registry)["last-discovery-type"] == "scheduled"
    again = await desk.later(3601, desk.asked())
    assert again.run != asked.run
    purged = await desk.until(DiscoveryJob, RESERVED, lambda o: o.status.run_id == again.run)
    assert not purged.status.images
    assert condition(purged, "Completed").status == "Unknown"  # type: ignore[union-attr]


async def test_times_that_were_missed_become_one_run(defined: ApiClient, namespace: str, tmp_path: Path) -> None:
    desk = Desk(defined, namespace, tmp_path)
    await desk.registry(discovery_schedule=DiscoverySchedule(discovery_period=Period("1h")))
    async with desk.working():
        await desk.asked()
        await desk.change(DiscoveryJob, RESERVED, until="Images")
        await desk.listed(RESERVED, "1.0")
        await desk.free()
    await desk.clock.advance(5 * 3600)
    async with desk.working():
        await desk.asked()
        await desk.listed(RESERVED, "1.0")
        registry = await desk.until(
            Registry, "hub", lambda o: o.status.next_discovery_time and len(o.status.history) == 2
        )
        assert await desk.queue.depth("images.catalog") == 0
        assert parse_time(registry.status.next_discovery_time) > desk.clock.now()


async def test_suspend_stops_the_schedule_and_no_manual_run(desk: Desk) -> None:
    await desk.registry(discovery_schedule=DiscoverySchedule(discovery_period=Period("1m"), suspend=True))
    await desk.until(Registry, "hub", lambda o: condition(o, "Ready"))
    await desk.clock.advance(600)
    assert await desk.queue.depth("images.catalog") == 0
    await desk.job("now")
    assert (await desk.asked()).type == "manual"


async def test_a_push_runs_for_what_was_pushed_and_comes_again_when_that_fails(desk: Desk) -> None:
    await desk.registry()
    await desk.until(Registry, "hub", lambda o: condition(o, "Ready"))
    await desk.annotate("hub", pushed='{"app":["2.0"]}')
    first = await desk.asked()
    assert (first.type, first.only) == ("scheduled", {"app": ["2.0"]})
    assert "pushed" not in notes(await desk.running())
    await desk.listed(RESERVED, reason="RegistryUnavailable", message="it does not answer")
    await desk.free()
    assert await desk.queue.depth("images.catalog") == 0  # not at once
    second = await desk.later(60, desk.asked())
    assert second.only == {"app": ["2.0"]}
    assert second.run != first.run


async def test_a_reserved_name_that_another_registry_has_is_told(desk: Desk) -> None:
    await desk.registry("other")
    await desk.job(RESERVED, "other")
    await desk.asked()
    await desk.registry(discovery_schedule=DiscoverySchedule(discovery_period=Period("1m")))
    registry = await desk.until(Registry, "hub", lambda o: condition(o, "Ready"))
    assert condition(registry, "Ready").reason == "ReservedNameConflict"  # type: ignore[union-attr]


async def test_another_guid_in_mid_run_asks_for_a_run_after_this_one(desk: Desk) -> None:
    """And neither restarts the one that has ended, nor is forgotten."""
    await desk.registry()
    await desk.job("now", manual_guid="one")
    first = await desk.asked()
    await desk.change(DiscoveryJob, "now", manual_guid="two")
    await desk.listed("now", "1.0")
    second = await desk.asked()
    assert second.run != first.run
    registry = await desk.until(Registry, "hub", lambda o: o.status.history)
    assert [run.id for run in registry.status.history] == [first.run]
    job = await desk.until(DiscoveryJob, "now", lambda o: o.status.run_id == second.run)
    assert job.status.observed_manual_guid == "two"


async def test_pushes_do_not_put_off_the_discovery_of_all(desk: Desk) -> None:
    await desk.registry(discovery_schedule=DiscoverySchedule(discovery_period=Period("1h")))
    whole = await desk.asked()
    await desk.change(DiscoveryJob, RESERVED, until="Images")
    await desk.listed(RESERVED, "1.0")
    await desk.free()
    for _ in range(2):
        await desk.clock.advance(1500)
        await desk.annotate("hub", pushed='{"app":["1.0"]}')
        push = await desk.asked()
        assert push.only == {"app": ["1.0"]}
        await desk.listed(RESERVED, "1.0", complete=False)
        await desk.until(Registry, "hub", lambda o, run=push.run: o.status.history[0].id == run)  # type: ignore[misc]
    registry = await desk.free()
    assert condition(registry, "Ready").message == "1 images"  # type: ignore[union-attr]
    again = await desk.later(660, desk.asked())
    assert again.only is None
    assert again.run != whole.run


async def test_a_cron_line_that_is_added_by_day_does_not_run_by_day(desk: Desk) -> None:
    await desk.registry()
    await desk.job("now")
    await desk.asked()
    await desk.listed("now", "1.0")
    await desk.free()
    await desk.clock.advance(7200)
    passed = desk.clock.now() - timedelta(minutes=30)
    schedule = DiscoverySchedule(cron_schedule=(f"{passed.minute} {passed.hour} * * *",))
    await desk.change(Registry, "hub", discovery_schedule=schedule)
    registry = await desk.until(Registry, "hub", lambda o: o.status.next_discovery_time)
    assert parse_time(registry.status.next_discovery_time) > desk.clock.now() + timedelta(hours=20)
    assert await desk.queue.depth("images.catalog") == 0


@pytest.mark.parametrize(
    "claim",
    [
        {"running_discovery_type": "scheduled"},
        {"running_discovery_type": "manual", "running_id": "made-up"},
        {"running_discovery_type": "manual", "running_id": "made-up", "running_discovery_started_at": "{now}"},
    ],
)
async def test_a_claim_that_nobody_works_on_ends(desk: Desk, claim: dict[str, str]) -> None:
    await desk.registry(discovery_timeout=Period("10m"))
    await desk.until(DiscoveryJob, RESERVED, lambda o: True)
    now = f"{desk.clock.now():%FT%TZ}"
    await desk.annotate("hub", **{name: value.format(now=now) for name, value in claim.items()})
    await desk.later(
        800, desk.until(Registry, "hub", lambda o: not [name for name in notes(o) if name.startswith("running-")])
    )
    await desk.job("now")
    assert (await desk.asked()).job == "now"


async def test_a_job_that_cannot_go_does_not_hold_the_registry(desk: Desk) -> None:
    """Somebody's finalizer keeps it, though it was deleted."""
    await desk.registry()
    await desk.job("now")
    await desk.asked()
    await desk.edit(DiscoveryJob, "now", lambda o: with_metadata(o, finalizers=("example.com/keep",)))
    await desk.delete(DiscoveryJob, "now")
    registry = await desk.free()
    assert registry.status.history[0].outcome == "Cancelled"  # type: ignore[union-attr]
    await desk.edit(DiscoveryJob, "now", lambda o: with_metadata(o, finalizers=()))


async def test_a_late_look_at_a_run_does_not_begin_it_again(desk: Desk) -> None:
    """As a new leader whose cache of jobs is behind that of registries: the fence must not fall."""
    await desk.registry()
    await desk.job("now")
    asked = await desk.asked()
    taken = await desk.take("now")
    run = running((await desk.running()).metadata.annotations or {})
    assert run is not None
    stale = taken.replace(status=DiscoveryJobStatus())
    status = begun(stale, run, desk.clock.now(), desk.clock.now(), taken.status or None)
    assert (status.run_id, status.fence, status.worker) == (asked.run, 1, "w1")


async def test_a_registry_that_is_another_one_by_now_gets_no_images_of_the_old(desk: Desk) -> None:
    await desk.registry()
    await desk.job("now")
    await desk.asked()
    blob = await desk.blobs.put(encode(Catalogue()))
    await desk.listed("now", catalog=blob, complete=True, registry_uri="elsewhere.example.com")
    await desk.completed("now", "RegistryChanged")


async def test_catalogues_are_held_by_their_registry_and_let_go_in_time(desk: Desk) -> None:
    """The last two are pinned, older ones and those of runs are not, and none when the registry is gone."""
    await desk.registry()
    digests = []
    for number in range(3):
        await desk.job(f"job-{number}")
        await desk.asked()
        job = await desk.listed(f"job-{number}", *(f"1.{tag}" for tag in range(number + 1)))
        digests.append(job.status.listed.catalog)  # type: ignore[union-attr]
        await desk.completed(f"job-{number}", "Succeeded")
        await desk.until(Registry, "hub", lambda o, digest=digests[-1]: o.status.catalog == digest)  # type: ignore[misc]
        await desk.free()
        await desk.until(Registry, "hub", lambda o: "running-id" not in notes(o))
    await desk.blobs.collect(grace=-1)
    assert [await exists(desk, digest) for digest in digests] == [False, True, True]
    await desk.delete(Registry, "hub")
    await desk.until_gone(Registry, "hub")
    await desk.blobs.collect(grace=-1)
    assert [await exists(desk, digest) for digest in digests] == [False, False, False]


async def test_the_pin_of_a_run_goes_with_it_also_when_its_job_was_deleted(desk: Desk) -> None:
    registry = await desk.registry()
    await desk.job("now")
    asked = await desk.asked()
    digest = await desk.blobs.put(b"what a worker put before it died")
    await desk.blobs.pin(digest, run_owner(desk.namespace, "hub", registry.metadata.uid or "", asked.run))
    await desk.running()
    await desk.delete(DiscoveryJob, "now")
    await desk.free()
    await desk.blobs.collect(grace=-1)
    assert not await exists(desk, digest)


async def exists(desk: Desk, digest: str) -> bool:
    try:
        await desk.blobs.stat(Digest(digest))
    except BlobMissing:
        return False
    return True


async def test_what_nobody_took_is_published_again(desk: Desk) -> None:
    await desk.registry()
    await desk.job("now")
    first = await desk.asked()  # and whoever took it died, with its queue
    again = await desk.later(125, desk.asked())
    assert again.run == first.run


async def test_a_release_is_for_the_run_that_held_and_for_no_other(desk: Desk) -> None:
    await desk.registry(removal=Removal(grace=Period("0s"), max_percent=10))
    for name, tags in (("all", ("1", "2", "3", "4")), ("mark", ("1",)), ("hold", ("1",))):
        await desk.job(name)
        asked = await desk.asked()
        await desk.listed(name, *tags)
        await desk.completed(name, "Succeeded")
        await desk.free()
        await desk.clock.advance(5)
    held = await desk.until(Registry, "hub", lambda o: o.status.held_run == asked.run)
    assert condition(held, "RemovalHeld").status == "True"  # type: ignore[union-attr]
    for value, left in (("another-run", 4), ("{held}", 1)):
        held = await desk.client.get(Registry, "hub", desk.namespace)
        await desk.annotate("hub", release_removal=value.format(held=held.status.held_run))  # type: ignore[union-attr]
        await desk.job(f"after-{left}")
        await desk.asked()
        await desk.listed(f"after-{left}", "1")
        await desk.completed(f"after-{left}", "Succeeded")
        await desk.free()
        assert len((await desk.client.list(Image, Query(namespace=desk.namespace))).items) == left
