"""Controllers under hundreds of random schedules: crashes, stalls, outages, lost watches, conflicts, clocks that jump.

After each storm the world is compared with what was declared. `TRIMTAB_SEED=n` repeats one schedule.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

import orjson
import pytest
from msgspec import UNSET, UnsetType

from trimtab.client.protocol import Query, Ref
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Resource, Spec
from trimtab.runtime.apply import apply
from trimtab.runtime.changes import Change, Request
from trimtab.runtime.controller import Controller, Result, Watch
from trimtab.runtime.election import Election
from trimtab.runtime.finalizers import finalizer
from trimtab.runtime.index import Index
from trimtab.runtime.manager import Manager
from trimtab.runtime.objects import uid_of
from trimtab.runtime.owners import own, owned_by
from trimtab.runtime.predicates import generation_changed
from trimtab.runtime.status import write_status
from trimtab.store.contract import Op
from trimtab.testing.faults import USUAL, Fault
from trimtab.testing.simulation import simulate
from trimtab.testing.world import CALM, Host, Weather, World

pytestmark = pytest.mark.slow

NAMES = [f"boat-{number}" for number in range(12)]
LEASES = "leases.coordination.k8s.io"
FINALIZER = "boats.example.com/berth"
CALLS_WHEN_QUIET = 40
"""Watches that begin anew after some minutes, and what they list."""


class BoatSpec(Spec):
    sail: str
    secret: str | UnsetType = UNSET


class BoatStatus(Spec):
    sail: str | UnsetType = UNSET
    word: str | UnsetType = UNSET


class Boat(Resource, group="boats.example.com", version="v1", plural="boats"):
    spec: BoatSpec
    status: BoatStatus | UnsetType = UNSET


def boat(name: str, sail: str, secret: str | UnsetType = UNSET) -> Boat:
    return Boat(metadata=ObjectMeta(name=name, namespace="default"), spec=BoatSpec(sail=sail, secret=secret))


class Users:
    """Those who declare boats, change them, let them go, and meddle with what belongs to them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._client = world.client
        self._random = world.random
        self._count = 0

    async def declare(self) -> None:
        """Make a boat, or change it."""
        self._count += 1
        name, sail = self._random.choice(NAMES), f"sail-{self._count}"
        found = await self._find(Boat, name)
        with contextlib.suppress(StatusError):  # it went, or another's write came between
            if found is None:
                await self._client.create(boat(name, sail, self._random.choice(["", "red", "blue"]) or UNSET))
            else:
                await self._client.patch(found, found.replace(spec=found.spec.replace(sail=sail)))

    async def let_go(self) -> None:
        with contextlib.suppress(StatusError):
            await self._client.delete(Ref(Boat, self._random.choice(NAMES), "default"))

    async def replace(self) -> None:
        """The same name at once again: another boat."""
        name = self._random.choice(NAMES)
        with contextlib.suppress(StatusError):
            await self._client.delete(Ref(Boat, name, "default"))
            self._count += 1
            await self._client.create(boat(name, f"sail-{self._count}"))

    async def steal(self) -> None:
        with contextlib.suppress(StatusError):
            await self._client.delete(Ref(ConfigMap, self._random.choice(NAMES), "default"))

    async def spoil(self) -> None:
        found = await self._find(ConfigMap, self._random.choice(NAMES))
        if found is not None:
            with contextlib.suppress(StatusError):
                await self._client.patch(found, found.replace(data={"sail": "torn"}))

    async def whisper(self) -> None:
        """Change a secret, or make it, or take it away."""
        self._count += 1
        name = self._random.choice(["red", "blue"])
        found = await self._find(Secret, name)
        metadata = ObjectMeta(name=name, namespace="default")
        if found is None:
            await self._client.create(Secret(metadata=metadata, string_data={"word": f"word-{self._count}"}))
        elif self._random.random() < 0.3:
            await self._client.delete(Ref(Secret, name, "default"))
        else:
            await self._client.patch(found, found.replace(string_data={"word": f"word-{self._count}"}))

    async def _find(self, kind: type[Any], name: str) -> Any:
        try:
            return await self._client.get(kind, name, "default")
        except StatusError:
            return None


async def boats(world: World) -> dict[str, Boat]:
    return {found.name: found for found in (await world.client.list(Boat)).items}


def calls_since(world: World, began: float) -> list[str]:
    """All calls of the operators, reads too, but for leases."""
    return [
        f"{sent.time:.1f} {sent.sender} {sent.call.method} {sent.call.path}"
        for sent in world.network.calls
        if sent.time >= began and "/leases" not in sent.call.path
    ]


async def at_rest(world: World) -> None:
    """Nobody writes any more, and nobody reads on and on."""
    await world.calm()
    began = world.loop.time()
    await asyncio.sleep(300)
    assert world.writes(began) == []
    assert len(calls_since(world, began)) <= CALLS_WHEN_QUIET


# --- children --------------------------------------------------------------------------------------------------------


class Sailmaker(Controller[Boat]):
    """Each boat has a ConfigMap with its sail, and says so in its status."""

    owns = (ConfigMap,)

    async def reconcile(self, request: Request) -> Result | None:
        found = await self.client.find(Boat, request.name, request.namespace)
        if found is None or found.metadata.deletion_timestamp:
            return None
        metadata = ObjectMeta(name=found.name, namespace=found.namespace)
        child = own(ConfigMap(metadata=metadata, data={"sail": found.spec.sail}), found)
        await apply(self.client, child, manager="sailmaker")
        await write_status(self.client, found, BoatStatus(sail=found.spec.sail))
        return None


async def sailmaker(host: Host) -> None:
    manager = Manager(host.client, clock=host.clock, chance=host.random, streams=host.random.random() < 0.7)
    manager.add(Sailmaker())
    await manager.run()


async def every_boat_has_its_sail(world: World) -> None:
    declared = await boats(world)
    children = {
        found.name: found for found in (await world.client.list(ConfigMap)).items if found.metadata.owner_references
    }
    assert {name: (child.data or {}).get("sail") for name, child in children.items()} == {
        name: found.spec.sail for name, found in declared.items()
    }
    for name, found in declared.items():
        assert found.status
        assert found.status.sail == found.spec.sail
        assert [owner.uid for owner in children[name].metadata.owner_references or ()] == [uid_of(found)]


@simulate(schedules=100)
async def test_children_are_as_declared_after_any_storm(world: World) -> None:
    await world.install(Boat)
    world.start("sailmaker", sailmaker)
    users = Users(world)
    await world.happens(30, users.declare, users.declare, users.let_go, users.replace, users.steal, users.spoil)
    await at_rest(world)
    await every_boat_has_its_sail(world)


# --- finalizers ------------------------------------------------------------------------------------------------------


class Harbour:
    """A service outside of the API, which outlives the operator. It notes what breaks the contract of finalizers."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.berths: dict[str, str] = {}  # uid → name
        self.broken: list[str] = []

    def take(self, found: Boat) -> None:
        if FINALIZER not in self._stored_finalizers(found):
            self.broken.append(f"{found.name} got a berth without having the finalizer")
        self.berths[uid_of(found)] = found.name

    def leave(self, found: Boat) -> None:
        self.berths.pop(uid_of(found), None)

    def check(self) -> None:
        """No boat went while it had a berth, as far as the store's history tells."""
        for change in self._world.history:
            if change.entry.key.resource.startswith("boats.") and change.op is Op.DELETE:
                uid = orjson.loads(change.entry.value)["metadata"]["uid"]
                if uid in self.berths:
                    self.broken.append(f"{change.entry.key.name} ({uid}) went and left its berth")
        assert self.broken == []

    def _stored_finalizers(self, found: Boat) -> list[str]:
        """Those it had when it was last stored with this uid."""
        for change in reversed(self._world.history):
            if change.entry.key.name == found.name and change.entry.key.resource.startswith("boats."):
                metadata = orjson.loads(change.entry.value)["metadata"]
                if metadata["uid"] == uid_of(found):
                    return list(metadata.get("finalizers") or ())
        return []


class Harbourmaster(Controller[Boat]):
    when = generation_changed

    def __init__(self, harbour: Harbour, host: Host) -> None:
        self._harbour = harbour
        self._host = host

    async def reconcile(self, request: Request) -> Result | None:
        found = await self.client.find(Boat, request.name, request.namespace)
        if found is not None:
            await finalizer(self.client, found, FINALIZER, apply=self._take, cleanup=self._leave)
        return None

    async def _take(self, found: Boat) -> None:
        await self._work()
        self._harbour.take(found)
        await self._work()

    async def _leave(self, found: Boat) -> None:
        await self._work()
        self._harbour.leave(found)
        await self._work()

    async def _work(self) -> None:
        """Takes time, and sometimes fails."""
        await self.clock.sleep(self._host.random.random())
        if self._host.random.random() < 0.1:
            raise OSError("the harbour does not answer")


@simulate(schedules=70)
async def test_finalizers_keep_their_contract_in_any_storm(world: World) -> None:
    harbour = Harbour(world)

    async def harbourmaster(host: Host) -> None:
        manager = Manager(host.client, clock=host.clock, chance=host.random)
        manager.add(Harbourmaster(harbour, host))
        await manager.run()

    await world.install(Boat)
    world.start("harbourmaster", harbourmaster)
    users = Users(world)
    await world.happens(25, users.declare, users.declare, users.let_go, users.replace)
    await at_rest(world)
    harbour.check()
    assert sorted(harbour.berths) == sorted(uid_of(found) for found in (await boats(world)).values())


# --- own writes ------------------------------------------------------------------------------------------------------

ANSWERED = Weather(
    faults={fault: rate for fault, rate in USUAL.items() if fault is not Fault.LOST_ANSWER}, crashes=0, outages=0
)
"""Every write that took place was answered, in the life of the process that sent it."""


class Painter(Controller[Boat]):
    """Leaves the name of the child to the server, and looks into the cache whether there is one. It is wrong to count on
    memory alone, but where answers are not lost, a controller must see what it wrote."""

    owns = (ConfigMap,)
    busy = True  # looks every second

    async def reconcile(self, request: Request) -> Result | None:
        found = await self.client.find(Boat, request.name, request.namespace)
        if found is None:
            return None
        known = (await self.client.list(ConfigMap, Query(namespace="default"))).items
        if not any(owned_by(child, found) for child in known):
            metadata = ObjectMeta(generate_name="paint-", namespace="default")
            await self.client.create(own(ConfigMap(metadata=metadata), found))
        return Result(requeue_after=1.0) if self.busy else None


@simulate(schedules=60, weather=ANSWERED)
async def test_a_controller_sees_its_own_writes_whatever_happens_to_its_watches(world: World) -> None:
    painter = Painter()

    async def painting(host: Host) -> None:
        manager = Manager(host.client, clock=host.clock, chance=host.random, streams=host.random.random() < 0.5)
        manager.add(painter)
        await manager.run()

    await world.install(Boat)
    world.start("painter", painting)
    users = Users(world)
    await world.happens(20, users.declare)
    painter.busy = False
    await world.calm()
    children = [found for found in (await world.client.list(ConfigMap)).items if found.metadata.owner_references]
    owners = sorted(owner.uid for child in children for owner in child.metadata.owner_references or ())
    assert owners == sorted(uid_of(found) for found in (await boats(world)).values())


# --- secrets that boats refer to -------------------------------------------------------------------------------------


def boats_with_secret(change: Change) -> Iterable[Request]:
    for informer in change.informers.of(Boat):
        return informer.cache.indexed("secret", change.request.name)
    return ()


class Herald(Controller[Boat]):
    """Each boat's status tells the word of its secret."""

    indexes = (Index("secret", lambda found: [found.spec.secret] if found.spec.secret else []),)
    watches = (Watch(kind=Secret, to=boats_with_secret),)
    when = generation_changed

    async def reconcile(self, request: Request) -> Result | None:
        found = await self.client.find(Boat, request.name, request.namespace)
        if found is None:
            return None
        secret = await self.client.find(Secret, found.spec.secret, "default") if found.spec.secret else None
        word = (secret.data or {}).get("word", "") if secret is not None else ""
        await write_status(self.client, found, BoatStatus(word=word))
        return None


async def herald(host: Host) -> None:
    manager = Manager(host.client, clock=host.clock, chance=host.random, streams=host.random.random() < 0.7)
    manager.add(Herald())
    await manager.run()


@simulate(schedules=70)
async def test_what_another_kind_says_reaches_every_object_that_refers_to_it(world: World) -> None:
    await world.install(Boat)
    world.start("herald", herald)
    users = Users(world)
    await world.happens(30, users.declare, users.let_go, users.replace, users.whisper, users.whisper)
    await at_rest(world)
    words = {found.name: (found.data or {}).get("word") for found in (await world.client.list(Secret)).items}
    for found in (await boats(world)).values():
        assert found.status
        assert found.status.word == words.get(found.spec.secret or "", "")


# --- two replicas ----------------------------------------------------------------------------------------------------

SENT_AT_ONCE = Weather(faults={fault: rate for fault, rate in USUAL.items() if fault is not Fault.SLOW}, stalls=20)
"""A write that waits inside of the process between the guard and the wire could be sent by a leader that was stalled just
there. No process can rule that out, so it is not asked for."""


async def replica(host: Host) -> None:
    election = Election(
        host.client,
        host.clock,
        name="sailmaker",
        namespace="default",
        identity=host.process.name,
        random=host.random,
        on_elected=lambda: host.world.note(f"{host.process.name} leads"),
        on_lost=lambda: host.world.note(f"{host.process.name} leads no more"),
    )
    manager = Manager(host.client, clock=host.clock, chance=host.random, election=election)
    manager.add(Sailmaker())
    stop = asyncio.Event()
    if host.world.stormy and host.random.random() < 0.3:  # some are asked to stop, as in a rolling update
        asyncio.get_running_loop().call_later(host.random.uniform(1, 60), stop.set)
    await manager.run(stop)


def check_the_lease_tells_its_terms(world: World) -> None:
    """Each new holder counts one transition more, and nobody else counts."""
    term, leader = 0, ""
    for change in world.history:
        if change.entry.key.resource == LEASES and change.op is Op.PUT:
            spec = orjson.loads(change.entry.value)["spec"]
            holder = spec.get("holderIdentity", "")
            new = holder not in ("", leader) and leader != ""
            assert spec.get("leaseTransitions", 0) == term + new
            term, leader = term + new, holder or leader


def leaders_at(world: World) -> list[tuple[float, str]]:
    """Who held the lease from when on, by the store."""
    return [
        (change.time, orjson.loads(change.entry.value)["spec"].get("holderIdentity", ""))
        for change in world.history
        if change.entry.key.resource == LEASES and change.op is Op.PUT
    ]


def check_only_leaders_wrote(world: World) -> None:
    held = leaders_at(world)
    for sent in world.network.calls:
        if sent.call.safe or "/leases" in sent.call.path or "/events" in sent.call.path:
            continue
        holder = next((who for since, who in reversed(held) if since <= sent.time), "")
        assert holder == sent.sender, (
            f"{sent.time:.3f}: {sent.sender} sent {sent.call.method} {sent.call.path} while {holder or 'nobody'} led"
        )


@simulate(schedules=50, weather=SENT_AT_ONCE)
async def test_of_two_replicas_only_the_leader_writes(world: World) -> None:
    await world.install(Boat)
    world.start("one", replica)
    world.start("two", replica)
    users = Users(world)
    await world.happens(25, users.declare, users.declare, users.let_go, users.steal)
    await world.calm()
    check_only_leaders_wrote(world)
    check_the_lease_tells_its_terms(world)
    await every_boat_has_its_sail(world)


# --- bad manners -----------------------------------------------------------------------------------------------------


class Moody(Sailmaker):
    """Does its work, when it does not fail, hang, cancel itself or return nonsense."""

    timeout = 20.0

    def __init__(self, host: Host) -> None:
        self._host = host

    async def reconcile(self, request: Request) -> Result | None:
        mood = self._host.random.random()
        if self._host.world.stormy:
            if mood < 0.1:
                raise ValueError("a bad day")
            if mood < 0.15:
                await asyncio.Event().wait()
            if mood < 0.2:
                raise asyncio.CancelledError
            if mood < 0.3:
                return "nonsense"  # type: ignore[return-value]
            if mood < 0.4:
                return Result(requeue_after=self._host.random.uniform(0, 30))
            if mood < 0.5:
                return Result(requeue=True)
        return await super().reconcile(request)


async def moody(host: Host) -> None:
    manager = Manager(host.client, clock=host.clock, chance=host.random)
    manager.add(Moody(host))
    await manager.run()


@simulate(schedules=40)
async def test_a_reconcile_without_manners_harms_only_itself(world: World) -> None:
    await world.install(Boat)
    world.start("moody", moody)
    users = Users(world)
    await world.happens(20, users.declare, users.declare, users.let_go, users.steal)
    await at_rest(world)
    await every_boat_has_its_sail(world)


# --- controllers that come and go ------------------------------------------------------------------------------------


async def changing(host: Host) -> None:
    """A sailmaker that stays, and a herald that is added and removed again and again."""
    manager = Manager(host.client, clock=host.clock, chance=host.random)
    manager.add(Sailmaker())

    async def change() -> None:
        while host.world.stormy:
            visitor = Herald()
            visitor.name = "herald"
            manager.add(visitor)
            await host.clock.sleep(host.random.uniform(0, 5))
            await manager.remove(visitor)
            await host.clock.sleep(host.random.uniform(0, 2))

    async with asyncio.TaskGroup() as group:
        group.create_task(change())
        await manager.run()


@simulate(schedules=40)
async def test_controllers_that_come_and_go_do_not_disturb_the_one_that_stays(world: World) -> None:
    await world.install(Boat)
    world.start("changing", changing)
    users = Users(world)
    await world.happens(20, users.declare, users.declare, users.let_go, users.replace, users.whisper)
    await world.calm()
    declared = await boats(world)
    children = [found for found in (await world.client.list(ConfigMap)).items if found.metadata.owner_references]
    assert {child.name: (child.data or {}).get("sail") for child in children} == {
        name: found.spec.sail for name, found in declared.items()
    }


# --- the server's own work -------------------------------------------------------------------------------------------


@simulate(schedules=20, weather=CALM)
async def test_garbage_is_collected_whenever_the_server_restarts(world: World) -> None:
    await world.install(Boat)
    for name in NAMES:
        found = await world.client.create(boat(name, "white"))
        await world.client.create(own(ConfigMap(metadata=ObjectMeta(name=name, namespace="default")), found))
    await world.outage(1)
    for name in NAMES:
        await world.client.delete(Ref(Boat, name, "default"))
        await asyncio.sleep(0)
    await world.calm()
    assert [found.name for found in (await world.client.list(ConfigMap)).items if found.metadata.owner_references] == []
