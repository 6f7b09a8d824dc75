"""Workers that claim one object: time is held by the test, the servers are real."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.client.api import ApiClient
from trimtab.client.protocol import EventType, Named, Query, Ref
from trimtab.client.transport import Unreachable
from trimtab.model import kubernetes
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.claim import Claim, Held
from trimtab.runtime.fence import ANNOTATION, Event, Fence, Fenced, Record, State, record_of, state, step
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore
from trimtab.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def ref(client: ApiClient, namespace: str) -> Ref:
    await client.create(ConfigMap(metadata=ObjectMeta(name="work", namespace=namespace), data={"n": "0"}))
    return Ref(ConfigMap, "work", namespace)


async def current(client: ApiClient, ref: Ref) -> ConfigMap:
    return await client.get(ConfigMap, ref.name, ref.namespace)


async def write(fence: Fence, client: ApiClient, text: str) -> None:
    old = await current(client, fence.ref)
    await fence.patch(client, old, old.replace(data={"n": text}))


async def test_a_holder_writes_through_its_fence(client: ApiClient, ref: Ref, clock: FakeClock) -> None:
    fence = await Claim(client, clock).acquire(ref, "w1", 30)
    await write(fence, client, "1")
    assert (await current(client, ref)).data == {"n": "1"}
    assert fence.number == 1


async def test_who_comes_second_is_told_who_holds_it_and_how_long_to_wait(
    client: ApiClient, ref: Ref, clock: FakeClock
) -> None:
    await Claim(client, clock).acquire(ref, "w1", 30)
    second = Claim(client, clock)
    with pytest.raises(Held) as told:
        await second.acquire(ref, "w2", 30)
    assert (told.value.by, told.value.wait) == ("w1", 30)
    await clock.advance(10)
    with pytest.raises(Held) as told:
        await second.acquire(ref, "w2", 30)
    assert told.value.wait == 20


async def test_a_claim_that_stood_unchanged_for_its_time_to_live_is_taken_and_the_old_holder_is_fenced(
    client: ApiClient, ref: Ref, clock: FakeClock
) -> None:
    first = await Claim(client, clock).acquire(ref, "w1", 30)
    read_before = await current(client, ref)
    second = Claim(client, clock)
    with pytest.raises(Held):
        await second.acquire(ref, "w2", 60)
    await clock.advance(30)
    fence = await second.acquire(ref, "w2", 60)
    assert fence.number == 2
    with pytest.raises(Fenced, match="w1 lost its claim 1"):
        await write(first, client, "late")
    with pytest.raises(Fenced):  # also with what it read while it held the claim: the server refuses that
        await first.patch(client, read_before, read_before.replace(data={"n": "late"}))
    assert (await current(client, ref)).data == {"n": "0"}


@pytest.mark.parametrize("hours", [-5, 5])
async def test_wall_clocks_that_jump_free_nothing(client: ApiClient, ref: Ref, clock: FakeClock, hours: int) -> None:
    await Claim(client, clock).acquire(ref, "w1", 30)
    second = Claim(client, clock)
    with pytest.raises(Held):
        await second.acquire(ref, "w2", 30)
    clock.jump(hours * 3600)
    with pytest.raises(Held):
        await second.acquire(ref, "w2", 30)


async def test_a_renewal_begins_the_time_to_live_anew(client: ApiClient, ref: Ref, clock: FakeClock) -> None:
    first, second = Claim(client, clock), Claim(client, clock)
    fence = await first.acquire(ref, "w1", 30)
    for _ in range(4):
        with pytest.raises(Held):
            await second.acquire(ref, "w2", 30)
        await clock.advance(29)
        await first.renew(fence)


async def test_a_holder_may_count_on_less_than_the_time_to_live(client: ApiClient, ref: Ref, clock: FakeClock) -> None:
    claim = Claim(client, clock)
    fence = await claim.acquire(ref, "w1", 30)
    await clock.advance(19.9)
    assert claim.sure(fence)
    await clock.advance(0.1)
    assert not claim.sure(fence)
    await claim.renew(fence)
    assert claim.sure(fence)


async def test_fence_numbers_grow_over_releases(client: ApiClient, ref: Ref, clock: FakeClock) -> None:
    numbers = []
    for holder in ("w1", "w2", "w1"):
        claim = Claim(client, clock)
        fence = await claim.acquire(ref, holder, 30)
        numbers.append(fence.number)
        await claim.release(fence)
        assert not claim.sure(fence)
        with pytest.raises(Fenced):
            await write(fence, client, "late")
    assert numbers == [1, 2, 3]


async def test_a_worker_that_comes_back_under_its_name_takes_over_at_once_and_fences_what_it_was(
    client: ApiClient, ref: Ref, clock: FakeClock
) -> None:
    before = await Claim(client, clock).acquire(ref, "w1", 30)
    after = await Claim(client, clock).acquire(ref, "w1", 30)
    assert after.number > before.number
    with pytest.raises(Fenced):
        await write(before, client, "late")
    with pytest.raises(Fenced):
        await Claim(client, clock).renew(before)


async def test_of_many_that_claim_at_once_one_gets_it(client: ApiClient, ref: Ref, clock: FakeClock) -> None:
    claims = [Claim(client, clock).acquire(ref, f"w{n}", 30) for n in range(5)]
    got = await asyncio.gather(*claims, return_exceptions=True)
    assert sum(isinstance(each, Fence) for each in got) == 1
    assert sum(isinstance(each, Held) for each in got) == 4


async def test_a_conflict_with_other_writers_is_a_conflict_and_no_lost_claim(
    client: ApiClient, ref: Ref, clock: FakeClock
) -> None:
    fence = await Claim(client, clock).acquire(ref, "w1", 30)
    old = await current(client, ref)
    await client.patch(old, old.replace(data={"n": "someone else's"}))
    with pytest.raises(StatusError) as refused:
        await fence.patch(client, old, old.replace(data={"n": "1"}))
    assert refused.value.code == 409


async def test_an_object_that_was_made_anew_is_not_the_one_that_was_claimed(
    client: ApiClient, ref: Ref, clock: FakeClock
) -> None:
    claim = Claim(client, clock)
    fence = await claim.acquire(ref, "w1", 30)
    old = await current(client, ref)
    await client.delete(ref)
    with pytest.raises(Fenced):
        await fence.patch(client, old, old.replace(data={"n": "1"}))
    with pytest.raises(Fenced):
        await claim.renew(fence)
    copied = {ANNOTATION: (old.metadata.annotations or {})[ANNOTATION]}
    metadata = ObjectMeta(name=ref.name, namespace=ref.namespace, annotations=copied)
    await client.create(ConfigMap(metadata=metadata))
    with pytest.raises(Fenced):
        await write(fence, client, "1")
    await claim.release(fence)


async def test_a_write_must_leave_the_claim_alone(client: ApiClient, ref: Ref, clock: FakeClock) -> None:
    fence = await Claim(client, clock).acquire(ref, "w1", 30)
    old = await current(client, ref)
    bare = msgspec.structs.replace(old.metadata, annotations={})
    with pytest.raises(ValueError, match="must leave the annotation"):
        await fence.patch(client, old, old.replace(metadata=bare))


async def test_a_write_must_start_from_what_the_api_gave(client: ApiClient, ref: Ref, clock: FakeClock) -> None:
    fence = await Claim(client, clock).acquire(ref, "w1", 30)
    old = await current(client, ref)
    made_up = ConfigMap(metadata=ObjectMeta(uid=old.metadata.uid, annotations=old.metadata.annotations))
    with pytest.raises(ValueError, match="came from the API"):
        await fence.patch(client, made_up, made_up.replace(data={"n": "1"}))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"fence":"x"}', '{"holder":"w0"}', '{"holder":"w0","ttl":-5}'])
async def test_what_is_no_claim_does_not_stand_in_the_way(
    client: ApiClient, ref: Ref, clock: FakeClock, text: str
) -> None:
    old = await current(client, ref)
    await client.patch(old, old.replace(metadata=ObjectMeta(annotations={ANNOTATION: text})))
    assert await Claim(client, clock).acquire(ref, "w1", 30)


async def test_objects_without_a_class_are_claimed_too(client: ApiClient, namespace: str, clock: FakeClock) -> None:
    kind = Named("v1", "Endpoints")
    metadata = {"name": "work", "namespace": namespace, "annotations": {"a": "b"}}
    await client.create(Untyped({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata}))
    claim = Claim(client, clock)
    fence = await claim.acquire(Ref(kind, "work", namespace), "w1", 30)
    old = await client.get(kind, "work", namespace)
    labelled = Untyped({**old.raw, "metadata": {**old.raw["metadata"], "labels": {"c": "d"}}})
    new = await fence.patch(client, old, labelled)
    assert (new.metadata.labels, new.metadata.annotations["a"]) == ({"c": "d"}, "b")


@pytest.mark.parametrize(("holder", "ttl"), [("", 30), ("w1", 0), ("w1", -1), ("w1", 1e9)])
async def test_a_claim_needs_a_holder_and_a_time(clock: FakeClock, holder: str, ttl: float) -> None:
    with pytest.raises(ValueError, match="a claim needs a holder"):
        await Claim(None, clock).acquire(Ref(ConfigMap, "x", "y"), holder, ttl)  # type: ignore[arg-type]


class Flaky:
    """A client that a test can cut off."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client
        self.cut = False
        self.patched = asyncio.Event()

    async def get(self, *given: Any) -> Any:
        if self.cut:
            raise Unreachable("no route")
        return await self.client.get(*given)

    async def patch(self, *given: Any, **named: Any) -> Any:
        written = await self.client.patch(*given, **named)
        self.patched.set()
        return written


async def test_a_claim_is_held_while_the_body_runs_and_free_after(
    client: ApiClient, ref: Ref, clock: FakeClock
) -> None:
    flaky = Flaky(client)
    other = Claim(client, clock)
    async with Claim(flaky, clock).held(ref, "w1", 40):
        for _ in range(8):
            flaky.patched.clear()
            await clock.advance(10)
            await flaky.patched.wait()
            await clock.settle()  # the renewal has ended, and the next is waited for
            with pytest.raises(Held):
                await other.acquire(ref, "w2", 40)
    assert (await other.acquire(ref, "w2", 40)).number == 2


async def test_a_body_that_lost_its_claim_is_cancelled_before_another_can_have_it(
    client: ApiClient, ref: Ref, clock: FakeClock
) -> None:
    flaky = Flaky(client)
    stopped: list[float] = []
    entered = asyncio.Event()

    async def work() -> None:
        async with Claim(flaky, clock).held(ref, "w1", 30):
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.append(clock.monotonic())

    working = asyncio.create_task(work())
    await entered.wait()
    flaky.cut = True
    await clock.advance(29)
    with pytest.raises(Fenced):
        await working
    assert stopped == [20]


async def test_a_body_whose_claim_was_taken_is_cancelled_at_the_next_renewal(
    client: ApiClient, ref: Ref, clock: FakeClock
) -> None:
    async def work() -> None:
        async with Claim(client, clock).held(ref, "w1", 40):
            await Claim(client, clock).acquire(ref, "w1", 40)
            await clock.advance(10)
            await asyncio.Event().wait()

    with pytest.raises(Fenced):
        await work()


async def test_a_body_that_is_cancelled_or_fails_frees_the_claim(client: ApiClient, ref: Ref, clock: FakeClock) -> None:
    with pytest.raises(RuntimeError, match="broke"):
        async with Claim(client, clock).held(ref, "w1", 30):
            raise RuntimeError("it broke")
    with pytest.raises(TimeoutError):
        async with Claim(client, clock).held(ref, "w2", 30):
            raise TimeoutError  # its own, not ours
    assert (await Claim(client, clock).acquire(ref, "w3", 30)).number == 3


@pytest.mark.parametrize(
    ("record", "unchanged", "seen"),
    [
        (Record(), 0, State.FREE),
        (Record("", 7), 0, State.FREE),
        (Record("me", 7, 30), 0, State.OURS),
        (Record("you", 7, 30), 29.9, State.HELD),
        (Record("you", 7, 30), 30, State.LAPSED),
    ],
)
def test_what_a_record_is_to_a_worker(record: Record, unchanged: float, seen: State) -> None:
    assert state(record, "me", unchanged) is seen


@given(st.lists(st.tuples(st.sampled_from(Event), st.sampled_from("abc")), max_size=20))
def test_numbers_never_fall_and_grow_with_each_taking(events: list[tuple[Event, str]]) -> None:
    record = Record()
    for event, holder in events:
        after = step(record, event, holder, 30)
        assert after.fence == record.fence + (event is Event.TAKE)
        assert after != record or event is Event.RELEASE
        record = after


class Turns:
    """A client whose every call waits for its turn, before it is sent and before its answer is seen."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client
        self.waiting: list[asyncio.Future[None]] = []
        self.busy = 0
        self.idle = asyncio.Event()

    async def turn(self) -> None:
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(mine)
        await mine

    async def _call(self, call: Callable[[], Any]) -> Any:
        await self.turn()
        self.busy += 1
        self.idle.clear()
        try:
            return await call()
        finally:
            self.busy -= 1
            self.idle.set()
            await self.turn()

    async def get(self, *given: Any) -> Any:
        return await self._call(lambda: self.client.get(*given))

    async def patch(self, *given: Any, **named: Any) -> Any:
        return await self._call(lambda: self.client.patch(*given, **named))


async def worker(name: str, turns: Turns, ref: Ref, clock: FakeClock, chance: random.Random, got: list[int]) -> None:
    """Claims, writes, renews, forgets to release: for ever. Its pauses are the turns it does not get."""
    claim = Claim(turns, clock)
    while True:
        try:
            fence = await claim.acquire(ref, name, 10)
            got.append(fence.number)
            for _ in range(chance.randrange(4)):
                old = await turns.get(ConfigMap, ref.name, ref.namespace)
                await fence.patch(turns, old, old.replace(data={"fence": str(fence.number), "n": str(chance.random())}))
                if chance.random() < 0.3:
                    await claim.renew(fence)
            if chance.random() < 0.5:
                await claim.release(fence)
        except (Held, Fenced):
            await turns.turn()
        except StatusError as error:
            if error.code != 409:
                raise
            await turns.turn()


async def interleave(client: ApiClient, ref: Ref, chance: random.Random, rounds: int) -> list[int]:
    """Let three workers take turns at random, while time passes at random; then judge what the server saw."""
    clock, turns = FakeClock(), Turns(client)
    got: list[int] = []
    start = await current(client, ref)
    workers = [asyncio.create_task(worker(f"w{n}", turns, ref, clock, chance, got)) for n in range(3)]
    for _ in range(rounds):
        await clock.settle()
        while turns.busy:
            await turns.idle.wait()
            await clock.settle()
        assert not any(each.done() for each in workers)
        if chance.random() < 0.1:
            await clock.advance(chance.uniform(0, 12))
        elif turns.waiting:
            turns.waiting.pop(chance.randrange(len(turns.waiting))).set_result(None)
    while turns.busy:
        await turns.idle.wait()
    for each in workers:
        each.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    await judge(client, ref, start)
    assert len(got) == len(set(got)), "two got the same fence"
    return got


async def judge(client: ApiClient, ref: Ref, start: ConfigMap) -> None:
    """Each write to the object was made with the fence that the object then carried; the number never fell."""
    last = await current(client, ref)
    before = start
    if last.metadata.resource_version == start.metadata.resource_version:
        return
    events = client.watch(ConfigMap, Query(namespace=ref.namespace), str(start.metadata.resource_version))
    async for event in events:
        if event.type is not EventType.MODIFIED or event.object is None or event.object.name != ref.name:
            continue
        after = event.object
        assert record_of(after).fence >= record_of(before).fence
        if after.data != before.data:
            assert (after.data or {})["fence"] == str(record_of(after).fence), "a write of an old fence landed"
        before = after
        if after.metadata.resource_version == last.metadata.resource_version:
            break
    await events.aclose()


@pytest.mark.parametrize("seed", range(3))
async def test_no_interleaving_of_three_workers_lets_an_old_fence_write(client: ApiClient, ref: Ref, seed: int) -> None:
    assert await interleave(client, ref, random.Random(seed), 250)


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_no_random_interleaving_lets_an_old_fence_write(seed: int) -> None:
    async def run() -> None:
        store = MemoryStore()
        server = Server(store)
        await server.start()
        try:
            client = local_client(server, User("admin", groups=(MASTERS,)), kubernetes.register(Scheme()))
            await client.create(ConfigMap(metadata=ObjectMeta(name="work", namespace="default")))
            await interleave(client, Ref(ConfigMap, "work", "default"), random.Random(seed), 200)
        finally:
            await server.stop()
            await store.close()

    asyncio.run(run())
