"""The claim of a registry: annotations that come together and go together, and only one of two that want them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.systems.images.documents import made
from trimtab.client.api import ApiClient
from trimtab.model.errors import StatusError
from trimtab.systems.images.kinds import Registry
from trimtab.systems.images.runs import claim
from trimtab.systems.images.runs.claim import PREFIX, Running, claimed, merged, pushed, released, running, with_pushed

NOW = datetime(2026, 1, 1, 2, 30, tzinfo=UTC)
LATER = datetime(2026, 1, 1, 3, 0, tzinfo=UTC)
MANUAL = Running(id="r1", type="manual", started_at=NOW, job="job-1", generation=2, uid="u-1")
SCHEDULED = Running(id="r2", type="scheduled", started_at=NOW)
FOREIGN = {"team": "a", "example.com/running-id": "theirs", f"{PREFIX}release-removal": "r0"}


def named(annotations: dict[str, str], what: str) -> dict[str, str]:
    """Those of a registry that begin so, without what they begin with."""
    start = f"{PREFIX}{what}"
    return {name.removeprefix(start): value for name, value in annotations.items() if name.startswith(start)}


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20)
repositories = st.from_regex(r"[a-z0-9]{1,4}(/[a-z0-9]{1,4})?", fullmatch=True)
onlys = st.dictionaries(repositories, st.lists(st.from_regex(r"[a-z0-9]{1,3}", fullmatch=True), max_size=4).map(tuple))
times = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)).map(
    lambda time: time.replace(microsecond=0)
)
runs = st.one_of(
    st.builds(
        Running,
        id=texts,
        type=st.just("manual"),
        started_at=times,
        job=texts,
        generation=st.integers(0, 10**6),
        uid=texts,
        only=st.none() | onlys,
    ),
    st.builds(Running, id=texts, type=st.just("scheduled"), started_at=times, only=st.none() | onlys),
)
foreign = st.dictionaries(texts.filter(lambda name: not name.startswith(PREFIX)), texts, max_size=4)


def test_a_registry_without_annotations_is_free() -> None:
    assert running({}) is None
    assert running(FOREIGN) is None


@pytest.mark.parametrize("name", ["running-id", "running-discovery-type", "running-discoveryjob-name"])
def test_an_empty_value_counts_as_absent(name: str) -> None:
    assert running({f"{PREFIX}{name}": ""}) is None


def test_a_manual_run_has_the_annotations_of_the_design() -> None:
    assert named(claimed(FOREIGN, MANUAL), "running-") == {
        "id": "r1",
        "discovery-type": "manual",
        "discovery-started-at": "2026-01-01T02:30:00Z",
        "discoveryjob-name": "job-1",
        "discoveryjob-generation": "2",
        "discoveryjob-uid": "u-1",
    }


def test_a_scheduled_run_names_no_job() -> None:
    assert named(claimed({}, SCHEDULED), "running-") == {
        "id": "r2",
        "discovery-type": "scheduled",
        "discovery-started-at": "2026-01-01T02:30:00Z",
    }


def test_on_success_running_becomes_last() -> None:
    before = {**FOREIGN, **{f"{PREFIX}last-{name}": "old" for name in ("discovered-at", "discoveryjob-name")}}
    after = released(claimed(before, MANUAL), LATER, succeeded=True)
    assert named(after, "last-") == {
        "discovery-type": "manual",
        "discovery-started-at": "2026-01-01T02:30:00Z",
        "discoveryjob-name": "job-1",
        "discoveryjob-generation": "2",
        "discoveryjob-uid": "u-1",
        "discovered-at": "2026-01-01T03:00:00Z",
    }
    assert named(after, "running-") == {}
    assert after.items() >= FOREIGN.items()


def test_after_a_scheduled_run_no_job_of_an_older_one_is_named() -> None:
    before = released(claimed({}, MANUAL), NOW, succeeded=True)
    assert named(released(claimed(before, SCHEDULED), LATER, succeeded=True), "last-") == {
        "discovery-type": "scheduled",
        "discovery-started-at": "2026-01-01T02:30:00Z",
        "discovered-at": "2026-01-01T03:00:00Z",
    }


def test_a_failed_run_leaves_the_time_of_the_last_good_one() -> None:
    before = released(claimed({}, SCHEDULED), NOW, succeeded=True)
    after = released(claimed(before, MANUAL), LATER, succeeded=False)
    assert named(after, "last-")["discovered-at"] == "2026-01-01T02:30:00Z"
    assert named(after, "last-")["discovery-type"] == "manual"


def test_the_time_of_a_good_run_is_renewed_by_each() -> None:
    once = released(claimed({}, SCHEDULED), NOW, succeeded=True)
    assert named(released(claimed(once, SCHEDULED), LATER, succeeded=True), "last-")["discovered-at"].startswith(
        "2026-01-01T03:00"
    )


def test_a_free_registry_has_nothing_to_release() -> None:
    assert released(FOREIGN, LATER, succeeded=True) == FOREIGN


@given(foreign, runs)
@settings(max_examples=100)
def test_what_is_claimed_is_running(annotations: dict[str, str], run: Running) -> None:
    found = running(claimed(annotations, run))
    assert found == msgspec.structs.replace(run, only=None if run.only is None else dict(run.only))


@given(foreign, runs, runs, st.booleans())
@settings(max_examples=100)
def test_a_released_registry_is_free_and_has_all_that_is_not_ours(
    annotations: dict[str, str], first: Running, second: Running, succeeded: bool
) -> None:
    after = annotations
    for run in (first, second):
        before = after
        held = claimed(before, run)
        after = released(held, LATER, succeeded=succeeded)
        assert running(after) is None
        assert named(after, "running-") == {}
        assert {name: value for name, value in after.items() if not name.startswith(PREFIX)} == annotations
        moved = {name: value for name, value in named(held, "running-").items() if name.startswith("discovery")}
        assert {name: value for name, value in named(after, "last-").items() if name != "discovered-at"} == moved
        assert succeeded or named(after, "last-").get("discovered-at") == named(before, "last-").get("discovered-at")


def test_the_claim_takes_what_was_pushed() -> None:
    told = with_pushed({}, {"team/app": ("1", "2")})
    held = claimed(told, msgspec.structs.replace(SCHEDULED, only=pushed(told)))
    assert pushed(held) is None
    found = running(held)
    assert found is not None
    assert found.only == {"team/app": ("1", "2")}


@pytest.mark.parametrize("whole", [True, False])
def test_what_was_pushed_survives_a_run_that_failed(whole: bool) -> None:
    told = with_pushed({}, {"team/app": ("1",)})
    run = SCHEDULED if whole else msgspec.structs.replace(SCHEDULED, only=pushed(told))
    meanwhile = with_pushed(claimed(told, run), {"team/app": ("2",), "team/web": ("1",)})
    assert pushed(released(meanwhile, LATER, succeeded=False)) == {"team/app": ("1", "2"), "team/web": ("1",)}


@pytest.mark.parametrize("whole", [True, False])
def test_what_is_pushed_during_a_run_is_for_the_next(whole: bool) -> None:
    told = with_pushed({}, {"team/app": ("1",)})
    run = SCHEDULED if whole else msgspec.structs.replace(SCHEDULED, only=pushed(told))
    meanwhile = with_pushed(claimed(told, run), {"team/app": ("2",)})
    assert pushed(released(meanwhile, LATER, succeeded=True)) == {"team/app": ("2",)}


def test_after_failures_what_was_pushed_waits_longer_each_time_until_a_run_succeeds() -> None:
    told = with_pushed({}, {"team/app": ("1",)})
    assert claim.pushed_after(told) is None
    waits = []
    for _ in range(7):
        told = released(claimed(told, msgspec.structs.replace(SCHEDULED, only=pushed(told))), LATER, succeeded=False)
        after = claim.pushed_after(told)
        assert after is not None
        waits.append((after - NOW).total_seconds())
    assert waits == [60, 120, 240, 480, 900, 900, 900]
    assert pushed(told) == {"team/app": ("1",)}
    done = released(claimed(told, SCHEDULED), LATER, succeeded=True)
    assert claim.pushed_after(with_pushed(done, {"team/app": ("2",)})) is None


def test_a_failure_of_a_run_that_took_nothing_lets_no_push_wait() -> None:
    done = released(claimed({}, SCHEDULED), LATER, succeeded=False)
    assert claim.pushed_after(with_pushed(done, {"team/app": ("1",)})) is None


def covers(only: Any, repository: str, tag: str) -> bool:
    return claim.EVERYTHING in only or (repository in only and (not only[repository] or tag in only[repository]))


@given(onlys, onlys)
@settings(max_examples=100)
def test_to_merge_loses_nothing_and_needs_no_order(some: Any, more: Any) -> None:
    both = merged(some, more)
    assert both == merged(more, some) == merged(both, more)
    for known in (some, more):
        for repository, tags in known.items():
            assert all(covers(both, repository, tag) for tag in tags or ("any",))


def test_many_tags_become_their_repositories_and_many_of_these_everything() -> None:
    tags = {"team/app": tuple(map(str, range(400))), "team/web": tuple(map(str, range(400)))}
    assert merged(tags, {"other": ("1",)}) == {"team/app": (), "team/web": (), "other": ()}
    many = {f"team/app{i}": ("1",) for i in range(600)}
    assert merged(many, {}) == {"*": ()}
    assert merged({"*": ()}, {"team/app": ("1",)}) == {"*": ()}
    long = {f"{'x' * 200}{i}": () for i in range(300)}
    assert merged(long, {}) == {"*": ()}


def test_when_too_many_were_pushed_all_is_listed_and_again_if_that_fails() -> None:
    told = with_pushed({}, {f"team/app{i}": ("1",) for i in range(600)})
    held = claimed(told, msgspec.structs.replace(SCHEDULED, only=pushed(told)))
    found = running(held)
    assert found is not None
    assert found.only is None
    assert pushed(released(held, LATER, succeeded=False)) == {"*": ()}


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', "null", "x" * 100])
def test_what_nobody_can_read_counts_as_nothing(text: str) -> None:
    assert pushed({f"{PREFIX}pushed": text}) is None
    found = running({f"{PREFIX}running-id": "r", f"{PREFIX}running-only": text})
    assert found is not None
    assert found.only is None


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01T00:00:00Z"])
def test_a_run_without_a_time_began_long_ago(text: str) -> None:
    found = running({f"{PREFIX}running-id": "r", f"{PREFIX}running-discovery-started-at": text})
    assert found is not None
    assert found.started_at.year == 1970


def test_a_period_counts_from_the_run_that_goes_on() -> None:
    done = released(claimed({}, SCHEDULED), NOW, succeeded=False)
    assert claim.last_started({}) is None
    assert claim.last_started(done) == NOW
    assert claim.last_started(claimed(done, msgspec.structs.replace(MANUAL, started_at=LATER))) == LATER


async def test_of_two_that_claim_a_registry_one_is_refused(defined: ApiClient, namespace: str) -> None:
    await defined.create(made("Registry", "lab", namespace))
    seen = await defined.get(Registry, "lab", namespace)

    async def take(run: Running) -> str:
        annotations = claimed(seen.metadata.annotations or {}, run)
        try:
            await defined.patch(seen, annotated(seen, annotations))
        except StatusError as error:
            return error.reason
        return run.id

    said = await asyncio.gather(*(take(msgspec.structs.replace(MANUAL, id=f"r{i}")) for i in range(8)))
    assert sorted(said)[:7] == ["Conflict"] * 7
    found = running((await defined.get(Registry, "lab", namespace)).metadata.annotations or {})
    assert found is not None
    assert found.id == sorted(said)[7]


async def test_a_release_removes_the_annotations_from_the_server(defined: ApiClient, namespace: str) -> None:
    await defined.create(made("Registry", "lab", namespace))
    free = await defined.get(Registry, "lab", namespace)
    held = await defined.patch(free, annotated(free, claimed(FOREIGN, MANUAL)))
    assert held.metadata.annotations
    done = await defined.patch(held, annotated(held, released(held.metadata.annotations, LATER, succeeded=True)))
    assert done.metadata.annotations == released(claimed(FOREIGN, MANUAL), LATER, succeeded=True)
    with pytest.raises(StatusError, match="the object has been modified") as refused:
        await defined.patch(held, annotated(held, {}))
    assert refused.value.code == 409


def annotated(registry: Registry, annotations: dict[str, str]) -> Registry:
    return registry.replace(metadata=msgspec.structs.replace(registry.metadata, annotations=annotations))


def test_what_was_pushed_is_taken_again_only_when_it_must_be() -> None:
    run = Running(id="r", type="scheduled", started_at=datetime(2026, 1, 1, tzinfo=UTC), only={"app": ("1",)})
    held = claimed({}, run)
    ends = [released(held, run.started_at, succeeded=False, again=again) for again in (True, False)]
    assert [pushed(annotations) for annotations in ends] == [{"app": ("1",)}, None]
    assert all(claim.LAST_DISCOVERED not in annotations for annotations in ends)


def test_what_fails_in_part_again_and_again_is_given_up() -> None:
    run = Running(id="r", type="scheduled", started_at=datetime(2026, 1, 1, tzinfo=UTC), only={"app": ("1",)})
    annotations: dict[str, str] = {}
    tries = 0
    while tries == 0 or pushed(annotations):
        annotations = released(claimed(annotations, run), run.started_at, succeeded=True, again=True)
        tries += 1
    assert tries == claim.MOST_TRIES + 1
