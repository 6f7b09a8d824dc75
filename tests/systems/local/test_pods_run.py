"""Pods as real processes."""

from __future__ import annotations

import time

from tests.systems.local.pods_kit import Bench, alive, app, container, deployment, get, is_ready, pid_of
from trimtab.model.kubernetes import Deployment
from trimtab.runtime.changes import Request


async def test_a_deployment_becomes_a_process_that_answers_on_the_pods_own_address(bench: Bench) -> None:
    async with bench.running():
        began = time.perf_counter()
        await bench.create(deployment())
        (pod,) = await bench.until(lambda pods: pods and all(map(is_ready, pods)))
        took = time.perf_counter() - began
        print(f"ready after {took:.3f} s")
        address = pod["status"]["podIP"]
        assert address.startswith("127.10.")
        assert (await get(address)).endswith(pod["metadata"]["name"])
        assert pod["status"]["phase"] == "Running"
        assert {c["type"]: c["status"] for c in pod["status"]["conditions"]} == dict.fromkeys(
            ("PodScheduled", "Initialized", "ContainersReady", "Ready"), "True"
        )
        process = pid_of(pod)
        assert alive(process)
    assert not alive(process)


async def test_a_process_without_probes_is_ready_at_once(bench: Bench) -> None:
    async with bench.running():
        began = time.perf_counter()
        await bench.create(deployment("web", container(command=["/bin/sleep", "60"])))
        await bench.until(lambda pods: pods and all(map(is_ready, pods)))
        took = time.perf_counter() - began
        print(f"ready after {took:.3f} s")
        assert took < 5  # a twentieth of a second, on a machine that does nothing else


async def test_deleting_the_deployment_ends_its_processes(bench: Bench) -> None:
    async with bench.running():
        await bench.create(deployment(replicas=2))
        pods = await bench.until(lambda pods: len(pods) == 2 and all(map(is_ready, pods)))
        assert len({pod["status"]["podIP"] for pod in pods}) == 2
        await bench.delete(Deployment, "web")
        await bench.until(lambda pods: not pods)
        assert not any(alive(pid_of(pod)) for pod in pods)
        assert not list(bench.pods_folder.iterdir())


async def test_a_container_without_a_command_says_so(bench: Bench) -> None:
    async with bench.running():
        await bench.create(deployment("web", {"name": "app", "image": "nginx"}))
        (pod,) = await bench.until(lambda pods: pods and "message" in app(pods[0]).get("state", {}).get("waiting", {}))
        assert app(pod)["state"]["waiting"]["reason"] == "NoCommand"
        assert pod["status"]["phase"] == "Pending"


async def test_a_status_that_did_not_change_is_not_written(bench: Bench) -> None:
    async with bench.running() as (deployments, pods):
        await bench.create(deployment())
        await bench.complete()
        (before,) = await bench.pods()
        await pods.reconcile(Request("shop", before["metadata"]["name"]))
        await deployments.reconcile(Request("shop", "web"))
        found = await bench.client.get(Deployment, "web", "shop")
        assert await bench.pods() == [before]
        assert found.metadata.resource_version == (await bench.complete())["metadata"]["resourceVersion"]
