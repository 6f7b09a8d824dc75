"""Documents that are applied many at a time: what is refused, lost or cut off is found out one by one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence

import pytest

from tests.systems.gitops.desk import Desk, config
from trimtab.client.api import APPLY, ApiClient
from trimtab.client.transport import Call, Reply, Unreachable
from trimtab.model.errors import StatusError
from trimtab.runtime.prepare import prepare
from trimtab.runtime.system import System
from trimtab.systems.gitops.applying import BATCH
from trimtab.systems.gitops.parsing import Identity
from trimtab.systems.gitops.sending import parted
from trimtab.systems.platform.kinds import Addon, Blueprint

COUNT = BATCH + 12


class Lossy:
    """A transport that carries batches, whatever is below, and does not bring their answers. `dies`: nor anything then."""

    def __init__(self, client: ApiClient, *, dies: bool = False) -> None:
        self._transport, self._dies = client.transport, dies
        self.dead = asyncio.Event()
        self.carried: list[int] = []
        self.client = ApiClient(self, client.scheme, namespace=client.namespace)

    @property
    def batches(self) -> bool:
        return True

    async def batch(self, calls: Sequence[Call]) -> list[Reply | StatusError]:
        self._check()
        self.carried.append(len(calls))
        for call in calls:
            await self._transport.call(call)
        if self._dies:
            self.dead.set()
        raise Unreachable("the answer was lost")

    async def call(self, call: Call) -> Reply:
        self._check()
        return await self._transport.call(call)

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        return self._transport.stream(call, inactivity)

    async def close(self) -> None:
        """The transport is everybody's."""

    def _check(self) -> None:
        if self.dead.is_set():
            raise Unreachable("it is cut off")


class Strict:
    """A transport that notes what is applied `early`: before what it stands on was answered for. `batches`: many at once."""

    def __init__(self, client: ApiClient, needs: Mapping[str, set[str]], *, batches: bool) -> None:
        self._transport, self._needs, self.batches = client.transport, needs, batches
        self.applied: set[str] = set()
        self.early: set[str] = set()
        self.client = ApiClient(self, client.scheme, namespace=client.namespace)

    async def batch(self, calls: Sequence[Call]) -> list[Reply | StatusError]:
        self._look(calls)
        replies: list[Reply | StatusError] = [await self._transport.call(call) for call in calls]
        self.applied.update(map(_name, calls))
        return replies

    async def call(self, call: Call) -> Reply:
        self._look([call])
        await asyncio.sleep(0)  # as a network does, it lets others go on meanwhile
        reply = await self._transport.call(call)
        if call.content_type == APPLY:
            self.applied.add(_name(call))
        return reply

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        return self._transport.stream(call, inactivity)

    async def close(self) -> None:
        """The transport is everybody's."""

    def _look(self, calls: Sequence[Call]) -> None:
        names = {_name(call) for call in calls if call.content_type == APPLY}
        self.early |= {name for name in names if not self._needs.get(name, set()) <= self.applied}


def _name(call: Call) -> str:
    return "/".join(call.path.split("/")[-2:])


async def test_one_that_is_refused_keeps_no_other_from_being_applied(desk: Desk) -> None:
    fixed = config("fixed", a="1") + "immutable: true\n"
    desk.git.create("team", {"fixed.yaml": fixed})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        files = {f"{n}.yaml": config(f"c{n}", a="1") for n in range(COUNT)}
        desk.git.commit("team", {**files, "fixed.yaml": fixed.replace("a: '1'", "a: '2'")})
        await desk.ask()
        sync = await desk.reason("ApplyFailed")
        assert len(await desk.names()) == COUNT + 1
        [told] = sync.status.documents
        assert (told.path, told.reason) == ("fixed.yaml", "Invalid")
        assert "immutable" in told.message


async def test_answers_that_are_lost_are_asked_for_one_by_one(desk: Desk) -> None:
    desk.git.create("team", {f"{n}.yaml": config(f"c{n}", a="1") for n in range(COUNT)})
    await desk.repository()
    lossy = Lossy(desk.client)
    async with desk.working("lossy", lossy.client):
        await desk.sync()
        sync = await desk.ready()
        assert sync.status.inventory.count == COUNT
        assert sorted(lossy.carried) == [COUNT - BATCH, BATCH]


async def test_a_process_that_dies_with_a_batch_under_way_leaves_no_orphan(desk: Desk) -> None:
    desk.git.create("team", {f"{n}.yaml": config(f"c{n}", a="1") for n in range(COUNT)})
    await desk.repository()
    await desk.sync(deletionGuard={"maxCount": COUNT})
    lossy = Lossy(desk.client, dies=True)
    async with desk.working("dies", lossy.client), asyncio.timeout(30):
        await lossy.dead.wait()
    assert await desk.names()
    async with desk.working("next"):
        sync = await desk.ready()
        assert sync.status.inventory.count == COUNT
        desk.git.commit("team", {f"{n}.yaml": None for n in range(1, COUNT)})
        await desk.again()
        assert await desk.names() == ["c0"]


ADDON = """\
apiVersion: infra.trimtab.dev/v3
kind: Addon
metadata: {name: NAME}
spec: {namespace: web, artifact: {yamlInRepo: {repository: team, paths: [a.yaml]}}}
"""
BLUEPRINT = """\
apiVersion: infra.trimtab.dev/v3
kind: Blueprint
metadata: {name: NAME}
spec: {addons: [{name: one}, {name: two}]}
"""


@pytest.mark.row(48)
@pytest.mark.parametrize("batches", [False, True])
async def test_what_is_named_is_there_before_what_names_it_is_sent(desk: Desk, batches: bool) -> None:
    for kind in (Addon, Blueprint):
        desk.client.scheme.register(kind)
    await prepare(desk.client, (System(name="platform", kinds=(Addon, Blueprint)),), rights=False)
    addons = {f"{name}.yaml": ADDON.replace("NAME", name) for name in ("one", "two")}
    desk.git.create("team", {**addons, **{f"{name}.yaml": BLUEPRINT.replace("NAME", name) for name in ("a", "b")}})
    await desk.repository()
    names = {"addons/one", "addons/two"}
    strict = Strict(desk.client, {"blueprints/a": names, "blueprints/b": names}, batches=batches)
    async with desk.working("strict", strict.client):
        await desk.sync()
        await desk.ready()
    assert strict.applied == {*names, "blueprints/a", "blueprints/b"}
    assert not strict.early


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [([], []), ([5], []), ([5, 5], [[5, 5]]), ([5, 5, 5], [[5, 5]]), ([50, 1, 1], [[1, 1]]), ([9, 9, 1, 1], [[9, 1]])],
)
def test_parts_hold_so_many_bytes(sizes: list[int], parts: list[list[int]]) -> None:
    calls = [
        (Identity("", "ConfigMap", "n", str(at)), Call(method="PATCH", path="/", body=b"x" * size, content_type=APPLY))
        for at, size in enumerate(sizes)
    ]
    assert [[len(call.body) for _, call in part] for part in parted(calls, 10)] == parts
