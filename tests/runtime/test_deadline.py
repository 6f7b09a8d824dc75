"""Time limits by a clock that is passed in."""

from __future__ import annotations

import asyncio

import pytest

from trimtab.runtime.deadline import within
from trimtab.testing.clock import FakeClock


async def test_work_that_is_done_in_time_gives_its_result() -> None:
    clock = FakeClock()

    async def work() -> int:
        await clock.sleep(1)
        return 7

    waiting = asyncio.create_task(within(clock, 2, work()))
    await clock.advance(1)
    assert await waiting == 7
    await clock.settle()
    assert not clock.pending


async def test_work_that_takes_longer_is_cancelled() -> None:
    clock, cancelled = FakeClock(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    waiting = asyncio.create_task(within(clock, 2, work()))
    await clock.advance(2)
    with pytest.raises(TimeoutError, match="no answer within 2 s"):
        await waiting
    await cancelled.wait()


async def test_what_the_work_raises_is_raised() -> None:
    async def work() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await within(FakeClock(), 2, work())


async def test_who_is_cancelled_takes_the_work_along() -> None:
    clock, cancelled = FakeClock(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    waiting = asyncio.create_task(within(clock, 2, work()))
    await clock.settle()
    waiting.cancel()
    await cancelled.wait()
