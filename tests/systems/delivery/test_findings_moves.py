"""Single moves of the machine, at the very edge of each rule."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec import UNSET

from tests.systems.delivery.test_findings_machine import GOOD, NEW, NONE_READY, NOW, OLD, facts, running
from trimtab.systems.delivery.kinds import CanaryDeploymentStatus, Check, Counters
from trimtab.systems.delivery.kinds.canary import Promotion
from trimtab.systems.delivery.kinds.fields import ABORT, APPROVE, PAUSE
from trimtab.systems.delivery.machine.advance import advance, needed
from trimtab.systems.delivery.machine.facts import Need, Order, Outcome, Pods
from trimtab.systems.delivery.machine.runs import stamp

AT_STEP = {"weight": 10, "verified": stamp(NOW), "verified_weight": 10, "window_start": stamp(NOW)}
DUE = NOW + timedelta(seconds=10)


def at(seconds: float) -> Any:
    return NOW + timedelta(seconds=seconds)


def check(verdict: Any, seconds: float = 10) -> Check:
    return Check(time=stamp(at(seconds)), step=0, weight=10, verdict=verdict)


def test_a_check_is_made_only_of_routes_that_are_live_and_as_they_should_be() -> None:
    status, given = running("Progressing", next_check_time=stamp(DUE), **AT_STEP)
    assert needed(status, facts(given, now=DUE)) is Need.CHECK
    assert needed(status, facts(given, now=at(9.9))) is Need.NOTHING
    assert needed(status, facts(given, now=DUE, live=False, wait=None)) is Need.NOTHING
    assert needed(status, facts(given, now=DUE, drifted=True)) is Need.NOTHING
    assert needed(status, facts(given, now=DUE, canary=NONE_READY)) is Need.NOTHING


@pytest.mark.parametrize(("before", "phase"), [(0, "Starting"), (1, "Starting"), (2, "RollingBack")])
def test_the_third_loss_of_a_canary_is_the_last(before: int, phase: str) -> None:
    status, given = running("Progressing", recreated=before, **AT_STEP)
    moved = advance(status, facts(given, canary=Pods())).status
    assert moved.phase == phase
    assert phase != "Starting" or moved.run.weight == moved.canary_weight == 0


@pytest.mark.parametrize("used", [True, False])
def test_a_window_moves_on_when_it_is_used_up(used: bool) -> None:
    status, given = running("Progressing", next_check_time=stamp(DUE), **AT_STEP)
    made = Outcome(check=check("Inconclusive"), moved=used)
    run = advance(status, facts(given, now=at(11)), made).status.run
    assert run.window_start == (check("Inconclusive").time if used else stamp(NOW))
    assert run.next_check_time == stamp(at(20))  # an interval after the check, not after its answer
    assert run.checks == (made.check,)


def test_a_window_does_not_grow_for_ever() -> None:
    status, given = running("Progressing", next_check_time=stamp(DUE), **AT_STEP)
    late = Outcome(check=check("Inconclusive", 101), moved=False)
    assert advance(status, facts(given, now=at(101)), late).status.run.window_start == stamp(at(101))


def test_who_waits_for_promotion_goes_only_when_the_last_check_is_good() -> None:
    for verdict, phase in (("Pass", "Promoting"), ("Inconclusive", "WaitingPromotion"), ("Fail", "WaitingPromotion")):
        status, given = running("WaitingPromotion", step=1, checks=(check(verdict),), **AT_STEP)
        assert advance(status, facts(given)).status.phase == phase


def test_a_group_is_waited_for() -> None:
    status, given = running("WaitingPromotion", step=1, checks=(check("Pass"),), **AT_STEP)
    for order, phase in (
        (Order.WAIT, "WaitingPromotion"),
        (Order.HOLD, "WaitingPromotion"),
        (Order.PROMOTE, "Promoting"),
    ):
        moved = advance(status, facts(given, order=order)).status
        assert moved.phase == phase
        assert phase == "Promoting" or moved.run.waiting_for == "r1/promotion-group"


def test_a_gate_that_was_passed_stays_open_when_the_annotation_goes() -> None:
    manual = {"manual": ["Step"]}
    status, given = running("Progressing", manual, next_check_time=stamp(DUE), **AT_STEP)
    passed = Outcome(check=check("Pass"), settled="Advance")
    waits = advance(status, facts(given, now=DUE), passed).status
    assert (waits.run.step, waits.run.waiting_for) == (0, "r1/step-2")
    opened = advance(waits, facts(given, annotations={APPROVE: "r1/step-2"})).status
    assert (opened.run.step, opened.run.weight, opened.run.approved) == (1, 50, ("r1/step-2",))
    # The canary is lost, and the step begins anew: nobody is asked again.
    again = opened.replace(run=opened.run.replace(step=0, next_check_time=stamp(DUE), **AT_STEP))
    assert advance(again, facts(given, now=DUE), passed).status.run.step == 1


def test_what_is_forgiven_once_is_not_forgiven_again() -> None:
    status, given = running("Progressing", next_check_time=stamp(DUE), counters=Counters(failed=2), **AT_STEP)
    fails = Outcome(check=check("Fail"), settled="Freeze", counters=Counters(failed=2))
    for gate in ("r1/frozen-1", "r1/frozen-2"):
        status = advance(status, facts(given, now=DUE), fails).status
        assert (status.run.frozen, status.run.waiting_for, status.run.next_check_time) == (True, gate, UNSET)
        other = "r1/frozen-1" if gate.endswith("2") else "r1/frozen-2"
        assert advance(status, facts(given, annotations={APPROVE: other})).status.run.frozen
        status = advance(status, facts(given, now=at(12), annotations={APPROVE: gate})).status
        assert (status.run.frozen, status.run.counters.failed, status.run.window_start) == (False, 0, stamp(at(12)))


def test_a_weight_that_never_becomes_live_ends_the_run_at_its_deadline() -> None:
    status, given = running("Progressing", weight=10)
    for seconds, phase in ((599, "Progressing"), (600, "RollingBack")):
        move = advance(status, facts(given, now=at(seconds), live=False, wait=None))
        assert move.status.phase == phase
    assert move.status.run.reason == "TrafficNotVerified"


def test_too_few_pods_have_as_long_as_new_ones_to_come_back() -> None:
    few = Pods(exists=True, ready=1, wanted=2)
    status, given = running("Progressing", short_since=stamp(NOW), next_check_time=stamp(at(900)), **AT_STEP)
    assert advance(status, facts(given, now=at(599), canary=few)).status.phase == "Progressing"
    gone = advance(status, facts(given, now=at(600), canary=few)).status
    assert (gone.phase, gone.run.reason) == ("RollingBack", "CanaryNotReady")
    assert advance(status, facts(given, now=at(5))).status.run.short_since is UNSET


def test_the_first_revision_serves_when_its_routes_are_live() -> None:
    _, given = running("Starting")
    status = CanaryDeploymentStatus(phase="Initializing", stable_revision=NEW)
    assert advance(status, facts(given, live=False, wait=1.0)).status.phase == "Initializing"
    assert advance(status, facts(given, stable=NONE_READY)).status.phase == "Initializing"
    assert advance(status, facts(given)).status.phase == "Stable"


def test_only_so_many_revisions_before_go_straight_out_again() -> None:
    _, given = running("Starting")
    status = CanaryDeploymentStatus(phase="Stable", stable_revision=OLD)
    for window, phase in ((0, "Starting"), (1, "Starting"), (2, "Promoting")):
        seen = facts(given.replace(rollback_window=window), earlier=("v1:9", NEW))
        assert advance(status, seen).status.phase == phase


def test_pre_rollout_may_refuse_less_often_than_the_threshold() -> None:
    hook = {"name": "door", "type": "PreRollout", "url": "http://127.0.0.1:1/"}
    status, given = running("Starting", {"webhooks": [hook], "threshold": 2})
    assert needed(status, facts(given)) is Need.PRE_ROLLOUT
    assert needed(status, facts(given, canary=NONE_READY)) is Need.NOTHING
    no = Outcome(allowed=False, message="no")
    status = advance(status, facts(given), no).status
    assert (status.phase, status.run.counters.failed) == ("Starting", 1)
    assert advance(status, facts(given), no).status.phase == "RollingBack"
    done = advance(status, facts(given, now=at(20)), Outcome()).status
    assert (done.phase, done.run.hooks_done, done.run.weight) == ("Progressing", ("PreRollout",), 10)


def test_a_way_back_leaves_traffic_where_somebody_answers() -> None:
    status, given = running("RollingBack", weight=50, result="Failed")
    assert advance(status, facts(given, stable=NONE_READY)).status.run.weight == 50
    assert advance(status, facts(given, stable=NONE_READY, canary=NONE_READY)).status.run.weight == 0
    assert advance(status, facts(given, live=False, wait=None)).status.run.weight == 0


def test_pods_go_when_traffic_has_left_them() -> None:
    status, given = running("Finalising", result="Succeeded")
    later = at(3600)
    assert not advance(status, facts(given, now=later, live=False, wait=None)).remove
    assert not advance(status, facts(given, now=at(0.5))).remove
    assert advance(status, facts(given, now=later)).remove


def test_what_returns_waits_for_its_routes_and_not_for_a_canary_that_is_gone() -> None:
    slow = {"stepWeightPromotion": 20}
    status, given = running("Returning", slow, weight=50, verified=stamp(NOW), next_check_time=stamp(DUE))
    assert advance(status, facts(given, live=False, wait=None)).status == status
    assert advance(status, facts(given)).status == status
    assert advance(status, facts(given, now=DUE)).status.run.weight == 30
    assert advance(status, facts(given, canary=NONE_READY)).status.run.weight == 0
    over = status.replace(run=status.run.replace(weight=0))
    assert advance(over, facts(given, live=False, wait=None)).status.phase == "Returning"
    assert advance(over, facts(given)).status.phase == "Finalising"


def test_each_revision_is_once_among_those_before() -> None:
    status, given = running("Promoting")
    status = status.replace(earlier_revisions=("v1:8", NEW, OLD, "v1:7"))
    moved = advance(status, facts(given)).status
    assert (moved.stable_revision, moved.earlier_revisions) == (NEW, (OLD, "v1:8", "v1:7"))


def test_an_override_is_used_up_when_it_fails_too() -> None:
    way = Promotion(reason="SkipAnalysis", generation=2)
    status, given = running("Promoting", promotion=way)
    broken = Pods(exists=True, failed=True)
    moved = advance(status, facts(given, stable=broken)).status
    assert (moved.phase, moved.run.reason) == ("RollingBack", "OverrideFailed")
    assert (moved.override.revision, moved.override.generation, moved.override.reset) == (NEW, 2, False)


def test_what_a_group_took_back_does_not_run_again_by_itself() -> None:
    status, given = running("Finalising", result="Succeeded", promotion=Promotion(reason="Group"))
    status = status.replace(stable_revision=NEW)
    moved = advance(status, facts(given, canary=Pods(), target=OLD)).status
    assert (moved.phase, moved.failed_revision, moved.run) == ("Stable", OLD, UNSET)
    assert advance(moved, facts(given, canary=Pods(), target=OLD)).status == moved


def test_an_abort_is_for_one_run_and_ends_a_promotion_too() -> None:
    for phase in ("Starting", "Progressing", "WaitingPromotion", "Promoting"):
        status, given = running(phase, **AT_STEP)
        assert advance(status, facts(given, stable=NONE_READY, annotations={ABORT: "r0"})).status.run.result is UNSET
        assert advance(status, facts(given, annotations={ABORT: "r1"})).status.phase == "RollingBack"


def test_a_newer_revision_waits_for_a_promotion_and_for_no_step() -> None:
    status, given = running("Progressing", **AT_STEP)
    assert advance(status, facts(given, target="v1:3")).status.run.reason == "Superseded"
    assert advance(status, facts(given, target=OLD)).status.run.reason == "Reverted"
    status, given = running("Promoting", **AT_STEP)
    assert advance(status, facts(given, target="v1:3", stable=NONE_READY)).status.phase == "Promoting"
    assert advance(status, facts(given, target="v1:3", stable=GOOD)).status.stable_revision == NEW


def test_passes_are_of_one_step() -> None:
    status, given = running("Progressing", next_check_time=stamp(DUE), **AT_STEP)
    passed = Outcome(check=check("Pass"), settled="Advance", counters=Counters(passes=3, failed=1, held=0))
    moved = advance(status, facts(given, now=DUE), passed).status
    assert (moved.run.step, moved.run.counters) == (1, Counters(failed=1))
    assert (moved.run.verified, moved.run.window_start, moved.run.next_check_time) == (UNSET, UNSET, UNSET)


@pytest.mark.parametrize("why", ["suspend", "pause", "fight"])
def test_nothing_begins_and_nothing_goes_on_while_it_is_held(why: str) -> None:
    status, given = running("WaitingPromotion", step=1, checks=(check("Pass"),), **AT_STEP)
    said: dict[str, Any] = {"annotations": {PAUSE: ""}} if why == "pause" else {"fighting": why == "fight"}
    seen = facts(given.replace(suspend=why == "suspend"), **said)
    assert advance(status, seen).status == status
    assert advance(CanaryDeploymentStatus(phase="Stable", stable_revision=OLD), seen).status.run is UNSET
    proven, _ = running("Promoting", **AT_STEP)
    assert advance(proven, seen).status.phase == "Returning"
