"""Controllers are killed at random moments of a release under load, and then the whole home: pods and Envoy serve on, the
release goes on where it was, and no request is lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.needs import needs
from tests.systems.delivery.witness import Laws, Witness
from trimtab.client.connect import connect
from trimtab.client.protocol import Query
from trimtab.model import istio, kubernetes
from trimtab.model.kubernetes import Pod
from trimtab.model.scheme import Scheme, Untyped
from trimtab.systems.delivery.kinds import CanaryDeployment, ReleaseGroup
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.usage import family

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(240)]

SHOP = Path(__file__).resolve().parents[2] / "examples" / "delivery" / "shop.yaml"
FLAGS = ("--local-workloads", "--systems", "delivery")
ADDRESS = "127.21.9.80"
INTERVAL, STEPS = 2.0, (10, 30, 50)
KILLS = 5


class Load:
    """Requests without a pause, until it is ended."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def said(self) -> str:
        """What came of them all."""
        self._process.send_signal(signal.SIGINT)
        told, _ = await self._process.communicate()
        return told.decode()


@contextlib.asynccontextmanager
async def load(folder: Path) -> AsyncIterator[Load]:
    script = folder / "steady.lua"
    script.write_text("function delay() return 10 end")  # milliseconds: what is measured is not the machine's limit
    command = ["wrk", "-t1", "-c4", "-d200s", "-s", str(script), f"http://{ADDRESS}:8000/"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        yield Load(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


class Home:
    """`trimtab up` on a folder of the test's, to be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scheme = kubernetes.register(Scheme())
        for kind in (CanaryDeployment, ReleaseGroup, *istio.KINDS):
            self.scheme.register(kind)
        self.server = TrimtabServer(folder, flags=FLAGS)
        self.client = connect(self.server.kubeconfig, scheme=self.scheme)
        self.witness = Witness(self.client, "default")

    async def apply(self, version: str) -> None:
        document = yaml.safe_load(SHOP.read_text())
        spec = document["spec"]
        spec["service"]["clusterIP"] = ADDRESS
        spec["analysis"] |= {"interval": f"{INTERVAL:g}s", "stepWeights": list(STEPS), "scaleDownDelay": "1s"}
        spec["deployment"]["template"]["spec"]["containers"][0]["args"] = ["--version", version]
        await self.client.apply(Untyped(document), manager="users", force=True)

    def is_stable(self, runs: int) -> Callable[[], bool]:
        def holds() -> bool:
            status = self.witness.status("shop")
            outcomes = [run["outcome"] for run in status.get("history") or ()]
            ready = next((each for each in status.get("conditions") or () if each["type"] == "Ready"), {})
            return len(outcomes) == runs and "Running" not in outcomes and ready.get("status") == "True"

        return holds

    async def ended(self, runs: int) -> None:
        """Until so many releases are over, and the last one serves."""
        try:
            await self.witness.until(self.is_stable(runs), 90)
        except TimeoutError:
            raise AssertionError(f"{self.witness.status('shop')}\n{self.server.log()[-6000:]}") from None

    async def killed(self) -> None:
        """The controllers, as a power cut would; others take their place."""
        gone = self.controllers
        os.kill(gone, signal.SIGKILL)
        await until(lambda: self.controllers not in (0, gone))

    @property
    def controllers(self) -> int:
        with contextlib.suppress(OSError):
            for pid in family(self.server.pids["server"]):
                if b"controllers" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    return pid
        return 0

    async def again(self) -> None:
        """Server and controllers are killed together, and started again. Were it the server alone, the controllers would
        see it go, and end what they run: nothing is left behind of a home that will not come back."""
        old = self.controllers
        os.kill(old, signal.SIGKILL)
        self.server.kill()
        await self.client.close()
        await until(lambda: not Path(f"/proc/{old}").exists())
        self.server = TrimtabServer(self.folder, flags=FLAGS)
        self.client = connect(self.server.kubeconfig, scheme=self.scheme)

    async def stop(self) -> None:
        await self.client.close()
        self.server.stop()

    @property
    def envoys(self) -> set[int]:
        return {pid for pid in self.processes if "envoy" in _words(pid, "cmdline").partition("\0")[0]}

    @property
    def processes(self) -> set[int]:
        """All that have to do with this folder."""
        mine, found = str(self.folder), set()
        for path in Path("/proc").glob("[0-9]*"):
            pid = int(path.name)
            if pid != os.getpid() and (mine in _words(pid, "cmdline") or mine in _words(pid, "environ")):
                found.add(pid)
        return found

    async def pods(self) -> list[dict[str, Any]]:
        return [dict(pod.raw) for pod in (await self.client.list(Pod, Query(namespace="default"))).items]


def _words(pid: int, file: str) -> str:
    try:
        return Path(f"/proc/{pid}/{file}").read_bytes().decode(errors="replace")
    except OSError:
        return ""


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - processes tell nobody
            await asyncio.sleep(0.02)


async def answered() -> None:
    """Until the service answers: its listener may come a little after its pods."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(ADDRESS, 8000)
                writer.close()
                return
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_release_goes_on_whoever_was_killed_and_no_request_is_lost(tmp_path: Path, seed: int) -> None:
    needs("wrk")
    chance = random.Random(seed)
    home = Home(tmp_path)
    try:
        async with home.witness.watching():
            await home.apply("1")
            await home.ended(0)
        await answered()
        envoys = home.envoys
        assert len(envoys) == 1
        async with load(tmp_path) as requests:
            async with home.witness.watching():
                await home.apply("2")
                for _ in range(KILLS):
                    await asyncio.sleep(chance.uniform(0.2, 3.0))  # a moment
                    await home.killed()
                await home.ended(1)
            assert home.envoys == envoys
            assert not any(restarts(pod) for pod in await home.pods())

            async with home.witness.watching():
                await home.apply("3")
                await home.witness.until(lambda: home.witness.status("shop").get("phase") == "Progressing", 60)
                before = {pod["metadata"]["name"] for pod in await home.pods()}
                await asyncio.sleep(chance.uniform(0.0, 2.0))
            await home.again()
            async with home.witness.watching(home.client):
                await home.ended(2)
            assert home.envoys == envoys
            assert not any(restarts(pod) for pod in await home.pods())
            said = await requests.said()
    finally:
        await home.stop()
    await until(lambda: not home.processes)
    outcomes = [run["outcome"] for run in home.witness.status("shop")["history"]]
    assert outcomes == ["Succeeded", "Succeeded"], home.witness.status("shop")["history"]
    assert not Laws("shop", STEPS, INTERVAL, retry=0.5).judge(home.witness.told())
    assert len(before) >= 4
    assert "Non-2xx" not in said, said
    assert "Socket errors" not in said, said
    found = re.search(r"(\d+) requests in", said)
    assert found is not None
    assert int(found[1]) > 1000, said


def restarts(pod: dict[str, Any]) -> int:
    return int(pod["status"]["containerStatuses"][0].get("restartCount", 0))
