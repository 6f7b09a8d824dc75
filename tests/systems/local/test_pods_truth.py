"""What the API says of pods when the controllers begin is of another time: nobody may go by it before it is true."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest

from tests.systems.local.pods_kit import Bench, alive, app, condition, deployment, is_ready, pid_of
from trimtab.model.clock import SystemClock
from trimtab.model.kubernetes import Pod
from trimtab.systems.local.deployment_controller import DeploymentController
from trimtab.systems.local.pods.truth import Truth
from trimtab.systems.local.rolling import Facts


async def told(bench: Bench) -> None:
    client: Any = bench.client  # no cache in between
    await Truth(bench.pods_folder, SystemClock()).told(client)


async def test_a_pod_whose_process_ended_with_the_home_is_not_ready(bench: Bench) -> None:
    async with bench.running():
        await bench.create(deployment())
        await bench.complete()
    (before,) = await bench.pods()
    assert is_ready(before)
    assert not alive(pid_of(before))
    await told(bench)
    (after,) = await bench.pods()
    assert not is_ready(after)
    assert condition(after, "Ready")["reason"] == "ContainersNotReady"
    assert (app(after)["ready"], app(after)["started"]) == (False, False)
    assert after["status"]["podIP"] == before["status"]["podIP"]
    async with bench.running():
        (again,) = await bench.until(lambda pods: pods and all(map(is_ready, pods)))
        assert pid_of(again) != pid_of(before)
        assert app(again)["restartCount"] == 1


async def test_a_pod_whose_process_runs_on_stays_ready(bench: Bench) -> None:
    async with bench.running(home_ends=False):
        await bench.create(deployment())
        await bench.complete()
    before = await bench.pods()
    await told(bench)
    assert await bench.pods() == before
    os.kill(pid_of(before[0]), signal.SIGKILL)
    while alive(pid_of(before[0])):  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0.001)
    await told(bench)
    assert not any(map(is_ready, await bench.pods()))


async def test_a_deployment_counts_no_pod_that_has_ended_unseen(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench.running():
        await bench.create(deployment(replicas=2))
        await bench.complete()
    seen: list[bool] = []
    judged = DeploymentController._facts

    def facts(controller: DeploymentController, pod: Pod, hashed: str, steady: float) -> Facts:
        found = judged(controller, pod, hashed, steady)
        seen.append(found.ready and not alive(pid_of(dict(pod.raw or {}))))
        return found

    monkeypatch.setattr(DeploymentController, "_facts", facts)
    async with bench.running():
        await bench.until_deployment("web", lambda found: (found.get("status") or {}).get("readyReplicas", 0) < 2)
        await bench.complete()
    assert seen
    assert not any(seen)


async def test_pods_of_others_are_nobodys_business(bench: Bench) -> None:
    async with bench.running():
        await bench.create(deployment())
        await bench.complete()
    (pod,) = [await bench.client.get(Pod, each["metadata"]["name"], "shop") for each in await bench.pods()]
    await bench.client.patch(pod, pod.replace(metadata={**pod.raw["metadata"], "finalizers": []}))  # type: ignore[index]
    await told(bench)
    assert all(map(is_ready, await bench.pods()))
