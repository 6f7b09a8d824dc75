"""The states of a run follow from the status of its job, and nothing brings an ended run back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from trimtab.model.conditions import get_condition
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.images.kinds import DiscoveryJob, DiscoveryJobSpec, DiscoveryJobStatus, ImageCounts, Listed
from trimtab.systems.images.runs.claim import Running
from trimtab.systems.images.runs.states import (
    COMPLETED,
    PROGRESSING,
    End,
    State,
    asks,
    begun,
    belongs,
    ended,
    is_reserved,
    refused,
    reserved_name,
    state_of,
    verdict,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
RUN = Running(id="run-1", type="manual", started_at=NOW, job="now", uid="uid-1", generation=1)


def job(name: str = "now", *, guid: str = "", status: DiscoveryJobStatus | None = None) -> DiscoveryJob:
    spec = DiscoveryJobSpec(registry="hub", manual_guid=guid) if guid else DiscoveryJobSpec(registry="hub")
    made = DiscoveryJob(metadata=ObjectMeta(name=name, namespace="default", uid="uid-1", generation=1), spec=spec)
    return made if status is None else made.replace(status=status)


def running() -> DiscoveryJobStatus:
    return begun(job(), RUN, NOW + timedelta(hours=1), NOW)


def test_a_run_goes_through_its_states_in_order() -> None:
    status = DiscoveryJobStatus()
    seen = [state_of(status)]
    for step in (
        lambda s: running(),
        lambda s: s.replace(worker="w", fence=1),
        lambda s: s.replace(listed=Listed(catalog="sha256:0")),
        lambda s: s.replace(images=ImageCounts(discovered=3)),
        lambda s: ended(s, End("True", "Succeeded"), NOW),
    ):
        status = step(status)
        seen.append(state_of(status))
    assert seen == [State.NONE, State.PENDING, State.LISTING, State.LISTED, State.SETTLING, State.ENDED]


def test_an_ended_run_stays_as_it_ended() -> None:
    status = ended(running(), End("False", "WorkerLost", "silence"), NOW)
    assert ended(status, End("True", "Succeeded"), NOW + timedelta(hours=1)) is status


def test_a_new_run_purges_what_the_last_one_left() -> None:
    old = ended(
        running().replace(images=ImageCounts(discovered=9, failed=2), listed=Listed(catalog="sha256:0"), error_count=2),
        End("True", "PartiallySucceeded"),
        NOW,
    )
    later = Running(id="run-2", type="scheduled", started_at=NOW + timedelta(hours=1))
    status = begun(job(status=old), later, NOW + timedelta(hours=2), NOW + timedelta(hours=1))
    assert status.run_id == "run-2"
    assert not status.images
    assert not status.listed
    assert not status.error_count
    assert not status.completion_time
    completed = get_condition(status.conditions, COMPLETED)
    assert completed is not None
    assert completed.status == "Unknown"


@pytest.mark.parametrize(
    ("name", "guid", "status", "wanted"),
    [
        ("now", "", None, True),  # a new job
        ("now", "", running(), False),
        ("now", "", ended(running(), End("True", "Succeeded"), NOW), False),
        ("now", "g1", ended(running(), End("True", "Succeeded"), NOW), True),
        ("now", "g1", ended(running().replace(observed_manual_guid="g1"), End("True", "Succeeded"), NOW), False),
        ("now", "g2", ended(running().replace(observed_manual_guid="g1"), End("True", "Succeeded"), NOW), True),
        ("discovery-job-hub", "", None, False),  # the reserved one triggers nothing by itself
        ("discovery-job-hub", "g1", None, True),
        ("discovery-job-hub", "g1", ended(running().replace(observed_manual_guid="g1"), End("True", "X"), NOW), False),
    ],
)
def test_who_asks_for_a_run(name: str, guid: str, status: DiscoveryJobStatus | None, wanted: bool) -> None:
    assert asks(job(name, guid=guid, status=status)) is wanted


def test_a_refused_job_asks_no_more() -> None:
    status = refused(job(guid="g1"), End("False", "DiscoveryAlreadyRunning", "busy"), NOW, "other")
    assert status.blocked_by == "other"
    assert not asks(job(guid="g1", status=status))


def test_a_claim_belongs_to_the_job_that_made_it_or_to_the_reserved_one() -> None:
    scheduled = Running(id="run-2", type="scheduled", started_at=NOW)
    assert [belongs(job(name), run) for name in ("now", reserved_name("hub")) for run in (RUN, scheduled)] == [
        True,
        False,
        True,  # by its uid: a manual run of the reserved job
        True,
    ]
    other = Running(id="run-3", type="manual", started_at=NOW, job="now", uid="uid-of-an-earlier-one")
    assert not belongs(job(), other)
    assert is_reserved(job(reserved_name("hub")))


@pytest.mark.parametrize(
    ("counts", "errors", "until", "reason"),
    [
        (ImageCounts(), 0, "SBOMs", "NoImages"),
        (ImageCounts(discovered=2, sboms=2), 0, "SBOMs", "Succeeded"),
        (ImageCounts(discovered=2), 0, "Images", "Succeeded"),
        (ImageCounts(discovered=2, sboms=1, failed=1), 1, "SBOMs", "PartiallySucceeded"),
        (ImageCounts(discovered=2, sboms=2), 1, "SBOMs", "PartiallySucceeded"),  # a tag that could not be listed
        (ImageCounts(), 1, "SBOMs", "NothingListed"),
        (ImageCounts(discovered=2, failed=2), 2, "SBOMs", "AllImagesFailed"),
        (ImageCounts(discovered=2, sboms=2, failed=2), 2, "Reports", "AllImagesFailed"),
        (ImageCounts(discovered=2, sboms=2, reports=2), 0, "Reports", "Succeeded"),
        (ImageCounts(discovered=1, gone=1), 0, "SBOMs", "Succeeded"),
    ],
)
def test_how_a_run_ends_whose_members_are_settled(counts: ImageCounts, errors: int, until: str, reason: str) -> None:
    end = verdict(running().replace(error_count=errors), counts, until)
    assert end.reason == reason
    assert end.succeeded is (reason not in ("AllImagesFailed", "NothingListed"))


def test_progressing_says_how_it_ended() -> None:
    good, bad = (
        ended(running(), end, NOW) for end in (End("True", "Succeeded"), End("False", "DeadlineExceeded", "late"))
    )
    shown = [get_condition(status.conditions, PROGRESSING) for status in (good, bad)]
    assert [(c.status, c.reason) for c in shown if c] == [("True", "Finished"), ("False", "DeadlineExceeded")]
