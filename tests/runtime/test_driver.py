"""Whatever a controller does wrong, the others go on, and so does it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
from collections.abc import Iterable
from typing import Any

import pytest

from tests.runtime.widgets import PATIENCE, Doer, Seen, define, logged, running, tapped, until, widget
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query
from trimtab.client.transport import Silent, Unreachable
from trimtab.model.errors import conflict, forbidden, internal
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.changes import Change, Request
from trimtab.runtime.controller import Result, TerminalError, Watch
from trimtab.runtime.election import NotLeading
from trimtab.runtime.manager import Manager
from trimtab.runtime.predicates import Predicate
from trimtab.testing.clock import FakeClock


@pytest.fixture(autouse=True)
async def _defined(client: ApiClient) -> None:
    await define(client)


class Failing:
    """Fails so many times for each request, then succeeds."""

    def __init__(self, error: Exception, times: int = 3) -> None:
        self._error, self._times = error, times
        self.tried: dict[str, int] = {}

    async def __call__(self, doer: Doer, request: Request) -> None:
        self.tried[request.name] = self.tried.get(request.name, 0) + 1
        if request.name == "bad" and self.tried[request.name] <= self._times:
            raise self._error


class Unspeakable(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "panics"),
    [
        (KeyError("x"), 3),
        (Unreachable("the server is away"), 0),
        (TimeoutError("too slow"), 0),
        (conflict("widgets", "", "bad", "it changed"), 0),
        (Unspeakable(), 3),
        (ExceptionGroup("several", [ValueError("x")]), 3),
    ],
)
async def test_a_reconcile_that_raises_is_tried_again(
    client: ApiClient, namespace: str, error: Exception, panics: int
) -> None:
    manager, act = Manager(client), Failing(error)
    doer = Doer(namespace, act)
    manager.add(doer)
    with logged() as logs:
        async with running(manager):
            await client.create(widget("bad", namespace))
            await client.create(widget("good", namespace))
            await doer.seen.until(lambda seen: act.tried.get("bad") == 4 and "good" in act.tried)
    numbers = manager.metrics.controller("widget")
    assert (numbers.errors, numbers.panics) == (3, panics)
    said = [line for line in logs if line["event"] == "reconcile failed"]
    assert len(said) == (0 if getattr(error, "code", 0) == 409 else 3), "a conflict only means to look again"


@pytest.mark.parametrize(
    ("error", "looks"),
    [
        (Silent("no answer"), True),
        (Unreachable("the connection broke"), True),
        (conflict("widgets", "", "bad", "it changed"), True),
        (internal("what was that"), True),
        (forbidden("widgets", "", "bad", "not yours"), False),
        (KeyError("x"), False),
    ],
)
async def test_after_a_write_that_nobody_knows_of_the_object_is_read_from_the_server(
    client: ApiClient, namespace: str, error: Exception, looks: bool
) -> None:
    reached, tap = tapped(client)
    manager, act = Manager(reached), Failing(error, times=1)
    doer = Doer(namespace, act)
    manager.add(doer)
    async with running(manager):
        await reached.create(widget("bad", namespace))
        await until(lambda: act.tried.get("bad") == 2)
    gets = [call for call in tap.calls if call.method == "GET" and call.path.endswith("/widgets/bad")]
    assert len(gets) == looks


async def test_pauses_grow_from_failure_to_failure(client: ApiClient, namespace: str) -> None:
    clock = FakeClock()
    moments: list[float] = []

    async def fail(doer: Doer, request: Request) -> None:
        moments.append(clock.monotonic())
        raise OSError("away")

    manager = Manager(client, clock=clock)
    doer = Doer(namespace, fail)
    manager.add(doer)
    async with running(manager):
        await client.create(widget("bad", namespace))
        await doer.seen.reach(1)
        await clock.advance(60)
        pauses = [after - before for before, after in itertools.pairwise(moments)]
        assert len(pauses) == 13
        assert all(0.9 * 0.005 * 2**n <= pause <= 0.005 * 2**n + 1e-9 for n, pause in enumerate(pauses))


async def test_a_reconcile_that_hangs_is_ended_and_tried_again(client: ApiClient, namespace: str) -> None:
    manager = Manager(client)

    async def hang(doer: Doer, request: Request) -> None:
        if doer.names.count("bad") == 1 and request.name == "bad":
            await asyncio.Event().wait()

    doer = Doer(namespace, hang, timeout=0.05, concurrency=1)
    manager.add(doer)
    with logged() as logs:
        async with running(manager):
            await client.create(widget("bad", namespace))
            await doer.seen.until(lambda seen: doer.names.count("bad") == 2)
    assert manager.metrics.controller("widget").timeouts == 1
    assert "not done within 0.05 s" in [line.get("error") for line in logs]


async def test_a_reconcile_that_swallows_its_time_out_is_not_taken_for_done(client: ApiClient, namespace: str) -> None:
    manager = Manager(client)

    async def swallow(doer: Doer, request: Request) -> None:
        if len(doer.seen) == 1:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    doer = Doer(namespace, swallow, timeout=0.05)
    manager.add(doer)
    async with running(manager):
        await client.create(widget("bad", namespace))
        await doer.seen.reach(2)
    assert manager.metrics.controller("widget").timeouts == 1


@pytest.mark.parametrize(
    "garbage",
    [
        "text",
        5,
        Result,
        Result(requeue_after=-1),
        Result(requeue_after=math.nan),
        Result(requeue_after=math.inf),
        Result(requeue_after="soon"),  # type: ignore[arg-type]
    ],
)
async def test_garbage_from_a_reconcile_is_a_failure(client: ApiClient, namespace: str, garbage: Any) -> None:
    manager = Manager(client)

    async def answer(doer: Doer, request: Request) -> Any:
        return garbage if doer.names.count("bad") < 3 and request.name == "bad" else None

    doer = Doer(namespace, answer)
    manager.add(doer)
    async with running(manager):
        await client.create(widget("bad", namespace))
        await client.create(widget("good", namespace))
        await doer.seen.until(lambda seen: doer.names.count("bad") == 3 and "good" in doer.names)
    assert manager.metrics.controller("widget").errors == 2


async def test_a_reconcile_that_is_no_coroutine_is_a_failure(client: ApiClient, namespace: str) -> None:
    class Wrong(Doer):
        def reconcile(self, request: Request) -> None:  # type: ignore[override]
            self.seen.append(request)

    manager = Manager(client)
    doer = Wrong(namespace)
    manager.add(doer)
    async with running(manager):
        await client.create(widget("bad", namespace))
        await doer.seen.reach(2)


async def cancel_and_wait(doer: Doer, request: Request) -> None:
    _task().cancel()
    await asyncio.sleep(1)


async def cancel_and_return(doer: Doer, request: Request) -> None:
    _task().cancel()


async def cancel_twice_and_swallow(doer: Doer, request: Request) -> None:
    _task().cancel()
    _task().cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(1)


async def await_something_cancelled(doer: Doer, request: Request) -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


def _task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


@pytest.mark.parametrize(
    "act", [cancel_and_wait, cancel_and_return, cancel_twice_and_swallow, await_something_cancelled]
)
async def test_a_reconcile_that_cancels_itself_costs_no_worker(client: ApiClient, namespace: str, act: Any) -> None:
    manager = Manager(client)

    async def only_bad(doer: Doer, request: Request) -> None:
        if request.name != "good":
            await act(doer, request)

    doer = Doer(namespace, only_bad, concurrency=2)
    manager.add(doer)
    async with running(manager):
        for number in range(4):
            await client.create(widget(f"bad-{number}", namespace))
        await doer.seen.reach(4)
        await client.create(widget("good", namespace))
        await doer.seen.until(lambda seen: "good" in doer.names)
        await until(lambda: not manager.metrics.controller("widget").active)


async def test_a_reconcile_that_never_waits_lets_the_others_live(client: ApiClient, namespace: str) -> None:
    many = 20_000

    def flood(change: Change) -> Iterable[Request]:
        if change.request.name == "flood":
            for number in range(many):
                yield Request(namespace, f"made-up-{number}")

    busy = Doer(namespace, name="busy", watches=(Watch(kind=ConfigMap, to=flood, query=Query(namespace=namespace)),))
    other = Doer(namespace, name="other")
    manager = Manager(client)
    manager.add(busy)
    manager.add(other)
    async with running(manager):
        await until(lambda: manager.synced)
        await client.create(ConfigMap(metadata=ObjectMeta(name="flood", namespace=namespace)))
        await busy.seen.reach(1)
        await client.create(widget("good", namespace))
        await other.seen.reach(1)
        assert len(busy.seen) < many, "the watch and the other controller had their turns"
        await busy.seen.reach(many)


@pytest.mark.parametrize("result", [Result(requeue=True), Result(requeue_after=0), Result(requeue_after=0.0)])
async def test_who_wants_to_be_called_again_at_once_is_slowed_down(
    client: ApiClient, namespace: str, result: Result
) -> None:
    clock = FakeClock()

    async def again(doer: Doer, request: Request) -> Result:
        return result

    manager = Manager(client, clock=clock)
    doer = Doer(namespace, again)
    manager.add(doer)
    async with running(manager):
        await client.create(widget("eager", namespace))
        await doer.seen.reach(1)
        await clock.advance(10)
        assert len(doer.seen) == 11 or len(doer.seen) == 12, "5 ms, doubled each time"


async def test_a_reconcile_comes_again_when_it_said_so(client: ApiClient, namespace: str) -> None:
    clock = FakeClock()

    async def later(doer: Doer, request: Request) -> Result:
        return Result(requeue_after=30)

    manager = Manager(client, clock=clock)
    doer = Doer(namespace, later)
    manager.add(doer)
    async with running(manager):
        await client.create(widget("a", namespace))
        await doer.seen.reach(1)
        await clock.advance(29.9)
        assert len(doer.seen) == 1
        clock.jump(3600)  # the wall clock is of no matter
        await clock.advance(0.1)
        assert len(doer.seen) == 2
        await clock.advance(300)
        assert len(doer.seen) == 12


async def test_of_those_that_come_again_the_urgent_comes_first(client: ApiClient, namespace: str) -> None:
    clock = FakeClock()

    async def later(doer: Doer, request: Request) -> Result:
        return Result(requeue_after=30, priority=1 if request.name == "urgent" else 0)

    manager = Manager(client, clock=clock)
    doer = Doer(namespace, later, concurrency=1)
    manager.add(doer)
    async with running(manager):
        for number, name in enumerate(("a", "b", "urgent"), 1):
            await client.create(widget(name, namespace))
            await doer.seen.reach(number)
        await clock.advance(30)
        await doer.seen.reach(6)
        assert doer.names == ["a", "b", "urgent", "urgent", "a", "b"]


async def test_a_terminal_error_is_not_tried_again_before_the_object_changes(client: ApiClient, namespace: str) -> None:
    clock = FakeClock()

    async def give_up(doer: Doer, request: Request) -> None:
        raise TerminalError("no such device")

    manager = Manager(client, clock=clock)
    doer = Doer(namespace, give_up)
    manager.add(doer)
    with logged() as logs:
        async with running(manager):
            made = await client.create(widget("a", namespace))
            await doer.seen.reach(1)
            await clock.advance(3600)
            assert len(doer.seen) == 1
            await client.patch(made, made.replace(spec=made.spec.replace(size=2)))
            await doer.seen.reach(2)
            await clock.advance(3600)
            assert len(doer.seen) == 2
    assert manager.metrics.controller("widget").terminal_errors == 2
    assert [line["again"] for line in logs if line["event"] == "reconcile failed"] == [False, False]


async def test_many_objects_are_reconciled_at_a_time_and_each_by_one_worker(client: ApiClient, namespace: str) -> None:
    at_work: list[str] = []
    most = 0
    doubles: list[str] = []
    go = asyncio.Event()

    async def work(doer: Doer, request: Request) -> None:
        nonlocal most
        if request.name in at_work:
            doubles.append(request.name)
        at_work.append(request.name)
        most = max(most, len(at_work))
        await go.wait()
        at_work.remove(request.name)

    manager = Manager(client)
    doer = Doer(namespace, work, concurrency=3)
    manager.add(doer)
    async with running(manager):
        made = [await client.create(widget(f"w{number}", namespace)) for number in range(5)]
        await doer.seen.reach(3)
        for one in made:
            await client.patch(one, one.replace(spec=one.spec.replace(size=9)))
        go.set()
        await doer.seen.until(lambda seen: set(doer.names) == {one.name for one in made} and not at_work)
    assert (most, doubles) == (3, [])


async def test_a_change_during_a_reconcile_brings_another_one(client: ApiClient, namespace: str) -> None:
    go = asyncio.Event()

    async def wait(doer: Doer, request: Request) -> None:
        await go.wait()

    seen_by_watch: Seen[Change] = Seen()
    manager = Manager(client)
    doer = Doer(namespace, wait)
    manager.add(doer)
    async with running(manager):
        manager.informers.subscribe(doer.kind, doer.query, seen_by_watch.append)
        made = await client.create(widget("a", namespace))
        await doer.seen.reach(1)
        await client.patch(made, made.replace(spec=made.spec.replace(size=2)))
        await seen_by_watch.reach(2)
        assert len(doer.seen) == 1
        go.set()
        await doer.seen.reach(2)


async def test_mistakes_in_mapping_and_predicate_are_seen_and_stop_nothing(client: ApiClient, namespace: str) -> None:
    def to(change: Change) -> Iterable[Request]:
        raise KeyError("a mapping's mistake")

    def judge(change: Change) -> bool:
        raise KeyError("a predicate's mistake")

    wrong = Doer(
        namespace,
        name="wrong",
        when=Predicate(judge),
        watches=(Watch(kind=ConfigMap, to=to, query=Query(namespace=namespace)),),
    )
    right = Doer(namespace, name="right")
    manager = Manager(client)
    manager.add(wrong)
    manager.add(right)
    with logged() as logs:
        async with running(manager):
            await client.create(ConfigMap(metadata=ObjectMeta(name="x", namespace=namespace)))
            made = await client.create(widget("a", namespace))
            await wrong.seen.reach(1)
            await client.patch(made, made.replace(spec=made.spec.replace(size=2)))
            await right.seen.reach(2)
            await until(lambda: len([line for line in logs if line["event"] == "a handler failed on a change"]) >= 2)
            await client.create(widget("b", namespace))
            await wrong.seen.until(lambda seen: "b" in wrong.names)


async def test_a_start_that_fails_is_tried_again_and_holds_up_nobody_else(client: ApiClient, namespace: str) -> None:
    clock = FakeClock()
    starts: Seen[int] = Seen()

    class Slow(Doer):
        async def start(self) -> None:
            starts.append(1)
            if len(starts) < 3:
                raise OSError("the device is away")

        async def stop(self) -> None:
            raise ValueError("a mistake")

    slow, other = Slow(namespace, name="slow"), Doer(namespace, name="other")
    manager = Manager(client, clock=clock)
    manager.add(slow)
    manager.add(other)
    await client.create(widget("a", namespace))
    with logged() as logs:
        async with running(manager):
            await starts.reach(1)
            await other.seen.reach(1)
            assert slow.seen == []
            with pytest.raises(RuntimeError, match="the start of slow: the device is away"):
                manager.check_ready()
            await clock.advance(2)
            await slow.seen.reach(1)
            manager.check_ready()
    assert [line["event"] for line in logs if line["log_level"] == "error"] == [
        "start failed",
        "start failed",
        "stop failed",
    ]


async def test_without_the_lease_a_reconcile_waits_and_does_not_spin(client: ApiClient, namespace: str) -> None:
    clock = FakeClock()

    async def not_leading(doer: Doer, request: Request) -> None:
        raise NotLeading("the lease is gone")

    manager = Manager(client, clock=clock)
    doer = Doer(namespace, not_leading)
    manager.add(doer)
    async with running(manager):
        await client.create(widget("a", namespace))
        async with asyncio.timeout(PATIENCE):
            await doer.seen.reach(1)
        await clock.settle()
        assert len(doer.seen) == 1
        await clock.advance(1)
        assert len(doer.seen) == 2
