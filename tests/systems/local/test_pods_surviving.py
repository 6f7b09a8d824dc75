"""`trimtab up --local-workloads` as a user has it: what happens to processes when its parts are killed, and when it stops."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.systems.local.pods_kit import Bench, alive, deployment, get, is_ready, pid_of
from trimtab.client.connect import connect
from trimtab.model.kubernetes import Deployment
from trimtab.model.scheme import Scheme, Untyped
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.usage import family


def controllers_of(server: TrimtabServer) -> int:
    """The child process with the controllers."""
    for pid in family(server.pids["server"]):
        if b"controllers" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
            return pid
    raise AssertionError("there are no controllers")


@pytest.mark.dataplane
async def test_processes_survive_the_death_of_the_controllers_and_end_with_the_home(
    tmp_path: Path, scheme: Scheme
) -> None:
    flags = ("--local-workloads", "--systems", "none")
    with TrimtabServer(tmp_path, flags=flags) as server:
        client = connect(server.kubeconfig, scheme=scheme)
        try:
            await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
            bench = Bench(client, tmp_path / "data")
            await bench.create(deployment(replicas=2))
            await bench.complete()
            before = await bench.pods()
            os.kill(controllers_of(server), signal.SIGKILL)
            assert all([(await get(pod["status"]["podIP"])).strip() for pod in before])
            await bench.change("web", lambda spec: spec.update(replicas=3))
            pods = await bench.until(lambda pods: len(pods) == 3 and all(map(is_ready, pods)))
            assert {pid_of(pod) for pod in before} < {pid_of(pod) for pod in pods}
            gone = before[0]

            os.kill(controllers_of(server), signal.SIGKILL)
            await bench.delete(Deployment, "web")  # while nobody looks after it
            await bench.until(lambda pods: not pods)
            assert not alive(pid_of(gone))

            await bench.create(deployment("last"))
            await bench.complete("last")
            (last,) = await bench.pods()
        finally:
            await client.close()
    assert not alive(pid_of(last))
    with TrimtabServer(tmp_path, flags=flags) as server:
        client = connect(server.kubeconfig, scheme=scheme)
        try:
            bench = Bench(client, tmp_path / "data")
            old = pid_of(last)
            (again,) = await bench.until(lambda pods: is_ready(pods[0]) and pid_of(pods[0]) not in (0, old))
            assert again["metadata"]["name"] == last["metadata"]["name"]
            assert again["status"]["podIP"] == last["status"]["podIP"]
            assert await get(again["status"]["podIP"])
        finally:
            await client.close()
    async with asyncio.timeout(5):
        while alive(pid_of(again)):  # noqa: ASYNC110 - it is not our child
            await asyncio.sleep(0.01)
