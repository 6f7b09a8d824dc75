"""Straight out, and stop: skipAnalysis, promote-now, pause, suspend, abort."""

from __future__ import annotations

from tests.systems.delivery.stage import Stage, condition
from tests.systems.delivery.test_runs import image_of
from tests.systems.delivery.test_triggers import at_ten
from trimtab.client.protocol import Query, Ref
from trimtab.model.clock import parse_time
from trimtab.model.istio import VirtualService
from trimtab.model.kubernetes import Deployment, Service


async def test_skip_analysis_sends_the_next_change_straight_out_once(stage: Stage) -> None:
    async with stage.working():
        await stage.stable(skipAnalysis=True)
        armed = await stage.until(lambda s: any(c.type == "OverrideArmed" for c in s.conditions or ()))
        assert armed.spec.skip_analysis
        await stage.image("web:2")
        await stage.ended("Succeeded")
        canary = await stage.until(lambda s: s.override and s.override.reset)
        assert not canary.spec.skip_analysis
        assert canary.status.override.revision == canary.status.stable_revision
        assert condition(canary, "OverrideArmed") is None
        assert stage.players.weights == [("web", 0)]
        assert await image_of(stage) == "web:2"
        await stage.image("web:3")
        await stage.ended("Succeeded", runs=2)
    assert [weight for _, weight in stage.players.weights] == [0, 10, 50, 0]


async def test_skip_analysis_in_mid_run_ends_the_analysis(here: Stage) -> None:
    here.gauge.rates = lambda workload: (0.0, 0.0)
    async with here.working():
        await here.stable()
        await here.image("web:2")
        await here.until(at_ten)
        await here.change(lambda spec: spec.update(skipAnalysis=True))
        await here.ended("Succeeded")
        canary = await here.until(lambda s: s.override and s.override.reset)
    assert not canary.spec.skip_analysis
    assert [weight for _, weight in here.players.weights] == [0, 10, 0]
    assert await image_of(here) == "web:2"
    here.order_is_right()


async def test_an_override_that_fails_restores_and_resets(here: Stage) -> None:
    here.players.broken.add("web:2")
    async with here.working():
        await here.stable(skipAnalysis=True, progressDeadline="20s")
        await here.image("web:2")
        await here.ended("Failed")
        canary = await here.until(lambda s: s.override and s.override.reset)
        await here.later(3600)
        canary = await here.get()
    assert not canary.spec.skip_analysis
    assert [run.reason for run in canary.status.history] == ["OverrideFailed"]
    assert await image_of(here) == "web:1"


async def test_skip_analysis_of_a_b_gives_no_traffic_to_pods_that_are_not_there(here: Stage) -> None:
    match = [{"headers": {"x-canary": {"exact": "insider"}}}]
    here.players.stuck.add("web")
    async with here.working():
        here.players.stuck.clear()
        await here.stable(analysis={"iterations": 2, "match": match}, skipAnalysis=True)
        here.players.stuck.add("web")
        await here.image("web:2")
        await here.phase("Promoting")
        await here.quiet()
        document = await here.document(VirtualService)
        assert "insider" not in str(document["spec"])
        here.players.stuck.clear()
        await here.players.nudge()
        await here.ended("Succeeded")
    here.order_is_right()


async def test_promote_now_is_for_one_revision_only(here: Stage) -> None:
    async with here.working():
        await here.stable(analysis={"manual": ["Rollout"]})
        await here.image("web:2")
        waiting = await here.phase("WaitingRollout")
        await here.annotate(promote_now="v1:" + "0" * 64)
        await here.quiet()
        assert (await here.get()).status.phase == "WaitingRollout"
        await here.annotate(promote_now=waiting.status.run.revision)
        await here.ended("Succeeded")
        assert await image_of(here) == "web:2"
        await here.image("web:3")
        canary = await here.phase("WaitingRollout")
    assert canary.status.run.revision != waiting.status.run.revision


async def test_promote_now_forces_what_failed_and_is_tried_once(here: Stage) -> None:
    here.gauge.rates = lambda workload: (10.0, 0.2 if workload.endswith("-canary") else 0.0)
    async with here.working():
        await here.stable(progressDeadline="20s")
        await here.image("web:2")
        failed = await here.ended("Failed")
        here.players.stuck.add("web")
        await here.annotate(promote_now=failed.status.failed_revision)
        await here.phase("RollingBack")
        here.players.stuck.clear()
        await here.players.nudge()
        canary = await here.ended("Failed", runs=2)
        assert canary.status.history[0].reason == "OverrideFailed"
        await here.later(3600)
        assert len((await here.get()).status.history) == 2
        await here.annotate(retry="again")
        await here.ended("Succeeded", runs=3)


async def test_abort_by_annotation_is_for_one_run(stage: Stage) -> None:
    async with stage.working():
        await stage.stable()
        await stage.image("web:2")
        running = await stage.until(at_ten)
        await stage.annotate(abort=running.status.run.id)
        canary = await stage.ended("Failed")
        assert canary.status.history[0].reason == "Aborted"
        assert await image_of(stage) == "web:1"
        await stage.image("web:3")
        await stage.ended("Succeeded", runs=2)
    stage.order_is_right()


async def test_abort_in_the_spec_starts_nothing_while_it_is_set(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await here.image("web:2")
        await here.until(at_ten)
        await here.change(lambda spec: spec.update(abort=True))
        await here.ended("Failed")
        await here.image("web:3")
        await here.later(600)
        assert len((await here.get()).status.history) == 1
        await here.change(lambda spec: spec.update(abort=False))
        await here.ended("Succeeded", runs=2)


async def test_a_run_can_be_aborted_while_it_is_promoted(here: Stage) -> None:
    async with here.working():
        await here.stable()
        here.players.stuck.add("web")
        await here.image("web:2")
        running = await here.phase("Promoting")
        here.players.stuck.clear()
        await here.annotate(abort=running.status.run.id)
        canary = await here.ended("Failed")
    assert canary.status.history[0].reason == "Aborted"
    assert await image_of(here) == "web:1"


async def test_a_pause_holds_the_run_where_it_is(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await here.image("web:2")
        await here.until(at_ten)
        await here.annotate(pause="lunch")
        canary = await here.until(lambda s: any(c.type == "Suspended" for c in s.conditions))
        assert condition(canary, "Suspended").message == "lunch"  # type: ignore[union-attr]
        checks = len((await here.get()).status.run.checks)
        await here.later(3600)
        held = await here.get()
        assert (held.status.phase, held.status.run.weight, len(held.status.run.checks)) == ("Progressing", 10, checks)
        await here.annotate(pause=None)
        ended = await here.ended("Succeeded")
    assert condition(ended, "Suspended") is None


async def test_a_pause_does_not_make_one_long_window_of_the_time_it_lasted(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await here.image("web:2")
        await here.until(at_ten)
        await here.annotate(pause="lunch")
        await here.until(lambda s: any(c.type == "Suspended" for c in s.conditions))
        await here.later(3600)
        await here.annotate(pause=None)
        canary = await here.until(lambda s: s.run and s.run.checks)
    check = canary.status.run.checks[0]
    assert (parse_time(check.time) - parse_time(check.window_start)).total_seconds() <= 100


async def test_while_suspended_drift_is_told_and_not_put_back(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await here.change(lambda spec: spec.update(suspend=True))
        await here.until(lambda s: any(c.type == "Suspended" for c in s.conditions))
        await here.client.delete(Ref(Service, "web-canary", here.namespace))
        canary = await here.until(
            lambda s: any(c.type == "Suspended" and "web-canary" in (c.message or "") for c in s.conditions)
        )
        assert "was deleted" in condition(canary, "Suspended").message  # type: ignore[union-attr]
        await here.image("web:2")
        await here.later(60)
        assert (await here.get()).status.phase == "Stable"
        assert not await _exists(here, Service, "web-canary")
        await here.change(lambda spec: spec.update(suspend=False))
        await here.ended("Succeeded")
    assert await _exists(here, Service, "web-canary")


async def _exists(stage: Stage, kind: type, name: str) -> bool:
    return name in {each.name for each in (await stage.client.list(kind, Query(namespace=stage.namespace))).items}


async def test_suspended_from_the_start_makes_nothing(here: Stage) -> None:
    async with here.working():
        await here.create(suspend=True)
        await here.until(lambda s: any(c.type == "Suspended" for c in s.conditions or ()))
        await here.later(60)
        assert not await _exists(here, Deployment, "web")
        await here.change(lambda spec: spec.update(suspend=False))
        await here.phase("Stable")


async def test_suspended_while_it_is_promoted_is_finished(here: Stage) -> None:
    async with here.working():
        await here.stable()
        here.players.stuck.add("web")
        await here.image("web:2")
        await here.phase("Promoting")
        await here.change(lambda spec: spec.update(suspend=True))
        here.players.stuck.clear()
        await here.players.nudge()
        await here.ended("Succeeded")
    assert await here.weight() == 0
    here.order_is_right()
