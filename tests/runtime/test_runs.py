"""Histories of runs, and the blobs that they name."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from trimtab.model.document import convert, to_document
from trimtab.model.resource import Resource, Spec
from trimtab.model.structural import structural
from trimtab.runtime.runs import History, Run, Runs, bounded, finished, interrupted, last, running
from trimtab.storage.blobs import BlobMissing
from trimtab.storage.folder import FolderBlobs
from trimtab.testing.clock import FakeClock

OWNER = "testing/Sweep/ns/name/5f0e"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def runs(clock: FakeClock) -> Runs:
    return Runs(clock, chance=random.Random(1))


@pytest.fixture
async def blobs(tmp_path: Path, clock: FakeClock) -> FolderBlobs:
    folder = FolderBlobs(tmp_path / "blobs", clock=clock)
    await folder.ready()
    return folder


def run(number: int, outcome: str) -> Run:
    return Run(id=f"r{number}", trigger="Manual", started="2026-01-01T00:00:00Z", outcome=outcome)  # type: ignore[arg-type]


async def test_a_run_starts_at_the_front_and_ends_where_it_is(runs: Runs, clock: FakeClock) -> None:
    history, first = runs.start(UNSET, "Schedule")
    history, second = runs.start(history, "Manual")
    assert [each.id for each in history] == [second.id, first.id]
    await clock.advance(90)
    history = await runs.finish(history, first.id, "Succeeded", message="all there", counts={"hosts": 3})
    assert history[1] == Run(
        id=first.id,
        trigger="Schedule",
        started="2026-01-01T00:00:00Z",
        finished="2026-01-01T00:01:30Z",
        outcome="Succeeded",
        message="all there",
        counts={"hosts": 3},
    )
    assert running(history) == second


def test_two_runs_that_start_at_the_same_time_are_told_apart(runs: Runs) -> None:
    history, first = runs.start((), "Manual")
    _, second = runs.start(history, "Manual")
    assert first.id != second.id


async def test_a_run_ends_once(runs: Runs) -> None:
    history, begun = runs.start((), "Manual")
    history = await runs.finish(history, begun.id, "Cancelled")
    assert await runs.finish(history, begun.id, "Succeeded") is history
    assert await runs.finish(history, "another", "Succeeded") is history


async def test_what_a_process_that_is_gone_left_running_has_failed(runs: Runs, clock: FakeClock) -> None:
    history, _ = runs.start((run(1, "Succeeded"),), "Manual")
    await clock.advance(5)
    history = await runs.interrupted(history)
    assert (history[0].outcome, history[0].reason, history[0].finished) == (
        "Failed",
        "Interrupted",
        "2026-01-01T00:00:05Z",
    )
    assert history[1] == run(1, "Succeeded")
    assert await runs.interrupted(history) is history


def test_a_history_without_runs_is_empty_for_all(clock: FakeClock) -> None:
    assert interrupted(UNSET, now=clock.now()) == ()
    assert finished(UNSET, "x", "Failed", now=clock.now()) == ()
    assert last(UNSET, "Failed") is None


def test_long_messages_and_many_counts_are_cut(clock: FakeClock) -> None:
    counts = {f"c{n:03}": n for n in range(100)}
    (ended,) = finished((run(1, "Running"),), "r1", "Failed", now=clock.now(), message="x" * 5000, counts=counts)
    assert len(ended.message or "") == 1024
    assert (ended.message or "").endswith("…")
    assert len(ended.counts or {}) == 32


def test_the_last_success_survives_any_number_of_failures() -> None:
    history = (*(run(n, "Failed") for n in range(20)), run(20, "Succeeded"), run(21, "Succeeded"))
    assert [each.id for each in bounded(history)] == [*(f"r{n}" for n in range(9)), "r20"]


@given(
    st.lists(st.sampled_from(["Running", "Succeeded", "Failed", "Cancelled"]), max_size=25),
    st.integers(3, 10),
)
def test_a_bounded_history_keeps_order_and_what_must_stay(outcomes: list[str], limit: int) -> None:
    history = tuple(run(n, outcome) for n, outcome in enumerate(outcomes))
    kept = bounded(history, limit)
    assert list(kept) == [each for each in history if each in kept]
    assert len(kept) <= max(limit, outcomes.count("Running") + 2)
    assert len(kept) >= min(limit, len(history))
    for outcome in ("Succeeded", "Failed"):
        assert last(kept, outcome) == last(history, outcome)  # type: ignore[arg-type]
    assert [each for each in kept if each.outcome == "Running"] == [r for r in history if r.outcome == "Running"]
    assert bounded(kept, limit) is kept or bounded(kept, limit) == kept


async def test_details_are_in_a_blob_before_the_history_names_it(clock: FakeClock, blobs: FolderBlobs) -> None:
    runs = Runs(clock, blobs=blobs, owner=OWNER)
    history, begun = runs.start((), "Manual")
    history = await runs.finish(history, begun.id, "Succeeded", details=b"all of it", media_type="text/plain")
    digest = history[0].details
    assert not isinstance(digest, UnsetType)
    await clock.advance(3600)
    await blobs.collect(grace=0)
    assert (await blobs.stat(digest)).size == 9  # type: ignore[arg-type]


async def test_details_of_runs_that_leave_the_history_are_let_go_and_those_that_stay_are_kept(
    clock: FakeClock, blobs: FolderBlobs
) -> None:
    runs = Runs(clock, blobs=blobs, owner=OWNER, limit=3)
    history: tuple[Run, ...] = ()
    digests = []
    for text in (b"same", b"other", b"third", b"same", b"fifth"):
        history, begun = runs.start(history, "Manual")
        history = await runs.finish(history, begun.id, "Succeeded", details=text)
        digests.append(history[0].details)
        await clock.advance(60)
    await blobs.collect(grace=0)
    for digest in digests[2:]:
        await blobs.stat(digest)  # type: ignore[arg-type]
    with pytest.raises(BlobMissing):
        await blobs.stat(digests[1])  # type: ignore[arg-type]
    await runs.forget(history)
    assert (await blobs.collect(grace=0)).count == 3


async def test_details_need_a_store_and_a_store_needs_an_owner(
    runs: Runs, clock: FakeClock, blobs: FolderBlobs
) -> None:
    history, begun = runs.start((), "Manual")
    with pytest.raises(ValueError, match="need a blob store"):
        await runs.finish(history, begun.id, "Failed", details=b"x")
    with pytest.raises(ValueError, match="need an owner"):
        Runs(clock, blobs=blobs)
    with pytest.raises(ValueError, match="room for three"):
        Runs(clock, limit=2)


class SweepStatus(Spec):
    history: History | UnsetType = UNSET


class Sweep(Resource, group="testing", version="v1", plural="sweeps"):
    status: SweepStatus | UnsetType = UNSET


async def test_a_history_is_a_part_of_the_status_of_kinds(runs: Runs) -> None:
    schema = structural(Sweep)["properties"]["status"]["properties"]["history"]
    assert schema["x-kubernetes-list-map-keys"] == ["id"]
    assert schema["items"]["properties"]["started"]["format"] == "date-time"
    assert set(schema["items"]["required"]) == {"id", "trigger", "started", "outcome"}
    history, begun = runs.start((), "Manual")
    history = await runs.finish(history, begun.id, "Failed", reason="NoRoute", counts={"a": 1})
    document = to_document(Sweep(status=SweepStatus(history=history)))
    assert document["status"]["history"][0]["outcome"] == "Failed"
    assert convert(document, Sweep).status == SweepStatus(history=history)


async def failed_again(runs: Runs, history: tuple[Run, ...], trigger: str = "Retry", **said: str) -> tuple[Run, ...]:
    history, run = runs.start(history, trigger)
    return await runs.finish(history, run.id, "Failed", **{"reason": "Away", "message": "x" * 2000, **said}, fold=True)  # type: ignore[arg-type]


async def test_the_same_failure_again_is_the_same_run_with_one_attempt_more(runs: Runs, clock: FakeClock) -> None:
    history = tuple(run(number, "Succeeded") for number in range(9))
    for trigger in ("Schedule", "Retry", "Retry"):
        history = await failed_again(runs, history, trigger)
        await clock.advance(60)
    assert len(history) == 10
    first = history[0]
    assert (first.trigger, first.started, first.finished) == (
        "Schedule",
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:02:00Z",
    )
    assert first.counts == {"attempts": 3}


@pytest.mark.parametrize("said", [{"reason": "Refused"}, {"message": "y"}])
async def test_another_failure_is_another_run(runs: Runs, said: dict[str, str]) -> None:
    history = await failed_again(runs, ())
    assert len(await failed_again(runs, history, **said)) == 2


async def test_details_of_a_run_that_was_tried_again_are_let_go(clock: FakeClock, blobs: FolderBlobs) -> None:
    kept = Runs(clock, blobs=blobs, owner=OWNER, chance=random.Random(1))
    history: tuple[Run, ...] = ()
    for details in (b"first", b"second"):
        history, started = kept.start(history, "Retry")
        history = await kept.finish(history, started.id, "Failed", reason="Away", details=details, fold=True)
    await clock.advance(3600)
    assert (await blobs.collect(grace=0)).count == 1
    await blobs.stat(history[0].details)  # type: ignore[arg-type]
