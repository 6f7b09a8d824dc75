"""The fake clock."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from trimtab.model.clock import Clock
from trimtab.testing.clock import FakeClock


def test_it_is_a_clock_that_stands_still() -> None:
    clock: Clock = FakeClock(datetime(2030, 5, 1, tzinfo=UTC))

    assert clock.now() == clock.now() == datetime(2030, 5, 1, tzinfo=UTC)
    assert clock.monotonic() == clock.monotonic()


async def test_sleepers_wake_in_the_order_of_their_deadlines() -> None:
    clock = FakeClock()
    woke: list[tuple[float, str]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woke.append((clock.monotonic(), name))

    async with asyncio.TaskGroup() as group:
        for name, seconds in (("late", 9.0), ("first", 1.0), ("second", 1.0), ("after", 11.0)):
            group.create_task(sleeper(name, seconds))
        await clock.advance(10)
        assert woke == [(1.0, "first"), (1.0, "second"), (9.0, "late")]
        assert clock.pending == (11.0,)
        await clock.advance(1)
    assert woke[-1] == (11.0, "after")


async def test_who_sleeps_anew_within_the_span_wakes_within_it() -> None:
    clock = FakeClock()
    ticks: list[float] = []

    async def ticker() -> None:
        while True:
            await clock.sleep(10)
            ticks.append(clock.monotonic())

    task = asyncio.create_task(ticker())
    await clock.advance(35)
    task.cancel()

    assert ticks == [10, 20, 30]
    assert clock.monotonic() == 35


async def test_a_woken_task_runs_until_it_waits_before_the_next_one_wakes() -> None:
    clock = FakeClock()
    steps: list[str] = []

    async def worker(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        for step in range(5):
            steps.append(f"{name}{step}")
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(worker("a", 1))
        group.create_task(worker("b", 2))
        await clock.advance(2)

    assert steps == [f"{name}{step}" for name in "ab" for step in range(5)]


async def test_a_jump_moves_the_wall_clock_only() -> None:
    clock = FakeClock()
    before, task = clock.now(), asyncio.create_task(clock.sleep(5))
    await clock.settle()

    clock.jump(-3600)

    assert clock.now() == before - timedelta(hours=1)
    assert clock.monotonic() == 0
    assert not task.done()
    await clock.advance(5)
    assert task.done()


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(5))
    await clock.settle()
    task.cancel()
    await clock.settle()

    assert clock.pending == ()
    await clock.advance(10)


async def test_a_sleep_of_nothing_lets_others_run() -> None:
    clock = FakeClock()
    ran = asyncio.Event()
    asyncio.get_running_loop().call_soon(ran.set)
    await clock.sleep(0)
    assert ran.is_set()


async def test_two_may_settle_at_once() -> None:
    clock = FakeClock()
    async with asyncio.timeout(5):
        await asyncio.gather(clock.settle(), clock.settle(), clock.advance(1))


async def test_a_task_that_never_waits_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimtab.testing.clock.TOO_MANY_ROUNDS", 50)

    async def hot() -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    task = asyncio.create_task(hot())
    with pytest.raises(RuntimeError, match="never settles"):
        await FakeClock().settle()
    task.cancel()


async def test_time_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="jump"):
        await FakeClock().advance(-1)
