"""How a kind is followed: by a streamed list or by pages, across all that can go wrong with a watch."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from trimtab.client.api import ApiClient
from trimtab.client.entries import Delta, Snapshot
from trimtab.client.protocol import EventType, Query, Ref
from trimtab.client.transport import Call, Reply, Silent, Transport, Unreachable
from trimtab.model.clock import SystemClock
from trimtab.model.errors import StatusError, expired
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.reflector import Outcome, Phase, Reflector, State, after

S, L, W = Phase.STREAMING, Phase.LISTING, Phase.WATCHING


@pytest.mark.parametrize(
    ("state", "outcome", "following"),
    [
        (State(S), Outcome.SYNCED, State(W, "9")),
        (State(S), Outcome.FAILED, State(S)),
        (State(S), Outcome.ENDED, State(S)),
        (State(S), Outcome.EXPIRED, State(S)),
        (State(S), Outcome.UNSUPPORTED, State(L, "", False)),
        (State(L, "", False), Outcome.SYNCED, State(W, "9", False)),
        (State(L, "", False), Outcome.FAILED, State(L, "", False)),
        (State(W, "3"), Outcome.ENDED, State(W, "9")),
        (State(W, "3"), Outcome.FAILED, State(W, "9")),
        (State(W, "3"), Outcome.EXPIRED, State(S)),
        (State(W, "3", False), Outcome.EXPIRED, State(L, "", False)),
    ],
)
def test_states_follow_outcomes(state: State, outcome: Outcome, following: State) -> None:
    assert after(state, outcome, "9") == following


class Meddler:
    """A transport that lets a function have its say before each stream, and can cut a stream that runs."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.calls: list[Call] = []
        self.before: Callable[[Call], None] = lambda call: None
        self._cut: asyncio.Future[Exception | None] | None = None

    async def call(self, call: Call) -> Reply:
        self.calls.append(call)
        return await self._inner.call(call)

    async def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        self.calls.append(call)
        self.before(call)
        cut = self._cut = asyncio.get_running_loop().create_future()
        async with aclosing(self._inner.stream(call, inactivity)) as lines:
            while True:
                line = asyncio.ensure_future(anext(lines, None))
                await asyncio.wait({line, cut}, return_when=asyncio.FIRST_COMPLETED)
                if cut.done():
                    line.cancel()
                    await asyncio.gather(line, return_exceptions=True)
                    error = cut.result()
                    if error is not None:
                        raise error
                    return
                found = line.result()
                if found is None:
                    return
                yield found

    def cut(self, error: Exception | None = None) -> None:
        assert self._cut is not None
        self._cut.set_result(error)

    async def close(self) -> None:
        await self._inner.close()


class Follower:
    """Reads what a reflector tells, and keeps the state that follows from it."""

    def __init__(self, client: ApiClient, query: Query, *, streams: bool = True) -> None:
        self.meddler = Meddler(client.transport)
        self.failures: list[Exception] = []
        self.told: list[Any] = []
        self.names: dict[str, str] = {}
        self._changed = asyncio.Condition()
        self.reflector = Reflector(
            ApiClient(self.meddler, client.scheme),
            ConfigMap,
            query,
            clock=SystemClock(),
            chance=random.Random(1),
            failed=lambda error, pause: self.failures.append(error),
            streams=streams,
        )

    async def __aenter__(self) -> Follower:
        self._task = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _read(self) -> None:
        async with aclosing(self.reflector.told()) as told:
            async for item in told:
                async with self._changed:
                    self.told.append(item)
                    if isinstance(item, Snapshot):
                        self.names = {entry.name: entry.revision for entry in item.entries}
                    elif item.entry is not None:
                        if item.type is EventType.DELETED:
                            self.names.pop(item.entry.name, None)
                        else:
                            self.names[item.entry.name] = item.revision
                    self._changed.notify_all()

    async def until(self, holds: Callable[[], Any]) -> None:
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(holds)

    @property
    def snapshots(self) -> int:
        return sum(isinstance(item, Snapshot) for item in self.told)

    @property
    def streams(self) -> list[Call]:
        return [call for call in self.meddler.calls if call.query.get("watch")]


async def add(client: ApiClient, namespace: str, name: str) -> None:
    await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels={"of": "test"})))


def mine(namespace: str) -> Query:
    return Query(namespace=namespace, labels="of=test")


async def test_the_whole_state_comes_through_the_watch_itself(client: ApiClient, namespace: str) -> None:
    await add(client, namespace, "one")
    async with Follower(client, mine(namespace)) as follower:
        await follower.until(lambda: "one" in follower.names)
        await add(client, namespace, "two")
        await follower.until(lambda: "two" in follower.names)
        assert follower.reflector.state.phase is Phase.WATCHING
    assert len(follower.meddler.calls) == 1, "one request for the list and for the watch"


@pytest.mark.parametrize("code", [400, 422])
async def test_a_server_that_streams_no_lists_is_asked_for_pages(client: ApiClient, namespace: str, code: int) -> None:
    await add(client, namespace, "one")
    follower = Follower(client, mine(namespace))

    def refuse(call: Call) -> None:
        if "sendInitialEvents" in call.query:
            raise StatusError(code, "Invalid", "sendInitialEvents: Forbidden")

    follower.meddler.before = refuse
    async with follower:
        await follower.until(lambda: "one" in follower.names)
        await add(client, namespace, "two")
        await follower.until(lambda: "two" in follower.names)
    assert [bool(call.query.get("watch")) for call in follower.meddler.calls] == [True, False, True]
    assert follower.failures == [], "that is no failure"


@pytest.mark.parametrize("error", [None, Unreachable("cut"), Silent("no bookmark"), StatusError(500, "X", "no")])
async def test_a_watch_that_ends_goes_on_where_it_was(
    client: ApiClient, namespace: str, error: Exception | None
) -> None:
    async with Follower(client, mine(namespace)) as follower:
        await follower.until(lambda: follower.snapshots)
        await add(client, namespace, "one")
        await follower.until(lambda: "one" in follower.names)
        follower.meddler.cut(error)
        await add(client, namespace, "two")
        await follower.until(lambda: "two" in follower.names)
    assert follower.snapshots == 1, "nothing was listed again"
    assert follower.streams[1].query["resourceVersion"] == follower.names["one"]


@pytest.mark.parametrize("streams", [True, False])
async def test_a_lost_past_is_read_again_with_what_was_deleted(
    client: ApiClient, namespace: str, streams: bool
) -> None:
    await add(client, namespace, "one")
    await add(client, namespace, "two")
    async with Follower(client, mine(namespace), streams=streams) as follower:
        await follower.until(lambda: follower.snapshots and set(follower.names) == {"one", "two"})
        refused = asyncio.Event()

        def gone(call: Call) -> None:
            if not refused.is_set() and "sendInitialEvents" not in call.query:
                refused.set()
                raise expired("too old resource version")

        await client.delete(Ref(ConfigMap, "one", namespace))
        await follower.until(lambda: "one" not in follower.names)
        follower.meddler.before = gone
        follower.meddler.cut()
        await refused.wait()
        await client.delete(Ref(ConfigMap, "two", namespace))
        await add(client, namespace, "three")
        await follower.until(lambda: set(follower.names) == {"three"})
    assert follower.snapshots == 2
    assert [error.code for error in follower.failures if isinstance(error, StatusError)] == [410]


async def test_a_stream_that_breaks_before_the_list_is_whole_tells_nothing(client: ApiClient, namespace: str) -> None:
    await add(client, namespace, "one")
    follower = Follower(client, mine(namespace))
    broken: list[Call] = []

    def break_first(call: Call) -> None:
        if not broken:
            broken.append(call)
            raise Unreachable("cut")

    follower.meddler.before = break_first
    async with follower:
        await follower.until(lambda: "one" in follower.names)
    assert isinstance(follower.told[0], Snapshot)
    assert [type(error) for error in follower.failures] == [Unreachable]


async def test_metadata_alone_is_followed_when_that_is_enough(client: ApiClient, namespace: str) -> None:
    await client.create(ConfigMap(metadata=ObjectMeta(name="big", namespace=namespace), data={"secret": "x" * 1000}))
    query = Query(namespace=namespace, fields="metadata.name=big", metadata_only=True)
    async with Follower(client, query) as follower:
        await follower.until(lambda: "big" in follower.names)
    (snapshot,) = follower.told[:1]
    assert b"x" * 1000 not in snapshot.entries[0].body


async def test_pauses_grow_while_nothing_works_and_a_kind_that_comes_late_is_found() -> None:
    slept: list[float] = []

    class Hurried(SystemClock):
        async def sleep(self, seconds: float) -> None:
            slept.append(seconds)
            await asyncio.sleep(0)

    class Absent:
        async def call(self, call: Call) -> Reply:
            raise StatusError(404, "NotFound", "the server could not find the requested resource")

        async def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
            if len(slept) < 8:
                raise StatusError(404, "NotFound", "the server could not find the requested resource")
            yield (
                b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5",'
                b'"annotations":{"k8s.io/initial-events-end":"true"}}}}'
            )

        async def close(self) -> None: ...

    failures: list[Exception] = []
    reflector = Reflector(
        ApiClient(Absent()),
        ConfigMap,
        Query(),
        clock=Hurried(),
        chance=random.Random(1),
        failed=lambda error, pause: failures.append(error),
    )
    async with aclosing(reflector.told()) as told:
        assert await anext(told) == Snapshot([], "5")
    assert all(0.05 * 2**n <= pause <= 0.1 * 2**n for n, pause in enumerate(slept))
    assert len(failures) == 8


async def test_deltas_follow_a_snapshot_in_order(client: ApiClient, namespace: str) -> None:
    async with Follower(client, mine(namespace)) as follower:
        await follower.until(lambda: follower.snapshots)
        for number in range(20):
            await add(client, namespace, f"n{number}")
        await follower.until(lambda: len(follower.names) == 20)
    revisions = [int(item.revision) for item in follower.told if isinstance(item, Delta)]
    assert revisions == sorted(revisions)


async def test_long_lists_whose_watches_fail_are_not_read_without_a_pause() -> None:
    """The time that a list takes is no proof of a good watch."""
    slept: list[float] = []
    end = (
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5",'
        b'"annotations":{"k8s.io/initial-events-end":"true"}}}}'
    )

    class Passing(SystemClock):
        now_is = 0.0

        def monotonic(self) -> float:
            return self.now_is

        async def sleep(self, seconds: float) -> None:
            slept.append(seconds)
            await asyncio.sleep(0)

    clock = Passing()

    class Slow:
        async def call(self, call: Call) -> Reply:
            raise AssertionError("it streams")

        async def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
            if "sendInitialEvents" not in call.query:
                raise expired("too old resource version")
            clock.now_is += 5.0
            yield end

        async def close(self) -> None: ...

    reflector = Reflector(
        ApiClient(Slow()), ConfigMap, Query(), clock=clock, chance=random.Random(1), failed=lambda error, pause: None
    )
    async with aclosing(reflector.told()) as told:
        async for _ in told:
            if len(slept) == 8:
                break
    assert all(0.05 * 2**n <= pause <= 0.1 * 2**n for n, pause in enumerate(slept))


async def test_a_server_that_takes_long_not_to_answer_is_asked_less_and_less() -> None:
    """The transport tries for seconds before it gives up; that is no watch that lived."""
    slept: list[float] = []

    class Passing(SystemClock):
        now_is = 0.0

        def monotonic(self) -> float:
            return self.now_is

        async def sleep(self, seconds: float) -> None:
            slept.append(seconds)
            await asyncio.sleep(0)

    clock = Passing()
    told_once = False

    class Gone:
        async def call(self, call: Call) -> Reply:
            raise AssertionError("it streams")

        async def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
            nonlocal told_once
            if not told_once:
                told_once = True
                yield (
                    b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5",'
                    b'"annotations":{"k8s.io/initial-events-end":"true"}}}}'
                )
            clock.now_is += 3.0
            raise Unreachable("does not answer")

        async def close(self) -> None: ...

    enough = asyncio.Event()
    reflector = Reflector(
        ApiClient(Gone()),
        ConfigMap,
        Query(),
        clock=clock,
        chance=random.Random(1),
        failed=lambda error, pause: enough.set() if len(slept) >= 8 else None,
    )

    async def read() -> None:
        async with aclosing(reflector.told()) as told:
            async for _ in told:
                pass

    task = asyncio.create_task(read())
    await enough.wait()
    task.cancel()
    await asyncio.wait({task})
    assert all(0.05 * 2**n <= pause <= 0.1 * 2**n for n, pause in enumerate(slept[:8]))
