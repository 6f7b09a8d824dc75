"""Deployments of real processes: rollouts, limits, and what is told of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import AsyncIterator

from tests.systems.local.pods_kit import (
    Bench,
    Document,
    alive,
    app,
    condition,
    container,
    deployment,
    get,
    is_ready,
    pid_of,
    ready_probe,
)
from trimtab.client.protocol import EventType, Query
from trimtab.model.kubernetes import Deployment, Pod
from trimtab.model.scheme import Untyped
from trimtab.runtime.changes import Request
from trimtab.runtime.objects import with_metadata
from trimtab.systems.local.gateway.addresses import ENDPOINTS


def versioned(version: str, **fields: object) -> Document:
    return container(env=[{"name": "VERSION", "value": version}], readinessProbe=ready_probe(), **fields)


def roll_to(version: str):
    def mutate(spec: Document) -> None:
        spec["template"]["spec"]["containers"][0]["env"] = [{"name": "VERSION", "value": version}]

    return mutate


class Load:
    """Requests to whichever pods are ready, as a data plane sends them; each on a connection of its own."""

    def __init__(self) -> None:
        self.answers: dict[str, int] = {}
        self.failed: list[str] = []

    def __repr__(self) -> str:
        return f"{self.answers} {self.failed}"


@contextlib.asynccontextmanager
async def under_load(bench: Bench) -> AsyncIterator[Load]:
    load, there, chance = Load(), {}, random.Random(1)
    listing = await bench.client.list(Pod, Query(namespace="shop"))
    there = {pod.name: pod.raw for pod in listing.items}

    async def follow() -> None:
        async for event in bench.client.watch(Pod, Query(namespace="shop"), listing.revision):
            if event.object is not None:
                there[event.object.name] = event.object.raw
                if event.type is EventType.DELETED:
                    del there[event.object.name]

    async def ask() -> None:
        while True:
            ready = [p for p in there.values() if is_ready(p) and "deletionTimestamp" not in p["metadata"]]
            if not ready:
                load.failed.append("no pod is ready")
                await asyncio.sleep(0.01)
                continue
            try:
                version = (await get(chance.choice(ready)["status"]["podIP"])).split()[0]
                load.answers[version] = load.answers.get(version, 0) + 1
            except OSError as error:
                load.failed.append(repr(error))

    tasks = [asyncio.create_task(follow()), *(asyncio.create_task(ask()) for _ in range(3))]
    try:
        yield load
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_rolling_update_loses_no_request(bench: Bench) -> None:
    async with bench.running():
        strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        await bench.create(deployment("web", versioned("v1"), replicas=3, strategy=strategy))
        await bench.complete()
        async with under_load(bench) as load:
            await bench.change("web", roll_to("v2"))
            done = await bench.complete()
            await bench.until(lambda pods: len(pods) == 3)
        assert load.failed == []
        assert load.answers.keys() == {"v1", "v2"}
        assert condition(done, "Progressing")["reason"] == "NewReplicaSetAvailable"
        assert condition(done, "Available")["status"] == "True"


async def test_a_version_that_never_becomes_ready_takes_no_old_pod(bench: Bench) -> None:
    async with bench.running():
        await bench.create(
            deployment(
                "web", versioned("v1"), replicas=2, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
            )
        )
        await bench.complete()
        before = {pod["metadata"]["name"] for pod in await bench.pods()}

        def break_(spec: Document) -> None:
            spec["template"]["spec"]["containers"][0]["readinessProbe"]["httpGet"]["port"] = 1
            spec["progressDeadlineSeconds"] = 2

        await bench.change("web", break_)
        late = await bench.until_deployment(
            "web", lambda found: condition(found, "Progressing").get("reason") == "ProgressDeadlineExceeded"
        )
        assert late["status"]["availableReplicas"] == 2
        assert before < {pod["metadata"]["name"] for pod in await bench.pods()}
        assert len(await bench.pods()) == 3

        def revert(spec: Document) -> None:
            spec["template"]["spec"]["containers"][0]["readinessProbe"]["httpGet"]["port"] = 8080

        await bench.change("web", revert)
        await bench.complete()
        assert {pod["metadata"]["name"] for pod in await bench.until(lambda pods: len(pods) == 2)} == before


async def test_recreate_ends_all_old_pods_before_a_new_one_begins(bench: Bench) -> None:
    async with bench.running():
        await bench.create(deployment("web", versioned("v1"), replicas=2, strategy={"type": "Recreate"}))
        await bench.complete()
        old = await bench.pods()
        await bench.change("web", roll_to("v2"))
        names = {pod["metadata"]["name"] for pod in old}
        await bench.until(lambda pods: any(pod["metadata"]["name"] not in names for pod in pods))
        assert not any(alive(pid_of(pod)) for pod in old)
        await bench.complete()


async def test_replicas_go_up_and_down(bench: Bench) -> None:
    async with bench.running():
        await bench.create(deployment(replicas=1))
        await bench.complete()
        await bench.change("web", lambda spec: spec.update(replicas=3))
        await bench.complete()
        pods = await bench.pods()
        assert len({pod["status"]["podIP"] for pod in pods}) == 3
        await bench.change("web", lambda spec: spec.update(replicas=0))
        await bench.until(lambda pods: not pods)
        done = await bench.complete()
        assert "replicas" not in done["status"]


async def test_a_pod_that_somebody_deletes_is_replaced(bench: Bench) -> None:
    async with bench.running():
        await bench.create(deployment())
        await bench.complete()
        (first,) = await bench.pods()
        await bench.delete(Pod, first["metadata"]["name"])
        name = first["metadata"]["name"]
        await bench.until(lambda pods: [p for p in pods if p["metadata"]["name"] != name and is_ready(p)])


async def test_a_deployment_that_is_on_its_way_out_makes_no_more_pods(bench: Bench) -> None:
    async with bench.running() as (deployments, _):
        document = deployment()
        document["metadata"]["finalizers"] = ["example.com/wait"]
        await bench.create(document)
        await bench.complete()
        (pod,) = await bench.pods()
        await bench.delete(Deployment, "web")
        await bench.delete(Pod, pod["metadata"]["name"])
        await bench.until(lambda pods: not pods)
        await deployments.reconcile(Request("shop", "web"))
        assert not await bench.pods()


async def test_a_pod_is_available_when_it_was_ready_for_long_enough(bench: Bench) -> None:
    async with bench.running():
        await bench.create(deployment("web", container(command=["/bin/sleep", "60"]), minReadySeconds=2))
        found = await bench.until_deployment("web", lambda found: found.get("status", {}).get("readyReplicas"))
        assert "availableReplicas" not in found["status"]
        await bench.complete()


async def test_a_paused_deployment_keeps_its_pods_and_their_number(bench: Bench) -> None:
    async with bench.running():
        await bench.create(deployment("web", versioned("v1")))
        await bench.complete()
        await bench.change("web", lambda spec: (roll_to("v2")(spec), spec.update(paused=True, replicas=2)))
        pods = await bench.until(lambda pods: len(pods) == 2 and all(map(is_ready, pods)))
        assert [(await get(pod["status"]["podIP"])).split()[0] for pod in pods] == ["v1", "v1"]
        await bench.change("web", lambda spec: spec.pop("paused"))
        await bench.complete()
        pods = await bench.until(lambda pods: len(pods) == 2)
        assert [(await get(pod["status"]["podIP"])).split()[0] for pod in pods] == ["v2", "v2"]


async def test_there_is_a_limit_to_pods_and_it_is_told(bench: Bench) -> None:
    async with bench.running(most_pods=2):
        await bench.create(deployment("web", container(command=["/bin/sleep", "60"]), replicas=3))
        found = await bench.until_deployment("web", lambda found: condition(found, "ReplicaFailure"))
        assert condition(found, "ReplicaFailure")["reason"] == "FailedCreate"
        assert "2 pods" in condition(found, "ReplicaFailure")["message"]
        found = await bench.until_deployment("web", lambda found: found["status"].get("availableReplicas") == 2)
        assert found["status"]["unavailableReplicas"] == 1


async def test_a_pod_that_goes_is_drained_before_it_is_told_to_end(bench: Bench) -> None:
    """It is not ready at once, still answers, and gets SIGTERM later."""
    async with bench.running():
        await bench.create(deployment("web", versioned("v1"), annotations={"local.trimtab.dev/drain": "0.5"}))
        await bench.complete()
        (pod,) = await bench.pods()
        await bench.delete(Deployment, "web")
        (going,) = await bench.until(lambda pods: not is_ready(pods[0]))
        assert condition(going, "Ready")["reason"] == "Terminating"
        assert await get(pod["status"]["podIP"]) == f"v1 {pod['metadata']['name']}"
        assert alive(pid_of(pod))
        await bench.until(lambda pods: not pods)
        assert not alive(pid_of(pod))


async def test_a_process_that_does_not_listen_to_sigterm_is_killed_after_its_grace_period(bench: Bench) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open('deaf', 'w').close(); time.sleep(60)"
    )
    probe = {"exec": {"command": ["/bin/cat", "deaf"]}}
    async with bench.running():
        grace = {"terminationGracePeriodSeconds": 1}
        await bench.create(deployment("web", container(deaf, readinessProbe=probe), pod=grace))
        await bench.complete()
        (pod,) = await bench.pods()
        await bench.delete(Deployment, "web")
        await bench.until(lambda pods: not pods)
        assert not alive(pid_of(pod))


async def test_what_a_process_started_ends_with_it(bench: Bench) -> None:
    parent = (
        "import subprocess, time, signal, sys; c = subprocess.Popen(['/bin/sleep', '60'], env={});"
        "signal.signal(signal.SIGTERM, lambda *a: sys.exit(0)); open('child', 'w').write(str(c.pid)); time.sleep(60)"
    )
    probe = {"exec": {"command": ["/bin/cat", "child"]}}
    async with bench.running():
        await bench.create(deployment("web", container(parent, readinessProbe=probe)))
        await bench.complete()
        (pod,) = await bench.pods()
        child = int((bench.pods_folder / pod["metadata"]["uid"] / "work" / "child").read_text())
        assert alive(child)
        await bench.delete(Deployment, "web")
        await bench.until(lambda pods: not pods)
        async with asyncio.timeout(5):
            while alive(child):  # noqa: ASYNC110 - it is not our child
                await asyncio.sleep(0.01)


async def test_what_left_its_process_group_ends_with_its_container(bench: Bench) -> None:
    parent = (
        "import subprocess, time; c = subprocess.Popen(['/bin/sleep', '60'], start_new_session=True);"
        "open('child', 'w').write(str(c.pid)); time.sleep(60)"
    )
    probe = {"exec": {"command": ["/bin/cat", "child"]}}
    async with bench.running():
        await bench.create(deployment("web", container(parent, readinessProbe=probe)))
        await bench.complete()
        (pod,) = await bench.pods()
        file = bench.pods_folder / pod["metadata"]["uid"] / "work" / "child"
        child = int(file.read_text())
        assert alive(child)
        os.kill(pid_of(pod), signal.SIGKILL)
        await bench.until(lambda pods: app(pods[0]).get("lastState") or "waiting" in app(pods[0])["state"])
        assert not alive(child)
        (pod,) = await bench.until(lambda pods: all(map(is_ready, pods)) and app(pods[0])["restartCount"] == 1)
        child = int(file.read_text())
    assert not alive(child)


async def test_what_a_process_left_behind_while_nobody_looked_ends_before_the_next_begins(bench: Bench) -> None:
    parent = (
        "import subprocess, time; c = subprocess.Popen(['/bin/sleep', '60']);"
        "open('child', 'a').write(str(c.pid) + ' '); time.sleep(60)"
    )
    probe = {"exec": {"command": ["/bin/cat", "child"]}}
    async with bench.running(home_ends=False):
        await bench.create(deployment("web", container(parent, readinessProbe=probe)))
        await bench.complete()
        (pod,) = await bench.pods()
    file = bench.pods_folder / pod["metadata"]["uid"] / "work" / "child"
    os.kill(pid_of(pod), signal.SIGKILL)
    while alive(pid_of(pod)):  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0.001)
    (child,) = map(int, file.read_text().split())
    assert alive(child)
    async with bench.running():
        await bench.until(lambda pods: all(map(is_ready, pods)) and app(pods[0])["restartCount"] == 1)
        assert not alive(child)


async def test_a_pod_that_is_removed_by_force_ends_and_another_of_its_name_begins(bench: Bench) -> None:
    async with bench.running():
        await bench.create(deployment())
        await bench.complete()
        found = (await bench.client.list(Pod, Query(namespace="shop"))).items[0]
        before: Document = dict(found.raw or {})
        metadata = {name: before["metadata"][name] for name in ("name", "namespace", "labels", "finalizers")}
        again = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": before["spec"]}
        await bench.client.patch(found, with_metadata(found, finalizers=()))
        await bench.delete(Pod, found.name)
        await bench.create(again)
        pods = await bench.until(
            lambda pods: any(
                is_ready(p)
                and p["metadata"]["uid"] != before["metadata"]["uid"]
                and p["metadata"]["name"] == found.name
                for p in pods
            )
        )
        new = next(pod for pod in pods if pod["metadata"]["name"] == found.name)
        assert pid_of(new) != pid_of(before)
        assert not alive(pid_of(before))


async def test_processes_of_a_pod_that_went_while_nobody_looked_are_ended(bench: Bench) -> None:
    async with bench.running(home_ends=False):
        await bench.create(deployment())
        await bench.complete()
        found = (await bench.client.list(Pod, Query(namespace="shop"))).items[0]
    await bench.client.patch(found, with_metadata(found, finalizers=()))
    await bench.delete(Pod, found.name)
    await bench.delete(Deployment, "web")
    process = pid_of(dict(found.raw or {}))
    assert alive(process)
    async with bench.running(home_ends=False):
        async with asyncio.timeout(10):
            while alive(process):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.01)


async def test_pods_of_others_are_left_alone(bench: Bench) -> None:
    async with bench.running():
        spec = {"containers": [container(command=["/bin/sleep", "60"])]}
        bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare", "namespace": "shop"}, "spec": spec}
        await bench.client.create(Untyped(bare))
        await bench.create(deployment())
        await bench.complete()
        found = next(pod for pod in await bench.pods() if pod["metadata"]["name"] == "bare")
        assert not found.get("status", {}).get("podIP")


async def test_the_controllers_come_back_to_what_runs(bench: Bench) -> None:
    """Processes go on while nobody looks after them, and no status tells of less in between."""
    async with bench.running(home_ends=False):
        await bench.create(deployment(replicas=2))
        await bench.complete()
        before = await bench.pods()
    assert all(alive(pid_of(pod)) for pod in before)
    seen: list[Document] = []
    listing = await bench.client.list(Pod, Query(namespace="shop"))

    async def follow() -> None:
        async for event in bench.client.watch(Pod, Query(namespace="shop"), listing.revision):
            seen.extend([event.object.raw] if event.object is not None else [])  # type: ignore[list-item]

    following = asyncio.create_task(follow())
    async with bench.running():
        await bench.change("web", lambda spec: spec.update(replicas=3))
        await bench.complete()
        after = await bench.pods()
    following.cancel()
    assert {pid_of(pod) for pod in before} < {pid_of(pod) for pod in after}
    names = {pod["metadata"]["name"] for pod in before}
    assert all(is_ready(pod) for pod in seen if pod["metadata"]["name"] in names)
    assert not any(alive(pid_of(pod)) for pod in after)


async def test_a_pod_is_not_told_to_end_while_a_service_still_sends_it_requests(bench: Bench) -> None:
    async with bench.running():
        await bench.create(deployment("web", versioned("v1")))
        await bench.complete()
        (pod,) = await bench.pods()
        endpoint = {ENDPOINTS: f"{pod['status']['podIP']}:8080"}
        metadata = {"name": "web", "namespace": "shop", "annotations": endpoint}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}}
        found = await bench.client.create(Untyped(service))
        await bench.delete(Deployment, "web")
        await bench.until(lambda pods: not is_ready(pods[0]))
        await asyncio.sleep(0.5)  # five times its drain
        assert alive(pid_of(pod))
        await bench.client.patch(found, with_metadata(found, annotations={ENDPOINTS: "none"}))
        await bench.until(lambda pods: not pods)
        assert not alive(pid_of(pod))
