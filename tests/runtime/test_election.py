"""Candidates for one lease: time is held by the test, the servers are real."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Preconditions, Query, Ref
from trimtab.client.transport import Unreachable
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, Lease, LeaseSpec
from trimtab.model.logs import log
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.election import Election, Event, NotLeading, State, step
from trimtab.runtime.guarded import Guarded
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore
from trimtab.testing.clock import FakeClock
from trimtab.testing.loop import LoopClock, SimulatedLoop, run

NAME = "the-lease"


class Wire:
    """A client whose calls a test can count, break, hold up or lose the answers of."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client
        self.busy = 0
        self.calls: list[str] = []
        self.idle = asyncio.Event()
        self.idle.set()
        self.broken: Exception | None = None
        self.hanging = False
        self.lost_answers = 0
        self.before: Callable[[], Awaitable[None]] | None = None

    async def _call(self, name: str, *given: Any, **named: Any) -> Any:
        self.busy += 1
        self.idle.clear()
        self.calls.append(name)
        try:
            if self.hanging:
                self.idle.set()  # nobody waits for an answer that never comes
                await asyncio.Event().wait()
            if self.broken is not None:
                raise self.broken
            if self.before is not None:
                await self.before()
            answer = await getattr(self.client, name)(*given, **named)
            if self.lost_answers and name != "get":
                self.lost_answers -= 1
                raise Unreachable("the connection broke")
            return answer
        finally:
            self.busy -= 1
            if not self.busy:
                self.idle.set()

    async def get(self, *given: Any) -> Any:
        return await self._call("get", *given)

    async def create(self, *given: Any, **named: Any) -> Any:
        return await self._call("create", *given, **named)

    async def patch(self, *given: Any, **named: Any) -> Any:
        return await self._call("patch", *given, **named)


async def pass_time(clock: FakeClock, seconds: float, *wires: Wire) -> None:
    """Let time pass in small steps, each only when no call is under way: a real server answers in no fake time."""
    await quiet(clock, *wires)
    for _ in range(round(seconds * 2)):
        await clock.advance(0.5)
        await quiet(clock, *wires)


async def quiet(clock: FakeClock, *wires: Wire) -> None:
    await clock.settle()
    while not all(wire.idle.is_set() for wire in wires):
        for wire in wires:
            await wire.idle.wait()
        await clock.settle()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def wire(client: ApiClient) -> Wire:
    return Wire(client)


Candidate = Callable[..., Election]


@pytest.fixture
def candidate(client: ApiClient, namespace: str, clock: FakeClock) -> Candidate:
    def made(identity: str, through: Any = None, **more: Any) -> Election:
        return Election(
            through or client,
            clock,
            name=NAME,
            namespace=namespace,
            identity=identity,
            random=random.Random(1),
            **more,
        )

    return made


@pytest.fixture
async def tasks(clock: FakeClock) -> AsyncIterator[list[asyncio.Task[Any]]]:
    started: list[asyncio.Task[Any]] = []
    yield started
    for task in started:
        task.cancel()
    ending = asyncio.gather(*started, return_exceptions=True)
    while not ending.done():
        await clock.advance(5)  # a release may hang
        await asyncio.wait({ending}, timeout=0.05)


class Acts:
    """What a leader does: it notes when it begins and when it ends."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.spans: list[list[float]] = []
        self.done = asyncio.Event()

    async def __call__(self) -> None:
        span = [self.clock.monotonic()]
        self.spans.append(span)
        try:
            await self.done.wait()
        finally:
            span.append(self.clock.monotonic())

    @property
    def acting(self) -> bool:
        return bool(self.spans) and len(self.spans[-1]) == 1


async def lease_of(client: ApiClient, namespace: str) -> LeaseSpec:
    spec = (await client.get(Lease, NAME, namespace)).spec
    assert isinstance(spec, LeaseSpec)
    return spec


async def foreign(client: ApiClient, namespace: str, **spec: Any) -> Lease:
    return await client.create(Lease(metadata=ObjectMeta(name=NAME, namespace=namespace), spec=LeaseSpec(**spec)))


async def test_the_first_candidate_makes_the_lease_with_the_fields_of_client_go(
    client: ApiClient, namespace: str, candidate: Candidate
) -> None:
    assert await candidate("a").attempt()
    assert await lease_of(client, namespace) == LeaseSpec(
        holder_identity="a",
        lease_duration_seconds=15,
        acquire_time="2026-01-01T00:00:00.000000Z",
        renew_time="2026-01-01T00:00:00.000000Z",
        lease_transitions=0,
    )


async def test_a_lease_that_is_not_renewed_is_given_up_before_another_takes_it(
    client: ApiClient, namespace: str, candidate: Candidate, clock: FakeClock
) -> None:
    a, b = candidate("a"), candidate("b")
    assert await a.attempt()
    assert not await b.attempt()
    await clock.advance(9.9)
    assert a.leading()
    await clock.advance(0.1)
    assert not a.leading()
    await clock.advance(4.9)
    assert not await b.attempt()
    await clock.advance(0.1)
    assert await b.attempt()
    spec = await lease_of(client, namespace)
    assert (spec.holder_identity, spec.lease_transitions, b.term) == ("b", 1, 1)


async def test_renewals_keep_the_others_away_and_the_time_of_acquisition(
    client: ApiClient, namespace: str, candidate: Candidate, clock: FakeClock
) -> None:
    a, b = candidate("a"), candidate("b")
    for _ in range(20):
        assert await a.attempt()
        assert not await b.attempt()
        await clock.advance(2)
    spec = await lease_of(client, namespace)
    assert spec.acquire_time == "2026-01-01T00:00:00.000000Z"
    assert spec.renew_time == "2026-01-01T00:00:38.000000Z"


async def test_of_three_that_try_at_once_one_gets_it(candidate: Candidate, clock: FakeClock) -> None:
    old, three = candidate("old"), [candidate(name) for name in "abc"]
    await old.attempt()
    await asyncio.gather(*(each.attempt() for each in three))
    await clock.advance(15)
    await asyncio.gather(*(each.attempt() for each in three))
    assert [each.leading() for each in three].count(True) == 1


async def test_a_slow_renewal_counts_from_when_it_began(candidate: Candidate, clock: FakeClock, wire: Wire) -> None:
    a = candidate("a", wire)
    await a.attempt()
    await clock.advance(5)
    wire.before = lambda: clock.advance(3)
    assert await a.attempt()
    await clock.advance(6.9)
    assert a.leading()
    await clock.advance(0.1)
    assert not a.leading()


async def test_a_renewal_that_hangs_is_given_up_in_time_for_another_try(
    candidate: Candidate, clock: FakeClock, wire: Wire
) -> None:
    a = candidate("a", wire)
    await a.attempt()
    wire.hanging = True
    trying = asyncio.create_task(a.attempt())
    await clock.advance(5)
    assert await trying
    wire.hanging = False
    assert await a.attempt()
    await clock.advance(9.9)
    assert a.leading()


@pytest.mark.parametrize("hours", [-30, 30])
async def test_a_wall_clock_that_jumps_changes_nothing(candidate: Candidate, clock: FakeClock, hours: int) -> None:
    a, b = candidate("a"), candidate("b")
    await a.attempt()
    await b.attempt()
    clock.jump(hours * 3600)
    assert a.leading()
    assert not await b.attempt()
    await clock.advance(9)
    assert await a.attempt()
    await clock.advance(9)
    assert not await b.attempt()
    assert a.leading()


async def test_a_wall_clock_that_stands_still_does_not_hide_renewals(
    candidate: Candidate, clock: FakeClock, client: ApiClient, namespace: str
) -> None:
    a, b = candidate("a"), candidate("b")
    for _ in range(4):
        assert await a.attempt()
        assert not await b.attempt()
        await clock.advance(8)
        clock.jump(-8)
    assert (await lease_of(client, namespace)).holder_identity == "a"


async def test_a_released_lease_is_taken_at_the_next_try(
    client: ApiClient, namespace: str, candidate: Candidate
) -> None:
    a, b = candidate("a"), candidate("b")
    await a.attempt()
    await b.attempt()
    await a.close()
    released = await lease_of(client, namespace)
    assert not released.holder_identity
    assert released.lease_duration_seconds == 1
    assert a.state is State.CLOSED
    assert await b.attempt()
    assert b.term == 1


async def test_a_candidate_that_closed_does_not_take_part(candidate: Candidate) -> None:
    a = candidate("a")
    await a.close()
    assert not await a.attempt()


async def test_an_old_lease_of_client_go_is_respected_for_its_duration_and_then_taken_with_all_it_has(
    client: ApiClient, namespace: str, candidate: Candidate, clock: FakeClock
) -> None:
    old = await foreign(
        client,
        namespace,
        holder_identity="go_1",
        lease_duration_seconds=30,
        acquire_time="2019-01-01T00:00:00.000000Z",
        renew_time="2019-01-01T00:00:00.000000Z",
        lease_transitions=4,
    )
    await client.patch(old, old.replace(metadata=ObjectMeta(labels={"whose": "theirs"})))
    b = candidate("b")
    assert not await b.attempt()
    await clock.advance(29.9)
    assert not await b.attempt()
    await clock.advance(0.1)
    assert await b.attempt()
    taken = await client.get(Lease, NAME, namespace)
    assert taken.metadata.labels == {"whose": "theirs"}
    assert (await lease_of(client, namespace)).lease_transitions == 5


@pytest.mark.parametrize("spec", [{}, {"holder_identity": ""}, {"lease_transitions": 3}], ids=str)
async def test_a_lease_without_a_holder_is_free(
    client: ApiClient, namespace: str, candidate: Candidate, spec: dict[str, Any]
) -> None:
    await foreign(client, namespace, **spec)
    assert await candidate("a").attempt()


async def test_a_lease_without_a_spec_is_free(client: ApiClient, namespace: str, candidate: Candidate) -> None:
    await client.create(Lease(metadata=ObjectMeta(name=NAME, namespace=namespace)))
    assert await candidate("a").attempt()


async def test_a_holder_who_names_no_duration_has_ours(
    client: ApiClient, namespace: str, candidate: Candidate, clock: FakeClock
) -> None:
    await foreign(client, namespace, holder_identity="somebody")
    a = candidate("a")
    assert not await a.attempt()
    await clock.advance(14.9)
    assert not await a.attempt()
    await clock.advance(0.1)
    assert await a.attempt()


async def test_a_deleted_lease_is_made_again_by_its_holder_and_free_to_others_only_when_it_would_have_lapsed(
    client: ApiClient, namespace: str, candidate: Candidate, clock: FakeClock
) -> None:
    a, b = candidate("a"), candidate("b")
    await a.attempt()
    await b.attempt()
    await client.delete(Ref(Lease, NAME, namespace))
    await clock.advance(9.9)
    assert not await b.attempt()
    assert await a.attempt()
    await client.delete(Ref(Lease, NAME, namespace))
    await clock.advance(5.1)
    assert await b.attempt()  # it never saw the second one: fifteen seconds after it saw the first
    assert (await lease_of(client, namespace)).lease_transitions == 1


async def test_a_leader_who_finds_another_name_in_the_lease_has_lost_it(
    client: ApiClient, namespace: str, candidate: Candidate
) -> None:
    heard: list[str] = []
    a = candidate("a", on_elected=lambda: heard.append("elected"), on_lost=lambda: heard.append("lost"))
    await a.attempt()
    lease = await client.get(Lease, NAME, namespace)
    await client.patch(lease, lease.replace(spec=LeaseSpec(holder_identity="b", lease_duration_seconds=15)))
    assert not await a.attempt()
    assert a.state is State.LOST
    assert a.lost.is_set()
    assert heard == ["elected", "lost"]


async def test_a_leader_who_finds_the_lease_given_away_and_given_back_has_lost_it(
    client: ApiClient, namespace: str, candidate: Candidate
) -> None:
    a = candidate("a")
    await a.attempt()
    lease = await client.get(Lease, NAME, namespace)
    await client.patch(lease, lease.replace(spec=LeaseSpec(lease_transitions=1)))
    assert not await a.attempt()
    assert a.state is State.LOST


async def test_a_lease_that_someone_labels_stays_with_its_holder(
    client: ApiClient, namespace: str, candidate: Candidate
) -> None:
    a = candidate("a")
    await a.attempt()
    lease = await client.get(Lease, NAME, namespace)
    await client.patch(lease, lease.replace(metadata=ObjectMeta(labels={"a": "b"})))
    assert await a.attempt()


async def test_an_acquisition_whose_answer_was_lost_is_found_at_the_next_try(
    client: ApiClient, namespace: str, candidate: Candidate, wire: Wire
) -> None:
    a = candidate("a", wire)
    wire.lost_answers = 1
    assert not await a.attempt()
    assert await a.attempt()
    assert (await lease_of(client, namespace)).lease_transitions == 0


async def test_a_renewal_whose_answer_was_lost_does_not_lose_the_lease(candidate: Candidate, wire: Wire) -> None:
    a = candidate("a", wire)
    await a.attempt()
    wire.lost_answers = 1
    assert await a.attempt()
    assert await a.attempt()
    assert a.state is State.LEADER


async def test_a_lease_is_released_even_when_the_answer_to_the_last_renewal_was_lost(
    client: ApiClient, namespace: str, candidate: Candidate, wire: Wire
) -> None:
    a = candidate("a", wire)
    await a.attempt()
    wire.lost_answers = 1
    await a.attempt()
    await a.close()
    assert not (await lease_of(client, namespace)).holder_identity


async def test_a_missing_namespace_is_told_once(client: ApiClient, candidate: Candidate, clock: FakeClock) -> None:
    a = Election(client, clock, name=NAME, namespace="nowhere", identity="a")
    log.bind()  # sets logging up, which would undo the capture
    with capture_logs() as logs:
        assert not await a.attempt()
        assert not await a.attempt()
    assert [entry["log_level"] for entry in logs] == ["warning"]
    assert "nowhere" in logs[0]["error"]


async def test_a_leader_acts_until_the_api_has_been_away_for_the_deadline_and_acts_again_when_it_is_back(
    candidate: Candidate, clock: FakeClock, wire: Wire, tasks: list[asyncio.Task[Any]]
) -> None:
    a, acts = candidate("a", wire), Acts(clock)
    tasks.append(asyncio.create_task(a.run(acts)))
    await pass_time(clock, 4, wire)
    assert acts.acting
    wire.broken = Unreachable("no route")
    await pass_time(clock, 9.5, wire)
    assert acts.acting
    await pass_time(clock, 4, wire)
    assert acts.spans == [[0, 14.0]]
    assert a.state is State.FOLLOWER
    wire.broken = None
    await pass_time(clock, 4, wire)
    assert acts.acting


async def test_a_leader_whose_calls_hang_stops_at_the_deadline(
    candidate: Candidate, clock: FakeClock, wire: Wire, tasks: list[asyncio.Task[Any]]
) -> None:
    a, acts = candidate("a", wire), Acts(clock)
    tasks.append(asyncio.create_task(a.run(acts)))
    await pass_time(clock, 1, wire)
    wire.hanging = True
    await pass_time(clock, 12, wire)
    assert acts.spans == [[0, 10.0]]


async def test_when_a_leader_is_cut_off_a_warm_standby_follows_and_the_two_never_act_together(
    candidate: Candidate, client: ApiClient, clock: FakeClock, tasks: list[asyncio.Task[Any]]
) -> None:
    wires = [Wire(client), Wire(client), Wire(client)]
    acts = [Acts(clock) for _ in wires]
    elections = [candidate(f"c{i}", wire) for i, wire in enumerate(wires)]
    tasks.extend(asyncio.create_task(e.run(act)) for e, act in zip(elections, acts, strict=True))
    for cut in range(3):
        await pass_time(clock, 30, *wires)
        (leader,) = [i for i, act in enumerate(acts) if act.acting]
        wires[leader].broken = Unreachable(f"cut {cut}")
        await pass_time(clock, 30, *wires)
        wires[leader].broken = None
    spans = sorted(tuple(span) for act in acts for span in act.spans)
    assert len(spans) == 4
    assert all(before[1] + 5 <= after[0] for before, after in itertools.pairwise(spans))


@pytest.mark.parametrize("seed", range(6))
async def test_under_random_faults_no_two_ever_act_together_and_one_does_in_the_end(
    candidate: Candidate, client: ApiClient, clock: FakeClock, tasks: list[asyncio.Task[Any]], seed: int
) -> None:
    chance = random.Random(seed)
    wires = [Wire(client), Wire(client), Wire(client)]
    acts = [Acts(clock) for _ in wires]
    elections = [candidate(f"c{i}", wire) for i, wire in enumerate(wires)]
    tasks.extend(asyncio.create_task(e.run(act)) for e, act in zip(elections, acts, strict=True))
    for _ in range(40):
        wire = chance.choice(wires)
        match chance.randrange(6):
            case 0:
                wire.broken = Unreachable("cut off")
            case 1:
                wire.hanging = True
            case 2:
                wire.lost_answers = chance.randrange(4)
            case 3:
                clock.jump(chance.uniform(-9000, 9000))
            case _:
                wire.broken, wire.hanging = None, False
        await pass_time(clock, chance.choice([1, 3, 8]), *wires)
        assert [act.acting for act in acts].count(True) <= 1
    for wire in wires:
        wire.broken, wire.hanging, wire.lost_answers = None, False, 0
    await pass_time(clock, 40, *wires)
    assert [act.acting for act in acts].count(True) == 1
    spans = sorted((span[0], span[1] if len(span) == 2 else clock.monotonic()) for act in acts for span in act.spans)
    assert len(spans) > 1
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


async def test_a_candidate_waits_for_what_acted_to_end_before_it_tries_again(
    candidate: Candidate, clock: FakeClock, wire: Wire, tasks: list[asyncio.Task[Any]]
) -> None:
    cleaned = asyncio.Event()

    async def lead() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await cleaned.wait()

    a = candidate("a", wire)
    tasks.append(asyncio.create_task(a.run(lead)))
    await pass_time(clock, 1, wire)
    wire.broken = Unreachable("away")
    await pass_time(clock, 11, wire)
    wire.broken = None
    await pass_time(clock, 10, wire)
    assert a.state is State.LOST
    cleaned.set()
    await pass_time(clock, 1, wire)
    assert a.leading()


async def test_the_lease_is_released_when_the_work_is_done(
    client: ApiClient, namespace: str, candidate: Candidate
) -> None:
    async def lead() -> None:
        pass

    await candidate("a").run(lead)
    assert not (await lease_of(client, namespace)).holder_identity


async def test_the_lease_is_released_when_the_work_fails_and_the_failure_is_raised(
    client: ApiClient, namespace: str, candidate: Candidate
) -> None:
    async def lead() -> None:
        raise RuntimeError("it broke")

    with pytest.raises(RuntimeError, match="it broke"):
        await candidate("a").run(lead)
    assert not (await lease_of(client, namespace)).holder_identity


async def test_the_lease_is_kept_while_the_work_ends_gracefully_and_released_after(
    client: ApiClient, namespace: str, candidate: Candidate, clock: FakeClock, wire: Wire
) -> None:
    draining, drained = asyncio.Event(), asyncio.Event()

    async def lead() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            draining.set()
            await drained.wait()

    a = candidate("a", wire)
    running = asyncio.create_task(a.run(lead))
    await a.elected.wait()
    await clock.settle()
    running.cancel()
    await draining.wait()
    await pass_time(clock, 30, wire)
    assert a.leading()
    drained.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not (await lease_of(client, namespace)).holder_identity


async def test_a_candidate_that_stands_by_ends_at_once_when_it_is_to_stop(candidate: Candidate) -> None:
    async def lead() -> None:
        raise AssertionError

    leader, standby, stop = candidate("a"), candidate("b"), asyncio.Event()
    await leader.attempt()
    running = asyncio.create_task(standby.run(lead, stop))
    stop.set()
    await running
    assert standby.state is State.CLOSED


async def test_a_leader_that_is_to_stop_ends_in_its_own_time(
    client: ApiClient, namespace: str, candidate: Candidate
) -> None:
    stop, drained = asyncio.Event(), asyncio.Event()

    async def lead() -> None:
        await stop.wait()
        await drained.wait()

    a = candidate("a")
    running = asyncio.create_task(a.run(lead, stop))
    await a.elected.wait()
    stop.set()
    assert (await lease_of(client, namespace)).holder_identity == "a"
    drained.set()
    await running
    assert not (await lease_of(client, namespace)).holder_identity


async def test_status_hears_of_every_change(candidate: Candidate) -> None:
    heard: list[bool] = []
    a = candidate("a", status=heard.append)
    await a.attempt()
    await a.attempt()
    await a.close()
    assert heard == [True, False]


async def test_a_guarded_client_reads_and_does_not_write_without_the_lease(
    client: ApiClient, namespace: str, candidate: Candidate
) -> None:
    guarded = Guarded(client, candidate("a"))
    made = ConfigMap(metadata=ObjectMeta(name="x", namespace=namespace))
    there = await client.create(made)
    assert await guarded.get(ConfigMap, "x", namespace) == there
    assert there in (await guarded.list(ConfigMap, Query(namespace=namespace))).items
    for write in (
        guarded.create(made),
        guarded.apply(made, manager="m"),
        guarded.patch(there, there.replace(data={"a": "b"})),
        guarded.delete(Ref(ConfigMap, "x", namespace), preconditions=Preconditions(uid="u")),
    ):
        with pytest.raises(NotLeading, match="a does not hold the lease"):
            await write
    assert await client.get(ConfigMap, "x", namespace) == there


async def test_a_guarded_client_writes_with_the_lease_and_not_a_moment_longer(
    client: ApiClient, namespace: str, candidate: Candidate, clock: FakeClock
) -> None:
    a = candidate("a")
    guarded = Guarded(client, a)
    await a.attempt()
    there = await guarded.create(ConfigMap(metadata=ObjectMeta(name="x", namespace=namespace)))
    await clock.advance(10)  # and nobody looks: the process was stopped
    assert a.state is State.LEADER
    with pytest.raises(NotLeading):
        await guarded.patch(there, there.replace(data={"a": "b"}))


async def test_a_write_that_is_under_way_is_cut_off_when_the_lease_is_lost(
    client: ApiClient, namespace: str, candidate: Candidate
) -> None:
    wire = Wire(client)
    a = candidate("a")
    await a.attempt()
    wire.hanging = True
    writing = asyncio.create_task(Guarded(wire, a).create(ConfigMap()))
    await asyncio.sleep(0)
    lease = await client.get(Lease, NAME, namespace)
    await client.patch(lease, lease.replace(spec=LeaseSpec(holder_identity="b")))
    await a.attempt()
    with pytest.raises(NotLeading, match="during a write"):
        await writing


def test_a_write_lasts_as_long_as_the_lease_is_renewed() -> None:
    async def written() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)  # its time is the guard's too
        server = Server(MemoryStore())
        await server.start()
        admin = local_client(server, User("admin", groups=(MASTERS, "system:authenticated")))
        a = Election(admin, LoopClock(loop), name=NAME, namespace="default", identity="a", renew_deadline=10)
        await a.attempt()
        async with a.guard():
            for _ in range(4):
                await asyncio.sleep(9)
                assert await a.attempt()
        with pytest.raises(NotLeading, match="during a write"):
            async with a.guard():
                await asyncio.sleep(11)
        await server.stop()

    run(written(), seed=1)


async def test_a_failed_write_is_no_lost_lease(client: ApiClient, candidate: Candidate, namespace: str) -> None:
    a = candidate("a")
    await a.attempt()
    with pytest.raises(StatusError):
        await Guarded(client, a).delete(Ref(ConfigMap, "none", namespace))
    with pytest.raises(TimeoutError):
        async with a.guard():
            raise TimeoutError


@pytest.mark.parametrize(
    ("state", "events", "end"),
    [
        (State.FOLLOWER, [Event.ACQUIRED], State.LEADER),
        (State.LEADER, [Event.EXPIRED], State.LOST),
        (State.LEADER, [Event.TAKEN], State.LOST),
        (State.LOST, [Event.ACQUIRED], State.LOST),
        (State.LOST, [Event.SETTLED], State.FOLLOWER),
        (State.LEADER, [Event.SETTLED], State.LEADER),
        (State.FOLLOWER, [Event.EXPIRED, Event.TAKEN, Event.SETTLED], State.FOLLOWER),
        (State.LEADER, [Event.CLOSED], State.CLOSED),
        (State.CLOSED, [*Event], State.CLOSED),
    ],
)
def test_states_follow_from_events(state: State, events: list[Event], end: State) -> None:
    for event in events:
        state = step(state, event)
    assert state is end


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_times_that_cannot_be_safe_are_refused(times: tuple[float, float, float]) -> None:
    duration, deadline, retry = times
    with pytest.raises(ValueError, match="duration > renew_deadline > retry > 0"):
        Election(
            None,  # type: ignore[arg-type]
            FakeClock(),
            name="n",
            namespace="n",
            identity="i",
            duration=duration,
            renew_deadline=deadline,
            retry=retry,
        )
