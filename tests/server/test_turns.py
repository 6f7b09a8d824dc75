"""Writers of one object who have met take turns."""

from __future__ import annotations

import asyncio

from trimtab.server.turns import Turns


async def test_the_first_try_is_free_while_nobody_waits() -> None:
    turns = Turns()
    async with turns.take("a", again=False), turns.take("a", again=False):
        pass


async def test_whoever_failed_once_has_the_object_alone() -> None:
    turns, inside, most = Turns(), 0, 0

    async def write(again: bool) -> None:
        nonlocal inside, most
        async with turns.take("a", again=again):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(write(True) for _ in range(20)), *(write(False) for _ in range(20)))
    assert most == 1


async def test_objects_do_not_wait_for_each_other() -> None:
    turns = Turns()
    async with turns.take("a", again=True), turns.take("b", again=True):
        pass


async def test_a_writer_that_waits_for_itself_gets_on() -> None:
    turns = Turns(patience=0.01)
    async with turns.take("a", again=True), turns.take("a", again=True):
        pass


async def test_nothing_is_kept_of_those_who_are_done_or_gave_up() -> None:
    turns = Turns()
    async with turns.take("a", again=True):
        waiting = asyncio.create_task(_one(turns))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
    async with turns.take("a", again=True):
        pass
    assert not turns._queues


async def _one(turns: Turns) -> None:
    async with turns.take("a", again=True):
        pass
