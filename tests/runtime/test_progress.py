"""Progress that is told seldom, and never in the way of the work."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType
from structlog.testing import capture_logs

from trimtab.client.api import ApiClient
from trimtab.model.document import convert, to_document
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.logs import log
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Resource, Spec
from trimtab.model.structural import structural
from trimtab.runtime.progress import Progress, ProgressStatus, throughput
from trimtab.testing.clock import FakeClock

Logs = list[MutableMapping[str, Any]]


class Writes:
    """What was written, and when; a test can let it fail or hang."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.seen: list[tuple[float, int]] = []
        self.last: ProgressStatus | None = None
        self.failure: Exception | None = None
        self.hanging = False

    async def __call__(self, status: ProgressStatus) -> None:
        if self.hanging:
            await asyncio.Event().wait()
        if self.failure is not None:
            raise self.failure
        self.seen.append((self.clock.monotonic(), status.done))
        self.last = status


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def logs() -> Iterator[Logs]:
    log.bind()  # sets logging up, which would undo the capture
    with capture_logs() as captured:
        yield captured


@pytest.fixture
def writes(clock: FakeClock) -> Writes:
    return Writes(clock)


async def test_many_reports_are_one_write_a_second_with_the_newest_figures(writes: Writes, clock: FakeClock) -> None:
    async with Progress(writes, clock) as progress:
        for done in range(1, 31):
            progress.report(done, 100)
            await clock.advance(0.125)
    assert writes.seen == [(0, 1), (1, 8), (2, 16), (3, 24), (3.75, 30)]


async def test_the_last_report_is_written_at_the_end_without_waiting(writes: Writes, clock: FakeClock) -> None:
    async with Progress(writes, clock) as progress:
        progress.report(1, 2)
        await clock.settle()
        progress.report(2, 2, "done")
    assert writes.seen == [(0, 1), (0, 2)]
    assert writes.last == ProgressStatus(
        done=2,
        total=2,
        note="done",
        started="2026-01-01T00:00:00.000000Z",
        updated="2026-01-01T00:00:00.000000Z",
    )


async def test_what_is_written_is_not_written_again_at_the_end(writes: Writes, clock: FakeClock) -> None:
    async with Progress(writes, clock) as progress:
        progress.report(1)
        await clock.advance(5)
    assert writes.seen == [(0, 1)]


async def test_work_that_reports_nothing_writes_nothing(writes: Writes, clock: FakeClock) -> None:
    async with Progress(writes, clock):
        pass
    assert writes.seen == []


async def test_work_that_fails_writes_how_far_it_came(writes: Writes, clock: FakeClock) -> None:
    async def work() -> None:
        async with Progress(writes, clock) as progress:
            progress.report(7)
            raise RuntimeError("it broke")

    with pytest.raises(RuntimeError, match="it broke"):
        await work()
    assert writes.seen == [(0, 7)]


async def test_a_write_that_fails_is_told_once_and_tried_again(writes: Writes, clock: FakeClock, logs: Logs) -> None:
    writes.failure = ValueError("no room")
    async with Progress(writes, clock) as progress:
        for done in range(3):
            progress.report(done)
            await clock.advance(1)
        writes.failure = None
    assert writes.seen == [(3, 2)]
    assert [entry["error"] for entry in logs] == ["no room"]


async def test_a_write_that_hangs_does_not_hold_up_the_end_for_ever(
    writes: Writes, clock: FakeClock, logs: Logs
) -> None:
    writes.hanging = True
    progress = Progress(writes, clock, patience=3)
    progress.report(1)
    await clock.settle()
    finishing = asyncio.create_task(progress.finish())
    await clock.advance(6)
    await finishing
    assert [entry["kind"] for entry in logs] == ["TimeoutError"]


async def test_the_end_waits_for_a_write_that_is_under_way(clock: FakeClock) -> None:
    seen: list[int] = []
    going_on = asyncio.Event()

    async def write(status: ProgressStatus) -> None:
        await going_on.wait()
        seen.append(status.done)

    progress = Progress(write, clock)
    progress.report(1)
    await clock.settle()
    progress.report(2)
    finishing = asyncio.create_task(progress.finish())
    await clock.settle()
    assert not seen
    going_on.set()
    await finishing
    assert seen == [1, 2]


async def test_a_report_after_the_end_is_not_written(writes: Writes, clock: FakeClock) -> None:
    progress = Progress(writes, clock)
    await progress.finish()
    progress.report(1)
    await clock.advance(5)
    assert writes.seen == []


async def test_a_wall_clock_that_jumps_does_not_change_the_rate(writes: Writes, clock: FakeClock) -> None:
    progress = Progress(writes, clock)
    await clock.advance(10)
    clock.jump(-7200)
    progress.report(50, 200)
    await progress.finish()
    assert writes.last is not None
    assert throughput(writes.last) == 5


def status(done: int, total: int | UnsetType, seconds: int) -> ProgressStatus:
    return ProgressStatus(
        done=done, total=total, started="2026-01-01T00:00:00.000000Z", updated=f"2026-01-01T00:00:{seconds:02}.000000Z"
    )


@pytest.mark.parametrize(
    ("given", "rate"),
    [
        (status(10, 100, 5), 2),
        (status(0, 100, 5), None),
        (status(10, UNSET, 5), 2),
        (status(10, 100, 0), None),
        (status(120, 100, 50), 2.4),
        (status(0, 0, 0), None),
    ],
)
def test_the_rate_is_what_was_done_since_the_start(given: ProgressStatus, rate: float | None) -> None:
    assert throughput(given) == rate


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 1000)), min_size=1, max_size=30))
def test_writes_keep_their_distance_and_the_last_report_lands(steps: list[tuple[float, int]]) -> None:
    async def run() -> None:
        clock = FakeClock()
        writes = Writes(clock)
        async with Progress(writes, clock) as progress:
            for seconds, done in steps:
                await clock.advance(seconds)
                progress.report(done)
        times = [at for at, _ in writes.seen]
        assert all(b - a >= 1 - 1e-9 for a, b in itertools.pairwise(times[:-1]))
        assert writes.seen[-1][1] == steps[-1][1]

    asyncio.run(run())


class Task(Resource, group="testing", version="v1", plural="tasks"):
    status: TaskStatus | UnsetType = UNSET


class TaskStatus(Spec):
    progress: ProgressStatus | UnsetType = UNSET


def test_progress_is_a_part_of_the_status_of_kinds() -> None:
    schema = structural(Task)["properties"]["status"]["properties"]["progress"]
    assert set(schema["required"]) == {"done", "started", "updated"}
    document = to_document(Task(status=TaskStatus(progress=status(0, 10, 1))))
    assert document["status"]["progress"]["done"] == 0
    assert convert(document, Task).status == TaskStatus(progress=status(0, 10, 1))


async def test_progress_goes_to_an_object_of_the_api(client: ApiClient, namespace: str, clock: FakeClock) -> None:
    made = await client.create(ConfigMap(metadata=ObjectMeta(name="work", namespace=namespace)))

    async def write(now: ProgressStatus) -> None:
        old = await client.get(ConfigMap, made.name, namespace)
        await client.patch(old, old.replace(data={"done": str(now.done)}))

    async with Progress(write, clock) as progress:
        for done in range(100):
            progress.report(done)
    assert (await client.get(ConfigMap, "work", namespace)).data == {"done": "99"}
