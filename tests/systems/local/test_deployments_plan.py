"""Which pods come and go, and what a Deployment's status says: the pure parts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.systems.local.deployment_status import counted, deployment_status, is_complete
from trimtab.systems.local.pods.addresses import Exhausted, free
from trimtab.systems.local.pods.probing import Probe, Tally, eager_pauses
from trimtab.systems.local.pods.probing import counted as tallied
from trimtab.systems.local.pods.states import pause
from trimtab.systems.local.rolling import Facts, Plan, Wanted, plan, resolved, wanted_of

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def pods(new: str = "", old: str = "") -> list[Facts]:
    """A letter each: a is available, r ready, n not ready, d being deleted."""
    made = []
    for word, is_new in ((new, True), (old, False)):
        for number, letter in enumerate(word):
            made.append(
                Facts(
                    name=f"{'new' if is_new else 'old'}-{number}",
                    new=is_new,
                    deleting=letter == "d",
                    ready=letter in "ar",
                    available=letter == "a",
                )
            )
    return made


@pytest.mark.parametrize(
    ("wanted", "there", "step"),
    [
        (Wanted(replicas=3), pods(), Plan(make=3)),
        (Wanted(replicas=3), pods("aaa"), Plan()),
        (Wanted(replicas=0), pods("a"), Plan(end=("new-0",))),
        (Wanted(replicas=1), pods("an"), Plan(end=("new-1",))),
        (Wanted(replicas=3, surge=1), pods("", "aaa"), Plan(make=1)),
        (Wanted(replicas=3, surge=1), pods("n", "aaa"), Plan()),
        (Wanted(replicas=3, surge=1), pods("r", "aaa"), Plan()),
        (Wanted(replicas=3, surge=1), pods("a", "aaa"), Plan(end=("old-2",))),
        (Wanted(replicas=3, surge=1), pods("a", "ana"), Plan(end=("old-1",))),
        (Wanted(replicas=3, surge=0, unavailable=1), pods("", "aaa"), Plan(end=("old-2",))),
        (Wanted(replicas=3, surge=0, unavailable=1), pods("", "aad"), Plan(make=1)),
        (Wanted(replicas=4, surge=1, unavailable=1), pods("nn", "naa"), Plan()),  # new ones that may yet fail count
        (Wanted(replicas=4, surge=1, unavailable=1), pods("na", "naa"), Plan(end=("old-0",))),
        (Wanted(replicas=2, recreate=True), pods("", "aa"), Plan(end=("old-0", "old-1"))),
        (Wanted(replicas=2, recreate=True), pods("", "dd"), Plan()),
        (Wanted(replicas=2, recreate=True), pods(), Plan(make=2)),
        (Wanted(replicas=2, paused=True), pods(), Plan()),
        (Wanted(replicas=3, paused=True), pods("", "aa"), Plan(make=1, like_newest=True)),
        (Wanted(replicas=1, paused=True), pods("", "an"), Plan(end=("old-1",), like_newest=True)),
    ],
)
def test_one_step_follows_from_what_is_there(wanted: Wanted, there: list[Facts], step: Plan) -> None:
    assert plan(wanted, there) == step


@pytest.mark.parametrize(
    ("value", "up", "number"), [(2, True, 2), ("25%", True, 3), ("25%", False, 2), ("0%", True, 0), ("100%", False, 9)]
)
def test_percentages_are_rounded_in_their_direction(value: int | str, up: bool, number: int) -> None:
    assert resolved(value, 9, up=up) == number


def test_a_deployment_that_may_neither_grow_nor_shrink_goes_on_all_the_same() -> None:
    spec = {"replicas": 2, "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "10%"}}}
    assert wanted_of(spec).unavailable == 1


letters = st.text("arn", max_size=8)


@given(replicas=st.integers(0, 6), surge=st.integers(0, 3), unavailable=st.integers(0, 3), new=letters, old=letters)
def test_no_step_takes_too_many_or_makes_too_many(
    replicas: int, surge: int, unavailable: int, new: str, old: str
) -> None:
    unavailable = 1 if not surge and not unavailable else min(unavailable, replicas)
    wanted = Wanted(replicas=replicas, surge=surge, unavailable=unavailable)
    there = pods(new, old)
    step = plan(wanted, there)
    assert len(set(step.end)) == len(step.end)
    staying = [pod for pod in there if pod.name not in step.end]
    if step.make:
        assert len(there) + step.make <= replicas + surge
    served = sum(pod.available for pod in there)
    assert sum(pod.available for pod in staying) >= min(served, replicas - unavailable)


@given(replicas=st.integers(0, 5), surge=st.integers(0, 2), unavailable=st.integers(0, 2), data=st.data())
def test_every_rollout_comes_to_its_end_when_new_pods_become_available(
    replicas: int, surge: int, unavailable: int, data: st.DataObject
) -> None:
    unavailable = 1 if not surge and not unavailable else unavailable
    wanted = Wanted(replicas=replicas, surge=surge, unavailable=min(unavailable, replicas))
    there = pods("", data.draw(letters))
    for round_ in range(60):
        step = plan(wanted, there)
        there = [pod for pod in there if pod.name not in step.end]
        there = [Facts(name=p.name, new=p.new, ready=True, available=True) if p.new else p for p in there]
        there += [Facts(name=f"made-{round_}-{number}", new=True) for number in range(step.make)]
    assert is_complete(wanted, counted(wanted, there))


def status(before: dict[str, Any], there: list[Facts], **changes: Any) -> dict[str, Any]:
    given = {"generation": 1, "deadline": 600, "now": NOW, **changes}
    wanted = given.pop("wanted", Wanted(replicas=2))
    return deployment_status(before, wanted, there, **given)


def progressing(document: dict[str, Any]) -> tuple[str, str]:
    found = next(each for each in document["conditions"] if each["type"] == "Progressing")
    return found["status"], found["reason"]


def test_a_rollout_is_told_from_its_beginning_to_its_end() -> None:
    first = status({}, pods("nn"), created=2)
    assert progressing(first) == ("True", "NewReplicaSetCreated")
    assert first["unavailableReplicas"] == 2
    assert "availableReplicas" not in first
    half = status(first, pods("an"))
    assert progressing(half) == ("True", "ReplicaSetUpdated")
    done = status(half, pods("aa"))
    assert progressing(done) == ("True", "NewReplicaSetAvailable")
    assert {key: done[key] for key in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")} == {
        "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
    }  # fmt: skip
    assert progressing(status(done, pods("an"))) == ("True", "NewReplicaSetAvailable")
    again = status(done, pods("n", "aa"), generation=2, created=1)
    assert progressing(again)[1] in ("NewReplicaSetCreated", "FoundNewReplicaSet")


def test_a_rollout_that_stands_still_misses_its_deadline() -> None:
    first = status({}, pods("nn"), created=2)
    assert progressing(status(first, pods("nn"), now=NOW + timedelta(seconds=599)))[0] == "True"
    late = status(first, pods("nn"), now=NOW + timedelta(seconds=600))
    assert progressing(late) == ("False", "ProgressDeadlineExceeded")
    healed = status(late, pods("aa"), now=NOW + timedelta(seconds=700))
    assert progressing(healed) == ("True", "NewReplicaSetAvailable")


def test_a_pause_is_told_and_has_no_deadline() -> None:
    first = status({}, pods("nn"), created=2)
    paused = status(first, pods("nn"), wanted=Wanted(replicas=2, paused=True))
    assert progressing(paused) == ("Unknown", "DeploymentPaused")
    later = NOW + timedelta(hours=1)
    assert progressing(status(paused, pods("nn"), now=later)) == ("True", "DeploymentResumed")


@given(
    answers=st.lists(st.booleans(), min_size=1, max_size=20), failures=st.integers(1, 4), successes=st.integers(1, 3)
)
def test_a_verdict_needs_as_many_answers_in_a_row_as_its_threshold(
    answers: list[bool], failures: int, successes: int
) -> None:
    probe, tally, expected = Probe(ask={}, failures=failures, successes=successes), Tally(), None
    for number, answer in enumerate(answers, 1):
        tally = tallied(tally, probe, answer)
        need = successes if answer else failures
        if number >= need and all(each is answer for each in answers[number - need : number]):
            expected = answer
        assert tally.verdict is expected


@pytest.mark.parametrize("period", [1.0, 2.5, 10.0])
def test_eager_attempts_fill_one_period(period: float) -> None:
    assert sum(eager_pauses(period)) == pytest.approx(period)
    assert eager_pauses(period)[0] < 0.1


def test_pauses_double_up_to_five_minutes() -> None:
    assert [pause(number) for number in (1, 2, 3, 9, 10, 50)] == [1, 2, 4, 256, 300, 300]


def test_an_address_is_given_again_only_after_all_others() -> None:
    following, first = free(255, set())
    assert first == "127.10.1.1"
    assert free(following, set())[1] == "127.10.1.2"
    assert free(following, {"127.10.1.2"}, {"127.10.1.3"})[1] == "127.10.1.4"
    assert free(65535, set())[1] == "127.10.0.1"


def test_there_is_an_end_to_addresses() -> None:
    taken = {f"127.10.{high}.{low}" for high in range(256) for low in range(256)}
    with pytest.raises(Exhausted):
        free(0, taken)
