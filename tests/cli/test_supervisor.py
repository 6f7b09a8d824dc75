"""A child is kept running, whatever happens to it."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Sequence

from trimtab.cli.supervisor import LONGEST_PAUSE, Supervisor
from trimtab.model.clock import SystemClock


class Hurried(SystemClock):
    """Pauses are noted and over at once."""

    def __init__(self, enough: int) -> None:
        self.slept: list[float] = []
        self.enough = enough
        self.done = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) >= self.enough:
            self.done.set()
            await asyncio.Event().wait()
        await asyncio.sleep(0)


async def pauses(command: Sequence[str], count: int) -> list[float]:
    clock = Hurried(count)
    supervisor = Supervisor(command, name="child", clock=clock, chance=random.Random(1))
    task = asyncio.create_task(supervisor.run())
    async with asyncio.timeout(60):
        await clock.done.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    return clock.slept


async def test_a_child_that_dies_is_started_again_with_growing_pauses() -> None:
    slept = await pauses((sys.executable, "-I", "-S", "-c", "raise SystemExit(3)"), 4)
    assert all(0.25 * 2**n <= pause <= 0.5 * 2**n for n, pause in enumerate(slept))


async def test_a_child_that_never_starts_is_tried_for_ever() -> None:
    """Two thousand times: a night of it."""
    slept = await pauses(("/nowhere/at/all",), 2000)
    assert max(slept) <= LONGEST_PAUSE
    assert slept[-1] >= 0.5 * LONGEST_PAUSE
