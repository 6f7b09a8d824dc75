"""`trimtab up --local-workloads` as a user has it: what happens to processes when its parts are killed, and when it stops."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest

from tests.systems.local.pods_kit import Bench, Document, alive, deployment, get, is_ready, pid_of
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


def marked(folder: Path) -> set[int]:
    """All processes of pods whose files are here, whatever anybody knows of them."""
    uids = {path.name for path in folder.glob("*-*")}
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            variables = (path / "environ").read_bytes().split(b"\0")
            leads = os.getsid(int(path.name)) == int(path.name)
        except OSError:
            continue
        marks = [each.decode().partition("=")[2] for each in variables if each.startswith(b"TRIMTAB_CONTAINER=")]
        if leads and marks and marks[0].partition("/")[0] in uids:
            found.add(int(path.name))
    return found


@pytest.mark.dataplane
async def test_wherever_the_controllers_are_killed_there_is_one_process_for_each_pod(
    tmp_path: Path, scheme: Scheme
) -> None:
    chance = random.Random(7)
    with TrimtabServer(tmp_path, flags=("--local-workloads", "--systems", "none")) as server:
        client = connect(server.kubeconfig, scheme=scheme)
        try:
            await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
            bench = Bench(client, tmp_path / "data")
            await bench.create(deployment(replicas=3))
            await bench.complete()
            for kill in range(4):

                def roll(spec: Document, kill: int = kill) -> None:
                    spec["template"]["metadata"]["annotations"]["kill"] = str(kill)

                await bench.change("web", roll)
                await asyncio.sleep(chance.uniform(0.0, 0.4))  # any moment of the rollout
                os.kill(controllers_of(server), signal.SIGKILL)
                await bench.complete()
                pods = await bench.until(lambda pods: len(pods) == 3 and all(map(is_ready, pods)))
                assert len({pod["status"]["podIP"] for pod in pods}) == 3
                assert marked(bench.pods_folder) == {pid_of(pod) for pod in pods}
                assert len(list(bench.pods_folder.iterdir())) == 3
        finally:
            await client.close()
    assert not marked(bench.pods_folder)
