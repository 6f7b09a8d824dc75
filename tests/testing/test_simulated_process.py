"""Processes of a simulation: they stall and die as one."""

from __future__ import annotations

import asyncio

import pytest

from trimtab.testing.loop import SimulatedLoop, run
from trimtab.testing.simulated_process import Event, SimulatedProcess, State, after


def here() -> SimulatedLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    return loop


async def tick(ticks: list[float]) -> None:
    try:
        while True:
            await asyncio.sleep(1)
            ticks.append(here().time())
    finally:
        ticks.append(-1)


def test_a_dead_process_never_runs_again_not_even_its_finally() -> None:
    async def main() -> None:
        ticks: list[float] = []
        process = SimulatedProcess("mortal")
        process.run(asyncio.create_task, tick(ticks))
        await asyncio.sleep(2.5)
        process.kill()
        await asyncio.sleep(10)
        assert ticks == [1, 2]

    run(main(), seed=1)


def test_what_a_process_starts_dies_with_it() -> None:
    async def main() -> None:
        ticks: list[float] = []

        async def parent() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(tick(ticks))

        process = SimulatedProcess("mortal")
        process.run(asyncio.create_task, parent())
        await asyncio.sleep(1.5)
        process.kill()
        await asyncio.sleep(10)
        assert ticks == [1]

    run(main(), seed=1)


def test_a_stalled_process_goes_on_later_and_did_not_notice() -> None:
    async def main() -> None:
        ticks: list[float] = []
        process = SimulatedProcess("sleepy")
        process.run(asyncio.create_task, tick(ticks))
        await asyncio.sleep(1.5)
        process.stall()
        await asyncio.sleep(10)
        assert ticks == [1]
        process.resume()
        here().wake_stalled()
        await asyncio.sleep(1.2)
        assert ticks == [1, 11.5, 12.5]

    run(main(), seed=1)


def test_others_live_on() -> None:
    async def main() -> None:
        ticks: list[float] = []
        dead, alive = SimulatedProcess("dead"), SimulatedProcess("alive")
        alive.run(asyncio.create_task, tick(ticks))
        dead.kill()
        await asyncio.sleep(3.5)
        assert ticks == [1, 2, 3]

    run(main(), seed=1)


@pytest.mark.parametrize("steps", range(5))
def test_a_fuse_kills_between_any_two_awaits(steps: int) -> None:
    async def main() -> int:
        done = 0

        async def work() -> None:
            nonlocal done
            while True:
                done += 1
                await asyncio.sleep(0)

        process = SimulatedProcess("short-lived")
        process.fuse = steps
        told: list[str] = []
        process.died = lambda: told.append("died")
        process.run(asyncio.create_task, work())
        await asyncio.sleep(1)
        assert told == ["died"]
        return done

    assert run(main(), seed=1) == steps


def test_the_dead_stay_dead() -> None:
    assert {after(State.DEAD, event) for event in Event} == {State.DEAD}
    assert after(State.STALLED, Event.RESUME) is State.RUNNING
    assert after(State.STALLED, Event.KILL) is State.DEAD
