"""Runs with something in their way: objects of others, a crash between two writes, words said on the way back."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

from msgspec import UNSET

from tests.systems.delivery.stage import Stage
from tests.systems.delivery.test_triggers import at_ten
from trimtab.client.protocol import Ref
from trimtab.model.clock import parse_time
from trimtab.model.istio import VirtualService
from trimtab.model.kubernetes import ControllerRevision, Deployment
from trimtab.model.scheme import Untyped
from trimtab.runtime.status import write_status
from trimtab.systems.delivery.revisions.snapshots import name_of


async def foreign(stage: Stage, name: str = "web-canary") -> None:
    """A Deployment of someone else."""
    labels = {"app": "other"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "x", "image": "other:1"}]}}
    await stage.client.create(
        Untyped(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "namespace": stage.namespace},
                "spec": {"selector": {"matchLabels": labels}, "template": template},
            }
        )
    )


async def test_a_deployment_of_others_with_the_canarys_name_does_not_keep_a_run_from_its_end(here: Stage) -> None:
    await foreign(here)
    async with here.working():
        await here.stable(analysis=None)
        await here.image("web:2")
        async with asyncio.timeout(5):
            await here.ended("Succeeded")
    assert (await here.document(Deployment, "web-canary"))["spec"]["template"]["spec"]["containers"][0]["name"] == "x"


async def test_a_run_whose_canary_cannot_be_made_can_be_aborted(here: Stage) -> None:
    await foreign(here)
    async with here.working():
        await here.stable()
        await here.image("web:2")
        await here.until(lambda status: condition_of(status) == "Conflict")
        await here.change(lambda spec: spec.update(abort=True))
        async with asyncio.timeout(5):
            await here.ended("Failed")


def condition_of(status: Any) -> str:
    return next((each.reason for each in status.conditions or () if each.type == "Ready"), "")


async def test_a_weight_that_was_written_before_a_crash_is_not_given_to_a_canary_that_died_meanwhile(
    here: Stage,
) -> None:
    async with here.working():
        await here.stable()
        await here.image("web:2")
        canary = await here.until(at_ten)
    run = canary.status.run.replace(step=1, weight=50, verified=UNSET, window_start=UNSET)
    canary = await here.get()
    await write_status(here.client, canary, canary.status.replace(run=run, canary_weight=50))
    here.players.lost.add("web-canary")
    await here.players.nudge()
    async with here.working():
        await here.until(lambda status: status.phase in ("Starting", "RollingBack"))
        await here.quiet()
    assert ("web", 50) not in here.players.weights


async def test_a_retry_that_is_said_on_the_way_back_is_heard(here: Stage) -> None:
    async with here.working():
        await here.stable(analysis={"scaleDownDelay": "30s"})
        await here.image("web:2")
        canary = await here.until(at_ten)
        await here.annotate(abort=canary.status.run.id)
        await here.phase("Finalising")
        await here.annotate(retry="1")
        await here.until(lambda status: status.phase == "Stable")
        await here.quiet()
        canary = await here.get()
    assert len(canary.status.history) == 2, "it does not run again"


async def test_a_window_in_which_the_weight_was_another_is_discarded_although_it_is_right_again(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await here.image("web:2")
        before = await here.until(at_ten)
    for weight in (90, 10):
        found = await here.client.get(VirtualService, "web", here.namespace)
        raw = {**found.raw, "apiVersion": "networking.istio.io/v1", "kind": "VirtualService"}
        edited = copy.deepcopy(dict(raw))
        for each in edited["spec"]["http"][-1]["route"]:
            ours = each["destination"]["host"].endswith("-canary")
            each["weight"] = weight if ours else 100 - weight
        await here.client.patch(Untyped(raw), Untyped(edited))
        await here.players.nudge()
    async with here.working():
        canary = await here.until(lambda status: status.run and status.run.checks)
    began = parse_time(canary.status.run.checks[0].window_start)
    assert began > parse_time(before.status.run.verified)


async def test_traffic_leaves_a_canary_whose_deployment_another_has_replaced(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await here.image("web:2")
        await here.until(at_ten)
    await here.client.delete(Ref(Deployment, "web-canary", here.namespace))
    await foreign(here)
    async with here.working():
        async with asyncio.timeout(5):
            await here.until(lambda status: not status.canary_weight)
        assert await here.weight() == 0


async def test_a_clock_that_is_set_back_does_not_stop_the_checks(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await here.image("web:2")
        await here.until(at_ten)
        here.clock.set_back(24 * 3600)
        async with asyncio.timeout(5):
            await here.until(lambda status: status.run and status.run.checks)


async def test_a_run_can_be_aborted_although_the_snapshot_of_stable_was_deleted(here: Stage) -> None:
    async with here.working():
        stable = await here.stable()
        await here.image("web:2")
        await here.until(at_ten)
        name = name_of("web", stable.status.stable_revision)
        await here.client.delete(Ref(ControllerRevision, name, here.namespace))
        await here.quiet()
        await here.change(lambda spec: spec.update(abort=True))
        async with asyncio.timeout(5):
            await here.until(lambda status: not status.canary_weight)
