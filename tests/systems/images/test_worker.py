"""The worker's loop: how messages are settled, on the queue of this process and on a real NATS server."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.widgets import Seen, logged
from tests.systems.images.listing_kit import tools
from trimtab.model.clock import Clock, SystemClock
from trimtab.runtime.queue import LocalQueue, Queue
from trimtab.runtime.queue.nats import NatsQueue
from trimtab.systems.images.messages import CATALOG, SBOMS, CreateCatalog, GenerateSBOM, Message, encode
from trimtab.systems.images.worker.handling import Later
from trimtab.systems.images.worker.worker import Worker
from trimtab.testing.clock import FakeClock
from trimtab.testing.nats import NatsServer

_numbers = itertools.count(1)
QUIETLY = 0.02


def sbom(image: str = "nginx") -> GenerateSBOM:
    return GenerateSBOM(namespace="team", registry="main", image=image, image_uid="u", run="run-1")


class Doing:
    """A handler that does what it is told to, and keeps what it was asked for."""

    def __init__(self, act: Callable[[Message], Awaitable[None]] | None = None) -> None:
        self.handled: Seen[Any] = Seen()
        self.given_up: Seen[tuple[Any, str]] = Seen()
        self.done: Seen[Any] = Seen()
        self._act = act

    async def handle(self, message: Message) -> None:
        self.handled.append(message)
        if self._act is not None:
            await self._act(message)
        self.done.append(message)

    async def give_up(self, message: Message, why: str) -> None:
        self.given_up.append((message, why))


class Failing(Doing):
    async def handle(self, message: Message) -> None:
        self.handled.append(message)
        raise RuntimeError("it does not work")


class Home:
    """Makes queues and workers that share one place."""

    def __init__(self, folder: Path, nats: NatsServer | None = None) -> None:
        self.folder, self.nats, self.stream = folder, nats, f"worker{next(_numbers)}"
        self.local: LocalQueue | None = None if nats else LocalQueue(SystemClock())
        self.made: list[Queue] = []

    def queue(self) -> Queue:
        if self.local is not None or self.nats is None:
            assert self.local is not None
            return self.local
        self.made.append(NatsQueue(self.nats.url, stream=self.stream))
        return self.made[-1]

    @contextlib.asynccontextmanager
    async def working(self, handlers: dict[str, Any], **options: Any) -> AsyncIterator[Queue]:
        queue = self.queue()
        async with _working(self.folder, queue, handlers, **options):
            yield queue


@contextlib.asynccontextmanager
async def _working(
    folder: Path, queue: Queue, handlers: dict[str, Any], clock: Clock | None = None, **options: Any
) -> AsyncIterator[None]:
    async with tools(None, folder, clock=clock) as mine:
        stop = asyncio.Event()
        running = asyncio.create_task(Worker(mine, queue, handlers, **options).run(stop))
        try:
            yield
        finally:
            stop.set()
            await running


@pytest.fixture(scope="module")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with NatsServer(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture(params=["local", "nats"])
async def home(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Home]:
    made = Home(tmp_path, request.getfixturevalue("nats_server") if request.param == "nats" else None)
    yield made
    for queue in made.made:
        await queue.close()


async def until_empty(queue: Queue, subject: str) -> None:
    async with asyncio.timeout(20):
        while await queue.depth(subject):  # noqa: ASYNC110 - a queue tells nobody that it is empty
            await asyncio.sleep(0.01)


async def test_each_subject_has_its_handler_and_what_is_done_is_gone(home: Home) -> None:
    catalogs, sboms = Doing(), Doing()
    message = CreateCatalog(
        namespace="team", registry="main", type="manual", job="j", job_uid="u", run="run-1", only={"app": ["1"]}
    )
    async with home.working({CATALOG: catalogs, SBOMS: sboms}) as queue:
        await queue.publish(CATALOG, encode(message))
        await queue.publish(SBOMS, encode(sbom()))
        await catalogs.done.reach(1)
        await sboms.done.reach(1)
        await until_empty(queue, CATALOG)
        await until_empty(queue, SBOMS)
    assert (catalogs.handled, sboms.handled) == ([message], [sbom()])


async def test_a_poison_message_is_given_up_and_not_looped(home: Home) -> None:
    poison = Failing()
    with logged() as lines:
        async with home.working({SBOMS: poison}, first_pause=QUIETLY) as queue:
            await queue.publish(SBOMS, encode(sbom()))
            await poison.given_up.reach(1)
            await until_empty(queue, SBOMS)
            assert await queue.dead(SBOMS) == []
    assert len(poison.handled) == 4
    [(message, why)] = poison.given_up
    assert message == sbom()
    assert "4 deliveries" in why
    told = [line for line in lines if line["event"] == "a message could not be handled"]
    assert [(line["image"], line["error"], line["deliveries"]) for line in told] == [
        ("nginx", "it does not work", n) for n in (1, 2, 3, 4)
    ]


async def test_a_message_whose_workers_die_is_given_up_too(home: Home) -> None:
    queue = home.queue()
    await queue.publish(SBOMS, encode(sbom()))
    for _ in range(4):  # workers that take it and are never heard of again
        died = queue.consume(SBOMS, deadline=0.3)
        await anext(died)
        await died.aclose()  # type: ignore[attr-defined]
    survivor = Doing()
    async with home.working({SBOMS: survivor}, deadline=0.3) as again:
        await survivor.given_up.reach(1)
        await until_empty(again, SBOMS)
    assert not survivor.handled


async def test_giving_up_is_tried_again_when_it_fails(home: Home) -> None:
    class Stubborn(Failing):
        async def give_up(self, message: Message, why: str) -> None:
            await super().give_up(message, why)
            if len(self.given_up) < 3:
                raise OSError("the API is away")

    stubborn = Stubborn()
    async with home.working({SBOMS: stubborn}, first_pause=QUIETLY) as queue:
        await queue.publish(SBOMS, encode(sbom()))
        await stubborn.given_up.reach(3)
        await until_empty(queue, SBOMS)
        assert await queue.dead(SBOMS) == []


async def test_what_cannot_be_read_is_put_aside(home: Home) -> None:
    doing = Doing()
    async with home.working({SBOMS: doing}) as queue:
        await queue.publish(SBOMS, b'{"of": "another version"}')
        await queue.publish(SBOMS, encode(sbom()))
        await doing.done.reach(1)
        await until_empty(queue, SBOMS)
        [letter] = await queue.dead(SBOMS)
    assert letter.deliveries == 1
    assert "no GenerateSBOM" in letter.reason


async def test_a_worker_that_is_stopped_hands_its_message_to_another_at_once(home: Home) -> None:
    stuck, free = Doing(lambda _: asyncio.Event().wait()), Doing()  # type: ignore[arg-type, return-value]
    async with home.working({SBOMS: stuck}) as queue:
        await queue.publish(SBOMS, encode(sbom()))
        await stuck.handled.reach(1)
    async with home.working({SBOMS: free}) as queue:
        await free.done.reach(1)
        await until_empty(queue, SBOMS)
    assert not stuck.done


async def test_a_long_task_is_not_handed_to_a_second_worker(home: Home) -> None:
    going = asyncio.Event()
    slow, other = Doing(lambda _: going.wait()), Doing()  # type: ignore[arg-type, return-value]
    async with home.working({SBOMS: slow}, deadline=2.0) as queue:
        await queue.publish(SBOMS, encode(sbom()))
        await slow.handled.reach(1)
        async with home.working({SBOMS: other}, deadline=2.0):
            await asyncio.sleep(4.5)  # two deadlines and more: what must not happen gives no sign
        going.set()
        await slow.done.reach(1)
        await until_empty(queue, SBOMS)
    assert (len(slow.handled), len(other.handled)) == (1, 0)


async def test_no_more_than_so_many_are_handled_at_once(home: Home) -> None:
    inside, most, going = 0, 0, asyncio.Event()

    async def count(_: Message) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await going.wait()
        inside -= 1

    doing = Doing(count)
    async with home.working({SBOMS: doing}, sboms=2) as queue:
        for n in range(5):
            await queue.publish(SBOMS, encode(sbom(f"i{n}")))
        await doing.handled.reach(2)
        await asyncio.sleep(0.1)  # a third must not come, which gives no sign
        going.set()
        await doing.done.reach(5)
        await until_empty(queue, SBOMS)
    assert most == 2


async def test_one_message_that_fails_does_not_stop_the_others(home: Home) -> None:
    async def fail_first(message: Message) -> None:
        if isinstance(message, GenerateSBOM) and message.image == "bad":
            raise ExceptionGroup("several", [ValueError("x")])

    doing = Doing(fail_first)
    async with home.working({SBOMS: doing}, sboms=1) as queue:
        await queue.publish(SBOMS, encode(sbom("bad")))
        await queue.publish(SBOMS, encode(sbom("good")))
        await doing.done.reach(1)
    assert doing.done[0] == sbom("good")


async def test_pauses_grow_and_later_is_kept(tmp_path: Path) -> None:
    clock = FakeClock()
    queue = LocalQueue(clock)
    times: list[float] = []

    async def note(message: Message) -> None:
        times.append(clock.monotonic())
        if len(times) == 3:
            raise Later("somebody else is at it", 77)
        raise RuntimeError

    async with _working(tmp_path, queue, {SBOMS: Doing(note)}, clock):
        await queue.publish(SBOMS, encode(sbom()))
        await clock.advance(200)
    assert times == [0, 5, 15, 92]


async def test_a_worker_outlives_its_queue_server(tmp_path: Path) -> None:
    (tmp_path / "nats").mkdir()
    with NatsServer(tmp_path / "nats") as server:
        home, going = Home(tmp_path, server), asyncio.Event()
        doing = Doing(lambda _: going.wait())  # type: ignore[arg-type, return-value]
        async with home.working({SBOMS: doing, CATALOG: Doing()}, deadline=2.0) as queue:
            await queue.publish(SBOMS, encode(sbom("before")))
            await doing.handled.reach(1)
            server.kill()
            going.set()  # it ends while there is nobody to tell
            await doing.done.reach(1)
            server.restart()
            publisher = home.queue()
            await publisher.publish(SBOMS, encode(sbom("after")))
            await doing.done.until(lambda done: sbom("after") in done)
            await until_empty(publisher, SBOMS)
        for made in home.made:
            await made.close()


async def test_a_closed_queue_ends_the_worker(tmp_path: Path) -> None:
    queue = LocalQueue(SystemClock())
    async with tools(None, tmp_path) as mine:
        running = asyncio.create_task(Worker(mine, queue, {SBOMS: Doing()}).run(asyncio.Event()))
        await asyncio.sleep(0)
        await queue.close()
        await asyncio.wait_for(running, 5)
