"""A step that never ends is ended."""

from __future__ import annotations

import asyncio

import pytest

from trimtab.testing.loop import HotLoop, SimulatedLoop
from trimtab.testing.watchdog import Watchdog


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_task_that_never_waits_is_told_with_its_place(stubborn: bool) -> None:
    turns = 0

    async def spin_for_ever() -> None:
        nonlocal turns
        while True:
            try:
                while True:
                    turns += 1
            except BaseException:
                if stubborn:
                    stop_being_stubborn()
                else:
                    raise

    def stop_being_stubborn() -> None:
        nonlocal stubborn
        stubborn = False

    async def main() -> None:
        task = asyncio.create_task(spin_for_ever())
        await asyncio.sleep(1)
        await task

    loop = SimulatedLoop(1)
    with Watchdog(loop, seconds=0.2), pytest.raises(HotLoop, match="spin_for_ever"):
        loop.run_until_complete(main())
    loop.clear_away()


def test_one_that_waits_is_left_alone() -> None:
    async def main() -> str:
        await asyncio.sleep(3600)
        return "done"

    loop = SimulatedLoop(1)
    with Watchdog(loop, seconds=0.2):
        assert loop.run_until_complete(main()) == "done"
    loop.clear_away()
