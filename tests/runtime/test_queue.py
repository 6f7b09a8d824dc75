"""The contract of Queue, in this process and on a real NATS server; and what is special to each."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import nats
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.model.clock import SystemClock
from trimtab.runtime.queue import (
    LocalQueue,
    Message,
    PayloadTooLarge,
    Queue,
    QueueFull,
    QueueUnavailable,
    connect,
)
from trimtab.runtime.queue import nats as queue_nats
from trimtab.runtime.queue.local import Event, State, step
from trimtab.runtime.queue.nats import NatsQueue
from trimtab.testing.clock import FakeClock
from trimtab.testing.nats import NatsServer
from trimtab.testing.pki import Authority

T = TypeVar("T")
DEADLINE = 0.4
LONG = 600.0

_numbers = itertools.count(1)


class Home:
    """Makes queues, and lets time pass for them."""

    def __init__(self) -> None:
        self.made: list[Queue] = []

    def queue(self, **options: Any) -> Queue:
        raise NotImplementedError

    async def pass_time(self, seconds: float) -> None:
        raise NotImplementedError

    async def wait(self, task: Awaitable[T]) -> T:
        """The result, with as much time as it takes."""
        raise NotImplementedError

    async def close(self) -> None:
        for queue in self.made:
            await queue.close()

    async def next(self, messages: AsyncIterator[Message]) -> Message:
        return await self.wait(anext(messages))


class LocalHome(Home):
    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()

    def queue(self, **options: Any) -> Queue:
        self.made.append(LocalQueue(self.clock, **options))
        return self.made[-1]

    async def pass_time(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    async def wait(self, task: Awaitable[T]) -> T:
        future = asyncio.ensure_future(task)
        for _ in range(200):
            await self.clock.settle()
            if future.done():
                return await future
            await self.clock.advance(0.05)
        future.cancel()
        raise AssertionError("nothing came")


class NatsHome(Home):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.stream = f"test{next(_numbers)}"

    def queue(self, **options: Any) -> NatsQueue:
        queue = NatsQueue(self.url, stream=self.stream, **options)
        self.made.append(queue)
        return queue

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def wait(self, task: Awaitable[T]) -> T:
        async with asyncio.timeout(30):
            return await task


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with NatsServer(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture(params=["local", "nats"])
async def home(request: pytest.FixtureRequest) -> AsyncIterator[Home]:
    made: Home
    if request.param == "local":
        made = LocalHome()
    else:
        made = NatsHome(request.getfixturevalue("nats_server").url)
    yield made
    await made.close()


async def test_a_message_reaches_a_consumer(home: Home) -> None:
    queue = home.queue()
    assert await queue.publish("images.scan", b"nginx", id="scan-1")
    message = await home.next(queue.consume("images.scan"))
    assert (message.subject, message.payload, message.id, message.deliveries) == ("images.scan", b"nginx", "scan-1", 1)
    await message.ack()
    assert await queue.depth("images.scan") == 0


async def test_a_consumer_that_waits_gets_what_is_published_later(home: Home) -> None:
    queue = home.queue()
    task = asyncio.ensure_future(anext(queue.consume("s")))
    await asyncio.sleep(0)
    await queue.publish("s", b"late")
    assert (await home.wait(task)).payload == b"late"


async def test_messages_come_in_the_order_of_their_arrival(home: Home) -> None:
    queue = home.queue()
    for number in range(5):
        await queue.publish("s", str(number).encode())
    messages = queue.consume("s", deadline=LONG)
    seen = []
    for _ in range(5):
        message = await home.next(messages)
        seen.append(message.payload)
        await message.ack()
    assert seen == [b"0", b"1", b"2", b"3", b"4"]


async def test_subjects_do_not_mix(home: Home) -> None:
    queue = home.queue()
    for subject in ("a.b", "a_b", "a", "a.b.c"):
        await queue.publish(subject, subject.encode())
    for subject in ("a", "a.b.c", "a_b", "a.b"):
        message = await home.next(queue.consume(subject))
        assert message.payload == subject.encode()
        await message.ack()


@pytest.mark.parametrize("subject", ["", ".", "a.", "a..b", "a.*", "a.>", "a b", "é", "x" * 201])
async def test_what_is_no_subject_is_refused(home: Home, subject: str) -> None:
    queue = home.queue()
    with pytest.raises(ValueError, match="no subject"):
        await queue.publish(subject, b"")
    with pytest.raises(ValueError, match="no subject"):
        await anext(queue.consume(subject))


async def test_an_id_that_breaks_a_header_is_refused(home: Home) -> None:
    with pytest.raises(ValueError, match="no id"):
        await home.queue().publish("s", b"", id="a\r\nb")


async def test_the_same_id_within_the_window_is_one_message(home: Home) -> None:
    queue = home.queue()
    assert await queue.publish("s", b"first", id="x")
    message = await home.next(queue.consume("s", deadline=LONG))
    await message.ack()
    assert not await queue.publish("s", b"again", id="x")
    assert await queue.publish("s", b"other", id="y")
    assert await queue.depth("s") == 1


async def test_the_same_id_after_the_window_is_another_message(home: Home) -> None:
    queue = home.queue(window=0.2)
    assert await queue.publish("s", b"first", id="x")
    await home.pass_time(0.8)
    assert await queue.publish("s", b"again", id="x")


async def test_what_has_no_id_is_never_a_duplicate(home: Home) -> None:
    queue = home.queue()
    assert await queue.publish("s", b"same")
    assert await queue.publish("s", b"same")
    assert await queue.depth("s") == 2


async def test_what_is_not_settled_within_the_deadline_comes_again(home: Home) -> None:
    queue = home.queue()
    await queue.publish("s", b"work")
    messages = queue.consume("s", deadline=DEADLINE)
    first = await home.next(messages)
    second = await home.next(messages)
    assert (first.deliveries, second.deliveries, second.payload, second.id) == (1, 2, b"work", first.id)
    await second.ack()
    assert await queue.depth("s") == 0


async def test_what_was_refused_comes_again_at_once(home: Home) -> None:
    queue = home.queue()
    await queue.publish("s", b"work")
    messages = queue.consume("s", deadline=LONG)
    await (await home.next(messages)).nak()
    assert (await home.next(messages)).deliveries == 2


async def test_what_comes_again_comes_before_what_is_new(home: Home) -> None:
    queue = home.queue()
    for payload in (b"first", b"second", b"third"):
        await queue.publish("s", payload)
    messages = queue.consume("s", deadline=LONG)
    await (await home.next(messages)).nak()
    assert (await home.next(messages)).payload == b"first"


async def test_what_was_refused_for_a_while_lets_others_pass(home: Home) -> None:
    queue = home.queue()
    await queue.publish("s", b"not yet")
    messages = queue.consume("s", deadline=LONG)
    await (await home.next(messages)).nak(delay=1.0)
    await queue.publish("s", b"other")
    other = await home.next(messages)
    await other.ack()
    later = await home.next(messages)
    assert (other.payload, later.payload, later.deliveries) == (b"other", b"not yet", 2)


async def test_whoever_extends_in_time_keeps_the_message(home: Home) -> None:
    queue = home.queue()
    await queue.publish("s", b"slow")
    messages = queue.consume("s", deadline=1.5, concurrency=2)
    slow = await home.next(messages)
    for _ in range(2):
        await home.pass_time(0.9)
        await slow.extend()
    await queue.publish("s", b"other")
    assert (await home.next(messages)).payload == b"other"
    await slow.ack()
    assert await queue.depth("s") == 1


async def test_no_more_than_the_concurrency_is_handed_out(home: Home) -> None:
    queue = home.queue()
    for number in range(3):
        await queue.publish("s", str(number).encode())
    messages = queue.consume("s", concurrency=2, deadline=LONG)
    held = [await home.next(messages), await home.next(messages)]
    third = asyncio.ensure_future(anext(messages))
    await home.pass_time(0.1)
    assert not third.done()
    await held[1].ack()
    assert (await home.wait(third)).payload == b"2"


async def test_two_consumers_share_the_work(home: Home) -> None:
    queue, other = home.queue(), home.queue() if isinstance(home, NatsHome) else home.made[0]
    ids = {f"m{number}" for number in range(6)}
    for each in ids:
        await queue.publish("s", b"", id=each)
    streams = [queue.consume("s", deadline=LONG), other.consume("s", deadline=LONG)]
    seen = []
    for messages in streams * 3:
        message = await home.next(messages)
        seen.append(message.id)
        await message.ack()
    assert sorted(seen) == sorted(ids)


async def test_what_is_never_settled_is_given_up_and_can_be_read(home: Home) -> None:
    queue = home.queue(max_deliveries=2)
    await queue.publish("s", b"poison", id="p")
    messages = queue.consume("s", deadline=DEADLINE)
    assert [(await home.next(messages)).deliveries for _ in range(2)] == [1, 2]
    waiting = asyncio.ensure_future(anext(messages))
    while not (letters := await queue.dead("s")):
        await home.pass_time(0.05)
    [dead] = letters
    assert (dead.subject, dead.payload, dead.id, dead.deliveries) == ("s", b"poison", "p", 2)
    assert "not settled in time" in dead.reason
    await queue.publish("s", b"good")
    good = await home.wait(waiting)
    assert good.payload == b"good"
    await good.ack()
    assert await queue.depth("s") == 0


async def test_what_is_refused_too_often_is_given_up_at_once(home: Home) -> None:
    queue = home.queue(max_deliveries=3)
    await queue.publish("s", b"poison")
    messages = queue.consume("s", deadline=LONG)
    for _ in range(3):
        await (await home.next(messages)).nak()
    [dead] = await queue.dead("s")
    assert (dead.deliveries, dead.reason) == (3, "refused 3 times")
    assert await queue.depth("s") == 0


async def test_what_is_terminated_is_given_up_with_its_reason(home: Home) -> None:
    queue = home.queue()
    await queue.publish("s", b"\xff garbage")
    await (await home.next(queue.consume("s"))).term("no JSON\r\nat all")
    [dead] = await queue.dead("s")
    assert dead.payload == b"\xff garbage"
    assert dead.reason.startswith("no JSON")
    assert await queue.dead("other") == []


async def test_the_dead_are_read_oldest_first_as_many_as_asked_for(home: Home) -> None:
    queue = home.queue()
    messages = queue.consume("s", deadline=LONG)
    for number in range(3):
        await queue.publish("s", str(number).encode())
        await (await home.next(messages)).term()
    assert [letter.payload for letter in await queue.dead("s", limit=2)] == [b"0", b"1"]


async def test_a_message_is_settled_once(home: Home) -> None:
    queue = home.queue()
    await queue.publish("s", b"")
    message = await home.next(queue.consume("s", deadline=LONG))
    await message.ack()
    await message.ack()
    await message.nak()
    await message.term()
    await message.extend()
    assert await queue.depth("s") == 0
    assert await queue.dead("s") == []


async def test_a_late_acknowledgement_still_says_that_the_work_is_done(home: Home) -> None:
    queue = home.queue()
    await queue.publish("s", b"")
    messages = queue.consume("s", deadline=DEADLINE)
    late = await home.next(messages)
    await home.next(messages)
    await late.ack()
    assert await queue.depth("s") == 0


async def test_a_full_subject_refuses_and_others_do_not(home: Home) -> None:
    queue = home.queue(max_depth=2)
    await queue.publish("s", b"1")
    await queue.publish("s", b"2")
    with pytest.raises(QueueFull, match="2 messages wait on s"):
        await queue.publish("s", b"3")
    await queue.publish("other", b"1")
    await (await home.next(queue.consume("s"))).ack()
    await queue.publish("s", b"3")


async def test_what_is_being_worked_on_counts_for_the_depth(home: Home) -> None:
    queue = home.queue(max_depth=1)
    await queue.publish("s", b"1")
    await home.next(queue.consume("s", deadline=LONG))
    with pytest.raises(QueueFull):
        await queue.publish("s", b"2")


async def test_a_payload_over_the_limit_is_refused(home: Home) -> None:
    with pytest.raises(PayloadTooLarge, match="blob"):
        await home.queue(max_payload=10).publish("s", bytes(11))


async def test_a_closed_queue_refuses_and_its_consumers_end(home: Home) -> None:
    queue = home.queue()
    await queue.ready()
    messages = queue.consume("s")
    waiting = asyncio.ensure_future(anext(messages))
    await home.pass_time(0.05)
    await queue.close()
    with pytest.raises(StopAsyncIteration):
        await home.wait(waiting)
    with pytest.raises(QueueUnavailable, match="closed"):
        await queue.publish("s", b"")
    with pytest.raises(QueueUnavailable, match="closed"):
        await queue.ready()


async def test_a_consumer_that_stops_leaves_the_rest_to_others(home: Home) -> None:
    queue = home.queue()
    messages = queue.consume("s", deadline=LONG)
    waiting = asyncio.ensure_future(anext(messages))
    await home.pass_time(0.05)
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    await queue.publish("s", b"work")
    assert (await home.next(queue.consume("s", deadline=LONG))).payload == b"work"


# The life of a message.


@given(st.sampled_from(State), st.sampled_from(Event), st.booleans())
def test_what_has_ended_stays_ended(state: State, event: Event, spent: bool) -> None:
    for end in (State.DONE, State.DEAD):
        assert step(end, event, spent=spent) is end
    assert step(state, Event.ACK, spent=spent) in (State.DONE, State.DEAD)


@given(st.sampled_from([Event.NAK, Event.NAK_LATER, Event.DUE, Event.TERM]))
def test_without_a_delivery_left_a_failure_is_the_end(event: Event) -> None:
    assert step(State.DELIVERED, event, spent=True) is State.DEAD


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["publish", "ack", "nak", "later", "term", "wait", "take"]), max_size=40))
async def test_no_order_of_events_loses_a_message(events: list[str]) -> None:
    """Published = done + dead + still in the queue, whatever happens."""
    clock = FakeClock()
    queue = LocalQueue(clock, max_deliveries=3)
    messages = queue.consume("s", concurrency=100, deadline=10)
    held: list[Message] = []
    published = done = 0
    for event in events:
        if event == "publish":
            await queue.publish("s", b"")
            published += 1
        elif event == "wait":
            await clock.advance(6)
        elif event == "take":
            task = asyncio.ensure_future(anext(messages))
            await clock.settle()
            if task.done():
                held.append(await task)
            else:
                task.cancel()
                await asyncio.wait([task])
                messages = queue.consume("s", concurrency=100, deadline=10)
        elif held:
            message = held.pop(0)
            before = await queue.depth("s")
            if event == "ack":
                await message.ack()
                done += before - await queue.depth("s")
            elif event == "term":
                await message.term()
            else:
                await message.nak(5 if event == "later" else None)
    assert published == done + len(await queue.dead("s")) + await queue.depth("s")


# NATS alone.


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[NatsServer]:
    with NatsServer(tmp_path) as server:
        yield server


async def test_a_server_that_is_killed_loses_nothing_and_brings_back_no_acknowledged_message(
    own_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_nats, "POLL", 0.5)
    queue = NatsQueue(own_server.url, timeout=2)
    for number in range(6):
        await queue.publish("s", str(number).encode())
    messages = queue.consume("s", concurrency=10, deadline=1.0)
    taken = [await anext(messages) for _ in range(4)]
    for message in taken[:2]:
        await message.ack()
    own_server.kill()
    own_server.restart()
    seen = set()
    async with asyncio.timeout(30):
        while len(seen) < 4:
            message = await anext(messages)
            seen.add(message.payload)
            await message.ack()
    assert seen == {b"2", b"3", b"4", b"5"}
    assert await queue.depth("s") == 0
    await queue.close()


async def test_a_duplicate_is_known_after_the_server_came_back(own_server: NatsServer) -> None:
    queue = NatsQueue(own_server.url, timeout=1)
    await queue.publish("s", b"once", id="x")
    own_server.kill()
    own_server.restart()
    assert not await queue.publish("s", b"twice", id="x")
    await queue.close()


async def test_publishing_goes_on_when_the_server_comes_back(own_server: NatsServer) -> None:
    queue = NatsQueue(own_server.url, timeout=1)
    await queue.publish("s", b"before")
    own_server.kill()
    task = asyncio.ensure_future(queue.publish("s", b"meanwhile"))
    await asyncio.sleep(0)
    own_server.restart()
    await task
    assert await queue.depth("s") == 2
    await queue.close()


async def test_a_server_that_stays_away_is_said(own_server: NatsServer) -> None:
    queue = NatsQueue(own_server.url, timeout=0.2)
    await queue.ready()
    own_server.kill()
    with pytest.raises(QueueUnavailable, match=own_server.url):
        await queue.publish("s", b"")
    await queue.close()
    never = NatsQueue(own_server.url, timeout=0.2)
    with pytest.raises(QueueUnavailable, match="Connect"):
        await never.ready()


CONSUMER = """
import asyncio, sys
from trimtab.runtime.queue.nats import NatsQueue

async def main():
    async for message in NatsQueue(sys.argv[1], stream=sys.argv[2]).consume("s", deadline=0.5):
        print(message.payload.decode(), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_what_a_consumer_held_that_died_comes_to_another(nats_server: NatsServer) -> None:
    queue = NatsQueue(nats_server.url, stream="dying")
    await queue.publish("s", b"work")
    command = [sys.executable, "-c", CONSUMER, nats_server.url, "dying"]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"work\n"
    process.send_signal(signal.SIGKILL)
    await process.wait()
    async with asyncio.timeout(30):
        message = await anext(queue.consume("s", deadline=0.5))
    assert (message.payload, message.deliveries) == (b"work", 2)
    await message.ack()
    await queue.close()


async def test_a_queue_with_other_bounds_takes_over_the_stream(nats_server: NatsServer) -> None:
    small = NatsQueue(nats_server.url, stream="bounds", max_depth=1)
    await small.publish("s", b"1")
    large = NatsQueue(nats_server.url, stream="bounds", max_depth=5)
    await large.publish("s", b"2")
    assert await large.depth("s") == 2
    await small.close()
    await large.close()


async def test_streams_that_somebody_deleted_are_made_again(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_nats, "POLL", 0.3)
    queue = NatsQueue(nats_server.url, stream="deleted", timeout=1)
    await queue.publish("s", b"lost")
    messages = queue.consume("s", deadline=LONG)
    await (await anext(messages)).ack()
    waiting = asyncio.ensure_future(anext(messages))
    admin = await nats.connect(nats_server.url)
    await admin.jetstream().delete_stream("deleted")
    await admin.close()
    await queue.publish("s", b"new")
    async with asyncio.timeout(30):
        assert (await waiting).payload == b"new"
    await queue.close()


async def test_a_token_gets_in_and_is_never_shown(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hidden-word\n")
    with NatsServer(tmp_path, flags=["--auth", "hidden-word"]) as server:
        queue = NatsQueue(server.url, token_file=tmp_path / "token")
        await queue.publish("s", b"in")
        assert "hidden-word" not in repr(queue)
        await queue.close()
        wrong = NatsQueue(server.url.replace("nats://", "nats://me:other-word@"))
        with pytest.raises(QueueUnavailable, match="Authorization") as caught:
            await wrong.ready()
        assert "other-word" not in f"{caught.value!r} {wrong!r} {caught.value.__cause__!r}"


async def test_the_certificate_of_the_server_is_verified(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    serving = authority.server("nats", hosts=("localhost",))
    with NatsServer(
        tmp_path, flags=["--tls", "--tlscert", str(serving.certificate), "--tlskey", str(serving.key)]
    ) as server:
        url = server.url.replace("nats://", "tls://")
        trusting = NatsQueue(url, ca_file=authority.certificate)
        await trusting.publish("s", b"over TLS")
        await trusting.close()
        for doubtful in (url, server.url):
            doubting = NatsQueue(doubtful)
            with pytest.raises(QueueUnavailable, match="certificate verify failed"):
                await doubting.ready()


async def test_tls_that_was_asked_for_is_not_given_up_silently(nats_server: NatsServer) -> None:
    queue = NatsQueue(nats_server.url.replace("nats://", "tls://"))
    with pytest.raises(QueueUnavailable, match="SecureConnWanted"):
        await queue.ready()


@pytest.mark.parametrize(
    "url",
    ["http://nats.example", "nats://", "nats://me:word@nats.example", "tls://ok.example,nats://me:word@nats.example"],
)
def test_a_url_that_cannot_be_used_or_gives_secrets_away_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="--nats") as caught:
        NatsQueue(url, clock=SystemClock())
    assert "word" not in str(caught.value).replace("password", "")


async def test_nats_is_used_where_it_is_named(nats_server: NatsServer) -> None:
    assert isinstance(connect(None, clock=FakeClock()), LocalQueue)
    queue = connect(nats_server.url, clock=SystemClock(), stream="named")
    await queue.ready()
    await queue.close()


@pytest.mark.parametrize("moment", [number * 0.003 for number in range(12)])
async def test_a_consumer_that_is_cancelled_at_any_moment_ends(nats_server: NatsServer, moment: float) -> None:
    queue = NatsQueue(nats_server.url, stream="cut-off")

    async def consume(subject: str) -> None:
        async for _ in queue.consume(subject):
            raise AssertionError("nobody published")

    tasks = [asyncio.create_task(consume(subject)) for subject in ("a", "b", "c")]
    await asyncio.wait(tasks, timeout=moment)
    for task in tasks:
        task.cancel()
    async with asyncio.timeout(20):
        await asyncio.wait(tasks)
    assert all(task.cancelled() for task in tasks)
    await queue.close()
