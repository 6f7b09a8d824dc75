"""Services that are released together: promoted in order, and all back when one fails."""

from __future__ import annotations

from typing import Any

from tests.systems.delivery.stage import Stage
from tests.systems.delivery.test_runs import image_of
from trimtab.client.protocol import Ref
from trimtab.model.document import convert
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.delivery.kinds import CanaryDeployment, ReleaseGroup, ReleaseGroupSpec

MEMBERS = ("one", "two", "three")


async def grouped(stage: Stage, *members: str, **more: Any) -> None:
    spec = convert({"members": [{"name": each} for each in members], **more}, ReleaseGroupSpec)
    await stage.client.create(ReleaseGroup(metadata=ObjectMeta(name="release", namespace=stage.namespace), spec=spec))


async def stables(stage: Stage, *members: str, **given: Any) -> None:
    for each in members:
        await stage.create(each, **given)
    for each in members:
        await stage.phase("Stable", each)


async def group(stage: Stage, holds: Any) -> ReleaseGroup:
    found: ReleaseGroup = await stage.until_object(ReleaseGroup, "release", lambda g: g.status and holds(g.status))
    return found


def outcome(status: Any) -> Any:
    return not status.release and status.history and status.history[0].outcome


def waiting(status: Any) -> bool:
    return status.phase == "WaitingPromotion" and str(status.run.waiting_for).endswith("promotion-group")


async def images(stage: Stage, *members: str) -> list[str]:
    return [await image_of(stage, each) for each in members]


async def test_members_are_promoted_in_order_once_all_are_ready(stage: Stage) -> None:
    order: list[str] = []
    async with stage.working():
        await stables(stage, *MEMBERS)
        await grouped(stage, *MEMBERS)
        stage.players.stuck |= set(MEMBERS)
        for each in MEMBERS:
            await stage.image("web:2", each)
        for each in MEMBERS:
            await stage.phase("Promoting", each)
            order.append(each)
            for other in MEMBERS[len(order) :]:
                assert waiting((await stage.get(other)).status)
            stage.players.stuck.remove(each)
            await stage.players.nudge()
        found = await group(stage, lambda s: outcome(s) == "Succeeded")
    assert await images(stage, *MEMBERS) == ["web:2"] * 3
    assert found.status.conditions[0].reason == "Stable"


async def test_when_one_fails_in_analysis_none_is_promoted(stage: Stage) -> None:
    stage.gauge.rates = lambda workload: (10.0, 0.3 if workload == "two-canary" else 0.0)
    async with stage.working():
        await stables(stage, "one", "two")
        await grouped(stage, "one", "two")
        await stage.image("web:2", "one")
        await stage.image("web:2", "two")
        await group(stage, lambda s: outcome(s) == "Failed")
        one = await stage.ended("Failed", "one")
        await stage.ended("Failed", "two")
    assert one.status.history[0].reason == "GroupRolledBack"
    assert await images(stage, "one", "two") == ["web:1", "web:1"]


async def test_when_a_promotion_fails_those_before_it_go_back_in_the_opposite_order(here: Stage) -> None:
    async with here.working():
        await stables(here, *MEMBERS, progressDeadline="60s")
        await grouped(here, *MEMBERS)
        here.players.stuck.add("three")
        for each in MEMBERS:
            await here.image("web:2", each)
        await here.phase("Promoting", "three")
        assert await images(here, *MEMBERS) == ["web:2"] * 3
        here.players.stuck |= {"one", "two"}
        await here.phase("RollingBack", "three")
        here.players.stuck.remove("three")
        await here.players.nudge()
        await here.until(lambda s: s.phase == "Promoting" and s.run.promotion.reason == "Group", "two")
        await here.quiet()
        assert not (await here.get("one")).status.run, "it waits for its turn"
        here.players.stuck.remove("two")
        await here.players.nudge()
        await here.until(lambda s: s.phase == "Promoting" and s.run.promotion.reason == "Group", "one")
        here.players.stuck.clear()
        await here.players.nudge()
        found = await group(here, lambda s: outcome(s) == "Failed")
        assert await images(here, *MEMBERS) == ["web:1"] * 3
        await here.later(600)
        assert await images(here, *MEMBERS) == ["web:1"] * 3, "what went back does not run again by itself"
    assert "three" in found.status.history[0].message


async def test_a_fix_that_comes_while_all_go_back_runs_when_they_are(here: Stage) -> None:
    async with here.working():
        await stables(here, "one", "two", progressDeadline="60s")
        await grouped(here, "one", "two")
        here.players.stuck.add("two")
        await here.image("web:2", "one")
        await here.image("web:2", "two")
        await here.phase("Promoting", "two")
        await here.phase("RollingBack", "two")
        await here.image("web:3", "one")
        await here.image("web:3", "two")
        here.players.stuck.clear()
        await here.players.nudge()
        await group(here, lambda s: outcome(s) == "Failed")
        await group(here, lambda s: outcome(s) == "Succeeded")
        await here.until(lambda s: s.phase == "Stable", "one")
    assert await images(here, "one", "two") == ["web:3", "web:3"]


async def test_a_newer_revision_of_one_that_was_promoted_is_taken_back_with_it_and_runs_again(here: Stage) -> None:
    async with here.working():
        await stables(here, "one", "two", progressDeadline="60s")
        await grouped(here, "one", "two")
        here.players.stuck.add("two")
        await here.image("web:2", "one")
        await here.image("web:2", "two")
        await here.phase("Promoting", "two")
        await here.until(lambda s: s.phase == "Stable", "one")
        await here.image("web:3", "one")
        await here.phase("Progressing", "one")
        await here.phase("RollingBack", "two")
        here.players.stuck.clear()
        await here.players.nudge()
        await group(here, lambda s: outcome(s) == "Failed")
        await group(here, lambda s: outcome(s) == "Succeeded")
    assert await images(here, "one", "two") == ["web:3", "web:1"]


async def test_who_waits_for_a_group_that_goes_waits_no_longer(here: Stage) -> None:
    async with here.working():
        await stables(here, "one", "two")
        await grouped(here, "one", "two", together="All")
        await here.image("web:2", "one")
        await here.until(waiting, "one")
        await here.later(600)
        assert waiting((await here.get("one")).status), "all of them must have a new revision"
        await here.client.delete(Ref(ReleaseGroup, "release", here.namespace))
        await here.ended("Succeeded", "one")


async def test_who_is_taken_out_of_the_group_waits_no_longer(here: Stage) -> None:
    async with here.working():
        await stables(here, "one", "two")
        await grouped(here, "one", "two", together="All")
        await here.image("web:2", "one")
        await here.until(waiting, "one")
        held = await here.client.get(ReleaseGroup, "release", here.namespace)
        rest = held.spec.replace(members=held.spec.members[1:])
        await here.client.patch(held, held.replace(spec=rest))
        await here.ended("Succeeded", "one")


async def test_a_member_that_is_deleted_is_not_waited_for(here: Stage) -> None:
    async with here.working():
        await stables(here, "one", "two")
        await grouped(here, "one", "two")
        here.gauge.rates = lambda workload: (0.0 if workload == "two-canary" else 10.0, 0.0)
        await here.image("web:2", "one")
        await here.image("web:2", "two")
        await here.until(waiting, "one")
        await here.delete("two")
        await here.until_gone(CanaryDeployment, "two")
        await here.ended("Succeeded", "one")
        found = await group(here, lambda s: outcome(s) == "Succeeded")
    assert found.status.conditions[0].reason == "MembersMissing"


async def test_a_member_that_is_deleted_while_others_are_promoted_is_not_waited_for(here: Stage) -> None:
    async with here.working():
        await stables(here, *MEMBERS)
        await grouped(here, *MEMBERS)
        here.players.stuck.add("one")
        for each in MEMBERS:
            await here.image("web:2", each)
        await here.phase("Promoting", "one")
        await here.delete("two")
        await here.until_gone(CanaryDeployment, "two")
        here.players.stuck.clear()
        await here.players.nudge()
        await group(here, lambda s: outcome(s) == "Succeeded")
    assert await images(here, "one", "three") == ["web:2", "web:2"]


async def test_one_alone_with_a_new_revision_is_promoted_alone(here: Stage) -> None:
    async with here.working():
        await stables(here, "one", "two")
        await grouped(here, "one", "two")
        await here.image("web:2", "two")
        await here.ended("Succeeded", "two")
        await group(here, lambda s: outcome(s) == "Succeeded")
    assert await images(here, "one", "two") == ["web:1", "web:2"]


async def test_a_member_superseded_while_it_waits_is_gathered_again(here: Stage) -> None:
    async with here.working():
        await stables(here, "one", "two")
        await grouped(here, "one", "two", together="All")
        await here.image("web:2", "one")
        await here.until(waiting, "one")
        await here.image("web:3", "one")
        await here.until(lambda s: waiting(s) and len(s.history) == 2, "one")
        await here.image("web:2", "two")
        await group(here, lambda s: outcome(s) == "Succeeded")
    assert await images(here, "one", "two") == ["web:3", "web:2"]
