"""What replicas promise each other, one promise at a time, in virtual time on a bus within the process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from tests.hub.cache.service import Service, document
from trimtab.hub.bus.contract import MAX_MESSAGE, Lost
from trimtab.hub.bus.local import LocalBus, LocalSession
from trimtab.hub.cache.caches import Caches, Question
from trimtab.hub.cache.fleet import Fleet
from trimtab.hub.cache.generations import ALL, Change, Scope
from trimtab.hub.cache.membership import SPARE, Membership
from trimtab.hub.cache.messages import MAX_CHANGES, Beat, Told, decode, encode
from trimtab.hub.cache.positions import Positions
from trimtab.hub.cache.rounds import Rounds
from trimtab.hub.contract import ApplyOptions, DeleteOptions, Down, GetOptions, ListOptions
from trimtab.hub.proxies.cached import Cached
from trimtab.hub.storage.contract import PROJECTS
from trimtab.testing.loop import LoopClock, SimulatedLoop, run
from trimtab.testing.simulated_process import SimulatedProcess

TYPE = "blueprints.infra"
LEASE = 3.0
GET = GetOptions(project="p")
APPLY = ApplyOptions(project="p")


def virtual(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def inner() -> None:
        run(test(), seed=test.__name__)

    inner.__name__ = test.__name__
    inner.pytestmark = getattr(test, "pytestmark", [])  # type: ignore[attr-defined]
    return inner


def now() -> float:
    return asyncio.get_running_loop().time()


class Replica:
    def __init__(self, name: str, bus: LocalBus, service: Service) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.loop = loop
        self.process = SimulatedProcess(name)
        self.caches = Caches()
        self.cached = Cached(service, TYPE, self.caches)
        self.fleet = Fleet(bus, self.caches, replica=name, lease=LEASE, patience=10.0, clock=LoopClock(loop))

    async def start(self) -> Replica:
        await self.process.run(asyncio.create_task, self.fleet.start())
        await self.fleet.joined()
        return self

    def resume(self) -> None:
        self.process.resume()
        self.loop.wake_stalled()


async def started(count: int = 2) -> tuple[Service, list[Replica]]:
    """As many replicas, that have known each other for a while."""
    bus, service = LocalBus(), Service()
    replicas = [await Replica(f"r{number}", bus, service).start() for number in range(count)]
    await asyncio.sleep(2 * LEASE)
    return service, replicas


@pytest.mark.row(36)
@virtual
async def test_a_write_is_heard_by_all_before_it_returns() -> None:
    service, (one, two) = await started()
    await one.cached.apply(document("a", "old"), APPLY)
    assert (await two.cached.get("a", GET))["spec"]["v"] == "old"
    began = now()
    await one.cached.apply(document("a", "new"), APPLY)
    assert now() - began < 0.01  # nobody's lease was waited for
    assert (await two.cached.get("a", GET))["spec"]["v"] == "new"
    assert service.gets == 2


@pytest.mark.row(36)
@virtual
async def test_what_was_shared_with_a_project_is_read_anew_by_all_when_it_is_gone() -> None:
    service, (one, two) = await started()
    projects = [Cached(service, PROJECTS, replica.caches) for replica in (one, two)]
    await projects[0].apply(document("shop"), ApplyOptions())
    await one.cached.apply(document("a", "shared"), APPLY)
    listed = ListOptions(all_projects=True)
    for replica in (one, two):
        await replica.cached.get("a", GET)
        await replica.cached.list(listed)
    service.put(("p", "a"), document("a", "not shared"))  # what the storage does in the same commit
    await projects[0].delete("shop", DeleteOptions())
    for replica in (one, two):
        assert (await replica.cached.get("a", GET))["spec"]["v"] == "not shared"
        [a] = [hub for hub in (await replica.cached.list(listed)).items if hub["metadata"]["name"] == "a"]
        assert a["spec"]["v"] == "not shared"


@pytest.mark.row(36)
@virtual
async def test_a_write_waits_for_one_that_does_not_answer_until_its_lease_has_ended() -> None:
    _, (one, two) = await started()
    await one.cached.apply(document("a", "old"), APPLY)
    await two.cached.get("a", GET)
    two.process.stall()
    began = now()
    await one.cached.apply(document("a", "new"), APPLY)
    assert LEASE * 0.5 < now() - began <= LEASE
    assert not two.fleet.open()  # by its own clock, before the write returned
    began = now()
    await one.cached.apply(document("a", "newer"), APPLY)
    assert now() - began < 0.01  # it is waited for once
    two.resume()
    assert (await two.cached.get("a", GET))["spec"]["v"] == "newer"


@pytest.mark.row(35)
@virtual
async def test_one_that_stood_still_comes_back_and_is_waited_for_again() -> None:
    _, (one, two) = await started()
    two.process.stall()
    await asyncio.sleep(2 * LEASE)
    assert one.fleet.replicas == ("r0",)
    two.resume()
    await asyncio.sleep(LEASE)
    assert one.fleet.replicas == ("r0", "r1")
    assert two.fleet.open()
    await one.cached.apply(document("a", "old"), APPLY)
    await two.cached.get("a", GET)
    await one.cached.apply(document("a", "new"), APPLY)
    assert (await two.cached.get("a", GET))["spec"]["v"] == "new"


@pytest.mark.row(35)
@virtual
async def test_one_that_stops_leaves_and_nobody_waits_for_it() -> None:
    _, (one, two) = await started()
    await two.fleet.stop()
    assert not two.fleet.open()
    began = now()
    await one.cached.apply(document("a"), APPLY)
    assert now() - began < 0.01
    assert one.fleet.replicas == ("r0",)


@pytest.mark.row(36)
@virtual
async def test_one_that_has_just_come_does_not_know_all_and_its_writes_wait_a_lease() -> None:
    bus, service = LocalBus(), Service()
    one = await Replica("r0", bus, service).start()
    began = now()
    await one.cached.apply(document("a"), APPLY)
    assert LEASE * 0.9 < now() - began <= LEASE


@pytest.mark.row(35)
@virtual
async def test_a_lost_session_takes_the_lease_and_all_that_was_kept() -> None:
    service, (one, two) = await started()
    await one.cached.apply(document("a"), APPLY)
    await two.cached.get("a", GET)
    session = two.fleet._session
    assert session is not None
    await session.close()
    await asyncio.sleep(0.01)
    assert not two.fleet.open()
    await two.cached.get("a", GET)
    assert service.gets == 2
    await asyncio.sleep(LEASE)
    assert two.fleet.open()  # another session
    assert two.caches.kinds[TYPE].get.metrics.entries == 0


@pytest.mark.row(36)
@virtual
async def test_a_change_that_was_not_told_before_the_session_was_lost_is_told_in_the_next() -> None:
    _, (one, two) = await started()
    await one.cached.apply(document("a", "old"), APPLY)
    await two.cached.get("a", GET)
    two.process.stall()  # so that the round is under way
    writer = asyncio.create_task(one.cached.apply(document("a", "new"), APPLY))
    await asyncio.sleep(0.1)
    session = one.fleet._session
    assert session is not None
    await session.close()
    two.resume()
    await writer
    assert (await two.cached.get("a", GET))["spec"]["v"] == "new"


@virtual
async def test_a_mistake_in_a_session_ends_that_session_only() -> None:
    _, (one, two) = await started()
    session: Any = two.fleet._session

    async def broken() -> bytes:
        raise KeyError("a mistake")

    session.receive = broken
    await one.cached.apply(document("a", "old"), APPLY)
    await asyncio.sleep(2 * LEASE)
    assert two.fleet._session is not session
    assert two.fleet.open()


@pytest.mark.row(36)
@virtual
async def test_without_a_bus_writes_fail_before_anything_is_written() -> None:
    class NoBus(LocalBus):
        async def open(self, replica: str) -> Any:
            raise Lost("nobody listens")

    service = Service()
    one = Replica("r0", NoBus(), service)
    await one.fleet.start()
    with pytest.raises(Down, match="nothing was changed"):
        await one.cached.apply(document("a"), APPLY)
    assert service.revision == 0
    await one.fleet.stop()


@virtual
async def test_writes_at_one_moment_go_together() -> None:
    class Counting(LocalBus):
        told = 0

        def deliver(self, message: bytes) -> None:
            self.told += b"told" in message
            super().deliver(message)

    bus, service = Counting(), Service()
    one, _ = [await Replica(name, bus, service).start() for name in ("r0", "r1")]
    await asyncio.sleep(2 * LEASE)
    await asyncio.gather(*(one.cached.apply(document(f"n{number}"), APPLY) for number in range(200)))
    assert bus.told < 100


def test_a_lease_ends_by_its_holders_clock_before_others_may_assume_so() -> None:
    holder = Membership("a", "s", LEASE, began=0.0)
    other = Membership("b", "t", LEASE, began=0.0)
    beat = Beat("a", "s", 0, sent=10.0)
    holder.beat(beat, now=10.9, order=1)  # its own beat was long on its way
    other.beat(beat, now=10.0, order=1)  # the fastest way there is
    assert holder.until == 10.0 + SPARE * LEASE
    assert other.awaited(10.1) == {"a": 10.0 + LEASE}
    assert holder.until < 10.0 + LEASE
    assert not other.awaited(10.0 + LEASE)


def test_beats_of_another_session_are_no_lease() -> None:
    holder = Membership("a", "now", LEASE, began=0.0)
    holder.beat(Beat("a", "before", 7, sent=10.0), now=10.0, order=1)
    assert holder.until == 0.0


def test_replicas_that_are_long_gone_are_forgotten() -> None:
    membership = Membership("me", "s", LEASE, began=0.0)
    for number in range(1000):
        membership.beat(Beat(f"r{number}", "s", 0, 0.0), now=float(number), order=number)
    assert len(membership.members) < 40


def test_changes_are_small_messages() -> None:
    change = Change("t" * 100, "o" * 63, "p" * 63, "n" * 253, 2**62)
    told = Told("i" * 16, "r" * 16, (change,) * MAX_CHANGES)
    assert len(encode(told)) < MAX_MESSAGE
    assert decode(encode(told)) == told
    assert decode(b"something else") is None


@pytest.mark.row(36)
@virtual
async def test_a_change_that_was_lost_with_the_session_is_told_in_the_next() -> None:
    _, (one, two) = await started()
    await one.cached.apply(document("a", "old"), APPLY)
    await two.cached.get("a", GET)
    session = one.fleet._session
    assert session is not None
    publish = session.publish

    async def losing(message: bytes) -> None:
        if isinstance(decode(message), Told):
            raise Lost("the bus is gone")
        await publish(message)

    session.publish = losing  # type: ignore[method-assign]
    await one.cached.apply(document("a", "new"), APPLY)
    assert (await two.cached.get("a", GET))["spec"]["v"] == "new"


@pytest.mark.row(34)
@virtual
async def test_who_has_not_heard_of_a_change_does_not_answer_for_it() -> None:
    _, (one, two) = await started()
    await one.cached.apply(document("a", "old"), APPLY)
    await two.cached.get("a", GET)
    position = one.fleet._positions.last(Scope(TYPE, "default", "p"))[1]
    assert position
    assert await two.fleet._serve(Question(TYPE, "a", GET.key(), position=position)) is not None
    assert await two.fleet._serve(Question(TYPE, "a", GET.key(), position="of a change to come")) is None
    session, echoed = two.fleet._membership.session, two.fleet._membership.echoed
    later = Question(TYPE, "a", GET.key(), "of a change to come", session, echoed)
    assert await two.fleet._serve(later) is not None
    assert await two.fleet._serve(msgspec.structs.replace(later, beat=echoed + 1)) is None
    assert await two.fleet._serve(msgspec.structs.replace(later, session="another")) is None


@pytest.mark.row(35)
@virtual
async def test_a_session_on_which_nothing_is_heard_is_given_up_for_another() -> None:
    _, (one, two) = await started()
    session = one.fleet._session
    assert isinstance(session, LocalSession)
    session.inbox.put = lambda message: None  # type: ignore[method-assign]
    await asyncio.sleep(LEASE)
    assert not one.fleet.open()
    await asyncio.sleep(3 * LEASE)
    assert one.fleet.open()
    await one.cached.apply(document("a", "new"), APPLY)
    assert (await two.cached.get("a", GET))["spec"]["v"] == "new"


@pytest.mark.row(36)
@virtual
async def test_a_word_that_comes_before_our_own_echo_counts() -> None:
    membership = Membership("r0", "session", LEASE, now() - LEASE)
    for number, name in enumerate(("r1", "r2")):
        membership.beat(Beat(name, "their session", 0, 0.0), now(), number)
    rounds = Rounds(now)
    rounds.add(Change(TYPE, "default", "p", "a"))
    going = await rounds.next()
    rounds.heard(going.id, "r1")
    rounds.echoed(going.id, membership)
    assert going.awaited is not None
    assert list(going.awaited) == ["r2"]
    settling = asyncio.create_task(rounds.settle(membership))
    rounds.heard(going.id, "r2")
    began = now()
    await going.done
    assert now() - began < 0.01
    settling.cancel()


def test_the_last_change_of_a_scope_is_also_one_of_all_its_projects() -> None:
    positions = Positions()
    scope, other = Scope(TYPE, "default", "p"), Scope(TYPE, "default", "q")
    positions.heard()
    positions.changed("first", [Change(TYPE, "default", "p", "a")])
    assert positions.last(scope) == (1, "first")
    assert positions.last(Scope(TYPE, "default", ALL)) == (1, "first")
    assert positions.last(other) == (0, "")
    positions.heard()
    positions.changed("second", [Change(TYPE, "default", ALL)])
    assert positions.last(scope) == positions.last(other) == (2, "")
    positions.heard()
    positions.changed("third", [Change(TYPE, "default", "q", "b")])
    assert positions.last(other) == (3, "third")
    assert positions.last(scope) == (2, "")
    assert all(positions.knows(each) for each in ("first", "second", "third"))
    assert not positions.knows("")
