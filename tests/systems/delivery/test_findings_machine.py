"""The machine and the groups, in corners where a run could stand still for ever, spin, or forget what was said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import UNSET

from tests.systems.delivery.stage import spec
from trimtab.model.document import convert, to_document
from trimtab.systems.delivery.groups import release as groups
from trimtab.systems.delivery.groups.release import Fact
from trimtab.systems.delivery.kinds import (
    CanaryDeploymentSpec,
    CanaryDeploymentStatus,
    ReleaseGroupSpec,
    ReleaseGroupStatus,
    RunStatus,
)
from trimtab.systems.delivery.kinds.fields import PAUSE
from trimtab.systems.delivery.kinds.group import MemberStatus, Release
from trimtab.systems.delivery.machine.advance import advance, needed
from trimtab.systems.delivery.machine.facts import Facts, Need, Outcome, Pods
from trimtab.systems.delivery.machine.runs import stamp

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD, NEW = "v1:" + "1" * 64, "v1:" + "2" * 64
GOOD = Pods(exists=True, ok=True, ready=2, wanted=2)
NONE_READY = Pods(exists=True, wanted=2)


def running(phase: Any, analysis: dict[str, Any] | None = None, **run: Any) -> tuple[CanaryDeploymentStatus, Any]:
    """A status with a run in this phase, and its spec."""
    given = convert(spec(analysis=analysis or {}), CanaryDeploymentSpec)
    made = RunStatus(
        id="r1",
        revision=NEW,
        before=OLD,
        analysis=to_document(given.analysis),
        started=stamp(NOW),
        since=stamp(NOW),
        steps=2,
        **run,
    )
    status = CanaryDeploymentStatus(
        phase=phase, stable_revision=OLD, target_revision=NEW, run=made, canary_weight=made.weight
    )
    return status, given


def facts(given: Any, **more: Any) -> Facts:
    said = {"now": NOW + timedelta(seconds=5), "generation": 2, "annotations": {}, "target": NEW, "live": True}
    pods = {
        "stable": GOOD,
        "canary": GOOD,
        "wait": 0.0,
    }  # what is live has nothing to wait for, as `world.live` says it
    return Facts(**{**said, **pods, "spec": given, **more})


def test_a_way_back_that_waits_for_stable_does_not_spin() -> None:
    status, given = running("RollingBack", weight=50, result="Failed")
    move = advance(status, facts(given, stable=NONE_READY))
    assert move.status == status
    assert move.after is None or move.after >= 1.0


def test_a_pause_keeps_no_traffic_at_a_canary_without_ready_pods() -> None:
    status, given = running("Progressing", weight=10, verified=stamp(NOW), verified_weight=10)
    paused = {PAUSE: "lunch"}
    assert advance(status, facts(given, annotations=paused)).status == status
    move = advance(status, facts(given, annotations=paused, canary=NONE_READY))
    assert move.status.run
    assert move.status.run.weight == 0


def test_a_webhook_that_says_yes_while_a_person_is_waited_for_is_noted_once() -> None:
    hook = {"name": "door", "type": "ConfirmRollout", "url": "http://127.0.0.1:1/"}
    status, given = running("WaitingRollout", {"manual": ["Rollout"], "webhooks": [hook]})
    now = NOW
    for _ in range(40):
        now += timedelta(seconds=60)
        seen = facts(given, now=now)
        outcome = Outcome(allowed=True) if needed(status, seen) is Need.CONFIRM_ROLLOUT else None
        status = advance(status, seen, outcome).status
    assert status.phase == "WaitingRollout"
    assert status.run
    assert status.run.hooks_done == ("ConfirmRollout",)


def turned(spec: ReleaseGroupSpec, status: ReleaseGroupStatus, known: dict[str, Fact]) -> ReleaseGroupStatus:
    """Until nothing moves any more."""
    for _ in range(20):
        moved = groups.advance(spec, status, known, NOW).status
        if moved == status:
            return status
        status = moved
    raise AssertionError("it never rests")


def rolling_back(*members: MemberStatus) -> ReleaseGroupStatus:
    made = Release(id="release-1", state="RollingBack", started=stamp(NOW), members=members, reason="MemberFailed")
    return ReleaseGroupStatus(release=made)


def of(name: str, state: Any) -> MemberStatus:
    return MemberStatus(name=name, revision=f"{name}-2", before=f"{name}-1", run=f"{name}-run", state=state)


GROUP = convert({"members": [{"name": "a"}, {"name": "b"}]}, ReleaseGroupSpec)


def test_a_member_that_serves_something_newer_is_not_waited_for_when_all_go_back() -> None:
    status = rolling_back(of("a", "Promoted"), of("b", "Promoting"))
    known = {"a": Fact(stable="a-3"), "b": Fact(stable="b-1", failed=("b-run",))}
    assert turned(GROUP, status, known).release is UNSET


def test_members_go_back_from_the_last_to_the_first() -> None:
    status = rolling_back(of("a", "Promoted"), of("b", "Promoted"))
    known = {"a": Fact(stable="a-2"), "b": Fact(stable="b-2")}
    status = turned(GROUP, status, known)
    assert [each.state for each in status.release.members] == ["Promoted", "RollingBack"]
    status = turned(GROUP, status, {**known, "b": Fact(stable="b-1")})
    assert [each.state for each in status.release.members] == ["RollingBack", "RolledBack"]
    assert turned(GROUP, status, {"a": Fact(stable="a-1"), "b": Fact(stable="b-1")}).release is UNSET
