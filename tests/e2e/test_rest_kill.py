"""Server and controllers are killed at random moments while specs change and another hand writes too: in the end every
resource is what its spec says, was made once, and has lost nothing of the other's."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.protocol import Named, Query
from trimtab.client.transport import FAILURES
from trimtab.model import kubernetes
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.prepare import prepare
from trimtab.systems.rest.compiling.proposing import propose
from trimtab.systems.rest.kinds import RestDefinition, RestService
from trimtab.systems.rest.openapi.loading import from_path
from trimtab.systems.rest.system import SYSTEM
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

pytestmark = pytest.mark.slow

PROGRAM = str(Path(sys.executable).with_name("trimtab"))
COMPUTE = Path(__file__).resolve().parents[2] / "examples" / "rest" / "compute.json"
GROUP = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/web"
TYPE = "Microsoft.Compute/virtualMachineScaleSets"
SET = Named("arm.rest.trimtab.dev/v1", "VirtualMachineScaleSet")
KILLS, SETS = 6, 5
LIMITS = {"readsPerSecond": 1000, "writesPerSecond": 1000}
SLOW = {"code": 201, "async_operation": True, "body": "nonterminal", "polls": 0, "lasting": 0.3, "retry_after": 1}
Document = dict[str, Any]


class Emulator:
    """The ARM emulator as a process, and orders to it."""

    def __init__(self, folder: Path) -> None:
        self.url = f"http://127.0.0.1:{free_ports(1)[0]}"
        command = [sys.executable, "-m", "trimtab.lab.arm", str(COMPUTE), "--port", self.url.rpartition(":")[2]]
        self.process = Process(command, log=folder / "arm.log")
        self.process.wait_until(lambda: self.url in (folder / "arm.log").read_text(), within=30)

    def ask(self, order: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"{self.url}/_lab/{order}", data, timeout=10) as answer:
            return json.load(answer)

    @property
    def count(self) -> int:
        return sum(self.ask("counts")["verbs"].values())

    def body(self, name: str) -> Document:
        found: Document = self.ask(f"resources?id={path(name)}")
        return found

    def creations(self) -> Counter[str]:
        made = [each for each in self.ask("requests") if each["verb"] == "create" and each["status"] < 400]
        return Counter(each["path"].lower() for each in made)


class World:
    """A server and the controllers, to be killed; and what users do."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._flags = ("--systems", "none", "--port", str(free_ports(1)[0]))
        self._server = TrimtabServer(folder, flags=self._flags)
        self._scheme = kubernetes.register(Scheme())
        for kind in (RestService, RestDefinition):
            self._scheme.register(kind)
        self._controllers = self._controlling()

    def _controlling(self) -> Process:
        command = [PROGRAM, "controllers", "--systems", "rest", "--no-leader-election", "--manage-crds"]
        command += ["--kubeconfig", str(self._server.kubeconfig), "--data-dir", str(self._folder / "controllers")]
        return Process(command, log=self._folder / "controllers.log")

    def kill(self, role: str) -> None:
        """As a power cut would, and start it again."""
        if role == "server":
            self._server.kill()
            self._server = TrimtabServer(self._folder, flags=self._flags)
            return
        self._controllers.kill()
        self._controllers = self._controlling()

    def stop(self) -> None:
        self._controllers.kill()
        self._server.stop()

    def logs(self) -> str:
        return self._controllers.tail(60)

    def client(self) -> ApiClient:
        return connect(self._server.kubeconfig, scheme=self._scheme)

    async def do(self, act: Callable[[ApiClient], Any]) -> Any:
        """Until it is done: the server may be away for a moment, and a kind is served a little later."""
        async with asyncio.timeout(30):
            while True:
                client = self.client()
                try:
                    return await act(client)
                except FAILURES as error:
                    if isinstance(error, StatusError) and error.code not in (404, 409, 429, 500, 503):
                        raise
                    await asyncio.sleep(0.05)  # a server that starts tells nobody when
                finally:
                    await client.close()

    async def create(self, document: Document) -> None:
        async def act(client: ApiClient) -> None:
            await client.apply(Untyped(document), manager="users", force=True)

        await self.do(act)

    async def change(self, name: str, mutate: Callable[[Document], Any]) -> None:
        async def act(client: ApiClient) -> None:
            found = await client.get(SET, name, "default")
            changed = json.loads(json.dumps(found.raw))
            mutate(changed["spec"])
            await client.patch(found, Untyped(changed))

        await self.do(act)

    async def all_ready(self) -> list[Document]:
        """Every scale set, once each is ready as of its present spec."""

        async def followed(client: ApiClient) -> list[Document]:
            query = Query(namespace="default")
            listing = await client.list(SET, query)
            known = {item.name: item.raw for item in listing.items}
            async with contextlib.aclosing(client.watch(SET, query, listing.revision)) as events:
                while not all(is_ready(each) for each in known.values()):
                    event = await anext(events)
                    if event.object is not None:
                        known[event.object.name] = event.object.raw
            return list(known.values())

        found: list[Document] = await self.do(followed)
        return found


def is_ready(document: Document) -> bool:
    conditions = (document.get("status") or {}).get("conditions") or ()
    ready = next((each for each in conditions if each["type"] == "Ready"), {})
    generation = document["metadata"]["generation"]
    return ready.get("status") == "True" and ready.get("observedGeneration") == generation


def path(name: str) -> str:
    return f"{GROUP}/providers/{TYPE}/{name}"


@pytest.fixture
def arm(tmp_path: Path) -> Iterator[Emulator]:
    emulator = Emulator(tmp_path)
    yield emulator
    emulator.process.stop()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.stop()


async def furnish(world: World, arm: Emulator) -> None:
    """The service, its kinds, a resource group and scale sets."""
    await world.do(lambda client: prepare(client, (SYSTEM,), manage=True))
    operations = dict.fromkeys(("create", "update", "patch"), SLOW)
    arm.ask("behaviour", {"type": TYPE, "behaviour": {"operations": operations}})
    spec = {
        "endpoint": arm.url,
        "document": {"inline": COMPUTE.read_text()},
        "parameters": {"subscriptionId": GROUP.split("/")[2]},
        "limits": LIMITS,
    }
    service = {"apiVersion": "rest.trimtab.dev/v1alpha1", "kind": "RestService", "metadata": {"name": "arm"}}
    await world.create({**service, "spec": spec})
    scheme = Scheme()
    scheme.register(RestDefinition)
    for proposal in propose(from_path(COMPUTE), "arm"):
        if proposal.spec.names.kind in ("ResourceGroup", SET.kind):
            await world.create(scheme.document(proposal))
    await world.create(document("ResourceGroup", "web", {"location": "westus"}))
    for number in range(SETS):
        sku = {"name": "Standard_D2_v3", "capacity": 1}
        spec = {"parent": {"name": "web"}, "location": "westus", "sku": sku, "tags": {"team": "blue"}}
        await world.create(document(SET.kind, f"set{number}", spec))


def document(kind: str, name: str, spec: Document) -> Document:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": SET.api_version, "kind": kind, "metadata": metadata, "spec": spec}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", [1, 2])
async def test_kills_at_random_moments_make_nothing_twice_and_lose_nothing(
    world: World, arm: Emulator, seed: int
) -> None:
    chance = random.Random(seed)
    theirs: dict[str, dict[str, str]] = {f"set{number}": {} for number in range(SETS)}
    await furnish(world, arm)
    for turn in range(KILLS):
        await until_asked(arm, chance.randrange(1, 25))
        world.kill(chance.choice(["controllers", "controllers", "server"]))
        for name in chance.sample(sorted(theirs), 3):
            await world.change(name, lambda spec, t=turn: change(chance, spec, t))  # type: ignore[misc]
        other = chance.choice(sorted(theirs))
        if path(other).lower() in [each.lower() for each in arm.ask("resources")]:
            arm.ask("change", {"id": path(other), "patch": {"tags": {f"their{turn}": "kept"}}})
            theirs[other][f"their{turn}"] = "kept"
    for found in await world.all_ready():
        name, spec = found["metadata"]["name"], found["spec"]
        body = arm.body(name)
        assert body["sku"]["capacity"] == spec["sku"]["capacity"], world.logs()
        assert body["tags"] == {**spec["tags"], **theirs[name]}, world.logs()
        assert not {"pending", "applying", "operation"} & set(found["status"]["sync"])
    made = arm.creations()
    assert {name: made[path(name).lower()] for name in theirs} == dict.fromkeys(theirs, 1)


def change(chance: random.Random, spec: Document, turn: int) -> None:
    spec["sku"]["capacity"] = chance.randrange(1, 9)
    spec["tags"].pop(chance.choice(sorted(spec["tags"])))
    spec["tags"][f"tag{turn}"] = str(chance.random())


async def until_asked(arm: Emulator, more: int) -> None:
    """Until the service was asked so many times, or nobody asks any more."""
    began = last = arm.count
    quiet = 0
    while last < began + more and quiet < 40:
        await asyncio.sleep(0.05)  # the emulator tells by no watch
        now = arm.count
        quiet, last = (quiet + 1 if now == last else 0), now
