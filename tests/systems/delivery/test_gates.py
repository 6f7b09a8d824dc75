"""Who is asked before a run goes on: people by gates that are in the status, and others by webhooks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.systems.delivery.hookserver import HookServer
from tests.systems.delivery.stage import Stage, condition
from tests.systems.delivery.test_runs import image_of
from trimtab.model.kubernetes import Deployment

POINTS = (
    "ConfirmRollout",
    "PreRollout",
    "Rollout",
    "ConfirmTrafficIncrease",
    "ConfirmPromotion",
    "PostRollout",
    "Rollback",
)


def stands_at(gate: str) -> Any:
    return lambda status: status.run and str(status.run.waiting_for).endswith(f"/{gate}")


async def approve(stage: Stage, gate: str) -> None:
    canary = await stage.until(stands_at(gate))
    await stage.annotate(approve=canary.status.run.waiting_for)


async def test_every_gate_waits_for_a_person_and_outlives_a_restart(stage: Stage) -> None:
    async with stage.working():
        await stage.stable(analysis={"manual": ["Rollout", "Step", "Promotion"]})
        await stage.image("web:2")
        await stage.until(stands_at("rollout"))
        await stage.later(3600)
        assert (await stage.get()).status.phase == "WaitingRollout"
        assert "web-canary" not in stage.players.served
    async with stage.working():
        await approve(stage, "rollout")
        await stage.until(stands_at("step-2"))
        await stage.later(3600)
        assert (await stage.get()).status.run.weight == 10
        await approve(stage, "step-2")
        canary = await stage.until(stands_at("promotion"))
        assert canary.status.phase == "WaitingPromotion"
        await stage.later(60)
        assert await image_of(stage) == "web:1"
        await approve(stage, "promotion")
        await stage.ended("Succeeded")
    assert await image_of(stage) == "web:2"


async def test_an_approval_is_for_one_gate_of_one_run(here: Stage) -> None:
    async with here.working():
        await here.stable(analysis={"manual": ["Rollout"]})
        await here.image("web:2")
        canary = await here.until(stands_at("rollout"))
        await here.annotate(approve=canary.status.run.waiting_for)
        await here.ended("Succeeded")
        await here.image("web:3")
        await here.until(stands_at("rollout"))
        await here.later(600)
        assert (await here.get()).status.phase == "WaitingRollout"


async def test_a_gate_is_not_passed_while_the_last_check_failed(here: Stage) -> None:
    """Somebody who approves what was good a moment ago does not mean what is bad now."""
    async with here.working():
        await here.stable(analysis={"manual": ["Promotion"], "threshold": 100})
        await here.image("web:2")
        canary = await here.until(stands_at("promotion"))
        here.gauge.rates = lambda workload: (10.0, 0.2 if workload.endswith("-canary") else 0.0)
        await here.until(lambda s: s.run and s.run.checks[0].verdict == "Fail")
        await here.annotate(approve=canary.status.run.waiting_for)
        await here.quiet()
        assert (await here.get()).status.phase == "WaitingPromotion"
        here.gauge.rates = lambda workload: (10.0, 0.0)
        await here.ended("Succeeded")


async def test_what_fails_while_it_waits_for_promotion_is_rolled_back(here: Stage) -> None:
    async with here.working():
        await here.stable(analysis={"manual": ["Promotion"]})
        await here.image("web:2")
        await here.until(stands_at("promotion"))
        here.gauge.rates = lambda workload: (10.0, 0.2 if workload.endswith("-canary") else 0.0)
        canary = await here.ended("Failed")
    assert canary.status.history[0].reason == "ChecksFailed"


async def test_webhooks_are_asked_at_all_points_in_their_order(stage: Stage) -> None:
    async with HookServer(stage.busy) as server, stage.working():
        await stage.stable(analysis={"webhooks": server.hooks(*POINTS)})
        await stage.image("web:2")
        await stage.ended("Succeeded")
    points = server.points()
    first = sorted(set(points), key=points.index)
    assert set(first[2:4]) == {"Rollout", "Rollback"}
    assert [each for each in first if each not in ("Rollout", "Rollback")] == [
        "ConfirmRollout",
        "PreRollout",
        "ConfirmTrafficIncrease",
        "ConfirmPromotion",
        "PostRollout",
    ]
    assert points.count("PreRollout") == points.count("PostRollout") == points.count("ConfirmRollout") == 1
    said = server.asked[0]
    assert (said["name"], said["namespace"], said["weight"]) == ("web", stage.namespace, 0)


@pytest.mark.parametrize(
    ("point", "phase"),
    [
        ("ConfirmRollout", "WaitingRollout"),
        ("ConfirmTrafficIncrease", "Progressing"),
        ("ConfirmPromotion", "WaitingPromotion"),
    ],
)
async def test_a_refusal_at_a_gate_waits_until_it_is_open(here: Stage, point: str, phase: str) -> None:
    async with HookServer(here.busy) as server, here.working():
        server.no.add(point)
        await here.stable(analysis={"webhooks": server.hooks(point)})
        await here.image("web:2")
        await here.until(lambda s: s.run and str(s.run.waiting_for).endswith("-webhook"))
        before = len(server.asked)
        await here.clock.passing(server.until(before + 2))
        held = await here.get()
        assert held.status.phase == phase
        assert held.status.run.counters.failed == 0
        server.no.clear()
        await here.ended("Succeeded")


async def test_a_person_does_not_open_the_gate_of_a_webhook(here: Stage) -> None:
    async with HookServer(here.busy) as server, here.working():
        server.no.add("ConfirmTrafficIncrease")
        await here.stable(analysis={"manual": ["Step"], "webhooks": server.hooks("ConfirmTrafficIncrease")})
        await here.image("web:2")
        await approve(here, "step-2")
        await here.until(stands_at("step-2-webhook"))
        assert (await here.get()).status.run.weight == 10
        server.no.clear()
        await here.ended("Succeeded")


async def test_pre_rollout_that_refuses_again_and_again_ends_it_before_any_traffic(here: Stage) -> None:
    async with HookServer(here.busy) as server, here.working():
        server.no.add("PreRollout")
        await here.stable(analysis={"webhooks": server.hooks("PreRollout")})
        await here.image("web:2")
        canary = await here.ended("Failed")
    assert canary.status.history[0].reason == "PreRolloutRefused"
    assert "not now" in canary.status.history[0].message
    assert server.points() == ["PreRollout"] * 2
    assert here.players.weights == [("web", 0)]


async def test_a_webhook_during_the_rollout_fails_checks(here: Stage) -> None:
    async with HookServer(here.busy) as server, here.working():
        server.no.add("Rollout")
        await here.stable(analysis={"webhooks": server.hooks("Rollout")})
        await here.image("web:2")
        canary = await here.ended("Failed")
    assert canary.status.history[0].reason == "ChecksFailed"
    assert canary.status.history[0].counts["failed"] == 2


async def test_a_webhook_can_ask_for_a_rollback(here: Stage) -> None:
    async with HookServer(here.busy) as server, here.working():
        await here.stable(analysis={"webhooks": server.hooks("Rollback")})
        await here.image("web:2")
        await here.until(lambda s: s.run and s.run.step == 1)
        server.back = True
        canary = await here.ended("Failed")
    assert canary.status.history[0].reason == "RollbackRequested"


async def test_who_is_told_of_the_end_cannot_change_it(here: Stage) -> None:
    async with HookServer(here.busy) as server, here.working():
        server.no.add("PostRollout")
        await here.stable(analysis={"webhooks": server.hooks("PostRollout")})
        await here.image("web:2")
        await here.ended("Succeeded")
    assert server.points() == ["PostRollout"]
    await here.until_gone(Deployment, "web-canary")


async def test_frozen_on_failure_it_stays_until_somebody_decides(here: Stage) -> None:
    here.gauge.rates = lambda workload: (10.0, 0.2 if workload.endswith("-canary") else 0.0)
    async with here.working():
        await here.stable(analysis={"onFail": "Freeze"})
        await here.image("web:2")
        canary = await here.until(lambda s: s.run and s.run.frozen)
        await here.later(3600)
        held = await here.get()
        assert (held.status.phase, held.status.run.weight) == ("Progressing", 10)
        assert "waits at" in condition(held, "Ready").message  # type: ignore[union-attr]
        await here.annotate(approve=canary.status.run.waiting_for)
        again = await here.until(
            lambda s: s.run and s.run.frozen and s.run.waiting_for != canary.status.run.waiting_for
        )
        await here.later(600)
        assert (await here.get()).status.run.frozen, "what was forgiven once is not forgiven again"
        here.gauge.rates = lambda workload: (10.0, 0.0)
        await here.annotate(approve=again.status.run.waiting_for)
        await here.ended("Succeeded")


async def test_frozen_it_can_be_sent_out_or_aborted(here: Stage) -> None:
    here.gauge.rates = lambda workload: (10.0, 0.2 if workload.endswith("-canary") else 0.0)
    async with here.working():
        await here.stable(analysis={"onFail": "Freeze"})
        await here.image("web:2")
        canary = await here.until(lambda s: s.run and s.run.frozen)
        await here.annotate(abort=canary.status.run.id)
        await here.ended("Failed")
        await here.image("web:3")
        canary = await here.until(lambda s: s.run and s.run.frozen)
        await here.annotate(promote_now=canary.status.run.revision)
        await here.ended("Succeeded", runs=2)
    assert await image_of(here) == "web:3"
