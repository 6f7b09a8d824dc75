"""The guide to operators is true: its code is code that runs, its names are there."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.docs import snippets
from tests.runtime.conftest import ADMIN
from trimtab.client.api import ApiClient
from trimtab.model import kubernetes
from trimtab.model.clock import SystemClock
from trimtab.model.kubernetes import ConfigMap, Namespace
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Scheme
from trimtab.runtime import Manager, Request, Result
from trimtab.runtime.claim import Claim
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.queue import LocalQueue
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.storage.scratch import Scratch
from trimtab.store.memory import MemoryStore
from trimtab.testing.clock import FakeClock

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "operators.md").read_text()
SOURCES = (
    *sorted((ROOT / "examples" / "operator").glob("*.py")),
    ROOT / "tests" / "docs" / "snippets.py",
    ROOT / "tests" / "testing" / "test_example.py",
)
CODE = re.findall(r"^```python\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)


@pytest.fixture
async def client() -> AsyncIterator[ApiClient]:
    store = MemoryStore()
    server = Server(store)
    await server.start()
    try:
        made = local_client(server, ADMIN, kubernetes.register(Scheme()))
        await made.create(Namespace(metadata=ObjectMeta(name="harbour")))
        yield made
    finally:
        await server.stop()
        await store.close()


@pytest.fixture
async def tank(client: ApiClient) -> ConfigMap:
    place = ObjectMeta(name="tank", namespace="harbour", labels={"kind": "note"})
    return await client.create(ConfigMap(metadata=place, data={"level": "9"}))


@pytest.mark.parametrize("block", CODE, ids=[block.strip().splitlines()[0] for block in CODE])
def test_code_of_the_guide_is_code_that_runs(block: str) -> None:
    assert any(block in path.read_text() for path in SOURCES), "quote examples/operator or tests/docs/snippets.py"


def test_metrics_of_the_guide_are_served() -> None:
    metrics = Metrics()
    metrics.controller("c")
    metrics.queue("c")
    metrics.leader("c", True)
    served = metrics.render().decode()
    named = re.findall(r"`((?:controller_runtime|workqueue|leader)_\w+)", GUIDE)
    named += [f"controller_runtime_{name}" for name in re.findall(r"`…(\w+)`", GUIDE)]
    assert len(named) > 8
    assert [name for name in named if f"# TYPE {name}" not in served] == []


async def test_notes_are_reconciled(client: ApiClient, tank: ConfigMap) -> None:
    seen: asyncio.Queue[Request] = asyncio.Queue()

    class Told(snippets.Notes):
        async def reconcile(self, request: Request) -> Result | None:
            seen.put_nowait(request)
            return await super().reconcile(request)

    manager, stop = Manager(client), asyncio.Event()
    manager.add(Told())
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        tasks.create_task(manager.run(stop))
        assert await seen.get() == Request("harbour", "tank")
        await client.patch(tank, tank.replace(data={"level": "8"}))
        assert await seen.get() == Request("harbour", "tank")
        stop.set()


async def test_one_pump_works_and_the_other_waits(client: ApiClient, tank: ConfigMap) -> None:
    clock = FakeClock()
    claims, others = Claim(client, clock), Claim(client, clock)
    assert await snippets.pump(client, claims, tank) is None
    assert (await client.get(ConfigMap, "tank", "harbour")).data == {"level": "0"}
    await others.acquire(snippets.Ref(ConfigMap, "tank", "harbour"), holder="other", ttl=60.0)
    waits = await snippets.pump(client, claims, tank)
    assert waits is not None
    assert waits.requeue_after == pytest.approx(60.0, abs=5.0)
    await clock.advance(61.0)  # the other has died
    assert await snippets.pump(client, claims, tank) is None


async def test_work_is_handed_out_once() -> None:
    queue = LocalQueue(SystemClock())
    scanned, enough = set[str](), asyncio.Event()

    async def scan(digest: str) -> None:
        scanned.add(digest)
        if len(scanned) == 2:
            enough.set()

    await snippets.hand_out(queue, ["a", "b", "a"])
    assert await queue.depth("images.scan") == 2
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        tasks.create_task(snippets.work_off(queue, scan))
        await enough.wait()
        await queue.close()
    assert scanned == {"a", "b"}


async def test_what_is_no_longer_declared_is_pruned(client: ApiClient, tank: ConfigMap) -> None:
    documents = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "harbour"}}
        for name in ("one", "two")
    ]
    assert await snippets.keep(client, SystemClock(), tank, documents) == 0
    assert await snippets.keep(client, SystemClock(), tank, documents[:1]) == 0
    names = {found.name for found in (await client.list(ConfigMap, snippets.Query(namespace="harbour"))).items}
    assert "one" in names
    assert "two" not in names


async def test_scratch_is_filled_once(tmp_path: Path) -> None:
    layers = Scratch(tmp_path, max_bytes=1 << 20).dir("layers", max_bytes=1 << 20)
    assert await snippets.unpacked(layers, "sha256:1", b"four") == 4
    assert await snippets.unpacked(layers, "sha256:1", b"not asked for") == 4
