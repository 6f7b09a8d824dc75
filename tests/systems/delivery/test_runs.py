"""Runs, whole: what is promoted, what is rolled back, and what a user sees of it. On either server."""

from __future__ import annotations

from tests.systems.delivery.stage import Stage, condition
from trimtab.model.kubernetes import Deployment


async def test_a_good_release_is_promoted_step_by_step(stage: Stage) -> None:
    async with stage.working():
        await stage.stable()
        await stage.image("web:2")
        canary = await stage.ended("Succeeded")
    assert [weight for _, weight in stage.players.weights] == [0, 10, 50, 0]
    assert condition(canary, "Ready").reason == "Stable"  # type: ignore[union-attr]
    document = await stage.document(Deployment)
    assert document["spec"]["template"]["spec"]["containers"][0]["image"] == "web:2"
    await stage.until_gone(Deployment, "web-canary")


async def test_a_release_that_fails_is_rolled_back(stage: Stage) -> None:
    stage.gauge.rates = lambda workload: (10.0, 0.2 if workload.endswith("-canary") else 0.0)
    async with stage.working():
        await stage.stable()
        await stage.image("web:2")
        canary = await stage.ended("Failed")
    assert [weight for _, weight in stage.players.weights] == [0, 10, 0]
    assert condition(canary, "Ready").reason == "RolledBack"  # type: ignore[union-attr]
    document = await stage.document(Deployment)
    assert document["spec"]["template"]["spec"]["containers"][0]["image"] == "web:1"
    await stage.until_gone(Deployment, "web-canary")
