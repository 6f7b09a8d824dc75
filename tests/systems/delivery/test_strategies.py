"""Which traffic a canary gets, and when: steps, A/B, mirrors, blue/green, sessions; and that it counts only when it is live."""

from __future__ import annotations

from typing import Any

import pytest

from tests.systems.delivery.stage import Stage
from tests.systems.delivery.test_runs import image_of
from tests.systems.delivery.test_triggers import at_ten
from trimtab.model.clock import parse_time
from trimtab.model.document import convert
from trimtab.model.istio import VirtualService
from trimtab.systems.delivery.kinds import Analysis
from trimtab.systems.delivery.plan import Step, steps

INSIDERS = [{"headers": {"x-canary": {"exact": "insider"}}}]


@pytest.mark.parametrize(
    ("given", "weights"),
    [
        ({"stepWeight": 20, "maxWeight": 50}, [20, 40, 50]),
        ({"stepWeight": 50, "maxWeight": 50}, [50]),
        ({"stepWeight": 30, "maxWeight": 100}, [30, 60, 90, 100]),
        ({"stepWeights": [1, 2, 10, 80]}, [1, 2, 10, 80]),
        ({"stepWeight": 25, "mirror": True}, [0, 25, 50]),
        ({"iterations": 3}, [0, 100]),
        ({"iterations": 3, "match": INSIDERS}, [100]),
        ({}, []),
    ],
)
def test_the_steps_of_an_analysis(given: dict[str, Any], weights: list[int]) -> None:
    assert [step.weight for step in steps(convert(given, Analysis))] == weights


def test_passes_are_wanted_at_each_step_and_iterations_at_the_first() -> None:
    assert steps(convert({"stepWeights": [5, 9], "passes": 3}, Analysis)) == (
        Step(weight=5, passes=3),
        Step(weight=9, passes=3),
    )
    assert [step.passes for step in steps(convert({"iterations": 4}, Analysis))] == [4, 1]
    assert [step.passes for step in steps(convert({"iterations": 4, "match": INSIDERS}, Analysis))] == [4]


async def test_each_step_wants_so_many_passes(here: Stage) -> None:
    async with here.working():
        await here.stable(analysis={"passes": 3})
        await here.image("web:2")
        canary = await here.until(lambda s: s.run and s.phase == "Progressing" and s.run.step == 1)
        assert [check.weight for check in canary.status.run.checks] == [10, 10, 10]
        await here.ended("Succeeded")


async def test_a_b_gives_all_that_match_and_nothing_else(stage: Stage) -> None:
    async with stage.working():
        await stage.stable(analysis={"iterations": 2, "match": INSIDERS, "manual": ["Promotion"]})
        await stage.image("web:2")
        canary = await stage.phase("WaitingPromotion")
        matched, rest = (await stage.document(VirtualService))["spec"]["http"]
        assert matched["match"] == INSIDERS
        assert _weights(matched) == {"web": 0, "web-canary": 100}
        assert _weights(rest) == {"web": 100, "web-canary": 0}
        assert canary.status.run.steps == 1
        await stage.annotate(approve=canary.status.run.waiting_for)
        canary = await stage.ended("Succeeded")
        routes = (await stage.document(VirtualService))["spec"]["http"]
    assert [_weights(route) for route in routes] == [{"web": 100, "web-canary": 0}]
    assert canary.status.history[0].counts["steps"] == 1


def _weights(route: dict[str, Any]) -> dict[str, int]:
    return {each["destination"]["host"]: each["weight"] for each in route["route"]}


async def test_a_b_without_pods_sends_nobody_there_also_while_it_is_promoted(here: Stage) -> None:
    async with here.working():
        await here.stable(analysis={"iterations": 1, "match": INSIDERS})
        here.players.stuck.add("web")
        await here.image("web:2")
        await here.phase("Promoting")
        await here.quiet()
        assert len((await here.document(VirtualService))["spec"]["http"]) == 2
        here.players.lost.add("web-canary")
        await here.players.nudge()
        await here.until_object(VirtualService, "web", lambda v: len(v.raw["spec"]["http"]) == 1)
        here.players.stuck.clear()
        await here.players.nudge()
        await here.ended("Succeeded")


async def test_a_b_by_cookie(here: Stage) -> None:
    match = [{"headers": {"cookie": {"regex": "^(.*;)?(canary=always)(;.*)?$"}}}]
    async with here.working():
        await here.stable(analysis={"iterations": 1, "match": match})
        await here.image("web:2")
        await here.until(lambda s: s.run and s.run.verified)
        assert (await here.document(VirtualService))["spec"]["http"][0]["match"] == match
        await here.ended("Succeeded")


async def test_copies_of_requests_come_before_requests(here: Stage) -> None:
    async with here.working():
        await here.stable(analysis={"mirror": True, "mirrorWeight": 40})
        await here.image("web:2")
        await here.until(lambda s: s.run and s.run.verified and s.run.step == 0)
        [route] = (await here.document(VirtualService))["spec"]["http"]
        assert _weights(route) == {"web": 100, "web-canary": 0}
        assert route["mirror"]["host"] == "web-canary"
        assert route["mirrorPercentage"]["value"] == 40
        await here.until(lambda s: s.run and s.run.verified_weight == 10)
        [route] = (await here.document(VirtualService))["spec"]["http"]
        assert "mirror" not in route
        await here.ended("Succeeded")
    assert [weight for _, weight in here.players.weights] == [0, 10, 50, 0]


async def test_blue_green_checks_without_traffic_and_then_gives_all_at_once(here: Stage) -> None:
    async with here.working():
        await here.stable(analysis={"iterations": 3})
        await here.image("web:2")
        canary = await here.until(lambda s: s.run and s.run.verified_weight == 100)
        assert [(check.weight, len(check.metrics)) for check in canary.status.run.checks] == [(0, 0)] * 3
        await here.ended("Succeeded")
    assert [weight for _, weight in here.players.weights] == [0, 100, 0]
    here.order_is_right()


async def test_sessions_stay_where_they_are(here: Stage) -> None:
    async with here.working():
        await here.stable(analysis={"sessionAffinity": {"cookieName": "side"}})
        await here.image("web:2")
        canary = await here.until(at_ten)
        routes = (await here.document(VirtualService))["spec"]["http"]
        assert canary.status.run.revision[3:15] in str(routes)
        assert "side=" in str(routes)
        await here.ended("Succeeded")
        routes = (await here.document(VirtualService))["spec"]["http"]
    assert {_weights(route).get("web-canary", 0) for route in routes} == {0}


async def test_after_promotion_stable_gets_traffic_back_by_steps(here: Stage) -> None:
    async with here.working():
        await here.stable(analysis={"stepWeightPromotion": 20})
        await here.image("web:2")
        await here.ended("Succeeded")
    assert [weight for _, weight in here.players.weights] == [0, 10, 50, 30, 10, 0]
    here.order_is_right()


async def test_a_weight_counts_only_when_it_is_live(stage: Stage) -> None:
    async with stage.working():
        await stage.stable()
        stage.players.deaf = True
        await stage.image("web:2")
        await stage.until_object(VirtualService, "web", lambda v: v.raw["spec"]["http"][0]["route"][1]["weight"] == 10)
        await stage.later(60)
        held = (await stage.get()).status
        assert (held.run.weight, held.run.verified_weight, held.run.checks) == (10, 0, ())
        stage.players.deaf = False
        await stage.players.nudge()
        verified = await stage.until(at_ten)
        canary = await stage.until(lambda s: s.run and s.run.checks)
        assert canary.status.run.checks[0].window_start == verified.status.run.verified
        await stage.ended("Succeeded")


async def test_weights_that_never_become_live_roll_back_and_the_canary_stays_until_they_do(here: Stage) -> None:
    async with here.working():
        await here.stable(progressDeadline="30s")
        here.players.deaf = True
        await here.image("web:2")
        canary = await here.phase("RollingBack")
        assert canary.status.run.reason == "TrafficNotVerified"
        await here.later(600)
        assert (await here.get()).status.phase == "RollingBack"
        assert here.players.served["web-canary"][1]
        here.players.deaf = False
        await here.players.nudge()
        await here.ended("Failed")
    assert await image_of(here) == "web:1"
    here.order_is_right()


async def test_without_a_status_weights_count_after_they_have_settled(here: Stage) -> None:
    async with here.working():
        await here.stable(analysis={"verification": "Settle", "settle": "40s"})
        here.players.deaf = True
        await here.image("web:2")
        canary = await here.until(at_ten)
        run = canary.status.run
        assert (parse_time(run.verified) - parse_time(run.since)).total_seconds() >= 40
        await here.ended("Succeeded")


async def test_ready_pods_are_as_many_as_the_threshold_says(here: Stage) -> None:
    here.players.short["web-canary"] = 3
    async with here.working():
        await here.stable(replicas=8, analysis={"canaryReadyThreshold": 75})
        await here.image("web:2")
        await here.ended("Succeeded")
    assert [weight for _, weight in here.players.weights] == [0, 10, 50, 0]


async def test_what_has_no_pods_goes_straight_out(here: Stage) -> None:
    async with here.working():
        await here.stable(replicas=0)
        await here.image("web:2")
        canary = await here.ended("Succeeded")
    assert canary.status.history[0].trigger == "NoAnalysis"
    assert await image_of(here) == "web:2"
