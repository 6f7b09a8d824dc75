"""What a CanaryDeployment says of itself: why it waits, for what, and what to do about it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec import UNSET

from tests.systems.delivery.test_findings_machine import NEW, NONE_READY, NOW, OLD, facts, running
from trimtab.model.clock import format_time
from trimtab.model.conditions import Condition, get_condition
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.runs import Run
from trimtab.systems.delivery.kinds import (
    CanaryDeployment,
    CanaryDeploymentStatus,
    Check,
    Counters,
    MetricCheck,
)
from trimtab.systems.delivery.kinds.canary import Drift, Shown
from trimtab.systems.delivery.kinds.fields import PAUSE
from trimtab.systems.delivery.machine.facts import Order, Pods
from trimtab.systems.delivery.machine.runs import stamp
from trimtab.systems.delivery.objects.drifting import Drift as Put
from trimtab.systems.delivery.telling import Trouble, shown, spells, told
from trimtab.testing.clock import FakeClock

CRASH = Pods(exists=True, wanted=2, message="0 of 2 pods are ready: web: CrashLoopBackOff (exit code 128)")
LIVE = {"weight": 10, "verified": stamp(NOW), "verified_weight": 10}
FIGHT = Drift(count=6, since=format_time(NOW), last="Service web: spec.type was NodePort, not ClusterIP by kubectl")


def say(
    status: CanaryDeploymentStatus, given: Any, annotations: dict[str, str] | None = None, **more: Any
) -> CanaryDeploymentStatus:
    canary = CanaryDeployment(
        metadata=ObjectMeta(name="web", namespace="default", generation=2, annotations=annotations or {}), spec=given
    )
    return told(canary, status, FakeClock(NOW), facts(given, annotations=annotations or {}, **more))


def of(status: CanaryDeploymentStatus, kind: str = "Ready") -> Condition:
    found = get_condition(status.conditions, kind)
    assert found is not None, kind
    return found


def check(verdict: Any, samples: Any = 0, message: str = "the canary got no requests") -> Check:
    metric = MetricCheck(name="rate", verdict=verdict, samples=samples, message=message)
    return Check(time=stamp(NOW), step=0, weight=10, verdict=verdict, metrics=(metric,))


@pytest.mark.parametrize(
    ("phase", "pods"),
    [
        ("Starting", {"canary": CRASH}),
        ("Progressing", {"canary": CRASH}),
        ("WaitingPromotion", {"canary": CRASH}),
        ("Promoting", {"stable": CRASH}),
    ],
)
def test_a_run_says_what_its_pods_lack(phase: str, pods: dict[str, Pods]) -> None:
    status, given = running(phase)
    said = say(status, given, **pods)
    assert CRASH.message in of(said).message
    assert CRASH.message in of(said, "Progressing").message
    assert "of 2 pods" not in of(say(status, given)).message


def test_a_canary_that_is_not_there_yet_is_being_made() -> None:
    status, given = running("Starting")
    assert of(say(status, given, canary=Pods(message="its Deployment does not exist"))).message.endswith(
        "; its pods are being made"
    )


def test_the_first_pods_and_the_first_routes_are_told_apart() -> None:
    _, given = running("Starting")
    status = CanaryDeploymentStatus(phase="Initializing", stable_revision=NEW)
    assert of(say(status, given, stable=CRASH)).message == CRASH.message
    assert "routes are not live" in of(say(status, given, live=False)).message


def test_a_way_back_says_what_it_waits_for() -> None:
    status, given = running("RollingBack", weight=50, result="Failed", message="3 checks failed")
    said = of(say(status, given, stable=NONE_READY)).message
    assert "3 checks failed; traffic stays until stable is ready" in said
    status, given = running("RollingBack", result="Failed", message="3 checks failed")
    assert of(say(status, given, live=False)).message.endswith("traffic returns to stable, which is not live yet")


@pytest.mark.parametrize(
    ("times", "words"), [(1, "no requests in the last check"), (7, "no requests for 7 checks in a row")]
)
def test_no_requests_are_told_with_how_long(times: int, words: str) -> None:
    status, given = running("Progressing", checks=(check("Inconclusive"),), counters=Counters(held=times), **LIVE)
    said = say(status, given)
    assert of(said).message.endswith(words)
    found = of(said, "MetricsAvailable")
    assert (found.status, found.reason) == ("Unknown", "NoData")
    assert found.message == f"{words}: rate: the canary got no requests"


@pytest.mark.parametrize(("name", "words"), [("request-duration", "no requests"), ("queue", "no data")])
def test_a_series_that_is_not_there_is_told_as_what_it_counts(name: str, words: str) -> None:
    metric = MetricCheck(name=name, verdict="Inconclusive", message="no samples")
    empty = check("Inconclusive").replace(metrics=(metric,))
    status, given = running("Progressing", checks=(empty,), counters=Counters(held=2), **LIVE)
    assert of(say(status, given)).message.endswith(f"{words} for 2 checks in a row")
    assert of(say(status, given), "MetricsAvailable").message.endswith(f"in a row: {name}: no samples")


def test_too_few_requests_are_data_that_cannot_tell() -> None:
    few = check("Inconclusive", 12, "the canary got 12 requests, fewer than 20")
    status, given = running("Progressing", {"noDataLimit": 5}, checks=(few,), counters=Counters(held=3), **LIVE)
    found = of(say(status, given), "MetricsAvailable")
    assert (found.status, found.reason) == ("True", "Undecided")
    assert found.message == (
        "3 checks in a row could not tell: rate: the canary got 12 requests, fewer than 20; 5 of them roll it back"
    )


def test_checks_that_cannot_be_made_are_counted() -> None:
    broken = check("Error", UNSET, "could not be measured: connection refused")
    status, given = running("Progressing", checks=(broken,), counters=Counters(errors=4), **LIVE)
    said = say(status, given)
    assert "4 checks in a row could not be made: rate: could not be measured" in of(said).message
    found = of(said, "MetricsAvailable")
    assert (found.status, found.reason) == ("False", "SourceFailed")
    assert found.message.startswith("4 checks in a row could not be made: rate")


def test_a_new_run_says_nothing_of_the_metrics_of_the_last() -> None:
    status, given = running("Progressing", checks=(check("Inconclusive"),), counters=Counters(held=1), **LIVE)
    before = say(status, given)
    fresh, _ = running("Starting")
    after = say(fresh.replace(conditions=before.conditions), given)
    assert get_condition(after.conditions, "MetricsAvailable") is None
    assert of(say(before.replace(run=UNSET, phase="Stable"), given), "MetricsAvailable").reason == "NoData"


def test_each_spell_is_an_event_once() -> None:
    def after(*verdicts: Any, run: str = "r1") -> CanaryDeploymentStatus:
        status, given = running("Progressing", checks=tuple(map(check, verdicts)), counters=Counters(held=1), **LIVE)
        return say(status.replace(run=status.run.replace(id=run)), given)  # type: ignore[union-attr]

    def said(before: CanaryDeploymentStatus, now: CanaryDeploymentStatus) -> list[tuple[bool, str]]:
        return [(each.warning, each.reason) for each in spells(before, now)]

    assert said(after(), after("Inconclusive")) == [(True, "NoData")]
    assert said(after("Pass"), after("Inconclusive", "Pass")) == [(True, "NoData")]
    assert said(after("Inconclusive"), after("Inconclusive", "Inconclusive")) == []
    assert said(after("Inconclusive"), after("Error", "Inconclusive")) == [(True, "MetricsUnavailable")]
    assert said(after("Error"), after("Error", "Error")) == []
    assert said(after("Error"), after("Pass", "Error")) == []
    assert said(after("Inconclusive"), after("Inconclusive", run="r2")) == [(True, "NoData")]
    assert said(after("Inconclusive"), after("Inconclusive").replace(run=UNSET)) == []


def test_a_fight_says_with_what_and_when_it_is_tried_again() -> None:
    status, given = running("WaitingPromotion", waiting_for="r1/promotion", **LIVE)
    before = say(status, given)
    after = say(before.replace(drift=FIGHT), given, fighting=True)
    again = format_time(NOW + timedelta(minutes=10))
    assert of(after, "DriftConflict").message == f"{FIGHT.last}; tried again at {again}: stop what changes it"
    assert again in of(after).message
    assert "promote" not in of(after).message
    assert [each.reason for each in spells(before, after)] == ["DriftConflict"]
    assert spells(after, after) == ()


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        ("promotion", "for you: trimtab canary promote web"),
        ("promotion-webhook", "until a webhook agrees"),
        ("promotion-group", "until the other members"),
        ("promotion-check", "until a check passes"),
    ],
)
def test_a_gate_says_whom_it_waits_for(gate: str, words: str) -> None:
    status, given = running("WaitingPromotion", waiting_for=f"r1/{gate}", **LIVE)
    assert f"it waits at the gate r1/{gate} {words}" in of(say(status, given)).message
    paused = of(say(status, given, {PAUSE: "lunch"})).message
    assert "it is held: lunch (until trimtab canary resume web)" in paused
    assert "gate" not in paused


def test_a_revision_that_may_not_begin_says_why() -> None:
    _, given = running("Starting")
    status = CanaryDeploymentStatus(phase="Stable", stable_revision=OLD, target_revision=NEW)
    waits = f"revision {'2' * 12} waits"
    assert of(say(status, given)).message == waits
    assert of(say(status, given.replace(suspend=True))).message == f"{waits}: spec.suspend is set"
    assert of(say(status, given.replace(abort=True))).message == f"{waits}: spec.abort is set"
    assert "ReleaseGroup" in of(say(status, given, order=Order.HOLD)).message


def test_columns_count_from_one_and_tell_how_the_last_run_ended() -> None:
    ended = Run(id="r0", trigger="Revision", started=stamp(NOW), outcome="Failed")
    now = Run(id="r1", trigger="Revision", started=stamp(NOW), outcome="Running")
    status, given = running("Progressing", step=1, **LIVE)
    status = say(status.replace(history=(now, ended)), given)
    assert status.shown == Shown(traffic="10 %", step="2/2", last="Failed")
    rest = CanaryDeploymentStatus(phase="Stable", stable_revision=NEW)
    assert shown(rest) == Shown(traffic="0 %")
    assert shown(CanaryDeploymentStatus()) is UNSET


def test_ab_never_claims_all_of_the_traffic() -> None:
    analysis = {"match": [{"headers": {"x": {"exact": "y"}}}], "iterations": 3}
    status, _ = running("Progressing", weight=100, verified=stamp(NOW), verified_weight=100)
    status = status.replace(run=status.run.replace(analysis=analysis, steps=1))  # type: ignore[union-attr]
    found = shown(status)
    assert found
    assert found.traffic == "all that match"
    mirrored = {"stepWeights": [50], "mirror": True, "mirrorWeight": 20}
    found = shown(status.replace(run=status.run.replace(analysis=mirrored, steps=2, weight=0)))  # type: ignore[union-attr]
    assert found
    assert found.traffic == "copies of 20 %"


def test_what_is_in_the_way_is_all_that_ready_says() -> None:
    status, given = running("Progressing", **LIVE)
    canary = CanaryDeployment(metadata=ObjectMeta(name="web", generation=3), spec=given)
    said = told(canary, status, FakeClock(NOW), None, Trouble("Conflict", "Service web is not ours"))
    assert (of(said).reason, of(said).message) == ("Conflict", "Service web is not ours")


@pytest.mark.parametrize(
    ("found", "wanted", "words"),
    [
        ("value hidden", "value hidden", "was changed (value hidden)"),
        ("absent", "value hidden", "was removed (value hidden)"),
        ("value hidden", "absent", "was added (value hidden)"),
        ("a list of 2", "a list of 2", "was changed"),
        ("1s", "absent", "was 1s, not absent"),
    ],
)
def test_drift_is_told_without_empty_words(found: str, wanted: str, words: str) -> None:
    drift = Put("Deployment", "web", "spec.args[1]", found, wanted, "kubectl-patch")
    assert str(drift) == f"Deployment web: spec.args[1] {words} by kubectl-patch"
